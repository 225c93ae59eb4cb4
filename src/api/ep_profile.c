/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile of an endpoint, fi_profile(3): the figures of rdma/fi_ext_weft.h, with names. */
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>
#include <rdma/fi_profile.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "api/ep.h"

struct profile {
	struct fid_profile fid;
	struct fid *ep;
	struct fi_weft_stats base; /* when it was set back */
	/* Between fi_profile_start_reads and fi_profile_end_reads, the figures of the first. */
	struct fi_weft_stats kept;
	bool keeps;
};

struct variable {
	uint32_t id;
	size_t offset; /* in struct fi_weft_stats */
	bool counts;   /* events; else it is how much there is now */
	const char *name, *desc;
};

/* Numbers behind those of rdma/fi_profile.h. Only ever added at the end. */
#define OWN(i) (FI_VAR_OFI_MEM + 1 + (i))

static const struct variable variables[] = {
	{FI_VAR_UNEXP_MSG_CNT, offsetof(struct fi_weft_stats, unexpected_count), false,
	 "unexp_msg_cnt", "messages that no receive has taken yet"},
	{OWN(0), offsetof(struct fi_weft_stats, unexpected_bytes), false, "unexpected_bytes",
	 "bytes that these messages occupy"},
	{OWN(1), offsetof(struct fi_weft_stats, unexpected_dropped), true, "unexpected_dropped",
	 "messages dropped at a limit of unexpected ones"},
	{OWN(2), offsetof(struct fi_weft_stats, unexpected_disconnected), true,
	 "unexpected_disconnected", "peers disconnected at such a limit"},
	{OWN(3), offsetof(struct fi_weft_stats, answers_bytes), false, "answers_bytes",
	 "bytes of answers that peers have not read yet"},
	{OWN(4), offsetof(struct fi_weft_stats, answers_disconnected), true, "answers_disconnected",
	 "peers disconnected as they left too many unread"},
	{OWN(5), offsetof(struct fi_weft_stats, pending_count), false, "pending_count",
	 "accepted connections that have no answer yet"},
	{OWN(6), offsetof(struct fi_weft_stats, unauthorized_refused), true, "unauthorized_refused",
	 "connections refused for want of the key or of a place in the address vector"},
};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

static struct profile *profile_of(struct fid_profile *fid)
{
	return (struct profile *)((char *)fid - offsetof(struct profile, fid));
}

static void ep_profile_reset(struct fid_profile *fid, uint64_t flags)
{
	struct profile *p = profile_of(fid);

	(void)flags;
	ep_stats_read(p->ep, &p->base, sizeof(p->base));
}

static ssize_t query_vars(struct fid_profile *fid, struct fi_profile_desc *list, size_t *count)
{
	size_t room;

	(void)fid;
	if (!count)
		return -FI_EINVAL;
	room = list ? *count : 0;
	for (size_t i = 0; i < room && i < VARIABLES; i++)
		list[i] = (struct fi_profile_desc){.id = variables[i].id,
						   .datatype_sel = fi_primitive_type,
						   .datatype.primitive = FI_UINT64,
						   .size = sizeof(uint64_t),
						   .name = variables[i].name,
						   .desc = variables[i].desc};
	*count = VARIABLES;
	return 0;
}

static ssize_t query_events(struct fid_profile *fid, struct fi_profile_desc *list, size_t *count)
{
	(void)fid;
	(void)list;
	if (!count)
		return -FI_EINVAL;
	*count = 0;
	return 0;
}

static const struct variable *ep_profile_find(uint32_t id)
{
	for (size_t i = 0; i < VARIABLES; i++)
		if (variables[i].id == id)
			return &variables[i];
	return NULL;
}

static uint64_t ep_profile_figure(const struct fi_weft_stats *stats, const struct variable *v)
{
	return *(const uint64_t *)(const void *)((const char *)stats + v->offset);
}

static ssize_t read_var(struct fid_profile *fid, uint32_t id, void *data, size_t *size)
{
	const struct profile *p = profile_of(fid);
	const struct variable *v = ep_profile_find(id);
	struct fi_weft_stats now = p->kept;
	uint64_t value;
	int err;

	if (!v || !data || !size)
		return -FI_EINVAL;
	if (*size < sizeof(value))
		return -FI_ETOOSMALL;
	err = p->keeps ? 0 : ep_stats_read(p->ep, &now, sizeof(now));
	if (err)
		return err;
	value = ep_profile_figure(&now, v) - (v->counts ? ep_profile_figure(&p->base, v) : 0);
	memcpy(data, &value, sizeof(value));
	*size = sizeof(value);
	return sizeof(value);
}

static int reg_callback(struct fid_profile *fid, uint32_t event,
			int (*callback)(struct fid_profile *, struct fi_profile_desc *, void *,
					size_t, void *),
			void *context)
{
	(void)fid;
	(void)event;
	(void)callback;
	(void)context;
	return -FI_EINVAL; /* there are no events */
}

static void start_reads(struct fid_profile *fid, uint64_t flags)
{
	struct profile *p = profile_of(fid);

	(void)flags;
	p->keeps = !ep_stats_read(p->ep, &p->kept, sizeof(p->kept));
}

static void end_reads(struct fid_profile *fid, uint64_t flags)
{
	(void)flags;
	profile_of(fid)->keeps = false;
}

static int profile_close(struct fid *fid)
{
	fid_free(fid);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(profile_close, fid_no_bind, fid_no_control);

static struct fi_profile_ops profile_ops = {
	.size = sizeof(struct fi_profile_ops),
	.reset = ep_profile_reset,
	.query_vars = query_vars,
	.query_events = query_events,
	.read_var = read_var,
	.reg_callback = reg_callback,
	.start_reads = start_reads,
	.end_reads = end_reads,
};

int ep_profile_open(struct fid *ep, void **ops, void *context)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -FI_ENOMEM;
	p->ep = ep;
	p->fid.fid = (struct fid){.fclass = FI_CLASS_PROFILE, .context = context, .ops = &fid_ops};
	p->fid.ops = &profile_ops;
	*ops = &p->fid.ops;
	return 0;
}
