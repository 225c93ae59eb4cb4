/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "base/log.h"
#include "core/av_set.h"
#include "core/av_store.h"

#define WORD_BITS 64

/* Marks collective addresses of sets: no entry of a vector and no group has this bit. */
#define SET_ADDR (UINT64_C(1) << 62)

static size_t count_of(const struct av_set *s)
{
	return s->members ? s->members->count : 0;
}

void av_members_put(struct av_members *members)
{
	if (members && --members->ref == 0)
		free(members);
}

struct av_members *av_set_members(struct av_set *set)
{
	if (!count_of(set))
		return NULL;
	set->members->ref++;
	return set->members;
}

struct av_set *av_set_find(struct domain *dom, fi_addr_t coll_addr)
{
	LIST_EACH_OF (struct av_set, s, &dom->sets, in_domain) {
		if ((SET_ADDR | s->number) == coll_addr)
			return s;
	}
	return NULL;
}

static bool av_set_has(const struct av_set *s, fi_addr_t addr)
{
	size_t word = addr / WORD_BITS;

	return word < s->in_words && s->in[word] >> addr % WORD_BITS & 1;
}

static int reserve_bits(struct av_set *s, size_t words)
{
	uint64_t *in;

	if (s->in && words <= s->in_words)
		return 0;
	words += words / 2;
	in = realloc(s->in, words * sizeof(*in));
	if (!in)
		return -FI_ENOMEM;
	memset(in + s->in_words, 0, (words - s->in_words) * sizeof(*in));
	s->in = in;
	s->in_words = words;
	return 0;
}

/* Makes the member list ours alone, with space for `count` members. 0 or -FI_ENOMEM. */
static int own_members(struct av_set *s, size_t count)
{
	struct av_members *old = s->members, *m;
	size_t have = count_of(s);

	if (old && old->ref == 1 && count <= old->capacity)
		return 0;
	if (old && old->ref > 1 && count < have)
		count = have;
	count += count / 2;
	m = malloc(sizeof(*m) + count * sizeof(m->addr[0]));
	if (!m)
		return -FI_ENOMEM;
	m->ref = 1;
	m->capacity = count;
	m->count = have;
	if (old) {
		memcpy(m->addr, old->addr, have * sizeof(m->addr[0]));
		av_members_put(old);
	}
	s->members = m;
	return 0;
}

/* Appends `addr`, which is an entry of the vector and not a member. */
static int av_set_append(struct av_set *s, fi_addr_t addr)
{
	int err = reserve_bits(s, addr / WORD_BITS + 1);

	if (!err)
		err = own_members(s, count_of(s) + 1);
	if (err)
		return err;
	s->in[addr / WORD_BITS] |= UINT64_C(1) << addr % WORD_BITS;
	s->members->addr[s->members->count++] = addr;
	return 0;
}

/* Keeps the members for which has(other, member) == keep, in their order. */
static int av_set_filter(struct av_set *s, const struct av_set *other, bool keep)
{
	struct av_members *m;
	size_t kept = 0;
	int err = own_members(s, count_of(s));

	if (err)
		return err;
	m = s->members;
	for (size_t i = 0; i < m->count; i++) {
		fi_addr_t addr = m->addr[i];

		if (av_set_has(other, addr) == keep)
			m->addr[kept++] = addr;
	}
	/* Cleared only now, since `other` may be the set itself. */
	memset(s->in, 0, s->in_words * sizeof(*s->in));
	m->count = kept;
	for (size_t i = 0; i < kept; i++)
		s->in[m->addr[i] / WORD_BITS] |= UINT64_C(1) << m->addr[i] % WORD_BITS;
	return 0;
}

static int av_set_join(struct av_set *dst, const struct av_set *src)
{
	for (size_t i = 0; i < count_of(src); i++) {
		fi_addr_t addr = src->members->addr[i];
		int err = av_set_has(dst, addr) ? 0 : av_set_append(dst, addr);

		if (err)
			return err;
	}
	return 0;
}

