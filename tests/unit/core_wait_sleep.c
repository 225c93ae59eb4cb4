/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that no wake-up of a sleeper is lost. */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/wait.h"
#include "suite.h"

#define FOREVER   -1 /* ms; the time limit of the test ends a lost wake-up */
#define STRESS_US 300000

static const enum fi_wait_obj sleeping_kinds[] = {FI_WAIT_FD, FI_WAIT_POLLFD, FI_WAIT_MUTEX_COND,
						  FI_WAIT_YIELD};

static bool readable(int fd, int timeout)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, timeout) == 1;
}

START_TEST(signal_before_the_sleep_counts)
{
	for (size_t i = 0; i < sizeof(sleeping_kinds) / sizeof(sleeping_kinds[0]); i++) {
		struct waiter w;
		unsigned int armed;

		ck_assert_int_eq(wait_init(&w, sleeping_kinds[i], NULL), 0);
		armed = wait_arm(&w);
		wait_notify(&w);
		ck_assert_int_eq(wait_sleep_since(&w, armed, FOREVER), 0);
		__atomic_store_n(&w.sleeping, 1, __ATOMIC_SEQ_CST);
		wait_notify(&w);
		ck_assert_int_eq(wait_sleep(&w, FOREVER), 0);
		wait_fini(&w);
	}
}
END_TEST

/* Another thread's fi_trywait drains the token that was to wake this thread too. */
START_TEST(token_taken_before_the_sleep)
{
	struct waiter w;
	unsigned int armed;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	armed = wait_arm(&w);
	wait_notify(&w);
	wait_drain(&w);
	ck_assert_int_eq(wait_sleep_since(&w, armed, FOREVER), 0);
	wait_fini(&w);
}
END_TEST

struct sleeper {
	struct waiter *w;
	int ms, result;
	pthread_t thread;
};

static void *sleep_once(void *arg)
{
	struct sleeper *s = arg;

	s->result = wait_sleep_since(s->w, wait_arm(s->w), s->ms);
	return NULL;
}

/* A notification wakes all sleepers. _i: the first one's wait times out before. */
START_TEST(all_wake)
{
	/* The other sleepers have to be asleep before the first one's wait ends. */
	const char *slower = getenv("SLOWER");
	int pace = slower ? atoi(slower) : 1;
	struct sleeper sleepers[3];
	struct waiter w;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	for (int i = 0; i < 3; i++) {
		sleepers[i] = (struct sleeper){.w = &w, .ms = i == 0 && _i ? 60 * pace : FOREVER};
		ck_assert_int_eq(
			pthread_create(&sleepers[i].thread, NULL, sleep_once, &sleepers[i]), 0);
		usleep(10000 * (useconds_t)pace);
	}
	if (!_i)
		wait_notify(&w);
	for (int i = 0; i < 3; i++) {
		pthread_join(sleepers[i].thread, NULL);
		ck_assert_int_eq(sleepers[i].result, i == 0 && _i ? -FI_EAGAIN : 0);
	}
	wait_fini(&w);
}
END_TEST

/* How else a thread may sleep, unknown to the leader. */
enum elsewhere { NOWHERE, ON_DESCRIPTOR, ON_SET, ELSEWHERES };

/*
 * Once a descriptor has woken the leader, events write no token, which would cost a system call and
 * end the next sleep. Where others may sleep, too, they still do. _i: enum elsewhere.
 */
START_TEST(awake_is_not_signalled)
{
	struct wait_set set = {
		.wait = {.evfd = 0}}; /* has a descriptor: the set's is not written */
	struct waiter w;
	int pipes[2], got;

	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	ck_assert_int_eq(wait_add_fd(&w, pipes[0]), 0);
	if (_i == ON_DESCRIPTOR)
		ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &got), 0);
	if (_i == ON_SET)
		w.set = &set;
	ck_assert_int_eq(write(pipes[1], "", 1), 1);
	ck_assert_int_eq(wait_sleep_since(&w, wait_arm(&w), FOREVER), 0);
	wait_notify(&w);
	ck_assert(readable(w.evfd, 0) == (_i != NOWHERE));
	wait_arm(&w);
	wait_notify(&w);
	ck_assert(readable(w.evfd, 0));
	w.set = NULL;
	wait_fini(&w);
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

/*
 * A thread may ask for the descriptor after its fi_trywait. Another one that slept and woke in between has disarmed, so
 * events may have come without a signal: the descriptor tells so. _i: did one sleep?
 */
