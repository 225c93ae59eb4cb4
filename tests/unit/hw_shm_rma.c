/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves direct access to a peer's regions by CMA: the bytes that move, the refusals, and the
 * access guards, which tell a region's owner that a peer accesses it. Cancelled packets:
 * hw_shm_cancel.c.
 */
#include "../valgrind.h"
#include "shm_pair.h"

#define BYTES 200000

static unsigned char memory[2][BYTES]; /* the owner's, region 0 and 1 */
static unsigned char mine[BYTES];      /* a child's */

static unsigned char pattern(size_t at, unsigned int seed)
{
	return (unsigned char)(at * 7 + (at >> 8) + seed);
}

static void fill(unsigned char *to, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		to[i] = pattern(i, seed);
}

static bool holds(const unsigned char *at, size_t len, unsigned int seed, size_t from)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != pattern(from + i, seed))
			return false;
	return true;
}

static void expose_both(uint64_t access)
{
	expose(0, memory[0], BYTES, access);
	expose(1, memory[1], BYTES, access);
}

static int putter(int number)
{
	struct shm_link *s = join(number);
	struct fi_rma_iov to[3] = {range(1, 11, 100000), range(0, 5, 3), range(1, 150000, 17)};
	struct iovec from[4] = {{mine, 1}, {mine + 1, 99000}, {NULL, 0}, {mine + 99001, 1019}};

	fill(mine, BYTES, 1);
	EXPECT(shm_reach(&s->link, to, 3, true));
	EXPECT(shm_put(&s->link, from, 4, to, 3) == 0);
	leave(s);
	return 0;
}

START_TEST(put)
{
	fill(memory[0], BYTES, 50);
	fill(memory[1], BYTES, 60);
	expose_both(FI_REMOTE_WRITE);
	ck_assert_int_eq(status_of(child(putter, 0)), 0);
	ck_assert(holds(memory[1], 11, 60, 0));
	ck_assert(holds(memory[1] + 11, 100000, 1, 0));
	ck_assert(holds(memory[1] + 100011, 150000 - 100011, 60, 100011));
	ck_assert(holds(memory[0], 5, 50, 0));
	ck_assert(holds(memory[0] + 5, 3, 1, 100000));
	ck_assert(holds(memory[0] + 8, BYTES - 8, 50, 8));
	ck_assert(holds(memory[1] + 150000, 17, 1, 100003));
	ck_assert(holds(memory[1] + 150017, BYTES - 150017, 60, 150017));
}
END_TEST

static int getter(int number)
{
	struct shm_link *s = join(number);
	struct fi_rma_iov from[2] = {range(0, 100, 70000), range(1, 0, 20)};
	struct iovec to[3] = {{mine + 7, 60000}, {mine + 100000, 10}, {mine + 150000, 10010}};

	fill(mine, BYTES, 1);
	EXPECT(shm_reach(&s->link, from, 2, false));
	EXPECT(shm_get(&s->link, to, 3, from, 2) == 0);
	EXPECT(holds(mine, 7, 1, 0));
	EXPECT(holds(mine + 7, 60000, 50, 100));
	EXPECT(holds(mine + 60007, 1000, 1, 60007));
	EXPECT(holds(mine + 100000, 10, 50, 60100));
	EXPECT(holds(mine + 150000, 9990, 50, 60110));
	EXPECT(holds(mine + 159990, 20, 60, 0));
	EXPECT(holds(mine + 160010, 1000, 1, 160010));
	leave(s);
	return 0;
}

START_TEST(get)
{
	fill(memory[0], BYTES, 50);
	fill(memory[1], BYTES, 60);
	expose_both(FI_REMOTE_READ);
	ck_assert_int_eq(status_of(child(getter, 0)), 0);
	ck_assert(holds(memory[0], BYTES, 50, 0));
}
END_TEST

