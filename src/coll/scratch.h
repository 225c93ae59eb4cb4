/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scratch of an operation that does not fit into it. Pages that are new to the process cost more
 * than a copy into them, so the longest scratch is kept for the next operation. Domain locked.
 */
#ifndef WEFT_COLL_SCRATCH_H
#define WEFT_COLL_SCRATCH_H

#include <stddef.h>

#define SCRATCH_KEPT_MAX ((size_t)8 << 20) /* bytes; longer ones are not kept */

struct scratch {
	void *memory; /* NULL: none */
	size_t len;   /* bytes */
};

/* Fills in at least `len` bytes, of *spare if it is long enough. 0 or -FI_ENOMEM. */
int scratch_take(struct scratch *s, struct scratch *spare, size_t len);
/* Empties *s; the longer one becomes the spare one. */
void scratch_give(struct scratch *s, struct scratch *spare);

#endif
