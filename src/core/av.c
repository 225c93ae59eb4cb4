/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "base/log.h"
#include "core/av.h"
#include "core/av_insert.h"
#include "core/av_keys.h"
#include "core/av_set.h"
#include "core/av_store.h"
#include "core/eq.h"
#include "info/providers.h"

#define OPEN_FLAGS (FI_EVENT | FI_READ | FI_SYMMETRIC | FI_AV_USER_ID)
#define PRINT_MAX  128 /* bytes of an address as text with its NUL */

_Static_assert(PRINT_MAX > ADDR_STR_MAX, "strings print as they are");

const struct addr *av_addr(const struct av *av, fi_addr_t index)
{
	return av_store_at(av->store, index);
}

fi_addr_t av_find(struct av *av, const struct addr *addr, unsigned int key)
{
	uint32_t index = addr->kind == ADDR_NONE ? AV_HASH_NONE : av_store_find(av->store, addr);

	if (index == AV_HASH_NONE || (av->keys && av_keys_of(av, index) != key))
		return FI_ADDR_NOTAVAIL;
	return index;
}

size_t av_count(const struct av *av)
{
	return av_store_count(av->store);
}

bool av_firewalled(const struct av *av, fi_addr_t index)
{
	return av_store_firewalled(av->store, (uint32_t)index);
}

uint64_t av_version(const struct av *av)
{
	const struct av_store *s = av->store;

	return s->rows.shared ? av_store_count(s) : s->additions;
}

fi_addr_t av_user_id(struct av *av, fi_addr_t fi_addr)
{
	fi_addr_t index = av_index(av, fi_addr);

	return index < av->store->id_count && av_store_has(av->store, index) ? av->store->ids[index]
									     : fi_addr;
}

static int av_remove_one(struct av *av, fi_addr_t fi_addr)
{
	fi_addr_t index = av_index(av, fi_addr);

	if (!av_store_has(av->store, index))
		return LOG_REFUSE(-FI_EINVAL, LOG_AV,
				  "removal of %#llx, which is not in the vector",
				  (unsigned long long)fi_addr);
	if (av_store_release(av->store, (uint32_t)index))
		return 0;
	LIST_EACH (member, &av->store->members)
		av->dom->calls->av_removing(LIST_ENTRY(member, struct av, in_store), index);
	av_store_remove(av->store, (uint32_t)index);
	if (av->keys)
		av_keys_unassign(av, (uint32_t)index);
	return 0;
}

/* The flag of calls for keys, where there are some. */
static uint64_t key_flag(const struct av *av)
{
	return av->keys ? FI_AUTH_KEY : 0;
}

/* Removes entries, or keys, in the order of the array; on errors goes on with the next one. */
static int remove_many(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct av *av = av_of(fid);
	int ret;

	if (flags & ~key_flag(av))
		return -FI_EBADFLAGS;
	if (!fi_addr && count)
		return -FI_EINVAL;
	if (av->flags & FI_READ)
		return -FI_EACCES;
	domain_lock(av->dom);
	ret = av_store_begin(av->store);
	if (ret)
		goto unlock;
	for (size_t i = 0; i < count; i++) {
		int err = flags ? av_keys_remove(av, fi_addr[i]) : av_remove_one(av, fi_addr[i]);

		ret = ret ? ret : err;
	}
	av_store_end(av->store);
unlock:
	domain_unlock(av->dom);
	return ret;
}

/* A short buffer is no error: the address is cut and *addrlen set to the full length. */
static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct av *av = av_of(fid);
	const struct addr *a;

	if (!addrlen || (!addr && *addrlen))
		return -FI_EINVAL;
	domain_lock(av->dom);
	a = av_addr(av, av_index(av, fi_addr));
	if (a)
		addr_to_format(a, av->format, addr, addrlen);
	domain_unlock(av->dom);
	return a ? 0 : -FI_EINVAL;
}

/* An unreadable address prints as an empty string. */
static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	char text[PRINT_MAX] = "";
	size_t room = len ? *len : 0;
	struct addr a;

	if (addr_from_user(&a, av_of(fid)->format, addr, 0) == 0) {
		addr_print(&a, text, sizeof(text));
		addr_free(&a);
	}
	if (buf && room)
		snprintf(buf, room, "%s", text);
	if (len)
		*len = strlen(text) + 1;
	return buf;
}

