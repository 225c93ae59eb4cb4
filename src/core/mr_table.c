/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/log.h"
#include "core/mr_share.h"
#include "core/mr_table.h"

/*
 * A released slot goes to the end of a queue that is kept at least REST long, so that a key is not
 * soon used again, whatever its random bits.
 */
#define SLOT_MASK ((1u << MR_SLOT_BITS) - 1)
#define REST      64
#define CLOSED    64 /* a power of two: regions whose grants are remembered after their close */
#define RANDOMS   32 /* words that one system call brings */

struct slot {
	struct region *region; /* NULL: free slot */
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
	uint64_t random[RANDOMS];
	unsigned int random_left; /* unused words of `random` */
	struct mr_grant closed[CLOSED];
	unsigned int closed_next;
};

int mr_table_open(struct domain *dom)
{
	struct mr_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -FI_ENOMEM;
	t->oldest = t->newest = MR_NO_SLOT;
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

	if (slot == MR_NO_SLOT)
		return MR_NO_SLOT;
	t->oldest = t->slots[slot].next;
	if (t->oldest == MR_NO_SLOT)
		t->newest = MR_NO_SLOT;
	t->resting--;
	return slot;
}

static uint32_t take_slot(struct mr_table *t)
{
	if (t->resting > REST)
		return rested_slot(t);
	if (t->count == t->capacity && !grow_slots(t))
		return rested_slot(t);
	t->slots[t->count] = (struct slot){.region = NULL};
	return t->count++;
}

static void rest_slot(struct mr_table *t, uint32_t slot)
{
	struct slot *s = &t->slots[slot];

	s->region = NULL;
	s->next = MR_NO_SLOT;
	if (t->newest == MR_NO_SLOT)
		t->oldest = slot;
	else
		t->slots[t->newest].next = slot;
	t->newest = slot;
	t->resting++;
}

/* 0 or -FI_ENOSYS: without random bits no key is handed out. */
static int random_word(struct mr_table *t, uint64_t *word)
{
	if (!t->random_left) {
		if (getrandom(t->random, sizeof(t->random), 0) != sizeof(t->random))
			return LOG_REFUSE(-FI_ENOSYS, LOG_MR,
					  "the kernel gives no random numbers for keys: %s",
					  fi_strerror(errno));
		t->random_left = RANDOMS;
	}
	*word = t->random[--t->random_left];
	return 0;
}

static uint64_t key_of(const struct mr *mr, uint64_t slot, uint64_t random)
{
	uint64_t in_nic = UINT64_MAX << (MR_SLOT_SHIFT + MR_NIC_SLOT_BITS),
		 slot_bits = (uint64_t)SLOT_MASK << MR_SLOT_SHIFT;

	if (mr->handle && slot >> MR_NIC_SLOT_BITS == 0)
		return MR_KEY_IN_NIC | (random & in_nic) | slot << MR_SLOT_SHIFT | mr->rkey;
	return (random & ~slot_bits & ~MR_KEY_IN_NIC) | slot << MR_SLOT_SHIFT;
}

static struct region **mr_table_bucket(const struct mr_table *t, uint64_t key)
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
			struct region **head = mr_table_bucket(t, r->mr.fid.key);

			next = r->next;
			r->next = *head;
			*head = r;
		}
	}
	free(old);
	return true;
}

static struct region *mr_table_find_hashed(const struct mr_table *t, uint64_t key)
{
	struct region *r = t->bucket_count ? *mr_table_bucket(t, key) : NULL;

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
	return t->chosen_here ? find_chosen(t, key) : mr_table_find_hashed(t, key);
}

bool mr_table_chooses(const struct mr_table *t)
{
	return t->chosen_here;
}

const struct mr_grant *mr_table_closed(const struct mr_table *t, uint64_t key)
{
	for (unsigned int i = 1; i <= CLOSED; i++) {
		const struct mr_grant *g = &t->closed[(t->closed_next - i) % CLOSED];

		if (g->key == key && g->access)
			return g;
	}
	return NULL;
}

int mr_table_add(struct mr_table *t, struct region *r, bool choose, uint64_t *key)
{
	uint64_t random = 0;

	t->chosen_here = choose;
	r->slot = MR_NO_SLOT;
	if (!mr_is_remote(&r->mr))
		return 0;
	if (!choose && *key == FI_KEY_NOTAVAIL)
		return -FI_EKEYREJECTED;
	if (!choose && mr_table_find_hashed(t, *key))
		return -FI_ENOKEY;
	if (!choose && !grow_buckets(t))
		return -FI_ENOMEM;
	if (choose && random_word(t, &random))
		return -FI_ENOSYS;
	r->slot = take_slot(t);
	if (r->slot == MR_NO_SLOT)
		return -FI_ENOMEM;
	if (choose) {
		*key = key_of(&r->mr, r->slot, random);
	} else {
		r->next = *mr_table_bucket(t, *key);
		*mr_table_bucket(t, *key) = r;
	}
	r->mr.fid.key = *key;
	t->slots[r->slot].region = r;
	t->used++;
	return 0;
}

void mr_table_remove(struct mr_table *t, struct region *r)
{
	if (r->slot == MR_NO_SLOT)
		return;
	if (!t->chosen_here) {
		struct region **link = mr_table_bucket(t, r->mr.fid.key);

		while (*link != r)
			link = &(*link)->next;
		*link = r->next;
	}
	t->closed[t->closed_next++ % CLOSED] = (struct mr_grant){
		r->mr.fid.key, r->mr.enabled ? r->mr.access : 0, r->mr.offset, r->mr.length};
	rest_slot(t, r->slot);
	t->used--;
}
