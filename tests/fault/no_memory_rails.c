/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=180
 * An endpoint without memory for what another host's operations over two wires need, the windows of the link included: served.h.
 */
#define LIMIT 170

#include "served.h"
#include "hello.h"
#include "two_wires.h"

static int orders[2];

static struct outcome over_wires(const char *auth, unsigned int fails, unsigned int row)
{
	struct outcome o;

	tell(orders[1], "b", 1);
	o = served_target(auth, fails, row);
	tell(orders[1], "e", 1);
	hear(orders[1], &(char){0}, 1);
	return o;
}

/* The first host: an initiator for each run. */
static void initiate(void)
{
	char order;
	pid_t pid;

	for (hear(orders[0], &order, 1); order == 'b'; hear(orders[0], &order, 1)) {
		pid = start("initiator", initiator, NULL);
		hear(orders[0], &order, 1);
		slay(pid);
		tell(orders[0], "", 1);
	}
}

static void on_host(void *arg)
{
	const struct lab *lab = arg;

	lab_enter(lab);
	second_wire(lab);
	setenv("FI_WEFT_RAILS", "2", 1);
	ends[lab->which] = lab->end;
	ends[!lab->which] = -1;
	close(orders[!lab->which]);
	if (lab->which) {
		served_walk(over_wires, NULL, 20);
		tell(orders[1], "q", 1);
	} else {
		initiate();
	}
}

int main(void)
{
	alarm(LIMIT);
	need_memory();
	need_lab();
	need_network();
	wire(orders);
	two_hosts(on_host);
	return EXIT_SUCCESS;
}
