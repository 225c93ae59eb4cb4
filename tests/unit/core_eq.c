/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how event queues behave: reading, writing, sleeping, drivers. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/eq.h"
#include "suite.h"

#define FOREVER -1 /* ms; the time limit of the test ends a lost wake-up */

static struct fid_fabric *fabric;
static unsigned int rounds;

static void open_fabric(uint32_t api)
{
	struct fi_fabric_attr attr = {.name = "weft", .prov_name = "weft", .api_version = api};

	ck_assert_int_eq(fi_fabric(&attr, &fabric, NULL), 0);
}

static void setup(void)
{
	open_fabric(FI_VERSION(1, 17));
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
}

static struct fid_eq *open_eq(uint64_t flags, enum fi_wait_obj obj)
{
	struct fi_eq_attr attr = {.size = 1, .flags = flags, .wait_obj = obj};
	struct fid_eq *eq;

	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, &attr), 0);
	ck_assert_ptr_eq(eq->fid.context, &attr);
	return eq;
}

START_TEST(open_and_close)
{
	struct fi_eq_attr attr = {.flags = FI_TAGGED};
	struct fid_eq *eq;

	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, NULL), -FI_EINVAL);
	attr.flags = 0;
	attr.wait_obj = FI_WAIT_SET;
	ck_assert_int_eq(fi_eq_open(fabric, &attr, &eq, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_eq_open(fabric, NULL, &eq, NULL), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), -FI_EBUSY);
	ref_get(&eq_of(eq)->ref);
	ck_assert_int_eq(fi_close(&eq->fid), -FI_EBUSY);
	ref_put(&eq_of(eq)->ref);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(write_and_read)
{
	struct fid_eq *eq = open_eq(FI_WRITE, FI_WAIT_NONE);
	struct fi_eq_entry in = {.data = 7}, out;
	uint32_t event = 99;

	ck_assert_int_eq(fi_eq_read(eq, &event, &out, sizeof(out), 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, &in, sizeof(in), 0), sizeof(in));
	ck_assert_int_eq(fi_eq_write(eq, 1234, NULL, 0, 0), 0);
	ck_assert_int_eq(fi_eq_read(eq, &event, &out, sizeof(out) - 1, 0), -FI_ETOOSMALL);
	ck_assert_uint_eq(event, 99);
	ck_assert_int_eq(fi_eq_read(eq, &event, &out, sizeof(out), FI_PEEK), sizeof(out));
	memset(&out, 0, sizeof(out));
	ck_assert_int_eq(fi_eq_read(eq, &event, &out, sizeof(out), 0), sizeof(out));
	ck_assert_uint_eq(event, FI_NOTIFY);
	ck_assert_uint_eq(out.data, 7);
	ck_assert_int_eq(fi_eq_read(eq, &event, NULL, 0, 0), 0);
	ck_assert_uint_eq(event, 1234);
	ck_assert_int_eq(fi_eq_read(eq, &event, &out, sizeof(out), 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(write_refused)
{
	struct fid_eq *eq = open_eq(0, FI_WAIT_NONE);
	ssize_t n = 0;

	ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, "x", 1, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	eq = open_eq(FI_WRITE, FI_WAIT_NONE);
	for (int i = 0; i < 100000 && n >= 0; i++)
		n = fi_eq_write(eq, FI_NOTIFY, "x", 1, 0);
	ck_assert_int_eq(n, -FI_EAGAIN);
	/* Events of the library are still queued. */
	ck_assert_int_eq(eq_post(eq_of(eq), FI_SHUTDOWN, NULL, 0), 0);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(connection_data_is_cut)
{
	struct fid_eq *eq = open_eq(0, FI_WAIT_NONE);
	char in[sizeof(struct fi_eq_cm_entry) + 20] = {0}, out[sizeof(in)];
	uint32_t event;

	memcpy(in + sizeof(struct fi_eq_cm_entry), "abcdefgh", 8);
	ck_assert_int_eq(eq_post(eq_of(eq), FI_CONNECTED, in, sizeof(in)), 0);
	ck_assert_int_eq(fi_eq_read(eq, &event, out, 15, 0), -FI_ETOOSMALL);
	ck_assert_int_eq(fi_eq_read(eq, &event, out, 20, 0), 20);
	ck_assert_int_eq(memcmp(out + sizeof(struct fi_eq_cm_entry), "abcd", 4), 0);
	ck_assert_int_eq(fi_eq_read(eq, &event, out, sizeof(out), 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(errors_come_first)
{
	struct fid_eq *eq = open_eq(FI_WRITE, FI_WAIT_NONE);
	struct fi_eq_err_entry in = {.context = &in, .data = 3, .err = FI_ECONNREFUSED}, out = {0};
	uint32_t event;
	char c;

	ck_assert_int_eq(fi_eq_readerr(eq, &out, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, "x", 1, 0), 1);
	ck_assert_int_eq(eq_post_error(eq_of(eq), &in), 0);
	ck_assert_int_eq(fi_eq_read(eq, &event, &c, 1, 0), -FI_EAVAIL);
	ck_assert_int_eq(fi_eq_readerr(eq, &out, FI_PEEK), sizeof(out));
	memset(&out, 0, sizeof(out));
	ck_assert_int_eq(fi_eq_readerr(eq, &out, 0), sizeof(out));
	ck_assert_int_eq(out.err, FI_ECONNREFUSED);
	ck_assert_uint_eq(out.data, 3);
	ck_assert_ptr_eq(out.context, &in);
	ck_assert_uint_eq(out.err_data_size, 0);
	ck_assert_int_eq(fi_eq_readerr(eq, &out, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_eq_read(eq, &event, &c, 1, 0), 1);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

static void post_err_data(struct fid_eq *eq)
{
	struct fi_eq_err_entry in = {.err = FI_EIO, .err_data = "why", .err_data_size = 4};

	ck_assert_int_eq(eq_post_error(eq_of(eq), &in), 0);
}

START_TEST(err_data)
{
	struct fid_eq *eq = open_eq(0, FI_WAIT_NONE);
	char room[8] = "zzzzzzz";
	struct fi_eq_err_entry out = {.err_data = room, .err_data_size = 2};

	post_err_data(eq);
	post_err_data(eq);
	post_err_data(eq);
	ck_assert_int_eq(fi_eq_readerr(eq, &out, 0), sizeof(out));
	ck_assert_ptr_eq(out.err_data, room);
	ck_assert_uint_eq(out.err_data_size, 2);
	ck_assert_str_eq(room, "whzzzzz");
	out = (struct fi_eq_err_entry){.err_data = room, .err_data_size = sizeof(room)};
	ck_assert_int_eq(fi_eq_readerr(eq, &out, 0), sizeof(out));
	ck_assert_uint_eq(out.err_data_size, 4);
	ck_assert_str_eq(room, "why");
	out = (struct fi_eq_err_entry){.err_data = room};
	ck_assert_int_eq(fi_eq_readerr(eq, &out, 0), sizeof(out));
	ck_assert_ptr_ne(out.err_data, room);
	ck_assert_uint_eq(out.err_data_size, 4);
	ck_assert_str_eq(out.err_data, "why");
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(err_data_before_1_5)
{
	char room[8] = "zzzzzzz";
	struct fi_eq_err_entry out = {.err_data = room, .err_data_size = sizeof(room)};
	struct fid_fabric *fixture = fabric;
	struct fid_eq *eq;

	open_fabric(FI_VERSION(1, 4));
	eq = open_eq(0, FI_WAIT_NONE);
	post_err_data(eq);
	ck_assert_int_eq(fi_eq_readerr(eq, &out, 0), sizeof(out));
	ck_assert_str_eq(out.err_data, "why");
	ck_assert_str_eq(room, "zzzzzzz");
	ck_assert_int_eq(fi_close(&eq->fid), 0);
	ck_assert_int_eq(fi_close(&fabric->fid), 0);
	fabric = fixture;
}
END_TEST

START_TEST(text_of_errors)
{
	struct fid_eq *eq = open_eq(0, FI_WAIT_NONE);
	char buf[5];

	ck_assert_str_eq(fi_eq_strerror(eq, FI_EIO, NULL, NULL, 0), fi_strerror(FI_EIO));
	ck_assert_ptr_eq(fi_eq_strerror(eq, FI_EIO, NULL, buf, sizeof(buf)), buf);
	ck_assert_uint_eq(strlen(buf), 4);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(blocking_read)
{
	static const enum fi_wait_obj kinds[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD,
						 FI_WAIT_MUTEX_COND, FI_WAIT_YIELD};
	struct fi_eq_err_entry in = {.err = FI_EIO};
	uint64_t start = clock_us();
	uint32_t event;
	struct fid_eq *eq = open_eq(FI_WRITE, kinds[_i]);
	char c;

	ck_assert_int_eq(fi_eq_sread(eq, &event, &c, 1, 20, 0), -FI_EAGAIN);
	ck_assert_uint_ge(clock_us() - start, 20000);
	ck_assert_int_eq(fi_eq_sread(eq, &event, &c, 1, 0, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, "x", 1, 0), 1);
	ck_assert_int_eq(fi_eq_sread(eq, &event, &c, 1, -1, FI_PEEK), 1);
	ck_assert_int_eq(fi_eq_sread(eq, &event, &c, 1, FOREVER, 0), 1);
	ck_assert_int_eq(eq_post_error(eq_of(eq), &in), 0);
	ck_assert_int_eq(fi_eq_sread(eq, &event, &c, 1, -1, 0), -FI_EAVAIL);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

START_TEST(blocking_read_refused)
{
	struct fid_eq *eq = open_eq(0, FI_WAIT_NONE);
	uint32_t event;
	char c;

	ck_assert_int_eq(fi_eq_sread(eq, &event, &c, 1, 10, 0), -FI_ENOSYS);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

#define READERS 3
#define EVENTS  6000

static int lost;

static void *read_many(void *arg)
{
	struct fid_eq *eq = arg;
	uint32_t event;

	for (int i = 0; i < EVENTS / READERS; i++) {
		char c;

		if (fi_eq_sread(eq, &event, &c, 1, FOREVER, 0) != 1)
			__atomic_store_n(&lost, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

START_TEST(readers_and_a_writer)
{
	static const enum fi_wait_obj kinds[] = {FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD};
	struct fid_eq *eq = open_eq(0, kinds[_i]);
	pthread_t threads[READERS];

	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, read_many, eq), 0);
	for (int i = 0; i < EVENTS; i++) {
		ck_assert_int_eq(eq_post(eq_of(eq), FI_NOTIFY, "x", 1), 0);
		if (i % 16 == 0)
			usleep(20); /* lets the readers fall asleep */
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!lost);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

struct source {
	struct eq_driver driver;
	struct eq *eq;
	int fd;
	bool leaves; /* removes itself at its first call */
	int rounds;
};

static void source_progress(struct eq_driver *driver)
{
	struct source *s = (struct source *)driver;
	char c;

	s->rounds++;
	if (s->leaves)
		eq_del_driver(s->eq, driver);
	else if (read(s->fd, &c, 1) == 1)
		eq_post(s->eq, FI_NOTIFY, &c, 1);
}

static void *feed(void *arg)
{
	usleep(20000);
	if (write(*(int *)arg, "y", 1) != 1)
		abort();
	return NULL;
}

START_TEST(drivers)
{
	static const enum fi_wait_obj kinds[] = {FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD};
	struct fid_eq *fid = open_eq(0, kinds[_i]);
	struct eq *eq = eq_of(fid);
	struct source a = {
		.driver = {.progress = source_progress, .fd = -1}, .eq = eq, .leaves = true};
	struct source b = {.driver = {.progress = source_progress}, .eq = eq};
	pthread_t thread;
	uint32_t event;
	int ends[2];
	char c;

	ck_assert_int_eq(pipe(ends), 0);
	b.fd = b.driver.fd = ends[0];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	ck_assert_int_eq(eq_add_driver(eq, &a.driver), 0);
	ck_assert_int_eq(eq_add_driver(eq, &b.driver), 0);
	ck_assert_int_eq(fi_eq_read(fid, &event, &c, 1, 0), -FI_EAGAIN);
	ck_assert_int_eq(a.rounds, 1);
	ck_assert_int_eq(b.rounds, 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, feed, &ends[1]), 0);
	ck_assert_int_eq(fi_eq_sread(fid, &event, &c, 1, FOREVER, 0), 1);
	ck_assert_int_eq(c, 'y');
	pthread_join(thread, NULL);
	ck_assert_int_eq(a.rounds, 1);
	eq_del_driver(eq, &b.driver);
	b.rounds = 0;
	ck_assert_int_eq(fi_eq_read(fid, &event, &c, 1, 0), -FI_EAGAIN);
	ck_assert_int_eq(b.rounds, 0);
	ck_assert_int_eq(fi_close(&fid->fid), 0);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

/* eq_forget drops the events of a closed object and keeps those of others. */
START_TEST(forgotten)
{
	struct fid_eq *fid = open_eq(FI_WRITE, FI_WAIT_NONE);
	struct fid gone = {0}, stays = {0};
	struct fi_eq_cm_entry entry = {.fid = &gone};
	struct fi_eq_err_entry err = {.fid = &gone, .err = FI_EIO};
	struct eq *eq = eq_of(fid);
	uint32_t event;

	ck_assert_int_eq(eq_post(eq, FI_CONNECTED, &entry, sizeof(entry)), 0);
	ck_assert_int_eq(eq_post_error(eq, &err), 0);
	entry.fid = err.fid = &stays;
	ck_assert_int_eq(eq_post(eq, FI_SHUTDOWN, &entry, sizeof(entry)), 0);
	ck_assert_int_eq(eq_post_error(eq, &err), 0);
	entry.fid = &gone;
	ck_assert_int_eq(eq_post(eq, FI_SHUTDOWN, &entry, sizeof(entry)), 0);
	/* Events that the application wrote stay, even if they look like an event of the object. */
	ck_assert_int_eq(fi_eq_write(fid, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	ck_assert_int_eq(fi_eq_write(fid, FI_NOTIFY, &entry, 1, 0), 1);
	eq_forget(eq, &gone);
	err.err_data_size = 0;
	ck_assert_int_eq(fi_eq_readerr(fid, &err, 0), sizeof(err));
	ck_assert_ptr_eq(err.fid, &stays);
	ck_assert_int_eq(fi_eq_readerr(fid, &err, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
	ck_assert_uint_eq(event, FI_SHUTDOWN);
	ck_assert_ptr_eq(entry.fid, &stays);
	ck_assert_int_eq(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
	ck_assert_uint_eq(event, FI_NOTIFY);
	ck_assert_int_eq(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), 1);
	ck_assert_int_eq(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	ck_assert_uint_eq(eq->count, 0);
	ck_assert_int_eq(fi_close(&fid->fid), 0);
}
END_TEST

static void no_progress(struct eq_driver *driver)
{
	(void)driver;
}

/*
 * A driver's descriptor changes. A watched socket is closed and its number used again: no stale
 * wake-up.
 */
START_TEST(watched)
{
	struct fid_eq *fid = open_eq(0, FI_WAIT_FD);
	struct eq_driver a = {.progress = no_progress, .fd = -1}, b = a;
	struct eq *eq = eq_of(fid);
	struct pollfd p = {.events = POLLIN};
	int first[2], second[2], number;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, first), 0);
	ck_assert_int_eq(pipe(second), 0);
	ck_assert_int_eq(fi_control(&fid->fid, FI_GETWAIT, &p.fd), 0);
	ck_assert_int_eq(write(first[1], "x", 1), 1);
	ck_assert_int_eq(eq_add_driver(eq, &a), 0);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	eq_driver_watch(eq, &a, first[0]);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	eq_driver_watch(eq, &a, -1);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	eq_watch_end(eq, first[0]);
	ck_assert_int_eq(poll(&p, 1, 0), 0); /* readable; only the end of the connection wakes */
	ck_assert_int_eq(shutdown(first[1], SHUT_WR), 0);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	number = first[0];
	close(first[0]);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(dup2(second[0], number), number);
	b.fd = number;
	ck_assert_int_eq(eq_add_driver(eq, &b), 0);
	eq_del_driver(eq, &a);
	ck_assert_int_eq(write(second[1], "x", 1), 1);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	eq_del_driver(eq, &b);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(fi_close(&fid->fid), 0);
	close(number);
	close(first[1]);
	close(second[0]);
	close(second[1]);
}
END_TEST

static void count_progress(struct eq_driver *driver)
{
	(void)driver;
	rounds++;
}

/*
 * eq_tick: a sleeper makes progress at the shortest requested interval; the descriptor wakes as
 * well.
 */
START_TEST(ticks)
{
	struct fid_eq *fid = open_eq(0, FI_WAIT_FD);
	struct eq_driver driver = {.progress = count_progress, .fd = -1};
	struct fi_eq_entry entry;
	struct fid *fids[] = {&fid->fid};
	struct pollfd p = {.events = POLLIN};
	uint32_t event;

	rounds = 0;
	ck_assert_int_eq(eq_add_driver(eq_of(fid), &driver), 0);
	eq_tick(eq_of(fid), 100);
	eq_tick(eq_of(fid), 40);
	eq_tick(eq_of(fid), 5000);
	ck_assert_int_eq(fi_eq_sread(fid, &event, &entry, sizeof(entry), 500, 0), -FI_EAGAIN);
	ck_assert_uint_ge(rounds, 6);
	ck_assert_uint_lt(rounds, 50000); /* a busy loop would make millions */
	ck_assert_int_eq(fi_control(&fid->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 3; i++) {
		while (fi_trywait(fabric, fids, 1) != 0)
			;
		ck_assert_int_eq(poll(&p, 1, 5000), 1);
	}
	eq_del_driver(eq_of(fid), &driver);
	ck_assert_int_eq(fi_close(&fid->fid), 0);
}
END_TEST

static int wakes_within(struct fid *fid, int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (fi_trywait(fabric, &fid, 1) != 0)
		;
	return poll(&p, 1, ms);
}

/*
 * eq_rush wakes at its interval until eq_calm was called as often; then eq_tick's interval, or
 * none.
 */
START_TEST(rushes)
{
	struct fid_eq *fid = open_eq(0, FI_WAIT_FD);
	struct eq_driver driver = {.progress = count_progress, .fd = -1};
	struct eq *eq = eq_of(fid);
	int fd;

	ck_assert_int_eq(eq_add_driver(eq, &driver), 0);
	ck_assert_int_eq(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	eq_rush(eq, 30);
	eq_rush(eq, 30);
	eq_calm(eq);
	ck_assert_int_eq(wakes_within(&fid->fid, fd, 5000), 1);
	eq_calm(eq);
	ck_assert_int_eq(wakes_within(&fid->fid, fd, 150), 0);
	eq_tick(eq, 50);
	ck_assert_int_eq(wakes_within(&fid->fid, fd, 5000), 1);
	eq_rush(eq, 30);
	eq_calm(eq);
	ck_assert_int_eq(wakes_within(&fid->fid, fd, 5000), 1);
	eq_del_driver(eq, &driver);
	ck_assert_int_eq(fi_close(&fid->fid), 0);
}
END_TEST

START_TEST(try_wait)
{
	struct fid_eq *eq = open_eq(FI_WRITE, FI_WAIT_FD);
	struct fid *fids[] = {&eq->fid};
	struct pollfd p = {.events = POLLIN};
	uint32_t event;
	char c;

	ck_assert_int_eq(fi_control(&eq->fid, FI_GETWAIT, &p.fd), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(fi_trywait(fabric, fids, 1), 0);
		ck_assert_int_eq(poll(&p, 1, 0), 0);
		ck_assert_int_eq(fi_eq_write(eq, FI_NOTIFY, "x", 1, 0), 1);
		ck_assert_int_eq(poll(&p, 1, 0), 1);
		ck_assert_int_eq(fi_trywait(fabric, fids, 1), -FI_EAGAIN);
		ck_assert_int_eq(fi_eq_read(eq, &event, &c, 1, 0), 1);
	}
	fids[0] = &fabric->fid;
	ck_assert_int_eq(fi_trywait(fabric, fids, 1), -FI_EINVAL);
	ck_assert_int_eq(fi_close(&eq->fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_eq");
	TCase *tcase = tcase_create("eq");

	tcase_set_timeout(tcase, 10);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, open_and_close);
	tcase_add_test(tcase, write_and_read);
	tcase_add_test(tcase, write_refused);
	tcase_add_test(tcase, connection_data_is_cut);
	tcase_add_test(tcase, errors_come_first);
	tcase_add_test(tcase, err_data);
	tcase_add_test(tcase, err_data_before_1_5);
	tcase_add_test(tcase, text_of_errors);
	tcase_add_loop_test(tcase, blocking_read, 0, 5);
	tcase_add_test(tcase, blocking_read_refused);
	tcase_add_loop_test(tcase, readers_and_a_writer, 0, 3);
	tcase_add_loop_test(tcase, drivers, 0, 3);
	tcase_add_test(tcase, forgotten);
	tcase_add_test(tcase, watched);
	tcase_add_test(tcase, ticks);
	tcase_add_test(tcase, rushes);
	tcase_add_test(tcase, try_wait);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
