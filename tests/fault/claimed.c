/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the fate of messages claimed with FI_PEEK | FI_CLAIM whose sender dies before they are
 * received: an eager message is still received, a message of which only the RTS came ends with an
 * error, and a new peer affects neither.
 */
#include "node.h"

#define SMALL   1000
#define LONG    300001
#define WAIT_MS 3000
#define ROUNDS  10

enum { TAG_SMALL = 1, TAG_LONG, TAG_DROPPED, TAGS = TAG_DROPPED };

static struct name reader_name;

/* Sends one message with each tag and waits to be killed. */
static void sender(void *arg)
{
	static unsigned char bufs[TAGS + 1][LONG];
	fi_addr_t to;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	to = node_insert(&n, &reader_name);
	for (uint64_t tag = TAG_SMALL; tag <= TAGS; tag++) {
		memset(bufs[tag], (int)tag, LONG);
		while (fi_tsend(n.ep, bufs[tag], tag == TAG_SMALL ? SMALL : LONG, NULL, to, tag,
				NULL) == -FI_EAGAIN)
			fi_cq_read(n.cq, NULL, 0);
	}
	for (;;) {
		struct event e;

		if (!node_poll(&n, &e))
			usleep(100);
	}
}

/* Posts a receive with `flags`: claims, receives or discards the message of `context`. */
static void claimed(struct node *n, struct fi_context *context, void *buf, uint64_t tag,
		    uint64_t flags)
{
	struct iovec iov = {buf, LONG};
	struct fi_msg_tagged msg = {.msg_iov = &iov,
				    .iov_count = buf ? 1 : 0,
				    .addr = FI_ADDR_UNSPEC,
				    .tag = tag,
				    .context = context};

	must(fi_trecvmsg(n->ep, &msg, flags), "fi_trecvmsg");
}

static void claim(struct node *n, struct fi_context *context, uint64_t tag)
{
	uint64_t until = now_ms() + WAIT_MS;
	struct event e;

	do {
		claimed(n, context, NULL, tag, FI_PEEK | FI_CLAIM);
		e = node_wait(n, WAIT_MS, "a claim");
	} while (e.err == FI_ENOMSG && now_ms() < until);
	if (e.err || e.context != context || e.tag != tag)
		fail("a claim ended with %s", fi_strerror(e.err));
}

static void idle(struct node *n, unsigned int ms)
{
	uint64_t until = now_ms() + ms;
	struct event e;

	while (now_ms() < until) {
		if (node_poll(n, &e))
			fail("something ended with %s", fi_strerror(e.err));
		usleep(100);
	}
}

/* Receives the claimed messages of a dead sender, perhaps while a new sender runs. */
static void receive_claimed(struct node *n, struct fi_context contexts[TAGS + 1])
{
	static unsigned char buf[LONG];
	struct event e;

	claimed(n, &contexts[TAG_SMALL], buf, TAG_SMALL, FI_CLAIM);
	e = node_wait(n, WAIT_MS, "a message that came whole");
	if (e.err || e.len != SMALL)
		fail("a claimed message of %zu bytes ended with %s", e.len, fi_strerror(e.err));
	for (size_t i = 0; i < SMALL; i++)
		if (buf[i] != TAG_SMALL)
			fail("byte %zu of a claimed message differs", i);
	claimed(n, &contexts[TAG_LONG], buf, TAG_LONG, FI_CLAIM);
	e = node_wait(n, WAIT_MS, "a message offered by the dead");
	if (!e.err || e.context != &contexts[TAG_LONG])
		fail("a message offered by the dead could be received");
	claimed(n, &contexts[TAG_DROPPED], NULL, TAG_DROPPED, FI_CLAIM | FI_DISCARD);
	node_wait(n, WAIT_MS, "a message dropped");
}

int main(void)
{
	struct fi_context contexts[TAGS + 1];
	struct node n;

	alarm(LIMIT);
	need_provider();
	node_open(&n, NULL);
	reader_name = node_name(&n);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = start("sender", sender, NULL), next = -1;

		for (uint64_t tag = TAG_SMALL; tag <= TAGS; tag++)
			claim(&n, &contexts[tag], tag);
		slay(pid);
		idle(&n, 20);
		if (i % 2)
			next = start("sender", sender, NULL);
		idle(&n, 20);
		receive_claimed(&n, contexts);
		if (next < 0)
			continue;
		/* All messages of the new sender have come. */
		for (uint64_t tag = TAG_SMALL; tag <= TAGS; tag++)
			claim(&n, &contexts[tag], tag);
		slay(next);
		idle(&n, 20);
		receive_claimed(&n, contexts);
	}
	node_close(&n);
	return EXIT_SUCCESS;
}
