/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA devices of this host as the kernel's sysfs tells of them: whether there are any, and which
 * port of which device an IP address belongs to. No library of theirs is loaded for that.
 */
#ifndef WEFT_INFO_RDMA_PORTS_H
#define WEFT_INFO_RDMA_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

#define RDMA_NAME_MAX 64

/* A way out of this host: a port of a device, and how packets from there are addressed. */
struct rdma_port {
	char device[RDMA_NAME_MAX];
	uint8_t port;       /* of the device, from 1 */
	bool infiniband;    /* else Ethernet (RoCE) */
	uint16_t gid_index; /* in the port's table */
	uint8_t gid[16];
};

/* Is there any device? Costs a look at one directory. */
bool rdma_ports_any(void);

/*
 * The active port that has the address, or the GID that it holds: one whose table of GIDs holds it, as RoCE v2 rather than v1; else,
 * as any address will do on InfiniBand, the first active port of that kind. FI_VERBS_DEVICE_NAME and
 * FI_VERBS_GID_IDX narrow the choice. False: there is none.
 */
bool rdma_ports_find(const struct addr *a, struct rdma_port *found);

#endif
