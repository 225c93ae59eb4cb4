/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys of regions on links over two devices. A key has space for one rkey, that of the device which
 * the region's domain has. Who wants to access the region by another device asks its owner, which
 * registers the region there when the first peer of any endpoint asks, and remembers some answers.
 */
#include <stdlib.h>

#include "core/mr_nic.h"
#include "hw/transports.h"
#include "hw/verbs/rails/verbs_rails.h"

#define ASKED_MAX 4u /* questions without an answer: the peer has to keep its answers */

_Static_assert(ASKED_MAX < VERBS_KEYS, "each question has an entry, and an entry can be replaced");

/* ---- The peer's regions ---------------------------------------------------------------------- */

static struct verbs_key *verbs_rails_keys_find(struct verbs_rails *r, uint64_t key)
{
	for (unsigned int i = 0; i < VERBS_KEYS; i++)
		if (r->keys[i].key == key)
			return &r->keys[i];
	return NULL;
}

static unsigned int verbs_rails_keys_questions(const struct verbs_rails *r)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < VERBS_KEYS; i++)
		for (unsigned int rail = 0; rail < VERBS_RAILS; rail++)
			count += r->keys[i].asked >> rail & 1;
	return count;
}

/* Returns an entry for another key: none whose answer is still to come. */
static struct verbs_key *verbs_rails_keys_replace(struct verbs_rails *r, uint64_t key)
{
	struct verbs_key *k;

	do
		k = &r->keys[r->keys_next++ % VERBS_KEYS];
	while (k->asked);
	*k = (struct verbs_key){.key = key};
	return k;
}

/* Not while packets wait: the question would take space that what a broken rail kept needs. */
static void verbs_rails_keys_ask(struct verbs_rails *r, unsigned int rail, uint64_t key)
{
	struct verbs_rail_message m = {.what = VERBS_RAIL_KEY_ASKED,
				       .rail = rail,
				       .serial = r->rail[rail].serial,
				       .key = key};
	struct verbs_key *k;

	if (!list_empty(&r->queue) || verbs_rails_keys_questions(r) >= ASKED_MAX ||
	    verbs_rails_post(r, &m))
		return;
	k = verbs_rails_keys_find(r, key);
	if (!k)
		k = verbs_rails_keys_replace(r, key);
	k->asked |= 1u << rail;
}

bool verbs_rails_rkey(struct verbs_rails *r, unsigned int rail, uint64_t key, uint32_t *rkey)
{
	const struct verbs_key *k = verbs_rails_keys_find(r, key);

	if (k && k->known & 1u << rail) {
		*rkey = k->rkey[rail];
		return true;
	}
	if (!k || !(k->asked & 1u << rail))
		verbs_rails_keys_ask(r, rail, key);
	return false;
}

void verbs_rails_forget_keys(struct verbs_rails *r, unsigned int rail)
{
	for (unsigned int i = 0; i < VERBS_KEYS; i++) {
		r->keys[i].asked &= ~(1u << rail);
		r->keys[i].known &= ~(1u << rail);
	}
}

int verbs_rails_key_answered(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	struct verbs_key *k = verbs_rails_keys_find(r, m->key);

	if (!k || !(k->asked & 1u << m->rail) || r->rail[m->rail].serial != m->serial)
		return 0;
	k->known |= 1u << m->rail;
	k->rkey[m->rail] = m->rkey;
	verbs_rails_name(r); /* no question replaces what is marked as asked */
	k->asked &= ~(1u << m->rail);
	verbs_rails_name(r); /* one more question is possible */
	verbs_rails_resume(r);
	return 0;
}

/* ---- Our regions ----------------------------------------------------------------------------- */

/* A region's registration with a device, for all endpoints of the domain that have the device. */
struct registration {
	unsigned int uses;        /* struct asked_region.at */
	struct device_memory mem; /* all zero: the device has refused it, and is not asked again */
};

/* A region that a peer of an endpoint has asked for. */
struct asked_region {
	struct mr_further further;
	struct list in_device; /* verbs.asked_regions */
	struct verbs *device;
	struct registration *at;
};

static void remove_asked(struct mr_further *further)
{
	struct asked_region *a = (struct asked_region *)further;

	if (!--a->at->uses) {
		if (a->at->mem.handle)
			rc_transport.device->remove(&a->device->path, &a->at->mem);
		free(a->at);
	}
	list_remove(&a->further.in_region);
	list_remove(&a->in_device);
	free(a);
}

void verbs_rails_drop_regions(struct verbs *v)
{
	LIST_EACH_SAFE (node, &v->asked_regions)
		remove_asked(&LIST_ENTRY(node, struct asked_region, in_device)->further);
}

/* Returns what this endpoint's peers have asked for; NULL: nothing. */
static struct asked_region *find_asked(const struct region *region, const struct verbs *v)
{
	LIST_EACH (node, &region->further) {
		struct asked_region *a = (void *)LIST_ENTRY(node, struct mr_further, in_region);

		if (a->device == v)
			return a;
	}
	return NULL;
}

/* Returns what any endpoint has of the region at this device; NULL: nothing. */
static struct registration *find_registration(const struct region *region,
					      const struct verbs_dev *dev)
{
	LIST_EACH (node, &region->further) {
		struct asked_region *a = (void *)LIST_ENTRY(node, struct mr_further, in_region);

		if (a->device->path.dev == dev)
			return a->at;
	}
	return NULL;
}

/* Registers the region, if the device does not refuse. NULL: no memory. */
static struct registration *make_registration(const struct region *region, struct verbs *v)
{
	struct device_region memory = mr_nic_memory(region);
	struct registration *at = calloc(1, sizeof(*at));

	if (at && rc_transport.device->add(&v->path, &memory, &at->mem))
		at->mem = (struct device_memory){.handle = NULL};
	return at;
}

/* A peer of this endpoint asks for the first time. NULL: no memory. */
static struct asked_region *add_asked(struct region *region, struct verbs *v)
{
	struct asked_region *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->at = find_registration(region, v->path.dev);
	if (!a->at)
		a->at = make_registration(region, v);
	if (!a->at) {
		free(a);
		return NULL;
	}
	a->at->uses++;
	a->further.remove = remove_asked;
	a->device = v;
	list_push(&region->further, &a->further.in_region);
	list_push(&v->asked_regions, &a->in_device);
	return a;
}

/* Returns the rkey of the region with this key, which is registered if need be; 0: there is none. */
static uint32_t rkey_at(struct verbs *v, uint64_t key)
{
	struct region *region = mr_nic_region(v->opener->dom, key);
	struct asked_region *a;

	if (!region || !verbs_usable(v))
		return 0;
	a = find_asked(region, v);
	if (!a)
		a = add_asked(region, v);
	return a ? a->at->mem.rkey : 0;
}

int verbs_rails_key_asked(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	struct verbs_rail_message answer = {
		.what = VERBS_RAIL_KEY, .rail = m->rail, .serial = m->serial, .key = m->key};
	const struct verbs_rail *rail = &r->rail[m->rail];

	if (rail->link && rail->serial == m->serial)
		answer.rkey = rkey_at(rail->link->own, m->key);
	return verbs_rails_post(r, &answer);
}
