/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that receivers get messages from the sender's bounce buffer, mapped as a peer maps it. */
#include "hw/shm/shm_bounce.h"

#include "shm_pair.h"

/* Batches: within one the same memory holds the same bytes. */
static const int first_batch, second_batch;

static unsigned char bytes[2 * SHM_BOUNCE_MAX], copy[2 * SHM_BOUNCE_MAX];
static struct ring seen; /* our ring, mapped as a peer maps it */
static struct shm_link *s;

static void start(void)
{
	int fds[WIRE_FDS];

	setup();
	s = join(0);
	shm_transport.hello_fds(own, fds);
	ck_assert_int_eq(shm_ring_attach(&seen, fds[0]), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 5 + (i >> 9));
}

static void finish(void)
{
	shm_ring_unmap(&seen);
	leave(s);
	teardown();
}

/* Puts a message into the bounce buffer for `link`'s peer. Returns its registration, or NULL. */
static void *put_for(struct shm_link *link, size_t at, size_t len, const void *batch,
		     struct fi_rma_iov *where)
{
	struct iovec iov = {bytes + at, len};
	void *registered = NULL;
	int err = shm_bounce_put(link, &iov, 1, batch, where, &registered);

	ck_assert_int_eq(!err, registered != NULL);
	return registered;
}

static void *put(size_t at, size_t len, const void *batch, struct fi_rma_iov *where)
{
	return put_for(s, at, len, batch, where);
}

static void drop(void *registered)
{
	shm_bounce_end(registered);
}

static ssize_t take(uint64_t addr, size_t len)
{
	struct iovec local = {copy, len};
	struct iovec remote = {(void *)(uintptr_t)addr, len};

	memset(copy, 0, sizeof(copy));
	return shm_bounce_take(&seen, &local, 1, &remote, 1);
}

START_TEST(every_length)
{
	static const size_t lens[] = {1, 63, 4096, 8191, 8192, 8193, 65536, SHM_BOUNCE_MAX};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct fi_rma_iov where;
		void *registered = put(i, lens[i], NULL, &where);

		ck_assert_ptr_nonnull(registered);
		ck_assert_uint_eq(where.len, lens[i]);
		ck_assert_int_eq(take(where.addr, lens[i]), (ssize_t)lens[i]);
		ck_assert_int_eq(memcmp(copy, bytes + i, lens[i]), 0);
		drop(registered);
	}
}
END_TEST

/* Messages do not overlap and fill the buffer; released space is used again. */
START_TEST(room)
{
	enum { LEN = 100000, MOST = RING_BOUNCE / LEN };
	struct fi_rma_iov where[MOST + 1];
	void *registered[MOST + 1];
	int count = 0;

	while (count <= MOST && (registered[count] = put((size_t)count, LEN, NULL, &where[count])))
		count++;
	ck_assert_int_ge(count, MOST - 1);
	ck_assert_int_le(count, MOST);
	for (int i = 0; i < count; i++) {
		ck_assert_int_eq(take(where[i].addr, LEN), LEN);
		ck_assert_int_eq(memcmp(copy, bytes + i, LEN), 0);
	}
	drop(registered[1]);
	registered[1] = put(7, LEN, NULL, &where[1]);
	ck_assert_ptr_nonnull(registered[1]);
	ck_assert_int_eq(take(where[1].addr, LEN), LEN);
	ck_assert_int_eq(memcmp(copy, bytes + 7, LEN), 0);
	ck_assert_int_eq(take(where[0].addr, LEN), LEN);
	ck_assert_int_eq(memcmp(copy, bytes, LEN), 0);
	for (int i = 0; i < count; i++)
		drop(registered[i]);
	ck_assert_ptr_null(put(0, SHM_BOUNCE_MAX + 1, NULL, &where[0]));
	registered[0] = put(0, SHM_BOUNCE_MAX, NULL, &where[0]);
	registered[1] = put(0, SHM_BOUNCE_MAX, NULL, &where[1]);
	ck_assert(registered[0] && registered[1]);
	drop(registered[0]);
	drop(registered[1]);
}
END_TEST

/* A batch puts a message once for all receivers, until the last one has released the message. */
START_TEST(batches)
{
	enum { LEN = 50000 };
	struct fi_rma_iov one, same, other, shorter, moved;
	void *a = put(0, LEN, &first_batch, &one), *b = put(0, LEN, &first_batch, &same), *c;

	ck_assert_uint_eq(one.addr, same.addr);
	drop(a);
	bytes[0] ^= 1; /* another batch copies the changed bytes */
	c = put(0, LEN, &second_batch, &other);
	ck_assert_uint_ne(other.addr, one.addr);
	ck_assert_int_eq(take(other.addr, LEN), LEN);
	ck_assert_uint_eq(copy[0], bytes[0]);
	ck_assert_int_eq(take(one.addr, LEN), LEN);
	ck_assert_uint_eq(copy[0], bytes[0] ^ 1);
	a = put(0, LEN - 1, &second_batch, &shorter);
	ck_assert_uint_ne(shorter.addr, other.addr);
	drop(b);
	b = put(1, LEN - 1, &second_batch, &moved);
	ck_assert_uint_ne(moved.addr, shorter.addr);
	drop(a);
	drop(b);
	drop(c);
	/* After the last release the message is copied again. */
	a = put(0, LEN, &first_batch, &one);
	drop(a);
	bytes[0] ^= 1;
	a = put(0, LEN, &first_batch, &same);
	ck_assert_int_eq(take(same.addr, LEN), LEN);
	ck_assert_uint_eq(copy[0], bytes[0]);
	drop(a);
	/* Without a batch each message has a copy of its own. */
	a = put(0, LEN, NULL, &one);
	b = put(0, LEN, NULL, &same);
	ck_assert_uint_ne(one.addr, same.addr);
	drop(a);
	drop(b);
}
END_TEST

