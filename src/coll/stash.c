/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/stash.h"

#include <string.h>

#include "hw/link.h"
#include "hw/wire.h"
#include "xfer/rx.h"

bool stash_put(struct stash *s, const struct packet *p)
{
	struct stashed *m = &s->message[s->count];

	if (s->count == STASH_MESSAGES || p->len > STASH_BYTES || wire_op(p->head) != WIRE_MSG ||
	    rx_owes(p->head))
		return false;
	m->tag = p->tag;
	m->len = p->len;
	if (p->len)
		memcpy(m->payload, p->payload, p->len);
	s->count++;
	return true;
}

struct stashed *stash_find(struct stash *s, uint64_t tag)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (!((s->message[i].tag ^ tag) & ~WIRE_GROUP_WHAT_MASK))
			return &s->message[i];
	return NULL;
}

void stash_drop(struct stash *s, struct stashed *m)
{
	size_t after = (size_t)(&s->message[s->count] - m) - 1;

	s->count--;
	if (after)
		memmove(m, m + 1, after * sizeof(*m));
}
