/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that a network device knows, too: peers of the engine reach them by it, through the lower half of
 * the key, without us. Of domains whose keys are the library's and whose addresses are those of the memory.
 */
#ifndef WEFT_CORE_MR_NIC_H
#define WEFT_CORE_MR_NIC_H

#include "core/mr_table.h"

/* Opens the domain's device if there is one to be had. Domain locked. False: there is none. */
bool mr_nic_open(struct domain *dom);
void mr_nic_close(struct domain *dom);

/* Before the region has a key: tells the device, if that is of use. */
void mr_nic_add(struct domain *dom, struct region *r);
/* It has one: what is sent from here, or brought, finds the device's key by the address. Domain locked. */
void mr_nic_enter(struct domain *dom, struct region *r);
/* Nobody gets at it by the device any more. Domain locked. */
void mr_nic_remove(struct domain *dom, struct region *r);

/* The device's key for memory of ours that lies in such a region; `write`: the device writes there. */
bool mr_nic_find(struct domain *dom, const struct iovec *memory, bool write, uint32_t *lkey);

#endif
