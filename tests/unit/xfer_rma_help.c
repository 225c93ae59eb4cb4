/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Straight to the peer's memory, and in its place where it sleeps over its packets. The link writes down
 * what is done through it, in order: put@address+bytes, get@..., take#packet, back#packet; tell.
 */
#include "fake_rma.h"

#define KEY 5

static struct {
	unsigned char memory[REGION]; /* the peer's */
	bool reachable, crowded;
	int put_ends, get_ends; /* how */
	unsigned int begun;     /* packets before this one the peer has begun */
	int held;               /* packets taken back and not released */
	char said[4096];
} there;

static unsigned char buf[REGION];

static void note(const char *what, uint64_t at, size_t len)
{
	size_t used = strlen(there.said);

	if (len == SIZE_MAX)
		snprintf(there.said + used, sizeof(there.said) - used, "%s#%llu ", what,
			 (unsigned long long)at);
	else
		snprintf(there.said + used, sizeof(there.said) - used, "%s@%llu+%zu ", what,
			 (unsigned long long)at, len);
}

/* All ranges in a row between `local` and the memory; both have the same length. */
static void move(const struct iovec *local, size_t local_count, const struct fi_rma_iov *remote,
		 size_t remote_count, bool put)
{
	size_t piece = 0, skip = 0;

	for (size_t i = 0; i < remote_count; i++)
		for (size_t at = 0; at < remote[i].len; at++, skip++) {
			unsigned char *here, *far = &there.memory[remote[i].addr + at];

			for (; piece < local_count && skip == local[piece].iov_len; skip = 0)
				piece++;
			ck_assert_uint_lt(piece, local_count);
			here = (unsigned char *)local[piece].iov_base + skip;
			*(put ? far : here) = *(put ? here : far);
		}
	for (; piece < local_count && skip == local[piece].iov_len; skip = 0)
		piece++;
	ck_assert_uint_eq(piece, local_count);
}

static int access(const char *what, int ends, const struct iovec *local, size_t local_count,
		  const struct fi_rma_iov *remote, size_t remote_count)
{
	ck_assert_uint_gt(remote_count, 0);
	ck_assert_uint_eq(remote[0].key, KEY);
	note(what, remote[0].addr, remote[0].len);
	if (there.crowded) {
		there.crowded = false;
		return -FI_EAGAIN;
	}
	if (ends >= 0)
		move(local, local_count, remote, remote_count, *what == 'p');
	return ends;
}

static int far_put(struct link *link, const struct iovec *local, size_t local_count,
		   const struct fi_rma_iov *remote, size_t remote_count)
{
	(void)link;
	return access("put", there.put_ends, local, local_count, remote, remote_count);
}

static int far_get(struct link *link, const struct iovec *local, size_t local_count,
		   const struct fi_rma_iov *remote, size_t remote_count)
{
	(void)link;
	return access("get", there.get_ends, local, local_count, remote, remote_count);
}

static bool far_reach(struct link *link, const struct fi_rma_iov *remote, size_t remote_count,
		      bool write)
{
	(void)link, (void)write;
	ck_assert_uint_gt(remote_count, 0);
	ck_assert_uint_eq(remote[0].key, KEY);
	return there.reachable;
}

static const void *far_withdraw(struct link *link, uint64_t place, size_t *len)
{
	(void)link;
	ck_assert_uint_lt(place, fake.count);
	ck_assert_uint_eq(wire_op(fake.packets[place].head), WIRE_PUT);
	ck_assert_int_eq(there.held, 0);
	if (place < there.begun)
		return NULL;
	there.held++;
	note("take", place, SIZE_MAX);
	*len = fake.packets[place].len;
	return fake.packets[place].payload;
}

static void far_release(struct link *link, uint64_t place)
{
	(void)link;
	ck_assert_int_eq(there.held, 1);
	there.held--;
	note("back", place, SIZE_MAX);
}

static const struct link_ops far_ops = {
	.send = fake_send,
	.sendv = fake_sendv,
	.close = fake_close,
	.put = far_put,
	.get = far_get,
	.reach = far_reach,
	.withdraw = far_withdraw,
	.release = far_release,
};

