/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint keeps for its peers, and knows of them: rdma/fi_ext_weft.h. The same figures, with names, are its
 * profile, fi_profile(3).
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>
#include <rdma/fi_profile.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "base/fid.h"
#include "base/file.h"
#include "xfer/engine.h"

/* Calls `done` with the endpoint's worker, domain locked. 0 or a negative error. */
static int with_worker(struct fid *fid, int (*done)(struct worker *worker, void *arg), void *arg)
{
	struct ep *ep = (struct ep *)fid;
	int err;

	domain_lock(ep->dom);
	err = ep->worker ? done(ep->worker, arg) : -FI_EOPBADSTATE;
	domain_unlock(ep->dom);
	return err;
}

static int read_stats(struct worker *worker, void *arg)
{
	worker_stats(worker, arg);
	return 0;
}

/* The call `read` of FI_WEFT_STATS. */
static int ep_stats_read(struct fid *fid, struct fi_weft_stats *stats, size_t size)
{
	struct fi_weft_stats all = {.size = size < sizeof(all) ? size : sizeof(all)};
	int err;

	if (!stats || size < sizeof(stats->size))
		return -FI_EINVAL;
	err = with_worker(fid, read_stats, &all);
	if (!err)
		memcpy(stats, &all, all.size);
	return err;
}

struct one_peer {
	fi_addr_t addr;
	struct fi_weft_peer state;
};

static int ep_stats_describe(struct worker *worker, void *arg)
{
	struct one_peer *one = arg;

	return worker_peer_state(worker, one->addr, &one->state);
}

static int peers_read(struct fid *fid, fi_addr_t addr, struct fi_weft_peer *peer, size_t size)
{
	struct one_peer one = {.addr = addr};
	int err;

	if (!peer || size < sizeof(peer->size))
		return -FI_EINVAL;
	one.state.size = size < sizeof(one.state) ? size : sizeof(one.state);
	err = with_worker(fid, ep_stats_describe, &one);
	if (!err)
		memcpy(peer, &one.state, one.state.size);
	return err;
}

static int begin_connect(struct worker *worker, void *arg)
{
	return worker_connect(worker, *(fi_addr_t *)arg);
}

static int peers_connect(struct fid *fid, fi_addr_t addr)
{
	return with_worker(fid, begin_connect, &addr);
}

static int ep_stats_report(struct worker *worker, void *arg)
{
	worker_report(worker, arg);
	return 0;
}

static int peers_write(struct fid *fid, int fd)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int err;

	if (!out)
		return -FI_ENOMEM;
	err = with_worker(fid, ep_stats_report, out);
	if (fclose(out) && !err)
		err = -FI_ENOMEM;
	if (!err)
		err = file_write_all(fd, text, len);
	free(text);
	return err;
}

static const struct fi_weft_ops_peers peers_ops = {
	.size = sizeof(peers_ops),
	.read = peers_read,
	.connect = peers_connect,
	.write = peers_write,
	.reason = worker_reason,
};

static const struct fi_weft_ops_stats stats_ops = {
	.size = sizeof(stats_ops),
	.read = ep_stats_read,
};

/* ---- The profile ---- */

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
	(void)fid, (void)list;
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
	(void)fid, (void)event, (void)callback, (void)context;
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

/* What fi_profile_open opens, closed before the endpoint. 0 or -FI_ENOMEM. */
static int ep_profile_open(struct fid *ep, void **ops, void *context)
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

int ep_stats_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	const void *found = NULL;

	if (name && !strcmp(name, FI_WEFT_STATS))
		found = &stats_ops;
	else if (name && !strcmp(name, FI_WEFT_PEERS))
		found = &peers_ops;
	else if (!name || strcmp(name, "fi_profile_ops") != 0)
		return fid_no_ops_open(fid, name, flags, ops, context);
	if (!ops || flags)
		return -FI_EINVAL;
	if (!found)
		return ep_profile_open(fid, ops, context);
	*ops = (void *)(uintptr_t)found;
	return 0;
}
