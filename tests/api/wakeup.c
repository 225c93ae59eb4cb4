/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No lost wake-ups. One process sleeps between messages that arrive at random times: in poll(2) or
 * epoll_wait(2) after fi_trywait, in fi_cq_sread, on a mutex and condition. Each message must wake
 * it within a second, times SLOWER; the first one may take longer, as it makes the connection.
 * fi_poll(3), fi_cq(3).
 */
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "obj.h"

#define MESSAGES ((int)api_times(2000))
#define LATE_MS  (1000 * (int)obj_slower())
#define LONG_LEN (200u << 10)

enum sleep { IN_POLL, IN_EPOLL, IN_SREAD, ON_COND };

struct sleeper {
	struct obj o;
	enum sleep how;
	int fd, epfd;
	int late_ms; /* maximum sleep (ms) for a message that was sent */
	struct fi_mutex_cond pair;
};

static enum fi_wait_obj kind_of(enum sleep how)
{
	return how == IN_SREAD ? FI_WAIT_UNSPEC : how == ON_COND ? FI_WAIT_MUTEX_COND : FI_WAIT_FD;
}

static void open_sleeper(struct sleeper *s, enum sleep how)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = kind_of(how)};
	int ret;

	s->how = how;
	s->late_ms = (int)(obj_late_us() / 1000);
	obj_domain(&s->o);
	ret = fi_cq_open(s->o.domain, &attr, &s->o.cq, NULL);
	if (ret && api_other())
		api_skip("no such wait object");
	OK(ret);
	s->o.av = obj_av(&s->o, FI_AV_UNSPEC, 0);
	s->o.ep = obj_ready_ep(&s->o, s->o.cq);
	if (how == ON_COND)
		OK(fi_control(&s->o.cq->fid, FI_GETWAIT, &s->pair));
	if (how == IN_POLL || how == IN_EPOLL)
		OK(fi_control(&s->o.cq->fid, FI_GETWAIT, &s->fd));
	s->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (how == IN_EPOLL)
		CHECK(epoll_ctl(s->epfd, EPOLL_CTL_ADD, s->fd, &event) == 0);
}

static struct timespec late(const struct sleeper *s)
{
	struct timespec at;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += s->late_ms / 1000;
	return at;
}

/* Sleeps in epoll_wait, which also returns after the process was stopped and continued. */
static bool sleep_in_epoll(const struct sleeper *s)
{
	struct epoll_event event;
	int n = epoll_wait(s->epfd, &event, 1, s->late_ms);

	return n == 1 || (n < 0 && errno == EINTR);
}

/* Sleeps on the native object. Returns false if the sleep lasted until the limit. */
static bool sleep_exported(struct sleeper *s)
{
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	struct timespec at = late(s);
	struct fid *fid = &s->o.cq->fid;
	bool woken = true;
	int ret;

	if (s->how == ON_COND)
		pthread_mutex_lock(s->pair.mutex);
	ret = fi_trywait(s->o.fabric, &fid, 1);
	if (ret == 0 && s->how == IN_POLL)
		woken = poll(&p, 1, s->late_ms) == 1;
	else if (ret == 0 && s->how == IN_EPOLL)
		woken = sleep_in_epoll(s);
	else if (ret == 0)
		woken = pthread_cond_timedwait(s->pair.cond, s->pair.mutex, &at) == 0;
	else
		CHECK_EQ(ret, -FI_EAGAIN);
	if (s->how == ON_COND)
		pthread_mutex_unlock(s->pair.mutex);
	return woken;
}

/* Waits for the next completion. */
static void await(struct sleeper *s, const void *context)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	if (s->how == IN_SREAD) {
		ret = fi_cq_sread(s->o.cq, &e, 1, NULL, s->late_ms);
	} else {
		bool woken = true;

		while ((ret = fi_cq_read(s->o.cq, &e, 1)) == -FI_EAGAIN && woken)
			woken = sleep_exported(s);
	}
	if (ret == -FI_EAGAIN)
		api_fail("asleep for long with a message on its way: a wake-up was lost");
	if (ret != 1)
		obj_cq_failed(s->o.cq, ret);
	CHECK(e.op_context == context);
	s->late_ms = LATE_MS;
}

/* Pauses: mostly too short to fall asleep, now and then long enough. */
static void pause_at_random(unsigned int *seed)
{
	unsigned int kind = (unsigned int)rand_r(seed) % 100;

	if (kind < 40)
		obj_sleep_us((unsigned int)rand_r(seed) % 300);
	else if (kind < 60)
		obj_sleep_us((unsigned int)rand_r(seed) % 3000);
	else if (kind < 62)
		obj_sleep_us((unsigned int)rand_r(seed) % 20000);
}

/* Messages carry the time of sending. */
static void send_all(struct sleeper *s, fi_addr_t peer, size_t len)
{
	uint64_t *buf = calloc(1, len);
	unsigned int seed = 20240611;

	for (int n = 0; n < MESSAGES; n++) {
		pause_at_random(&seed);
		buf[0] = obj_now_us();
		POST(s->o.cq, fi_tsend(s->o.ep, buf, len, NULL, peer, (uint64_t)n, buf));
		await(s, buf);
	}
	free(buf);
}

static void receive_all(struct sleeper *s, size_t len)
{
	uint64_t *buf = calloc(1, len), worst = 0, start = obj_now_us(), cpu = obj_cpu_us();

	for (int n = 0; n < MESSAGES; n++) {
		uint64_t took;

		OK(fi_trecv(s->o.ep, buf, len, NULL, FI_ADDR_UNSPEC, (uint64_t)n, 0, buf));
		await(s, buf);
		took = obj_now_us() - buf[0];
		if (n && took > worst)
			worst = took;
	}
	printf("  worst of %d: %" PRIu64 " us; CPU %" PRIu64 " of %" PRIu64 " ms\n", MESSAGES,
	       worst, (obj_cpu_us() - cpu) / 1000, (obj_now_us() - start) / 1000);
	CHECK(worst < (uint64_t)LATE_MS * 1000);
	free(buf);
}

static void run(struct api *a, enum sleep how, size_t len)
{
	struct sleeper s = {0};
	fi_addr_t peer;

	obj_time_limit(40);
	open_sleeper(&s, how);
	obj_progress(a, s.o.cq);
	peer = obj_swap(a, s.o.ep, s.o.av);
	if (a->rank == 0)
		send_all(&s, peer, len);
	else
		receive_all(&s, len);
	api_meet(a);
	close(s.epfd);
	obj_close(&s.o);
}

static void poll_small(struct api *a)
{
	run(a, IN_POLL, 64);
}

static void poll_long(struct api *a)
{
	run(a, IN_POLL, LONG_LEN);
}

static void epoll_small(struct api *a)
{
	run(a, IN_EPOLL, 64);
}

static void sread_small(struct api *a)
{
	run(a, IN_SREAD, 64);
}

static void sread_long(struct api *a)
{
	run(a, IN_SREAD, LONG_LEN);
}

static void cond_small(struct api *a)
{
	run(a, ON_COND, 64);
}

static void cond_long(struct api *a)
{
	run(a, ON_COND, LONG_LEN);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"poll_small", poll_small, 2, {0}},
		{"poll_long", poll_long, 2, {0}},
		{"epoll_small", epoll_small, 2, {0}},
		{"sread_small", sread_small, 2, {0}},
		{"sread_long", sread_long, 2, {0}},
		{"cond_small", cond_small, 2, {0}},
		{"cond_long", cond_long, 2, {0}},
		{"streamed_long", poll_long, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
