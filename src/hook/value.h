/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of a call, its arguments and its result, as a trace shows them. */
#ifndef WEFT_HOOK_VALUE_H
#define WEFT_HOOK_VALUE_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_eq.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/text.h"

enum show {
	SHOW_POINTER,
	SHOW_NUMBER, /* signed */
	SHOW_HEX,
	SHOW_ADDRESS,    /* fi_addr_t */
	SHOW_STATUS,     /* a count, or a negative error */
	SHOW_TEXT,       /* const char * */
	SHOW_DECODED,    /* by fi_tostr */
	SHOW_DECODED_AT, /* a pointer to what fi_tostr decodes, or NULL */
	SHOW_ENTRIES,    /* struct value_entries * */
	SHOW_NAME        /* a pointer to an address of an endpoint, in any format, or NULL */
};

/* Completions that a call has read. */
struct value_entries {
	const void *buf;
	ssize_t count; /* or a negative error */
	enum fi_cq_format format;
};

/* How a value is shown. Without a pointer, so that hundreds of them need no relocation. */
struct shape {
	char name[14];
	unsigned char show; /* enum show */
	unsigned char type; /* enum fi_type of SHOW_DECODED and SHOW_DECODED_AT */
};

/* clang-format off */
/*
 * For the rows of calls: an argument of a call is one of
 *
 *   OBJECT(type, name)                         the first: a trace shows the pointer
 *   ARGUMENT(type, name, bits, show, decoded)  a trace shows `bits` as `show` says
 *   HIDDEN(type, name)                         a trace does not show it
 *   VALUE(name, bits, show, decoded)           no argument: a trace shows it at this place
 */
#define ROW_PARAMETERS(arguments) (ROW_EACH(PARAMETER_, ROW_LIST arguments))
#define ROW_ARGUMENTS(arguments)  (ROW_EACH(PASSED_, ROW_LIST arguments))
/* Each value's shape and its bits, with a comma behind each. */
#define ROW_SHAPES(arguments) ROW_EACH(SHAPE_, ROW_LIST arguments)
#define ROW_BITS(arguments)   ROW_EACH(BITS_, ROW_LIST arguments)

#define PARAMETER_OBJECT(type, name)        type name
#define PARAMETER_ARGUMENT(type, name, ...) , type name
#define PARAMETER_HIDDEN(type, name)        , type name
#define PARAMETER_VALUE(...)

#define PASSED_OBJECT(type, name)        name
#define PASSED_ARGUMENT(type, name, ...) , name
#define PASSED_HIDDEN(type, name)        , name
#define PASSED_VALUE(...)

#define SHAPE_OBJECT(type, name)                        {#name, SHOW_POINTER, 0},
#define SHAPE_ARGUMENT(type, name, bits, show, decoded) {#name, show, decoded},
#define SHAPE_HIDDEN(...)
#define SHAPE_VALUE(name, bits, show, decoded)          {#name, show, decoded},

#define BITS_OBJECT(type, name)              (uintptr_t)(name),
#define BITS_ARGUMENT(type, name, bits, ...) (uint64_t)(bits),
#define BITS_HIDDEN(...)
#define BITS_VALUE(name, bits, ...)          (uint64_t)(bits),

/* Puts `p` in front of each argument of a list, which has up to 17. */
#define ROW_LIST(...) __VA_ARGS__
#define ROW_EACH(p, ...)                                                                                               \
	ROW_COUNTED(__VA_ARGS__, ROW_17, ROW_16, ROW_15, ROW_14, ROW_13, ROW_12, ROW_11, ROW_10, ROW_9, ROW_8,         \
		    ROW_7, ROW_6, ROW_5, ROW_4, ROW_3, ROW_2, ROW_1)(p, __VA_ARGS__)
