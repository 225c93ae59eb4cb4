/* SPDX-License-Identifier: BSD-2-Clause */
/* Many processes on several hosts, in groups across hosts and within hosts: every collective with
 * many sizes; all elements are checked.
 *
 *     hosts_coll FOLDER RANK RANKS LOCAL
 *
 * Each host has LOCAL processes, the first host the first ones. */
#include <rdma/fi_collective.h>

#include "hosts_node.h"

#define MOST     60000 /* maximum elements of a buffer */
#define EVENT_MS 20000

static const size_t counts[] = {1, 0, 7, 300, 2500, 7000};

static struct fid_eq *eq;
static uint64_t in[MOST], out[MOST];
static unsigned char region[64];

struct group {
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;
	int ranks[NODE_RANKS], size, rank;
};

static void join(struct group *g)
{
	struct fi_av_set_attr attr = {.start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL};
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	must(fi_av_set(node.av, &attr, &g->set, NULL), "fi_av_set");
	for (int i = 0; i < g->size; i++) {
		must(fi_av_set_insert(g->set, node.peer[g->ranks[i]]), "fi_av_set_insert");
		if (g->ranks[i] == node.rank)
			g->rank = i;
	}
	must(fi_av_set_addr(g->set, &g->addr), "fi_av_set_addr");
	must(fi_join_collective(node.ep, g->addr, g->set, 0, &g->mc, NULL), "fi_join_collective");
	ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), EVENT_MS, 0);
	if (ret == -FI_EAVAIL && fi_eq_readerr(eq, &error, 0) > 0)
		die("no group of %d: %s", g->size, fi_strerror(error.err));
	must(ret, "fi_eq_sread");
	g->addr = fi_mc_addr(g->mc);
}

/* Returns input element `i` of a process. */
static uint64_t bring(int rank, size_t i)
{
	return (uint64_t)(rank + 1) * 1000003 + i * 31;
}

static uint64_t sum(const struct group *g, size_t i)
{
	uint64_t all = 0;

	for (int m = 0; m < g->size; m++)
		all += bring(g->ranks[m], i);
	return all;
}

static ssize_t call(struct group *g, enum fi_collective_op kind, size_t count, int root,
		    struct op *op)
{
	const enum fi_datatype type = FI_UINT64;
	fi_addr_t from = node.peer[g->ranks[root]];
	struct fid_ep *ep = node.ep;

	switch (kind) {
	case FI_BARRIER:
		return fi_barrier(ep, g->addr, op);
	case FI_BROADCAST:
		return fi_broadcast(ep, g->rank == root ? in : out, count, NULL, g->addr, from,
				    type, 0, op);
	case FI_ALLTOALL:
		return fi_alltoall(ep, in, count, NULL, out, NULL, g->addr, type, 0, op);
	case FI_ALLREDUCE:
		return fi_allreduce(ep, in, count, NULL, out, NULL, g->addr, type, FI_SUM, 0, op);
	case FI_ALLGATHER:
		return fi_allgather(ep, in, count, NULL, out, NULL, g->addr, type, 0, op);
	case FI_REDUCE_SCATTER:
		return fi_reduce_scatter(ep, in, count, NULL, out, NULL, g->addr, type, FI_SUM, 0,
					 op);
	case FI_REDUCE:
		return fi_reduce(ep, in, count, NULL, out, NULL, g->addr, from, type, FI_SUM, 0,
				 op);
	case FI_SCATTER:
		return fi_scatter(ep, in, count, NULL, out, NULL, g->addr, from, type, 0, op);
	default:
		return fi_gather(ep, in, count, NULL, out, NULL, g->addr, from, type, 0, op);
	}
}

