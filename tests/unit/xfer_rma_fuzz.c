/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that one-sided requests with wrong bytes do no harm: memory not registered for writing
 * stays as it is, and every request that needs an answer gets one. Thousands of requests, the same
 * in every run.
 */
#include "fake_rma.h"

#define TAG    0x77
#define RANDOM 2000 /* packets of each kind with some random bytes */

static unsigned char *const target = memory[0].data + 64; /* the tagged receive's buffer */
static uint64_t seed;

static const struct request kinds[] = {
	{.op = WIRE_PUT, .flags = WIRE_DATA, .seq = 7, .addr = 100, .key = KEY_ALL, .len = 24},
	{.op = WIRE_PUT,
	 .flags = WIRE_LONG | WIRE_CQ,
	 .seq = 7,
	 .count = 2,
	 .range = {{100, 20, KEY_ALL}, {REGION - 4, 4, KEY_WRITE}},
	 .len = 24},
	{.op = WIRE_GET, .flags = WIRE_DATA, .seq = 7, .addr = 100, .key = KEY_READ, .want = 24},
	{.op = WIRE_GET,
	 .flags = WIRE_LONG,
	 .seq = 7,
	 .count = 2,
	 .range = {{REGION - 24, 24, KEY_ALL}, {0, 24, KEY_READ}}},
	{.op = WIRE_AMO,
	 .flags = WIRE_DATA | WIRE_CQ,
	 .seq = 7,
	 .addr = REGION - 16,
	 .key = KEY_ALL,
	 .amo = {FI_SUM, FI_UINT64, ATOMIC_BASE, 0, 16},
	 .len = 16},
	{.op = WIRE_AMO,
	 .flags = WIRE_DATA,
	 .seq = 7,
	 .addr = 8,
	 .key = KEY_ALL,
	 .amo = {FI_ATOMIC_READ, FI_UINT32, ATOMIC_FETCH, 0, 16}},
	{.op = WIRE_AMO,
	 .flags = WIRE_LONG,
	 .seq = 7,
	 .count = 2,
	 .range = {{0, 16, KEY_ALL}, {REGION - 8, 8, KEY_ALL}},
	 .amo = {FI_CSWAP, FI_UINT64, ATOMIC_COMPARE, 0, 24},
	 .len = 48},
	{.op = WIRE_AMO,
	 .flags = WIRE_DATA | WIRE_MATCH,
	 .seq = 7,
	 .addr = 8,
	 .key = TAG,
	 .amo = {FI_SUM, FI_UINT64, ATOMIC_FETCH, 0, 16},
	 .len = 16},
	{.op = WIRE_AMO,
	 .flags = WIRE_LONG | WIRE_MATCH | WIRE_CQ,
	 .seq = 7,
	 .count = 2,
	 .range = {{0, 8, TAG}, {24, 8, TAG}},
	 .amo = {FI_SUM, FI_UINT64, ATOMIC_BASE, 0, 16},
	 .len = 16},
};

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Returns byte `at` of the packet: head, tag and data, then the payload. */
static unsigned char *byte_of(struct raw *raw, size_t at)
{
	if (at < 8)
		return (unsigned char *)&raw->p.head + at;
	if (at < 16)
		return (unsigned char *)&raw->p.tag + at - 8;
	if (at < 24)
		return (unsigned char *)&raw->p.data + at - 16;
	return &raw->payload[at - 24];
}

/* Makes progress to the end. Returns whether request `id` got exactly one final answer. */
static bool is_answered(uint32_t id, bool *failed)
{
	unsigned int answers = 0, fragments = 0;
	uint64_t next = 0;

	while (worker_progress(fake.worker))
		;
	for (unsigned int i = 0; i < fake.count; i++) {
		const struct fake_packet *p = &fake.packets[i];
		unsigned int op = wire_op(p->head);

		if (wire_id(p->head) != id)
			continue;
		if (op == WIRE_RESULT) {
			ck_assert_uint_eq(p->tag, next);
			next += p->len;
			fragments++;
		}
		answers += op == WIRE_DONE || op == WIRE_FAILED || op == WIRE_ATS;
		*failed = op == WIRE_FAILED || (op == WIRE_ATS && p->tag);
	}
	fake.count = 0;
	ck_assert_uint_le(answers + (fragments > 0), 1);
	return answers + fragments > 0;
}

static void drain(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};

	for (ssize_t ret; (ret = fi_cq_read(fake.cq, &entry, 1)) != -FI_EAGAIN;)
		if (ret == -FI_EAVAIL)
			ck_assert_int_eq(fi_cq_readerr(fake.cq, &error, 0), 1);
}

/* Returns whether the packet is a fragment of a long write, but not the last: no answer is due. */
static bool is_fragment(const struct raw *raw)
{
	struct wire_ranges ranges = {0};
	size_t heads = offsetof(struct wire_ranges, range);
	unsigned __int128 total = 0;

	if (wire_op(raw->p.head) != WIRE_PUT || !(wire_flags(raw->p.head) & WIRE_LONG) ||
	    raw->p.len < heads)
		return false;
	memcpy(&ranges, raw->payload, heads);
	if (ranges.count > WIRE_IOV_MAX)
		return false;
	heads += ranges.count * sizeof(ranges.range[0]);
	if (raw->p.len < heads)
		return false;
	memcpy(&ranges, raw->payload, heads);
	heads += wire_flags(raw->p.head) & WIRE_CQ ? sizeof(uint64_t) : 0;
	if (raw->p.len < heads)
		return false;
	for (size_t i = 0; i < ranges.count; i++)
		total += ranges.range[i].len;
	return (unsigned __int128)ranges.offset + raw->p.len - heads < total;
}

