/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of 8 bytes by several threads of one process, each on a core of its own:
 *
 *     threads [-n] domain PROVIDER THREADS     a domain for each thread, FI_THREAD_DOMAIN
 *     threads [-n] endpoint PROVIDER THREADS   one domain, endpoints and a queue for each thread,
 *                                              FI_THREAD_ENDPOINT
 *     threads [-n] shared PROVIDER THREADS     all threads use the same endpoints and queue,
 *                                              FI_THREAD_SAFE
 *     threads [-n] alternate PROVIDER THREADS  the same, but one thread sends a window, then the next one
 *     threads -n sockets tcp THREADS           no library: a pair of TCP sockets for each thread, a window with
 *                                              headers of 32 bytes by one system call on each side
 *
 * With two cores there is none left for a partner of each thread: a thread plays both ends. It
 * posts a window of 64 receives on one endpoint, sends as many from another endpoint of the process, and
 * reads the completions of both. So one thread shows the cost of both ends, and two show what they
 * cost each other.
 *
 * -n: over a network, see pair.h. Prints a line "THREADS VALUE", million messages/s of all threads.
 * Status 77: the provider is not available. The same file runs on any libfabric.so.1 in
 * LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <rdma/fi_tagged.h>
#include "fabric.h"

#define WINDOW      64
#define THREADS_MAX 16

/* A sending and a receiving endpoint, and what they need. */
struct lane {
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *tx, *rx;
	fi_addr_t to; /* rx, in av */
};

/* The owner of an operation, found by its context. */
struct operation {
	struct fi_context2 context;
	int owner;
};

/* A message as it goes over a socket. */
struct framed {
	char header[32], message[8];
};

struct worker {
	pthread_t thread;
	int number;
	struct lane *lane;
	int tx_sock, rx_sock; /* instead of a lane */
	uint64_t waited;      /* completions of its operations */
	char message[8], room[8];
	struct operation sends[WINDOW], receives[WINDOW];
	/* Completions that this thread has read, by the owner of the operation. Other threads read them. */
	_Alignas(64) _Atomic uint64_t read[THREADS_MAX];
};

static struct worker workers[THREADS_MAX];
static struct lane lanes[THREADS_MAX];
static int threads, windows;
static _Atomic int arrivals;
static bool alternates;
static void (*way)(struct worker *w); /* transfers a window */
static _Alignas(
	64) _Atomic int next_thread; /* number of the thread that sends, if they alternate */

static void progress(struct worker *w)
{
	struct fi_cq_tagged_entry entry[16];
	struct fi_cq_err_entry error = {0};
	ssize_t count = fi_cq_read(w->lane->cq, entry, 16);

	if (count == -FI_EAVAIL && fi_cq_readerr(w->lane->cq, &error, 0) == 1)
		must(-error.err, "an operation");
	if (count != -FI_EAGAIN)
		must(count, "fi_cq_read");
	for (ssize_t i = 0; i < count; i++) {
		_Atomic uint64_t *of = &w->read[((struct operation *)entry[i].op_context)->owner];

		/* One writer: no atomic addition. Release: pairs with the acquire in `completed`. */
		atomic_store_explicit(of, atomic_load_explicit(of, memory_order_relaxed) + 1,
				      memory_order_release);
	}
}

/* Returns how many of its operations are completed, by whichever thread. */
static uint64_t completed(const struct worker *w)
{
	uint64_t count = 0;

	for (int i = 0; i < threads; i++)
		count += atomic_load_explicit(&workers[i].read[w->number], memory_order_acquire);
	return count;
}

static void receive(struct worker *w, int at)
{
	ssize_t ret;

	while ((ret = fi_trecv(w->lane->rx, w->room, sizeof w->room, NULL, FI_ADDR_UNSPEC,
			       (uint64_t)w->number, 0, &w->receives[at])) == -FI_EAGAIN)
		progress(w);
	must(ret, "fi_trecv");
}

static void transmit(struct worker *w, int at)
{
	ssize_t ret;

	while ((ret = fi_tsend(w->lane->tx, w->message, sizeof w->message, NULL, w->lane->to,
			       (uint64_t)w->number, &w->sends[at])) == -FI_EAGAIN)
		progress(w);
	must(ret, "fi_tsend");
}

static void window(struct worker *w)
{
	for (int i = 0; i < WINDOW; i++)
		receive(w, i);
	for (int i = 0; i < WINDOW; i++)
		transmit(w, i);
	for (w->waited += 2 * WINDOW; completed(w) < w->waited;)
		progress(w);
}

static void window_alternating(struct worker *w)
{
	while (atomic_load_explicit(&next_thread, memory_order_acquire) != w->number)
		;
	window(w);
	atomic_store_explicit(&next_thread, (w->number + 1) % threads, memory_order_release);
}

/* All messages of a window are copied together and sent by one call, received by one call, and copied. */
static void window_sockets(struct worker *w)
{
	struct framed all[WINDOW];
	size_t got = 0;

	memset(all, 0, sizeof all);
	for (int i = 0; i < WINDOW; i++)
		memcpy(all[i].message, w->message, sizeof w->message);
	if (send(w->tx_sock, all, sizeof all, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof all)
		pair_fail("send");
	while (got < sizeof all) {
		ssize_t n = recv(w->rx_sock, (char *)all + got, sizeof all - got, MSG_DONTWAIT);

		if (!n || (n < 0 && errno != EAGAIN))
			pair_fail("recv");
		got += n > 0 ? (size_t)n : 0;
	}
	for (int i = 0; i < WINDOW; i++)
		memcpy(w->room, all[i].message, sizeof w->room);
}

static void pin(int core)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)core, &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus))
		pair_fail("there are not as many cores as threads");
}