/* Segments on both sides, read from the middle on. */
START_TEST(segments)
{
	struct iovec iov[3] = {{bytes, 10000}, {bytes + 30000, 1}, {bytes + 20000, 7000}};
	struct iovec local[2] = {{copy, 9000}, {copy + 10000, 4000}}, remote[3];
	struct fi_rma_iov where[3];
	void *registered;

	ck_assert_int_eq(shm_bounce_put(s, iov, 3, &first_batch, where, &registered), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(where[i].len, iov[i].iov_len);
		remote[i] = (struct iovec){(void *)(uintptr_t)where[i].addr, where[i].len};
	}
	remote[0].iov_base = (char *)remote[0].iov_base + 500;
	remote[0].iov_len -= 500;
	ck_assert_int_eq(shm_bounce_take(&seen, local, 2, remote, 3), 13000);
	ck_assert_int_eq(memcmp(copy, bytes + 500, 9000), 0);
	ck_assert_int_eq(memcmp(copy + 10000, bytes + 9500, 500), 0);
	ck_assert_uint_eq(copy[10500], bytes[30000]);
	ck_assert_int_eq(memcmp(copy + 10501, bytes + 20000, 3499), 0);
	drop(registered);
}
END_TEST

static uint64_t offset(const struct fi_rma_iov *where)
{
	return where->addr % RING_BOUNCE;
}

/* A peer's next message has the place of its last one, unless that place is taken. */
START_TEST(same_place)
{
	enum { LEN = 2 * SHM_BOUNCE_UNIT };
	struct shm_link *other = join(1);
	struct fi_rma_iov first, second, again, longer;
	void *a = put(0, LEN, NULL, &first), *b = put_for(other, 0, LEN, NULL, &second);

	drop(a);
	drop(b);
	b = put_for(other, 0, LEN, NULL, &again);
	ck_assert_uint_eq(offset(&again), offset(&second));
	a = put(0, LEN, NULL, &again);
	ck_assert_uint_eq(offset(&again), offset(&first));
	drop(a);
	a = put_for(other, 0, LEN, NULL, &again); /* the peer's last place is taken */
	ck_assert_uint_eq(offset(&again), offset(&first));
	drop(a);
	drop(b);
	/* Two messages of half the buffer still fit. */
	a = put_for(other, 0, SHM_BOUNCE_MAX, NULL, &longer);
	b = put(0, SHM_BOUNCE_MAX, NULL, &longer);
	ck_assert(a && b);
	drop(a);
	drop(b);
	leave(other);
}
END_TEST

/* A released place with another message is not read for the old one. */
START_TEST(given_back)
{
	struct fi_rma_iov old, new;
	void *registered = put(0, 3 * SHM_BOUNCE_UNIT, NULL, &old);

	drop(registered);
	ck_assert_int_eq(take(old.addr, old.len), (ssize_t)old.len); /* not used again yet */
	registered = put(1, SHM_BOUNCE_UNIT, NULL, &new);
	ck_assert_int_eq(take(old.addr, old.len), -FI_ECONNRESET);
	ck_assert_int_eq(take(old.addr, 1), -FI_ECONNRESET);
	ck_assert_int_eq(take(old.addr + SHM_BOUNCE_UNIT, 1), 1);
	ck_assert_int_eq(take(new.addr, new.len), (ssize_t) new.len);
	ck_assert_int_eq(memcmp(copy, bytes + 1, new.len), 0);
	drop(registered);
}
END_TEST

/* Addresses outside the buffer are refused. */
START_TEST(not_there)
{
	ck_assert_int_eq(take(SHM_BOUNCE_BASE, RING_BOUNCE / 2), RING_BOUNCE / 2);
	ck_assert_int_eq(take(SHM_BOUNCE_BASE + RING_BOUNCE - 1, 1), 1);
	ck_assert_int_eq(take(SHM_BOUNCE_BASE + RING_BOUNCE, 1), -FI_EFAULT);
	ck_assert_int_eq(take(SHM_BOUNCE_BASE + RING_BOUNCE - 1, 2), -FI_EFAULT);
	ck_assert_int_eq(take(SHM_BOUNCE_BASE + 2 * RING_BOUNCE, 1), -FI_EFAULT);
	ck_assert_int_eq(take(UINT64_MAX, 1), -FI_EFAULT);
	ck_assert_int_eq(take(SHM_BOUNCE_BASE - 1, 1), -FI_EFAULT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_bounce");
	TCase *tcase = tcase_create("bounce");

	tcase_add_checked_fixture(tcase, start, finish);
	tcase_set_timeout(tcase, LIMIT);
	tcase_add_test(tcase, every_length);
	tcase_add_test(tcase, room);
	tcase_add_test(tcase, batches);
	tcase_add_test(tcase, segments);
	tcase_add_test(tcase, same_place);
	tcase_add_test(tcase, given_back);
	tcase_add_test(tcase, not_there);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
