/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that stand before those of an object, one a row of hook/rows_*.h. */
#ifndef WEFT_HOOK_CALL_H
#define WEFT_HOOK_CALL_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "hook/rows_atomic.h"
#include "hook/rows_data.h"
#include "hook/rows_event.h"
#include "hook/rows_object.h"
#include "hook/value.h"

/* Each call, with the subsystem of its messages. */
#define CALL_ID(result, name, ...) CALL_##name,
enum call_id {
	CALL_fi_close,
	FID_CALLS(CALL_ID, CALL_ID) FABRIC_CALLS(CALL_ID, CALL_ID) DOMAIN_CALLS(CALL_ID, CALL_ID)
		MR_CALLS(CALL_ID, CALL_ID) EP_CALLS(CALL_ID, CALL_ID) CM_CALLS(CALL_ID, CALL_ID)
			AV_CALLS(CALL_ID, CALL_ID) AV_SET_CALLS(CALL_ID, CALL_ID) MSG_CALLS(CALL_ID)
				TAGGED_CALLS(CALL_ID) RMA_CALLS(CALL_ID) ATOMIC_CALLS(CALL_ID)
					COLLECTIVE_CALLS(CALL_ID) CQ_CALLS(CALL_ID)
						EQ_CALLS(CALL_ID) CNTR_CALLS(CALL_ID)
							WAIT_CALLS(CALL_ID) POLL_CALLS(CALL_ID)
								CALL_COUNT
};
#undef CALL_ID

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
#define CALL_SHAPES(type, name, ...)                                                               \
	static const struct shape shapes_##name[] = {__VA_ARGS__,                                  \
						     {"result", CALL_SHOW((type)0), 0}};
#define CALL_SHOW(ret)                                                                             \
	_Generic((ret), const char * : SHOW_TEXT, uint64_t : SHOW_NUMBER, default : SHOW_STATUS)

#define CALL_SHAPES_DATA(type, name, table, member, parameters, arguments, moved, ...)             \
	CALL_SHAPES(type, name, __VA_ARGS__)
#define CALL_SHAPES_CALL(type, name, table, member, parameters, arguments, ...)                    \
	CALL_SHAPES(type, name, __VA_ARGS__)
#define CALL_SHAPES_OPEN(type, name, table, member, parameters, arguments, opened, ...)            \
	CALL_SHAPES(type, name, __VA_ARGS__)

/* For calls that return something in their arguments: the values are taken after the call. */
#define CALL_FUNCTION(type, name, table, member, parameters, arguments, after, ...)                \
	static __attribute__((cold)) type hooked_##name parameters                                 \
	{                                                                                          \
		struct instant began = hook_begin();                                               \
		type ret = CALL_INNER(table, member, hooked_##name)->member arguments;             \
		uint64_t values[] = {__VA_ARGS__, (uint64_t)ret};                                  \
                                                                                                   \
		hook_end(CALL_##name, began, 0, shapes_##name, values, CALL_LENGTH(values));       \
		after;                                                                             \
		return ret;                                                                        \
	}

#define CALL_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define CALL_CALL(type, name, table, member, parameters, arguments, ...)                           \
	CALL_FUNCTION(type, name, table, member, parameters, arguments, (void)0, __VA_ARGS__)
#define CALL_OPEN(type, name, table, member, parameters, arguments, opened, ...)                   \
	CALL_FUNCTION(type, name, table, member, parameters, arguments,                            \
		      hook_object(ret ? NULL : (struct fid *)(opened)), __VA_ARGS__)

/*
 * The values are taken before the call: once the operation has begun, another thread may see its
 * completion, and free what describes it.
 */
#define CALL_DATA(type, name, table, member, parameters, arguments, moved, ...)                    \
	static __attribute__((cold)) type hooked_##name parameters                                 \
	{                                                                                          \
		size_t bytes = (moved);                                                            \
		uint64_t values[] = {__VA_ARGS__, 0};                                              \
		struct instant began = hook_begin();                                               \
		type ret = CALL_INNER(table, member, hooked_##name)->member arguments;             \
                                                                                                   \
		values[CALL_LENGTH(values) - 1] = (uint64_t)ret;                                   \
		hook_end(CALL_##name, began, bytes, shapes_##name, values, CALL_LENGTH(values));   \
		return ret;                                                                        \
	}
/* The function as a member of its table. */
#define CALL_MEMBER(type, name, table, member, ...) .member = hooked_##name,

/* Tables of these functions. Members that have none are NULL. */
extern const struct fi_ops_fabric calls_fabric;
extern const struct fi_ops_domain calls_domain;
extern const struct fi_ops_mr calls_mr;
extern const struct fi_ops_ep calls_ep;
extern const struct fi_ops_cm calls_cm;
extern const struct fi_ops_av calls_av;
extern const struct fi_ops_av_set calls_av_set;
extern const struct fi_ops_msg calls_msg;
extern const struct fi_ops_tagged calls_tagged;
extern const struct fi_ops_rma calls_rma;
extern const struct fi_ops_atomic calls_atomic;
extern const struct fi_ops_collective calls_collective;
extern const struct fi_ops_cq calls_cq;
extern const struct fi_ops_eq calls_eq;
extern const struct fi_ops_cntr calls_cntr;
extern const struct fi_ops_wait calls_wait;
extern const struct fi_ops_poll calls_poll;

#endif