static void setup(void)
{
	rma_setup();
	fake.link.ops = &far_ops;
	memset(&there, 0, sizeof(there));
	there.reachable = true;
	for (size_t i = 0; i < REGION; i++) {
		there.memory[i] = (unsigned char)(i * 3);
		buf[i] = (unsigned char)(i * 5 + 1);
	}
}

static void teardown(void)
{
	ck_assert_int_eq(there.held, 0);
	rma_teardown();
}

static void post_write(uint64_t addr, size_t len, void *context)
{
	ck_assert_int_eq(fi_write(fake.ep, buf + addr, len, NULL, fake.addr, addr, KEY, context),
			 0);
}

static void post_read(uint64_t addr, size_t len, void *context)
{
	ck_assert_int_eq(fi_read(fake.ep, buf + addr, len, NULL, fake.addr, addr, KEY, context), 0);
}

static void post_add(uint64_t addr, void *context)
{
	ck_assert_int_eq(
		fi_atomic(fake.ep, buf, 1, NULL, fake.addr, addr, KEY, FI_UINT64, FI_SUM, context),
		0);
}

static void says_done(uint32_t seq)
{
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, seq), 0, 0, NULL, 0);
}

/* Nobody answers for two looks: what is done in the peer's place then. */
static void expect_help(const char *said)
{
	there.said[0] = 0;
	rma_help(fake.port, false);
	ck_assert_str_eq(there.said, "");
	rma_help(fake.port, false);
	ck_assert_str_eq(there.said, said);
	there.said[0] = 0;
}

static void expect_none_left(void)
{
	fake_expect_nothing();
	ck_assert_uint_eq(fake.port->tx_pool.in_use, 0);
	ck_assert_uint_eq(fake.peer->awaiting_count, 0);
	ck_assert(list_empty(&fake.port->awaiting));
}

/* ---- Straight away. ---- */

START_TEST(long_ones_go_direct)
{
	post_write(100, 1000, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	post_read(5000, 1000, &buf[2]);
	fake_expect(&buf[2], FI_RMA | FI_READ);
	ck_assert_str_eq(there.said, "put@100+1000 get@5000+1000 ");
	ck_assert_mem_eq(there.memory + 100, buf + 100, 1000);
	ck_assert_mem_eq(there.memory + 5000, buf + 5000, 1000);
	ck_assert_uint_eq(fake.count, 0);
	there.put_ends = 1; /* it counts what is done to it */
	post_write(0, 1000, &buf[3]);
	fake_expect(&buf[3], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_TOLD, 0, 0, 0));
	ck_assert_uint_eq(fake_last(0)->tag, KEY);
	ck_assert_uint_eq(fake_last(0)->len, 8);
	there.get_ends = -FI_EFAULT; /* some may have moved: no second try */
	post_read(0, 1000, &buf[4]);
	fake_expect_error(&buf[4], FI_EFAULT);
	ck_assert_uint_eq(fake.count, 1);
	there.put_ends = -FI_ENOKEY; /* the peer knows why */
	post_write(0, 1000, &buf[5]);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_PUT);
	says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[5], FI_RMA | FI_WRITE);
	expect_none_left();
}
END_TEST

/* Not past what was posted before, nor does what comes after pass it. */
START_TEST(long_ones_keep_their_turn)
{
	post_write(0, 8, &buf[1]);
	post_write(100, 1000, &buf[2]);
	post_read(100, 8, &buf[3]);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_str_eq(there.said, "");
	says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	ck_assert_str_eq(there.said, "put@100+1000 ");
	ck_assert_uint_eq(fake.count, 2);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake_last(0)->head)), 0, 0, buf, 8);
	fake_expect(&buf[3], FI_RMA | FI_READ);
	expect_none_left();
}
END_TEST

