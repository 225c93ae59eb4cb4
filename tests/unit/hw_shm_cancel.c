/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that packets of all lengths arrive, and that a sender can cancel a put before its
 * delivery.
 */
#include "shm_pair.h"

#define HELD 64

static struct {
	uint32_t src;
	uint64_t head, tag, data;
	size_t len;
	unsigned char payload[SHM_PACKET_MAX];
} got[HELD]; /* delivered packets, in order */
static unsigned int count;

static void keep(uint32_t src, const struct packet *p)
{
	ck_assert_uint_lt(count, HELD);
	got[count].src = src;
	got[count].head = p->head;
	got[count].tag = p->tag;
	got[count].data = p->data;
	got[count].len = p->len;
	memcpy(got[count].payload, p->payload, p->len);
	count++;
}

static void start(void)
{
	setup();
	arrived = keep;
	count = 0;
}

static void make_progress(void)
{
	while (shm_transport.progress(own) || own->gather.gap)
		;
}

static uint64_t head_of(unsigned int op, unsigned int flags, uint32_t id)
{
	return WIRE_HEAD(op, flags, 3, id);
}

static const unsigned char *text(size_t len, unsigned int seed)
{
	static unsigned char bytes[SHM_PACKET_MAX];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i * 11 + (i >> 8) + seed);
	return bytes;
}

static int sendv(struct shm_link *s, uint64_t head, size_t len, unsigned int seed)
{
	const unsigned char *from = text(len, seed);
	struct iovec iov[2] = {{(void *)(uintptr_t)from, len / 3},
			       {(void *)(uintptr_t)(from + len / 3), len - len / 3}};
	struct packet p = {.head = head, .tag = seed, .data = seed * UINT64_C(3), .len = len};

	return shm_sendv(&s->link, &p, iov, 2);
}

static void put(struct shm_link *s, uint32_t id, size_t len)
{
	ck_assert_int_eq(sendv(s, head_of(WIRE_PUT, WIRE_DATA, id), len, id), 0);
}

static void taken_back(struct shm_link *s, uint64_t place, uint32_t id, size_t len)
{
	size_t back = 0;
	const void *payload = shm_cancel_posted(&s->link, place, &back);

	ck_assert_ptr_nonnull(payload);
	ck_assert_uint_eq(back, len);
	ck_assert_mem_eq(payload, text(len, id), len);
	shm_release(&s->link, place, true);
}

static void not_taken_back(struct shm_link *s, uint64_t place)
{
	size_t len = 99;

	ck_assert_ptr_null(shm_cancel_posted(&s->link, place, &len));
	ck_assert_uint_eq(len, 99);
}

/* Every length up to a slot and more, with and without data, by `send` and `sendv`. */
START_TEST(lengths)
{
	struct shm_link *s = join(0);

	for (size_t len = 0; len < 100; len++) {
		for (unsigned int flags = 0; flags <= WIRE_DATA; flags += WIRE_DATA) {
			uint64_t head = head_of(WIRE_MSG, flags, (uint32_t)len),
				 last = s->link.last;
			uint32_t seed = (uint32_t)len + 5;

			count = 0;
			ck_assert_int_eq(shm_send(&s->link, text(len, seed), len,
						  seed * UINT64_C(3), head, seed),
					 0);
			if (flags & WIRE_DATA)
				ck_assert_uint_gt(s->link.last, last);
			last = s->link.last;
			ck_assert_int_eq(sendv(s, head, len, seed), 0);
			ck_assert_uint_gt(s->link.last, last);
			make_progress();
			ck_assert_uint_eq(count, 2);
			for (int i = 0; i < 2; i++) {
				ck_assert_uint_eq(got[i].src, FIRST);
				ck_assert_uint_eq(got[i].head, head);
				ck_assert_uint_eq(got[i].tag, seed);
				ck_assert_uint_eq(got[i].data, flags ? seed * UINT64_C(3) : 0);
				ck_assert_uint_eq(got[i].len, len);
				ck_assert_mem_eq(got[i].payload, text(len, seed), len);
			}
		}
	}
	leave(s);
}
END_TEST

