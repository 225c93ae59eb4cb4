/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions and tables of all calls, their names and subsystems. Those of struct fi_ops are in hook.c. */
#include "base/log.h"
#include "hook/call.h"

#define CALLS_TABLE(table, rows, subsys)                                                           \
	rows(CALL_SHAPES) rows(CALL_FUNCTION) const struct fi_ops_##table calls_##table = {        \
		.size = sizeof(calls_##table), rows(CALL_MEMBER)};
#define CALLS_NAME(kind, result, name, ...) [CALL_##name] = #name,
#define CALLS_NAMES(table, rows, subsys)    rows(CALLS_NAME)
#define CALLS_CASE(kind, result, name, ...) case CALL_##name:
#define CALLS_CASES(table, rows, subsys)    rows(CALLS_CASE) return subsys;

/* clang-format off */
/* cppcheck-suppress unknownMacro ; it does not expand what is pasted of a list */
CALL_TABLES(CALLS_TABLE)

/* No pointers, so that there is nothing to relocate. */
static const char calls_names[CALL_COUNT][24] = {FID_CALLS(CALLS_NAME) CALL_TABLES(CALLS_NAMES)};

const char *calls_name(enum call_id id)
{
	return calls_names[id];
}

int calls_subsys(enum call_id id)
{
	switch (id) {
	CALL_TABLES(CALLS_CASES)
	default:
		return LOG_CORE;
	}
}
/* clang-format on */
