/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that the receive ring survives claimers that die before they publish, and that false rings
 * are refused.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "ring_sender.h"
#include "suite.h"

static int die_claiming(uint32_t id)
{
	struct sender s = attach(id);

	return claim(&s, 2 + id);
}

/* Claims of dead and live senders alternate; the deaths are noticed in any order. */
START_TEST(dead_claimers)
{
	struct sender live = attach(9), slow = attach(10);

	ck_assert_int_eq(claim(&slow, 2), 0);
	for (uint32_t id = 0; id < 3; id++) {
		ck_assert_int_eq(status_of(child(die_claiming, id)), 0);
		ck_assert_int_eq(put(&live, 3, id), 0);
	}
	/* A claim is skipped only after its claimer died, also behind other claims. */
	ck_assert_uint_eq(shm_ring_skip_dead(&ring, head), 0);
	ck_assert_uint_eq(shm_ring_reap(&ring, head, 1), 1);
	ck_assert_uint_eq(shm_ring_reap(&ring, head, 1), 0);
	ck_assert_uint_eq(shm_ring_skip_dead(&ring, head), 0);
	publish(&slow, 2, 50);
	take(10, 2, 50);
	ck_assert_uint_eq(shm_ring_skip_dead(&ring, head), 0);
	ck_assert_uint_eq(shm_ring_reap(&ring, head, 0), 1);
	ck_assert_uint_eq(shm_ring_skip_dead(&ring, head), 2);
	release(2);
	take(9, 3, 0);
	ck_assert_uint_eq(shm_ring_skip_dead(&ring, head), 3);
	release(3);
	take(9, 3, 1);
	ck_assert_uint_eq(shm_ring_skip_dead(&ring, head), 0);
	ck_assert_uint_eq(shm_ring_reap(&ring, head, 2), 1);
	ck_assert_uint_eq(shm_ring_skip_dead(&ring, head), 4);
	release(4);
	take(9, 3, 2);
	/* The id of a dead sender is used by a live one. */
	slow.id = 1;
	ck_assert_int_eq(put(&slow, 5, 51), 0);
	take(1, 5, 51);
	ck_assert_uint_eq(shm_ring_reap(&ring, head, 1), 0);
	shm_ring_unmap(&live.ring);
	shm_ring_unmap(&slow.ring);
}
END_TEST

static int sealed(size_t len, int seals, const struct ring_page *page)
{
	int fd = memfd_create("ring-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)len), 0);
	ck_assert_int_eq(pwrite(fd, page, sizeof(*page), 0), sizeof(*page));
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void refused(int fd)
{
	struct ring r;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_lt(shm_ring_attach(&r, fd), 0);
	close(fd);
}

START_TEST(attach_refuses)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	const size_t len = 4096 + (size_t)ring_count() * (8 + RING_SLOT);
	struct ring_page page = *ring.page, bad = page;
	struct ring r;
	int pair[2], good = sealed(len, seals, &page);

	ck_assert_int_eq(shm_ring_attach(&r, good), 0);
	shm_ring_unmap(&r);
	close(good);
	refused(sealed(len, 0, &page));
	refused(sealed(len, F_SEAL_GROW | F_SEAL_SEAL, &page));
	refused(sealed(len, F_SEAL_SHRINK | F_SEAL_SEAL, &page));
	refused(sealed(len, seals | F_SEAL_WRITE, &page));
	refused(sealed(len - 4096, seals, &page));
	refused(sealed(len + 4096, seals, &page));
	refused(sealed(sizeof(page), seals, &page));
	bad.magic++;
	refused(sealed(len, seals, &bad));
	bad = page;
	for (bad.slots = 1; bad.slots < ring_count(); bad.slots *= 2)
		refused(sealed(4096 + 4096 + bad.slots * (size_t)RING_SLOT, seals, &bad));
	bad.slots = ring_count() + 1;
	refused(sealed(len, seals, &bad));
	bad.slots = 1u << 31;
	refused(sealed(len, seals, &bad));
	refused(open("/dev/zero", O_RDWR | O_CLOEXEC));
	ck_assert_int_eq(pipe(pair), 0);
	refused(pair[0]);
	refused(pair[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_faults");
	TCase *tcase = tcase_create("ring");

	tcase_set_timeout(tcase, LIMIT + 5);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, dead_claimers);
	tcase_add_test(tcase, attach_refuses);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
