/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * Proves that accepted operations are delivered: an injected operation whose call returned 0, and a
 * send whose completion was read, arrive although the sender closes its endpoint at once, exits, or
 * is killed. One or three senders run at a time; their first operation connects them. The receiver
 * waits, is slow, is stopped, or opens late. Of a stream over TCP a process that is killed may lose
 * what it sent in the last 50 us, so it lives a little longer.
 *   accepted [ROUNDS [WAY [OP]]]    ROUNDS rounds of each operation with each kind of end
 */
#ifndef LIMIT
#define LIMIT 110
#endif
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

#include "node.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#define ROUNDS   12
#define MOST     3 /* senders at a time */
#define LEN_MAX  65536
#define KEY      7
#define WAIT_MS  10000
#define SLOW_MS  5
#define STOP_MS  30
#define BURST    200   /* messages to a stopped receiver */
#define LEAVES   20000 /* us, many times what a packet of a stream may wait for others */
#define HOLD_OFF 20000 /* us between two attempts to reach a closed receiver */

enum op { INJECT, INJECTDATA, TINJECT, SEND, INJECT_WRITE, INJECT_ATOMIC, OPS };
enum way { CLOSE, EXIT, UNDERSCORE_EXIT, KILL, WAYS };

static const char *const op_names[OPS] = {"fi_inject", "fi_injectdata",   "fi_tinject",
					  "fi_send",   "fi_inject_write", "fi_inject_atomic"};
static const char *const way_names[WAYS] = {"fi_close", "exit", "_exit", "kill -9"};

/* Description of a round, for the receiver and the senders. */
struct round {
	enum op op;
	enum way way;
	unsigned int number, senders;
	size_t len;
	bool waits; /* receives are posted before the senders start, else after they ended */
};

static struct node n;
static struct fid_mr *mr;
static struct name target;
static struct {
	uint64_t addr, key;
} region; /* remote address and key of the receiver's memory */
static unsigned char buf[MOST][LEN_MAX];
static uint64_t memory[MOST]; /* the receiver's: a uint64 for each sender */

static unsigned char byte_of(unsigned int round, unsigned int sender, size_t i)
{
	return (unsigned char)(round * 29 + sender * 71 + i * 3 + i / 251);
}

static uint64_t word_of(unsigned int round, unsigned int sender)
{
	return (uint64_t)round << 8 | sender | UINT64_C(1) << 40;
}

/* ---- Senders ---- */

static ssize_t attempt(const struct round *r, unsigned int sender, fi_addr_t to)
{
	uint64_t word = word_of(r->number, sender), at = region.addr + sender * sizeof(word);

	switch (r->op) {
	case INJECT:
		return fi_inject(n.ep, buf[0], r->len, to);
	case INJECTDATA:
		return fi_injectdata(n.ep, buf[0], r->len, word, to);
	case TINJECT:
		return fi_tinject(n.ep, buf[0], r->len, to, word);
	case SEND:
		return fi_send(n.ep, buf[0], r->len, NULL, to, NULL);
	case INJECT_WRITE:
		return fi_inject_write(n.ep, &word, sizeof(word), to, at, region.key);
	default:
		return fi_inject_atomic(n.ep, &word, 1, to, at, region.key, FI_UINT64, FI_SUM);
	}
}

/* Posts the operation until the call returns 0, and waits for a send's completion. */
static void be_accepted(const struct round *r, unsigned int sender, fi_addr_t to)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct event e;
	ssize_t ret;

	while ((ret = attempt(r, sender, to)) == -FI_EAGAIN || ret == -FI_ECONNREFUSED) {
		if (ret == -FI_ECONNREFUSED)
			usleep(HOLD_OFF);
		if (now_ms() > end)
			fail("%s finds no room", op_names[r->op]);
		if (node_poll(&n, &e) && e.err && e.err != FI_ECONNREFUSED)
			fail("%s: %s", op_names[r->op], fi_strerror(e.err));
	}
	must(ret, op_names[r->op]);
	if (r->op != SEND)
		return;
	e = node_wait(&n, WAIT_MS, "a send");
	if (e.err)
		fail("a send ended with %s", fi_strerror(e.err));
}