/* The maximum number of segments and ranges, some of zero bytes. */
static int sliver(int number)
{
	struct shm_link *s = join(number);
	struct fi_rma_iov to[WIRE_IOV_MAX];
	struct iovec from[WIRE_IOV_MAX];

	fill(mine, BYTES, 1);
	for (size_t i = 0; i < WIRE_IOV_MAX; i++) {
		from[i] = (struct iovec){mine + i, 1};
		to[i] = range(0, i * 3, i % 2 ? 2 : 0);
	}
	EXPECT(shm_put(&s->link, from, WIRE_IOV_MAX, to, WIRE_IOV_MAX) == 0);
	EXPECT(shm_get(&s->link, from, WIRE_IOV_MAX, to, WIRE_IOV_MAX) == 0);
	to[0] = range(0, BYTES, 0);
	EXPECT(shm_put(&s->link, NULL, 0, to, 1) == 0);
	EXPECT(shm_get(&s->link, NULL, 0, to, 1) == 0);
	EXPECT(shm_put(&s->link, from, 0, to, 0) == 0);
	to[0] = range(0, BYTES + 1, 0);
	EXPECT(shm_put(&s->link, NULL, 0, to, 1) == -FI_EINVAL);
	EXPECT(shm_put(&s->link, from, WIRE_IOV_MAX + 1, to, 1) == -FI_EINVAL);
	EXPECT(shm_put(&s->link, from, 1, to, WIRE_IOV_MAX + 1) == -FI_EINVAL);
	EXPECT(!shm_reach(&s->link, to, WIRE_IOV_MAX + 1, true));
	leave(s);
	return 0;
}

START_TEST(many_small_ranges)
{
	fill(memory[0], BYTES, 50);
	expose_both(BOTH);
	ck_assert_int_eq(status_of(child(sliver, 0)), 0);
	for (size_t i = 0; i < WIRE_IOV_MAX; i++) {
		size_t n = i % 2 ? 2 : 0;

		ck_assert(holds(memory[0] + i * 3, n, 1, i - i % 2));
		ck_assert(holds(memory[0] + i * 3 + n, 3 - n, 50, i * 3 + n));
	}
}
END_TEST

/* Checks that the bad range, first or last of two, is refused with `err` and no byte moves. */
static void refuse(struct shm_link *s, struct fi_rma_iov bad, bool write, int err)
{
	struct fi_rma_iov first[2] = {range(0, 0, 100), bad}, last[2] = {bad, range(0, 0, 100)};
	struct iovec iov = {mine, 100 + bad.len % 4096};
	struct fi_rma_iov *order[2] = {first, last};

	for (int i = 0; i < 2; i++) {
		int ret = write ? shm_put(&s->link, &iov, 1, order[i], 2)
				: shm_get(&s->link, &iov, 1, order[i], 2);

		EXPECT(ret == err);
		EXPECT(!shm_reach(&s->link, order[i], 2, write));
	}
	EXPECT(holds(mine, BYTES, 1, 0));
}

static int refused(int number)
{
	struct shm_link *s = join(number);
	struct fi_rma_iov stale = range(2, 0, 10), unknown = range(0, 0, 10);

	unknown.key ^= UINT64_C(1) << 60;
	fill(mine, BYTES, 1);
	for (int write = 0; write < 2; write++) {
		refuse(s, stale, write, -FI_ENOKEY);
		refuse(s, unknown, write, -FI_ENOKEY);
		refuse(s, range(write ? 1 : 3, 0, 10), write, -FI_EACCES);
		refuse(s, range(0, BYTES, 1), write, -FI_EINVAL);
		refuse(s, range(0, BYTES - 9, 10), write, -FI_EINVAL);
		refuse(s, range(0, UINT64_MAX - 3, 10), write, -FI_EINVAL);
		refuse(s, range(0, 10, SIZE_MAX - 5), write, -FI_EINVAL);
	}
	for (uint32_t i = 0; i < RING_GUARDS; i++)
		EXPECT((uint32_t)s->ring.page->guards[i].word == 0);
	leave(s);
	return 0;
}

START_TEST(refusals)
{
	struct region *gone;

	fill(memory[0], BYTES, 50);
	fill(memory[1], BYTES, 60);
	expose(0, memory[0], BYTES, BOTH);
	expose(1, memory[1], BYTES, FI_REMOTE_READ);
	expose(3, memory[1], BYTES, FI_REMOTE_WRITE);
	gone = expose(2, memory[1], BYTES, BOTH);
	mr_share_remove(&dom, gone);
	ck_assert_int_eq(status_of(child(refused, 0)), 0);
	ck_assert(holds(memory[0], BYTES, 50, 0));
	ck_assert(holds(memory[1], BYTES, 60, 0));
}
END_TEST

