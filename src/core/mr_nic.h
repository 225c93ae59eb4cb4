/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that are also registered with a network device: peers of the engine access them by RDMA,
 * without us, by the lower half of the key. Only for domains with FI_MR_PROV_KEY and
 * FI_MR_VIRT_ADDR.
 */
#ifndef WEFT_CORE_MR_NIC_H
#define WEFT_CORE_MR_NIC_H

#include "core/mr_table.h"

/* Opens the device of the domain's address, if there is one. false: none. Domain locked. */
bool mr_nic_open(struct domain *dom);
void mr_nic_close(struct domain *dom);

/*
 * Registers the region with the device, if that is of use. Called before the region gets a key,
 * domain not locked.
 */
void mr_nic_add(struct domain *dom, struct region *r);
/* Makes the region known to mr_nic_find, once it has a key. Domain locked. */
void mr_nic_enter(struct domain *dom, struct region *r);
/* Deregisters the region: the device refuses accesses from now on. Domain locked. */
void mr_nic_remove(struct domain *dom, struct region *r);

/*
 * Finds the device's lkey for local memory inside a registered region. `write`: the device will
 * write there. Domain locked.
 */
bool mr_nic_find(struct domain *dom, const struct iovec *memory, bool write, uint32_t *lkey);

#endif
