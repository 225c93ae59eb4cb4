/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_import_log: the application's callbacks replace the library's log until fi_close of the
 * imported object. Libraries import in a constructor and close in a destructor.
 */
#include "api.h"

#include <rdma/fi_ext.h>

static struct fi_provider me = {.name = "me"};
static unsigned int asked, asked_often, written;

static int enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys, uint64_t flags)
{
	(void)flags;
	(void)subsys;
	asked++;
	return prov && prov->name && level <= FI_LOG_INFO;
}

static int ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		 uint64_t flags, uint64_t *showtime)
{
	(void)prov;
	(void)level;
	(void)subsys;
	(void)flags;
	asked_often++;
	*showtime = 7;
	return 1;
}

static void write_line(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, const char *func, int line, const char *msg)
{
	(void)prov;
	(void)level;
	(void)subsys;
	(void)line;
	if (!strcmp(func, "here") && !strcmp(msg, "seven 7"))
		written++;
}

static struct fi_ops_log all = {.enabled = enabled, .ready = ready, .log = write_line};
static struct fid_logging log_all = {.ops = &all};

static int import(struct fid_logging *log)
{
	return fi_import_log(FI_VERSION(1, 13), 0, log);
}

/* Returns which callbacks are reached: bits 1 enabled, 2 ready, 4 log. */
static unsigned int reached(void)
{
	uint64_t showtime = 0;
	unsigned int bits;

	asked = asked_often = written = 0;
	fi_log_ready(&me, FI_LOG_WARN, FI_LOG_CORE, &showtime);
	bits = asked_often ? 2 : 0;
	asked = 0;
	fi_log_enabled(&me, FI_LOG_WARN, FI_LOG_CORE);
	bits |= asked ? 1 : 0;
	fi_log(&me, FI_LOG_WARN, FI_LOG_CORE, "here", 1, "seven %d", 7);
	return bits | (written ? 4 : 0);
}

/* Imports and closes repeatedly; afterwards the library's log is used again. */
static void imported_and_closed(struct api *a)
{
	(void)a;
	CHECK_EQ(reached(), 0);
	for (int i = 0; i < 3; i++) {
		OK(import(&log_all));
		CHECK_EQ(log_all.fid.fclass, FI_CLASS_LOG);
		CHECK(log_all.fid.ops && log_all.fid.ops->close);
		CHECK_EQ(reached(), 7);
		OK(fi_close(&log_all.fid));
		CHECK_EQ(reached(), 0);
	}
	CHECK(!fi_log_enabled(&me, FI_LOG_WARN, FI_LOG_CORE)); /* FI_LOG_LEVEL is not set */
}

/* Log messages of the library itself reach the callbacks. */
static void of_the_library(struct api *a)
{
	struct fi_info *info = NULL;

	(void)a;
	OK(import(&log_all));
	asked = 0;
	fi_getinfo(FI_VERSION(1, 9), NULL, NULL, 0, NULL, &info);
	fi_freeinfo(info);
	CHECK(asked);
	OK(fi_close(&log_all.fid));
}

/* A second import is refused, and leaves nothing to close. */
static void second(struct api *a)
{
	struct fi_ops_log ops = {.enabled = enabled};
	struct fid_logging log = {.ops = &ops};
	struct fid *object;

	(void)a;
	OK(import(&log_all));
	CHECK_EQ(import(&log), -FI_EALREADY);
	CHECK(!log.fid.ops);
	CHECK_EQ(import(&log_all), -FI_EALREADY);
	CHECK_EQ(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &object, NULL), -FI_EALREADY);
	CHECK_EQ(reached(), 7);
	OK(fi_close(&log_all.fid));
	OK(import(&log));
	CHECK_EQ(reached(), 1);
	OK(fi_close(&log.fid));
}

/*
 * Imports by an object made by the application: of two imports the last one counts, and closing
 * that object changes nothing.
 */
static void by_hand(struct api *a)
{
	struct fi_ops_log ops = {.size = sizeof(ops), .enabled = enabled};
	struct fid_logging log = {.fid.fclass = FI_CLASS_LOG, .ops = &ops};
	struct fid_logging first = {.fid.fclass = FI_CLASS_LOG, .ops = &all};
	struct fid wrong = {.fclass = FI_CLASS_EP}, *object;

	(void)a;
	all.size = sizeof(all);
	OK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &object, NULL));
	CHECK_EQ(fi_import_fid(object, &wrong, 0), -FI_EINVAL);
	CHECK(fi_import_fid(object, &log.fid, 1) < 0);
	ops.size = 8;
	CHECK_EQ(fi_import_fid(object, &log.fid, 0), -FI_EINVAL);
	CHECK_EQ(reached(), 0);
	ops.size = sizeof(ops);
	OK(fi_import_fid(object, &log.fid, 0));
	CHECK_EQ(reached(), 1);
	OK(fi_close(&log.fid));
	CHECK_EQ(reached(), 0);
	OK(fi_import_fid(object, &log.fid, 0));
	OK(fi_import_fid(object, &first.fid, 0));
	CHECK_EQ(reached(), 7);
	OK(fi_close(object));
	CHECK_EQ(reached(), 7);
	if (!api_other()) { /* 1.17 restores the log whichever import is closed */
		OK(fi_close(&log.fid));
		CHECK_EQ(reached(), 7);
		OK(fi_close(&first.fid));
		CHECK_EQ(reached(), 0);
	}
}

/* Each callback alone; missing ones behave as without an import. */
static void some_members(struct api *a)
{
	static struct fi_ops_log ops[] = {
		{.log = write_line}, {.ready = ready}, {.enabled = enabled}, {0}};
	static const unsigned int bits[] = {4, 2, 1, 0};

	(void)a;
	for (unsigned int i = 0; i < API_COUNT(ops); i++) {
		struct fid_logging log = {.ops = &ops[i]};
		uint64_t showtime = 0;

		OK(import(&log));
		CHECK_EQ(reached(), bits[i]);
		/* The library's own rate limit asks the callback `enabled`. */
		if (ops[i].enabled) {
			CHECK(fi_log_ready(&me, FI_LOG_WARN, FI_LOG_CORE, &showtime));
			CHECK(!fi_log_ready(&me, FI_LOG_WARN, FI_LOG_CORE, &showtime));
		}
		OK(fi_close(&log.fid));
		CHECK_EQ(reached(), 0);
	}
}

/* Runs within exit(), where destructors of other libraries close their imports. */
static void close_at_exit(void)
{
	if (reached() != 7 || fi_close(&log_all.fid) || reached() || import(&log_all) ||
	    fi_close(&log_all.fid))
		_exit(3);
	_exit(4);
}

static void at_exit(struct api *a)
{
	int status;
	pid_t pid = fork();

	(void)a;
	CHECK(pid >= 0);
	if (!pid) {
		if (import(&log_all) || atexit(close_at_exit))
			_exit(2);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 4);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"imported-and-closed", imported_and_closed, 1, {0}},
		{"of-the-library", of_the_library, 1, {0}},
		{"second", second, 1, {0}},
		{"by-hand", by_hand, 1, {0}},
		{"some-members", some_members, 1, {0}},
		{"at-exit", at_exit, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
