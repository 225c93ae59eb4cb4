/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint keeps for its peers, and knows of them: rdma/fi_ext_weft.h. */
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "base/file.h"
#include "api/ep.h"
#include "link/engine.h"

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

int ep_stats_read(struct fid *fid, struct fi_weft_stats *stats, size_t size)
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
