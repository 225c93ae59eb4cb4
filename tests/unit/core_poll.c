/* SPDX-License-Identifier: BSD-2-Clause */

#include "cntr/cntr.h"
#include "core/cq.h"
#include "core/eq.h"
#include "core/wait.h"
#include "core/wait.h"
#include "suite.h"

static struct fabric fabric;
static struct domain domain, elsewhere; /* bare domains without workers */
static struct fid_poll *set;

static void setup(void)
{
	domain.fabric = elsewhere.fabric = &fabric;
	domain.forks = forked_count();
	ck_assert_int_eq(shard_open_main(&domain), 0);
	elsewhere.forks = forked_count();
	ck_assert_int_eq(shard_open_main(&elsewhere), 0);
	list_init(&domain.workers);
	list_init(&domain.queues);
	ck_assert_int_eq(poll_open(&domain.fid, NULL, &set), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&set->fid), 0);
	ck_assert_int_eq(domain.ref, 0);
	shard_close_all(&domain);
	shard_close_all(&elsewhere);
}

static struct fid_cntr *open_cntr(struct domain *dom, void *context)
{
	struct fid_cntr *c;

	ck_assert_int_eq(cntr_open(&dom->fid, NULL, &c, context), 0);
	return c;
}

START_TEST(open_refused)
{
	struct fi_poll_attr attr = {.flags = 1};
	struct fid_poll *other;

	ck_assert_int_eq(poll_open(&domain.fid, &attr, &other), -FI_EINVAL);
}
END_TEST

START_TEST(members)
{
	struct fid_cntr *c = open_cntr(&domain, NULL), *far = open_cntr(&elsewhere, NULL);
	struct fid_eq *eq;

	ck_assert_int_eq(eq_open(&fabric.fid, NULL, &eq, NULL), 0);
	ck_assert_int_eq(fi_poll_add(set, &eq->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_poll_add(set, &c->fid, 1), -FI_EINVAL);
	ck_assert_int_eq(fi_poll_add(set, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_poll_add(set, &far->fid, 0), -FI_EDOMAIN);
	ck_assert_int_eq(fi_poll_del(set, &c->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_poll_add(set, &c->fid, 0), 0);
	ck_assert_int_eq(fi_poll_add(set, &c->fid, 0), 0);
	ck_assert_int_eq(fi_close(&c->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&set->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_poll_del(set, &c->fid, 0), 0);
	ck_assert_int_eq(fi_close(&c->fid), 0);
	ck_assert_int_eq(fi_close(&far->fid), 0);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(counters)
{
	int a_context, b_context;
	struct fid_cntr *a = open_cntr(&domain, &a_context), *b = open_cntr(&domain, &b_context);
	void *found[2] = {NULL, NULL};

	fi_cntr_add(a, 3);
	ck_assert_int_eq(fi_poll_add(set, &a->fid, 0), 0);
	ck_assert_int_eq(fi_poll_add(set, &b->fid, 0), 0);
	ck_assert_int_eq(fi_poll(set, found, 2), 0);
	cntr_done(cntr_of(b), 1);
	ck_assert_int_eq(fi_poll(set, found, 0), 0);
	ck_assert_int_eq(fi_poll(set, found, 2), 1);
	ck_assert_ptr_eq(found[0], &b_context);
	ck_assert_int_eq(fi_poll(set, found, 2), 0);
	cntr_fail(cntr_of(a));
	cntr_done(cntr_of(b), 1);
	/* With space for one context, calls return both in turn. */
	ck_assert_int_eq(fi_poll(set, found, 1), 1);
	ck_assert_int_eq(fi_poll(set, found + 1, 1), 1);
	ck_assert(found[0] != found[1]);
	/* Values that the application adds or sets are no event; errors that it adds are. */
	fi_cntr_add(a, 2);
	fi_cntr_set(b, 50);
	ck_assert_int_eq(fi_poll(set, found, 2), 0);
	fi_cntr_adderr(a, 2);
	ck_assert_int_eq(fi_poll(set, found, 2), 1);
	ck_assert_ptr_eq(found[0], &a_context);
	ck_assert_int_eq(fi_poll(set, found, -1), -FI_EINVAL);
	ck_assert_int_eq(fi_poll(set, NULL, 1), -FI_EINVAL);
	ck_assert_int_eq(fi_poll_del(set, &a->fid, 0), 0);
	ck_assert_int_eq(fi_poll_del(set, &b->fid, 0), 0);
	ck_assert_int_eq(fi_close(&a->fid), 0);
	ck_assert_int_eq(fi_close(&b->fid), 0);
}
END_TEST

START_TEST(queues)
{
	struct fi_cq_attr attr = {.size = 4};
	struct cq_slot slot = {.context = &attr};
	struct fi_cq_entry entry;
	struct fid_cq *cq;
	void *found = NULL;

	ck_assert_int_eq(cq_open(&domain.fid, &attr, &cq, &slot), 0);
	ck_assert_int_eq(fi_poll_add(set, &cq->fid, 0), 0);
	ck_assert_int_eq(fi_poll(set, &found, 1), 0);
	ck_assert_int_eq(wait_try_all(&fabric.fid, (struct fid *[]){&set->fid}, 1), 0);
	domain_lock(&domain);
	cq_push(cq_of(cq), slot);
	domain_unlock(&domain);
	ck_assert_int_eq(wait_try_all(&fabric.fid, (struct fid *[]){&set->fid}, 1), -FI_EAGAIN);
	ck_assert_int_eq(fi_poll(set, &found, 1), 1);
	ck_assert_ptr_eq(found, &slot);
	ck_assert_int_eq(fi_poll(set, &found, 1), 1); /* reported until read */
	ck_assert_int_eq(fi_cq_read(cq, &entry, 1), 1);
	ck_assert_int_eq(fi_poll(set, &found, 1), 0);
	ck_assert_int_eq(fi_poll_del(set, &cq->fid, 0), 0);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_poll");
	TCase *tcase = tcase_create("poll");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, open_refused);
	tcase_add_test(tcase, members);
	tcase_add_test(tcase, counters);
	tcase_add_test(tcase, queues);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
