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

/*
 * For the rows of calls: an argument of the call. Who expands the rows defines SHOWN first, as
 * SHOWN_SHAPE or as SHOWN_BITS.
 */
#define SHOWN_SHAPE(name, bits, show, type)                                                        \
	{                                                                                          \
		name, show, type                                                                   \
	}
#define SHOWN_BITS(name, bits, show, type) (uint64_t)(bits)

#define POINTER(argument)          SHOWN(#argument, (uintptr_t)(argument), SHOW_POINTER, 0)
#define TEXT(argument)             SHOWN(#argument, (uintptr_t)(argument), SHOW_TEXT, 0)
#define ENDPOINT_NAME(argument)    SHOWN(#argument, (uintptr_t)(argument), SHOW_NAME, 0)
#define NUMBER(argument)           SHOWN(#argument, argument, SHOW_NUMBER, 0)
#define HEX(argument)              SHOWN(#argument, argument, SHOW_HEX, 0)
#define ADDRESS(argument)          SHOWN(#argument, argument, SHOW_ADDRESS, 0)
#define DECODED(argument, type)    SHOWN(#argument, argument, SHOW_DECODED, type)
#define DECODED_AT(argument, type) SHOWN(#argument, (uintptr_t)(argument), SHOW_DECODED_AT, type)
#define FLAGS(argument)            DECODED(argument, FI_TYPE_OP_FLAGS)
/* An address that the call has written, unless it failed. */
#define WRITTEN_NAME(argument) SHOWN(#argument, (uintptr_t)(ret ? NULL : (argument)), SHOW_NAME, 0)
/* A member of what an argument points to, unless it is NULL. */
#define IN(pointer, show, member)                                                                  \
	SHOWN(#member, (pointer) ? (uint64_t)(pointer)->member : 0, show, 0)
#define DECODED_IN(pointer, member, type)                                                          \
	SHOWN(#member, (pointer) ? (uint64_t)(pointer)->member : 0, SHOW_DECODED, type)

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
