/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=120 Collectives, used as the manual shows. */
#define API_RANKS 17
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

static void barrier(struct api *a)
{
	struct group g;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	for (int i = 0; i < 100; i++)
		group_barrier(&g);
	group_close(&g);
	club_close(&c);
}

static void allreduce(struct api *a)
{
	uint64_t in = (uint64_t)a->rank + 1, out = 0;
	struct group g;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	for (int i = 0; i < 100; i++) {
		POST(&c.s, fi_allreduce(c.s.ep, &in, 1, NULL, &out, NULL, g.addr, FI_UINT64, FI_SUM,
					0, &out));
		GROUP_DONE(&c, &out);
		CHECK_EQ(out, (a->ranks * (a->ranks + 1)) / 2);
	}
	group_close(&g);
	club_close(&c);
}

static const struct api_case cases[] = {
	{"barrier", barrier, 2, {0}},           {"barrier_one", barrier, 1, {0}},
	{"barrier_five", barrier, 5, {0}},      {"barrier_many", barrier, 17, {0}},
	{"allreduce", allreduce, 2, {0}},       {"allreduce_one", allreduce, 1, {0}},
	{"allreduce_seven", allreduce, 7, {0}}, {"allreduce_many", allreduce, 17, {0}},
};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