START_TEST(exported_late)
{
	struct waiter w;
	int pipes[2], fd;

	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	ck_assert_int_eq(wait_add_fd(&w, pipes[0]), 0);
	wait_arm(&w);
	if (_i) {
		ck_assert_int_eq(write(pipes[1], "", 1), 1);
		ck_assert_int_eq(wait_sleep_since(&w, wait_arm(&w), FOREVER), 0);
		ck_assert_int_eq(read(pipes[0], &(char){0}, 1), 1);
		wait_notify(&w);
	}
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &fd), 0);
	ck_assert(readable(fd, 0) == _i);
	wait_arm(&w);
	wait_drain(&w);
	ck_assert_int_eq(wait_control(&w, FI_GETWAIT, &fd), 0);
	ck_assert(!readable(fd, 0));
	wait_notify(&w);
	ck_assert(readable(fd, 0));
	wait_fini(&w);
	close(pipes[0]);
	close(pipes[1]);
}
END_TEST

/* A number that threads raise and wait for. */
struct level {
	struct wait_for what;
	struct waiter *w;
	uint64_t *value;
	uint64_t want;
};

static bool level_ready(struct wait_for *what, bool arm)
{
	struct level *l = (struct level *)what;

	(void)arm;
	return __atomic_load_n(l->value, __ATOMIC_SEQ_CST) >= l->want;
}

static void raise_level(struct waiter *w, uint64_t *value)
{
	__atomic_fetch_add(value, 1, __ATOMIC_SEQ_CST);
	wait_notify(w);
}

START_TEST(time_out)
{
	for (size_t i = 0; i < sizeof(sleeping_kinds) / sizeof(sleeping_kinds[0]); i++) {
		uint64_t value = 0, start = clock_us();
		struct waiter w;
		struct level l = {.what.ready = level_ready, .w = &w, .value = &value, .want = 1};

		ck_assert_int_eq(wait_init(&w, sleeping_kinds[i], NULL), 0);
		ck_assert_int_eq(wait_until(&w, &l.what, wait_end(20)), -FI_ETIMEDOUT);
		ck_assert_uint_ge(clock_us() - start, 20000);
		ck_assert_int_eq(wait_until(&w, &l.what, wait_end(0)), -FI_ETIMEDOUT);
		value = 1;
		ck_assert_int_eq(wait_until(&w, &l.what, wait_end(0)), 0);
		wait_fini(&w);
	}
}
END_TEST

/* Raises the level just after the last check before the sleep. */
static bool publish_after_look(struct wait_for *what, bool arm)
{
	struct level *l = (struct level *)what;
	bool ready = level_ready(what, arm);

	if (arm && !ready)
		raise_level(l->w, l->value);
	return ready;
}

START_TEST(last_look)
{
	uint64_t value = 0;
	struct waiter w;
	struct level l = {.what.ready = publish_after_look, .w = &w, .value = &value, .want = 2};

	ck_assert_int_eq(wait_init(&w, sleeping_kinds[_i], NULL), 0);
	ck_assert_int_eq(wait_until(&w, &l.what, wait_end(FOREVER)), 0);
	wait_fini(&w);
}
END_TEST

struct side {
	struct waiter w;
	uint64_t value;
	struct side *other;
	int result;
	uint64_t rounds;
};

/* Waits for the next raise of its own level, then raises the other's. */
static void *play(void *arg)
{
	struct side *s = arg;

	for (uint64_t i = 1; i <= s->rounds; i++) {
		struct level l = {
			.what.ready = level_ready, .w = &s->w, .value = &s->value, .want = i};

		s->result = wait_until(&s->w, &l.what, wait_end(FOREVER));
		if (s->result)
			break;
		raise_level(&s->other->w, &s->other->value);
	}
	return NULL;
}

START_TEST(ping_pong)
{
	struct side a = {.rounds = 5000}, b = {.rounds = 5000};
	pthread_t thread;

	a.other = &b;
	b.other = &a;
	ck_assert_int_eq(wait_init(&a.w, sleeping_kinds[_i], NULL), 0);
	ck_assert_int_eq(wait_init(&b.w, sleeping_kinds[_i], NULL), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, play, &b), 0);
	raise_level(&a.w, &a.value);
	play(&a);
	pthread_join(thread, NULL);
	ck_assert_int_eq(a.result, 0);
	ck_assert_int_eq(b.result, 0);
	wait_fini(&a.w);
	wait_fini(&b.w);
}
END_TEST

#define CROWD 4
#define STEPS 2000

struct crowd {
	struct waiter w;
	uint64_t value;
	int failed;
};

struct watcher {
	struct crowd *crowd;
	uint64_t first;
};

