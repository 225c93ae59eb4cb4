/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that long messages of a member that is a round ahead find their receive posted, and that a member that waits for
 * nobody else waits until they are received.
 */
#include "fake_group.h"

#include "base/iov.h"

enum {
	COUNT = 33 << 10,
	HALF = COUNT / 2
}; /* more than 256 KiB: two members exchange halves, in two rounds */

static double in[COUNT], theirs[COUNT], out[COUNT];

/* An allreduce of two members, which waits for the peer's half in its first round. */
static struct {
	struct fid_av_set *set;
	struct fid_mc *mc;
	uint64_t id, tag;
} call;

static void setup(void)
{
	struct op_args args = {
		.kind = FI_ALLREDUCE, .type = FI_DOUBLE, .op = FI_SUM, .count = COUNT};

	group_setup();
	for (int i = 0; i < COUNT; i++) {
		in[i] = i;
		theirs[i] = 3 * i;
		out[i] = -1;
	}
	call.set = group_set((const fi_addr_t[]){our.self, fake.addr}, 2);
	call.mc = group_join(call.set, true);
	group_expect_stands(call.mc, true);
	call.id = LIST_ENTRY(call.mc, struct group, fid)->id;
	call.tag = WIRE_GROUP_TAG(1, op_what(&args), 1);
}

static void begin(void)
{
	ck_assert_int_eq(fi_allreduce(fake.ep, in, COUNT, NULL, out, NULL, fi_mc_addr(call.mc),
				      FI_DOUBLE, FI_SUM, 0, &call),
			 0);
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&call.mc->fid), 0);
	ck_assert_int_eq(fi_close(&call.set->fid), 0);
	fake_shut();
}

/* The transport reads a long message of the peer. Returns whether a receive was posted for it. */
static bool comes(const double *payload)
{
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 0),
			   .tag = call.tag,
			   .data = call.id,
			   .len = HALF * sizeof(double)};
	uint32_t id = rxreq_placement_begin(&fake.worker->conn.opener, pool_id(fake.peer), &p);
	struct iovec iov[RX_IOV_MAX];

	if (!id)
		return false;
	ck_assert_uint_eq(rxreq_placement_iov(&fake.worker->conn.opener, id, 0, iov, RX_IOV_MAX),
			  1);
	ck_assert_uint_eq(iov[0].iov_len, p.len);
	memcpy(iov[0].iov_base, payload, p.len);
	rxreq_placement_end(&fake.worker->conn.opener, id);
	return true;
}

/* The peer has read our last message. */
static void is_read(void)
{
	const struct fake_packet *rts = fake_last(0);

	ck_assert_uint_eq(wire_op(rts->head), WIRE_RTS);
	fake_says_ats(wire_id(rts->head), 0);
	worker_progress(fake.worker);
}

/* Both messages of the peer come in one progress call, before the first round can end. */
START_TEST(both_rounds_at_once)
{
	double sums[HALF];

	begin();
	for (int i = 0; i < HALF; i++)
		sums[i] = in[HALF + i] + theirs[HALF + i];
	ck_assert(comes(theirs));
	ck_assert(comes(sums));
	ck_assert(!comes(sums)); /* there is no third round */
	fake_expect_nothing();
	is_read();
	fake_expect_nothing();
	is_read();
	fake_expect(&call, FI_COLLECTIVE);
	for (int i = 0; i < COUNT; i++)
		ck_assert(out[i] == 4.0 * i);
}
END_TEST

START_TEST(peer_dies)
{
	begin();
	ck_assert(comes(theirs));
	if (_i)
		ck_assert(comes(theirs));
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	worker_progress(fake.worker);
	fake_expect_error(&call, FI_ECONNRESET);
	fake_expect_nothing();
	fake.closed = 0;
	fake_connect();
}
END_TEST

/* The peer calls something else in its second round: that is noticed when the message comes. */
START_TEST(another_call)
{
	begin();
	ck_assert(comes(theirs));
	call.tag ^= WIRE_GROUP_TAG(0, 1, 0);
	ck_assert(comes(theirs));
	worker_progress(fake.worker);
	fake_expect_error(&call, FI_EINVAL);
}
END_TEST

