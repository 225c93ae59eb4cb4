/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This host's RDMA devices, from the kernel's sysfs: whether there are any, and which port has an
 * IP address. Loads no RDMA library.
 */
#ifndef WEFT_INFO_RDMA_PORTS_H
#define WEFT_INFO_RDMA_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

#define RDMA_NAME_MAX   64
#define RDMA_CHOICE_MAX 192

/* A port of a device, and how packets from this port are addressed. */
struct rdma_port {
	char device[RDMA_NAME_MAX];
	uint8_t port;       /* port number, from 1 */
	bool infiniband;    /* false: Ethernet (RoCE) */
	uint16_t gid_index; /* index into the port's GID table */
	uint8_t gid[16];
};

/* Is there any device? Reads one directory. */
bool rdma_ports_any(void);

/*
 * Finds the active port with this IP address or GID in its GID table, RoCE v2 preferred to v1. Else
 * finds the first active InfiniBand port, where any address will do. FI_VERBS_DEVICE_NAME,
 * FI_VERBS_IFACE and FI_VERBS_GID_IDX narrow the choice. Returns false if there is none.
 */
bool rdma_ports_find(const struct addr *a, struct rdma_port *found);

/* Writes which settings narrow the choice, for the end of a message. Returns `text`. */
const char *rdma_ports_choice(char text[RDMA_CHOICE_MAX]);

#endif
