/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of a network card in fi_info. fi_getinfo(3). */
#ifndef WEFT_INFO_NIC_H
#define WEFT_INFO_NIC_H

#include <rdma/fabric.h>

#include "info/ifaces.h"

/*
 * Returns a description with all attributes, empty; or NULL. Its strings must be from malloc:
 * closing frees them, but not prov_attr. Supports FI_DUP.
 */
struct fid_nic *nic_new(void);

/* Returns a network interface's description: its name, bus and link; NULL: no memory. */
struct fid_nic *nic_of(const struct iface *iface);

/*
 * Returns the bus of a network interface. It may be that of a device further up, as of a virtio device, which is
 * behind a PCI device. FI_BUS_UNKNOWN: it is on none, or the kernel does not tell. `sys`: where sysfs is.
 */
struct fi_bus_attr nic_bus(const char *sys, const char *name);

#endif
