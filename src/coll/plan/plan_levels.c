/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives in two levels: inside hosts, and between one leader per host. A vector crosses the
 * network once per host instead of once per member. A host's leader is its first member; on the
 * root's host it is the root.
 *
 * Barrier, broadcast, reduce and allreduce work with any layout. The others move one piece per
 * member: they need hosts with consecutive ranks and equally many members, so that the pieces of a
 * host form one piece of its leader. Ordered operators need consecutive ranks, too.
 *
 * Long vectors:
 *
 * broadcast  In chunks, along a chain of leaders; each passes a chunk on inside its host while the
 *            next one comes. Of too many hosts for its chunks: scattered and gathered by leaders.
 * allreduce  Where hosts have equally many members, each of a host's members reduces a piece of the
 *            vector inside the host, then with the members of its number on the other hosts: all
 *            members use the network at once, and where each has a rail of its own, stay on it.
 * others     With consecutive ranks, the flat algorithms: most of their messages stay inside a
 *            host, and leaders are no bottleneck.
 */
#include "coll/plan/plan_own.h"

enum {
	LONG = 256 * 1024,       /* bytes of a vector; of all pieces together */
	CHUNK_MOST = 256 * 1024, /* bytes of a chunk of a broadcast */
	CHUNK_LEAST = 64 * 1024,
	LONG_PIECE = 256,             /* bytes of a piece of alltoall */
	LONG_TABLE = 4 * 1024 * 1024, /* bytes of all pieces of a host's members in alltoall */
};

/* One member's view of both levels. */
struct levels {
	const struct plan_build *b;
	const struct layout *layout;
	bool leads, longer; /* longer: the vector has LONG bytes or more */
	struct plan_build host, leaders;
};

/* Can an allreduce give each member of a host a piece? */
static bool plan_levels_splits(const struct plan_shape *s)
{
	return s->layout->each > 1 && !s->ordered && plan_bytes(s) >= LONG;
}

static bool plan_levels_worth(const struct plan_build *b)
{
	const struct plan_shape *s = &b->shape;
	const struct layout *l = s->layout;
	size_t bytes = plan_bytes(s);

	if (!l || l->hosts == 1 || l->hosts == s->size || (s->ordered && l->order))
		return false;
	if (s->kind == FI_BARRIER)
		return true;
	switch (s->kind) {
	case FI_BROADCAST:
		return true;
	case FI_ALLREDUCE:
		return l->order || bytes < LONG || plan_levels_splits(s);
	case FI_REDUCE:
		return l->order || bytes < LONG;
	case FI_ALLTOALL:
		return !l->order && bytes <= LONG_PIECE && l->each &&
		       (uint64_t)l->each * s->size * bytes <= LONG_TABLE;
	default:
		return !l->order && l->each && bytes < LONG / s->size;
	}
}

static struct levels levels_of(const struct plan_build *b)
{
	const struct plan_shape *s = &b->shape;
	const struct layout *l = s->layout;
	struct levels v = {.b = b, .layout = l, .host = *b, .leaders = *b};
	uint32_t root = layout_place(l, s->root), root_host = layout_host_at(l, root);
	uint32_t first = l->first[l->mine];

	v.host.among = PLAN_HOST;
	v.host.near = true;
	v.host.shape.layout = v.leaders.shape.layout = NULL;
	v.host.shape.rank = layout_place(l, s->rank) - first;
	v.host.shape.size = layout_here(l, l->mine);
	v.host.shape.root = root_host == l->mine ? root - first : 0;
	v.leaders.among = PLAN_LEADERS;
	v.leaders.near = false;
	v.leaders.shape.rank = l->mine;
	v.leaders.shape.size = l->hosts;
	v.leaders.shape.root = root_host;
	b->plan->root = s->root;
	b->plan->root_host = root_host;
	b->plan->number = v.host.shape.rank;
	v.longer = plan_bytes(s) >= LONG;
	v.leads = v.host.shape.rank == v.host.shape.root;
	return v;
}

/* Only the leader gets the result of a reduction or gather. */
static void in_host(struct levels *v, enum fi_collective_op kind, size_t count,
		    struct plan_place in, struct plan_place out)
{
	struct plan_build *h = &v->host;

