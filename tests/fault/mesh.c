/* SPDX-License-Identifier: BSD-2-Clause TIMEOUT=120 */
/*
 * All processes of a job connect to all others at the same moment, many times: in each round they open new endpoints,
 * send to each other at once, and close. Nobody hangs, and each message comes once. With two processes the connects cross
 * in most rounds. Nobody is refused where a listener has few places, either. Arguments: processes and rounds; OPTIONAL=1 takes as many as a large job has.
 */
#define LIMIT    limit
#define CROWD_MS 50000
static unsigned int limit = 110;

#include "crowd.h"

#define HAND_LIMIT 3600
#define ALONE_MS   50000 /* nobody waits longer for the others */

static struct shared {
	struct name name[2][CROWD_MOST]; /* by round */
	unsigned int opened, done;       /* of all rounds */
} * shared;

static unsigned int processes, rounds;

/* Counts this process, and makes progress until all have come as far. */
static void arrive(struct crowd *c, unsigned int *count, unsigned int round)
{
	uint64_t end = now_ms() + ALONE_MS;
	unsigned int all = processes * (round + 1), seen;
	struct event e;

	__atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL);
	while ((seen = __atomic_load_n(count, __ATOMIC_ACQUIRE)) < all) {
		if (now_ms() > end)
			fail("round %u: %u of %u processes are missing", round, all - seen,
			     processes);
		if (!c)
			usleep(CROWD_NAP_US);
		else if (crowd_poll(c, &e))
			fail("round %u: an event too many", round);
	}
}

static void open_again(struct crowd *c, unsigned int round)
{
	if (round)
		must(fi_endpoint(c->n.domain, c->n.info, &c->n.ep, NULL), "fi_endpoint");
	node_bind(&c->n);
	c->ep[0] = c->n.ep;
	c->count = 1;
}

static void exchange(struct crowd *c, unsigned int me, unsigned int round)
{
	crowd_receive(c, 0, processes - 1);
	crowd_fill(&c->out[0], me, round);
	for (unsigned int i = 1; i < processes; i++)
		MUST(c->n.cq, fi_send(c->n.ep, &c->out[0], crowd_len(me, round), NULL,
				      c->peer[(me + i) % processes], &c->out[0]));
	crowd_await(c, 2 * (processes - 1), round);
}

static void live(void *arg)
{
	unsigned int me = *(unsigned int *)arg;
	static struct crowd c;

	node_create(&c.n, NULL);
	for (unsigned int round = 0; round < rounds; round++) {
		open_again(&c, round);
		shared->name[round % 2][me] = crowd_name(&c, 0);
		arrive(NULL, &shared->opened, round);
		c.inserted = 0;
		for (unsigned int i = 0; i < processes; i++)
			crowd_insert(&c, &shared->name[round % 2][i]);
		exchange(&c, me, round);
		arrive(&c, &shared->done, round);
		must(fi_close(&c.n.ep->fid), "fi_close");
		must(fi_av_remove(c.n.av, c.peer, processes, 0), "fi_av_remove");
	}
	exit(EXIT_SUCCESS);
}

static void run_job(unsigned int count, unsigned int times)
{
	unsigned int index[CROWD_MOST];
	pid_t child[CROWD_MOST];
	uint64_t begin = now_ms();

	processes = count;
	rounds = times;
	memset(shared, 0, sizeof(*shared));
	for (unsigned int i = 0; i < count; i++) {
		index[i] = i;
		child[i] = start("process", live, &index[i]);
	}
	for (unsigned int i = 0; i < count; i++)
		finish(child[i], "process");
	printf("%u processes, all to all, %u times: %llu ms\n", count, times,
	       (unsigned long long)(now_ms() - begin));
}

int main(int argc, char **argv)
{
	const char *optional = getenv("OPTIONAL");
	bool large = optional && *optional == '1';

	need_provider();
	setenv("FI_TCP_IFACE", "lo", 1);
	shared = crowd_share(sizeof(*shared));
	if (argc > 2) {
		limit = HAND_LIMIT;
		alarm(limit);
		run_job((unsigned int)strtoul(argv[1], NULL, 10),
			(unsigned int)strtoul(argv[2], NULL, 10));
		return EXIT_SUCCESS;
	}
	alarm(limit);
	run_job(2, 1000);
	run_job(large ? 128 : 16, 5);
	setenv("FI_WEFT_PENDING_MAX", "4", 1);
	run_job(16, 5);
	return EXIT_SUCCESS;
}
