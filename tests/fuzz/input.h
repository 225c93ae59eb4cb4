/* SPDX-License-Identifier: BSD-2-Clause */
/* The fuzzer's input, read as a sequence of choices; after its end every choice is 0. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct input {
	const uint8_t *at;
	size_t left;
};

/* Aborts unless the condition holds: it must, for every input. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Reads up to `len` bytes, fills the rest of *to with 0. Returns the number of bytes read. */
static inline size_t take(struct input *in, void *to, size_t len)
{
	size_t n = len < in->left ? len : in->left;

	memset(to, 0, len);
	if (n)
		memcpy(to, in->at, n);
	in->at += n;
	in->left -= n;
	return n;
}

static inline uint8_t take8(struct input *in)
{
	uint8_t v;

	take(in, &v, sizeof(v));
	return v;
}

static inline uint16_t take16(struct input *in)
{
	uint16_t v;

	take(in, &v, sizeof(v));
	return v;
}

static inline uint32_t take32(struct input *in)
{
	uint32_t v;

	take(in, &v, sizeof(v));
	return v;
}

static inline uint64_t take64(struct input *in)
{
	uint64_t v;

	take(in, &v, sizeof(v));
	return v;
}

#define CHOOSE(in, table) (table)[take8(in) % (sizeof(table) / sizeof((table)[0]))]

/* Returns a field's value: small, the endpoint's own (`ours`), or any. */
static inline uint64_t word(struct input *in, uint64_t ours)
{
	switch (take8(in) % 4) {
	case 0:
		return take8(in);
	case 1:
		return ours;
	case 2:
		return take32(in);
	default:
		return take64(in);
	}
}

#endif
