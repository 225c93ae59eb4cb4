/* SPDX-License-Identifier: BSD-2-Clause */
/* Tagged messages between two processes on two cores, timed as an application sees them:
 *
 *     client [OPTION...] PROVIDER lat SIZE...    one-way time of a ping-pong, microseconds
 *     client [OPTION...] PROVIDER rate SIZE...   one sender, windows of 64 posted receives,
 *                                                million messages/s; all share one buffer
 *     client [OPTION...] PROVIDER bandwidth SIZE...
 *                                                the same with 64 buffers, GB/s
 *
 * -i: fi_tinject up to the provider's limit, else fi_tsend.
 * -s: FI_THREAD_SAFE instead of FI_THREAD_DOMAIN.
 * -d: datagrams, by fi_send on FI_EP_DGRAM. A window of short ones fits into the socket's buffer.
 * -m: the same with FI_MORE on all sends of a window but the last.
 * -n: over a network, see pair.h.
 * Prints a line "SIZE VALUE" for each size. Status 77: the provider is not available. The same file
 * runs on any libfabric.so.1 in LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <rdma/fi_tagged.h>
#include "fabric.h"

#define WINDOW  64
#define TAG     0x1234567890ULL
#define ACK_TAG 0x9876543210ULL

static bool inject, safe, datagrams;
static bool together;        /* the sends of a window announce the next one */
static bool rate, bandwidth; /* bandwidth implies rate */
static char *provider;
static char **sizes; /* ends with NULL */

static char *tx_buf, *rx_buf;
static struct fi_context2 tx_context[WINDOW], rx_context[WINDOW];
static size_t room = 8;         /* bytes of each buffer: the largest size */
static size_t stride;           /* bytes between buffers; 0: one buffer */
static uint64_t sent, received; /* completions read */
static uint64_t posted, taken;  /* sends posted, receives waited for */

static void progress(void)
{
	struct fi_cq_tagged_entry entry[8];
	ssize_t count = fabric_read(entry, 8);

	for (ssize_t i = 0; i < count; i++)
		(entry[i].flags & FI_RECV) ? received++ : sent++;
}

static void wait_sent(void)
{
	while (sent != posted)
		progress();
}

static void wait_received(uint64_t more)
{
	taken += more;
	while (received < taken)
		progress();
}

/* Receives can take the largest size, so that those left over serve the next size. */
static ssize_t post_one(uint64_t tag, int slot)
{
	char *to = rx_buf + stride * (size_t)slot;

	return datagrams ? fi_recv(ep, to, room, NULL, FI_ADDR_UNSPEC, &rx_context[slot])
			 : fi_trecv(ep, to, room, NULL, peer, tag, 0, &rx_context[slot]);
}

static void post(uint64_t tag, int slot)
{
	ssize_t ret;

	while ((ret = post_one(tag, slot)) == -FI_EAGAIN)
		progress();
	must(ret, "receiving");
}

static ssize_t send_datagram(char *from, size_t size, int slot)
{
	struct iovec iov = {from, size};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer, .context = &tx_context[slot]};

	if (!together || slot == WINDOW - 1)
		return fi_send(ep, from, size, NULL, peer, &tx_context[slot]);
	return fi_sendmsg(ep, &msg, FI_MORE);
}

static ssize_t send_one(size_t size, uint64_t tag, int slot)
{
	char *from = tx_buf + stride * (size_t)slot;

	return datagrams ? send_datagram(from, size, slot)
			 : fi_tsend(ep, from, size, NULL, peer, tag, &tx_context[slot]);
}

/* An injected message ends at once without completion, so it is counted here. */
static void post_send(size_t size, uint64_t tag, int slot)
{
	bool now = inject && size <= info->tx_attr->inject_size;
	ssize_t ret;

	while ((ret = now ? fi_tinject(ep, tx_buf, size, peer, tag) : send_one(size, tag, slot)) ==
	       -FI_EAGAIN)
		progress();
	must(ret, "sending");
	posted++;
	sent += now;
}

static void ping(size_t size)
{
	post_send(size, TAG, 0);
	wait_sent();
}

/* A receive is always posted before the other side can send. */
static void pong(void)
{
	wait_received(1);
	post(TAG, 0);
}

static void ping_pong(size_t size, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		if (side == 0)
			ping(size);
		pong();
		if (side == 1)
			ping(size);
	}
}

