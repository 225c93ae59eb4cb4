/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations between two processes:
 *
 *	rdm_rma CASE IFACE IFACE
 *
 * The first process has the memory, registered under a key chosen by the library; the second one
 * accesses it.
 */
#include <rdma/fi_rma.h>

#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC | FI_RMA_EVENT)
#define NODE_MR   (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#include "rdm_pair.h"

#define SIZE ((size_t)4 << 20)
#define ALL  (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

struct place {
	uint64_t addr, key;
};

static struct fid_mr *reg(struct side *s, void *buf, size_t len, uint64_t access)
{
	struct fid_mr *mr;

	must(fi_mr_reg(s->n.domain, buf, len, access, 0, 0, 0, &mr, NULL), "fi_mr_reg");
	return mr;
}

static struct place place_of(struct fid_mr *mr, void *buf)
{
	return (struct place){(uintptr_t)buf, fi_mr_key(mr)};
}

/* Sends a message each way, which connects the two. */
static void greet(struct side *s)
{
	char in, out = 0;

	must(fi_recv(s->n.ep, &in, 1, NULL, s->peer, &in), "fi_recv");
	side_meet(s);
	MUST(s->n.cq, fi_send(s->n.ep, &out, 1, NULL, s->peer, &out));
	for (int i = 0; i < 2; i++) {
		struct event e = node_wait(&s->n, PATIENCE_MS, "a greeting");

		if (e.err)
			fail("greeting: %s", fi_strerror(e.err));
	}
	side_meet(s);
}

static void expect(struct side *s, int err, const char *what)
{
	struct event e = node_wait(&s->n, PATIENCE_MS, what);

	if (e.err != err)
		fail("%s: ended by %s", what, fi_strerror(e.err));
}

/* Target: opens a region and gives away its key, makes no progress until told to, then checks. */
static void *announce(struct side *s, struct fid_mr **mr, uint64_t access)
{
	unsigned char *mem = side_memory(SIZE);
	struct place place;

	memset(mem, 0, SIZE);
	*mr = reg(s, mem, SIZE, access);
	place = place_of(*mr, mem);
	tell(s->end, &place, sizeof(place));
	return mem;
}

static struct place take(struct side *s)
{
	struct place place;

	hear(s->end, &place, sizeof(place));
	return place;
}

/* ---- The device does it all: the target makes no progress. ---- */

static void alone_target(struct side *s)
{
	struct fid_mr *mr;
	unsigned char *mem = announce(s, &mr, FI_REMOTE_READ | FI_REMOTE_WRITE);

	greet(s);
	side_meet(s); /* no library call until this barrier */
	side_check(mem, 1, SIZE);
	must(fi_close(&mr->fid), "fi_close");
	free(mem);
	node_close(&s->n);
}

/* Transfers in pieces of `size` bytes; the buffer is registered or not. */
static void pieces(struct side *s, struct place to, unsigned char *buf, size_t size, bool write)
{
	size_t posted = 0, done = 0;
	struct event e;

	while (done < SIZE / size) {
		ssize_t ret = -FI_EAGAIN;
		uint64_t at = to.addr + posted * size;

		if (posted < SIZE / size && write)
			ret = fi_write(s->n.ep, buf + posted * size, size, NULL, s->peer, at,
				       to.key, NULL);
		else if (posted < SIZE / size)
			ret = fi_read(s->n.ep, buf + posted * size, size, NULL, s->peer, at, to.key,
				      NULL);
		if (ret != -FI_EAGAIN)
			must(ret, "fi_write or fi_read");
		posted += !ret;
		if (!node_poll(&s->n, &e))
			continue;
		if (e.err)
			fail("%zu bytes: %s", size, fi_strerror(e.err));
		done++;
	}
}

static void alone(struct side *s)
{
	static const size_t sizes[] = {SIZE, 65536, 9216, 32768, 8192};
	unsigned char *buf = side_memory(SIZE), *back = side_memory(SIZE);
	struct place to = take(s);
	struct fid_mr *mr = reg(s, back, SIZE, ALL);

	greet(s);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		side_fill(buf, i + 2, SIZE);
		pieces(s, to, buf, sizes[i], true);
		memset(back, 0, SIZE);
		pieces(s, to, back, sizes[i], false);
		side_check(back, i + 2, SIZE / sizes[i] * sizes[i]);
	}
	/* Short lengths from each kind of buffer, with an injected copy. */
	for (size_t len = 1; len < 300; len = len * 3 + 1) {
		side_fill(buf, 9, len);
		MUST(s->n.cq, fi_inject_write(s->n.ep, buf, len, s->peer, to.addr, to.key));
		memset(buf, 0, len);
		MUST(s->n.cq, fi_read(s->n.ep, buf, len, NULL, s->peer, to.addr, to.key, buf));
		expect(s, 0, "a read behind an injected write");
		side_check(buf, 9, len);
	}
	side_fill(back, 1, SIZE);
	pieces(s, to, back, SIZE, true);
	side_meet(s);
	must(fi_close(&mr->fid), "fi_close");
	node_close(&s->n);
}

