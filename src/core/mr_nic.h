/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that are also registered with a network device: peers of the engine access them by RDMA, without us, by the
 * lower half of the key. Only for domains with FI_MR_PROV_KEY and FI_MR_VIRT_ADDR.
 */
#ifndef WEFT_CORE_MR_NIC_H
#define WEFT_CORE_MR_NIC_H

#include "core/mr_table.h"
#include "link/link.h"

/* A region's registration with a further device: a transport makes and owns it. */
struct mr_further {
	struct list in_region; /* region.further */
	/* Ends it, because the region ends. Domain locked. */
	void (*remove)(struct mr_further *further);
};

/*
 * Opens the device of the domain's address, if there is one; after it was taken away, again when no region is left there.
 * false: there is none. Domain locked.
 */
bool mr_nic_open(struct domain *dom);
/* Closes a device that was taken away, unless it has regions: the kernel may wait for that. Domain locked. */
void mr_nic_let_go(struct domain *dom);
void mr_nic_close(struct domain *dom);

/* Registers the region with the device, if that is of use. Called before the region gets a key, domain not locked. */
void mr_nic_add(struct domain *dom, struct region *r);
/* Makes the region known to mr_nic_find, once it has a key. Domain locked. */
void mr_nic_enter(struct domain *dom, struct region *r);
/* Deregisters the region: devices refuse accesses from now on. Domain locked. */
void mr_nic_remove(struct domain *dom, struct region *r);

/* Returns the region of the key if the device has it, so that others may, too; or NULL. Domain locked. */
struct region *mr_nic_region(const struct domain *dom, uint64_t key);
/* Returns what to register of it with a device. */
struct device_region mr_nic_memory(const struct region *r);

/*
 * Finds the device's lkey for local memory inside a registered region. `write`: the device will
 * write there. Domain locked.
 */
bool mr_nic_find(struct domain *dom, const struct iovec *memory, bool write, uint32_t *lkey);

#endif
