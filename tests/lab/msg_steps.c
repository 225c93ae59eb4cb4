/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts messages on two connected endpoints of the provider "verbs", one instruction step at a
 * time, for msg_cost.sh: msg_steps 10.77.0.1. See ../source/steps.h for the output.
 */
#include "../source/steps.h"
#include "msg_ends.h"

#define WARM_UP 40

static struct end a, b;

static void expect(size_t len)
{
	OK(fi_recv(b.ep, b.memory, len, b.desc, 0, &b));
}

static void arrived(void)
{
	done(&a, SENT, &a);
	done(&b, CAME, &b);
}

static int run(void *address)
{
	open_all(address);
	connect_with(&a, &b, ACCESS);
	for (int i = 0; i < WARM_UP; i++) {
		expect(8);
		OK(fi_send(a.ep, a.memory, 8, a.desc, 0, &a));
		arrived();
	}
	expect(8);
	COUNT("send", fi_send(a.ep, a.memory, 8, a.desc, 0, &a));
	arrived();
	expect(4096);
	COUNT("send-4096", fi_send(a.ep, a.memory, 4096, a.desc, 0, &a));
	arrived();
	COUNT("recv", fi_recv(b.ep, b.memory, 8, b.desc, 0, &b));
	COUNT("inject", fi_inject(a.ep, a.memory, 8, 0));
	done(&b, CAME, &b);
	return 0;
}

int main(int argc, char **argv)
{
	return argc == 2 ? steps_of(run, argv[1]) : 2;
}
