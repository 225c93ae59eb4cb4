/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions of a domain, and lookup by key. fi_mr(3). */
#ifndef WEFT_CORE_MR_H
#define WEFT_CORE_MR_H

#include <rdma/fi_domain.h>
#include <stdbool.h>

#include "core/domain.h"

struct cntr;

struct mr {
	struct fid_mr fid; /* key: as peers use it; mem_desc: the region itself */
	struct domain *dom;
	uint64_t access; /* FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE */
	uint64_t flags;
	uint64_t offset; /* remote address of the region's first byte */
	size_t length;   /* bytes of all segments together */
	size_t iov_count;
	struct iovec *iov;
	bool enabled;      /* with FI_MR_ENDPOINT or FI_MR_RMA_EVENT only after fi_mr_enable */
	struct cntr *cntr; /* counts the accesses of cntr_flags, or NULL */
	uint64_t cntr_flags;
	struct fid_ep *ep; /* bound endpoint, or NULL */
	/* The device's keys, if a device has the region; peers use rkey. */
	uint32_t lkey, rkey;
	void *handle; /* the device's registration, or NULL */
};

/* The domain's registration calls, and those on a region. */
extern const struct fi_ops_mr mr_ops;
extern struct fi_ops mr_object_ops;

int mr_table_open(struct domain *dom); /* sets dom->mrs; 0 or -FI_ENOMEM */
void mr_table_close(struct domain *dom);

/* FI_MAP_RAW_MR and FI_UNMAP_KEY of fi_control on the domain. */
int mr_domain_control(int command, void *arg);

/*
 * Finds the enabled region of `key` that grants all of `access` to [addr, addr + len). Domain
 * locked. 0, -FI_ENOKEY, -FI_EACCES or -FI_EINVAL (bounds); logs the reason.
 */
int mr_check(struct domain *dom, uint64_t key, uint64_t addr, size_t len, uint64_t access,
	     struct mr **mr);

/* The same without a log line: returns the region, or NULL. */
struct mr *mr_granted(const struct domain *dom, uint64_t key, uint64_t addr, size_t len,
		      uint64_t access);

/*
 * mr_check for an access that has taken place: its region may be one of the last that were closed;
 * *mr is NULL then.
 */
int mr_check_past(struct domain *dom, uint64_t key, uint64_t addr, size_t len, uint64_t access,
		  struct mr **mr);
/* Returns whether the region of `key` is one of the last that were closed. Domain locked. */
bool mr_closed_lately(const struct domain *dom, uint64_t key);

/*
 * Peers on this host have the table of regions as a memfd, owned by the domain; -1: none, or a forked child. They notify
 * us of every access from mr_share_notify_all on (WIRE_NOTIFY). Domain locked.
 */
int mr_share_fd(const struct domain *dom);
void mr_share_notify_all(struct domain *dom);

#endif