/* Returns whether an answer is due, by the packet. `kept`: it may wait for a matching receive. */
static bool is_owed(const struct raw *raw, bool kept)
{
	uint64_t head = raw->p.head;

	if (wire_flags(head) & WIRE_ORPHAN)
		return false;
	switch (wire_op(head)) {
	case WIRE_PUT:
		return !is_fragment(raw);
	case WIRE_GET:
		return true;
	case WIRE_AMO:
		return !(wire_flags(head) & WIRE_MATCH && kept);
	default:
		return false;
	}
}

static void say(const struct raw *raw)
{
	size_t before = ep_of(fake.ep)->rx->unexpected_bytes;
	bool failed = false, answered;
	struct fi_context context;

	logged.count = 0;
	memcpy(memory, copy, sizeof(copy));
	ck_assert_int_eq(fi_trecv(fake.ep, target, 64, NULL, fake.addr, TAG, 0, &context), 0);
	raw_say(raw);
	answered = is_answered(wire_id(raw->p.head), &failed);
	ck_assert(guards_whole());
	if (is_owed(raw, ep_of(fake.ep)->rx->unexpected_bytes > before))
		ck_assert_msg(answered, "no answer to %#lx", (unsigned long)raw->p.head);
	if (failed) {
		ck_assert(memory_untouched());
		ck_assert_uint_gt(logged.count, 0);
	}
	fi_cancel(&fake.ep->fid, &context);
	fake_says(WIRE_HEAD(WIRE_XON, 0, 0, 0), 0, 0, NULL, 0);
	drain();
}

/* Posts receives until all kept requests are matched and answered. */
static void meet_all(void)
{
	struct fi_context context = {0};
	uint32_t kept;

	do {
		kept = (uint32_t)ep_of(fake.ep)->rx->unexpected_bytes;
		ck_assert_int_eq(fi_trecv(fake.ep, target, 64, NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX,
					  &context),
				 0);
	} while (ep_of(fake.ep)->rx->unexpected_bytes != kept);
	fi_cancel(&fake.ep->fid, &context);
	fake.count = 0;
	drain();
	ck_assert(guards_whole());
}

static void setup(void)
{
	rma_setup();
	seed = 88172645463325252;
}

START_TEST(one_byte)
{
	static const unsigned char masks[] = {0x01, 0x02, 0x10, 0x80, 0xff};
	static struct raw raw;
	bool failed = true;

	request_write(&raw, &kinds[_i]);
	memcpy(memory, copy, sizeof(copy));
	ck_assert_int_eq(fi_trecv(fake.ep, target, 64, NULL, fake.addr, TAG, 0, NULL), 0);
	raw_say(&raw);
	ck_assert(is_answered(7, &failed) && !failed); /* the unchanged request works */
	fi_cancel(&fake.ep->fid, NULL);
	drain();
	for (size_t at = 0; at < 24 + raw.p.len; at++)
		for (size_t n = 0; n < sizeof(masks); n++) {
			*byte_of(&raw, at) ^= masks[n];
			say(&raw);
			*byte_of(&raw, at) ^= masks[n];
		}
	meet_all();
}
END_TEST

/* Every shorter length, and some longer ones. */
START_TEST(lengths)
{
	static struct raw raw;
	size_t full;

	request_write(&raw, &kinds[_i]);
	full = raw.p.len;
	for (raw.p.len = 0; raw.p.len < full + 64; raw.p.len++)
		say(&raw);
	meet_all();
}
END_TEST

START_TEST(some_bytes)
{
	static struct raw raw;

	for (int i = 0; i < RANDOM; i++) {
		request_write(&raw, &kinds[_i]);
		for (uint64_t n = next_random() % 5 + 2; n > 0; n--)
			*byte_of(&raw, next_random() % (24 + raw.p.len)) =
				(unsigned char)(next_random() >> 20);
		if (next_random() % 4 == 0)
			raw.p.len = next_random() % (raw.p.len + 1);
		/* Mostly keeps the right head: otherwise the rest would not be read. */
		if (next_random() % 8)
			raw.p.head = WIRE_HEAD(kinds[_i].op, kinds[_i].flags, 0, 7);
		say(&raw);
	}
	meet_all();
}
END_TEST

int main(void)
{
	const int count = sizeof(kinds) / sizeof(kinds[0]);
	Suite *suite = suite_create("xfer_rma_fuzz");
	TCase *tcase = tcase_create("bytes");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rma_teardown);
	tcase_add_loop_test(tcase, one_byte, 0, count);
	tcase_add_loop_test(tcase, lengths, 0, count);
	tcase_add_loop_test(tcase, some_bytes, 0, count);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
