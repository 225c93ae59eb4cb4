/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds a second veth pair to the two hosts of lab.h: eth1, with addresses 10.99.1.1 and 10.99.1.2. */
#ifndef FAULT_TWO_WIRES_H
#define FAULT_TWO_WIRES_H

#include "lab.h"

/* Makes the pair alone: an interface without an address. Called by both after lab_enter, as the other ones here. */
static inline void make_second_wire(const struct lab *lab)
{
	if (lab->which == 1) {
		tell(lab->end, "", 1);
		hear(lab->end, &(char){0}, 1);
	} else {
		hear(lab->end, &(char){0}, 1);
		if (run("ip link add eth1 type veth peer name eth1 netns %d", (int)lab->peer))
			fail("no second wire");
		tell(lab->end, "", 1);
	}
}

static inline void second_wire(const struct lab *lab)
{
	make_second_wire(lab);
	if (run("ip addr add 10.99.1.%d/24 dev eth1 && ip link set eth1 up", lab->which + 1))
		fail("no address of the second wire");
}

/* Gives both wires token buckets with these parameters. */
static inline void slow_wires(const char *parameters)
{
	for (unsigned int i = 0; i < 2; i++)
		if (run("tc qdisc add dev eth%u root tbf %s", i, parameters))
			fail("no limit for eth%u", i);
}

/* Bytes that this host has sent by a wire. */
static inline unsigned long long bytes_of(unsigned int wire)
{
	FILE *file = fopen("/proc/self/net/dev", "r");
	unsigned long long bytes = 0;
	char line[512], name[16];

	snprintf(name, sizeof(name), "eth%u:", wire);
	while (file && fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, name);

		/* The ninth count is that of bytes sent. */
		if (at &&
		    sscanf(at + strlen(name), "%*s %*s %*s %*s %*s %*s %*s %*s %llu", &bytes) != 1)
			fail("no count of eth%u", wire);
	}
	if (file)
		fclose(file);
	return bytes;
}

#endif