static __attribute__((noreturn)) void end_by(enum way way)
{
	switch (way) {
	case CLOSE:
		must(fi_close(&n.ep->fid), "fi_close");
		pause(); /* until the parent kills this process */
		_exit(EXIT_FAILURE);
	case EXIT:
		exit(EXIT_SUCCESS);
	case UNDERSCORE_EXIT:
		_exit(EXIT_SUCCESS);
	default:
		kill(getpid(), SIGKILL);
		_exit(EXIT_FAILURE);
	}
}

struct life {
	struct round round;
	unsigned int sender;
	int end;
};

static void live_sender(void *arg)
{
	const struct life *life = arg;
	const struct round *r = &life->round;
	fi_addr_t to;

	node_open(&n, NULL);
	for (size_t i = 0; i < r->len; i++)
		buf[0][i] = byte_of(r->number, life->sender, i);
	if (r->len) /* the first byte names the sender */
		buf[0][0] = (unsigned char)life->sender;
	to = node_insert(&n, &target);
	be_accepted(r, life->sender, to);
	if (r->way == CLOSE)
		tell(life->end, "", 1);
	end_by(r->way);
}

/* ---- The receiver ---- */

static void post(unsigned int i, const struct round *r)
{
	if (r->op == TINJECT)
		must(fi_trecv(n.ep, buf[i], LEN_MAX, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, buf[i]),
		     "fi_trecv");
	else
		must(fi_recv(n.ep, buf[i], LEN_MAX, NULL, FI_ADDR_UNSPEC, buf[i]), "fi_recv");
}

static void check(const struct round *r, const struct event *e, unsigned int *seen)
{
	const unsigned char *in = e->context;
	unsigned int sender = in[0];

	if (e->err)
		fail("%s, then %s: a receive ended with %s", op_names[r->op], way_names[r->way],
		     fi_strerror(e->err));
	if (e->len != r->len || sender >= r->senders || *seen & 1u << sender)
		fail("%s of %zu bytes, then %s: %zu bytes of sender %u came", op_names[r->op],
		     r->len, way_names[r->way], e->len, sender);
	for (size_t i = 1; i < r->len; i++)
		if (in[i] != byte_of(r->number, sender, i))
			fail("%s of %zu bytes: byte %zu differs", op_names[r->op], r->len, i);
	if ((r->op == INJECTDATA && e->data != word_of(r->number, sender)) ||
	    (r->op == TINJECT && e->tag != word_of(r->number, sender)))
		fail("%s: data or tag of another", op_names[r->op]);
	*seen |= 1u << sender;
}

static bool one_sided(const struct round *r)
{
	return r->op >= INJECT_WRITE;
}

static bool written(const struct round *r)
{
	for (unsigned int i = 0; i < r->senders; i++)
		if (*(volatile uint64_t *)&memory[i] != word_of(r->number, i))
			return false;
	return true;
}

static void take(const struct round *r)
{
	uint64_t end = now_ms() + WAIT_MS;
	unsigned int seen = 0;
	struct event e;

	while (one_sided(r) ? !written(r) : seen != (1u << r->senders) - 1) {
		if (node_poll(&n, &e))
			check(r, &e, &seen);
		if (now_ms() > end)
			fail("%s of %zu bytes, then %s, round %u: of %u senders only %#x arrived",
			     op_names[r->op], r->len, way_names[r->way], r->number, r->senders,
			     seen);
	}
}

/* Makes progress until the senders have ended: connecting needs it. No receive is posted. */
static void await_end(int end)
{
	struct event e;
	char byte;

	while (recv(end, &byte, 1, MSG_DONTWAIT) != 1)
		if (node_poll(&n, &e))
			fail("a completion of nothing");
}

static void post_all(const struct round *r)
{
	for (unsigned int i = 0; i < r->senders && !one_sided(r); i++)
		post(i, r);
}

static void serve(int end, const struct round *r)
{
	bool waits = r->waits || one_sided(r);
	char byte;

	memset(memory, 0, sizeof(memory));
	if (waits)
		post_all(r);
	tell(end, "", 1);
	if (!waits) {
		await_end(end);
		usleep(SLOW_MS * 1000);
		post_all(r);
	}
	take(r);
	if (waits)
		hear(end, &byte, 1);
	tell(end, "", 1);
}

