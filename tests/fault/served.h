/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each allocation that an endpoint makes for the operations of another process fails, its connection included, one run after the
 * other: alone, or with some that follow. An operation that its initiator was told is done is done, or the endpoint's queue tells;
 * each ends, and nothing is left in memory when all is closed.
 */
#ifndef FAULT_SERVED_H
#define FAULT_SERVED_H

#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "key_file.h"
#include "node.h"
#include "short_memory.h"

#define WAIT_MS 6000
#define CALLS   3000
#define ROW     20u
#define EACH    64u
#define LONG    (1200000u)
#define BURST                                                                                      \
	12u /* operations at the end that are begun together, while their initiator reads nothing */

enum kind {
	MESSAGE, /* a receive waits for it */
	EARLY,   /* none does */
	WRITE,
	TELL, /* a write with remote CQ data */
	READ,
	SCATTERED, /* a read of two ranges */
	FETCH_ADD,
};

static const struct op {
	enum kind kind;
	size_t len;
} ops[] = {
	{MESSAGE, 8},  {EARLY, 8},   {MESSAGE, 200000}, {EARLY, 200000}, {MESSAGE, LONG},
	{EARLY, LONG}, {WRITE, 8},   {WRITE, 3000},     {WRITE, LONG},   {TELL, 100},
	{TELL, 100},   {TELL, 100},  {TELL, 100},       {TELL, 100},     {READ, 8},
	{READ, 3000},  {READ, LONG}, {SCATTERED, 2000}, {FETCH_ADD, 8},  {SCATTERED, LONG},
};
#define OPS   (sizeof(ops) / sizeof(ops[0]))
#define LAST  (OPS + BURST) /* the message that ends a run */
#define SLOTS (LAST + 1)
#define KEY   "0123456789abcdef0123456789abcdef"

static struct op op_of(size_t i)
{
	if (i < OPS)
		return ops[i];
	if (i == LAST)
		return (struct op){EARLY, 8};
	return (struct op){i % 4 == 3 ? EARLY : READ, i % 4 == 2 ? LONG : 500000};
}

/* What a run tells. */
struct outcome {
	unsigned int count;  /* of allocations */
	unsigned int blocks; /* that the library has in the end */
};

enum state { NONE, UNDER_WAY, DONE, FAILED };

static int ends[2], results[2];
static struct outcome well; /* of a run in which nothing fails */
static unsigned char area[SLOTS]
			 [LONG]; /* the target's memory, or what the initiator sends and gets */

static unsigned char byte_of(size_t slot, size_t i)
{
	return (unsigned char)(slot * 29 + i * 13 + (i >> 8) + 1);
}

static void fill(size_t slot)
{
	for (size_t i = 0; i < op_of(slot).len; i++)
		area[slot][i] = byte_of(slot, i);
}

static bool is_full(size_t slot)
{
	for (size_t i = 0; i < op_of(slot).len; i++)
		if (area[slot][i] != byte_of(slot, i))
			return false;
	return true;
}

/* Does the operation bring bytes of the target? */
static bool brings(size_t slot)
{
	return op_of(slot).kind >= READ;
}

static bool is_message(size_t slot)
{
	return op_of(slot).kind <= EARLY;
}

/* ---- The initiator ---- */

static enum state states[SLOTS];
static unsigned int under_way;

static ssize_t post(struct node *n, fi_addr_t to, uint64_t key, size_t i)
{
	static uint64_t one = 1;
	const struct op op = op_of(i);
	const uint64_t at = i * LONG, half = op.len / 2;
	struct iovec iov = {area[i], op.len};
	struct fi_rma_iov from[2] = {{at, half, key}, {at + half, half, key}};
	struct fi_msg_rma both = {.msg_iov = &iov,
				  .iov_count = 1,
				  .addr = to,
				  .rma_iov = from,
				  .rma_iov_count = 2,
				  .context = area[i]};

	switch (op.kind) {
	case MESSAGE:
	case EARLY:
		return fi_tsend(n->ep, area[i], op.len, NULL, to, i, area[i]);
	case WRITE:
		return fi_write(n->ep, area[i], op.len, NULL, to, at, key, area[i]);
	case TELL:
		return fi_writedata(n->ep, area[i], op.len, NULL, i, to, at, key, area[i]);
	case READ:
		return fi_read(n->ep, area[i], op.len, NULL, to, at, key, area[i]);
	case SCATTERED:
		return fi_readmsg(n->ep, &both, FI_COMPLETION);
	case FETCH_ADD:
		return fi_fetch_atomic(n->ep, &one, 1, NULL, area[i], NULL, to, at, key, FI_UINT64,
				       FI_SUM, area[i]);
	}
	return -FI_EINVAL;
}

