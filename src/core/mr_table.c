/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "core/mr_share.h"
#include "core/mr_table.h"

/*
 * Layout of a key chosen by the library:
 *
 *	63   62       52 51       32 31                  0
 *	0  | generation | slot      | more of generation
 *	1  | generation | slot      | key that a network device has for the region
 *
 * A released slot goes to the end of a queue that is kept at least REST long. So a key is not soon
 * used again, even after its generation has wrapped.
 */
#define GEN_SHIFT (MR_SLOT_SHIFT + MR_SLOT_BITS)
#define SLOT_MASK ((1u << MR_SLOT_BITS) - 1)
#define REST      64
#define IN_NIC    (UINT64_C(1) << 63)

#define NO_SLOT UINT32_MAX

struct slot {
	struct region *region; /* NULL: free slot */
	uint64_t generation;   /* of the slot's region, or of its next one */
	uint32_t next;         /* next in the queue of free slots */
};

struct mr_table {
	struct slot *slots;
	uint32_t count, capacity;
	uint32_t oldest, newest; /* ends of the queue of free slots */
	uint32_t resting;        /* length of the queue */
	struct region **buckets; /* heads by hash of the key; bucket_count is a power of two */
	uint32_t bucket_count;
	uint32_t used;    /* regions in the table */
	bool chosen_here; /* the library chooses keys: no hash needed */
};

int mr_table_open(struct domain *dom)
{
	struct mr_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -FI_ENOMEM;
	t->oldest = t->newest = NO_SLOT;
	dom->mrs = t;
	if (!dom->device_ops)
		mr_share_open(dom);
	return 0;
}

void mr_table_close(struct domain *dom)
{
	struct mr_table *t = dom->mrs;

	if (!t)
		return;
	mr_share_close(dom);
	free(t->slots);
	free(t->buckets);
	free(t);
	dom->mrs = NULL;
}

static bool grow_slots(struct mr_table *t)
{
	uint32_t capacity = t->capacity ? t->capacity * 2 : 64;
	struct slot *slots;

	if (t->capacity > SLOT_MASK)
		return false;
	slots = realloc(t->slots, capacity * sizeof(*slots));
	if (!slots)
		return false;
	t->slots = slots;
	t->capacity = capacity;
	return true;
}

static uint32_t rested_slot(struct mr_table *t)
{
	uint32_t slot = t->oldest;

	if (slot == NO_SLOT)
		return NO_SLOT;
	t->oldest = t->slots[slot].next;
	if (t->oldest == NO_SLOT)
		t->newest = NO_SLOT;
	t->resting--;
	return slot;
}

static uint32_t take_slot(struct mr_table *t)
{
	if (t->resting > REST)
		return rested_slot(t);
	if (t->count == t->capacity && !grow_slots(t))
		return rested_slot(t);
	t->slots[t->count] = (struct slot){.generation = 1};
	return t->count++;
}

static void rest_slot(struct mr_table *t, uint32_t slot)
{
	struct slot *s = &t->slots[slot];

	s->region = NULL;
	s->generation++;
	s->next = NO_SLOT;
	if (t->newest == NO_SLOT)
		t->oldest = slot;
	else
		t->slots[t->newest].next = slot;
	t->newest = slot;
	t->resting++;
}

static uint64_t key_of(const struct mr *mr, uint32_t slot, uint64_t generation)
{
	uint64_t top = generation << GEN_SHIFT & ~IN_NIC,
		 rest = (generation >> (63 - GEN_SHIFT)) & UINT32_MAX;

	if (mr->handle)
		return IN_NIC | top | (uint64_t)slot << MR_SLOT_SHIFT | mr->rkey;
	return top | (uint64_t)slot << MR_SLOT_SHIFT | rest;
}

static struct region **bucket(const struct mr_table *t, uint64_t key)
{
	return &t->buckets[(key * 0x9e3779b97f4a7c15ULL >> 32) & (t->bucket_count - 1)];
}

/*
 * Keeps chains short: as many buckets as regions. Out of memory, chains get longer instead. false:
 * there are no buckets at all.
 */
static bool grow_buckets(struct mr_table *t)
{
	uint32_t old_count = t->bucket_count, count = old_count ? old_count * 2 : 64;
	struct region **old = t->buckets, **buckets;

	if (t->used < old_count)
		return true;
	buckets = calloc(count, sizeof(*buckets));
	if (!buckets)
		return old != NULL;
	t->buckets = buckets;
	t->bucket_count = count;
	for (uint32_t i = 0; i < old_count; i++) {
		for (struct region *r = old[i], *next; r; r = next) {
			struct region **head = bucket(t, r->mr.fid.key);

			next = r->next;
			r->next = *head;
			*head = r;
		}
	}
	free(old);
	return true;
}

static struct region *find_hashed(const struct mr_table *t, uint64_t key)
{
	struct region *r = t->bucket_count ? *bucket(t, key) : NULL;

	while (r && r->mr.fid.key != key)
		r = r->next;
	return r;
}

static struct region *find_chosen(const struct mr_table *t, uint64_t key)
{
	uint32_t slot = mr_key_slot(key);
	struct region *r = slot < t->count ? t->slots[slot].region : NULL;

	return r && r->mr.fid.key == key ? r : NULL;
}

struct region *mr_table_find(const struct mr_table *t, uint64_t key)
{
	return t->chosen_here ? find_chosen(t, key) : find_hashed(t, key);
}

bool mr_table_chooses(const struct mr_table *t)
{
	return t->chosen_here;
}

int mr_table_add(struct mr_table *t, struct region *r, bool choose, uint64_t *key)
{
	t->chosen_here = choose;
	if (!choose && *key == FI_KEY_NOTAVAIL)
		return -FI_EKEYREJECTED;
	if (!choose && find_hashed(t, *key))
		return -FI_ENOKEY;
	if (!choose && !grow_buckets(t))
		return -FI_ENOMEM;
	r->slot = take_slot(t);
	if (r->slot == NO_SLOT)
		return -FI_ENOMEM;
	if (choose) {
		*key = key_of(&r->mr, r->slot, t->slots[r->slot].generation);
	} else {
		r->next = *bucket(t, *key);
		*bucket(t, *key) = r;
	}
	r->mr.fid.key = *key;
	t->slots[r->slot].region = r;
	t->used++;
	return 0;
}

void mr_table_remove(struct mr_table *t, struct region *r)
{
	if (!t->chosen_here) {
		struct region **link = bucket(t, r->mr.fid.key);

		while (*link != r)
			link = &(*link)->next;
		*link = r->next;
	}
	rest_slot(t, r->slot);
	t->used--;
}