static void register_memory(void)
{
	must(fi_mr_reg(n.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
		       0, &mr, NULL),
	     "fi_mr_reg");
	region.addr = n.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
	region.key = fi_mr_key(mr);
}

static void live_receiver(void *arg)
{
	int end = *(int *)arg;
	struct round r;

	node_open(&n, NULL);
	register_memory();
	target = node_name(&n);
	tell(end, &target, sizeof(target));
	tell(end, &region, sizeof(region));
	for (hear(end, &r, sizeof(r)); r.op < OPS; hear(end, &r, sizeof(r)))
		serve(end, &r);
	must(fi_close(&mr->fid), "fi_close");
	node_close(&n);
}

/* ---- Rounds ---- */

static size_t length_of(enum op op, unsigned int number)
{
	static const size_t lengths[] = {1,    8,    64,    100,   1000,   2048,
					 4096, 8192, 16384, 40000, LEN_MAX};
	size_t len = lengths[number % (sizeof(lengths) / sizeof(lengths[0]))];

	return op != SEND && len > 4096 ? len % 4096 + 1 : len;
}

static void end_sender(pid_t pid, enum way way)
{
	int status;

	if (way == CLOSE) {
		slay(pid);
		return;
	}
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (way == KILL ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL
			: !WIFEXITED(status) || WEXITSTATUS(status))
		fail("a sender ended with status %#x", (unsigned int)status);
}

static void one_round(int end, const struct round *r)
{
	int wires[MOST][2];
	pid_t pids[MOST];
	char byte;

	tell(end, r, sizeof(*r));
	hear(end, &byte, 1);
	for (unsigned int i = 0; i < r->senders; i++) {
		wire(wires[i]);
		pids[i] = start("sender", live_sender, &(struct life){*r, i, wires[i][1]});
		close(wires[i][1]);
	}
	for (unsigned int i = 0; i < r->senders; i++)
		if (r->way == CLOSE)
			hear(wires[i][0], &byte, 1);
		else
			end_sender(pids[i], r->way);
	tell(end, "", 1);
	hear(end, &byte, 1);
	for (unsigned int i = 0; i < r->senders; i++) {
		if (r->way == CLOSE)
			end_sender(pids[i], r->way);
		close(wires[i][0]);
	}
}

static void all_rounds(unsigned int rounds, int only_way, int only_op)
{
	int ends[2];
	pid_t pid;

	wire(ends);
	pid = start("receiver", live_receiver, &ends[1]);
	close(ends[1]);
	hear(ends[0], &target, sizeof(target));
	hear(ends[0], &region, sizeof(region));
	for (enum way way = 0; way < WAYS; way++)
		for (enum op op = 0; op < OPS; op++)
			for (unsigned int i = 0; i < rounds; i++) {
				struct round r = {.op = op,
						  .way = way,
						  .number = i,
						  .senders = i % 4 == 3 ? MOST : 1,
						  .len = length_of(op, i),
						  .waits = i % 2};

				/* A long send completes only when it is received. */
				r.waits |= r.len > 4096;

				if ((only_way < 0 || (int)way == only_way) &&
				    (only_op < 0 || (int)op == only_op))
					one_round(ends[0], &r);
			}
	tell(ends[0], &(struct round){.op = OPS},
	     sizeof(struct round)); /* tells the receiver to end */
	finish(pid, "receiver");
	close(ends[0]);
}

/* ---- A receiver that is stopped (SIGSTOP) while messages are sent to it ---- */