/* Looks for the end of an operation. */
static void look(struct node *n)
{
	struct event e;
	size_t i;

	if (!node_poll(n, &e))
		return;
	i = (size_t)((unsigned char *)e.context - area[0]) / LONG;
	if (states[i] != UNDER_WAY)
		fail("operation %zu ends twice", i);
	states[i] = e.err ? FAILED : DONE;
	under_way--;
}

static void begin(struct node *n, fi_addr_t to, uint64_t key, size_t i)
{
	uint64_t end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = post(n, to, key, i)) == -FI_EAGAIN) {
		if (now_ms() > end)
			fail("operation %zu finds no place", i);
		look(n);
	}
	states[i] = ret ? FAILED : UNDER_WAY;
	under_way += !ret;
}

static void fail_hanging(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (states[i] == UNDER_WAY)
			fprintf(stderr, "operation %zu does not end\n", i);
	fail("%u operations hang", under_way);
}

/* Waits until no more than `left` operations are under way. */
static void await(struct node *n, unsigned int left)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (under_way > left) {
		look(n);
		if (now_ms() > end)
			fail_hanging();
	}
}

static void initiator(void *arg)
{
	unsigned int early = 0;
	struct node n;
	fi_addr_t to;

	close(ends[1]);
	if (arg)
		use_key(arg, KEY, sizeof(KEY));
	node_open(&n, NULL);
	to = node_meet(&n, ends[0]);
	for (size_t i = 0; i < SLOTS; i++)
		if (!brings(i))
			fill(i);
	for (size_t i = 0; i < OPS; i++) {
		early += op_of(i).kind == EARLY; /* may wait for its receive */
		begin(&n, to, 1, i);
		await(&n, early);
	}
	for (size_t i = OPS; i < LAST; i++)
		begin(&n, to, 1, i);
	tell(ends[0], "", 1);
	hear(ends[0], &(char){0}, 1);
	await(&n, 0);
	for (size_t i = 0; i < SLOTS; i++)
		if (states[i] == DONE && brings(i) && !is_full(i))
			fail("read %zu brought other bytes", i);
	tell(ends[0], states, sizeof(states));
	hear(ends[0], &(char){0}, 1);
	for (;;) { /* the first ones may go by the connection that is to end */
		states[0] = NONE;
		begin(&n, to, 1, LAST);
		await(&n, 0);
		usleep(1000); /* a target that closes reads all that comes */
	}
}

/* ---- The target ---- */

/* What the target's queue has told. */
static bool got[SLOTS], lost, over;

static void receive(struct node *n, size_t i)
{
	MUST(n->cq, fi_trecv(n->ep, area[i], LONG, NULL, FI_ADDR_UNSPEC, i, 0, area[i]));
}

static void read_queue(struct node *n)
{
	struct event e = node_wait(n, WAIT_MS, "the last message");

	if (e.err && e.err != FI_ENOMEM && e.err != FI_EOVERRUN)
		fail("a receive ends with %s", fi_strerror(e.err));
	lost |= e.err != 0;
	over = e.err == FI_EOVERRUN;
	if (!e.err)
		got[e.flags & FI_REMOTE_CQ_DATA ? e.data : e.tag] = true;
}

/* Makes progress until the initiator says something. */
static void serve(struct node *n, void *word, size_t len)
{
	ssize_t ret;

	while ((ret = recv(ends[1], word, len, MSG_DONTWAIT)) != (ssize_t)len) {
		if (!ret)
			fail("%s", memory_how());
		fi_cq_read(n->cq, NULL, 0);
	}
	for (int i = 0; i < CALLS; i++) /* what the kernel has by then is read */
		fi_cq_read(n->cq, NULL, 0);
}

