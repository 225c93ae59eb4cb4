/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how counters count, fail, wait and wake. */
#include <poll.h>
#include <unistd.h>

#include "cntr/cntr.h"
#include "core/wait.h"
#include "suite.h"

#define FOREVER -1 /* ms; the time limit of the test ends a lost wake-up */

static struct fabric fabric;
static struct domain domain; /* a bare domain without workers */

static const enum fi_wait_obj kinds[] = {FI_WAIT_NONE,   FI_WAIT_UNSPEC,     FI_WAIT_FD,
					 FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD};
#define KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

static void setup(void)
{
	domain.fabric = &fabric;
	domain.forks = forked_count();
	ck_assert_int_eq(shard_open_main(&domain), 0);
	list_init(&domain.workers);
}

static struct fid_cntr *open_cntr(enum fi_wait_obj obj, enum fi_cntr_events events)
{
	struct fi_cntr_attr attr = {.wait_obj = obj, .events = events};
	struct fid_cntr *c;

	ck_assert_int_eq(cntr_open(&domain.fid, &attr, &c, &attr), 0);
	ck_assert_ptr_eq(c->fid.context, &attr);
	return c;
}

START_TEST(open_and_close)
{
	struct fi_cntr_attr attr = {.flags = 1};
	struct fid_cntr *c;

	ck_assert_int_eq(cntr_open(&domain.fid, &attr, &c, NULL), -FI_EINVAL);
	attr = (struct fi_cntr_attr){.events = (enum fi_cntr_events)7};
	ck_assert_int_eq(cntr_open(&domain.fid, &attr, &c, NULL), -FI_EINVAL);
	attr = (struct fi_cntr_attr){.wait_obj = FI_WAIT_SET};
	ck_assert_int_eq(cntr_open(&domain.fid, &attr, &c, NULL), -FI_EINVAL);
	ck_assert_int_eq(domain.ref, 0);
	ck_assert_int_eq(cntr_open(&domain.fid, NULL, &c, NULL), 0);
	ck_assert_int_eq(domain.ref, 1);
	ck_assert_uint_eq((uintptr_t)&cntr_of(c)->value % 64, 0);
	ref_get(&cntr_of(c)->ref);
	ck_assert_int_eq(fi_close(&c->fid), -FI_EBUSY);
	ref_put(&cntr_of(c)->ref);
	ck_assert_int_eq(fi_close(&c->fid), 0);
	ck_assert_int_eq(domain.ref, 0);
}
END_TEST

START_TEST(values)
{
	struct fid_cntr *c = open_cntr(FI_WAIT_NONE, FI_CNTR_EVENTS_COMP);
	struct fid_cntr *bytes = open_cntr(FI_WAIT_NONE, FI_CNTR_EVENTS_BYTES);

	ck_assert_uint_eq(fi_cntr_read(c), 0);
	cntr_done(cntr_of(c), 100);
	cntr_done(cntr_of(bytes), 100);
	ck_assert_uint_eq(fi_cntr_read(c), 1);
	ck_assert_uint_eq(fi_cntr_read(bytes), 100);
	ck_assert_int_eq(fi_cntr_add(c, 5), 0);
	ck_assert_uint_eq(fi_cntr_read(c), 6);
	ck_assert_int_eq(fi_cntr_set(c, 2), 0);
	ck_assert_uint_eq(fi_cntr_read(c), 2);
	ck_assert_uint_eq(fi_cntr_readerr(c), 0);
	cntr_fail(cntr_of(c));
	ck_assert_int_eq(fi_cntr_adderr(c, 2), 0);
	ck_assert_uint_eq(fi_cntr_readerr(c), 3);
	ck_assert_int_eq(fi_cntr_seterr(c, 9), 0);
	ck_assert_uint_eq(fi_cntr_readerr(c), 9);
	ck_assert_uint_eq(fi_cntr_read(c), 2);
	ck_assert_int_eq(fi_close(&bytes->fid), 0);
	ck_assert_int_eq(fi_close(&c->fid), 0);
}
END_TEST

