/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/forked.h"
#include "base/log.h"
#include "base/text.h"
#include "hook/layers.h"

/*
 * The file of a trace: an array of the events of Chrome's trace event format, as Perfetto reads it.
 * Each event is written over the end of the array, with a new end, by one system call: the file is
 * complete after each, however the process ends.
 */
static const char end_of_array[] = "\n]\n";

/* Guarded by FORKED_TRACE. */
static struct {
	int fd;      /* -1: none */
	bool opened; /* by this process, or it could not be */
	off_t end;   /* where end_of_array is */
} file = {.fd = -1};

/* Used with FORKED_TRACE held. Not on stacks: those of an application's threads may be short. */
static struct {
	char event[16384];
	char value[4096];
	char path[4096];
} room;

/* ---- JSON ------------------------------------------------------------------------------------- */

/* Microseconds, whatever the locale. */
static void add_us(struct text *t, const char *name, uint64_t ns)
{
	text_add(t, ",\"%s\":%llu.%03u", name, (unsigned long long)(ns / 1000),
		 (unsigned int)(ns % 1000));
}

static void trace_file_add_string(struct text *t, const char *string)
{
	text_add(t, "\"");
	for (; *string; string++) {
		unsigned char c = (unsigned char)*string;

		if (c == '"' || c == '\\')
			text_add(t, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			text_add(t, "\\u%04x", c);
		else
			text_add(t, "%c", c);
	}
	text_add(t, "\"");
}

static void trace_file_add_member(struct text *t, const struct shape *shape, uint64_t bits)
{
	struct text value;

	text_init(&value, room.value, sizeof(room.value));
	value_add(&value, shape, bits);
	trace_file_add_string(t, shape->name);
	text_add(t, ":");
	if (shape->show == SHOW_NUMBER)
		text_add(t, "%s", room.value);
	else
		trace_file_add_string(t, room.value);
}

/* Writes {"name":value,...}, or nothing but {} if that is too long. */
static void add_values(struct text *t, const struct call *call)
{
	size_t before = t->len;

	for (size_t i = 0; i < call->count; i++) {
		text_add(t, i ? "," : "{");
		trace_file_add_member(t, &call->shapes[i], call->values[i]);
	}
	text_add(t, "}");
	if (t->size - t->len < sizeof("}") + sizeof(end_of_array)) {
		t->len = before;
		text_add(t, "{}");
	}
}

/* ---- The file --------------------------------------------------------------------------------- */

/* Writes over the end of the array. Ends the file's use if that fails. */
static void trace_file_put(const char *event, size_t len)
{
	ssize_t n = file_write_at(file.fd, event, len, file.end);

	if (n == (ssize_t)len) {
		file.end += (off_t)(len - strlen(end_of_array));
		return;
	}
	LOG_WARN(LOG_CORE, "FI_WEFT_TRACE_FILE: the trace ends, %zd of %zu bytes were written: %s",
		 n, len, n < 0 ? strerror(errno) : "no space");
	if (file_write_at(file.fd, end_of_array, strlen(end_of_array), file.end) > 0)
		(void)!file_resize(file.fd, file.end + (off_t)strlen(end_of_array));
	forked_close(file.fd);
	file.fd = -1;
}

static void put_head(void)
{
	char head[512];
	struct text t;

	text_init(&t, head, sizeof(head));
	text_add(&t, "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":",
		 (int)getpid());
	trace_file_add_string(&t, program_invocation_short_name);
	text_add(&t, "}}%s", end_of_array);
	trace_file_put(head, t.len);
}

/* A new file, whatever had its name: that may be another user's, or a pipe that nobody reads. */
static int trace_file_create(const char *path)
{
	int fd, err;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return LOG_REFUSE(-1, LOG_CORE, "FI_WEFT_TRACE_FILE: %s: %s", path,
				  strerror(errno));
	err = forked_guard(fd);
	if (!err)
		return fd;
	close(fd);
	return -1;
}

static void trace_file_open_file(void)
{
	file.opened = true;
	if (getauxval(AT_SECURE)) {
		LOG_WARN(LOG_CORE, "no FI_WEFT_TRACE_FILE: the program runs with raised rights");
		return;
	}
	if (snprintf(room.path, sizeof(room.path), "%s.%d.json", env_get()->trace_file,
		     (int)getpid()) >= (int)sizeof(room.path)) {
		LOG_WARN(LOG_CORE, "FI_WEFT_TRACE_FILE: the name is too long: %.60s...", room.path);
		return;
	}
	file.fd = trace_file_create(room.path);
	file.end = 0;
	if (file.fd >= 0)
		put_head();
}

/* The child gets a file of its own; base/forked closes the parent's. */
static void trace_file_in_child(void)
{
	file.fd = -1;
	file.opened = false;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, trace_file_in_child);
}

