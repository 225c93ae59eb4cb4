/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how wait sets wake for their members. */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/forked.h"
#include "cntr/cntr.h"
#include "core/eq.h"
#include "core/wait.h"
#include "suite.h"

#define FOREVER -1 /* ms; the time limit of the test ends a lost wake-up */

static struct fabric fabric;
static struct domain domain; /* a bare domain without workers */
static struct fid_wait *set;

static const enum fi_wait_obj kinds[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
					 FI_WAIT_MUTEX_COND, FI_WAIT_YIELD};
#define KINDS (int)(sizeof(kinds) / sizeof(kinds[0]))

static void open_set(enum fi_wait_obj obj)
{
	struct fi_wait_attr attr = {.wait_obj = obj};

	domain.fabric = &fabric;
	domain.forks = forked_count(); /* those before this process */
	ck_assert_int_eq(shard_open_main(&domain), 0);
	list_init(&domain.workers);
	list_init(&domain.queues);
	ck_assert_int_eq(wait_set_open(&fabric.fid, &attr, &set), 0);
}

static void close_set(void)
{
	ck_assert_int_eq(fi_close(&set->fid), 0);
	ck_assert_int_eq(fabric.ref, 0);
	shard_close_all(&domain);
}

static struct fid_eq *open_eq(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_SET, .wait_set = set, .flags = FI_WRITE};
	struct fid_eq *eq;

	ck_assert_int_eq(eq_open(&fabric.fid, &attr, &eq, NULL), 0);
	return eq;
}

static struct fid_cntr *open_cntr(void)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_SET, .wait_set = set};
	struct fid_cntr *c;

	ck_assert_int_eq(cntr_open(&domain.fid, &attr, &c, NULL), 0);
	return c;
}

START_TEST(open_refused)
{
	static const enum fi_wait_obj wrong[] = {FI_WAIT_NONE, FI_WAIT_SET, (enum fi_wait_obj)42};
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD, .flags = 1};

	ck_assert_int_eq(wait_set_open(&fabric.fid, NULL, &set), -FI_EINVAL);
	ck_assert_int_eq(wait_set_open(&fabric.fid, &attr, &set), -FI_EINVAL);
	for (int i = 0; i < 3; i++) {
		attr = (struct fi_wait_attr){.wait_obj = wrong[i]};
		ck_assert_int_eq(wait_set_open(&fabric.fid, &attr, &set), -FI_EINVAL);
	}
}
END_TEST

START_TEST(members)
{
	uint64_t start = clock_us();
	struct fid_cntr *c;
	struct fid_eq *eq;
	uint32_t event;
	char byte;

	open_set(kinds[_i]);
	ck_assert_int_eq(fi_wait(set, 20), -FI_ETIMEDOUT);
	ck_assert_uint_ge(clock_us() - start, 20000);
	eq = open_eq();
	c = open_cntr();
	ck_assert_int_eq(fi_close(&set->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_eq_sread(eq, &event, &byte, 1, 0, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_cntr_wait(c, 1, 0), -FI_ETIMEDOUT);
	ck_assert_int_eq(fi_wait(set, 1), -FI_ETIMEDOUT);
	ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, "x", 1, 0), 1);
	ck_assert_int_eq(fi_wait(set, FOREVER), 0);
	ck_assert_int_eq(fi_wait(set, FOREVER), 0); /* still ready: not read yet */
	ck_assert_int_eq(fi_eq_read(eq, &event, &byte, 1, 0), 1);
	ck_assert_int_eq(fi_wait(set, 1), -FI_ETIMEDOUT);
	cntr_done(cntr_of(c), 1);
	ck_assert_int_eq(fi_wait(set, FOREVER), 0);
	ck_assert_int_eq(fi_wait(set, 1), -FI_ETIMEDOUT);
	ck_assert_int_eq(fi_close(&c->fid), 0);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	close_set();
}
END_TEST

