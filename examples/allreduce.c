/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives: the processes form a group. The first member broadcasts the number of strips,
 * each process computes its share of the area of a circle, and fi_allreduce adds up the shares,
 * so that all know pi.
 *
 *   allreduce -n 4 -p shm
 *
 * The program starts the processes itself. */
#include <rdma/fi_collective.h>
#include <stdint.h>
#include "node.h"

#define EVENT_MS 10000
#define STEPS    400000u

static struct {
	struct fid_eq *eq;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;
} group;

/* FI_JOIN_COMPLETE is an event, so the endpoint needs an event queue. */
static void open_node(const char *provider)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	node_open(node_hints(provider, FI_MSG | FI_COLLECTIVE), FI_TRANSMIT | FI_RECV);
	must(fi_eq_open(node.fabric, &attr, &group.eq, NULL), "fi_eq_open");
	must(fi_ep_bind(node.ep, &group.eq->fid, 0), "fi_ep_bind");
	node_start();
}

/* Joins a group of all addresses in the vector, in its order: member N is process N. All must
 * join. */
static void join(void)
{
	struct fi_av_set_attr attr = {
		.flags = FI_UNIVERSE, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL};
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	must(fi_av_set(node.av, &attr, &group.set, NULL), "fi_av_set");
	must(fi_av_set_addr(group.set, &group.addr), "fi_av_set_addr");
	must(fi_join_collective(node.ep, group.addr, group.set, 0, &group.mc, NULL),
	     "fi_join_collective");
	ret = fi_eq_sread(group.eq, &event, &entry, sizeof entry, EVENT_MS, 0);
	if (ret == -FI_EAVAIL && fi_eq_readerr(group.eq, &error, 0) > 0)
		fail("no group: %s", fi_strerror(error.err));
	must(ret, "fi_eq_sread");
	if (event != FI_JOIN_COMPLETE)
		fail("event %u instead of the end of the join", event);
	group.addr = fi_mc_addr(group.mc);
}

/* Broadcasts the number of strips, which only member 0 knows. */
static uint64_t agree(void)
{
	uint64_t steps = team.rank ? 0 : STEPS;

	while (node_full(fi_broadcast(node.ep, &steps, 1, NULL, group.addr, 0, FI_UINT64, 0, NULL),
			 "fi_broadcast"))
		;
	node_complete("fi_broadcast");
	return steps;
}

/* Returns our share of the area under a quarter of a circle: each process computes every n-th
 * strip. */
static double own_share(uint64_t steps)
{
	double sum = 0;

	for (uint64_t i = (uint64_t)team.rank; i < steps; i += (uint64_t)team.size) {
		double x = ((double)i + 0.5) / (double)steps;

		sum += 4 / (1 + x * x);
	}
	return sum / (double)steps;
}

static double add_up(double share)
{
	double whole = 0;

	while (node_full(fi_allreduce(node.ep, &share, 1, NULL, &whole, NULL, group.addr, FI_DOUBLE,
				      FI_SUM, 0, NULL),
			 "fi_allreduce"))
		;
	node_complete("fi_allreduce");
	return whole;
}

/* Checks that all processes have the same bits, by sending them to all. */
static void compare(double mine)
{
	double all[TEAM_MAX];

	while (node_full(
		fi_allgather(node.ep, &mine, 1, NULL, all, NULL, group.addr, FI_DOUBLE, 0, NULL),
		"fi_allgather"))
		;
	node_complete("fi_allgather");
	for (int i = 0; i < team.size; i++)
		if (memcmp(&all[i], &mine, sizeof mine) != 0)
			fail("process %d has another sum", i);
}

static void work(void)
{
	uint64_t steps = agree();
	double share = own_share(steps), pi = add_up(share);

	compare(pi);
	if (pi < 3.14159265 || pi > 3.14159266)
		fail("pi is %.9f?", pi);
	say("its share is %.9f, the sum of all %.9f", share, pi);
	while (node_full(fi_barrier(node.ep, group.addr, NULL), "fi_barrier"))
		;
	node_complete("fi_barrier");
}

int main(int argc, char **argv)
{
	const char *provider = NULL;
	int opt, count = 4;

	while ((opt = getopt(argc, argv, "n:p:h")) != -1) {
		if (opt == 'p')
			provider = optarg;
		else if (opt == 'n')
			count = atoi(optarg);
		if (opt == 'h' || opt == '?' || count < 1 || count > TEAM_MAX) {
			fputs("Usage: allreduce [-n PROCESSES] [-p PROVIDER]\n",
			      opt == 'h' ? stdout : stderr);
			return opt == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
		}
	}
	team_start(count, "allreduce");
	open_node(provider);
	join();
	work();
	must(fi_close(&group.mc->fid), "fi_close");
	must(fi_close(&group.set->fid), "fi_close");
	team_barrier(node_progress);
	node_stop();
	must(fi_close(&group.eq->fid), "fi_close");
	node_close();
	return EXIT_SUCCESS;
}
