/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that send each other messages until that fails:
 *
 *	rdm_talk IFACE IFACE
 *
 * each with an endpoint at the named interface. Prints "going" when enough have arrived, then the
 * final error of each side that was not killed. Succeeds if each such side got an error.
 */
#define LIMIT 100
#include "../fault/node.h"

#define ENOUGH 100 /* messages */
#define LEN    64

struct side {
	const char *iface;
	int end; /* socket to the other process */
};

static void reported(const char *what, int err)
{
	printf("%s: a %s ended: %s\n", who, what, fi_strerror(err));
	exit(EXIT_SUCCESS);
}

static void ended(const struct event *e)
{
	reported(e->flags & FI_RECV ? "receive" : "send", e->err);
}

/* Has a message come? Ends the process at the first error. */
static bool next_message(struct node *n)
{
	struct event e;

	if (!node_poll(n, &e))
		return false;
	if (e.err)
		ended(&e);
	return e.flags & FI_RECV;
}

/* Messages that came while a send waited: each is answered as any other. */
static unsigned int came;

/* Sends the next message, once there is space for it. */
static void say(struct node *n, fi_addr_t peer, const void *buf)
{
	ssize_t ret;

	while ((ret = fi_send(n->ep, buf, LEN, NULL, peer, NULL)) == -FI_EAGAIN)
		came += next_message(n);
	/* With its last receive complete the peer may be gone already: then nobody is there to connect to. */
	if (ret == -FI_ECONNREFUSED)
		reported("send", FI_ECONNREFUSED);
	must(ret, "fi_send");
}

static void talk_on(void *arg)
{
	static char in[LEN], out[LEN];
	struct side *s = arg;
	struct node n;
	struct name mine, theirs;
	fi_addr_t peer;

	setenv("FI_TCP_IFACE", s->iface, 1);
	node_open(&n, NULL);
	mine = node_name(&n);
	tell(s->end, &mine, sizeof(mine));
	hear(s->end, &theirs, sizeof(theirs));
	peer = node_insert(&n, &theirs);
	must(fi_recv(n.ep, in, LEN, NULL, peer, NULL), "fi_recv");
	say(&n, peer, out);
	for (unsigned int count = 0;;) {
		if (came)
			came--;
		else if (!next_message(&n))
			continue;
		if (++count == ENOUGH) {
			puts("going");
			fflush(stdout);
		}
		must(fi_recv(n.ep, in, LEN, NULL, peer, NULL), "fi_recv");
		say(&n, peer, out);
	}
}

int main(int argc, char **argv)
{
	struct side sides[2];
	int ends[2], status, bad = 0;

	if (argc != 3)
		fail("two names of interfaces, please");
	wire(ends);
	for (int i = 0; i < 2; i++) {
		sides[i] = (struct side){argv[1 + i], ends[i]};
		start(i ? "side 1" : "side 0", talk_on, &sides[i]);
	}
	while (wait(&status) > 0)
		bad += !WIFSIGNALED(status) && WEXITSTATUS(status);
	return bad;
}
