/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120 Long collectives with more members than most hosts have processors: all lengths,
 * reused memory, two groups in turns. Also a group that ends before some members have read what was
 * sent to them.
 */
#define API_RANKS 17
#define API_LIMIT                                                                                  \
	40 /* on two cores that others use, too, 17 processes that wait for each other take long */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

enum { LONGEST = 3300003, TIMES = 36 };

static unsigned char in[LONGEST], out[LONGEST], want[LONGEST];

struct crowd {
	struct group *g;
	int n, rank;
	unsigned int time; /* number of this round */
	size_t len;
};

/* Returns the seed of the data that `rank` sends in this round. */
static unsigned int seed_of(const struct crowd *c, int rank)
{
	return c->time * 32 + (unsigned int)rank;
}

static void finish(struct crowd *c)
{
	GROUP_DONE(c->g->c, c->g);
}

/* Sends twice from the same memory. */
static void broadcast(struct crowd *c)
{
	struct side *s = &c->g->c->s;
	int root = (int)c->time % c->n;

	for (int again = 0; again < 2; again++) {
		unsigned int seed = seed_of(c, root + 1000 * again);

		if (c->rank == root)
			data_fill(out, c->len, seed);
		else
			memset(out, 0, c->len);
		POST(s, fi_broadcast(s->ep, out, c->len, NULL, c->g->addr, group_entry(c->g, root),
				     FI_UINT8, 0, c->g));
		finish(c);
		data_check(out, c->len, seed);
	}
}

static size_t piece_of(const struct crowd *c)
{
	size_t most = LONGEST / (size_t)c->n;

	return c->len < most ? c->len : most;
}

static void alltoall(struct crowd *c)
{
	struct side *s = &c->g->c->s;
	size_t piece = piece_of(c);

	data_fill(in, piece * (size_t)c->n, seed_of(c, c->rank));
	POST(s, fi_alltoall(s->ep, in, piece, NULL, out, NULL, c->g->addr, FI_UINT8, 0, c->g));
	finish(c);
	for (int i = 0; i < c->n; i++)
		data_check_at(out + (size_t)i * piece, piece, seed_of(c, i),
			      (size_t)c->rank * piece);
}

static void allgather(struct crowd *c)
{
	struct side *s = &c->g->c->s;
	size_t piece = piece_of(c);

	data_fill(in, piece, seed_of(c, c->rank));
	POST(s, fi_allgather(s->ep, in, piece, NULL, out, NULL, c->g->addr, FI_UINT8, 0, c->g));
	finish(c);
	for (int i = 0; i < c->n; i++)
		data_check(out + (size_t)i * piece, piece, seed_of(c, i));
}

static void allreduce(struct crowd *c)
{
	struct side *s = &c->g->c->s;

	data_fill(in, c->len, seed_of(c, c->rank));
	POST(s, fi_allreduce(s->ep, in, c->len, NULL, out, NULL, c->g->addr, FI_UINT8, FI_SUM, 0,
			     c->g));
	finish(c);
	memset(want, 0, c->len);
	for (int rank = 0; rank < c->n; rank++)
		for (size_t i = 0; i < c->len; i++)
			want[i] = (unsigned char)(want[i] + data_byte(seed_of(c, rank), i));
	CHECK(!memcmp(out, want, c->len));
}

static void every_length(struct api *a)
{
	static const size_t lens[] = {5000,   16384,  20001,  65536,  100003,
				      262144, 262145, 400000, 1100001};
	void (*const calls[])(struct crowd *) = {broadcast, alltoall, allgather, allreduce};
	struct group groups[2];
	struct club club;

	club_open(&club, a);
	group_all(&groups[0], &club);
	group_all(&groups[1], &club);
	for (unsigned int time = 0; time < TIMES; time++) {
		struct crowd c = {.g = &groups[time % 2],
				  .n = a->ranks,
				  .rank = a->rank,
				  .time = time,
				  .len = lens[time % API_COUNT(lens)]};

		calls[time / 2 % 4](&c);
	}
	group_close(&groups[0]);
	group_close(&groups[1]);
	club_close(&club);
}

enum { SENT = 65536, LATE = 3 };

static void send_all(struct group *g, unsigned char *buf)
{
	struct side *s = &g->c->s;

	POST(s, fi_broadcast(s->ep, buf, SENT, NULL, g->addr, group_entry(g, 0), FI_UINT8, 0, g));
}

/* Waits for a collective. Returns 0 or a positive error. */
static int end_of(struct group *g)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(g->c->s.tx, &entry, 1)) == -FI_EAGAIN)
		sched_yield();
	if (ret == 1)
		return 0;
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(g->c->s.tx, &error, 0), 1);
	return error.err;
}

/*
 * One group ends during its broadcast, and the root sends that of another group. A late member of
 * the first group gets the first data or an error, never the data of the other group.
 */
static void not_anothers(struct api *a)
{
	static unsigned char first[SENT], second[SENT];
	struct group ends, stays;
	struct club club;

	club_open(&club, a);
	group_all(&ends, &club);
	group_all(&stays, &club);
	send_all(&ends, first); /* connects all members */
	GROUP_DONE(&club, &ends);
	group_barrier(&ends);
	group_barrier(&stays);
	if (!a->rank) {
		data_fill(first, SENT, 1);
		data_fill(second, SENT, 2);
	}
	api_meet(a);
	if (!a->rank)
		send_all(&ends, first);
	api_meet_still(a);
	if (a->rank == a->ranks - 1)
		OK(fi_close(&ends.mc->fid));
	api_meet_still(a);
	if (!a->rank) {
		int err = end_of(&ends); /* 0 if the data was sent down a tree */

		CHECK(!err || err == FI_ECONNABORTED);
		send_all(&stays, second);
	}
	api_meet_still(a);
	if (a->rank == LATE) {
		send_all(&ends, first);
		if (!end_of(&ends))
			data_check(first, SENT, 1);
	}
	api_meet(a);
	_exit(0); /* the others do not take part in the second broadcast */
}

static const struct api_case cases[] = {{"three", every_length, 3, {0}},
					{"three_no_cma", every_length, 3, {"FI_SHM_DISABLE_CMA=1"}},
					{"five", every_length, 5, {0}},
					{"all", every_length, API_RANKS, {0}},
					{"not_anothers", not_anothers, API_RANKS, {0}}};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
