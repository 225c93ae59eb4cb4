/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many raw clients ask for reads and take no answer. What the endpoint keeps for all of them stays
 * within half of FI_WEFT_UNEXPECTED_LIMIT, however many they are: those that have most are disconnected. A
 * peer of the address vector is served meanwhile, and another, which reads nothing for as long,
 * loses nothing of more than the limit.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#include <rdma/fi_ext_weft.h>
#include <sys/mman.h>

#include "raw_rma.h"

#define REGION  1000000u
#define KEY     77u
#define LIMIT_B "16000000" /* FI_WEFT_UNEXPECTED_LIMIT; half is for answers */
#define CLIENTS 40
#define ASKS    7  /* reads of a raw client */
#define READS   15 /* of the peer that does not read for a while; within its window */
#define WAIT_MS 8000
/* What the server may grow, in kB: without a limit it is CLIENTS * ASKS * REGION, 280 MB. */
#ifndef __SANITIZE_ADDRESS__
#define GROWTH_KB 60000
#else
#define GROWTH_KB 200000
#endif

static int log_fd;
static unsigned char into[READS][REGION];

/* Says its figures whenever it is asked. */
static void server(void *arg)
{
	static unsigned char region[REGION];
	struct fi_weft_ops_stats *ops;
	struct fi_weft_stats stats;
	struct name name;
	struct fid_mr *mr;
	struct event e;
	struct node n;

	(void)arg;
	setenv("FI_LOG_LEVEL", "warn", 1);
	dup2(log_fd, STDERR_FILENO);
	memset(region, 'r', sizeof(region));
	node_open(&n, NULL);
	must(fi_mr_reg(n.domain, region, REGION, FI_REMOTE_READ, 0, KEY, 0, &mr, NULL),
	     "fi_mr_reg");
	must(fi_open_ops(&n.ep->fid, FI_WEFT_STATS, 0, (void **)&ops, NULL), "fi_open_ops");
	raw_rma_ready(&n);
	for (int i = 0; i < 2; i++) {
		hear(ends[1], &name, sizeof(name));
		node_insert(&n, &name);
	}
	tell(ends[1], "", 1);
	for (;;) {
		if (node_poll(&n, &e))
			fail("an operation ended");
		if (recv(ends[1], &(char){0}, 1, MSG_DONTWAIT) != 1)
			continue;
		must(ops->read(&n.ep->fid, &stats, sizeof(stats)), "reading the statistics");
		tell(ends[1], &stats, sizeof(stats));
	}
}

static struct fi_weft_stats server_stats(void)
{
	struct fi_weft_stats stats;

	tell(ends[0], "", 1);
	hear(ends[0], &stats, sizeof(stats));
	return stats;
}

/* Asks for the region, again and again. The endpoint may have ended the connection. */
static void ask(int sock)
{
	for (unsigned int seq = 1; seq <= ASKS; seq++) {
		struct {
			struct frame frame;
			uint64_t len;
		} get = {{.head = HEAD(GET, DATA, seq), .data = KEY, .len = 8}, REGION};

		if (send(sock, &get, sizeof(get.frame) + 8, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
		    errno != ECONNRESET)
			fail("send: %s", strerror(errno));
	}
}

static void post_read(struct node *n, fi_addr_t to, unsigned char *at)
{
	uint64_t end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = fi_read(n->ep, at, REGION, NULL, to, 0, KEY, at)) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("a read finds no room");
	must((int)ret, "fi_read");
}

/* Waits for the end of a read. */
static void take_read(struct node *n)
{
	struct event e = node_wait(n, WAIT_MS, "a read of the region");
	const unsigned char *at = e.context;

	if (e.err)
		fail("a read ended with %s", fi_strerror(e.err));
	if (at[0] != 'r' || memcmp(at, at + 1, REGION - 1) != 0)
		fail("a read brought something else");
}

static bool logged(const char *text)
{
	static char log[65536];
	ssize_t len = pread(log_fd, log, sizeof(log) - 1, 0);

	return len > 0 && memmem(log, (size_t)len, text, strlen(text)) != NULL;
}

static void meet(struct node *n, fi_addr_t *to)
{
	struct name name;

	node_open(n, NULL);
	name = node_name(n);
	tell(ends[0], &name, sizeof(name));
	*to = node_insert(n, &server_name);
}

/* The raw clients join one after the other, beside a peer that reads. */
static void attack(pid_t pid, struct node *busy, fi_addr_t to)
{
	static unsigned char bytes[REGION];
	long kb = memory_of(pid);

	for (unsigned int i = 1; i <= CLIENTS; i++) {
		ask(raw_rma_join(1, i));
		post_read(busy, to, bytes);
		if (node_wait(busy, WAIT_MS, "a read of a peer that reads").err)
			fail("a read of a peer that reads has failed");
		if (memory_of(pid) > kb + GROWTH_KB)
			fail("%u clients that read nothing: the server has grown from %ld to %ld kB",
			     i, kb, memory_of(pid));
	}
}

int main(void)
{
	struct node busy, silent;
	fi_addr_t from_busy, from_silent;
	struct fi_weft_stats stats;
	pid_t pid;

	setenv("FI_WEFT_UNEXPECTED_LIMIT", LIMIT_B, 1);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	pid = raw_rma_begin(server);
	meet(&busy, &from_busy);
	meet(&silent, &from_silent);
	hear(ends[0], &(char){0}, 1);
	post_read(&silent, from_silent, into[0]);
	take_read(&silent);
	for (int i = 0; i < READS; i++)
		post_read(&silent, from_silent, into[i]);
	attack(pid, &busy, from_busy);
	stats = server_stats();
	if (!stats.answers_disconnected || stats.answers_disconnected > CLIENTS)
		fail("%llu peers are counted as disconnected",
		     (unsigned long long)stats.answers_disconnected);
	if (!logged("half of FI_WEFT_UNEXPECTED_LIMIT=8000000"))
		fail("the log does not name the limit");
	for (int i = 0; i < READS; i++)
		take_read(&silent);
	slay(pid);
	return EXIT_SUCCESS;
}
