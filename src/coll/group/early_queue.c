/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/group/group.h"

#include <string.h>

#include "link/link.h"
#include "link/wire.h"
#include "xfer/msg/rx.h"

bool early_queue_put(struct early_queue *s, const struct packet *p)
{
	struct early_message *m = &s->message[s->count];

	if (s->count == EARLY_QUEUE_MESSAGES || p->len > EARLY_QUEUE_BYTES ||
	    wire_op(p->head) != WIRE_MSG || rx_wants_ack(p->head))
		return false;
	m->tag = p->tag;
	m->len = p->len;
	if (p->len)
		memcpy(m->payload, p->payload, p->len);
	s->count++;
	return true;
}

struct early_message *early_queue_find(struct early_queue *s, uint64_t tag)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (!((s->message[i].tag ^ tag) & ~WIRE_GROUP_WHAT_MASK))
			return &s->message[i];
	return NULL;
}

void early_queue_drop(struct early_queue *s, struct early_message *m)
{
	size_t after = (size_t)(&s->message[s->count] - m) - 1;

	s->count--;
	if (after)
		memmove(m, m + 1, after * sizeof(*m));
}
