/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds a second veth pair to the two hosts of lab.h: eth1, with addresses 10.99.1.1 and 10.99.1.2. */
#ifndef FAULT_TWO_WIRES_H
#define FAULT_TWO_WIRES_H

#include "lab.h"

/* Called by both after lab_enter. */
static inline void second_wire(const struct lab *lab)
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
	if (run("ip addr add 10.99.1.%d/24 dev eth1 && ip link set eth1 up", lab->which + 1))
		fail("no address of the second wire");
}

#endif
