/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that each call of the interface is hooked, and that a wrapped object is what it was. */
#include <string.h>

#include "hook/call.h"
#include "suite.h"

/* ---- Tables ----------------------------------------------------------------------------------- */

/* Members of a table that have no function of the room. */
static size_t missing(const void *table)
{
	const uintptr_t *members = table;
	size_t none = 0;

	for (size_t i = 1; i < members[0] / sizeof(uintptr_t); i++)
		none += !members[i];
	return none;
}

START_TEST(complete)
{
	ck_assert_uint_eq(missing(&calls_fabric), 0);
	ck_assert_uint_eq(missing(&calls_mr), 0);
	ck_assert_uint_eq(missing(&calls_cm), 0);
	ck_assert_uint_eq(missing(&calls_av_set), 0);
	ck_assert_uint_eq(missing(&calls_msg), 0);
	ck_assert_uint_eq(missing(&calls_tagged), 0);
	ck_assert_uint_eq(missing(&calls_rma), 0);
	ck_assert_uint_eq(missing(&calls_atomic), 0);
	ck_assert_uint_eq(missing(&calls_collective), 0);
	ck_assert_uint_eq(missing(&calls_eq), 0);
	ck_assert_uint_eq(missing(&calls_wait), 0);
	ck_assert_uint_eq(missing(&calls_poll), 0);
	/* One member each, of API 2.7, whose parameters nobody knows. */
	ck_assert_uint_eq(missing(&calls_domain), 1);
	ck_assert_uint_eq(missing(&calls_ep), 1);
	ck_assert_uint_eq(missing(&calls_av), 1);
	ck_assert_uint_eq(missing(&calls_cq), 1);
	ck_assert_uint_eq(missing(&calls_cntr), 1);
}
END_TEST

/* ---- Objects ---------------------------------------------------------------------------------- */

static int close_result;
static struct fid *closed;
static const void *ops_at_close;
static int (*add_at_close)(struct fid_cntr *, uint64_t); /* what another thread calls meanwhile */
static int (*close_at_close)(struct fid *);

static int close_counter(struct fid *fid)
{
	struct fid_cntr *counter = (struct fid_cntr *)fid;
	int (*again)(struct fid *) = close_at_close;

	closed = fid;
	ops_at_close = counter->ops;
	close_at_close = NULL;
	if (add_at_close)
		ck_assert_int_eq(add_at_close(counter, 3), -FI_EAGAIN);
	if (again)
		ck_assert_int_eq(again(fid), close_result);
	return close_result;
}

static struct fi_ops fid_ops = {.size = sizeof(struct fi_ops), .close = close_counter};

/* Another thread has read the event of the join, and closed the object: its memory is gone. */
static int join_ended(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		      void *context)
{
	(void)ep;
	(void)addr;
	(void)flags;
	(void)context;
	*mc = (struct fid_mc *)8;
	return 0;
}

static uint64_t added;

static uint64_t read_counter(struct fid_cntr *cntr)
{
	return cntr->fid.context ? 7 : 0;
}

static int add(struct fid_cntr *cntr, uint64_t value)
{
	(void)cntr;
	added += value;
	return -FI_EAGAIN;
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr), .read = read_counter, .add = add};

static struct fid_cntr cntr;

static void setup(void)
{
	closed = NULL;
	close_result = 0;
	added = 0;
	add_at_close = NULL;
	close_at_close = NULL;
	cntr = (struct fid_cntr){.fid = {FI_CLASS_CNTR, &cntr, &fid_ops}, .ops = &cntr_ops};
	hook_object(&cntr.fid);
}

