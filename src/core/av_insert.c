/* SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <netinet/in.h>
#include <string.h>

#include "base/log.h"
#include "core/av_insert.h"
#include "core/av_keys.h"
#include "core/av_store.h"
#include "core/eq.h"

/* Of vectors without keys, and with some. */
#define FLAGS_KNOWN (FI_MORE | FI_SYNC_ERR | FI_FIREWALL_ADDR | FI_AV_USER_ID)
#define KEYS_KNOWN  (FI_MORE | FI_SYNC_ERR | FI_FIREWALL_ADDR | FI_AUTH_KEY)

static int check_flags(const struct av_insertion *in)
{
	bool event = in->av->flags & FI_EVENT;

	if (in->flags & FI_FIREWALL_ADDR && !provider_connects(in->av->dom->info))
		return LOG_REFUSE(
			-FI_ENOSYS, LOG_AV,
			"FI_FIREWALL_ADDR: endpoints of this domain connect to no network: insert without it");
	if ((in->flags & ~(in->av->keys ? KEYS_KNOWN : FLAGS_KNOWN)) ||
	    (event && (in->flags & FI_SYNC_ERR)))
		return LOG_REFUSE(
			-FI_EBADFLAGS, LOG_AV, "insertion with flags %#llx into %s vector",
			(unsigned long long)in->flags, event ? "an FI_EVENT" : "a synchronous");
	if ((in->flags & FI_SYNC_ERR) && !in->context)
		return -FI_EINVAL;
	if ((in->flags & (FI_AV_USER_ID | FI_AUTH_KEY)) && !in->fi_addr)
		return -FI_EINVAL;
	if (in->av->keys && !(in->flags & FI_AUTH_KEY))
		return LOG_REFUSE(-FI_EINVAL, LOG_AV,
				  "insertion without FI_AUTH_KEY: each address needs a key here");
	return 0;
}

int av_insert_begin(struct av_insertion *in)
{
	struct av *av = in->av;
	int err = check_flags(in);

	if (err)
		return err;
	if (in->count > INT_MAX)
		return -FI_EINVAL;
	if (av->flags & FI_READ)
		return LOG_REFUSE(-FI_EACCES, LOG_AV,
				  "insertion into a vector opened with FI_READ: open it without");
	domain_lock(av->dom);
	if ((av->flags & FI_EVENT) && !av->eq) {
		domain_unlock(av->dom);
		return LOG_REFUSE(
			-FI_ENOEQ, LOG_AV,
			"insertion into an FI_EVENT vector without an event queue: bind one by fi_av_bind");
	}
	err = av_store_begin(av->store);
	if (err) {
		domain_unlock(av->dom);
		return err;
	}
	/* Reserves space for all at once. If that fails, single addresses may still fit. */
	if (av->type == FI_AV_TABLE)
		av_store_reserve(av->store, in->count);
	return 0;
}

/* Returns whether no peer can have this address. */
static bool av_insert_unreachable(const struct addr *a)
{
	if (a->kind == ADDR_IB)
		return !(a->scope & ADDR_IB_QP);
	return a->kind != ADDR_STR && (!a->port || addr_is_any(a));
}

/* Counts a further insertion of an address that the vector has. Its index stays the same. */
static bool insert_again(struct av_store *s, struct addr *a, uint32_t *index)
{
	*index = av_store_find(s, a);
	if (*index == AV_HASH_NONE)
		return false;
	av_store_hold(s, *index);
	addr_free(a);
	return true;
}

/* The slot of the key that the next address is to have; or an error: no key, or the entry has another one. */
static int key_slot(const struct av_insertion *in, const struct addr *a)
{
	struct av *av = in->av;
	int slot = av_keys_slot(av, in->fi_addr[in->next]);
	uint32_t index = av_store_find(av->store, a);

	if (slot >= 0 && index != AV_HASH_NONE && av_keys_of(av, index) != (unsigned int)slot)
		return -FI_EADDRINUSE;
	return slot;
}

static int insert_one(struct av_insertion *in, struct addr *a, uint32_t *index)
{
	struct av_store *s = in->av->store;
	fi_addr_t id = in->flags & FI_AV_USER_ID ? in->fi_addr[in->next] : 0;
	int slot = in->av->keys ? key_slot(in, a) : 0;
	int err = av_insert_unreachable(a) ? -FI_EADDRNOTAVAIL : slot < 0 ? slot : 0;

	if (!err && !insert_again(s, a, index))
		err = av_store_add(s, a, index);
	if (err) {
		addr_free(a);
		return err;
	}
	if (in->av->keys)
		err = av_keys_assign(in->av, *index, (unsigned int)slot);
	else if (in->flags & FI_AV_USER_ID)
		err = av_store_set_id(s, *index, id);
	if (err && !av_store_release(s, *index))
		av_store_remove(s, *index);
	if (!err && in->flags & FI_FIREWALL_ADDR)
		av_store_set_firewall(s, *index);
	if (!err)
		in->av->dom->calls->av_inserted(in->av, *index);
	return err;
}

