/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that endpoints recover from broken connections. Two endpoints exchange messages of all
 * kinds while one or both break their connections again and again. Every operation ends once, a
 * message arrives at most once and intact, and all arrive in rounds without a break. No descriptor
 * or memory leaks.
 */
#include <malloc.h>

#include "hello.h"

#define ROUNDS  160
#define WARM    40   /* round after which neither descriptors nor the heap grow */
#define WAIT_MS 3000 /* all operations of a round end within this time */
#define DEEP    12   /* messages of a round, each way */
#define LONG    600000
#define KEEP_KB 256 /* the heap may grow by this much */

/* Context of an operation. */
struct op {
	bool busy;
	int err;
	size_t len;
	uint64_t tag; /* of a receive */
};

struct side {
	struct node n;
	fi_addr_t peer;
	int end, which;
	unsigned int seed, round;
	struct op sends[DEEP], recvs[DEEP];
	unsigned char out[DEEP][LONG], in[DEEP][LONG];
};

static const size_t lengths[] = {0, 8, 700, 5000, 20000, 262144, 262145, LONG};

/* Returns a tag that names the round, from 1 on, so that a late message matches no receive. */
static uint64_t tag_of(unsigned int round, unsigned int k)
{
	return (uint64_t)(round + 1) << 8 | k;
}

static size_t length_of(unsigned int round, unsigned int k)
{
	return lengths[(round * 5 + k * 3) % 8];
}

static unsigned char byte_of(unsigned int round, unsigned int k, int which)
{
	return (unsigned char)(round * 31 + k * 7 + (unsigned int)which + 1);
}

/*
 * Returns which side breaks connections: bit 0 the first, bit 1 the second. Every fourth round:
 * none.
 */
static unsigned int who_breaks(unsigned int round)
{
	return round % 4;
}

/*
 * Breaks all TCP connections as the network could: the kernel drops them and resets the other side.
 */
static void break_all(void)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	int top = count_fds(getpid()) + 50;

	for (int fd = 3; fd < top; fd++) {
		struct sockaddr_in in;
		socklen_t len = sizeof(in);

		if (!getpeername(fd, (struct sockaddr *)&in, &len) && in.sin_family == AF_INET)
			connect(fd, &nobody, sizeof(nobody));
	}
}

static void check_err(int err, unsigned int round, const char *what)
{
	if (!err)
		return;
	if (!who_breaks(round))
		fail("round %u: a %s ended with %s though nothing broke", round, what,
		     fi_strerror(err));
	if (err != FI_ECONNRESET && err != FI_ECONNABORTED && err != FI_ECONNREFUSED)
		fail("round %u: a %s ended with %s", round, what, fi_strerror(err));
}

/* Posts a failed receive again, for messages sent after the connection broke. */
static void receive_again(struct side *s, struct op *op)
{
	op->busy = true;
	must(fi_trecv(s->n.ep, s->in[op - s->recvs], LONG, NULL, FI_ADDR_UNSPEC, op->tag, 0, op),
	     "fi_trecv");
}

static void poll_side(struct side *s)
{
	struct event e;

	while (node_poll(&s->n, &e)) {
		struct op *op = e.context;

		if (!op || !op->busy)
			fail("an operation that was not under way ended");
		op->busy = false;
		op->err = e.err;
		op->len = e.len;
		if (e.err && op->tag && e.err != FI_ECANCELED) {
			check_err(e.err, s->round, "receive");
			receive_again(s, op);
		}
	}
}

static bool any_busy(const struct op *ops)
{
	for (int k = 0; k < DEEP; k++)
		if (ops[k].busy)
			return true;
	return false;
}

/* Posts the round's receives; every other one is directed to the peer. */
static void post_recvs(struct side *s, unsigned int round)
{
	for (unsigned int k = 0; k < DEEP; k++) {
		struct op *op = &s->recvs[k];

		memset(s->in[k], 0, LONG);
		*op = (struct op){.busy = true, .tag = tag_of(round, k)};
		must(fi_trecv(s->n.ep, s->in[k], LONG, NULL, k % 2 ? s->peer : FI_ADDR_UNSPEC,
			      op->tag, 0, op),
		     "fi_trecv");
	}
}

static void post_send(struct side *s, unsigned int round, unsigned int k)
{
	struct iovec iov = {s->out[k], length_of(round, k)};
	struct fi_msg_tagged m = {.msg_iov = &iov,
				  .iov_count = 1,
				  .addr = s->peer,
				  .tag = tag_of(round, k),
				  .context = &s->sends[k]};
	uint64_t end = now_ms() + WAIT_MS;
	ssize_t ret;

	memset(iov.iov_base, byte_of(round, k, s->which), iov.iov_len);
	s->sends[k] = (struct op){.busy = true};
	while ((ret = fi_tsendmsg(s->n.ep, &m,
				  FI_COMPLETION | (k % 3 ? 0 : FI_DELIVERY_COMPLETE))) ==
		       -FI_EAGAIN &&
	       now_ms() < end)
		poll_side(s);
	must(ret, "fi_tsendmsg");
}