/* Returns the expected value of element `i` of block `b`. */
static uint64_t want(const struct group *g, enum fi_collective_op kind, size_t count, int root,
		     size_t at)
{
	size_t b = at / count, i = at % count, own = (size_t)g->rank * count;

	switch (kind) {
	case FI_BROADCAST:
		return bring(g->ranks[root], at);
	case FI_ALLTOALL:
		return bring(g->ranks[b], own + i);
	case FI_ALLGATHER:
	case FI_GATHER:
		return bring(g->ranks[b], i);
	case FI_REDUCE_SCATTER:
		return sum(g, own + at);
	case FI_SCATTER:
		return bring(g->ranks[root], own + at);
	default:
		return sum(g, at);
	}
}

static size_t length(const struct group *g, enum fi_collective_op kind, size_t count, int root)
{
	bool is_root = g->rank == root;

	if (kind == FI_BARRIER || (is_root && kind == FI_BROADCAST) ||
	    (!is_root && (kind == FI_REDUCE || kind == FI_GATHER)))
		return 0;
	return kind == FI_ALLTOALL || kind == FI_ALLGATHER || kind == FI_GATHER
		       ? count * (size_t)g->size
		       : count;
}

static void collective(struct group *g, enum fi_collective_op kind, size_t count, int root)
{
	struct op op = {.peer = root};
	ssize_t ret;

	memset(out, 0, sizeof(out));
	while ((ret = call(g, kind, count, root, &op)) == -FI_EAGAIN)
		progress(0);
	must(ret, "a collective");
	node.open++;
	wait_until(0, "a collective");
	for (size_t i = 0; i < length(g, kind, count, root); i++)
		if (out[i] != want(g, kind, count, root, i))
			die("collective %d of %zu, root %d, in a group of %d: element %zu is wrong",
			    (int)kind, count, root, g->size, i);
	node.checked++;
}

static void use(struct group *g)
{
	join(g);
	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
		for (int kind = FI_BARRIER; kind <= FI_GATHER; kind++)
			collective(g, (enum fi_collective_op)kind, counts[c],
				   (int)(c * 3 + 1) % g->size);
	must(fi_close(&g->mc->fid), "fi_close of the group");
	must(fi_close(&g->set->fid), "fi_close of the set");
}

/* Uses the group of each `step`th process from `first` to `last`. */
static void use_every(int first, int last, int step)
{
	struct group g = {.size = 0};
	bool ours = false;

	for (int r = first; r <= last; r += step) {
		g.ranks[g.size++] = r;
		ours |= r == node.rank;
	}
	if (ours)
		use(&g);
}

static void backwards(void)
{
	struct group g = {.size = node.ranks};

	for (int r = 0; r < node.ranks; r++)
		g.ranks[r] = node.ranks - 1 - (r * 5) % node.ranks;
	use(&g);
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	if (!hints || argc != 5)
		return EXIT_FAILURE;
	node.dir = argv[1];
	node.rank = atoi(argv[2]);
	node.ranks = atoi(argv[3]);
	node.local = atoi(argv[4]);
	node.sleeps = node.rank % 2;
	hints->caps = FI_TAGGED | FI_RMA | FI_COLLECTIVE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	open_endpoint(hints, region, sizeof(region));
	must(fi_eq_open(node.fabric, &attr, &eq, NULL), "fi_eq_open");
	must(fi_ep_bind(node.ep, &eq->fid, 0), "fi_ep_bind");
	meet_peers(region);
	for (size_t i = 0; i < MOST; i++)
		in[i] = bring(node.rank, i);
	use_every(0, node.ranks - 1, 1);
	backwards();
	use_every(0, node.ranks - 1, 2);
	use_every(0, node.ranks - 1, node.local);
	use_every(1, node.ranks - 2, 1);
	use_every(node.rank / node.local * node.local,
		  node.rank / node.local * node.local + node.local - 1, 1);
	printf("rank %d of %d: %ld collectives\n", node.rank, node.ranks, node.checked);
	fflush(stdout);
	meet("closing");
	must(fi_close(&node.ep->fid), "fi_close");
	must(fi_close(&eq->fid), "fi_close");
	_exit(EXIT_SUCCESS);
}