START_TEST(largest)
{
	struct shm_link *s = join(0);

	ck_assert_uint_eq(s->link.packet_max, SHM_PACKET_MAX);
	ck_assert_uint_ge(s->link.packet_max, WIRE_PACKET_MIN);
	ck_assert_int_eq(sendv(s, head_of(WIRE_PUT, WIRE_DATA, 1), s->link.packet_max, 1), 0);
	ck_assert_int_eq(shm_send(&s->link, text(s->link.eager_max + 1, 2), s->link.eager_max + 1,
				  0, head_of(WIRE_MSG, 0, 2), 0),
			 -FI_EMSGSIZE);
	make_progress();
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(got[0].len, SHM_PACKET_MAX);
	ck_assert_mem_eq(got[0].payload, text(SHM_PACKET_MAX, 1), SHM_PACKET_MAX);
	leave(s);
}
END_TEST

/* Of five puts of each length the second and fourth are cancelled; the others arrive. */
START_TEST(some_of_them)
{
	static const size_t lens[] = {0, 1, 8, 24, 25, 100, 4096, SHM_PACKET_MAX};
	struct shm_link *s = join(0);

	for (int round = 0; round < 400; round++) { /* several laps of the ring */
		size_t len = lens[round % 8];
		uint64_t places[5];

		count = 0;
		for (uint32_t i = 0; i < 5; i++) {
			put(s, i, len);
			places[i] = s->link.last;
		}
		taken_back(s, places[3], 3, len);
		taken_back(s, places[1], 1, len);
		not_taken_back(s, places[1]);
		make_progress();
		ck_assert_uint_eq(count, 3);
		for (uint32_t i = 0; i < 3; i++) {
			ck_assert_uint_eq(wire_id(got[i].head), 2 * i);
			ck_assert_mem_eq(got[i].payload, text(len, 2 * i), len);
		}
		for (int i = 0; i < 5; i++)
			not_taken_back(s, places[i]);
	}
	leave(s);
}
END_TEST

/* Long form, without data in the header. Also a put by `send`. */
START_TEST(without_data)
{
	struct shm_link *s = join(0);
	size_t len;

	ck_assert_int_eq(sendv(s, head_of(WIRE_PUT, WIRE_LONG, 1), 500, 1), 0);
	taken_back(s, s->link.last, 1, 500);
	ck_assert_int_eq(shm_send(&s->link, text(8, 2), 8, 7, head_of(WIRE_PUT, WIRE_DATA, 2), 9),
			 0);
	taken_back(s, s->link.last, 2, 8);
	make_progress();
	ck_assert_uint_eq(count, 0);
	ck_assert_ptr_null(shm_cancel_posted(&s->link, 0, &len));
	ck_assert_ptr_null(shm_cancel_posted(&s->link, s->next, &len));
	ck_assert_ptr_null(shm_cancel_posted(&s->link, UINT64_MAX, &len));
	leave(s);
}
END_TEST

/* A ring full of cancelled puts: they free their slots and do not keep the owner from sleeping. */
START_TEST(full_of_them)
{
	struct shm_link *s = join(0);
	uint64_t places[HELD * 8];
	unsigned int n = 0;

	while (sendv(s, head_of(WIRE_PUT, WIRE_DATA, n), 2000, n) == 0)
		places[n++] = s->link.last;
	ck_assert_uint_gt(n, 20);
	for (unsigned int i = 0; i < n; i++)
		taken_back(s, places[i], i, 2000);
	ck_assert(!shm_transport.arm(own));
	make_progress();
	ck_assert_uint_eq(count, 0);
	ck_assert(shm_transport.arm(own));
	put(s, 7, 2000);
	make_progress();
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(wire_id(got[0].head), 7);
	leave(s);
}
END_TEST

/*
 * Packets behind a put that is being cancelled wait until its sender has performed and released it.
 */
START_TEST(behind_it)
{
	struct shm_link *s = join(0);
	uint64_t place;
	size_t len;

	put(s, 1, 8);
	place = s->link.last;
	put(s, 2, 8);
	ck_assert_ptr_nonnull(shm_cancel_posted(&s->link, place, &len));
	make_progress();
	ck_assert_uint_eq(count, 0);
	ck_assert(!shm_transport.arm(own)); /* the release wakes nobody: keep polling */
	shm_release(&s->link, place, true);
	make_progress();
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(wire_id(got[0].head), 2);
	leave(s);
}
END_TEST

