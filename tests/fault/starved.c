/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a process without free descriptors can sleep: waiting clients, which it cannot
 * accept, do not keep it busy, and they connect once there are descriptors again.
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "node.h"

#define CLIENTS    3
#define HELD       128
#define ASLEEP     1500   /* ms of sleep without descriptors */
#define MOST_US    150000 /* processor time of that sleep; a busy loop would use all of it */
#define SOON       5000   /* ms for a client to connect afterwards */
#define CONNECT_MS 300    /* the clients' connect calls are done by then */

static int ends[CLIENTS][2];
static int held[HELD];
static unsigned int batch_count;

static uint64_t cpu_us(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void starve(void)
{
	const struct rlimit few = {HELD, HELD};
	int fd;

	if (setrlimit(RLIMIT_NOFILE, &few))
		fail("setrlimit: %s", strerror(errno));
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		held[batch_count++] = fd;
	if (errno != EMFILE)
		fail("open: %s", strerror(errno));
}

static void feed(void)
{
	while (batch_count)
		close(held[--batch_count]);
}

/* Opens a node whose completion queue has a wait object. */
static void open_sleeper(struct node *n)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};

	node_create(n, NULL);
	must(fi_close(&n->cq->fid), "fi_close");
	must(fi_cq_open(n->domain, &attr, &n->cq, NULL), "fi_cq_open");
	node_bind(n);
}

static void sleep_starved(struct node *n)
{
	struct fi_cq_tagged_entry e;
	uint64_t end = now_ms() + ASLEEP, start = cpu_us();
	ssize_t ret = fi_cq_sread(n->cq, &e, 1, NULL, ASLEEP);

	if (ret != -FI_EAGAIN || now_ms() + 10 < end)
		fail("asleep with nobody let in, fi_cq_sread returns %zd", ret);
	if (cpu_us() - start > MOST_US)
		fail("a sleeper without descriptors used %llu us of processor time in %d ms",
		     (unsigned long long)(cpu_us() - start), ASLEEP);
}

static void server(void *arg)
{
	struct fi_cq_tagged_entry e;
	struct name name;
	char words[CLIENTS];
	struct node n;

	(void)arg;
	open_sleeper(&n);
	name = node_name(&n);
	for (int i = 0; i < CLIENTS; i++)
		must(fi_recv(n.ep, &words[i], 1, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	starve();
	for (int i = 0; i < CLIENTS; i++)
		tell(ends[i][0], &name, sizeof(name));
	usleep(CONNECT_MS * 1000);
	sleep_starved(&n);
	feed();
	for (int i = 0; i < CLIENTS; i++)
		if (fi_cq_sread(n.cq, &e, 1, NULL, SOON) != 1)
			fail("only %d of %d got in when there was room again", i, CLIENTS);
	for (int i = 0; i < CLIENTS; i++)
		tell(ends[i][0], "", 1);
	node_close(&n);
}

static void client(void *arg)
{
	int end = *(int *)arg;
	struct name name;
	struct event e;
	struct node n;
	char byte;

	node_open(&n, NULL);
	hear(end, &name, sizeof(name));
	MUST(n.cq, fi_send(n.ep, "x", 1, NULL, node_insert(&n, &name), NULL));
	e = node_wait(&n, CONNECT_MS + ASLEEP + SOON, "a message to somebody without descriptors");
	if (e.err)
		fail("it ended with %s", fi_strerror(e.err));
	hear(end, &byte, 1);
	node_close(&n);
}

int main(void)
{
	pid_t pids[CLIENTS + 1];

	alarm(LIMIT);
	need_provider();
	for (int i = 0; i < CLIENTS; i++)
		wire(ends[i]);
	pids[CLIENTS] = start("server", server, NULL);
	for (int i = 0; i < CLIENTS; i++)
		pids[i] = start("client", client, &ends[i][1]);
	for (int i = 0; i <= CLIENTS; i++)
		finish(pids[i], i < CLIENTS ? "a client" : "the server");
	return EXIT_SUCCESS;
}
