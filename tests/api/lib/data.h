/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers with a test pattern and guard bytes around each piece. Needs api.h. */
#ifndef API_DATA_H
#define API_DATA_H

#include <sys/uio.h>

#define DATA_GUARD 0xa5
#define DATA_EMPTY 0x5a
#define DATA_GAP   32 /* bytes between pieces */
#define DATA_IOV   16

/* Byte `at` of message `seed`. Differs between neighbours, pages and messages. */
static inline unsigned char data_byte(unsigned int seed, size_t at)
{
	return (unsigned char)(seed * 151 + at * 7 + (at >> 8) * 13 + (at >> 16) * 29);
}

static inline void data_fill(void *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)buf)[i] = data_byte(seed, i);
}

static inline void data_check_at(const void *buf, size_t len, unsigned int seed, size_t from)
{
	const unsigned char *b = buf;
	char line[128];

	for (size_t i = 0; i < len; i++)
		if (b[i] != data_byte(seed, from + i)) {
			snprintf(line, sizeof(line), "byte %zu of message %u is %#x, wanted %#x",
				 from + i, seed, b[i], data_byte(seed, from + i));
			api_fail(line);
		}
}

static inline void data_check(const void *buf, size_t len, unsigned int seed)
{
	data_check_at(buf, len, seed, 0);
}

static inline bool data_all(const void *buf, size_t len, unsigned char value)
{
	const unsigned char *b = buf;

	for (size_t i = 0; i < len; i++)
		if (b[i] != value)
			return false;
	return true;
}

/* A buffer of `count` separate pieces, at falling addresses. */
struct data {
	struct iovec iov[DATA_IOV];
	size_t count;
	size_t len;
	unsigned char *memory;
	size_t total;
};

/* Returns the length of piece `i`. Lengths are uneven; the second and the last but one are 0. */
static inline size_t data_share(size_t len, size_t count, size_t i, size_t left)
{
	size_t share = len / count + i * 3 + 1;

	if (i + 1 == count)
		return left;
	if (count > 2 && (i == 1 || i + 2 == count))
		return 0;
	return share < left ? share : left;
}

static inline struct data data_new(size_t len, size_t count)
{
	struct data d = {.count = count, .len = len, .total = len + (count + 1) * DATA_GAP + 1};
	unsigned char *at;
	size_t left = len;

	d.memory = malloc(d.total);
	if (!d.memory)
		api_fail("no memory");
	memset(d.memory, DATA_GUARD, d.total);
	at = d.memory + d.total;
	for (size_t i = 0; i < count; i++) {
		size_t share = data_share(len, count, i, left);

		at -= DATA_GAP + share;
		d.iov[i] = (struct iovec){at, share};
		memset(at, DATA_EMPTY, share);
		left -= share;
	}
	return d;
}

static inline struct data data_full(size_t len, size_t count, unsigned int seed)
{
	struct data d = data_new(len, count);
	size_t from = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < d.iov[i].iov_len; j++)
			((unsigned char *)d.iov[i].iov_base)[j] = data_byte(seed, from + j);
		from += d.iov[i].iov_len;
	}
	return d;
}

static inline void *data_at(const struct data *d)
{
	return d->iov[0].iov_base;
}

/*
 * Checks that the first `len` bytes hold message `seed`, that the rest is DATA_EMPTY, and that all
 * guard bytes are intact.
 */
static inline void data_expect(const struct data *d, size_t len, unsigned int seed)
{
	const unsigned char *at = d->memory + d->total;
	size_t from = 0;

	for (size_t i = 0; i < d->count; i++) {
		const unsigned char *base = d->iov[i].iov_base;
		size_t room = d->iov[i].iov_len, here = len - from < room ? len - from : room;

		if (!data_all(base + room, (size_t)(at - base) - room, DATA_GUARD))
			api_fail("written behind a buffer");
		data_check_at(base, here, seed, from);
		if (!data_all(base + here, room - here, DATA_EMPTY))
			api_fail("written behind the message");
		from += here;
		at = base;
	}
	if (!data_all(d->memory, (size_t)(at - d->memory), DATA_GUARD))
		api_fail("written before a buffer");
}

static inline void data_free(struct data *d)
{
	free(d->memory);
	d->memory = NULL;
}

#define DATA_EXPECT(d, len, seed)                                                                  \
	do {                                                                                       \
		api_at(__FILE__, __LINE__);                                                        \
		data_expect(d, len, seed);                                                         \
	} while (0)

#endif