#define ROW_COUNTED(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, each, ...) each
#define ROW_1(p, a)        p##a
#define ROW_2(p, a, ...)   p##a ROW_1(p, __VA_ARGS__)
#define ROW_3(p, a, ...)   p##a ROW_2(p, __VA_ARGS__)
#define ROW_4(p, a, ...)   p##a ROW_3(p, __VA_ARGS__)
#define ROW_5(p, a, ...)   p##a ROW_4(p, __VA_ARGS__)
#define ROW_6(p, a, ...)   p##a ROW_5(p, __VA_ARGS__)
#define ROW_7(p, a, ...)   p##a ROW_6(p, __VA_ARGS__)
#define ROW_8(p, a, ...)   p##a ROW_7(p, __VA_ARGS__)
#define ROW_9(p, a, ...)   p##a ROW_8(p, __VA_ARGS__)
#define ROW_10(p, a, ...)  p##a ROW_9(p, __VA_ARGS__)
#define ROW_11(p, a, ...)  p##a ROW_10(p, __VA_ARGS__)
#define ROW_12(p, a, ...)  p##a ROW_11(p, __VA_ARGS__)
#define ROW_13(p, a, ...)  p##a ROW_12(p, __VA_ARGS__)
#define ROW_14(p, a, ...)  p##a ROW_13(p, __VA_ARGS__)
#define ROW_15(p, a, ...)  p##a ROW_14(p, __VA_ARGS__)
#define ROW_16(p, a, ...)  p##a ROW_15(p, __VA_ARGS__)
#define ROW_17(p, a, ...)  p##a ROW_16(p, __VA_ARGS__)

#define POINTER(type, name)             ARGUMENT(type, name, (uintptr_t)(name), SHOW_POINTER, 0)
#define NUMBER(type, name)              ARGUMENT(type, name, name, SHOW_NUMBER, 0)
#define HEX(name)                       ARGUMENT(uint64_t, name, name, SHOW_HEX, 0)
#define ADDRESS(name)                   ARGUMENT(fi_addr_t, name, name, SHOW_ADDRESS, 0)
#define TEXT(name)                      ARGUMENT(const char *, name, (uintptr_t)(name), SHOW_TEXT, 0)
#define DECODED(type, name, decoded)    ARGUMENT(type, name, name, SHOW_DECODED, decoded)
#define DECODED_AT(type, name, decoded) ARGUMENT(type, name, (uintptr_t)(name), SHOW_DECODED_AT, decoded)
/* The address of an endpoint; the second: unless `none` holds after the call. */
#define ENDPOINT_NAME(type, name)     ARGUMENT(type, name, (uintptr_t)(name), SHOW_NAME, 0)
#define NAME_UNLESS(none, type, name) ARGUMENT(type, name, (uintptr_t)((none) ? NULL : (name)), SHOW_NAME, 0)
/* A member of what an argument points to, unless it is NULL. */
#define IN_AS(pointer, show, member, decoded) VALUE(member, (pointer) ? (uint64_t)(pointer)->member : 0, show, decoded)
#define IN(pointer, show, member)             IN_AS(pointer, show, member, 0)
#define DECODED_IN(pointer, member, decoded)  IN_AS(pointer, SHOW_DECODED, member, decoded)
/* clang-format on */

/* Appends the value, on one line. `bits`: the number, or the pointer. */
void value_add(struct text *t, const struct shape *shape, uint64_t bits);

/*
 * Lengths of what a call is given, before the call has judged it: arrays that are missing, or
 * longer than any provider takes, count as nothing.
 */
#define VALUE_SEGMENTS_MAX 64

static inline size_t value_bytes(const struct iovec *iov, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; iov && count <= VALUE_SEGMENTS_MAX && i < count; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

static inline size_t value_elements(const struct fi_ioc *iov, size_t count)
{
	size_t elements = 0;

	for (size_t i = 0; iov && count <= VALUE_SEGMENTS_MAX && i < count; i++)
		elements += iov[i].count;
	return elements;
}

#endif