/* Each watcher waits for levels of its own, so a wake-up has to reach all. */
static void *watch(void *arg)
{
	struct watcher *me = arg;
	struct crowd *c = me->crowd;

	for (uint64_t i = me->first; i <= STEPS; i += CROWD) {
		struct level l = {
			.what.ready = level_ready, .w = &c->w, .value = &c->value, .want = i};

		if (wait_until(&c->w, &l.what, wait_end(FOREVER)))
			__atomic_store_n(&c->failed, 1, __ATOMIC_RELAXED);
		if (me->first == 1) /* the level rises only as fast as the watchers see it */
			for (int k = 0; k < CROWD; k++)
				raise_level(&c->w, &c->value);
	}
	return NULL;
}

START_TEST(many_sleepers)
{
	struct crowd c = {.failed = 0};
	struct watcher watchers[CROWD];
	pthread_t threads[CROWD];

	ck_assert_int_eq(wait_init(&c.w, sleeping_kinds[_i], NULL), 0);
	for (int i = 0; i < CROWD; i++) {
		watchers[i] = (struct watcher){&c, (uint64_t)i + 1};
		ck_assert_int_eq(pthread_create(&threads[i], NULL, watch, &watchers[i]), 0);
	}
	raise_level(&c.w, &c.value);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!c.failed);
	wait_fini(&c.w);
}
END_TEST

/* ---- Applications that sleep on the wait object themselves ---- */

struct offload {
	struct waiter w;
	uint64_t value, seen;
	int stop;
};

static void *answer(void *arg)
{
	struct offload *n = arg;

	while (!__atomic_load_n(&n->stop, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&n->seen, __ATOMIC_ACQUIRE) == n->value)
			raise_level(&n->w, &n->value);
		else
			sched_yield();
	}
	return NULL;
}

/* As fi_trywait: arms, and returns whether nothing has come. */
static bool may_sleep(struct offload *n, uint64_t seen)
{
	wait_arm(&n->w);
	wait_drain(&n->w);
	return __atomic_load_n(&n->value, __ATOMIC_SEQ_CST) == seen;
}

static bool sleep_fd(struct offload *n, uint64_t seen)
{
	return !may_sleep(n, seen) || readable(n->w.epfd, FOREVER);
}

static bool sleep_cond(struct offload *n, uint64_t seen)
{
	int err = 0;

	pthread_mutex_lock(&n->w.mutex);
	if (may_sleep(n, seen)) {
		if (seen % 64 == 0)
			usleep(200); /* lets the signal sometimes find the mutex held */
		err = pthread_cond_wait(&n->w.cond, &n->w.mutex);
	}
	pthread_mutex_unlock(&n->w.mutex);
	return err == 0;
}

static void run_exported(enum fi_wait_obj obj, bool (*sleep)(struct offload *n, uint64_t seen))
{
	struct offload n = {.stop = 0};
	uint64_t seen = 0, end = clock_us() + STRESS_US;
	struct fi_mutex_cond object;
	pthread_t thread;

	ck_assert_int_eq(wait_init(&n.w, obj, NULL), 0);
	ck_assert_int_eq(wait_control(&n.w, FI_GETWAIT, &object), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, answer, &n), 0);
	while (clock_us() < end) {
		ck_assert_msg(sleep(&n, seen), "never woken after %lu", (unsigned long)seen);
		seen = __atomic_load_n(&n.value, __ATOMIC_SEQ_CST);
		__atomic_store_n(&n.seen, seen, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&n.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	ck_assert_uint_gt(seen, 10);
	wait_fini(&n.w);
}

START_TEST(offload_fd)
{
	run_exported(FI_WAIT_FD, sleep_fd);
}
END_TEST

START_TEST(exported_cond)
{
	run_exported(FI_WAIT_MUTEX_COND, sleep_cond);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_wait_sleep");
	TCase *plain = tcase_create("plain"), *stress = tcase_create("stress");
	int kinds_count = sizeof(sleeping_kinds) / sizeof(sleeping_kinds[0]);

	tcase_set_timeout(stress, 10);
	tcase_add_test(plain, signal_before_the_sleep_counts);
	tcase_add_test(plain, token_taken_before_the_sleep);
	tcase_add_loop_test(plain, all_wake, 0, 2);
	tcase_add_loop_test(plain, awake_is_not_signalled, 0, ELSEWHERES);
	tcase_add_loop_test(plain, exported_late, 0, 2);
	tcase_add_test(plain, time_out);
	tcase_add_loop_test(plain, last_look, 0, kinds_count - 1); /* FI_WAIT_YIELD never arms */
	tcase_add_loop_test(stress, ping_pong, 0, kinds_count);
	tcase_add_loop_test(stress, many_sleepers, 0, kinds_count);
	tcase_add_test(stress, offload_fd);
	tcase_add_test(stress, exported_cond);
	suite_add_tcase(suite, plain);
	suite_add_tcase(suite, stress);
	return suite_run(suite);
}
