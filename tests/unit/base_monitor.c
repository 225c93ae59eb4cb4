/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a memory monitor of the application, imported into "mr_cache", stands in for the
 * kernel's watch: what it is asked and told, and when it may come and go.
 */
#include <check.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/watch.h"
#include "info/info.h"
#include "suite.h"

#define PAGE ((uintptr_t)sysconf(_SC_PAGESIZE))
#define NOW  FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/* ---- The application's monitor ---- */

struct monitor {
	struct fid_mem_monitor fid; /* first: the library knows this part */
	int started, subscribed;    /* calls that have not been undone */
	const void *addr;           /* arguments of the last call */
	size_t len;
	int refusal; /* result of start and subscribe */
	bool valid;
	bool tells; /* subscribe notifies of the memory before it returns */
};

static struct monitor *monitor_of(struct fid_mem_monitor *fid)
{
	return (struct monitor *)fid;
}

static int start(struct fid_mem_monitor *fid)
{
	monitor_of(fid)->started += !monitor_of(fid)->refusal;
	return monitor_of(fid)->refusal;
}

static void stop(struct fid_mem_monitor *fid)
{
	ck_assert_int_eq(monitor_of(fid)->subscribed, 0);
	monitor_of(fid)->started--;
}

static void hear(struct monitor *m, const void *addr, size_t len)
{
	ck_assert_int_eq(m->started, 1);
	m->addr = addr;
	m->len = len;
}

static int subscribe(struct fid_mem_monitor *fid, const void *addr, size_t len)
{
	struct monitor *m = monitor_of(fid);

	hear(m, addr, len);
	if (m->tells)
		m->fid.import_ops->notify(fid, addr, len);
	m->subscribed += !m->refusal;
	return m->refusal;
}

static void unsubscribe(struct fid_mem_monitor *fid, const void *addr, size_t len)
{
	hear(monitor_of(fid), addr, len);
	monitor_of(fid)->subscribed--;
}

static bool valid(struct fid_mem_monitor *fid, const void *addr, size_t len)
{
	hear(monitor_of(fid), addr, len);
	return monitor_of(fid)->valid;
}

static struct fi_ops_mem_monitor ops = {.size = sizeof(ops),
					.start = start,
					.stop = stop,
					.subscribe = subscribe,
					.unsubscribe = unsubscribe,
					.valid = valid};

static struct monitor mine, other;

static int import(struct monitor *m)
{
	return fi_import(NOW, "mr_cache", NULL, 0, 0, &m->fid.fid, NULL);
}

/* ---- The library's watch ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct watch w;
static uintptr_t from, to; /* range reported last */
static int reports;

static void changed(void *arg, uintptr_t first, uintptr_t end)
{
	ck_assert_ptr_eq(arg, &w);
	ck_assert_int_ne(pthread_mutex_trylock(&lock), 0);
	from = first;
	to = end;
	reports++;
}

static void setup(void)
{
	mine = other = (struct monitor){
		.fid = {.fid = {.fclass = FI_CLASS_MEM_MONITOR}, .export_ops = &ops}};
	w = (struct watch){.lock = &lock, .changed = changed, .arg = &w};
	reports = 0;
}

