/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of a network card in an fi_info. fi_nic(3). */
#ifndef WEFT_INFO_NIC_H
#define WEFT_INFO_NIC_H

#include <rdma/fabric.h>

#include "info/ifaces.h"

/*
 * A description with all attributes there and empty, or NULL. Its strings are to be from malloc;
 * closing it frees them, prov_attr not. It answers FI_DUP.
 */
struct fid_nic *nic_new(void);

/* What is known of a network interface: its name and link. NULL: no memory. */
struct fid_nic *nic_of(const struct iface *iface);

#endif