/* A peer that reads none of its packets has no room for more. */
START_TEST(a_full_link_is_passed_by)
{
	fake.room = 0;
	post_write(0, 8, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	ck_assert_str_eq(there.said, "put@0+8 ");
	there.put_ends = -FI_ENOKEY;
	ck_assert_int_eq(fi_write(fake.ep, buf, 8, NULL, fake.addr, 0, KEY, NULL), -FI_EAGAIN);
	ck_assert_int_eq(
		fi_atomic(fake.ep, buf, 1, NULL, fake.addr, 0, KEY, FI_UINT64, FI_SUM, NULL),
		-FI_EAGAIN);
	fake.room = FAKE_PLENTY;
	expect_none_left();
}
END_TEST

/* ---- In its place. ---- */

START_TEST(reads_and_writes_in_order)
{
	struct fi_rma_iov to[2] = {{300, 10, KEY}, {400, 30, KEY}};
	struct iovec iov[2] = {{buf + 600, 15}, {buf + 700, 25}};
	struct fi_msg_rma msg = {.msg_iov = iov,
				 .iov_count = 2,
				 .addr = fake.addr,
				 .rma_iov = to,
				 .rma_iov_count = 2,
				 .context = &buf[3],
				 .data = 4};

	post_read(0, 8, &buf[1]);
	post_write(100, 20, &buf[2]);
	ck_assert_int_eq(fi_writemsg(fake.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION), 0);
	post_read(200, 8, &buf[4]);
	memset(buf + 600, 0xdd, 125); /* too late: what is written is what was sent */
	expect_help("take#1 get@0+8 put@100+20 back#1 take#2 put@300+10 back#2 get@200+8 ");
	fake_expect(&buf[1], FI_RMA | FI_READ);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	fake_expect(&buf[3], FI_RMA | FI_WRITE);
	fake_expect(&buf[4], FI_RMA | FI_READ);
	ck_assert_mem_eq(there.memory + 100, buf + 100, 20);
	ck_assert_uint_eq(there.memory[300], (unsigned char)(600 * 5 + 1));
	ck_assert_uint_eq(there.memory[405], (unsigned char)(700 * 5 + 1));
	ck_assert_uint_eq(fake.count, 5);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_TOLD, WIRE_DATA, 0, 0));
	ck_assert_uint_eq(fake_last(0)->data, 4);
	/* It wakes up and answers the reads it finds. */
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake.packets[0].head)), 0, 0, buf, 8);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake.packets[3].head)), 0, 0, buf, 8);
	expect_none_left();
}
END_TEST

/* The peer might do it, and the read would not see what was before. */
START_TEST(no_read_before_an_atomic)
{
	post_read(0, 8, &buf[1]);
	post_write(0, 8, &buf[2]);
	post_read(16, 8, &buf[3]);
	post_add(16, &buf[4]);
	expect_help("take#1 get@0+8 put@0+8 back#1 ");
	fake_expect(&buf[1], FI_RMA | FI_READ);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	expect_help("");
	fake_expect_nothing();
	says_done(wire_id(fake_last(0)->head)); /* without a result of the read: wrong */
	fake_expect_error(&buf[3], FI_EPROTO);
	fake_expect(&buf[4], FI_ATOMIC | FI_WRITE);
	expect_none_left();
}
END_TEST

START_TEST(what_the_peer_has_begun_is_its)
{
	uint32_t seq;

	post_write(0, 8, &buf[1]);
	seq = wire_id(fake_last(0)->head);
	post_read(100, 8, &buf[2]);
	there.begun = 1;
	expect_help("");
	fake_expect_nothing();
	says_done(seq);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, seq + 1), 0, 0, buf, 4);
	expect_help(""); /* it is being read */
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, seq + 1), 4, 0, buf, 4);
	fake_expect(&buf[2], FI_RMA | FI_READ);
	expect_none_left();
}
END_TEST

START_TEST(answers_put_it_off)
{
	for (uint32_t i = 0; i < 4; i++)
		post_write(i * 8, 8, &buf[i]);
	for (uint32_t i = 0; i < 4; i++) {
		rma_help(fake.port, false);
		ck_assert_str_eq(there.said, "");
		says_done(wire_id(fake.packets[i].head));
		fake_expect(&buf[i], FI_RMA | FI_WRITE);
	}
	post_write(0, 8, &buf[1]);
	rma_help(fake.port, true); /* before we sleep ourselves: at once */
	ck_assert_str_eq(there.said, "take#4 put@0+8 back#4 ");
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	expect_none_left();
}
END_TEST