START_TEST(passes_on)
{
	ck_assert_ptr_ne(cntr.ops, &cntr_ops);
	ck_assert_ptr_eq(cntr.fid.context, &cntr);
	ck_assert_uint_eq(cntr.ops->read(&cntr), 7);
	ck_assert_int_eq(cntr.ops->add(&cntr, 5), -FI_EAGAIN);
	ck_assert_uint_eq(added, 5);
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

START_TEST(lacks)
{
	ck_assert_ptr_null(cntr.ops->wait);
	ck_assert_ptr_null(cntr.fid.ops->bind);
	ck_assert_uint_eq(cntr.ops->size, sizeof(struct fi_ops_cntr));
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

/* A provider of another release: what lies behind its table is no member. */
START_TEST(short_table)
{
	struct fi_ops_cntr known = cntr_ops;
	struct fid_cntr old = {.fid = {FI_CLASS_CNTR, NULL, &fid_ops}, .ops = &known};

	known.size = offsetof(struct fi_ops_cntr, set);
	known.set = add;
	hook_object(&old.fid);
	ck_assert_uint_eq(old.ops->size, offsetof(struct fi_ops_cntr, set));
	ck_assert(!FI_CHECK_OP(old.ops, struct fi_ops_cntr, set));
	ck_assert(FI_CHECK_OP(old.ops, struct fi_ops_cntr, add));
	ck_assert_int_eq(old.fid.ops->close(&old.fid), 0);
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

START_TEST(ends_bare)
{
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
	ck_assert_ptr_eq(closed, &cntr.fid);
	ck_assert_ptr_eq(ops_at_close, &cntr_ops);
	ck_assert_ptr_eq(cntr.ops, &cntr_ops);
	ck_assert_ptr_eq(cntr.fid.ops, &fid_ops);
}
END_TEST

START_TEST(stays)
{
	close_result = -FI_EBUSY;
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), -FI_EBUSY);
	ck_assert_ptr_ne(cntr.ops, &cntr_ops);
	ck_assert_int_eq(cntr.ops->add(&cntr, 1), -FI_EAGAIN);
	ck_assert_uint_eq(added, 1);
	close_result = 0;
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

/* A function that an application has called before a close does its work during the close, too. */
START_TEST(during_close)
{
	struct fi_ops_cntr *shown = cntr.ops;

	close_result = -FI_EBUSY;
	add_at_close = cntr.ops->add;
	close_at_close = cntr.fid.ops->close;
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), -FI_EBUSY);
	ck_assert_uint_eq(added, 6);
	ck_assert_ptr_eq(cntr.ops, shown);
	close_result = 0;
	add_at_close = NULL;
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

/* Entries that were read are told in their queue's format, and not guessed. */
START_TEST(entries_during_close)
{
	struct fi_cq_tagged_entry entry = {0};
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_ops_cq cq_ops = {.size = sizeof(cq_ops)};
	struct fid_cq cq = {.fid = {FI_CLASS_CQ, NULL, &fid_ops}, .ops = &cq_ops};
	struct fi_ops *shown;

	hook_queue(&cq, &attr);
	ck_assert_int_eq(hook_entries(&cq, &entry, 1).format, FI_CQ_FORMAT_TAGGED);
	ck_assert_int_eq(hook_entries(&cq, &entry, 1).count, 1);
	shown = cq.fid.ops;
	cq.fid.ops = &fid_ops;
	ck_assert_int_eq(hook_entries(&cq, &entry, 1).count, 0);
	cq.fid.ops = shown;
	ck_assert_int_eq(cq.fid.ops->close(&cq.fid), 0);
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

START_TEST(once)
{
	struct fi_ops_cntr *shown = cntr.ops;

	hook_object(&cntr.fid);
	ck_assert_ptr_eq(cntr.ops, shown);
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
	ck_assert_ptr_eq(cntr.ops, &cntr_ops);
}
END_TEST

/* A copy of an object has tables of its own, which the end of the object leaves alone. */
START_TEST(copied)
{
	struct fid_cntr copy = cntr;

	hook_object(&copy.fid);
	ck_assert_ptr_ne(copy.ops, cntr.ops);
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
	ck_assert_int_eq(copy.ops->add(&copy, 2), -FI_EAGAIN);
	ck_assert_uint_eq(added, 2);
	ck_assert_int_eq(copy.fid.ops->close(&copy.fid), 0);
	ck_assert_ptr_eq(copy.ops, &cntr_ops);
}
END_TEST

START_TEST(joined)
{
	struct fi_ops_cm cm_ops = {.size = sizeof(cm_ops), .join = join_ended};
	struct fid_ep ep = {.fid = {FI_CLASS_EP, NULL, &fid_ops}, .cm = &cm_ops};
	struct fid_mc *mc = NULL;

	hook_object(&ep.fid);
	ck_assert_ptr_ne(ep.cm, &cm_ops);
	ck_assert_int_eq(ep.cm->join(&ep, NULL, 0, &mc, NULL), 0);
	ck_assert_ptr_nonnull(mc);
	ck_assert_int_eq(ep.fid.ops->close(&ep.fid), 0);
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

START_TEST(left_alone)
{
	struct fid nic = {FI_CLASS_NIC, NULL, &fid_ops};

	hook_object(&nic);
	ck_assert_ptr_eq(nic.ops, &fid_ops);
	hook_object(NULL);
	ck_assert_int_eq(cntr.fid.ops->close(&cntr.fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hook_hook");
	TCase *tables = tcase_create("tables"), *objects = tcase_create("objects");

	tcase_add_test(tables, complete);
	suite_add_tcase(suite, tables);
	tcase_add_checked_fixture(objects, setup, NULL);
	tcase_add_test(objects, passes_on);
	tcase_add_test(objects, lacks);
	tcase_add_test(objects, short_table);
	tcase_add_test(objects, ends_bare);
	tcase_add_test(objects, stays);
	tcase_add_test(objects, during_close);
	tcase_add_test(objects, entries_during_close);
	tcase_add_test(objects, once);
	tcase_add_test(objects, copied);
	tcase_add_test(objects, joined);
	tcase_add_test(objects, left_alone);
	suite_add_tcase(suite, objects);
	return suite_run(suite);
}
