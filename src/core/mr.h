/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions of a domain and the table that finds them by key. fi_mr(3). */
#ifndef WEFT_CORE_MR_H
#define WEFT_CORE_MR_H

#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "core/domain.h"

struct cntr;

struct mr {
	struct fid_mr fid; /* key: what peers name; mem_desc: the region itself */
	struct domain *dom;
	uint64_t access; /* FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE */
	uint64_t flags;
	uint64_t offset; /* what a remote address of the region's first byte is */
	size_t length;   /* bytes of all segments together */
	size_t iov_count;
	struct iovec *iov;
	bool enabled;      /* FI_MR_ENDPOINT: only after fi_mr_enable */
	struct cntr *cntr; /* FI_REMOTE_WRITE (and READ) events, or NULL */
	uint64_t cntr_flags;
	struct fid_ep *ep; /* bound with FI_MR_ENDPOINT, or NULL */
	/* Of a domain with a device, which knows the region by these; the key is the second. */
	uint32_t lkey, rkey;
	void *handle; /* the device's */
};

/* fi_ops_mr of the domain. */
extern const struct fi_ops_mr mr_ops;

int mr_table_open(struct domain *dom); /* fills dom->mrs */
void mr_table_close(struct domain *dom);

/* FI_MAP_RAW_MR and FI_UNMAP_KEY, which fi_control gets on the domain. */
int mr_domain_control(struct domain *dom, int command, void *arg);

/*
 * Finds the enabled region of `key` that grants all of `access` to [addr, addr + len). Domain
 * locked. 0, -FI_ENOKEY, -FI_EACCES or -FI_EINVAL (bounds), a reason in the log.
 */
int mr_check(struct domain *dom, uint64_t key, uint64_t addr, size_t len, uint64_t access,
	     struct mr **mr);

/* The enabled region of `key`, or NULL. Domain locked. */
struct mr *mr_find(struct domain *dom, uint64_t key);

#endif
