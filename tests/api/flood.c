/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More messages than fit: senders get -FI_EAGAIN, all continue later, no message is lost or
 * reordered.
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

#define PIECE 4096

static unsigned char piece[PIECE];

static ssize_t send_piece(struct side *s, unsigned int seed)
{
	data_fill(piece, sizeof(piece), seed);
	return fi_tinject(s->ep, piece, sizeof(piece), s->addr[!s->a->rank], seed);
}

static void receive_pieces(struct side *s, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		POST(s, fi_trecv(s->ep, piece, sizeof(piece), NULL, FI_ADDR_UNSPEC, 0, ~UINT64_C(0),
				 piece));
		CHECK_EQ(GOT(s, piece, FI_TAGGED, sizeof(piece)).tag, i);
		data_check(piece, sizeof(piece), i);
	}
}

/* Connects both sides, so that later sends are not queued for the connection setup. */
static void connect_first(struct side *s)
{
	char byte;

	if (s->a->rank)
		POST(s, fi_inject(s->ep, "", 1, s->addr[0]));
	else
		POST(s, fi_recv(s->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
	if (!s->a->rank)
		GOT(s, &byte, FI_MSG, 1);
	api_meet(s->a);
}

/* ---- No receives posted ---------------------------------------------------------------------- */

#define STORM_MAX  65536  /* FI_WEFT_UNEXPECTED_MAX of these cases */
#define STORM_RING 262144 /* FI_WEFT_RING_SIZE */
#define TX_SIZE    1024   /* tx_attr->size by default */

/* Returns the maximum bytes of a TCP socket buffer, from the named file of limits. */
static size_t kernel_holds(const char *limits)
{
	unsigned long least, usual, most = 0;
	FILE *file = fopen(limits, "r");

	CHECK(file && fscanf(file, "%lu %lu %lu", &least, &usual, &most) == 3);
	fclose(file);
	return most;
}

/*
 * Returns an upper bound of the messages sent before -FI_EAGAIN: twice the space there is, and as many as a sender that
 * is asked to pause may have at the receiver.
 */
static unsigned int storm_bound(void)
{
	size_t room = STORM_RING;

	if (api_networked())
		room = kernel_holds("/proc/sys/net/ipv4/tcp_wmem") +
		       kernel_holds("/proc/sys/net/ipv4/tcp_rmem");
	return (unsigned int)((STORM_MAX + room) * 2 / PIECE) + TX_SIZE;
}

/* Sends until the library has refused sends for 0.1 s. Reads queues only if `reads`. */
static unsigned int send_until_xoff(struct side *s, unsigned int limit, bool reads)
{
	double held = 0;
	unsigned int sent = 0;

	while (sent < limit) {
		ssize_t ret = send_piece(s, sent);

		if (reads)
			side_progress(s);
		if (!ret) {
			sent++;
			held = 0;
			continue;
		}
		CHECK_EQ(ret, -FI_EAGAIN);
		if (!held)
			held = api_seconds();
		if (api_seconds() - held > 0.1)
			break;
	}
	return sent;
}

static void storm(struct api *a, bool reads)
{
	unsigned int sent = 0, count[2] = {0}, all;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	connect_first(&s);
	if (a->rank)
		sent = send_until_xoff(&s, 4 * storm_bound(), reads);
	api_swap(a, &sent, count, sizeof(sent));
	if (!api_other())
		CHECK(count[1] > STORM_MAX / PIECE / 2 && count[1] < storm_bound());
	all = count[1] + 1500;
	if (a->rank) {
		for (; sent < all; sent++)
			POST(&s, send_piece(&s, sent));
	} else {
		receive_pieces(&s, all);
	}
	side_close(&s);
}

static void storm_read(struct api *a)
{
	storm(a, true);
}

static void storm_blind(struct api *a)
{
	storm(a, false);
}

/* Three senders at once: all are paused, all continue, each in its order. */
static void storm_many(struct api *a)
{
	enum { EACH = 300 };
	unsigned int next[4] = {0};
	struct side s;

	side_open(&s, a, &(struct side_opts){.caps = FI_TAGGED | FI_SOURCE});
	for (unsigned int i = 0; i < EACH && a->rank; i++) {
		data_fill(piece, sizeof(piece), i);
		POST(&s, fi_tinject(s.ep, piece, sizeof(piece), s.addr[0],
				    (uint64_t)a->rank << 32 | i));
	}
	if (a->rank == 0) {
		double end = api_seconds() + 0.1;

		while (api_seconds() < end)
			side_progress(&s);
	}
	for (unsigned int i = 0; i < 3 * EACH && !a->rank; i++) {
		struct fi_cq_tagged_entry e;

		POST(&s, fi_trecv(s.ep, piece, sizeof(piece), NULL, FI_ADDR_UNSPEC, 0, ~UINT64_C(0),
				  piece));
		e = TAKE(&s, s.rx);
		CHECK(e.tag >> 32 >= 1 && e.tag >> 32 <= 3);
		CHECK_EQ((uint32_t)e.tag, next[e.tag >> 32]++);
		data_check(piece, sizeof(piece), (uint32_t)e.tag);
	}
	side_close(&s);
}

/* ---- Both sides send ------------------------------------------------------------------------- */

/* Both send until neither can, then both receive. */
static void both_then_read(struct api *a)
{
	unsigned int sent, all[2];
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	sent = send_until_xoff(&s, 4 * storm_bound(), false);
	api_swap(a, &sent, all, sizeof(sent));
	receive_pieces(&s, all[!a->rank]);
	QUIET(&s, s.rx, 2);
	side_close(&s);
}

/* Neither reads a queue while sending: sends that return -FI_EAGAIN make the progress. */
static void both_blind(struct api *a)
{
	enum { COUNT = 4000 };
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (unsigned int i = 0; i < COUNT; i++) {
		ssize_t ret;

		api_at(__FILE__, __LINE__);
		while ((ret = send_piece(&s, i)) == -FI_EAGAIN)
			;
		CHECK_EQ(ret, 0);
	}
	receive_pieces(&s, COUNT);
	side_close(&s);
}

/* Long messages in both directions, all sends posted before the first receive. */
static void both_long(struct api *a)
{
	enum { COUNT = 200, LEN = 50000 };
	static struct data out[COUNT], in[COUNT];
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (unsigned int i = 0; i < COUNT; i++) {
		out[i] = data_full(LEN, 1, i);
		in[i] = data_new(LEN, 1);
		POST(&s, fi_tsend(s.ep, data_at(&out[i]), LEN, NULL, s.addr[!a->rank], i, &out[i]));
	}
	api_meet(a);
	for (unsigned int i = COUNT; i-- > 0;)
		POST(&s,
		     fi_trecv(s.ep, data_at(&in[i]), LEN, NULL, s.addr[!a->rank], i, 0, &in[i]));
	for (unsigned int i = 0; i < COUNT; i++) {
		TAKE(&s, s.rx);
		TAKE(&s, s.tx);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		DATA_EXPECT(&in[i], LEN, i);
		data_free(&in[i]);
		data_free(&out[i]);
	}
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"storm-read", storm_read, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"storm-blind", storm_blind, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"storm-many", storm_many, 4, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"both-then-read", both_then_read, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
		{"both-blind", both_blind, 2, {0}},
		{"both-long", both_long, 2, {0}},
		{"both-long-no-cma", both_long, 2, {"FI_SHM_DISABLE_CMA=yes"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
