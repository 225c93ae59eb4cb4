/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that stand before those of an object, one a row of hook/rows.h. */
#ifndef WEFT_HOOK_CALL_H
#define WEFT_HOOK_CALL_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "hook/rows.h"

/* clang-format off */
/* The tables of pointers struct fi_ops_NAME: NAME, rows, and the subsystem of their messages. fi_ops is apart: hook.c. */
#define CALL_TABLES(TABLE)                                                                         \
	TABLE(fabric, FABRIC_CALLS, LOG_FABRIC)                                                    \
	TABLE(domain, DOMAIN_CALLS, LOG_DOMAIN)                                                    \
	TABLE(mr, MR_CALLS, LOG_MR)                                                                \
	TABLE(ep, EP_CALLS, LOG_EP_CTRL)                                                           \
	TABLE(cm, CM_CALLS, LOG_EP_CTRL)                                                           \
	TABLE(av, AV_CALLS, LOG_AV)                                                                \
	TABLE(av_set, AV_SET_CALLS, LOG_AV)                                                        \
	TABLE(msg, MSG_CALLS, LOG_EP_DATA)                                                         \
	TABLE(tagged, TAGGED_CALLS, LOG_EP_DATA)                                                   \
	TABLE(rma, RMA_CALLS, LOG_EP_DATA)                                                         \
	TABLE(atomic, ATOMIC_CALLS, LOG_EP_DATA)                                                   \
	TABLE(collective, COLLECTIVE_CALLS, LOG_EP_DATA)                                           \
	TABLE(cq, CQ_CALLS, LOG_CQ)                                                                \
	TABLE(eq, EQ_CALLS, LOG_EQ)                                                                \
	TABLE(cntr, CNTR_CALLS, LOG_CNTR)                                                          \
	TABLE(wait, WAIT_CALLS, LOG_CORE)                                                          \
	TABLE(poll, POLL_CALLS, LOG_CORE)

#define CALL_ID(kind, result, name, ...) CALL_##name,
#define CALL_IDS(name, rows, subsys)     rows(CALL_ID)
enum call_id {
	FID_CALLS(CALL_ID)
	CALL_TABLES(CALL_IDS)
	CALL_COUNT
};
/* clang-format on */

/* A table of an object, and what its pointer points to instead. */
struct call_table {
	const void *inner;   /* the object's own */
	uintptr_t outer[16]; /* its size (bytes), then functions */
};

/*
 * The object's own table, for `function`, which stands before its `member`. While another thread
 * closes the object, `table` points to that already.
 */
#define CALL_INNER(table, member, function)                                                        \
	({                                                                                         \
		__typeof__(table) now =                                                            \
			__atomic_load_n(&(table), __ATOMIC_ACQUIRE); /* point_to */                \
                                                                                                   \
		now->member == (function)                                                          \
			? (__typeof__(table))LIST_ENTRY(now, struct call_table, outer)->inner      \
			: now;                                                                     \
	})

/* calls.c: the call's name, "fi_send", and the subsystem (enum log_subsys) of its messages. */
const char *calls_name(enum call_id id);
int calls_subsys(enum call_id id);

struct instant {
	uint64_t ns;     /* clock_ns() */
	uint64_t events; /* of the thread so far, if the layer perf counts some */
};

/* A call that has been made. */
struct call {
	enum call_id id;
	struct instant began, ended;
	size_t bytes; /* that it moves, unless it failed */
	size_t count; /* of values: the object first, other arguments, the result last */
	const struct shape *shapes;
	const uint64_t *values;
};

static inline const uint64_t *call_result(const struct call *call)
{
	return &call->values[call->count - 1];
}

/* Did the call return a negative error? */
static inline bool call_failed(const struct call *call)
{
	return call->shapes[call->count - 1].show == SHOW_STATUS && (int64_t)*call_result(call) < 0;
}

