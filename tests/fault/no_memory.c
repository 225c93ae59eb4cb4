/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * Each allocation that a receiver makes for messages fails, one run after the other, alone or with all that follow. A message
 * that its sender was told is sent is received, or the receiver's queue tells that one was lost.
 */
#define LIMIT 110

#include <limits.h>

#include "node.h"
#include "short_memory.h"

#define MESSAGES 6
#define LAST     MESSAGES /* number of the message that ends a run */
#define RUNS_MAX 200
#define WAIT_MS  20000
#define CALLS    5000
#define LONGEST  200000
#define SHORT    3000

/* Over tcp all of them are sent whole; within a host longer ones would wait for a receive. */
static size_t length_of(uint64_t number)
{
	static const size_t lengths[MESSAGES + 1] = {8, 3000, 20000, 100000, LONGEST, 64, 8};

	return strcmp(provider(), "tcp") && lengths[number] > SHORT ? SHORT : lengths[number];
}

/* ---- One run ---- */

static int ends[2], results[2];

/* Sends a message. Returns whether its completion says that it is sent. */
static bool sends(struct node *n, fi_addr_t to, uint64_t number)
{
	static uint64_t bytes[LONGEST / 8 + 1];
	uint64_t end = now_ms() + WAIT_MS;
	struct event e;
	ssize_t ret;

	bytes[0] = number;
	while ((ret = fi_send(n->ep, bytes, length_of(number), NULL, to, bytes)) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("message %u finds no place", (unsigned int)number);
	if (ret)
		return false;
	e = node_wait(n, WAIT_MS, "the end of a message");
	return !e.err;
}

static void sender(void *arg)
{
	bool sent[MESSAGES + 1];
	struct node n;
	fi_addr_t to;

	(void)arg;
	node_open(&n, NULL);
	to = node_meet(&n, ends[0]);
	while (!sends(&n, to, LAST))
		;
	hear(ends[0], &(char){0}, 1);
	for (uint64_t i = 0; i < MESSAGES; i++)
		sent[i] = sends(&n, to, i);
	tell(ends[0], sent, sizeof(sent));
	hear(ends[0], &(char){0}, 1);
	for (;;) /* the first ones may go by the connection that is to end */
		sends(&n, to, LAST);
}

/* Receives up to message LAST. Returns whether the queue has told of a loss. */
static bool receives(struct node *n, bool got[MESSAGES + 1])
{
	static uint64_t bytes[LONGEST / 8 + 1];
	bool reported = false;
	struct event e;

	while (!got[LAST]) {
		must(fi_recv(n->ep, bytes, sizeof(bytes), NULL, FI_ADDR_UNSPEC, bytes), "fi_recv");
		e = node_wait(n, WAIT_MS, "a message");
		if (e.err && e.err != FI_ENOMEM && e.err != FI_EOVERRUN)
			fail("a receive ends with %s", fi_strerror(e.err));
		reported |= e.err != 0;
		if (e.err == FI_EOVERRUN)
			break;
		if (!e.err)
			got[bytes[0]] = true;
	}
	return reported;
}

static void receiver(void *arg)
{
	bool sent[MESSAGES + 1], got[MESSAGES + 1] = {false}, reported;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	node_meet(&n, ends[1]);
	receives(&n, got);
	got[LAST] = false;
	tell(ends[1], "", 1);
	memory.armed = true;
	while (recv(ends[1], sent, sizeof(sent), MSG_DONTWAIT) < 0)
		fi_cq_read(n.cq, NULL, 0);
	for (int i = 0; i < CALLS; i++) /* what the kernel has by then is read */
		fi_cq_read(n.cq, NULL, 0);
	memory.armed = false;
	tell(ends[1], "", 1);
	reported = receives(&n, got);
	for (unsigned int i = 0; i < MESSAGES; i++)
		if (sent[i] && !got[i] && !reported)
			fail("message %u was sent, is not received, and nothing tells: %s", i,
			     memory_how());
	tell(results[1], &memory.count, sizeof(memory.count));
	node_close(&n);
}

/* Returns how many allocations the receiver made. */
static unsigned int run(unsigned int fails, bool all)
{
	unsigned int count;
	pid_t pids[2];

	memory.fails = fails;
	memory.row = all ? UINT_MAX : 1;
	wire(ends);
	wire(results);
	pids[0] = start("receiver", receiver, NULL);
	pids[1] = start("sender", sender, NULL);
	finish(pids[0], "the receiver");
	hear(results[0], &count, sizeof(count));
	kill(pids[1], SIGKILL);
	waitpid(pids[1], NULL, 0);
	for (int i = 0; i < 2; i++)
		close(ends[i]), close(results[i]);
	return count;
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	need_memory();
	for (int all = 0; all < 2; all++) {
		unsigned int fails = 1;

		while (run(fails, all) >= fails && fails < RUNS_MAX)
			fails++;
		printf("%u allocations\n", fails - 1);
		if (fails == 1)
			fail("the receiver allocates nothing");
	}
	return EXIT_SUCCESS;
}
