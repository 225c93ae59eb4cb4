/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Elements of an atomic in separate pieces of uneven counts, with guard bytes between. Needs
 * atomic.h.
 */
#ifndef API_PIECES_H
#define API_PIECES_H

#define PIECES_ROOM 6144 /* enough bytes for the largest atomic in pieces */

struct pieces {
	unsigned char *memory; /* PIECES_ROOM bytes */
	struct fi_ioc ioc[AMO_IOV];
	size_t n, size; /* number of pieces; bytes of an element */
};

/* Returns the number of elements of piece `i`; `left` elements are left for it and later pieces. */
static inline size_t pieces_share(size_t n, size_t i, size_t left, unsigned int salt)
{
	size_t share = (salt + i * 3) % 4 + 1, after = n - i - 1;

	return !after ? left : share + after > left ? left - after : share;
}

/*
 * Lays out pieces at falling addresses. With aligned `memory`, each is `odd` bytes off alignment.
 */
static inline struct pieces pieces_in(void *memory, size_t size, size_t count, size_t n,
				      unsigned int salt)
{
	struct pieces p = {.memory = memory, .n = n, .size = size};
	unsigned int odd = salt >> 8;
	size_t at = PIECES_ROOM - 32 + odd;

	memset(memory, DATA_GUARD, PIECES_ROOM);
	for (size_t i = 0; i < n; i++) {
		size_t share = pieces_share(n, i, count, salt & 0xff);

		at -= DATA_GAP + share * size;
		p.ioc[i] = (struct fi_ioc){p.memory + at, share};
		memset(p.memory + at, DATA_EMPTY, share * size);
		count -= share;
	}
	return p;
}

/* The part of `salt` of pieces_in that moves pieces off their alignment, by up to 31 bytes. */
#define PIECES_ODD(bytes) ((bytes) << 8)

static inline struct pieces pieces_new(size_t size, size_t count, size_t n, unsigned int salt)
{
	void *memory = NULL;

	CHECK_EQ(posix_memalign(&memory, 64, PIECES_ROOM), 0);
	return pieces_in(memory, size, count, n, salt);
}

static inline void pieces_put(struct pieces *p, const void *from)
{
	const unsigned char *at = from;

	for (size_t i = 0; i < p->n; i++) {
		memcpy(p->ioc[i].addr, at, p->ioc[i].count * p->size);
		at += p->ioc[i].count * p->size;
	}
}

static inline void pieces_get(const struct pieces *p, void *to)
{
	unsigned char *at = to;

	for (size_t i = 0; i < p->n; i++) {
		memcpy(at, p->ioc[i].addr, p->ioc[i].count * p->size);
		at += p->ioc[i].count * p->size;
	}
}

/* Checks that all guard bytes are intact. */
static inline void pieces_guarded(const struct pieces *p)
{
	const unsigned char *end = p->memory + PIECES_ROOM;

	for (size_t i = 0; i < p->n; i++) {
		const unsigned char *base = p->ioc[i].addr;
		const unsigned char *behind = base + p->ioc[i].count * p->size;

		if (!data_all(behind, (size_t)(end - behind), DATA_GUARD))
			api_fail("written behind a piece");
		end = base;
	}
	if (!data_all(p->memory, (size_t)(end - p->memory), DATA_GUARD))
		api_fail("written before the pieces");
}

#endif
