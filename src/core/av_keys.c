/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/av_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/av_store.h"

/* The fi_addr_t of the key in slot 0; the others follow. No entry has such an index. */
#define FIRST_ADDR (UINT64_C(1) << 40)
#define NO_SLOT    UINT8_MAX

_Static_assert(JOB_KEYS_MAX < NO_SLOT && JOB_KEYS_MAX <= 32, "slots fit a byte, and a mask");

int av_keys_open(struct av *av, const char *name)
{
	if (!av->dom->max_keys)
		return 0;
	if (name)
		return LOG_REFUSE(
			-FI_EOPNOTSUPP, LOG_AV,
			"address vector \"%s\": vectors with keys (FI_AV_AUTH_KEY) have no "
			"name, for the keys stay in this process",
			name);
	av->keys = calloc(1, sizeof(*av->keys));
	if (!av->keys)
		return -FI_ENOMEM;
	av->keys->max = av->dom->max_keys;
	return 0;
}

void av_keys_close(struct av *av)
{
	if (!av->keys)
		return;
	free(av->keys->slots);
	explicit_bzero(av->keys, sizeof(*av->keys));
	free(av->keys);
}

/* The slot that has the key, or a free one; `max`: neither. */
static unsigned int av_keys_find(const struct av_keys *k, const struct job_key *key)
{
	unsigned int found = k->max;

	for (unsigned int i = k->max; i-- > 0;) {
		if (k->keys[i].len && job_key_equal(&k->keys[i], key))
			return i;
		if (!k->keys[i].len)
			found = i;
	}
	return found;
}

/* Enters the key. Its slot, or -FI_ENOSPC. */
static int av_keys_add(const struct av *av, const struct job_key *key)
{
	struct av_keys *k = av->keys;
	unsigned int slot = av_keys_find(k, key);

	if (slot == k->max)
		return LOG_REFUSE(-FI_ENOSPC, LOG_AV,
				  "the address vector has %u keys already: max_ep_auth_key",
				  k->max);
	if (k->of[slot].uses++ == 0) {
		k->keys[slot] = *key;
		k->of[slot].id = av->flags & FI_AV_USER_ID ? FI_ADDR_NOTAVAIL : FIRST_ADDR + slot;
	}
	return (int)slot;
}

int av_keys_insert(struct fid_av *fid, const void *bytes, size_t size, fi_addr_t *fi_addr,
		   uint64_t flags)
{
	struct av *av = av_of(fid);
	struct job_key key = {.len = size};
	int slot;

	if (!av->keys)
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	if (!fi_addr || !bytes || size < JOB_KEY_MIN || size > JOB_KEY_MAX)
		return LOG_REFUSE(-FI_EINVAL, LOG_AV,
				  "insertion of a key of %zu bytes: it has %u to %u", size,
				  JOB_KEY_MIN, JOB_KEY_MAX);
	memcpy(key.bytes, bytes, size);
	domain_lock(av->dom);
	slot = av_keys_add(av, &key);
	domain_unlock(av->dom);
	explicit_bzero(&key, sizeof(key));
	if (slot < 0)
		return slot;
	*fi_addr = FIRST_ADDR + (unsigned int)slot;
	return 0;
}

int av_keys_slot(const struct av *av, fi_addr_t fi_addr)
{
	uint64_t slot = av_index(av, fi_addr) - FIRST_ADDR;

	return slot < av->keys->max && av->keys->keys[slot].len ? (int)slot : -FI_EINVAL;
}

/* The key of this fi_addr_t, which may be that of an entry; or NULL. */
static const struct job_key *key_at(struct av *av, fi_addr_t fi_addr)
{
	fi_addr_t index = av_index(av, fi_addr);
	int slot = av_keys_slot(av, fi_addr);

	if (slot < 0 && av_addr(av, index))
		slot = (int)av_keys_of(av, index);
	return slot < 0 ? NULL : &av->keys->keys[slot];
}

int av_keys_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *bytes, size_t *size)
{
	struct av *av = av_of(fid);
	const struct job_key *key;

	if (!av->keys)
		return -FI_ENOSYS;
	if (!size || (!bytes && *size))
		return -FI_EINVAL;
	domain_lock(av->dom);
	key = key_at(av, fi_addr);
	if (key) {
		if (*size)
			memcpy(bytes, key->bytes, *size < key->len ? *size : key->len);
		*size = key->len;
	}
	domain_unlock(av->dom);
	return key ? 0 : -FI_EINVAL;
}

static bool has_entries(const struct av_keys *k, unsigned int slot)
{
	return k->slot_count && memchr(k->slots, (int)slot, k->slot_count);
}

int av_keys_remove(struct av *av, fi_addr_t fi_addr)
{
	struct av_keys *k = av->keys;
	int slot = av_keys_slot(av, fi_addr);

	if (slot < 0)
		return slot;
	if (k->of[slot].uses > 1) {
		k->of[slot].uses--;
		return 0;
	}
	if (k->of[slot].endpoints || has_entries(k, (unsigned int)slot))
		return LOG_REFUSE(-FI_EBUSY, LOG_AV, "removal of key %#llx, which %s still has",
				  (unsigned long long)fi_addr,
				  k->of[slot].endpoints ? "an endpoint" : "an address");
	k->of[slot].uses = 0;
	explicit_bzero(&k->keys[slot], sizeof(k->keys[slot]));
	return 0;
}

int av_keys_set_id(struct av *av, fi_addr_t fi_addr, fi_addr_t id)
{
	int slot = av_keys_slot(av, fi_addr);

	if (slot < 0)
		return slot;
	av->keys->of[slot].id = id;
	return 0;
}

static int av_keys_reserve(struct av_keys *k, uint32_t index)
{
	size_t count = (size_t)index + index / 2 + 1;
	uint8_t *slots;

	if (index < k->slot_count)
		return 0;
	slots = realloc(k->slots, count);
	if (!slots)
		return -FI_ENOMEM;
	memset(slots + k->slot_count, NO_SLOT, count - k->slot_count);
	k->slots = slots;
	k->slot_count = count;
	return 0;
}

int av_keys_assign(struct av *av, uint32_t index, unsigned int slot)
{
	int err = av_keys_reserve(av->keys, index);

	if (err)
		return err;
	if (av->flags & FI_AV_USER_ID && av->keys->slots[index] == NO_SLOT)
		err = av_store_set_id(av->store, index, FI_ADDR_NOTAVAIL);
	if (!err)
		av->keys->slots[index] = (uint8_t)slot;
	return err;
}

void av_keys_unassign(struct av *av, uint32_t index)
{
	av->keys->slots[index] = NO_SLOT;
}

unsigned int av_keys_of(const struct av *av, fi_addr_t index)
{
	return av->keys ? av->keys->slots[index] : 0;
}

fi_addr_t av_keys_reported(const struct av *av, unsigned int slot)
{
	return av->keys ? av->keys->of[slot].id : FI_ADDR_NOTAVAIL;
}

uint32_t av_keys_enable(struct av *av)
{
	uint32_t slots = 0;

	for (unsigned int i = 0; i < av->keys->max; i++) {
		if (!av->keys->keys[i].len)
			continue;
		av->keys->of[i].endpoints++;
		slots |= UINT32_C(1) << i;
	}
	return slots;
}

void av_keys_disable(struct av *av, uint32_t slots)
{
	for (unsigned int i = 0; i < av->keys->max; i++)
		if (slots >> i & 1)
			av->keys->of[i].endpoints--;
}