	h->shape.kind = kind;
	h->shape.count = count;
	h->shape.overlap = v->leads ? v->b->shape.overlap : PLAN_APART;
	h->in = in;
	h->out = out;
	choose_flat(h);
}

/* If `in` is in OUT, the leader's data already is in its place there. */
static void plan_levels_between(struct levels *v, enum fi_collective_op kind, size_t count,
				struct plan_place in, struct plan_place out)
{
	struct plan_build *l = &v->leaders;

	l->shape.kind = kind;
	l->shape.count = count;
	l->shape.overlap = in.space == out.space && in.space == PLAN_OUT ? PLAN_SAME : PLAN_APART;
	l->in = in;
	l->out = out;
	if (v->leads)
		choose_flat(l);
}

/* Reserves scratch on leaders; other members get an unused place. */
static struct plan_place leader_scratch(struct levels *v, size_t count)
{
	return v->leads ? plan_keep(v->b->plan, count) : v->b->out;
}

static void plan_levels_barrier(struct levels *v)
{
	v->host.tune = 8;
	plan_add(&v->host, &plan_tree_reduce, 0, false);
	plan_levels_between(v, FI_BARRIER, 0, v->b->in, v->b->out);
	plan_add(&v->host, &plan_tree_broadcast, 0, false);
}

/* Each chunk goes along the chain, and into the host while the next one comes. */
static void broadcast_chunks(struct levels *v, size_t chunk)
{
	struct plan_build *l = &v->leaders;

	l->tune = chunk;
	l->in = l->out = v->b->out;
	if (v->leads)
		plan_add(l, &plan_chain, chunk, false);
	in_host(v, FI_BROADCAST, chunk, v->b->out, v->b->out);
	plan_by_chunks(v->b->plan, chunk, v->b->shape.count);
}

/*
 * Returns the elements of the longest chunks that are not many fewer than the hosts: a vector takes as
 * much longer to the last host as that has hosts before it. 0: there are too many hosts.
 */
static size_t chunk_for(const struct levels *v, size_t count)
{
	for (size_t bytes = CHUNK_MOST; bytes >= CHUNK_LEAST; bytes /= 2) {
		size_t chunk = v->b->shape.width < bytes ? bytes / v->b->shape.width : 1;

		if (count / chunk + 2 >= v->layout->hosts)
			return chunk;
	}
	return 0;
}

static void plan_levels_broadcast(struct levels *v, size_t count)
{
	size_t chunk = v->longer ? chunk_for(v, count) : 0;

	if (chunk) {
		broadcast_chunks(v, chunk);
		return;
	}
	plan_levels_between(v, FI_BROADCAST, count, v->b->out, v->b->out);
	in_host(v, FI_BROADCAST, count, v->b->out, v->b->out);
}

static void plan_levels_reduce(struct levels *v, size_t count)
{
	bool root = v->b->shape.rank == v->b->shape.root;
	struct plan_place sum = root ? v->b->out : leader_scratch(v, count);

	in_host(v, FI_REDUCE, count, v->b->in, sum);
	plan_levels_between(v, FI_REDUCE, count, sum, v->b->out);
}

/* The piece of each member of a host is reduced there, then across hosts, then passed around. */
static void allreduce_split(struct levels *v, size_t count)
{
	struct plan_build *h = &v->host, across = v->leaders;
	size_t at = plan_cut(count, h->shape.size, h->shape.rank);

	plan_add(h, &plan_ring_reduce_scatter, count, v->b->shape.overlap == PLAN_SAME);
	across.among = PLAN_ACROSS;
	across.shape.kind = FI_ALLREDUCE;
	across.shape.count = plan_cut(count, h->shape.size, h->shape.rank + 1) - at;
	across.shape.overlap = PLAN_SAME;
	across.in = across.out = plan_past(v->b->out, at);
	if (across.shape.count)
		choose_flat(&across);
	plan_add(h, &plan_ring_allgather, count, true);
}