/* Before a call. */
struct instant hook_begin(void);
/* After the call: tells the layers. The values, `count` of them, are as in struct call. */
void hook_end(enum call_id id, struct instant began, size_t bytes, const struct shape *shapes,
	      const uint64_t *values, size_t count);
/* Wraps an object that a call has opened, or does nothing: NULL, wrapped already, out of memory. */
void hook_object(struct fid *fid);
/* The same for a queue, whose format it notes. Returns the queue. */
struct fid_cq *hook_queue(struct fid_cq *cq, const struct fi_cq_attr *attr);
/* Returns what a call has read in that format: none while another thread tries to close the queue. */
struct value_entries hook_entries(const struct fid_cq *cq, const void *buf, ssize_t count);

/* ---- A function for each row ------------------------------------------------------------------ */

/* Shapes of the values of a call. */
#define CALL_SHAPES(kind, type, name, table, member, arguments, ...)                               \
	static const struct shape shapes_##name[] = {                                              \
		ROW_SHAPES(arguments){"result", CALL_SHOW((type)0), 0}};
#define CALL_SHOW(ret)                                                                             \
	_Generic((ret), const char * : SHOW_TEXT, uint64_t : SHOW_NUMBER, default : SHOW_STATUS)

#define CALL_FUNCTION(kind, ...) CALL_FUNCTION_##kind(__VA_ARGS__)

/* For calls that return something in their arguments: the values are taken after the call. */
#define CALL_FUNCTION_CALL(type, name, table, member, arguments)                                   \
	CALL_FUNCTION_THEN(type, name, table, member, arguments, (void)0)
#define CALL_FUNCTION_OPEN(type, name, table, member, arguments, opened)                           \
	CALL_FUNCTION_THEN(type, name, table, member, arguments,                                   \
			   hook_object(ret ? NULL : (struct fid *)(opened)))
#define CALL_FUNCTION_THEN(type, name, table, member, arguments, after)                            \
	static __attribute__((cold)) type hooked_##name ROW_PARAMETERS(arguments)                  \
	{                                                                                          \
		struct instant began = hook_begin();                                               \
		type ret =                                                                         \
			CALL_INNER(table, member, hooked_##name)->member ROW_ARGUMENTS(arguments); \
		uint64_t values[] = {ROW_BITS(arguments)(uint64_t) ret};                           \
                                                                                                   \
		hook_end(CALL_##name, began, 0, shapes_##name, values, CALL_LENGTH(values));       \
		after;                                                                             \
		return ret;                                                                        \
	}

#define CALL_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/*
 * The values are taken before the call: once the operation has begun, another thread may see its
 * completion, and free what describes it.
 */
#define CALL_FUNCTION_DATA(type, name, table, member, arguments, moved)                            \
	static __attribute__((cold)) type hooked_##name ROW_PARAMETERS(arguments)                  \
	{                                                                                          \
		size_t bytes = (moved);                                                            \
		uint64_t values[] = {ROW_BITS(arguments) 0};                                       \
		struct instant began = hook_begin();                                               \
		type ret =                                                                         \
			CALL_INNER(table, member, hooked_##name)->member ROW_ARGUMENTS(arguments); \
                                                                                                   \
		values[CALL_LENGTH(values) - 1] = (uint64_t)ret;                                   \
		hook_end(CALL_##name, began, bytes, shapes_##name, values, CALL_LENGTH(values));   \
		return ret;                                                                        \
	}
/* hook.c has it. */
#define CALL_FUNCTION_CLOSE(type, name, table, member, arguments)                                  \
	static type hooked_##name ROW_PARAMETERS(arguments);
/* The function as a member of its table. */
#define CALL_MEMBER(kind, type, name, table, member, ...) .member = hooked_##name,

/* Tables of these functions, calls_NAME. Members that have none are NULL. */
#define CALL_DECLARE(name, rows, subsys) extern const struct fi_ops_##name calls_##name;
CALL_TABLES(CALL_DECLARE)

#endif