static void av_insert_report(struct av_insertion *in, fi_addr_t fi_addr, int err)
{
	struct av *av = in->av;

	if (in->fi_addr)
		in->fi_addr[in->next] = fi_addr;
	if (in->flags & FI_SYNC_ERR)
		((int *)in->context)[in->next] = -err;
	if (!err)
		return;
	LOG_WARN(LOG_AV, "address %zu of %zu is not inserted: %s", in->next, in->count,
		 fi_strerror(-err));
	if (av->flags & FI_EVENT) {
		struct fi_eq_err_entry entry = {
			.fid = &av->fid.fid,
			.context = in->context,
			.data = in->next,
			.err = -err,
		};

		err = eq_post_error(av->eq, &entry);
		in->err = err ? err : in->err;
	}
}

void av_insert_next(struct av_insertion *in, struct addr *a, int err)
{
	uint32_t index = 0;

	if (!err)
		err = insert_one(in, a, &index);
	if (!err)
		in->inserted++;
	av_insert_report(in, err ? FI_ADDR_NOTAVAIL : index, err);
	in->next++;
}

int av_insert_end(struct av_insertion *in)
{
	struct av *av = in->av;
	struct fi_eq_entry entry = {
		.fid = &av->fid.fid,
		.context = in->context,
		.data = in->inserted,
	};
	int ret = (int)in->inserted;

	av_store_end(av->store);
	if (av->flags & FI_EVENT) {
		ret = eq_post(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry));
		ret = in->err ? in->err : ret;
	}
	domain_unlock(av->dom);
	return ret;
}

/* Returns the bytes from an unreadable address to the next one; 0: only a readable address has a length. */
static size_t stride_of(uint32_t format)
{
	switch (format) {
	case FI_SOCKADDR_IN:
		return sizeof(struct sockaddr_in);
	case FI_SOCKADDR_IN6:
		return sizeof(struct sockaddr_in6);
	case FI_ADDR_IB_UD:
		return ADDR_IB_LEN;
	default:
		return 0;
	}
}

/*
 * Returns whether FI_ADDR_STR addresses come as an array of pointers, as fi_av(3) says. Some programs (fi_pingpong
 * among them) pass the strings of fi_getname one behind the other instead. Our strings have more than eight characters,
 * and the top bytes of a pointer are zero, so the first eight bytes tell the two apart.
 */
static bool points_to_strings(const void *addr)
{
	uint64_t first;

	if (strnlen(addr, sizeof(first)) == sizeof(first))
		return false;
	memcpy(&first, addr, sizeof(first));
	return first >> 48 == 0;
}

static void insert_strings(struct av_insertion *in, const void *addr)
{
	const char *const *pointers = in->count && points_to_strings(addr) ? addr : NULL;
	const char *at = addr;
	struct addr a;

	for (size_t i = 0; i < in->count; i++) {
		const char *str = pointers ? pointers[i] : at;

		av_insert_next(in, &a, addr_from_user(&a, in->av->format, str, 0));
		if (!pointers)
			at += strnlen(at, ADDR_STR_MAX) + 1;
	}
}

static void insert_sockaddrs(struct av_insertion *in, const char *at)
{
	struct addr a;
	int err = 0;

	for (size_t i = 0; i < in->count; i++) {
		if (err != -FI_ECANCELED)
			err = addr_from_user(&a, in->av->format, at, 0);
		at += err ? stride_of(in->av->format) : addr_user_len(&a);
		av_insert_next(in, &a, err);
		if (err && !stride_of(in->av->format))
			err = -FI_ECANCELED; /* the start of the next address is unknown */
	}
}

int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
	      uint64_t flags, void *context)
{
	struct av_insertion in = {.av = av_of(fid),
				  .count = count,
				  .fi_addr = fi_addr,
				  .flags = flags,
				  .context = context};
	int err;

	if (!addr && count)
		return -FI_EINVAL;
	err = av_insert_begin(&in);
	if (err)
		return err;
	if (in.av->format == FI_ADDR_STR || in.av->format == ADDR_IP_STR)
		insert_strings(&in, addr);
	else
		insert_sockaddrs(&in, addr);
	return av_insert_end(&in);
}
