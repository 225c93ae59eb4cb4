/* SPDX-License-Identifier: BSD-2-Clause */
/* The time from sending 8 bytes until a process that sleeps on another core has them:
 *
 *     wake PROVIDER    fi_tsend, and a fi_cq_sread without a time limit
 *     wake -n PROVIDER the same over a network, see pair.h
 *     wake futex       a word in shared memory and FUTEX_WAKE, and FUTEX_WAIT
 *     wake epoll       send on a TCP socket, and epoll_wait and recv
 *
 * The sender lets PAUSE pass before each message, so that whatever the other side does before it
 * sleeps has ended. The message is the time of sending; both sides have the same clock.
 * Prints a line "8 MICROSECONDS", the median. Status 77: the provider is not available. The same
 * file runs on any libfabric.so.1 in LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <rdma/fi_tagged.h>
#include "fabric.h"

#define PAUSE    2000 /* microseconds */
#define MESSAGES REPEATS_MAX

struct way {
	const char *name;
	void (*open)(void);
	void (*tell)(double time);
	double (*await)(void); /* sleeps, and returns the time that was told */
};

static const char *provider;

/* ---- The interface ---- */

static double tx_time, rx_time;
static struct fi_context2 tx_context, rx_context;

static void post(void)
{
	must(fi_trecv(ep, &rx_time, sizeof rx_time, NULL, peer, 0, 0, &rx_context), "fi_trecv");
}

static void fabric_start(void)
{
	fabric_wait = FI_WAIT_UNSPEC;
	fabric_offered(fabric_find(fabric_hints(provider, FI_MSG | FI_TAGGED, false)),
		       "fi_getinfo");
	fabric_open();
	fabric_meet();
	if (side == 1)
		post();
}

static void fabric_tell(double time)
{
	struct fi_cq_tagged_entry entry;

	tx_time = time;
	while (fi_tsend(ep, &tx_time, sizeof tx_time, NULL, peer, 0, &tx_context) == -FI_EAGAIN)
		fabric_read(&entry, 1);
	while (fabric_read(&entry, 1) < 1)
		;
}

static double fabric_await(void)
{
	struct fi_cq_tagged_entry entry;
	double time;
	ssize_t ret;

	while ((ret = fi_cq_sread(cq, &entry, 1, NULL, -1)) == -FI_EAGAIN || ret == -FI_EINTR)
		;
	must(ret, "fi_cq_sread");
	time = rx_time;
	post();
	return time;
}

/* ---- A futex ---- */

static struct {
	_Atomic uint32_t count;
	double time;
} * shared;
static uint32_t passed;

static long futex(int op, uint32_t value)
{
	return syscall(SYS_futex, &shared->count, op, value, NULL, NULL, 0);
}

static void futex_start(void)
{
	pair_sync();
}

/* release: pairs with the acquire in futex_await */
static void futex_tell(double time)
{
	shared->time = time;
	atomic_store_explicit(&shared->count, ++passed, memory_order_release);
	futex(FUTEX_WAKE, 1);
}

static double futex_await(void)
{
	while (atomic_load_explicit(&shared->count, memory_order_acquire) == passed)
		futex(FUTEX_WAIT, passed);
	passed++;
	return shared->time;
}

/* ---- A socket ---- */

static int sock, poll_set;

static void listen_for_peer(struct sockaddr_in *addr)
{
	socklen_t len = sizeof *addr;
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listener, (struct sockaddr *)addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)addr, &len))
		pair_fail("listening");
	pair_swap(addr, addr, sizeof *addr);
	sock = accept(listener, NULL, NULL);
	close(listener);
}

static void connect_to_peer(struct sockaddr_in *addr)
{
	pair_swap(addr, addr, sizeof *addr);
	sock = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(sock, (struct sockaddr *)addr, sizeof *addr))
		pair_fail("connecting");
}

static void epoll_start(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(PAIR_HOST)};
	struct epoll_event event = {.events = EPOLLIN};
	int on = 1;

	side == 0 ? connect_to_peer(&addr) : listen_for_peer(&addr);
	poll_set = epoll_create1(0);
	if (setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
	    epoll_ctl(poll_set, EPOLL_CTL_ADD, sock, &event))
		pair_fail("the socket");
}

static void epoll_tell(double time)
{
	if (send(sock, &time, sizeof time, MSG_NOSIGNAL) != sizeof time)
		pair_fail("send");
}

static double epoll_await(void)
{
	struct epoll_event event;
	double time;

	while (epoll_wait(poll_set, &event, 1, -1) != 1)
		;
	if (recv(sock, &time, sizeof time, MSG_WAITALL) != sizeof time)
		pair_fail("recv");
	return time;
}

/* ---- All ---- */

static const struct way ways[] = {
	{"futex", futex_start, futex_tell, futex_await},
	{"epoll", epoll_start, epoll_tell, epoll_await},
	{NULL, fabric_start, fabric_tell, fabric_await},
};
static const struct way *way;

static void wait_until(double time)
{
	while (microseconds() < time)
		;
}

static void run(void)
{
	double values[MESSAGES];

	way->open();
	for (int i = 0; i < MESSAGES; i++) {
		if (side == 0) {
			wait_until(microseconds() + PAUSE);
			way->tell(microseconds());
		} else {
			double sent = way->await();

			values[i] = microseconds() - sent;
		}
	}
	if (side == 1)
		printf("8 %.4f\n", clock_median(values, MESSAGES));
	pair_sync();
	if (ep)
		fabric_close();
}

int main(int argc, char **argv)
{
	pair_network = argc > 2 && !strcmp(argv[1], "-n");
	if (argc != 2 + pair_network) {
		fputs("Usage: wake futex|epoll|[-n] PROVIDER\n", stderr);
		return EXIT_FAILURE;
	}
	provider = argv[argc - 1];
	for (way = ways; way->name && strcmp(way->name, provider) != 0; way++)
		;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? EXIT_FAILURE : pair_run(run);
}