/* Gets both sets of a call and locks their domain; false: they have different vectors. */
static bool take_both(struct fid_av_set *dst_fid, const struct fid_av_set *src_fid,
		      struct av_set **dst, const struct av_set **src)
{
	*dst = av_set_of(dst_fid);
	*src = (const struct av_set *)src_fid;
	if (!*src)
		return LOG_REFUSE(false, LOG_AV, "the other set is NULL: make one by fi_av_set");
	if ((*dst)->av->store != (*src)->av->store)
		return LOG_REFUSE(
			false, LOG_AV,
			"sets of different address vectors cannot be combined: make both from one vector");
	domain_lock((*dst)->av->dom);
	return true;
}

static int set_union(struct fid_av_set *dst_fid, const struct fid_av_set *src_fid)
{
	const struct av_set *src;
	struct av_set *dst;
	int err;

	if (!take_both(dst_fid, src_fid, &dst, &src))
		return -FI_EINVAL;
	err = av_set_join(dst, src);
	domain_unlock(dst->av->dom);
	return err;
}

static int filter_by(struct fid_av_set *dst_fid, const struct fid_av_set *src_fid, bool keep)
{
	const struct av_set *src;
	struct av_set *dst;
	int err = 0;

	if (!take_both(dst_fid, src_fid, &dst, &src))
		return -FI_EINVAL;
	if (count_of(dst))
		err = av_set_filter(dst, src, keep);
	domain_unlock(dst->av->dom);
	return err;
}

static int av_set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return filter_by(dst, src, true);
}

static int av_set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return filter_by(dst, src, false);
}

static int av_set_insert(struct fid_av_set *fid, fi_addr_t addr)
{
	struct av_set *s = av_set_of(fid);
	int err = -FI_EINVAL;

	domain_lock(s->av->dom);
	if (av_addr(s->av, addr) && !av_set_has(s, addr))
		err = av_set_append(s, addr);
	domain_unlock(s->av->dom);
	return err;
}

/* Removes `addr`, which is a member. */
static int av_set_take_out(struct av_set *s, fi_addr_t addr)
{
	int err = own_members(s, count_of(s));
	struct av_members *m = s->members;
	size_t i = 0;

	if (err)
		return err;
	while (m->addr[i] != addr)
		i++;
	s->in[addr / WORD_BITS] &= ~(UINT64_C(1) << addr % WORD_BITS);
	m->count--;
	memmove(&m->addr[i], &m->addr[i + 1], (m->count - i) * sizeof(m->addr[0]));
	return 0;
}

static int av_set_remove_one(struct fid_av_set *fid, fi_addr_t addr)
{
	struct av_set *s = av_set_of(fid);
	int err = -FI_EINVAL;

	domain_lock(s->av->dom);
	if (av_set_has(s, addr))
		err = av_set_take_out(s, addr);
	domain_unlock(s->av->dom);
	return err;
}

static int set_addr(struct fid_av_set *fid, fi_addr_t *coll_addr)
{
	if (!coll_addr)
		return -FI_EINVAL;
	*coll_addr = SET_ADDR | av_set_of(fid)->number;
	return 0;
}

static struct fi_ops_av_set set_ops = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = set_union,
	.intersect = av_set_intersect,
	.diff = av_set_diff,
	.insert = av_set_insert,
	.remove = av_set_remove_one,
	.addr = set_addr,
};

static void av_set_destroy(struct av_set *s)
{
	av_members_put(s->members);
	free(s->in);
	free(s->comm_key);
	fid_free(&s->fid.fid);
}

