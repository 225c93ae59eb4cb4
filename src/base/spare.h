/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long blocks of memory that were used and are kept for the next use: the first touch of a page
 * costs more than a copy into it, and malloc gives long blocks back to the kernel. Not locked.
 */
#ifndef WEFT_BASE_SPARE_H
#define WEFT_BASE_SPARE_H

#include <stddef.h>

#define SPARE_BLOCKS 4
#define SPARE_MIN    ((size_t)32 << 10) /* bytes of a block; shorter ones are not kept */
#define SPARE_MAX    ((size_t)8 << 20)  /* bytes of a block; longer ones are not kept */

/* All NULL: none. */
struct spare {
	void *block[SPARE_BLOCKS];
};

/* Returns memory as malloc does, of `len` bytes or more; NULL: none. */
void *spare_get(struct spare *s, size_t len);
/* Frees memory of malloc, or keeps it. The longest ones are kept. Accepts NULL. */
void spare_put(struct spare *s, void *memory);
/* Frees what is kept. */
void spare_fini(struct spare *s);

#endif
