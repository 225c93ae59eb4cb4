/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages on links over two devices (fakes here) are read by both. */
#include "fake_rails.h"
#include "suite.h"

static int read_all(uint64_t key)
{
	const struct iovec ours = {memory, LONG};
	const struct fi_rma_iov theirs = {.addr = 0, .len = LONG, .key = key};
	const struct link_copy op = {.message = true,
				     .local = &ours,
				     .local_count = 1,
				     .remote = &theirs,
				     .remote_count = 1};

	int ret = link_made->memory->copy(link_made, &op);

	return ret == LINK_UNDER_WAY ? 0 : ret;
}

/* Keys of a message: those of the first rail below. */
#define KEY(first, second) ((uint64_t)(second) << 32 | (first))

/* Each byte has been read, `most` times at most, and the message is complete. */
static void all_is_read(unsigned int most)
{
	size_t wrong = 0;

	for (size_t i = 0; i < LONG; i++)
		wrong += !times_read[i] || times_read[i] > most;
	ck_assert_uint_eq(wrong, 0);
	ck_assert(list_empty(&r->messages));
}

/* Each rail reads as much as it can: the second is three times as fast here. */
START_TEST(reads_divide)
{
	size_t bytes[VERBS_RAILS] = {0, 0};

	ck_assert_int_eq(read_all(KEY(11, 22)), 0);
	while (!list_empty(&r->messages)) {
		bytes[0] += complete(0);
		for (int i = 0; i < 3; i++)
			bytes[1] += complete(1);
	}
	all_is_read(1);
	ck_assert_uint_eq(bytes[0] + bytes[1], LONG);
	ck_assert_uint_ge(bytes[1], LONG * 5 / 8);
	ck_assert_uint_le(bytes[1], LONG * 7 / 8);
}
END_TEST

/* What a rail has not read when it breaks, the other one reads. */
START_TEST(reads_go_again)
{
	ck_assert_int_eq(read_all(KEY(11, 22)), 0);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_gt(complete(_i), 0);
	breaks(_i);
	while (complete(1 - _i))
		;
	all_is_read(2);
}
END_TEST

/* A message whose memory one device alone knows is read by that rail, and by nobody without it. */
START_TEST(reads_by_one)
{
	ck_assert_int_eq(read_all(KEY(11, 0)), 0);
	ck_assert_uint_eq(ends[1].requests, 0);
	while (complete(0))
		;
	all_is_read(1);
	ck_assert_int_eq(read_all(KEY(0, 0)), -FI_ENOMEM);
	ck_assert_int_eq(read_all(KEY(11, 0)), 0);
	breaks(0);
	ck_assert(list_empty(&r->messages)); /* the engine asks for packets */
	ck_assert(link_made->rdma_usable);
	ck_assert_int_eq(read_all(KEY(11, 0)), -FI_ENOMEM);
}
END_TEST

/* A device that refuses a later piece still reads the first: until then the message waits. */
START_TEST(memory_runs_out)
{
	registrations_max = 1;
	ck_assert_int_eq(read_all(KEY(11, 0)), 0);
	ck_assert_uint_gt(ends[0].requests, 0);
	while (ends[0].done < ends[0].requests) {
		ck_assert(!list_empty(&r->messages));
		complete(0);
	}
	ck_assert(list_empty(&r->messages));
	ck_assert_int_eq(read_all(KEY(11, 0)), -FI_ENOMEM);
}
END_TEST

/* So it does while a rail has failed, but its queue pair is not destroyed yet. */
START_TEST(fails_with_reads_under_way)
{
	struct list *first;

	ck_assert_int_eq(read_all(KEY(11, 0)), 0);
	first = r->messages.next;
	ck_assert_int_eq(read_all(KEY(0, 22)), 0);
	verbs_fail(ends[0].l, FI_ETIMEDOUT);
	for (int i = 0; i < 20; i++)
		complete(1);
	ck_assert_ptr_eq(r->messages.next, first);
	verbs_rails_here.broke(ends[0].l);
	ck_assert_ptr_ne(r->messages.next, first);
}
END_TEST

static void rdma_ends(unsigned int rail, enum ibv_wc_status status)
{
	const struct end *e = &ends[rail];
	struct ibv_wc wc = {.wr_id = e->request[e->done % REQUESTS].number,
			    .qp_num = e->direct.qp_num,
			    .status = status};

	verbs_rdma_done(e->l, &wc, false);
}

/* A refused access ends RDMA on the rail, at both ends, but not the rail. */
START_TEST(access_is_refused)
{
	static const enum ibv_wc_status refusals[] = {IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR};

	ck_assert_int_eq(read_all(KEY(11, 22)), 0);
	rdma_ends(0, refusals[_i]);
	ck_assert_int_eq(ends[0].l->err, 0);
	ck_assert(!ends[0].l->link.rdma_usable);
	while (complete(1))
		;
	ck_assert(list_empty(&r->messages));
	send_bytes("a");
	has_sent(0, "a", 1);
}
END_TEST

/* RDMA that gets no answer breaks the rail, if there is another one; else packets find out. */
START_TEST(rdma_gets_no_answer)
{
	ck_assert_int_eq(read_all(KEY(11, 22)), 0);
	rdma_ends(0, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(ends[0].l->err, FI_ETIMEDOUT);
	verbs_rails_here.broke(ends[0].l);
	rdma_ends(1, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(ends[1].l->err, 0);
	ck_assert(!link_made->rdma_usable);
	ck_assert(list_empty(&r->messages));
}
END_TEST

/* Registers a message with the devices; returns its key, and what is to be deregistered. */
static uint64_t registered_key(void **registered)
{
	struct iovec iov = {memory, LONG};
	struct fi_rma_iov at;

	ck_assert_int_eq(link_made->memory->reg(link_made, &iov, 1, &at, registered), 0);
	return at.key;
}

/* A device that is taken away is closed when no message is registered with it, so none is anew. */
START_TEST(removed_device_knows_no_more)
{
	void *before, *after;

	mr.rkey = 11;
	v.up = multi.further[0].up = true;
	ck_assert_uint_eq(registered_key(&before), KEY(11, 11));
	ends[_i].dev.removed = true;
	ck_assert_uint_eq(registered_key(&after), _i ? KEY(11, 0) : KEY(0, 11));
	ck_assert_uint_eq(device((unsigned int)_i)->regions, 1);
	link_made->memory->dereg(link_made, before);
	ck_assert_uint_eq(device((unsigned int)_i)->regions, 0);
	ck_assert_uint_eq(device(1 - (unsigned int)_i)->regions, 1);
	link_made->memory->dereg(link_made, after);
	ends[_i].dev.removed = false;
	v.up = multi.further[0].up = false;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_rails_rdma");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, reads_divide);
	tcase_add_loop_test(c, reads_go_again, 0, VERBS_RAILS);
	tcase_add_test(c, reads_by_one);
	tcase_add_loop_test(c, removed_device_knows_no_more, 0, VERBS_RAILS);
	tcase_add_test(c, memory_runs_out);
	tcase_add_test(c, fails_with_reads_under_way);
	tcase_add_loop_test(c, access_is_refused, 0, 2);
	tcase_add_test(c, rdma_gets_no_answer);
	suite_add_tcase(s, c);
	return suite_run(s);
}