static void judge(void)
{
	for (size_t i = 0; i < SLOTS; i++) {
		bool tells = is_message(i) || op_of(i).kind == TELL;

		if (states[i] != DONE)
			continue;
		if (tells && !got[i] && !lost)
			fail("operation %zu is done, and nothing tells that it is lost: %s", i,
			     memory_how());
		if (!brings(i) && (!tells || got[i]) && !is_full(i))
			fail("operation %zu is done, but not its bytes: %s", i, memory_how());
	}
}

static void live(struct node *n)
{
	struct fid_mr *mr;

	must(fi_mr_reg(n->domain, area, sizeof(area), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
		       &mr, NULL),
	     "fi_mr_reg");
	node_meet(n, ends[1]);
	for (size_t i = 0; i < SLOTS; i++) {
		if (brings(i))
			fill(i);
		if (op_of(i).kind == MESSAGE)
			receive(n, i);
	}
	memory.armed = true;
	serve(n, &(char){0}, 1);
	for (size_t i = 0; i < SLOTS; i++)
		if (op_of(i).kind == EARLY)
			receive(n, i);
	tell(ends[1], "", 1);
	serve(n, states, sizeof(states));
	memory.armed = false;
	tell(ends[1], "", 1);
	while (!got[LAST] && !over)
		read_queue(n);
	judge();
	must(fi_close(&mr->fid), "fi_close");
}

/* Two endpoints talk: what the library allocates once for the process is there then. */
static void warm_up(void)
{
	struct node n[2];
	struct name name;
	struct event e;
	fi_addr_t to;

	for (int i = 0; i < 2; i++)
		node_open(&n[i], NULL);
	name = node_name(&n[1]);
	to = node_insert(&n[0], &name);
	while (fi_tinject(n[0].ep, "", 1, to, 0))
		node_poll(&n[1], &e);
	for (int i = 0; i < 2; i++)
		node_close(&n[i]);
}

static void target(void *arg)
{
	struct outcome o;
	struct node n;
	uint64_t end;

	close(ends[0]);
	if (arg)
		use_key(arg, KEY, sizeof(KEY));
	memory_watch();
	warm_up();
	node_open(&n, NULL);
	live(&n);
	node_close(&n);
	end = now_ms() + WAIT_MS;
	while (well.count && blocks.count > well.blocks) { /* a thread may be about to end */
		if (now_ms() > end)
			fail("%u blocks are left, %u without a failure: %s", blocks.count,
			     well.blocks, memory_how());
		usleep(100);
	}
	o = (struct outcome){memory.count, blocks.count};
	tell(results[1], &o, sizeof(o));
}

/* ---- Runs ---- */

/* Lets the target run, in which `row` allocations from number `fails` on fail. */
static inline struct outcome served_target(const char *auth, unsigned int fails, unsigned int row)
{
	struct outcome o;
	pid_t pid;

	memory.fails = fails;
	memory.row = row;
	wire(results);
	pid = start("target", target, (void *)auth);
	if (ends[0] >= 0)
		close(ends[1]);
	finish(pid, "the target");
	hear(results[0], &o, sizeof(o));
	for (int i = 0; i < 2; i++)
		close(results[i]);
	return o;
}

/* Both are processes of one host. */
static inline struct outcome served_here(const char *auth, unsigned int fails, unsigned int row)
{
	struct outcome o;
	pid_t pid;

	wire(ends);
	pid = start("initiator", initiator, (void *)auth);
	o = served_target(auth, fails, row);
	slay(pid);
	close(ends[0]);
	return o;
}

/*
 * Lets each allocation fail, alone or with `row` that follow; of many a choice: libraries that encrypt allocate for each packet.
 * `auth`: FI_WEFT_AUTH; NULL: no key.
 */
static inline void served_walk(struct outcome (*run)(const char *auth, unsigned int fails,
						     unsigned int row),
			       const char *auth, unsigned int row)
{
	const unsigned int rows[] = {1, row};

	well = run(auth, 0, 0);
	if (!well.count)
		fail("the target allocates nothing");
	for (int i = 0; i < 2; i++) {
		unsigned int fails = 1;

		while (run(auth, fails, rows[i]).count >= fails)
			fails += 1 + (fails > EACH ? fails / 8 : 0);
	}
	printf("%u allocations\n", well.count);
}

#endif