/*
 * Regions that permit only reads or only writes; accesses that the owner's counters count return 1.
 */
static int one_way(int number)
{
	struct shm_link *s = join(number);
	struct iovec iov = {mine, 8};
	struct fi_rma_iov readable = range(0, 0, 8), writable = range(1, 0, 8);

	EXPECT(shm_put(&s->link, &iov, 1, &readable, 1) == -FI_EACCES);
	EXPECT(shm_get(&s->link, &iov, 1, &writable, 1) == -FI_EACCES);
	EXPECT(shm_reach(&s->link, &readable, 1, false));
	EXPECT(!shm_reach(&s->link, &readable, 1, true));
	EXPECT(shm_get(&s->link, &iov, 1, &readable, 1) == 1);
	EXPECT(shm_put(&s->link, &iov, 1, &writable, 1) == 0);
	next_step();
	await_step(2);
	EXPECT(shm_put(&s->link, &iov, 1, &writable, 1) == 1);
	leave(s);
	return 0;
}

START_TEST(rights_and_counters)
{
	struct cntr *counter = (struct cntr *)&cma_word; /* never dereferenced */
	pid_t pid;

	expose(0, memory[0], BYTES, FI_REMOTE_READ);
	expose(1, memory[1], BYTES, FI_REMOTE_WRITE);
	regions[0].mr.cntr = regions[1].mr.cntr = counter;
	regions[0].mr.cntr_flags = regions[1].mr.cntr_flags = FI_REMOTE_READ;
	mr_share_update(&dom, &regions[0]);
	mr_share_update(&dom, &regions[1]);
	pid = child(one_way, 0);
	await_step(1);
	mr_share_notify_all(&dom);
	next_step();
	ck_assert_int_eq(status_of(pid), 0);
}
END_TEST

static int faulty(int number)
{
	struct shm_link *s = join(number);
	struct iovec iov = {mine, 3 * 4096}, nowhere = {(void *)64, 8};
	struct fi_rma_iov hole = range(2, 0, 3 * 4096), good = range(0, 0, 8);

	fill(mine, BYTES, 1);
	EXPECT(shm_put(&s->link, &iov, 1, &hole, 1) == -FI_EFAULT);
	EXPECT(shm_get(&s->link, &iov, 1, &hole, 1) == -FI_EFAULT);
	iov.iov_len = hole.len = 100;
	hole.addr = 4096;
	EXPECT(shm_get(&s->link, &iov, 1, &hole, 1) == -FI_EFAULT);
	EXPECT(shm_put(&s->link, &nowhere, 1, &good, 1) == -FI_EFAULT);
	EXPECT(shm_get(&s->link, &nowhere, 1, &good, 1) == -FI_EFAULT);
	hole.addr = 8192; /* the remaining page still works */
	EXPECT(shm_put(&s->link, &iov, 1, &hole, 1) == 0);
	leave(s);
	return 0;
}

/* Memory unmapped under a region, and local memory that is not mapped. */
START_TEST(missing_memory)
{
	unsigned char *pages =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	expose_both(BOTH);
	expose(2, pages, 3 * 4096, BOTH);
	munmap(pages + 4096, 4096);
	ck_assert_int_eq(status_of(child(faulty, 0)), 0);
	ck_assert(holds(pages + 8192, 100, 1, 0));
}
END_TEST

#define HUGE ((size_t)9 << 28) /* 2.25 GiB: more than the kernel moves at once */