static uint64_t whole; /* head of the packet that took_whole has got */

static int took_whole(struct link *link, const struct packet *p, const struct iovec *iov,
		      size_t count)
{
	(void)link;
	ck_assert_uint_eq(iov_bytes(iov, count), p->len);
	whole = p->head;
	return 0;
}

/* The link takes the root's message as one packet, but the other member may be several broadcasts behind. */
START_TEST(root_waits)
{
	enum { WORDS = 20000 }; /* more than 128 KiB */
	static uint64_t data[WORDS];
	struct link_ops ops = fake_ops;

	ops.sendv = took_whole;
	fake.link.ops = &ops;
	fake.link.eager_max = sizeof(data);
	ck_assert_int_eq(fi_broadcast(fake.ep, data, WORDS, NULL, fi_mc_addr(call.mc), our.self,
				      FI_UINT64, 0, &call),
			 0);
	ck_assert_uint_eq(wire_op(whole), WIRE_MSG);
	ck_assert_uint_ne(wire_flags(whole) & WIRE_ACK_DELIVER, 0);
	fake_expect_nothing();
	fake_says_ats(wire_id(whole), 0);
	worker_progress(fake.worker);
	fake_expect(&call, FI_COLLECTIVE);
	/* It does not wait with a shorter one. */
	fake.link.ops = &fake_ops;
	ck_assert_int_eq(fi_broadcast(fake.ep, data, 10, NULL, fi_mc_addr(call.mc), our.self,
				      FI_UINT64, 0, &call),
			 0);
	fake_expect(&call, FI_COLLECTIVE);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head) & WIRE_ACK_DELIVER, 0);
}
END_TEST

/* Takes a packet that it sends later, from the caller's memory. */
static int later(struct link *link, const struct packet *p, const struct iovec *iov, size_t count)
{
	(void)p, (void)iov, (void)count;
	link->zcopy_posted++;
	return 0;
}

/*
 * The root does not wait until a stream is out: it ends each broadcast within the call. It waits for a link that sends
 * all later without gathering, as one with rails does, since what that has copied may stay here.
 */
START_TEST(root_streams)
{
	struct link_zcopy_ops zcopy = *fake.link.zcopy;
	struct fi_cq_tagged_entry done[4];
	uint64_t value = 7;

	zcopy.sendv = later;
	fake.link.zcopy = &zcopy;
	fake.link.zcopy_min = 0;
	fake.link.gather_max = sizeof(value);
	fake.count = 0;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(fi_broadcast(fake.ep, &value, 1, NULL, fi_mc_addr(call.mc),
					      our.self, FI_UINT64, 0, &call),
				 0);
		value++; /* it is free */
	}
	ck_assert_int_eq(fi_cq_read(fake.cq, done, 4), 3);
	ck_assert_uint_eq(fake.count, 3);
	for (unsigned int i = 0; i < 3; i++)
		ck_assert_mem_eq(fake.packets[i].payload, &(uint64_t){7 + i}, sizeof(value));
	fake.link.gather_max = _i ? 0 : sizeof(value) - 1;
	ck_assert_int_eq(fi_broadcast(fake.ep, &value, 1, NULL, fi_mc_addr(call.mc), our.self,
				      FI_UINT64, 0, &call),
			 0);
	ck_assert_uint_eq(fake.count, 3);
	fake_expect_nothing();
	fake.link.zcopy_done = fake.link.zcopy_posted;
	worker_progress(fake.worker);
	fake_expect(&call, FI_COLLECTIVE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_exchange");
	TCase *tcase = tcase_create("exchange");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, both_rounds_at_once);
	tcase_add_loop_test(tcase, peer_dies, 0, 2);
	tcase_add_test(tcase, another_call);
	tcase_add_test(tcase, root_waits);
	tcase_add_loop_test(tcase, root_streams, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
