/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short messages of a group that arrived before their operation waited for them, from members that
 * are a step ahead. This queue is faster than the queues of the group's context, which take all
 * other messages. A member's messages stay in order: nothing is put here while a message waits in
 * those queues.
 */
#ifndef WEFT_COLL_EARLY_QUEUE_H
#define WEFT_COLL_EARLY_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet;

#define EARLY_QUEUE_MESSAGES 16
#define EARLY_QUEUE_BYTES    64 /* longest payload kept */

struct early_message {
	uint64_t tag; /* as it came */
	size_t len;
	_Alignas(16) unsigned char payload[EARLY_QUEUE_BYTES];
};

struct early_queue {
	unsigned int count;
	struct early_message message[EARLY_QUEUE_MESSAGES]; /* in the order they came */
};

/* Returns false if the message is too long, needs an answer, or the queue is full. */
bool early_queue_put(struct early_queue *early, const struct packet *p);
/* Returns the oldest message of this tag, ignoring WIRE_GROUP_WHAT_MASK, or NULL. */
struct early_message *early_queue_find(struct early_queue *early, uint64_t tag);
void early_queue_drop(struct early_queue *early, struct early_message *message);

#endif
