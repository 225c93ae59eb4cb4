/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine hears of one-sided operations over two devices (fakes here): what is done is reported,
 * and only the others go by packets.
 */
#define FAKE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#include "fake_link.h"
#include "fake_regions.h"

#define OTHER_KEY (KEY | UINT64_C(1) << 32) /* of a region that the second device has not told */
#define PIECE     ((size_t)128 << 10)

static int to_rails(struct link *link, const struct link_copy *op)
{
	(void)link;
	return link_made->memory->copy(link_made, op);
}

static void abort_rails(struct link *link)
{
	(void)link;
	link_made->memory->abort(link_made);
}

static const struct link_memory_ops to_rails_ops = {.copy = to_rails, .abort = abort_rails};

/* The engine's link hands one-sided operations to the rails. */
static void setup_engine(void)
{
	fake_open_connected();
	setup_keyed();
	v.opener = multi.further[0].opener = &fake.worker->conn.opener;
	r->id = pool_id(fake.peer);
	fake.link.memory = &to_rails_ops;
	fake.link.rdma_usable = fake.link.reaches = true;
}

static void teardown_engine(void)
{
	fake_shut();
	teardown();
}

static void writes(uint64_t key, size_t len, void *context)
{
	ck_assert_int_eq(fi_write(fake.ep, memory, len, NULL, fake.addr, 0, key, context), 0);
}

/* The last completion before all is given up is that of an operation which is done. */
START_TEST(done_before_given_up)
{
	char first, second;

	writes(KEY, 2 * PIECE, &first);
	tells(22);
	while (ends[0].done < ends[0].requests)
		complete(0);
	while (ends[1].done < ends[1].requests)
		complete(1);
	fake_expect(&first, FI_RMA | FI_WRITE);
	writes(KEY, 2 * PIECE, &first);
	writes(OTHER_KEY, SHORT, &second);
	complete(0);
	ck_assert_uint_eq(ends[0].done, ends[0].requests);
	breaks(0);
	ck_assert(r->giving_up);
	fake_expect_nothing();
	ck_assert_uint_eq(ends[1].done + 1, ends[1].requests);
	complete(1);
	ck_assert(!r->giving_up);
	fake_expect(&first, FI_RMA | FI_WRITE);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_uint_eq(wire_op(fake.packets[0].head), WIRE_PUT);
	ck_assert_uint_eq(fake.packets[0].len, SHORT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_rails_done");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup_engine, teardown_engine);
	tcase_add_test(c, done_before_given_up);
	suite_add_tcase(s, c);
	return suite_run(s);
}