static void plan_levels_allreduce(struct levels *v, size_t count)
{
	if (plan_levels_splits(&v->b->shape)) {
		allreduce_split(v, count);
		return;
	}
	in_host(v, FI_REDUCE, count, v->b->in, v->b->out);
	plan_levels_between(v, FI_ALLREDUCE, count, v->b->out, v->b->out);
	in_host(v, FI_BROADCAST, count, v->b->out, v->b->out);
}

static void plan_levels_allgather(struct levels *v, size_t count)
{
	size_t each = v->layout->each * count;
	struct plan_place own = plan_past(v->b->out, v->layout->mine * each);

	in_host(v, FI_GATHER, count, v->b->in, own);
	plan_levels_between(v, FI_ALLGATHER, each, own, v->b->out);
	in_host(v, FI_BROADCAST, each * v->layout->hosts, v->b->out, v->b->out);
}

static void plan_levels_gather(struct levels *v, size_t count)
{
	size_t each = v->layout->each * count;
	bool root = v->b->shape.rank == v->b->shape.root;
	struct plan_place own =
		root ? plan_past(v->b->out, v->layout->mine * each) : leader_scratch(v, each);

	in_host(v, FI_GATHER, count, v->b->in, own);
	plan_levels_between(v, FI_GATHER, each, own, v->b->out);
}

static void plan_levels_scatter(struct levels *v, size_t count)
{
	size_t each = v->layout->each * count;
	struct plan_place own = leader_scratch(v, each);

	plan_levels_between(v, FI_SCATTER, each, v->b->in, own);
	in_host(v, FI_SCATTER, count, own, v->b->out);
}

static void plan_levels_reduce_scatter(struct levels *v, size_t count)
{
	size_t each = v->layout->each * count, all = each * v->layout->hosts;
	struct plan_place sum = leader_scratch(v, all), own = leader_scratch(v, each);

	in_host(v, FI_REDUCE, all, v->b->in, sum);
	plan_levels_between(v, FI_REDUCE_SCATTER, each, sum, own);
	in_host(v, FI_SCATTER, count, own, v->b->out);
}

/* Transposes a matrix of blocks, on the leader. */
static void plan_levels_transpose(const struct levels *v, struct plan_place in,
				  struct plan_place out, uint32_t rows, uint32_t columns,
				  size_t elements)
{
	struct plan_build matrix = v->leaders;

	if (!v->leads)
		return;
	matrix.in = in;
	matrix.out = out;
	matrix.shape.size = rows;
	matrix.tune = columns;
	plan_add(&matrix, &plan_transpose, elements, false);
}

/*
 * The leader gathers the pieces of its host's members, sorts them by destination host, exchanges
 * them, sorts what it received by member, and scatters.
 */
static void plan_levels_alltoall(struct levels *v, size_t count)
{
	uint32_t here = v->layout->each, hosts = v->layout->hosts, size = here * hosts;
	size_t all = (size_t)here * size * count;
	struct plan_place a = leader_scratch(v, all), b = leader_scratch(v, all);

	in_host(v, FI_GATHER, size * count, v->b->in, a);
	plan_levels_transpose(v, a, b, here, hosts, all);
	plan_levels_between(v, FI_ALLTOALL, (size_t)here * here * count, b, a);
	plan_levels_transpose(v, a, b, size, here, all);
	in_host(v, FI_SCATTER, size * count, b, v->b->out);
}

bool plan_levels(const struct plan_build *b)
{
	static void (*const makes[])(struct levels * v, size_t count) = {
		[FI_BROADCAST] = plan_levels_broadcast,
		[FI_ALLREDUCE] = plan_levels_allreduce,
		[FI_ALLGATHER] = plan_levels_allgather,
		[FI_REDUCE_SCATTER] = plan_levels_reduce_scatter,
		[FI_REDUCE] = plan_levels_reduce,
		[FI_SCATTER] = plan_levels_scatter,
		[FI_GATHER] = plan_levels_gather,
		[FI_ALLTOALL] = plan_levels_alltoall,
	};
	struct levels v;

	if (!plan_levels_worth(b))
		return false;
	v = levels_of(b);
	if (b->shape.kind == FI_BARRIER)
		plan_levels_barrier(&v);
	else
		makes[b->shape.kind](&v, b->shape.count);
	return true;
}
