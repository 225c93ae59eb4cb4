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
struct fi_weft_stats;
struct offload;
struct rx;
struct worker;

struct ep {
	struct fid_ep fid;
	/* Fields that data operations use, set by bind and enable. */
	struct domain *dom;
	struct sharded shard;
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
	size_t inject_least;   /* the least limit of all kinds */
	size_t tx_size;        /* limit of operations queued for a connection */
	struct rx *rx;         /* the receives that the application posts to, or NULL */
	uint64_t rx_flags;     /* of receives that take no flags */
	uint64_t rx_msg_flags; /* added to the flags of ...msg calls */
	/* Fields that only the slow paths use. */
	struct ep *base; /* an alias: its endpoint; a context: its scalable endpoint; else self */
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
	uint64_t tx_op_flags, rx_op_flags;     /* default flags as the application set them */
	bool enabled;
	bool is_alias;
	unsigned int barred;      /* PROVIDER_ bits of transports that the application forbids */
	bool firewalled;          /* FI_OPT_FIREWALL_ADDR: peers cannot connect to it */
	struct ep_tables *tables; /* fid.msg, tagged, rma, atomic, collective: see xfer_tables */
	struct list in_domain;    /* dom->callees, once enabled */
	struct list aliases;      /* struct ep.in_aliases */
	struct list in_aliases;
	unsigned int index;           /* of a context in its scalable endpoint */
	struct ep **tx_ctx, **rx_ctx; /* contexts of a scalable endpoint, NULL: not open */
	unsigned int tx_count, rx_count;
	struct ep_cm *cm; /* connection state of a FI_EP_MSG endpoint, else NULL */
	size_t min_multi_recv;
	size_t rma_inject_max, atomic_inject_max;
	size_t inject_limit; /* upper limit (bytes) for all kinds */
	int ref;             /* atomic: contexts, aliases, endpoints that use a shared context */
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

static inline struct ep *ep_of(struct fid_ep *fid)
{
	return (struct ep *)fid;
}

/*
 * Returns the limit (bytes) of injected operations of a kind: FI_ATOMIC, FI_RMA, FI_TAGGED, else
 * messages.
 */
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

/* Functions that the files of endpoints and contexts share. */
struct ep *ep_new(struct domain *dom, size_t fclass, void *context);
int ep_own_info(struct ep *ep, const struct fi_info *info);
void ep_free(struct ep *ep);
/*
 * Opens, if there is none, the worker of the endpoint, or of the context's scalable endpoint, and
 * sets ep->worker. 0 or a negative error. Domain locked.
 */
int ep_worker(struct ep *ep);
/* Closes a worker that nothing uses yet. Domain locked. */
void ep_drop_worker(struct ep *ep);
int ep_enable(struct ep *ep);
int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* Waits for peers that access memory directly. 0 or -FI_EBUSY. Not locked. */
int ep_quiesce(struct ep *ep);
/* Serves peers a last time, before their connections are closed. Waits a bounded time. Not locked. */
void ep_serve_last(struct ep *ep);
int ep_close(struct fid *fid);
int ep_control(struct fid *fid, int command, void *arg);
int ep_stats_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
/* The call `read` of FI_WEFT_STATS. */
int ep_stats_read(struct fid *fid, struct fi_weft_stats *stats, size_t size);
/* What fi_profile_open opens: the endpoint's profile, closed before it. 0 or -FI_ENOMEM. */
int ep_profile_open(struct fid *ep, void **ops, void *context);
/*
 * Fills the tables of an endpoint or context and of its aliases: with what bindings and default flags permit, and in the
 * instance with the domain's lock or without. Domain locked.
 */
void ep_install(struct ep *ep);
/* 0, or -FI_EBADFLAGS: operations of one side (FI_TRANSMIT or FI_RECV) cannot honour them as defaults. */
int ep_flags_check(const struct ep *ep, uint64_t side, uint64_t flags);
int ep_flags_get(const struct ep *ep, uint64_t *flags);
int ep_flags_set(struct ep *ep, uint64_t flags);
/* Combines default flags and the flags of bindings into the fields that entries use. */
void ep_fold_flags(struct ep *ep, uint64_t tx_op_flags, uint64_t rx_op_flags);
int ep_alias(struct ep *ep, struct fi_alias *arg);
/* Copies the endpoint's state to its aliases, and installs their entries. */
void ep_refresh_aliases(struct ep *ep);
/*
 * Binding to an enabled endpoint.
 *
 * ep_late: 0 if an object of this class may still be bound. ep_late_cq and ep_late_cntr make reads
 * of the queue or counter progress the endpoint's worker; call them after the flags were checked
 * and before the endpoint refers to the object. On error nothing has changed, and the error is
 * logged. ep_late_cq, ep_late_cntr and ep_take_bindings: domain locked.
 */
int ep_late(const struct ep *ep, size_t fclass);
int ep_late_cq(struct ep *ep, struct cq *cq, uint64_t flags);
int ep_late_cntr(struct ep *ep, struct cntr *cntr, uint64_t flags);
/* Puts late bindings into effect for entries, receives and aliases. */
void ep_take_bindings(struct ep *ep);
/* The part of ep_take_bindings for aliases. */
void ep_follow_base(struct ep *base);
/* Drops a reference to a shared transmit context. */
void sep_stx_put(struct stx *stx);
int ep_option_get(fid_t fid, int level, int optname, void *optval, size_t *optlen);
int ep_option_set(fid_t fid, int level, int optname, const void *optval, size_t optlen);

extern struct fi_ops_ep ep_ops;
extern struct fi_ops_ep sep_ops;
extern struct fi_ops_ep stx_ops;

int ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
	     void *context);
int sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int sep_tx_context(struct fid_ep *sep, int idx, struct fi_tx_attr *attr, struct fid_ep **ep,
		   void *context);
int sep_rx_context(struct fid_ep *sep, int idx, struct fi_rx_attr *attr, struct fid_ep **ep,
		   void *context);
int sep_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
		 void *context);
int sep_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		 void *context);

#endif