static void check_round(struct side *s, unsigned int round)
{
	for (unsigned int k = 0; k < DEEP; k++) {
		const struct op *op = &s->recvs[k];
		size_t len = length_of(round, k);

		check_err(s->sends[k].err, round, "send");
		if (op->err != FI_ECANCELED)
			check_err(op->err, round, "receive");
		else if (!who_breaks(round))
			fail("round %u: message %u of %zu bytes is lost", round, k, len);
		if (op->err)
			continue;
		if (op->len != len)
			fail("round %u: message %u has %zu bytes, not %zu", round, k, op->len, len);
		for (size_t i = 0; i < len; i++)
			if (s->in[k][i] != byte_of(round, k, !s->which))
				fail("round %u: byte %zu of message %u of %zu", round, i, k, len);
	}
}

/* Makes progress until the other side gets here too. */
static void meet(struct side *s)
{
	uint64_t end = now_ms() + 4 * WAIT_MS;
	char word;

	tell(s->end, "", 1);
	while (recv(s->end, &word, 1, MSG_DONTWAIT) != 1) {
		poll_side(s);
		if (now_ms() > end)
			fail("the other side does not come");
	}
}

static void linger(struct side *s, unsigned int ms)
{
	for (uint64_t end = now_ms() + ms; now_ms() < end;)
		poll_side(s);
}

/*
 * Waits for the round's receives, only briefly if a connection broke: messages lost with the
 * connection never come. Cancels the remaining receives.
 */
static void end_recvs(struct side *s, unsigned int round)
{
	if (who_breaks(round))
		linger(s, 3);
	else
		for (uint64_t end = now_ms() + WAIT_MS; any_busy(s->recvs) && now_ms() < end;)
			poll_side(s);
	for (int k = 0; k < DEEP; k++)
		if (s->recvs[k].busy)
			fi_cancel(&s->n.ep->fid, &s->recvs[k]);
	/* A receive whose message is arriving is not cancelled, but completes. */
	for (uint64_t end = now_ms() + WAIT_MS; any_busy(s->recvs) && now_ms() < end;)
		poll_side(s);
	if (any_busy(s->recvs))
		fail("round %u: a receive has no end", round);
}

static void one_round(struct side *s, unsigned int round)
{
	bool breaks = who_breaks(round) >> s->which & 1;
	unsigned int after = (unsigned int)rand_r(&s->seed) % DEEP;
	uint64_t end;

	s->round = round;
	post_recvs(s, round);
	meet(s);
	for (unsigned int k = 0; k < DEEP; k++) {
		post_send(s, round, k);
		if (breaks && k == after)
			break_all();
	}
	for (end = now_ms() + WAIT_MS; any_busy(s->sends) && now_ms() < end;)
		poll_side(s);
	if (any_busy(s->sends))
		fail("round %u: a send has no end", round);
	meet(s);
	end_recvs(s, round);
	check_round(s, round);
	meet(s);
}

static void live(void *arg)
{
	static struct side s;
	size_t heap = 0;
	int fds = 0;

	s = (struct side){.end = ((int *)arg)[0], .which = ((int *)arg)[1]};
	s.seed = (unsigned int)s.which + 1;
	node_open(&s.n, NULL);
	{
		struct name mine = node_name(&s.n), theirs;

		tell(s.end, &mine, sizeof(mine));
		hear(s.end, &theirs, sizeof(theirs));
		s.peer = node_insert(&s.n, &theirs);
	}
	for (unsigned int round = 0; round < ROUNDS; round++) {
		one_round(&s, round);
		if (round != WARM)
			continue;
		fds = count_fds(getpid());
		heap = mallinfo2().uordblks;
	}
	if (count_fds(getpid()) > fds)
		fail("%d descriptors have become %d", fds, count_fds(getpid()));
	if (mallinfo2().uordblks > heap + KEEP_KB * 1024)
		fail("%zu bytes of heap have become %zu", heap, mallinfo2().uordblks);
	meet(&s);
	node_close(&s.n);
}

int main(void)
{
	int ends[2], args[2][2];
	pid_t pids[2];

	alarm(LIMIT);
	need_network();
	wire(ends);
	for (int i = 0; i < 2; i++) {
		args[i][0] = ends[i];
		args[i][1] = i;
		pids[i] = start(i ? "second" : "first", live, args[i]);
	}
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 2; i++)
		finish(pids[i], i ? "second" : "first");
	return EXIT_SUCCESS;
}