static int huge(int number)
{
	struct shm_link *s = join(number);
	size_t fragment = HUGE / WIRE_IOV_MAX;
	unsigned char *one = mmap(NULL, fragment, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct iovec iov[WIRE_IOV_MAX];
	struct fi_rma_iov all = range(2, 0, HUGE);

	EXPECT(one != MAP_FAILED);
	for (int i = 0; i < WIRE_IOV_MAX;
	     i++) /* all segments overlap: the last one's bytes remain */
		iov[i] = (struct iovec){one, fragment};
	EXPECT(shm_get(&s->link, iov, WIRE_IOV_MAX, &all, 1) == 0);
	EXPECT(holds(one + fragment - 4096, 4096, 3, 0));
	EXPECT(one[0] == 0);
	leave(s);
	return 0;
}

START_TEST(beyond_two_gigabytes)
{
	unsigned char *pages = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	pages[0] = 1;
	fill(pages + HUGE - 4096, 4096, 3);
	expose(2, pages, HUGE, BOTH);
	ck_assert_int_eq(status_of(child(huge, 0)), 0);
}
END_TEST

/* Without the peer's pid, or without its table of regions, direct access is refused. */
static int no_way(int number)
{
	struct shm_link *s = join_as(number, 0), *other;
	struct iovec iov = {mine, 8};
	struct fi_rma_iov to = range(0, 0, 8);

	EXPECT(shm_put(&s->link, &iov, 1, &to, 1) == -FI_ENOSYS);
	EXPECT(shm_get(&s->link, &iov, 1, &to, 1) == -FI_ENOSYS);
	EXPECT(!shm_reach(&s->link, &to, 1, true));
	owner_fds[1] = -1;
	other = join(number);
	EXPECT(shm_put(&other->link, &iov, 1, &to, 1) == -FI_ENOSYS);
	EXPECT(!shm_reach(&other->link, &to, 1, true));
	leave(other);
	owner_fds[1] = owner_fds[0]; /* not a table: the link works without one */
	other = join(number);
	EXPECT(shm_get(&other->link, &iov, 1, &to, 1) == -FI_ENOSYS);
	leave(other);
	leave(s);
	return 0;
}

START_TEST(without)
{
	fill(memory[0], BYTES, 50);
	expose_both(BOTH);
	ck_assert_int_eq(status_of(child(no_way, 0)), 0);
	ck_assert(holds(memory[0], BYTES, 50, 0));
}
END_TEST

START_TEST(to_ourselves)
{
	struct shm_link *s = join(0);
	struct fi_rma_iov to = range(0, 0, 0);
	struct iovec iov = {memory[1], 1000};

	fill(memory[1], BYTES, 60);
	expose_both(BOTH);
	to = range(0, 100, 1000);
	ck_assert_int_eq(shm_put(&s->link, &iov, 1, &to, 1), 0);
	ck_assert(holds(memory[0] + 100, 1000, 60, 0));
	iov.iov_base = mine;
	ck_assert_int_eq(shm_get(&s->link, &iov, 1, &to, 1), 0);
	ck_assert(holds(mine, 1000, 60, 0));
	leave(s);
}
END_TEST

/* The peer's process has ended: its pid may belong to another process. */
START_TEST(peer_gone)
{
	struct shm_link *s = join(0);
	struct iovec iov = {mine, 8};
	struct fi_rma_iov to;

	fill(memory[0], BYTES, 50);
	expose_both(BOTH);
	to = range(0, 0, 8);
	close(pairs[0][0]);
	usleep(50000); /* a few ticks of the coarse clock */
	ck_assert_int_eq(shm_put(&s->link, &iov, 1, &to, 1), -FI_ECONNRESET);
	ck_assert_int_eq(shm_get(&s->link, &iov, 1, &to, 1), -FI_ECONNRESET);
	ck_assert(holds(memory[0], BYTES, 50, 0));
	leave(s);
}
END_TEST

/*
 * Steps: 1 the child has a guard, 2 the owner checked, 3 the child has a second one, 4 it may leave
 * the first.
 */
static int marked(int number)
{
	struct shm_link *s = join(number);
	struct shm_guard early, late;

	EXPECT(shm_guard_enter(&s->ring, s->src, &early));
	next_step();
	await_step(2);
	EXPECT(shm_guard_enter(&s->ring, s->src, &late));
	next_step();
	await_step(4);
	shm_guard_leave(&early);
	EXPECT(shm_guard_enter(&s->ring, s->src, &early)); /* the same guard again */
	next_step();
	await_step(6);
	shm_guard_leave(&early);
	shm_guard_leave(&late);
	leave(s);
	return 0;
}

START_TEST(quiesce_waits)
{
	uint32_t id = 0;
	pid_t pid;

	shm_transport.quiesce(own, false);
	pid = child(marked, 3);
	await_step(1);
	ck_assert(shm_transport.quiesced(own, &id));
	shm_transport.quiesce(own, false);
	ck_assert(!shm_transport.quiesced(own, &id));
	ck_assert_uint_eq(id, FIRST + 3);
	next_step();
	await_step(3);
	usleep(20000);
	ck_assert(!shm_transport.quiesced(own, &id));
	next_step();
	await_step(5);
	/* Two guards are taken, but the one taken when quiesce began was left. */
	ck_assert(shm_transport.quiesced(own, &id));
	shm_transport.quiesce(own, false);
	ck_assert(!shm_transport.quiesced(own, &id));
	next_step();
	ck_assert_int_eq(status_of(pid), 0);
	ck_assert(shm_transport.quiesced(own, &id));
}
END_TEST

static int hang(int number)
{
	struct shm_link *s = join(number);
	struct shm_guard guard;

	EXPECT(shm_guard_enter(&s->ring, s->src, &guard));
	EXPECT(shm_guard_enter(&s->ring, s->src, &guard));
	next_step();
	for (;;)
		pause();
}

/* A killed peer's guards, and only those, end when the peer is reaped. */
START_TEST(killed_in_the_middle)
{
	pid_t pids[2];
	uint32_t id = 0;

	for (int i = 0; i < 2; i++)
		pids[i] = child(hang, i);
	await_step(2);
	shm_transport.quiesce(own, false);
	ck_assert(!shm_transport.quiesced(own, &id));
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		ck_assert_int_eq(status_of(pids[i]), -1);
		ck_assert(!shm_transport.quiesced(own, &id));
		ck_assert_uint_eq(shm_transport.reap(own, FIRST + (uint32_t)i), false);
		if (i == 0) {
			ck_assert(!shm_transport.quiesced(own, &id));
			ck_assert_uint_eq(id, FIRST + 1);
		}
	}
	ck_assert(shm_transport.quiesced(own, &id));
}
END_TEST

