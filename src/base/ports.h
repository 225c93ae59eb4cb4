/* SPDX-License-Identifier: BSD-2-Clause */
/* The port numbers that endpoints choose from, as the user permits them. */
#ifndef WEFT_BASE_PORTS_H
#define WEFT_BASE_PORTS_H

#include <stdbool.h>
#include <stdint.h>

struct ports {
	unsigned int low, count;
	bool given; /* by the user; else the dynamic port numbers */
};

/* FI_TCP_PORT_LOW_RANGE to FI_TCP_PORT_HIGH_RANGE, also of datagrams. A wrong range is logged and ignored. */
struct ports ports_to_use(void);
/* Returns a random one of the numbers; ports_next returns the others one by one, then that one again. */
uint16_t ports_first(const struct ports *ports);
uint16_t ports_next(const struct ports *ports, uint16_t port);

#endif