START_TEST(offload_fd)
{
	struct pollfd p = {.events = POLLIN};
	struct fid_eq *eq;
	uint32_t event;
	char byte;
	int fd;

	open_set(FI_WAIT_FD);
	eq = open_eq();
	ck_assert_int_eq(fi_control(&set->fid, FI_GETWAIT, &p.fd), 0);
	ck_assert_int_eq(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
	ck_assert_int_eq(fd, p.fd);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(wait_try_all(&fabric.fid, (struct fid *[]){&set->fid}, 1), 0);
		ck_assert_int_eq(poll(&p, 1, 0), 0);
		ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, "x", 1, 0), 1);
		ck_assert_int_eq(poll(&p, 1, 0), 1);
		ck_assert_int_eq(wait_try_all(&fabric.fid, (struct fid *[]){&set->fid}, 1),
				 -FI_EAGAIN);
		ck_assert_int_eq(fi_eq_read(eq, &event, &byte, 1, 0), 1);
	}
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	close_set();
}
END_TEST

static void *post_two(void *arg)
{
	usleep(20000); /* the reader is asleep */
	for (int i = 0; i < 2; i++)
		if (eq_post(eq_of(arg), FI_NOTIFY, "x", 1))
			abort();
	return NULL;
}

/* A thread that sleeps on a member takes the token of one that polls the set: it gives it back. */
START_TEST(reader_of_a_member)
{
	struct pollfd p = {.events = POLLIN};
	pthread_t poster;
	struct fid_eq *eq;
	uint32_t event;
	char byte;

	open_set(FI_WAIT_FD);
	eq = open_eq();
	ck_assert_int_eq(fi_control(&set->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(wait_try_all(&fabric.fid, (struct fid *[]){&set->fid}, 1), 0);
		ck_assert_int_eq(pthread_create(&poster, NULL, post_two, eq), 0);
		ck_assert_int_eq(fi_eq_sread(eq, &event, &byte, 1, FOREVER, 0), 1);
		pthread_join(poster, NULL);
		ck_assert_int_eq(poll(&p, 1, 0), 1);
		ck_assert_int_eq(wait_try_all(&fabric.fid, (struct fid *[]){&set->fid}, 1),
				 -FI_EAGAIN);
		ck_assert_int_eq(fi_eq_read(eq, &event, &byte, 1, 0), 1);
	}
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	close_set();
}
END_TEST

#define EVENTS 4000

static void *post_many(void *arg)
{
	for (int i = 0; i < EVENTS; i++) {
		if (eq_post(eq_of(arg), FI_NOTIFY, "x", 1))
			abort();
		if (i % 8 == 0)
			usleep(20); /* lets the reader fall asleep */
	}
	return NULL;
}

START_TEST(reader_and_writers)
{
	struct fid_eq *eqs[2];
	pthread_t threads[2];
	int got = 0;

	open_set(kinds[_i]);
	for (int i = 0; i < 2; i++) {
		eqs[i] = open_eq();
		ck_assert_int_eq(pthread_create(&threads[i], NULL, post_many, eqs[i]), 0);
	}
	while (got < 2 * EVENTS) {
		uint32_t event;
		char byte;

		ck_assert_int_eq(fi_wait(set, FOREVER), 0);
		got += fi_eq_read(eqs[0], &event, &byte, 1, 0) == 1;
		got += fi_eq_read(eqs[1], &event, &byte, 1, 0) == 1;
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		ck_assert_int_eq(fi_close(&eqs[i]->fid), 0);
	}
	close_set();
}
END_TEST

/* Joins the set while the other thread sleeps on the set, and gets an event later. */
static void *join_late(void *arg)
{
	struct fid_eq *eq;

	(void)arg;
	usleep(20000);
	eq = open_eq();
	usleep(20000);
	if (eq_post(eq_of(eq), FI_NOTIFY, "x", 1))
		abort();
	return eq;
}

START_TEST(late_member)
{
	pthread_t joiner;
	void *eq;

	open_set(kinds[_i]);
	ck_assert_int_eq(pthread_create(&joiner, NULL, join_late, NULL), 0);
	ck_assert_int_eq(fi_wait(set, FOREVER), 0);
	pthread_join(joiner, &eq);
	ck_assert_int_eq(fi_close(&((struct fid_eq *)eq)->fid), 0);
	close_set();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_wait_set");
	TCase *tcase = tcase_create("wait_set");

	tcase_set_timeout(tcase, 10);
	tcase_add_test(tcase, open_refused);
	tcase_add_loop_test(tcase, members, 0, KINDS);
	tcase_add_test(tcase, offload_fd);
	tcase_add_test(tcase, reader_of_a_member);
	tcase_add_loop_test(tcase, reader_and_writers, 0, KINDS);
	tcase_add_loop_test(tcase, late_member, 0, KINDS);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