/* The sender releases a cancelled put without having performed it: the owner does. */
START_TEST(given_back)
{
	struct shm_link *s = join(0);
	size_t len;

	put(s, 1, 8);
	ck_assert_ptr_nonnull(shm_cancel_posted(&s->link, s->link.last, &len));
	shm_release(&s->link, s->link.last, false);
	taken_back(s, s->link.last, 1, 8);
	put(s, 2, 8);
	ck_assert_ptr_nonnull(shm_cancel_posted(&s->link, s->link.last, &len));
	shm_release(&s->link, s->link.last, false);
	make_progress();
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(wire_id(got[0].head), 2);
	leave(s);
}
END_TEST

/* A read is recalled in one step, or not at all. */
START_TEST(retracted)
{
	struct shm_link *s = join(0);
	uint64_t place;

	ck_assert_int_eq(sendv(s, head_of(WIRE_GET, WIRE_DATA, 1), 8, 1), 0);
	ck_assert(shm_recall_posted(&s->link, s->link.last));
	ck_assert_int_eq(sendv(s, head_of(WIRE_GET, WIRE_DATA, 2), 8, 2), 0);
	place = s->link.last;
	make_progress();
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(wire_id(got[0].head), 2);
	ck_assert(!shm_recall_posted(&s->link, place));
	leave(s);
}
END_TEST

/* A put that is being delivered cannot be cancelled. */
static struct shm_link *holder;
static uint64_t holds;

static void try_to_take_back(uint32_t src, const struct packet *p)
{
	size_t len;

	keep(src, p);
	ck_assert_ptr_null(shm_cancel_posted(&holder->link, holds, &len));
}

START_TEST(too_late)
{
	holder = join(0);
	arrived = try_to_take_back;
	put(holder, 1, 100);
	holds = holder->link.last;
	make_progress();
	ck_assert_uint_eq(count, 1);
	leave(holder);
}
END_TEST

static int die(int number)
{
	struct shm_link *s = join(number);
	uint64_t word, place;
	size_t len;

	EXPECT(sendv(s, head_of(WIRE_PUT, WIRE_DATA, 1), 300, 1) == 0);
	place = s->link.last;
	EXPECT(sendv(s, head_of(WIRE_PUT, WIRE_DATA, 2), 300, 2) == 0);
	EXPECT(shm_cancel_posted(&s->link, place, &len));
	EXPECT(shm_ring_claim(&s->ring, &s->next, s->src, 5, &word) == 0); /* never published */
	return 0;
}

/*
 * A sender dies with a cancelled put: its packets are skipped or delivered, also behind a live
 * one's.
 */
START_TEST(sender_died)
{
	struct shm_link *live = join(1);
	uint64_t word;
	struct link_slot *slot;
	uint64_t at = live->next;

	for (int behind = 0; behind < 2; behind++) {
		count = 0;
		at = live->next;
		if (behind) {
			ck_assert_int_eq(shm_ring_claim(&live->ring, &at, live->src, 1, &word), 0);
			live->next = at + 1;
		}
		ck_assert_int_eq(status_of(child(die, behind ? 2 : 0)), 0);
		shm_transport.reap(own, FIRST + (behind ? 2 : 0));
		if (behind) {
			ck_assert_uint_eq(count, 0);
			slot = ring_slot_at(&live->ring, at);
			*slot = (struct link_slot){.src = FIRST + 1,
						   .head = head_of(WIRE_MSG, 0, 9)};
			__atomic_store_n(&slot->token, live->ring.secret + at, __ATOMIC_RELEASE);
			make_progress();
			ck_assert_uint_eq(wire_id(got[0].head), 9);
			/* A write of a dead sender is performed, but not answered. */
			ck_assert_uint_eq(wire_op(got[1].head), WIRE_PUT);
			ck_assert_uint_eq(wire_flags(got[1].head), WIRE_DATA | WIRE_ORPHAN);
		} else {
			ck_assert_uint_eq(wire_flags(got[0].head), WIRE_DATA);
		}
		ck_assert_uint_eq(count, 1 + (unsigned int)behind);
		ck_assert_uint_eq(wire_id(got[behind].head), 2);
		put(live, 5, 100);
		make_progress();
		ck_assert_uint_eq(count, 2 + (unsigned int)behind);
		ck_assert(shm_transport.arm(own));
		ck_assert_uint_eq(own->reaped, 0);
	}
	leave(live);
}
END_TEST