START_TEST(out_of_reach)
{
	there.reachable = false;
	post_read(0, 8, &buf[1]);
	post_write(0, 8, &buf[2]);
	expect_help("");
	fake_expect_nothing();
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake.packets[0].head)), 0, 0, buf, 8);
	fake_expect(&buf[1], FI_RMA | FI_READ);
	says_done(wire_id(fake.packets[1].head));
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	expect_none_left();
}
END_TEST

/* There is no way back: it ends with why, and what is behind it goes on. */
START_TEST(write_fails_in_its_place)
{
	static const struct {
		int put, err;
	} cases[] = {{-FI_EFAULT, FI_EFAULT},
		     {-FI_ENOKEY, FI_EACCES},
		     {-FI_EACCES, FI_EACCES},
		     {-FI_EINVAL, FI_EINVAL}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char said[64];

		fake.count = 0;
		fake.peer->direct_spell = 0;
		there.put_ends = cases[i].put;
		post_write(0, 8, &buf[1]);
		post_read(8, 8, &buf[2]);
		snprintf(said, sizeof(said), "take#0 put@0+8 back#0 get@8+8 ");
		expect_help(said);
		ck_assert_int_eq(fake_expect_error(&buf[1], cases[i].err).prov_errno,
				 -cases[i].put);
		fake_expect(&buf[2], FI_RMA | FI_READ);
		expect_none_left();
	}
}
END_TEST

START_TEST(the_way_is_crowded)
{
	post_write(0, 8, &buf[1]);
	there.crowded = true;
	expect_help("take#0 put@0+8 put@0+8 back#0 ");
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	fake.peer->direct_spell = 0;
	there.put_ends = -FI_EAGAIN;
	post_write(0, 8, &buf[2]);
	rma_help(fake.port, true);
	fake_expect_error(&buf[2], FI_ESHUTDOWN);
	expect_none_left();
}
END_TEST

/* It is spared the packets it does not read, for a while; what is in order is still its. */
START_TEST(a_spell_of_direct_ones)
{
	post_write(0, 8, &buf[1]);
	expect_help("take#0 put@0+8 back#0 ");
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	for (unsigned int i = 0; fake.peer->direct_spell; i++) {
		ck_assert_uint_lt(i, 1000);
		post_write(0, 8, &buf[2]);
		fake_expect(&buf[2], FI_RMA | FI_WRITE);
		ck_assert_uint_eq(fake.count, 1);
	}
	post_write(0, 8, &buf[3]);
	ck_assert_uint_eq(fake.count, 2);
	says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[3], FI_RMA | FI_WRITE);
	expect_none_left();
}
END_TEST

/* The endpoint of a read is gone: nothing goes to its memory. */
START_TEST(endpoint_closed_meanwhile)
{
	post_read(0, 8, &buf[1]);
	post_write(100, 8, &buf[2]);
	tx_forget(fake.port, ep_of(fake.ep), NULL);
	expect_help("take#1 put@100+8 back#1 ");
	ck_assert_uint_eq(buf[0], 1);
	expect_none_left();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rma_help");
	TCase *direct = tcase_create("direct"), *help = tcase_create("help");

	tcase_add_checked_fixture(direct, setup, teardown);
	tcase_add_test(direct, long_ones_go_direct);
	tcase_add_test(direct, long_ones_keep_their_turn);
	tcase_add_test(direct, a_full_link_is_passed_by);
	tcase_add_checked_fixture(help, setup, teardown);
	tcase_add_test(help, reads_and_writes_in_order);
	tcase_add_test(help, no_read_before_an_atomic);
	tcase_add_test(help, what_the_peer_has_begun_is_its);
	tcase_add_test(help, answers_put_it_off);
	tcase_add_test(help, out_of_reach);
	tcase_add_test(help, write_fails_in_its_place);
	tcase_add_test(help, the_way_is_crowded);
	tcase_add_test(help, a_spell_of_direct_ones);
	tcase_add_test(help, endpoint_closed_meanwhile);
	suite_add_tcase(suite, direct);
	suite_add_tcase(suite, help);
	return fake_run(suite);
}