static int take_all(int number)
{
	struct shm_link *s = join(number);
	struct shm_guard guards[RING_GUARDS], more;
	struct iovec iov = {mine, 8};
	struct fi_rma_iov to = range(0, 0, 8);

	for (uint32_t i = 0; i < RING_GUARDS; i++)
		EXPECT(shm_guard_enter(&s->ring, s->src, &guards[i]));
	EXPECT(!shm_guard_enter(&s->ring, s->src, &more));
	EXPECT(shm_put(&s->link, &iov, 1, &to, 1) == -FI_EAGAIN);
	EXPECT(shm_get(&s->link, &iov, 1, &to, 1) == -FI_EAGAIN);
	shm_guard_leave(&guards[17]);
	EXPECT(shm_put(&s->link, &iov, 1, &to, 1) == 0);
	EXPECT(shm_guard_enter(&s->ring, s->src, &guards[17]));
	for (uint32_t i = 0; i < RING_GUARDS; i++)
		shm_guard_leave(&guards[i]);
	leave(s);
	return 0;
}

START_TEST(no_guard_left)
{
	uint32_t id;

	expose_both(BOTH);
	ck_assert_int_eq(status_of(child(take_all, 0)), 0);
	shm_transport.quiesce(own, false);
	ck_assert(shm_transport.quiesced(own, &id));
}
END_TEST

static int closed_worker(int number)
{
	struct shm_link *s = join(number);
	struct iovec iov = {mine, 8};
	struct fi_rma_iov to = range(0, 0, 8);
	struct shm_guard guard;

	EXPECT(!shm_guard_enter(&s->ring, s->src, &guard));
	EXPECT(shm_put(&s->link, &iov, 1, &to, 1) == -FI_EAGAIN);
	leave(s);
	return 0;
}