static void send_window(size_t size)
{
	post(ACK_TAG, 0);
	for (int i = 0; i < WINDOW; i++)
		post_send(size, TAG, i);
	wait_sent();
	wait_received(1);
}

static void post_window(void)
{
	for (int i = 0; i < WINDOW; i++)
		post(TAG, i);
}

/* Posts the next window before telling the sender to continue. */
static void receive_window(void)
{
	wait_received(WINDOW);
	post_window();
	post_send(8, ACK_TAG, WINDOW - 1);
	wait_sent();
}

static void stream(size_t size, int windows)
{
	for (int i = 0; i < windows; i++)
		side == 0 ? send_window(size) : receive_window();
}

/* Returns one-way microseconds. */
static double latency(size_t size)
{
	int rounds = pair_rounds(size);
	double start = microseconds();

	ping_pong(size, rounds);
	return (microseconds() - start) / rounds / 2;
}

/* Returns million messages/s, or GB/s. */
static double stream_rate(size_t size)
{
	int windows = pair_windows(size);
	double start = microseconds(), messages;

	stream(size, windows);
	messages = windows * WINDOW / (microseconds() - start);
	return bandwidth ? messages * (double)size / 1000 : messages;
}

static size_t buffers(void)
{
	return stride ? WINDOW : 1;
}

static size_t all_buffers(size_t size)
{
	return stride * (buffers() - 1) + size;
}

static char pattern(size_t at, int whose)
{
	return (char)(at % 251 + 1 + (size_t)whose);
}

/* Runs one exchange and checks its bytes before the timed ones; it also touches all pages. */
static void verify(size_t size)
{
	memset(rx_buf, 0, all_buffers(size));
	for (size_t i = 0; i < all_buffers(size); i++)
		tx_buf[i] = pattern(i, side);
	pair_sync();
	rate ? stream(size, 1) : ping_pong(size, 1);
	for (size_t slot = 0; slot < buffers() && !(rate && side == 0); slot++)
		for (size_t i = slot * stride; i < slot * stride + size; i++)
			if (rx_buf[i] != pattern(i, !side))
				pair_fail("wrong data received");
	pair_sync();
}

static void measure(size_t size)
{
	double (*once)(size_t) = rate ? stream_rate : latency;
	double values[REPEATS_MAX];
	int repeats = pair_repeats(size);

	verify(size);
	once(size);
	for (int i = 0; i < repeats; i++)
		values[i] = once(size);
	if (side == 0)
		printf("%zu %.4f\n", size, clock_median(values, repeats));
}

static void open_buffers(void)
{
	for (char **size = sizes; *size; size++)
		room = strtoul(*size, NULL, 0) > room ? strtoul(*size, NULL, 0) : room;
	stride = bandwidth ? room : 0;
	if (posix_memalign((void **)&tx_buf, 4096, all_buffers(room)) ||
	    posix_memalign((void **)&rx_buf, 4096, all_buffers(room)))
		pair_fail("no memory");
}

static void find(void)
{
	struct fi_info *hints =
		fabric_hints(provider, datagrams ? FI_MSG : FI_MSG | FI_TAGGED, safe);

	if (datagrams)
		hints->ep_attr->type = FI_EP_DGRAM;
	fabric_offered(fabric_find(hints), "fi_getinfo");
}

static void run(void)
{
	open_buffers();
	find();
	fabric_open();
	fabric_meet();
	if (!rate)
		post(TAG, 0);
	else if (side == 1)
		post_window();
	for (char **size = sizes; *size; size++)
		measure(strtoul(*size, NULL, 0));
	pair_sync();
	fabric_close();
}

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "isdmn")) != -1) {
		inject |= opt == 'i';
		safe |= opt == 's';
		datagrams |= opt == 'd' || opt == 'm';
		together |= opt == 'm';
		pair_network |= opt == 'n';
	}
	if (argc - optind < 3) {
		fputs("Usage: client [-isdmn] PROVIDER lat|rate|bandwidth SIZE...\n", stderr);
		return EXIT_FAILURE;
	}
	provider = argv[optind];
	bandwidth = !strcmp(argv[optind + 1], "bandwidth");
	rate = bandwidth || !strcmp(argv[optind + 1], "rate");
	sizes = argv + optind + 2;
	return pair_run(run);
}