/* Waits for all threads, `*met` times so far, without sleeping: a thread that wakes late would be timed from then. */
static void meet(int *met)
{
	atomic_fetch_add(&arrivals, 1);
	++*met;
	while (atomic_load(&arrivals) < *met * threads)
		;
}

/* The first thread takes the time, between meetings of all. */
static void *run(void *arg)
{
	struct worker *w = arg;
	double values[REPEATS], start;
	int met = 0;

	pin(w->number);
	for (int repeat = -1; repeat < REPEATS; repeat++) {
		meet(&met);
		start = microseconds();
		for (int i = 0; i < windows; i++)
			way(w);
		meet(&met);
		values[repeat < 0 ? 0 : repeat] =
			threads * windows * WINDOW / (microseconds() - start);
	}
	if (memcmp(w->room, w->message, sizeof w->room) != 0)
		pair_fail("wrong data received");
	if (w->number == 0)
		printf("%d %.4f\n", threads, clock_median(values, REPEATS));
	return NULL;
}

static struct fid_ep *lane_endpoint(struct lane *l)
{
	struct fid_ep *opened;

	must(fi_endpoint(l->domain, info, &opened, NULL), "fi_endpoint");
	must(fi_ep_bind(opened, &l->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(opened, &l->av->fid, 0), "fi_ep_bind");
	must(fi_enable(opened), "fi_enable");
	return opened;
}

/* `within`: a domain that is there, or NULL. */
static void lane_open(struct lane *l, struct fid_domain *within)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 1};
	char name[NAME_ROOM];
	size_t len = sizeof name;

	l->domain = within;
	if (!within)
		must(fi_domain(fabric, info, &l->domain, NULL), "fi_domain");
	must(fi_cq_open(l->domain, &cq_attr, &l->cq, NULL), "fi_cq_open");
	must(fi_av_open(l->domain, &av_attr, &l->av, NULL), "fi_av_open");
	l->tx = lane_endpoint(l);
	l->rx = lane_endpoint(l);
	must(fi_getname(&l->rx->fid, name, &len), "fi_getname");
	if (fi_av_insert(l->av, name, 1, &l->to, 0, NULL) != 1)
		pair_fail("fi_av_insert refused the address");
}

static void worker_open(int number, struct lane *lane)
{
	struct worker *w = &workers[number];

	w->number = number;
	w->lane = lane;
	memset(w->message, number + 1, sizeof w->message);
	for (int i = 0; i < WINDOW; i++)
		w->sends[i].owner = w->receives[i].owner = number;
}

static void sockets_open(struct worker *w)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(PAIR_HOST)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t len = sizeof addr;

	w->tx_sock = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&addr, len) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    connect(w->tx_sock, (struct sockaddr *)&addr, len) ||
	    setsockopt(w->tx_sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
		pair_fail("connecting");
	w->rx_sock = accept(listener, NULL, NULL);
	close(listener);
}

static void open_all(const char *provider, const char *how)
{
	struct fi_info *hints = fabric_hints(provider, FI_MSG | FI_TAGGED, false);
	bool own_domain = !strcmp(how, "domain");
	bool shared = alternates || !strcmp(how, "shared");

	hints->domain_attr->threading = own_domain ? FI_THREAD_DOMAIN
					: shared   ? FI_THREAD_SAFE
						   : FI_THREAD_ENDPOINT;
	if (fabric_find(hints) == -FI_ENODATA)
		exit(NOT_OFFERED);
	if (!info)
		pair_fail("fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	for (int i = 0; i < threads; i++) {
		if (i == 0 || !shared)
			lane_open(&lanes[i], own_domain || i == 0 ? NULL : lanes[0].domain);
		worker_open(i, &lanes[shared ? 0 : i]);
	}
}

static void close_all(void)
{
	for (int i = 0; i < threads && lanes[i].tx; i++) {
		fi_close(&lanes[i].tx->fid);
		fi_close(&lanes[i].rx->fid);
		fi_close(&lanes[i].av->fid);
		fi_close(&lanes[i].cq->fid);
	}
	for (int i = threads - 1; i >= 0; i--)
		if (lanes[i].domain && (i == 0 || lanes[i].domain != lanes[0].domain))
			fi_close(&lanes[i].domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
}

int main(int argc, char **argv)
{
	const char *how;
	bool sockets;

	if (argc > 1 && !strcmp(argv[1], "-n")) {
		pair_network = true;
		argc--;
		argv++;
	}
	how = argc == 4 ? argv[1] : "";
	sockets = !strcmp(how, "sockets");
	threads = argc == 4 ? atoi(argv[3]) : 0;
	if (threads < 1 || threads > THREADS_MAX ||
	    (strcmp(how, "domain") != 0 && strcmp(how, "endpoint") != 0 &&
	     strcmp(how, "shared") != 0 && strcmp(how, "alternate") != 0 && !sockets)) {
		fputs("Usage: threads [-n] domain|endpoint|shared|alternate|sockets PROVIDER THREADS\n",
		      stderr);
		return EXIT_FAILURE;
	}
	alternates = !strcmp(how, "alternate");
	way = sockets ? window_sockets : alternates ? window_alternating : window;
	alarm(LIMIT);
	windows = pair_network ? 200 : 2000;
	for (int i = 0; i < threads && sockets; i++) {
		worker_open(i, NULL);
		sockets_open(&workers[i]);
	}
	if (!sockets)
		open_all(argv[2], how);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			pair_fail("pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	if (!sockets)
		close_all();
	return EXIT_SUCCESS;
}
