/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulates a group: all members run their plans in one thread, in any order. A message's buffer is
 * read when the matching receive is posted (the latest time that the contract allows), or copied
 * when sent (`eager`). Counts messages and elements, and the longest chain of dependent messages,
 * where messages of different rounds of a member depend on each other.
 */
#ifndef WEFT_TESTS_UNIT_PLAN_SIM_H
#define WEFT_TESTS_UNIT_PLAN_SIM_H

#include "coll/op.h"
#include "coll/plan/plan.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Replaces ck_assert, which writes to a file at each call: too slow for each element. */
#define SIM_CHECK(condition)                                                                       \
	do {                                                                                       \
		if (!(condition))                                                                  \
			ck_abort_msg("%s:%d: %s", __FILE__, __LINE__, #condition);                 \
	} while (0)

enum sim_order { SIM_FIFO, SIM_LIFO, SIM_ANY };

struct sim_member {
	struct plan plan;
	struct local local;        /* width 0: messages are only counted */
	size_t limit[PLAN_SPACES]; /* elements in each space */
	size_t next;               /* index of the next round */
	uint32_t pending;          /* messages of the current round that have not completed */
	uint32_t begin, clock;     /* length of the chain: at the current round's begin, and now */
	size_t sent, received;     /* elements */
	size_t sends, reduced, copied, rounds;
	bool ended;
};

struct sim_entry {
	uint32_t next, member, clock;
	bool send, eager;
	size_t count;
	char *data;
};

struct sim_channel {
	uint64_t key; /* 1 + from * size + to; 0: free */
	uint32_t head, tail;
};

struct sim {
	uint32_t size;
	bool eager;
	enum sim_order order;
	struct sim_member *member;
	uint32_t *ready, readies, first; /* members to run: a ring of `size` entries */
	struct sim_channel *channel;
	size_t channels, used; /* a power of two */
	struct sim_entry *entry;
	uint32_t entries, free;
	uint64_t random;
};

static inline uint64_t sim_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static inline void sim_open(struct sim *s, uint32_t size)
{
	*s = (struct sim){.size = size, .channels = 64, .entries = 1};
	s->member = calloc(size, sizeof(*s->member));
	s->ready = calloc(size, sizeof(*s->ready));
	s->channel = calloc(s->channels, sizeof(*s->channel));
	s->entry = calloc(1, sizeof(*s->entry));
}

static inline void sim_close(struct sim *s)
{
	free(s->member);
	free(s->ready);
	free(s->channel);
	free(s->entry);
}

static inline uint32_t sim_new_entry(struct sim *s)
{
	uint32_t i = s->free;

	if (i) {
		s->free = s->entry[i].next;
		return i;
	}
	i = s->entries++;
	if (!(i & (i - 1)))
		s->entry = realloc(s->entry, 2 * (size_t)i * sizeof(*s->entry));
	return i;
}

static inline struct sim_channel *sim_slot(struct sim *s, uint64_t key)
{
	size_t at = sim_mix(key) & (s->channels - 1);

	while (s->channel[at].key && s->channel[at].key != key)
		at = (at + 1) & (s->channels - 1);
	return &s->channel[at];
}

static inline void sim_more_channels(struct sim *s)
{
	struct sim_channel *old = s->channel;
	size_t n = s->channels;

	s->channels *= 4;
	s->channel = calloc(s->channels, sizeof(*s->channel));
	s->used = 0;
	for (size_t i = 0; i < n; i++)
		if (old[i].head) {
			*sim_slot(s, old[i].key) = old[i];
			s->used++;
		}
	free(old);
}

static inline struct sim_channel *sim_channel(struct sim *s, uint32_t from, uint32_t to)
{
	uint64_t key = 1 + (uint64_t)from * s->size + to;
	struct sim_channel *c = sim_slot(s, key);

	if (c->key)
		return c;
	if (2 * s->used >= s->channels) {
		sim_more_channels(s);
		c = sim_slot(s, key);
	}
	s->used++;
	c->key = key;
	return c;
}

static inline void sim_is_ready(struct sim *s, uint32_t member)
{
	SIM_CHECK(s->readies < s->size);
	s->ready[(s->first + s->readies++) % s->size] = member;
}

static inline uint32_t sim_take_ready(struct sim *s)
{
	uint32_t last = (s->first + s->readies - 1) % s->size, at = s->first, member;

	if (s->order == SIM_LIFO)
		at = last;
	if (s->order == SIM_ANY)
		at = (uint32_t)((s->first + sim_mix(++s->random) % s->readies) % s->size);
	member = s->ready[at];
	if (s->order == SIM_FIFO)
		s->first = (s->first + 1) % s->size;
	else
		s->ready[at] = s->ready[last];
	s->readies--;
	return member;
}

static inline void sim_complete(struct sim *s, uint32_t member)
{
	if (--s->member[member].pending == 0)
		sim_is_ready(s, member);
}

static inline void sim_match(struct sim *s, struct sim_entry *send, struct sim_entry *receive)
{
	struct sim_member *to = &s->member[receive->member];

	SIM_CHECK(send->count == receive->count);
	if (send->data && receive->data)
		memcpy(receive->data, send->data, send->count * to->local.width);
	if (send->eager)
		free(send->data);
	else
		sim_complete(s, send->member);
	if (to->clock < send->clock)
		to->clock = send->clock;
	sim_complete(s, receive->member);
}

/* Matches the channel's oldest entry of the opposite kind, or queues *e. */
static inline void sim_post(struct sim *s, uint32_t from, uint32_t to, struct sim_entry *e)
{
	struct sim_channel *c = sim_channel(s, from, to);
	uint32_t i = c->head;

	if (i && s->entry[i].send != e->send) {
		struct sim_entry other = s->entry[i];

		c->head = other.next;
		s->entry[i].next = s->free;
		s->free = i;
		sim_match(s, e->send ? e : &other, e->send ? &other : e);
		return;
	}
	i = sim_new_entry(s);
	s->entry[i] = *e;
	s->entry[i].next = 0;
	if (c->head)
		s->entry[c->tail].next = i;
	else
		c->head = i;
	c->tail = i;
}

static inline void sim_check_place(const struct sim_member *m, struct plan_place place,
				   size_t count)
{
	SIM_CHECK(place.space < PLAN_SPACES);
	SIM_CHECK(count <= m->limit[place.space]);
	SIM_CHECK(place.at <= m->limit[place.space] - count);
}

/* Checks that a receive overlaps no other message of its round. */
static inline void sim_check_messages(const struct sim_member *m, const struct plan_round *r)
{
	size_t width = m->local.width;

	for (unsigned int i = 0; i < r->messages; i++) {
		const struct plan_message *a = &r->message[i];
		const char *begin = local_at(&m->local, a->place);

		if (a->send || !a->count)
			continue;
		SIM_CHECK(a->place.space != PLAN_IN);
		for (unsigned int k = 0; k < r->messages; k++) {
			const struct plan_message *b = &r->message[k];
			const char *other = local_at(&m->local, b->place);

			SIM_CHECK(k == i || !b->count || begin + a->count * width <= other ||
				  other + b->count * width <= begin);
		}
	}
}

static inline void sim_check_locals(const struct sim_member *m, const struct plan_round *r)
{
	for (unsigned int i = 0; i < r->locals; i++) {
		const struct plan_local *l = &r->local[i];
		ptrdiff_t moved = (ptrdiff_t)l->blocks - 1;
		struct plan_place dst = l->dst, left = l->left;

		SIM_CHECK(dst.space != PLAN_IN);
		for (int last = 0; last < 2; last++) {
			sim_check_place(m, dst, l->count);
			sim_check_place(m, left, l->count);
			dst.at += (size_t)(moved * l->dst_step);
			left.at += (size_t)(moved * l->left_step);
		}
		if (l->what == PLAN_REDUCE)
			sim_check_place(m, l->right, l->count);
	}
}

static inline void sim_locals(struct sim_member *m, const struct plan_round *r)
{
	sim_check_locals(m, r);
	for (unsigned int i = 0; i < r->locals; i++)
		*(r->local[i].what == PLAN_REDUCE ? &m->reduced : &m->copied) +=
			r->local[i].count * r->local[i].blocks;
	if (m->local.width)
		local_run(&m->local, r);
}

static inline void sim_message(struct sim *s, uint32_t me, const struct plan_message *msg)
{
	struct sim_member *m = &s->member[me];
	struct sim_entry e = {.member = me, .clock = m->begin + 1, .send = msg->send};
	size_t bytes = msg->count * m->local.width;

	SIM_CHECK(msg->peer < s->size);
	SIM_CHECK(msg->peer != me);
	sim_check_place(m, msg->place, msg->count);
	e.count = msg->count;
	if (m->local.width)
		e.data = local_at(&m->local, msg->place);
	*(msg->send ? &m->sent : &m->received) += msg->count;
	m->sends += msg->send;
	if (msg->send && m->clock == m->begin)
		m->clock++; /* a round with sends adds one to the chain */
	if (s->eager && msg->send) {
		e.eager = true;
		e.data = m->local.width ? memcpy(malloc(bytes + 1), e.data, bytes) : NULL;
	}
	sim_post(s, msg->send ? me : msg->peer, msg->send ? msg->peer : me, &e);
	if (e.eager)
		sim_complete(s, me);
}

/* Ends a member's round and starts the next. */
static inline void sim_step(struct sim *s, uint32_t me)
{
	struct sim_member *m = &s->member[me];
	struct plan_round r;

	if (m->next) {
		SIM_CHECK(plan_round(&m->plan, m->next - 1, &r));
		sim_locals(m, &r);
	}
	if (!plan_round(&m->plan, m->next++, &r)) {
		SIM_CHECK(!plan_round(&m->plan, m->next, &r));
		m->rounds = m->next - 1;
		m->ended = true;
		return;
	}
	for (unsigned int i = 0; i < r.messages; i++)
		SIM_CHECK(r.message[i].send == (i < r.sends));
	if (m->local.width)
		sim_check_messages(m, &r);
	m->begin = m->clock;
	m->pending = r.messages + 1;
	for (unsigned int i = 0; i < r.messages; i++)
		sim_message(s, me, &r.message[i]);
	sim_complete(s, me);
}

/* Runs members until none is ready. */
static inline void sim_drain(struct sim *s)
{
	while (s->readies)
		sim_step(s, sim_take_ready(s));
}

/* Runs the group to its end; fails if a member waits for ever. Needs plan, local, limit of each. */
static inline void sim_run(struct sim *s)
{
	for (uint32_t i = 0; i < s->size; i++)
		if (!s->member[i].next)
			sim_is_ready(s, i);
	sim_drain(s);
	for (uint32_t i = 0; i < s->size; i++)
		if (!s->member[i].ended)
			ck_abort_msg("member %u waits in round %zu for %u messages", i,
				     s->member[i].next - 1, s->member[i].pending);
	for (size_t i = 0; i < s->channels; i++)
		if (s->channel[i].head)
			ck_abort_msg("a message of %zu elements is left over",
				     s->entry[s->channel[i].head].count);
}

#endif
