/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 300 endpoints, 100 in each of three processes: a message goes round the ring of all, then all
 * send to one hub. A host may have that many peers.
 */
#include <sys/resource.h>

#include "obj.h"

#define PROCESSES 3
#define EACH_MAX  100
#define ALL_MAX   (PROCESSES * EACH_MAX)
#define ROUNDS    3
#define TO_HUB    5

struct crowd {
	struct api *a;
	struct obj o;
	struct fid_ep *ep[EACH_MAX];
	fi_addr_t addr[ALL_MAX], hub_addr;
	struct fid_ep *hub; /* of process 0 */
	struct fid_cq *hub_cq;
};

struct shared {
	struct obj_name name[ALL_MAX], hub;
};

/* Returns the number of endpoints per process; emulated devices make queue pairs slowly. */
static int each(void)
{
	return strcmp(api_provider(), "verbs") ? EACH_MAX : 20;
}

static int total(void)
{
	return PROCESSES * each();
}

/* Raises the limit of descriptors to its maximum. */
static void raise_limit(void)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur < 4096)
		api_skip("too few descriptors allowed");
}

static void open_crowd(struct crowd *c, struct api *a)
{
	struct shared *all = a->shared;

	c->a = a;
	c->o.hints = obj_hints(FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV);
	obj_domain(&c->o);
	c->o.av = obj_av(&c->o, FI_AV_TABLE, 0);
	c->o.cq = obj_cq(&c->o, FI_WAIT_NONE);
	for (int i = 0; i < each(); i++) {
		c->ep[i] = obj_ready_ep(&c->o, c->o.cq);
		all->name[a->rank * each() + i] = obj_name(&c->ep[i]->fid);
	}
	if (a->rank == 0) {
		c->hub_cq = obj_cq(&c->o, FI_WAIT_NONE);
		c->hub = obj_ready_ep(&c->o, c->hub_cq);
		all->hub = obj_name(&c->hub->fid);
	}
	api_meet(a);
	for (int i = 0; i < total(); i++)
		c->addr[i] = obj_insert(c->o.av, &all->name[i]);
	c->hub_addr = obj_insert(c->o.av, &all->hub);
	obj_progress(a, c->o.cq);
}

static void close_crowd(struct crowd *c)
{
	for (int i = 0; i < each(); i++)
		CLOSE(c->ep[i]);
	if (c->hub) {
		CLOSE(c->hub);
		CLOSE(c->hub_cq);
	}
	obj_close(&c->o);
}

/* Sends the number of the round from endpoint `from` to its neighbour. */
static void pass_on(struct crowd *c, int from, const uint64_t *word)
{
	POST(c->o.cq, fi_tsend(c->ep[from % each()], word, sizeof(*word), NULL,
			       c->addr[(from + 1) % total()], (uint64_t)from, NULL));
}

/* Each endpoint waits for its neighbour's message and passes it on, ROUNDS times. */
static void ring(struct crowd *c)
{
	static uint64_t in[EACH_MAX], out[EACH_MAX];
	int base = c->a->rank * each(), sends = 0, left = each() * ROUNDS;

	for (int i = 0; i < each(); i++)
		OK(fi_trecv(c->ep[i], &in[i], 8, NULL, c->addr[(base + i + total() - 1) % total()],
			    (uint64_t)((base + i + total() - 1) % total()), 0, &in[i]));
	if (c->a->rank == 0) {
		out[0] = 1;
		pass_on(c, 0, &out[0]);
		sends++;
	}
	while (left || sends) {
		struct fi_cq_tagged_entry e = obj_next(c->o.cq, NULL);
		int i = (int)((uint64_t *)e.op_context - in);
		uint64_t round;

		if (e.flags & FI_SEND) {
			sends--;
			continue;
		}
		left--;
		round = in[i] + (base + i == 0);
		if (base + i == 0 && round > ROUNDS)
			continue;
		if (round < ROUNDS || base + i == 0)
			OK(fi_trecv(c->ep[i], &in[i], 8, NULL, FI_ADDR_UNSPEC,
				    (uint64_t)((base + i + total() - 1) % total()), 0, &in[i]));
		out[i] = round;
		pass_on(c, base + i, &out[i]);
		sends++;
	}
}

/* Takes the next message of each endpoint at the hub; each endpoint's messages arrive in order. */
static void hub_takes(struct crowd *c, int *from)
{
	static uint64_t words[64];
	static int posted;
	struct fi_cq_tagged_entry e;
	fi_addr_t src;
	uint64_t *word;

	while (posted < 64) {
		OK(fi_recv(c->hub, &words[posted], 8, NULL, FI_ADDR_UNSPEC, &words[posted]));
		posted++;
	}
	if (fi_cq_readfrom(c->hub_cq, &e, 1, &src) != 1)
		return;
	word = e.op_context;
	CHECK(src < (fi_addr_t)total());
	CHECK_EQ(*word >> 32, src);
	CHECK_EQ(*word & UINT32_MAX, from[src]);
	from[src]++;
	from[ALL_MAX]++;
	OK(fi_recv(c->hub, word, 8, NULL, FI_ADDR_UNSPEC, word));
}

static void hub(struct crowd *c)
{
	static int from[ALL_MAX + 1]; /* the last element counts all messages */

	for (int n = 0; n < TO_HUB; n++)
		for (int i = 0; i < each(); i++) {
			uint64_t word = (uint64_t)(c->a->rank * each() + i) << 32 | (uint64_t)n;

			OBJ_UNTIL(fi_inject(c->ep[i], &word, 8, c->hub_addr) == 0, {
				fi_cq_read(c->o.cq, NULL, 0);
				if (c->hub)
					hub_takes(c, from);
			});
		}
	if (c->hub)
		OBJ_UNTIL(from[ALL_MAX] == total() * TO_HUB, {
			fi_cq_read(c->o.cq, NULL, 0);
			hub_takes(c, from);
		});
}

static void crowd(struct api *a)
{
	struct crowd c = {0};

	obj_time_limit(40);
	raise_limit();
	open_crowd(&c, a);
	ring(&c);
	api_meet(a);
	hub(&c);
	api_meet(a);
	close_crowd(&c);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {{"crowd", crowd, PROCESSES, {0}}};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
