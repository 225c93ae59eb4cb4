/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Active endpoints, and the objects that the same calls apply to: scalable endpoints with their
 * transmit and receive contexts, shared contexts, aliases. fi_endpoint(3).
 */
#ifndef WEFT_CORE_EP_H
#define WEFT_CORE_EP_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "cntr/cntr.h"
#include "core/av.h"
#include "core/cq.h"
#include "core/domain.h"
#include "core/eq.h"

struct ep_cm;
struct ep_tables;
struct offload;
struct rx;
struct worker;

struct ep {
	struct fid_ep fid;
	/* Fields that data operations use, set by bind and enable. */
	struct domain *dom;
	struct sharded shard;
	/* From here to `base` is what an alias has from its endpoint: ep_refresh_aliases. */
	struct worker *worker;
	struct cq *tx_cq;
	struct cntr *tx_cntr;                /* FI_SEND */
	struct cntr *read_cntr, *write_cntr; /* FI_READ, FI_WRITE, as initiator */
	uint64_t tx_flags;                   /* of sends that take no flags */
	uint64_t tx_msg_flags;               /* added to the flags of ...msg calls */
	uint64_t
		tx_msg_mask; /* of those flags, what has a meaning: no FI_COMPLETION without a queue */
	uint64_t addr_mask; /* strips the receive context off a fi_addr_t */
	uint64_t rx_shift;  /* position of the receive context in a fi_addr_t */
	uint64_t rx_index_mask;
	size_t inject_max; /* limits (bytes) of injected operations, by kind: ep_inject_max */
	size_t tagged_inject_max;
	size_t inject_least; /* the least limit of all kinds */
	size_t tx_size;      /* limit of operations queued for a connection */
	struct rx *rx;       /* the receives that the application posts to, or NULL */
	uint64_t
		rx_flags; /* of receives that take no flags; atomic, as the next: ep_end_receives */
	uint64_t rx_msg_flags; /* added to the flags of ...msg calls */
	/* Fields that only the slow paths use. */
	struct fi_info *info;
	struct av *av;
	struct eq *eq;
	struct cq *rx_cq;
	struct cntr *cntrs[6];   /* by event: SEND RECV READ WRITE REMOTE_READ REMOTE_WRITE */
	struct ep *srx;          /* bound shared receive context, or NULL */
	struct offload *offload; /* the device's part of an enabled endpoint, or NULL */
	void *device_srx;        /* a shared receive context whose receives a device has, or NULL */
	struct stx *stx;
	struct rx *own_rx;                     /* closed with the endpoint */
	uint64_t tx_bind_flags, rx_bind_flags; /* FI_SELECTIVE_COMPLETION */
	bool enabled;
	unsigned int barred; /* PROVIDER_ bits of transports that the application forbids */
	bool firewalled;     /* FI_OPT_FIREWALL_ADDR: peers cannot connect to it */
	unsigned int index;  /* of a context in its scalable endpoint */
	struct ep **tx_ctx, **rx_ctx; /* contexts of a scalable endpoint, NULL: not open */
	unsigned int tx_count, rx_count;
	struct ep_cm *cm; /* connection state of a FI_EP_MSG endpoint, else NULL */
	size_t min_multi_recv;
	size_t rma_inject_max, atomic_inject_max;
	size_t inject_limit; /* upper limit (bytes) for all kinds */
	struct ep *base; /* an alias: its endpoint; a context: its scalable endpoint; else self */
	bool is_alias;
	struct ep_tables *tables; /* fid.msg, tagged, rma, atomic, collective: see xfer_tables */
	uint64_t tx_op_flags, rx_op_flags; /* default flags as the application set them */
	struct list in_domain;             /* dom->callees, once enabled */
	struct list aliases;               /* struct ep.in_aliases */
	struct list in_aliases;
	int ref; /* atomic: contexts, aliases, endpoints that use a shared context */
};

/*
 * A shared transmit context owns nothing: sends use the endpoint's worker. The application may
 * close it while endpoints are bound to it: they still send, and the last of them frees it.
 */
struct stx {
	struct fid_stx fid;
	struct domain *dom; /* valid until `closed` */
	int ref; /* atomic: one for the application until it closes, one per bound endpoint */
	bool closed;
};

#define EP_ENDED (UINT64_C(1) << 63) /* in rx_flags: no more messages will arrive */

static inline struct ep *ep_of(struct fid_ep *fid)
{
	return (struct ep *)fid;
}

static inline uint64_t ep_rx_flags(const struct ep *ep)
{
	return __atomic_load_n(&ep->rx_flags, __ATOMIC_RELAXED);
}

static inline uint64_t ep_rx_msg_flags(const struct ep *ep)
{
	return __atomic_load_n(&ep->rx_msg_flags, __ATOMIC_RELAXED);
}

/* Returns the limit (bytes) of injected operations of a kind: FI_ATOMIC, FI_RMA, FI_TAGGED, else messages. */
static inline size_t ep_inject_max(const struct ep *ep, uint64_t kind)
{
	if (kind & FI_ATOMIC)
		return ep->atomic_inject_max;
	if (kind & FI_RMA)
		return ep->rma_inject_max;
	return kind & FI_TAGGED ? ep->tagged_inject_max : ep->inject_max;
}

/* Lowers the limits of injected operations of all kinds to `most` bytes. */
void ep_limit_inject(struct ep *ep, size_t most);
/* Sets the limit for one kind; `value` must not exceed ep->inject_limit. */
void ep_set_inject(struct ep *ep, uint64_t kind, size_t value);

#endif