/* Checks that the first message and the `count` messages of the burst arrive in order. */
static void live_stopped(void *arg)
{
	int end = *(int *)arg;
	unsigned int count;
	struct event e;

	node_open(&n, NULL);
	target = node_name(&n);
	tell(end, &target, sizeof(target));
	must(fi_recv(n.ep, buf[0], LEN_MAX, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	node_wait(&n, WAIT_MS, "the first message");
	tell(end, "", 1);
	hear(end, &count, sizeof(count));
	for (unsigned int i = 0; i < count; i++) {
		must(fi_recv(n.ep, buf[0], LEN_MAX, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		e = node_wait(&n, WAIT_MS, "what was sent while it was stopped");
		if (e.err || e.data != i)
			fail("message %u of %u: it is %u: %s", i, count, (unsigned int)e.data,
			     fi_strerror(e.err));
	}
	node_close(&n);
}

static void live_burst(void *arg)
{
	const struct life *life = arg;
	const struct round first = {.op = SEND, .len = 1};
	unsigned int count = 0;
	fi_addr_t to;
	char byte;

	node_open(&n, NULL);
	to = node_insert(&n, &target);
	be_accepted(&first, 0, to);
	hear(life->end, &byte, 1);
	while (count < BURST && !fi_injectdata(n.ep, buf[0], 1000, count, to))
		count++;
	if (life->round.way == KILL || life->round.way == UNDERSCORE_EXIT)
		usleep(LEAVES);
	tell(life->end, &count, sizeof(count));
	end_by(life->round.way);
}

static void stopped(enum way way)
{
	struct life life = {.round = {.way = way}};
	unsigned int count;
	pid_t receiver, sender;
	int ends[2], wires[2];
	char byte;

	wire(ends);
	wire(wires);
	receiver = start("stopped receiver", live_stopped, &ends[1]);
	hear(ends[0], &target, sizeof(target));
	life.end = wires[1];
	sender = start("sender", live_burst, &life);
	hear(ends[0], &byte, 1);
	kill(receiver, SIGSTOP);
	tell(wires[0], "", 1);
	hear(wires[0], &count, sizeof(count));
	if (way == CLOSE)
		usleep(STOP_MS * 1000);
	end_sender(sender, way);
	usleep(STOP_MS * 1000);
	kill(receiver, SIGCONT);
	if (!count)
		fail("nothing was accepted for a receiver that is stopped");
	tell(ends[0], &count, sizeof(count));
	finish(receiver, "stopped receiver");
	for (unsigned int i = 0; i < 2; i++) {
		close(ends[i]);
		close(wires[i]);
	}
}

/* ---- A receiver that opens after its sender has begun to try ---- */

static void live_name(void *arg)
{
	node_open(&n, NULL);
	target = node_name(&n);
	tell(*(int *)arg, &target, sizeof(target));
	node_close(&n);
}

static void live_late(void *arg)
{
	const struct round r = {.op = INJECT, .len = 100, .senders = 1, .number = 1};

	(void)arg;
	usleep(4 * HOLD_OFF);
	node_open(&n, &target);
	post(0, &r);
	take(&r);
	node_close(&n);
}

static void late(enum way way)
{
	struct life life = {.round = {.op = INJECT, .way = way, .len = 100, .number = 1}};
	pid_t receiver, sender;
	int ends[2];

	wire(ends);
	life.end = ends[1];
	receiver = start("name", live_name, &ends[1]);
	hear(ends[0], &target, sizeof(target));
	finish(receiver, "name");
	sender = start("sender", live_sender, &life);
	receiver = start("late receiver", live_late, NULL);
	finish(receiver, "late receiver");
	end_sender(sender, way);
	close(ends[0]);
	close(ends[1]);
}

/* ---- Sender and receiver in one domain: closing cannot wait for the receiver's progress ---- */

static void live_one_domain(void *arg)
{
	const struct round r = {.op = INJECT, .len = 100, .senders = 1, .number = 1};
	struct node second;
	fi_addr_t to;

	(void)arg;
	node_open(&n, NULL);
	second = n;
	must(fi_endpoint(n.domain, n.info, &second.ep, NULL), "fi_endpoint");
	node_bind(&second);
	target = node_name(&second);
	to = node_insert(&n, &target);
	for (size_t i = 1; i < r.len; i++)
		buf[1][i] = byte_of(r.number, 0, i);
	memcpy(buf[0], buf[1], r.len);
	be_accepted(&r, 0, to);
	must(fi_close(&n.ep->fid), "fi_close");
	memset(buf[0], 0, r.len);
	n = second;
	post(0, &r);
	take(&r);
	node_close(&n);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : ROUNDS;
	int way = argc > 2 ? atoi(argv[2]) : -1, op = argc > 3 ? atoi(argv[3]) : -1;

	alarm(LIMIT);
	need_provider();
	finish(start("one domain", live_one_domain, NULL), "one domain");
	for (enum way w = 0; w < WAYS; w++) {
		stopped(w);
		late(w);
	}
	all_rounds(rounds, way, op);
	return EXIT_SUCCESS;
}