static int set_close(struct fid *fid)
{
	struct av_set *s = (struct av_set *)fid;
	struct domain *dom = s->av->dom;

	if (domain_foreign(dom))
		return 0;
	domain_lock(dom);
	list_remove(&s->in_domain);
	ref_put(&s->av->ref);
	av_set_destroy(s);
	domain_unlock(dom);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(set_close, fid_no_bind, fid_no_control);

static bool has_range(const struct fi_av_set_attr *attr)
{
	return attr->start_addr != FI_ADDR_NOTAVAIL || attr->end_addr != FI_ADDR_NOTAVAIL;
}

static int check_range(const struct av *av, const struct fi_av_set_attr *attr)
{
	uint64_t number;

	if (!has_range(attr))
		return 0; /* without a range the stride is unused */
	if (av->type != FI_AV_TABLE || !attr->stride || attr->comm_key_size)
		return -FI_EINVAL;
	if (attr->end_addr < attr->start_addr || attr->end_addr >= av_store_count(av->store))
		return -FI_EINVAL;
	number = (attr->end_addr - attr->start_addr) / attr->stride + 1;
	return attr->count && number > attr->count ? -FI_EINVAL : 0;
}

static int av_set_check_attr(const struct fi_av_set_attr *attr)
{
	if (attr->flags & ~(FI_UNIVERSE | AV_SET_COLLECTIVES))
		return LOG_REFUSE(-FI_EBADFLAGS, LOG_AV, "fi_av_set: flags %#llx are unknown",
				  (unsigned long long)attr->flags);
	return attr->comm_key_size && !attr->comm_key ? -FI_EINVAL : 0;
}

/* Appends every entry from `first` to `last` by `stride`, without holes. */
static int append_range(struct av_set *s, uint64_t first, uint64_t last, uint64_t stride)
{
	int err = 0;

	for (uint64_t i = first; !err && i <= last; i += stride) {
		if (av_store_has(s->av->store, i))
			err = av_set_append(s, i);
		if (stride > last - i)
			break;
	}
	return err;
}

/* Appends the initial members of a new set. Domain locked. */
static int av_set_fill(struct av_set *s, const struct fi_av_set_attr *attr)
{
	size_t entries = av_store_count(s->av->store);
	int err;

	if (attr->flags & FI_UNIVERSE)
		return entries ? append_range(s, 0, entries - 1, 1) : 0;
	err = check_range(s->av, attr);
	if (err) {
		LOG_WARN(LOG_AV,
			 "set: start %llu, end %llu, stride %llu, count %zu; vector of %zu entries",
			 (unsigned long long)attr->start_addr, (unsigned long long)attr->end_addr,
			 (unsigned long long)attr->stride, attr->count, entries);
		return err;
	}
	return has_range(attr) ? append_range(s, attr->start_addr, attr->end_addr, attr->stride)
			       : 0;
}

static struct av_set *av_set_create(struct av *av, const struct fi_av_set_attr *attr, void *context)
{
	struct av_set *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fid.fid = (struct fid){FI_CLASS_AV_SET, context, &fid_ops};
	s->fid.ops = &set_ops;
	list_init(&s->in_domain);
	s->av = av;
	s->flags = attr->flags;
	if (attr->comm_key_size) {
		s->comm_key = malloc(attr->comm_key_size);
		if (!s->comm_key) {
			free(s);
			return NULL;
		}
		memcpy(s->comm_key, attr->comm_key, attr->comm_key_size);
		s->comm_key_size = attr->comm_key_size;
	}
	return s;
}

int av_set_open(struct fid_av *fid, struct fi_av_set_attr *attr, struct fid_av_set **set,
		void *context)
{
	struct av *av = av_of(fid);
	struct av_set *s;
	int err = attr && set ? av_set_check_attr(attr) : -FI_EINVAL;

	if (err)
		return err;
	s = av_set_create(av, attr, context);
	if (!s)
		return -FI_ENOMEM;
	domain_lock(av->dom);
	err = av_set_fill(s, attr);
	if (!err) {
		ref_get(&av->ref);
		s->number = ++av->dom->set_count;
		list_push(&av->dom->sets, &s->in_domain);
	}
	domain_unlock(av->dom);
	if (err) {
		av_set_destroy(s);
		return err;
	}
	*set = &s->fid;
	return 0;
}
