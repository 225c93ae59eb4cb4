/* SPDX-License-Identifier: BSD-2-Clause */
/* Members that call different collectives: all affected calls fail, and no wrong data is kept. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

#define WORDS 64

static uint64_t in[WORDS * API_RANKS], out[WORDS * API_RANKS];

/* The pending collective ends with an error. */
static void ends_wrong(struct group *g)
{
	struct side *s = &g->c->s;
	struct fi_cq_tagged_entry none;
	struct fi_cq_err_entry e = {0};
	ssize_t ret;

	while ((ret = fi_cq_read(s->tx, &none, 1)) == -FI_EAGAIN)
		sched_yield();
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(s->tx, &e, 0), 1);
	CHECK(e.op_context == g);
	CHECK(e.err == FI_EINVAL || e.err == FI_ETRUNC);
}

/* The first member makes this call, the others the one with the fields `odd_*`. */
struct pair_of {
	enum fi_datatype type, odd_type;
	enum fi_op op, odd_op;
	size_t count, odd_count;
	bool odd_gather; /* others call allgather instead */
};

static ssize_t call(struct group *g, enum fi_datatype type, enum fi_op op, size_t count,
		    bool gather)
{
	if (gather)
		return fi_allgather(g->c->s.ep, in, count, NULL, out, NULL, g->addr, type, 0, g);
	return fi_allreduce(g->c->s.ep, in, count, NULL, out, NULL, g->addr, type, op, 0, g);
}

static void differ(struct api *a, const struct pair_of *p)
{
	struct group g, other;
	struct club c;
	ssize_t ret;

	club_open(&c, a);
	group_all(&g, &c);
	group_all(&other, &c);
	if (a->rank)
		ret = call(&g, p->odd_type, p->odd_op, p->odd_count, p->odd_gather);
	else
		ret = call(&g, p->type, p->op, p->count, false);
	/* The call may fail at once if the mismatch is known already. */
	if (ret)
		CHECK(ret == -FI_EINVAL || ret == -FI_ETRUNC);
	else
		ends_wrong(&g);
	CHECK(fi_barrier(c.s.ep, g.addr, NULL) < 0);
	group_barrier(&other);
	group_close(&g);
	group_close(&other);
	club_close(&c);
}

static void types(struct api *a)
{
	differ(a, &(struct pair_of){FI_UINT64, FI_DOUBLE, FI_SUM, FI_SUM, 1, 1, false});
}

static void types_and_counts(struct api *a)
{
	differ(a, &(struct pair_of){FI_UINT64, FI_UINT32, FI_SUM, FI_SUM, 2, 4, false});
}

static void operators(struct api *a)
{
	differ(a, &(struct pair_of){FI_UINT64, FI_UINT64, FI_SUM, FI_MAX, WORDS, WORDS, false});
}

static void counts(struct api *a)
{
	differ(a, &(struct pair_of){FI_UINT64, FI_UINT64, FI_SUM, FI_SUM, 3, 1, false});
}

static void kinds(struct api *a)
{
	differ(a, &(struct pair_of){FI_UINT64, FI_UINT64, FI_SUM, FI_SUM, 1, 1, true});
}

/* Different calls that move the same bytes are compatible. */
static void same(struct api *a)
{
	struct fi_ioc ioc = {in, 2};
	struct fi_msg_collective m = {.msg_iov = &ioc,
				      .iov_count = 1,
				      .coll = FI_BROADCAST,
				      .datatype = FI_UINT64,
				      .op = a->rank ? FI_ATOMIC_READ : FI_NOOP};
	struct group g;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	m.coll_addr = g.addr;
	m.root_addr = c.s.addr[0];
	m.context = &g;
	in[0] = a->rank ? 0 : 5;
	POST(&c.s, c.s.ep->collective->msg(c.s.ep, &m, NULL, NULL, 0, 0));
	GROUP_DONE(&c, &g);
	CHECK_EQ(in[0], 5);
	group_close(&g);
	club_close(&c);
}

/* A mismatch with a message that is too long to be sent eagerly. */
static void long_beside_short(struct api *a)
{
	static char much[4 << 20];
	struct group g;
	struct club c;
	ssize_t ret;

	club_open(&c, a);
	group_all(&g, &c);
	if (!a->rank) {
		api_meet(a);
		usleep(50000); /* the peer waits already */
	}
	ret = fi_broadcast(c.s.ep, much, a->rank ? 8 : sizeof(much), NULL, g.addr, c.s.addr[0],
			   FI_UINT8, 0, &g);
	if (a->rank)
		api_meet(a);
	if (ret)
		CHECK(ret == -FI_EINVAL || ret == -FI_ETRUNC);
	else
		ends_wrong(&g);
	group_close(&g);
	club_close(&c);
}

/* Barriers carry no data, so counts do not matter. */
static void barriers(struct api *a)
{
	struct fi_ioc ioc = {in, 2};
	struct fi_msg_collective m = {.msg_iov = &ioc,
				      .iov_count = a->rank ? 1 : 0,
				      .coll = FI_BARRIER,
				      .datatype = FI_VOID,
				      .op = FI_NOOP};
	struct group g;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	m.coll_addr = g.addr;
	m.context = &g;
	POST(&c.s, c.s.ep->collective->msg(c.s.ep, &m, NULL, NULL, 0, 0));
	GROUP_DONE(&c, &g);
	group_close(&g);
	club_close(&c);
}

static const struct api_case cases[] = {
	{"types", types, 2, {0}},
	{"types_five", types, 5, {0}},
	{"types_and_counts", types_and_counts, 2, {0}},
	{"operators", operators, 2, {0}},
	{"operators_three", operators, 3, {0}},
	{"counts", counts, 2, {0}},
	{"kinds", kinds, 2, {0}},
	{"same", same, 3, {0}},
	{"long_beside_short", long_beside_short, 2, {0}},
	{"barriers", barriers, 2, {0}},
};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
