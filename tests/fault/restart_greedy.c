/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a restarted peer is reached by a sender that finds completions at each of its reads: a receiver is killed
 * and another process takes its address. What is counted are the sender's turns, each a send and a read of one entry.
 */
#include "node.h"

#define STORE    40 /* completions that the sender leaves unread */
#define ROUND    16 /* turns between two pauses */
#define ROUNDS   60 /* at most: fewer turns than a ring has room for messages */
#define PAUSE_US 5000
#define WAIT_MS  5000

struct birth {
	struct name name; /* empty for the first */
	int end;
};

/* Tells its name, and then when it has got a message. */
static void receiver(void *arg)
{
	const struct birth *b = arg;
	struct name is;
	struct node n;
	uint64_t word;

	node_open(&n, b->name.len ? &b->name : NULL);
	must(fi_recv(n.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	is = node_name(&n);
	tell(b->end, &is, sizeof(is));
	node_wait(&n, WAIT_MS, "a message");
	tell(b->end, "", 1);
	for (;;)
		fi_cq_read(n.cq, NULL, 0);
}

struct sender {
	struct node n;
	fi_addr_t to;
	int end; /* of the receiver that lives */
};

static bool heard(const struct sender *s)
{
	char byte;

	return recv(s->end, &byte, 1, MSG_DONTWAIT) == 1;
}

static void send_one(struct sender *s, bool reads)
{
	static uint64_t word;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_send(s->n.ep, &word, sizeof(word), NULL, s->to, NULL);

	if (ret != -FI_EAGAIN)
		must(ret, "fi_send");
	if (reads && fi_cq_read(s->n.cq, &entry, 1) == -FI_EAVAIL)
		fi_cq_readerr(s->n.cq, &error, 0);
}

static void reach(struct sender *s, const char *which)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (heard(s))
			return;
		for (unsigned int i = 0; i < ROUND; i++)
			send_one(s, true);
		usleep(PAUSE_US);
	}
	fail("%u turns, and the %s receiver has got nothing", ROUND * ROUNDS, which);
}

static pid_t bear(struct sender *s, struct birth *b)
{
	int ends[2];
	pid_t pid;

	wire(ends);
	b->end = ends[1];
	s->end = ends[0];
	pid = start("receiver", receiver, b);
	hear(s->end, &b->name, sizeof(b->name));
	return pid;
}

static void sender(void *arg)
{
	struct birth b = {.name.len = 0};
	struct sender s;
	pid_t pid;

	(void)arg;
	pid = bear(&s, &b);
	node_open(&s.n, NULL);
	s.to = node_insert(&s.n, &b.name);
	reach(&s, "first");
	for (unsigned int i = 0; i < STORE; i++)
		send_one(&s, false);
	slay(pid);
	pid = bear(&s, &b);
	reach(&s, "second");
	slay(pid);
}

int main(void)
{
	need_provider();
	finish(start("sender", sender, NULL), "sender");
	return EXIT_SUCCESS;
}