START_TEST(control)
{
	struct fid_cntr *c = open_cntr(FI_WAIT_FD, FI_CNTR_EVENTS_COMP);
	uint64_t flags = FI_COMPLETION;
	enum fi_wait_obj obj;
	int fd = -1;

	ck_assert_int_eq(fi_control(&c->fid, FI_SETOPSFLAG, &flags), 0);
	flags = 0;
	ck_assert_int_eq(fi_control(&c->fid, FI_GETOPSFLAG, &flags), 0);
	ck_assert_uint_eq(flags, FI_COMPLETION);
	ck_assert_int_eq(fi_control(&c->fid, FI_GETOPSFLAG, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_control(&c->fid, FI_GETWAITOBJ, &obj), 0);
	ck_assert_int_eq(obj, FI_WAIT_FD);
	ck_assert_int_eq(fi_control(&c->fid, FI_GETWAIT, &fd), 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fi_control(&c->fid, 12345, &fd), -FI_ENOSYS);
	ck_assert_int_eq(fi_close(&c->fid), 0);
}
END_TEST

START_TEST(waiting)
{
	struct fid_cntr *c = open_cntr(kinds[_i], FI_CNTR_EVENTS_COMP);
	uint64_t start = clock_us();

	ck_assert_int_eq(fi_cntr_wait(c, 0, 0), 0);
	ck_assert_int_eq(fi_cntr_wait(c, 1, 0), -FI_ETIMEDOUT);
	ck_assert_int_eq(fi_cntr_wait(c, 1, 20), -FI_ETIMEDOUT);
	ck_assert_uint_ge(clock_us() - start, 20000);
	fi_cntr_add(c, 3);
	ck_assert_int_eq(fi_cntr_wait(c, 3, -1), 0);
	ck_assert_int_eq(fi_close(&c->fid), 0);
}
END_TEST

static void *fail_soon(void *arg)
{
	usleep(20000);
	fi_cntr_adderr(arg, 1);
	return NULL;
}

START_TEST(failures_end_the_wait)
{
	struct fid_cntr *c = open_cntr(kinds[_i], FI_CNTR_EVENTS_COMP);
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, fail_soon, c), 0);
	ck_assert_int_eq(fi_cntr_wait(c, 1, FOREVER), -FI_EAVAIL);
	pthread_join(thread, NULL);
	/*
	 * That failure was reported: the next wait ends by the next failure, also one before the
	 * wait.
	 */
	ck_assert_int_eq(fi_cntr_wait(c, 1, 1), -FI_ETIMEDOUT);
	cntr_fail(cntr_of(c));
	ck_assert_int_eq(fi_cntr_wait(c, 1, FOREVER), -FI_EAVAIL);
	cntr_fail(cntr_of(c));
	ck_assert_uint_eq(fi_cntr_readerr(c), 3);
	ck_assert_int_eq(fi_cntr_wait(c, 1, 1), -FI_ETIMEDOUT);
	cntr_fail(cntr_of(c));
	fi_cntr_add(c, 1);
	ck_assert_int_eq(fi_cntr_wait(c, 1, FOREVER), 0);
	ck_assert_int_eq(fi_close(&c->fid), 0);
}
END_TEST

START_TEST(try_wait)
{
	struct fid_cntr *c = open_cntr(FI_WAIT_FD, FI_CNTR_EVENTS_COMP);
	struct cntr *in = cntr_of(c);
	struct pollfd p = {.events = POLLIN};

	ck_assert_int_eq(fi_control(&c->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(wait_try_all(NULL, (struct fid *[]){&c->fid}, 1), 0);
		ck_assert_int_eq(poll(&p, 1, 0), 0);
		cntr_done(in, 1);
		ck_assert_int_eq(poll(&p, 1, 0), 1);
		ck_assert_int_eq(wait_try_all(NULL, (struct fid *[]){&c->fid}, 1), -FI_EAGAIN);
	}
	cntr_fail(in);
	ck_assert_int_eq(wait_try_all(NULL, (struct fid *[]){&c->fid}, 1), -FI_EAGAIN);
	ck_assert_int_eq(wait_try_all(NULL, (struct fid *[]){&c->fid}, 1), 0);
	ck_assert_int_eq(fi_close(&c->fid), 0);
}
END_TEST

#define ROUNDS 5000

struct pair {
	struct fid_cntr *mine, *other;
	int result;
};

static void *play(void *arg)
{
	struct pair *p = arg;

	for (uint64_t i = 1; i <= ROUNDS && !p->result; i++) {
		p->result = fi_cntr_wait(p->mine, i, FOREVER);
		cntr_done(cntr_of(p->other), 1);
	}
	return NULL;
}

START_TEST(ping_pong)
{
	struct fid_cntr *a = open_cntr(kinds[_i], FI_CNTR_EVENTS_COMP);
	struct fid_cntr *b = open_cntr(kinds[_i], FI_CNTR_EVENTS_COMP);
	struct pair here = {a, b, 0}, there = {b, a, 0};
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, play, &there), 0);
	cntr_done(cntr_of(a), 1);
	play(&here);
	pthread_join(thread, NULL);
	ck_assert_int_eq(here.result, 0);
	ck_assert_int_eq(there.result, 0);
	ck_assert_int_eq(fi_close(&a->fid), 0);
	ck_assert_int_eq(fi_close(&b->fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cntr_cntr");
	TCase *tcase = tcase_create("cntr");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, open_and_close);
	tcase_add_test(tcase, values);
	tcase_add_test(tcase, control);
	tcase_add_loop_test(tcase, waiting, 0, KINDS);
	tcase_add_loop_test(tcase, failures_end_the_wait, 0, KINDS);
	tcase_add_test(tcase, try_wait);
	tcase_add_loop_test(tcase, ping_pong, 0, KINDS);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