static void put_call(const struct call *call)
{
	struct text t;

	text_init(&t, room.event, sizeof(room.event));
	text_add(&t, ",\n{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d",
		 calls_name(call->id), log_subsys_name(calls_subsys(call->id)), (int)getpid(),
		 (int)gettid());
	add_us(&t, "ts", call->began.ns);
	add_us(&t, "dur", call->ended.ns - call->began.ns);
	text_add(&t, ",\"args\":");
	add_values(&t, call);
	text_add(&t, "}%s", end_of_array);
	trace_file_put(room.event, t.len);
}

static void trace_file_add(const struct call *call)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int kept = errno;

	if (!env_get()->trace_file)
		return;
	pthread_once(&once, watch_forks);
	forked_take(FORKED_TRACE);
	if (!file.opened)
		trace_file_open_file();
	if (file.fd >= 0)
		put_call(call);
	forked_give(FORKED_TRACE);
	errno = kept;
}

/* ---- The log ---------------------------------------------------------------------------------- */

#define PROV       "ofi_hook_trace"
#define LINE_BYTES 6144

/* "cq 0x..., buf 0x..., count 1 = -11 (...), 210 ns". The line is on no stack: that may be short. */
static void log_line(const struct call *call)
{
	struct log_place place = {PROV, FI_LOG_TRACE, calls_subsys(call->id), calls_name(call->id),
				  __LINE__};
	size_t arguments = call->count - 1;
	char *line = malloc(LINE_BYTES);
	struct text t;

	if (!line)
		return;
	text_init(&t, line, LINE_BYTES);
	for (size_t i = 0; i < arguments; i++) {
		text_add(&t, "%s%s ", i ? ", " : "", call->shapes[i].name);
		value_add(&t, &call->shapes[i], call->values[i]);
	}
	text_add(&t, " = ");
	value_add(&t, &call->shapes[arguments], call->values[arguments]);
	text_add(&t, ", %llu ns", (unsigned long long)(call->ended.ns - call->began.ns));
	log_write(&place, "%s", line);
	free(line);
}

/* A call of the function that writes the application's log is not shown. */
static __thread bool showing;

static void trace_show(const struct call *call)
{
	showing = true;
	if (log_allowed(PROV, FI_LOG_TRACE, calls_subsys(call->id)))
		log_line(call);
	trace_file_add(call);
	showing = false;
}

/*
 * A thread that polls makes the same call millions of times, to no effect. The first of them is
 * shown, and the others as one, when the thread makes another call.
 */
static __thread struct {
	struct call call; /* began: the first that was not shown; values: below */
	uint64_t object, times, result;
	bool polls; /* the last call had no effect */
} last;

static bool has_no_effect(const struct call *call)
{
	switch (call->shapes[call->count - 1].show) {
	case SHOW_NUMBER: /* a counter's value */
		return true;
	case SHOW_STATUS:
		return (int64_t)*call_result(call) == -FI_EAGAIN;
	default:
		return false;
	}
}

static bool trace_repeats(const struct call *call)
{
	return last.polls && call->id == last.call.id && call->values[0] == last.object &&
	       *call_result(call) == last.result;
}

static void show_last(void)
{
	struct call call = last.call;
	struct shape shapes[3] = {
		call.shapes[0], {"times", SHOW_NUMBER, 0}, call.shapes[call.count - 1]};
	uint64_t values[3] = {last.object, last.times, last.result};

	last.times = 0;
	call.shapes = shapes;
	call.values = values;
	call.count = 3;
	trace_show(&call);
}

void trace_call(const struct call *call)
{
	if (showing)
		return;
	if (trace_repeats(call)) {
		if (!last.times++)
			last.call.began = call->began;
		last.call.ended = call->ended;
		return;
	}
	if (last.times)
		show_last();
	last.call = *call;
	last.object = call->values[0];
	last.result = *call_result(call);
	last.polls = has_no_effect(call);
	trace_show(call);
}