START_TEST(the_object)
{
	struct fid *cache;

	ck_assert_int_eq(fi_open(NOW, "mr_cache", NULL, 1, 0, &cache, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_open(NOW, "mr_cache", NULL, 0, 1, &cache, NULL), -FI_EBADFLAGS);
	ck_assert_int_eq(fi_open(INFO_NEWEST_API + 1, "mr_cache", NULL, 0, 0, &cache, NULL),
			 -FI_ENOSYS);
	ck_assert_int_eq(fi_open(NOW, "MR_Cache", NULL, 0, 0, &cache, NULL), 0);
	ck_assert_uint_eq(cache->fclass, FI_CLASS_MR_CACHE);
	ck_assert_int_eq(fi_import_fid(cache, &mine.fid.fid, 1), -FI_EINVAL);
	ck_assert_int_eq(fi_import_fid(cache, &mine.fid.fid, 0), 0);
	ck_assert_int_eq(fi_close(cache), 0);
	ck_assert_ptr_nonnull(mine.fid.import_ops->notify);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

START_TEST(no_monitor)
{
	struct fi_ops_mem_monitor less = ops;
	struct fid *cache;

	ck_assert_int_eq(fi_open(NOW, "mr_cache", NULL, 0, 0, &cache, NULL), 0);
	ck_assert_int_eq(fi_import_fid(cache, NULL, 0), -FI_EINVAL);
	mine.fid.fid.fclass = FI_CLASS_LOG;
	ck_assert_int_eq(import(&mine), -FI_EINVAL);
	mine.fid.fid.fclass = FI_CLASS_MEM_MONITOR;
	mine.fid.export_ops = NULL;
	ck_assert_int_eq(import(&mine), -FI_EINVAL);
	mine.fid.export_ops = &less;
	less.valid = NULL;
	ck_assert_int_eq(import(&mine), -FI_EINVAL);
	less.valid = valid;
	less.size = offsetof(struct fi_ops_mem_monitor, valid);
	ck_assert_int_eq(import(&mine), -FI_EINVAL);
	ck_assert_ptr_null(mine.fid.import_ops);
	less.size = sizeof(less);
	ck_assert_int_eq(import(&mine), 0);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

START_TEST(one_at_a_time)
{
	ck_assert_int_eq(import(&mine), 0);
	ck_assert_int_eq(import(&other), -FI_EBUSY);
	ck_assert_int_eq(watch_open(&w), 0);
	ck_assert_int_eq(mine.started, 1);
	ck_assert_int_eq(fi_close(&mine.fid.fid), -FI_EBUSY);
	watch_close(&w);
	ck_assert_int_eq(mine.started, 0);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
	ck_assert_int_eq(import(&other), 0);
	ck_assert_int_eq(watch_open(&w), 0);
	ck_assert_int_eq(mine.started, 0);
	ck_assert_int_eq(other.started, 1);
	watch_close(&w);
	ck_assert_int_eq(fi_close(&other.fid.fid), 0);
}
END_TEST

/* A watch of the kernel that is open stays what it is. */
START_TEST(too_late)
{
	ck_assert_int_eq(watch_open(&w), 0);
	ck_assert_int_eq(import(&mine), -FI_EBUSY);
	watch_close(&w);
	ck_assert_int_eq(import(&mine), 0);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

START_TEST(arguments)
{
	uintptr_t at = 16 * PAGE + 3;

	mine.valid = true;
	ck_assert_int_eq(import(&mine), 0);
	ck_assert_int_eq(watch_open(&w), 0);
	ck_assert(watch_arm(&w, at, at + 10));
	ck_assert_uint_eq((uintptr_t)mine.addr, at);
	ck_assert_uint_eq(mine.len, 10);
	ck_assert(watch_quiet(&w) && watch_valid(&w, at, at + 10));
	mine.valid = false;
	ck_assert(!watch_valid(&w, at + 1, at + 10));
	ck_assert_uint_eq(mine.len, 9);
	ck_assert_int_eq(reports, 0);
	mine.fid.import_ops->notify(&mine.fid, (void *)(at + PAGE), 1);
	ck_assert_int_eq(reports, 1);
	ck_assert_uint_eq(from, 17 * PAGE);
	ck_assert_uint_eq(to, 18 * PAGE);
	watch_leave(&w, at, at + 10);
	ck_assert_int_eq(mine.subscribed, 0);
	watch_close(&w);
	mine.fid.import_ops->notify(&mine.fid, (void *)at, 1);
	ck_assert_int_eq(reports, 1);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

/* Lengths beyond the last address mean: up to that. */
START_TEST(all_memory)
{
	ck_assert_int_eq(import(&mine), 0);
	ck_assert_int_eq(watch_open(&w), 0);
	mine.fid.import_ops->notify(&mine.fid, NULL, SIZE_MAX);
	ck_assert_uint_eq(from, 0);
	ck_assert_uint_eq(to, -PAGE);
	mine.fid.import_ops->notify(&mine.fid, (void *)(5 * PAGE + 1), SIZE_MAX - PAGE);
	ck_assert_uint_eq(from, 5 * PAGE);
	ck_assert_uint_eq(to, -PAGE);
	mine.fid.import_ops->notify(&mine.fid, (void *)-PAGE, PAGE);
	ck_assert_uint_eq(to, -PAGE);
	mine.fid.import_ops->notify(&mine.fid, (void *)PAGE, (size_t)(-3 * PAGE + 1));
	ck_assert_uint_eq(to, -PAGE);
	watch_close(&w);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

/* It refuses memory, or to start; then nothing is watched, and it may leave. */
START_TEST(it_refuses)
{
	ck_assert_int_eq(import(&mine), 0);
	mine.refusal = -FI_EPERM;
	ck_assert_int_eq(watch_open(&w), -FI_EPERM);
	mine.refusal = 0;
	ck_assert_int_eq(watch_open(&w), 0);
	mine.refusal = -FI_ENOMEM;
	ck_assert(!watch_arm(&w, PAGE, 2 * PAGE));
	watch_close(&w);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

/* No lock that notify takes is held in its functions: it may tell of changes from inside them. */
START_TEST(it_tells_from_inside)
{
	mine.tells = true;
	ck_assert_int_eq(import(&mine), 0);
	ck_assert_int_eq(watch_open(&w), 0);
	ck_assert(watch_arm(&w, PAGE, 2 * PAGE));
	ck_assert_int_eq(reports, 1);
	watch_leave(&w, PAGE, 2 * PAGE);
	watch_close(&w);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

/* A forked child has a monitor, but not its parent's watch. */
START_TEST(a_child)
{
	int status;
	pid_t pid;

	ck_assert_int_eq(import(&mine), 0);
	ck_assert_int_eq(watch_open(&w), 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		mine.fid.import_ops->notify(&mine.fid, NULL, PAGE);
		mine.started = 0;
		w = (struct watch){.lock = &lock, .changed = changed, .arg = &w};
		if (reports || watch_open(&w) || mine.started != 1)
			_exit(1);
		mine.fid.import_ops->notify(&mine.fid, NULL, PAGE);
		watch_close(&w);
		_exit(reports != 1 || fi_close(&mine.fid.fid));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	mine.fid.import_ops->notify(&mine.fid, NULL, PAGE);
	ck_assert_int_eq(reports, 1);
	watch_close(&w);
	ck_assert_int_eq(fi_close(&mine.fid.fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_monitor");
	TCase *tcase = tcase_create("monitor");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, the_object);
	tcase_add_test(tcase, no_monitor);
	tcase_add_test(tcase, one_at_a_time);
	tcase_add_test(tcase, too_late);
	tcase_add_test(tcase, arguments);
	tcase_add_test(tcase, all_memory);
	tcase_add_test(tcase, it_refuses);
	tcase_add_test(tcase, it_tells_from_inside);
	tcase_add_test(tcase, a_child);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