static int set_user_id(struct fid_av *fid, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags)
{
	struct av *av = av_of(fid);
	fi_addr_t index = av_index(av, fi_addr);
	int ret = -FI_EINVAL;

	if (flags & ~key_flag(av))
		return -FI_EBADFLAGS;
	if (av->flags & FI_READ)
		return -FI_EACCES;
	domain_lock(av->dom);
	if (flags)
		ret = av_keys_set_id(av, fi_addr, user_id);
	else if (av_store_has(av->store, index))
		ret = av_store_set_id(av->store, (uint32_t)index, user_id);
	domain_unlock(av->dom);
	return ret;
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_svc_insert,
	.insertsym = av_svc_insert_range,
	.remove = remove_many,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_set_open,
	.insert_auth_key = av_keys_insert,
	.lookup_auth_key = av_keys_lookup,
	.set_user_id = set_user_id,
	.lookup2 = fid_no_call_2_7,
};

static int av_close(struct fid *fid)
{
	struct av *av = (struct av *)fid;
	struct domain *dom = av->dom;
	int err;

	if (domain_foreign(dom))
		return 0;
	err = av_store_leave(av);
	if (err)
		return LOG_REFUSE(
			err, LOG_AV,
			"endpoints or sets still use the address vector: close them first");
	if (av->eq)
		ref_put(&av->eq->ref);
	av_keys_close(av);
	fid_free(&av->fid.fid);
	ref_put(&dom->ref);
	return 0;
}

static int av_bind_eq(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct av *av = (struct av *)fid;
	struct eq *eq = (struct eq *)to;
	int ret = -FI_EINVAL;

	if (flags)
		return -FI_EBADFLAGS;
	if (!to || to->fclass != FI_CLASS_EQ || eq->fabric != av->dom->fabric)
		return -FI_EINVAL;
	domain_lock(av->dom);
	if (!av->eq) {
		av->eq = eq;
		ref_get(&eq->ref);
	}
	if (av->eq == eq) /* binding the same queue again is no error */
		ret = 0;
	domain_unlock(av->dom);
	return ret;
}

static struct fi_ops fid_ops = FID_OPS(av_close, av_bind_eq, fid_no_control);

static int av_check_attr(const struct fi_av_attr *attr)
{
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE)
		return -FI_EINVAL;
	if (attr->flags & ~OPEN_FLAGS)
		return LOG_REFUSE(-FI_EBADFLAGS, LOG_AV, "address vector with unknown flags %#llx",
				  (unsigned long long)(attr->flags & ~OPEN_FLAGS));
	if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > AV_RX_CTX_BITS_MAX)
		return LOG_REFUSE(-FI_EINVAL, LOG_AV, "rx_ctx_bits %d: 0 to %d are supported",
				  attr->rx_ctx_bits, AV_RX_CTX_BITS_MAX);
	if ((attr->flags & FI_READ) && !attr->name)
		return -FI_EINVAL;
	return 0;
}

static struct av *av_create(struct domain *dom, const struct fi_av_attr *attr, void *context)
{
	struct av *av = calloc(1, sizeof(*av));

	if (!av)
		return NULL;
	av->fid.fid = (struct fid){FI_CLASS_AV, context, &fid_ops};
	av->fid.ops = &av_ops;
	av->dom = dom;
	av->format = provider_format(dom->info);
	av->type = attr->type;
	av->flags = attr->flags;
	av->rx_ctx_bits = attr->rx_ctx_bits;
	list_init(&av->workers);
	list_init(&av->in_store);
	return av;
}

int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **fid, void *context)
{
	struct domain *dom = domain_of(domain);
	struct av *av;
	int err;

	if (!attr || !fid)
		return -FI_EINVAL;
	err = av_check_attr(attr);
	if (err)
		return err;
	av = av_create(dom, attr, context);
	if (!av)
		return -FI_ENOMEM;
	err = av_keys_open(av, attr->name);
	if (!err)
		err = av_store_join(av, attr->name, attr->count);
	if (err) {
		av_keys_close(av);
		free(av);
		return err;
	}
	ref_get(&dom->ref);
	attr->type = av->type;
	/*
	 * A fi_addr_t is an index, the same in all processes. MPICH uses the map_addr that it gets
	 * as a table of the fi_addr_t of all entries.
	 */
	if (attr->name && !attr->map_addr)
		attr->map_addr = av->store->shared.ids;
	*fid = &av->fid;
	return 0;
}