START_TEST(none_after_the_last)
{
	uint32_t id;

	fill(memory[0], BYTES, 50);
	expose_both(BOTH);
	shm_transport.quiesce(own, true);
	ck_assert_int_eq(status_of(child(closed_worker, 0)), 0);
	ck_assert(shm_transport.quiesced(own, &id));
	ck_assert(holds(memory[0], BYTES, 50, 0));
}
END_TEST

#define CLOSES  60
#define STREAMS 2

/* Writes until told to stop, with the region's current key. */
static int stream(int number)
{
	struct shm_link *s = join(number);
	uint64_t *key = (uint64_t *)(step + 16), done = 0;
	struct iovec iov = {mine, 65536};

	fill(mine, BYTES, 1);
	do {
		struct fi_rma_iov to = {.len = 65536,
					.key = __atomic_load_n(key, __ATOMIC_ACQUIRE)};
		int ret = shm_put(&s->link, &iov, 1, &to, 1);

		EXPECT(ret == 0 || ret == -FI_ENOKEY || ret == -FI_EAGAIN);
		done += ret == 0;
		if (done == 1 && ret == 0)
			next_step();
	} while (__atomic_load_n(step, __ATOMIC_ACQUIRE) < 1000);
	EXPECT(done > 0);
	leave(s);
	return 0;
}

/* The owner holds all guards but one, so that the children compete for one. */
static struct shm_guard held[RING_GUARDS - 1];

/* Quiesces, without waiting for the owner's own guards. */
static void quiesce(void)
{
	uint32_t id;

	shm_transport.quiesce(own, false);
	for (uint32_t i = 0; i < RING_GUARDS - 1; i++)
		own->noted[(struct ring_guard *)held[i].at - own->ring.page->guards] = 0;
	while (!shm_transport.quiesced(own, &id))
		sched_yield();
}

/*
 * Regions are closed under a stream of accesses: the close ends, and no peer writes to the memory
 * afterwards.
 */
START_TEST(closed_under_a_stream)
{
	uint64_t *key = (uint64_t *)(step + 16);
	pid_t pids[STREAMS];

	for (uint32_t i = 0; i < RING_GUARDS - 1; i++)
		ck_assert(shm_guard_enter(&own->ring, FIRST + 9, &held[i]));
	expose(0, memory[0], 65536, BOTH);
	*key = regions[0].mr.fid.key;
	for (int i = 0; i < STREAMS; i++)
		pids[i] = child(stream, i);
	await_step(STREAMS);
	for (int i = 0; i < CLOSES; i++) {
		struct region *r = &regions[0];

		mr_share_remove(&dom, r);
		mr_table_remove(dom.mrs, r);
		quiesce();
		memset(memory[0], 0, 65536);
		for (int yields = 0; yields < 3; yields++)
			sched_yield();
		for (size_t at = 0; at < 65536; at++)
			if (memory[0][at])
				ck_abort_msg("byte %zu was written after close %d", at, i);
		expose(0, memory[0], 65536, BOTH);
		__atomic_store_n(key, r->mr.fid.key, __ATOMIC_RELEASE);
		usleep(100);
	}
	__atomic_add_fetch(step, 1000, __ATOMIC_ACQ_REL);
	for (int i = 0; i < STREAMS; i++)
		ck_assert_int_eq(status_of(pids[i]), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_rma");
	TCase *tcase = tcase_create("rma");

	tcase_set_timeout(tcase, LIMIT + 5);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, put);
	tcase_add_test(tcase, get);
	tcase_add_test(tcase, many_small_ranges);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, rights_and_counters);
	if (!in_valgrind()) /* valgrind reports the invalid addresses */
		tcase_add_test(tcase, missing_memory);
	tcase_add_test(tcase, beyond_two_gigabytes);
	tcase_add_test(tcase, without);
	tcase_add_test(tcase, to_ourselves);
	tcase_add_test(tcase, peer_gone);
	tcase_add_test(tcase, quiesce_waits);
	tcase_add_test(tcase, killed_in_the_middle);
	tcase_add_test(tcase, no_guard_left);
	tcase_add_test(tcase, none_after_the_last);
	tcase_add_test(tcase, closed_under_a_stream);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
