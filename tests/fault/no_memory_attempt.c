/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=180
 * Each allocation that an endpoint makes to connect and to send fails, one run after the other, alone or with all that follow:
 * the call returns -FI_ENOMEM, or the message ends. Once there is memory, the next message connects and arrives.
 */
#define LIMIT 170

#include <limits.h>

#include "node.h"
#include "short_memory.h"

#define RUNS_MAX 100
#define WAIT_MS  20000
#define SHORT_MS 200 /* a message is tried so long without memory */

static int names[2], results[2];

/* What a run tells. */
struct outcome {
	unsigned int count; /* of allocations */
	bool refused;       /* the call returned -FI_ENOMEM */
};

/* The peer of all runs. */
static void receiver(void *arg)
{
	static char in[8];
	struct node n;
	struct name mine;

	(void)arg;
	node_open(&n, NULL);
	mine = node_name(&n);
	tell(names[1], &mine, sizeof(mine));
	for (;;) {
		must(fi_recv(n.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), "fi_recv");
		node_wait(&n, LIMIT * 1000, "a message");
	}
}

/* Sends a message, for `ms` at most. Returns what the call does. */
static ssize_t sends(struct node *n, fi_addr_t to, unsigned int ms)
{
	static char bytes[8];
	uint64_t end = now_ms() + ms;
	ssize_t ret;

	do
		ret = fi_send(n->ep, bytes, sizeof(bytes), NULL, to, bytes);
	while (ret == -FI_EAGAIN && now_ms() < end);
	return ret;
}

static void sender(void *arg)
{
	struct outcome o;
	struct event e;
	struct node n;
	fi_addr_t to;
	ssize_t ret;

	node_open(&n, NULL);
	to = node_insert(&n, arg);
	memory.armed = true;
	ret = sends(&n, to, SHORT_MS);
	memory.armed = false;
	if (ret && ret != -FI_EAGAIN && ret != -FI_ENOMEM)
		fail("a send returns %zd: %s", ret, memory_how());
	if (!ret)
		node_wait(&n, WAIT_MS, "the end of a message without memory");
	o = (struct outcome){memory.count, ret == -FI_ENOMEM};
	for (ret = -FI_ENOMEM; ret == -FI_ENOMEM;) /* a failed attempt is told once */
		ret = sends(&n, to, WAIT_MS);
	must(ret, "a send with memory");
	e = node_wait(&n, WAIT_MS, "the end of a message");
	if (e.err)
		fail("a message ends with %s: %s", fi_strerror(e.err), memory_how());
	node_close(&n);
	tell(results[1], &o, sizeof(o));
}

static struct outcome run(struct name *to, unsigned int fails, bool all)
{
	struct outcome o;

	memory.fails = fails;
	memory.row = all ? UINT_MAX : 1;
	finish(start("sender", sender, to), "the sender");
	hear(results[0], &o, sizeof(o));
	return o;
}

int main(void)
{
	struct name to;
	pid_t pid;

	alarm(LIMIT);
	need_provider();
	need_memory();
	wire(names);
	wire(results);
	pid = start("receiver", receiver, NULL);
	hear(names[0], &to, sizeof(to));
	for (int all = 0; all < 2; all++) {
		unsigned int fails = 1, refused = 0;
		struct outcome o;

		do {
			o = run(&to, fails, all);
			refused += o.refused;
		} while (o.count >= fails++ && fails < RUNS_MAX);
		printf("%u allocations, %u calls refused\n", fails - 2, refused);
		if (!refused)
			fail("no call hears that there is no memory");
	}
	slay(pid);
	return EXIT_SUCCESS;
}
