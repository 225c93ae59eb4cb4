/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the receive ring: claims by many senders, publishing, wrapping, sleeping. Dead claimers:
 * hw_shm_faults.c.
 */
#include <sched.h>

#include "ring_sender.h"
#include "suite.h"

#define SENDERS 4

START_TEST(wraps_around)
{
	struct sender s = attach(7);

	for (uint64_t n = 0; n < 4000; n++) {
		uint32_t slots = 1 + n * 37 % 257;

		ck_assert_int_eq(put(&s, slots, n), 0);
		take(7, slots, n);
	}
	ck_assert_uint_gt(head, 100 * (uint64_t)ring_count());
	ck_assert_ptr_null(look());
	shm_ring_unmap(&s.ring);
}
END_TEST

/* Laps are counted in 31 bits. */
START_TEST(laps_wrap_around)
{
	struct sender s = attach(7);
	uint64_t last = ((UINT64_C(1) << 31) - 2) << ring.shift;

	for (uint32_t i = 0; i < ring_count(); i++)
		ring.claims[i] = claim_word(ring_lap(&ring, last) - 1, 0, 1);
	head = s.next = ring.page->head = ring.page->hint = last;
	for (uint64_t n = 0; n < 8 * (uint64_t)ring_count() / 3; n++) {
		ck_assert_int_eq(put(&s, 3, n), 0);
		take(7, 3, n);
	}
	ck_assert_uint_eq(ring_lap(&ring, head), 5);
	shm_ring_unmap(&s.ring);
}
END_TEST

START_TEST(full)
{
	struct sender a = attach(1), b = attach(2);

	for (uint32_t i = 0; i < ring_count() / 4; i++)
		ck_assert_int_eq(put(i % 2 ? &b : &a, 4, i), 0);
	ck_assert_int_eq(claim(&a, 1), -FI_EAGAIN);
	ck_assert_int_eq(claim(&b, 1), -FI_EAGAIN);
	take(1, 4, 0);
	ck_assert_int_eq(claim(&b, 5), -FI_EAGAIN);
	ck_assert_int_eq(put(&b, 3, 100), 0);
	ck_assert_int_eq(claim(&a, 2), -FI_EAGAIN);
	ck_assert_int_eq(put(&a, 1, 101), 0);
	ck_assert_int_eq(claim(&a, 1), -FI_EAGAIN);
	for (uint32_t i = 1; i < ring_count() / 4; i++)
		take(i % 2 ? 2 : 1, 4, i);
	take(2, 3, 100);
	take(1, 1, 101);
	ck_assert_ptr_null(look());
	shm_ring_unmap(&a.ring);
	shm_ring_unmap(&b.ring);
}
END_TEST

#define STORM 100000

static uint32_t storm_slots(uint32_t id, uint64_t number)
{
	return 1 + (uint32_t)(number * 7 + id * 3) % 9;
}

static int storm(uint32_t id)
{
	struct sender s = attach(id);

	for (uint64_t n = 0; n < STORM; n++)
		while (put(&s, storm_slots(id, n), n))
			sched_yield();
	return 0;
}

START_TEST(many_claimers)
{
	uint64_t next[SENDERS] = {0};
	pid_t pids[SENDERS];

	for (uint32_t i = 0; i < SENDERS; i++)
		pids[i] = child(storm, i);
	for (int left = SENDERS * STORM; left > 0;) {
		struct link_slot *slot = look();
		uint32_t from;

		if (!slot) {
			sched_yield();
			continue;
		}
		from = slot->src;
		ck_assert_uint_lt(from, SENDERS);
		take(from, storm_slots(from, next[from]), next[from]);
		next[from]++;
		left--;
	}
	for (int i = 0; i < SENDERS; i++)
		ck_assert_int_eq(status_of(pids[i]), 0);
	ck_assert_ptr_null(look());
}
END_TEST

#define NAPS 2000

/* Sends messages that tell how many claims replaced a word with the SLEEP bit. */
static int claim_and_tell(uint32_t id)
{
	struct sender s = attach(id);

	for (int n = 0; n < NAPS; n++) {
		uint64_t word;

		while (shm_ring_claim(&s.ring, &s.next, id, 1, &word))
			sched_yield();
		publish(&s, 1, (word & CLAIM_SLEEP) != 0);
	}
	return 0;
}

/* The reader sleeps before each message if it may: exactly one claim sees the SLEEP bit. */
START_TEST(one_sees_the_sleeper)
{
	unsigned int slept = 0, seen = 0;
	pid_t pids[SENDERS];

	for (uint32_t i = 0; i < SENDERS; i++)
		pids[i] = child(claim_and_tell, i);
	for (int left = SENDERS * NAPS; left > 0; left--) {
		bool asleep = shm_ring_sleep(&ring, head);
		struct link_slot *slot;

		slept += asleep;
		while (!(slot = look()))
			sched_yield();
		seen += slot->tag != 0;
		ck_assert_int_eq(slot->tag != 0, asleep);
		release(1);
	}
	ck_assert_uint_eq(seen, slept);
	for (int i = 0; i < SENDERS; i++)
		ck_assert_int_eq(status_of(pids[i]), 0);
}
END_TEST

START_TEST(no_sleep_over_a_claim)
{
	struct sender s = attach(3);
	uint64_t word;

	ck_assert(shm_ring_sleep(&ring, head));
	ck_assert(shm_ring_sleep(&ring, head));
	ck_assert_int_eq(shm_ring_claim(&s.ring, &s.next, 3, 1, &word), 0);
	ck_assert(word & CLAIM_SLEEP);
	ck_assert(!shm_ring_sleep(&ring, head));
	publish(&s, 1, 0);
	ck_assert(!shm_ring_sleep(&ring, head));
	take(3, 1, 0);
	ck_assert_int_eq(shm_ring_claim(&s.ring, &s.next, 3, 1, &word), 0);
	ck_assert(!(word & CLAIM_SLEEP));
	shm_ring_unmap(&s.ring);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_ring");
	TCase *tcase = tcase_create("ring");

	tcase_set_timeout(tcase, LIMIT + 5);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, wraps_around);
	tcase_add_test(tcase, laps_wrap_around);
	tcase_add_test(tcase, full);
	tcase_add_test(tcase, many_claimers);
	tcase_add_test(tcase, one_sees_the_sleeper);
	tcase_add_test(tcase, no_sleep_over_a_claim);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