#define STORM   60000
#define SENDERS 2

static bool is_put(uint32_t id)
{
	return id % 5 != 0;
}

/* Some puts are long, so that cancelling takes a while. */
static size_t storm_len(uint32_t id)
{
	return id % 3 ? 8 : 12000;
}

static bool storm_holds(const unsigned char *bytes, uint32_t id)
{
	return bytes[0] == (id & 0xff) && !memcmp(bytes, bytes + 1, storm_len(id) - 1);
}

static unsigned char applied[SENDERS][STORM]; /* puts that the owner performed */
static uint32_t expected[SENDERS];            /* least id that may come next */

static void apply(uint32_t src, const struct packet *p)
{
	uint32_t from = src - FIRST, id = wire_id(p->head);

	ck_assert_uint_lt(from, SENDERS);
	ck_assert_uint_lt(id, STORM);
	ck_assert_uint_ge(id, expected[from]);
	expected[from] = id + 1;
	ck_assert_uint_eq(p->len, storm_len(id));
	ck_assert(storm_holds(p->payload, id));
	applied[from][id]++;
}

/* Puts that senders cancelled, and so perform themselves; in shared memory. */
static unsigned char *taken;

/* Sends puts and, now and then, messages; cancels some puts, early or late. */
static int storm(int number)
{
	struct shm_link *s = join(number);
	static unsigned char bytes[SHM_PACKET_MAX];
	uint64_t places[8] = {0};
	uint32_t x = 12345 + (uint32_t)number;

	for (uint32_t id = 0; id < STORM; id++) {
		unsigned int op = is_put(id) ? WIRE_PUT : WIRE_MSG;
		struct packet p = {.head = head_of(op, WIRE_DATA, id), .len = storm_len(id)};
		struct iovec iov = {bytes, p.len};
		uint32_t back;
		const void *payload;
		size_t len;

		memset(bytes, (int)id & 0xff, p.len);
		while (shm_sendv(&s->link, &p, &iov, 1))
			(void)shm_transport.progress(own), sched_yield();
		places[id % 8] = s->link.last;
		x = x * 1103515245 + 12345;
		back = x >> 16 & 7;
		if (back > id || !is_put(id - back))
			continue;
		payload = shm_cancel_posted(&s->link, places[(id - back) % 8], &len);
		if (!payload)
			continue;
		EXPECT(len == storm_len(id - back));
		EXPECT(storm_holds(payload, id - back));
		taken[number * STORM + (int)(id - back)]++;
		shm_release(&s->link, places[(id - back) % 8], true);
	}
	return 0;
}

/* Owner and senders compete for the same puts: each is performed once, in order. */
START_TEST(once_each)
{
	unsigned int by_owner = 0, by_sender = 0;
	int left = SENDERS, status;

	arrived = apply;
	taken = mmap(NULL, sizeof(applied), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ck_assert_ptr_ne(taken, MAP_FAILED);
	for (int i = 0; i < SENDERS; i++)
		child(storm, i);
	while (left > 0) {
		if (shm_transport.progress(own))
			continue;
		if (waitpid(-1, &status, WNOHANG) > 0) {
			ck_assert_int_eq(status, 0);
			left--;
		}
		sched_yield();
	}
	make_progress();
	for (int i = 0; i < SENDERS; i++)
		for (int id = 0; id < STORM; id++) {
			ck_assert_uint_eq(applied[i][id] + taken[i * STORM + id], 1);
			by_owner += applied[i][id];
			by_sender += taken[i * STORM + id];
		}
	ck_assert_uint_gt(by_owner, SENDERS * STORM / 5);
	ck_assert_uint_gt(by_sender, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_cancel");
	TCase *tcase = tcase_create("withdraw");

	tcase_set_timeout(tcase, LIMIT + 5);
	tcase_add_checked_fixture(tcase, start, teardown);
	tcase_add_test(tcase, lengths);
	tcase_add_test(tcase, largest);
	tcase_add_test(tcase, some_of_them);
	tcase_add_test(tcase, without_data);
	tcase_add_test(tcase, full_of_them);
	tcase_add_test(tcase, behind_it);
	tcase_add_test(tcase, given_back);
	tcase_add_test(tcase, retracted);
	tcase_add_test(tcase, too_late);
	tcase_add_test(tcase, sender_died);
	tcase_add_test(tcase, once_each);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
