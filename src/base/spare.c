/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pool.h"

#include <malloc.h>
#include <stdlib.h>

/* Returns the place of the shortest block of at least `len` bytes, or NULL. An empty place has 0. */
static void **spare_shortest(struct spare *s, size_t len)
{
	void **best = NULL;

	for (void **at = s->block; at < s->block + SPARE_BLOCKS; at++)
		if (malloc_usable_size(*at) >= len &&
		    (!best || malloc_usable_size(*at) < malloc_usable_size(*best)))
			best = at;
	return best;
}

void *spare_get(struct spare *s, size_t len)
{
	void **at = len < SPARE_MIN ? NULL : spare_shortest(s, len);
	void *memory = at ? *at : NULL;

	if (!memory)
		return malloc(len);
	*at = NULL;
	return memory;
}

void spare_put(struct spare *s, void *memory)
{
	size_t len = malloc_usable_size(memory);
	void **at = len < SPARE_MIN || len > SPARE_MAX ? NULL : spare_shortest(s, 0);

	if (at && malloc_usable_size(*at) < len) {
		void *kept = *at;

		*at = memory;
		memory = kept;
	}
	free(memory);
}

void spare_fini(struct spare *s)
{
	for (unsigned int i = 0; i < SPARE_BLOCKS; i++)
		free(s->block[i]);
	*s = (struct spare){{NULL}};
}