/* ---- Order: what is posted later is done later. ---- */

static void order_target(struct side *s)
{
	struct fid_mr *mr;
	unsigned char *mem = announce(s, &mr, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint32_t in;

	greet(s);
	for (uint32_t i = 0; i < 20; i++) {
		must(fi_recv(s->n.ep, &in, sizeof(in), NULL, s->peer, &in), "fi_recv");
		if (!i)
			side_meet(s);
		expect(s, 0, "a message behind a write");
		if (in != i)
			fail("message %u instead of %u", in, i);
		side_check(mem, i, 65536);
		MUST(s->n.cq, fi_send(s->n.ep, &in, sizeof(in), NULL, s->peer, &in));
		expect(s, 0, "an answer");
	}
	side_meet(s);
	must(fi_close(&mr->fid), "fi_close");
	node_close(&s->n);
}

static void order(struct side *s)
{
	unsigned char *buf = side_memory(65536), *old = side_memory(65536),
		      *now = side_memory(65536);
	struct place to = take(s);
	uint32_t answer;

	greet(s);
	side_meet(s);
	memset(buf, 0, 65536);
	for (uint32_t i = 0; i < 20; i++) {
		size_t len = i % 2 ? 65536 : 4096;

		must(fi_recv(s->n.ep, &answer, sizeof(answer), NULL, s->peer, NULL), "fi_recv");
		MUST(s->n.cq, fi_read(s->n.ep, old, 65536, NULL, s->peer, to.addr, to.key, NULL));
		side_fill(buf, i, 65536);
		for (size_t at = 0; at < 65536; at += len)
			MUST(s->n.cq, fi_write(s->n.ep, buf + at, len, NULL, s->peer, to.addr + at,
					       to.key, NULL));
		MUST(s->n.cq, fi_read(s->n.ep, now, 65536, NULL, s->peer, to.addr, to.key, NULL));
		MUST(s->n.cq, fi_send(s->n.ep, &i, sizeof(i), NULL, s->peer, NULL));
		for (size_t n = 65536 / len + 4; n; n--)
			expect(s, 0, "one of a round");
		side_check(now, i, 65536);
		if (i)
			side_check(old, i - 1, 65536);
	}
	side_meet(s);
	node_close(&s->n);
}

/* ---- Keys that are wrong, regions that go away. ---- */

static void wrong_target(struct side *s)
{
	struct fid_mr *mr, *reads, *gone;
	unsigned char *mem = announce(s, &mr, FI_REMOTE_READ | FI_REMOTE_WRITE),
		      *other = announce(s, &reads, FI_REMOTE_READ),
		      *third = announce(s, &gone, ALL);

	greet(s);
	must(fi_close(&gone->fid), "fi_close");
	memset(third, 0x5a, SIZE);
	side_meet(s);
	side_serve(s);
	side_check(mem, 3, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		if (other[i] || third[i] != 0x5a)
			fail("byte %zu was written to", i);
	must(fi_close(&mr->fid), "fi_close");
	must(fi_close(&reads->fid), "fi_close");
	node_close(&s->n);
}

static void write_to(struct side *s, void *buf, size_t len, uint64_t addr, uint64_t key)
{
	MUST(s->n.cq, fi_write(s->n.ep, buf, len, NULL, s->peer, addr, key, NULL));
}

static void wrong(struct side *s)
{
	unsigned char *buf = side_memory(SIZE);
	struct place to = take(s), reads = take(s), gone = take(s);
	char c = 0;

	greet(s);
	side_meet(s);
	side_fill(buf, 3, SIZE);
	/* Failing operations do not affect the valid ones around them. */
	write_to(s, buf, SIZE / 2, to.addr, to.key);
	write_to(s, buf, 100000, gone.addr, gone.key);
	write_to(s, buf, 100000, reads.addr, reads.key);
	write_to(s, buf, 100000, to.addr + SIZE - 50000, to.key);
	write_to(s, buf, 100000, to.addr, to.key ^ 0x10);
	write_to(s, buf + SIZE / 2, SIZE / 2, to.addr + SIZE / 2, to.key);
	expect(s, 0, "a good write");
	expect(s, FI_EACCES, "a write to a region that was closed");
	expect(s, FI_EACCES, "a write to a region for reading");
	expect(s, FI_EINVAL, "a write beyond a region");
	expect(s, FI_EACCES, "a write by a wrong key");
	expect(s, 0, "a good write behind wrong ones");
	tell(s->end, &c, 1);
	node_close(&s->n);
}

/* ---- A target that counts is notified. ---- */

static void counts_target(struct side *s)
{
	struct fid_mr *mr;
	uint64_t end = now_ms() + PATIENCE_MS;
	struct event e = {0};

	announce(s, &mr, FI_REMOTE_READ | FI_REMOTE_WRITE);
	greet(s);
	side_meet(s);
	while ((fi_cntr_read(s->writes) < 3 || fi_cntr_read(s->reads) < 1 ||
		!(e.flags & FI_REMOTE_CQ_DATA)) &&
	       now_ms() < end)
		node_poll(&s->n, &e);
	if (fi_cntr_read(s->writes) != 3 || fi_cntr_read(s->reads) != 1)
		fail("%lu writes and %lu reads were counted",
		     (unsigned long)fi_cntr_read(s->writes), (unsigned long)fi_cntr_read(s->reads));
	if (!(e.flags & FI_REMOTE_CQ_DATA) || e.data != 77)
		fail("no remote CQ data");
	side_meet(s);
	must(fi_close(&mr->fid), "fi_close");
}

static void counts(struct side *s)
{
	unsigned char *buf = side_memory(65536);
	struct place to = take(s);

	greet(s);
	write_to(s, buf, 65536, to.addr, to.key);
	write_to(s, buf, 8, to.addr, to.key);
	MUST(s->n.cq, fi_writedata(s->n.ep, buf, 65536, NULL, 77, s->peer, to.addr, to.key, NULL));
	MUST(s->n.cq, fi_read(s->n.ep, buf, 65536, NULL, s->peer, to.addr, to.key, NULL));
	for (int i = 0; i < 4; i++)
		expect(s, 0, "an access that is counted");
	side_meet(s);
	side_serve(s);
	tell(s->end, buf, 1);
}

/* ---- A region that is closed while it is written to. ---- */

static void close_target(struct side *s)
{
	struct fid_mr *mr;
	volatile unsigned char *mem = announce(s, &mr, FI_REMOTE_READ | FI_REMOTE_WRITE);

	greet(s);
	side_meet(s);
	while (!mem[0])
		;
	must(fi_close(&mr->fid), "fi_close");
	memset((void *)mem, 0x5a, SIZE);
	side_serve(s);
	for (size_t i = 0; i < SIZE; i++)
		if (mem[i] != 0x5a)
			fail("byte %zu was written to after the region was closed", i);
	node_close(&s->n);
}

static void close_writer(struct side *s)
{
	enum { COUNT = 8 };
	unsigned char *buf = side_memory(SIZE);
	struct place to = take(s);
	unsigned int failed = 0;
	char c = 0;

	greet(s);
	memset(buf, 1, SIZE);
	side_meet(s);
	for (int i = 0; i < COUNT; i++)
		write_to(s, buf, SIZE, to.addr, to.key);
	for (int i = 0; i < COUNT; i++) {
		struct event e = node_wait(&s->n, PATIENCE_MS, "one of many writes");

		if (e.err && e.err != FI_EACCES)
			fail("a write to a region that is closed meanwhile: %s",
			     fi_strerror(e.err));
		failed += e.err != 0;
	}
	if (!failed)
		fail("all writes succeeded");
	tell(s->end, &c, 1);
	node_close(&s->n);
}

/* ---- The target dies. ---- */

static void kill_target(struct side *s)
{
	struct fid_mr *mr;
	volatile unsigned char *mem = announce(s, &mr, FI_REMOTE_READ | FI_REMOTE_WRITE);

	greet(s);
	side_meet(s);
	while (!mem[0])
		;
	raise(SIGKILL);
}

static void kill_writer(struct side *s)
{
	enum { COUNT = 8 };
	unsigned char *buf = side_memory(SIZE);
	struct place to = take(s);
	struct event e = {0};

	greet(s);
	memset(buf, 1, SIZE);
	side_meet(s);
	for (int i = 0; i < COUNT; i++)
		write_to(s, buf, SIZE, to.addr, to.key);
	for (int i = 0; i < COUNT; i++)
		e = node_wait(&s->n, PATIENCE_MS, "one of many writes");
	if (!e.err)
		fail("all writes succeeded");
	printf("%s: a write ended: %s\n", who, fi_strerror(e.err));
	node_close(&s->n);
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): names of functions */
#define CASE(of, zero, one)                                                                        \
	{                                                                                          \
		.name = (of), .run = { zero, one }                                                 \
	}
static const struct side_case cases[] = {
	CASE("alone", alone_target, alone),
	CASE("order", order_target, order),
	CASE("wrong", wrong_target, wrong),
	{.name = "counts", .run = {counts_target, counts}, .counts = true},
	CASE("close", close_target, close_writer),
	CASE("kill", kill_target, kill_writer),
	{.name = NULL},
};

int main(int argc, char **argv)
{
	return side_main(cases, argc, argv);
}
