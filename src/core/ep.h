/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Active endpoints and what the same calls apply to: scalable endpoints and their transmit and
 * receive contexts, shared contexts, aliases. fi_endpoint(3).
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

struct entry_own;
struct ep_cm;
struct offload;
struct rx;
struct worker;

struct ep {
	struct fid_ep fid;
	/* What a send touches, set at bind and enable. */
	struct domain *dom;
	struct worker *worker;
	struct cq *tx_cq;
	struct cntr *tx_cntr;                /* FI_SEND */
	struct cntr *read_cntr, *write_cntr; /* FI_READ, FI_WRITE: of what it initiates */
	uint64_t tx_flags;                   /* of sends without flags of their own */
	uint64_t tx_msg_flags;               /* added to the flags of ...msg calls */
	uint64_t tx_msg_mask; /* and what of theirs counts: no completions without a queue */
	uint64_t addr_mask;   /* strips the receive context off a fi_addr_t */
	uint64_t rx_shift;    /* ... and where it is */
	uint64_t rx_index_mask;
	size_t inject_max; /* bytes an operation may inject, by kind: ep_inject_max */
	size_t tagged_inject_max;
	size_t inject_least;   /* of all kinds */
	size_t tx_size;        /* operations that may wait for a connection */
	struct rx *rx;         /* where receives are posted, or NULL */
	uint64_t rx_flags;     /* of receives without flags of their own */
	uint64_t rx_msg_flags; /* added to the flags of ...msg calls */
	/* The rest. */
	struct ep *base; /* what an alias is an alias of, or a context belongs to; else self */
	struct fi_info *info;
	struct av *av;
	struct eq *eq;
	struct cq *rx_cq;
	struct cntr *cntrs[6]; /* by event: SEND RECV READ WRITE REMOTE_READ REMOTE_WRITE */
	struct ep *srx;        /* FI_CLASS_SRX_CTX bound */
	struct offload
		*offload; /* the device that performs its operations, once enabled; or NULL */
	void *device_srx; /* of such a context, where a device has the receives; else NULL */
	struct stx *stx;
	struct rx *own_rx;                     /* ours to close */
	uint64_t tx_bind_flags, rx_bind_flags; /* FI_SELECTIVE_COMPLETION */
	uint64_t tx_op_flags, rx_op_flags;     /* defaults as the application set them */
	bool enabled;
	bool is_alias;
	unsigned int barred;      /* PROVIDER_ bits of what the application does not permit */
	struct entry_own *tables; /* what fid.msg, tagged, rma and atomic point at once enabled */
	struct list aliases;      /* struct ep.in_aliases */
	struct list in_aliases;
	unsigned int index;           /* of a transmit or receive context */
	struct ep **tx_ctx, **rx_ctx; /* of a scalable endpoint */
	unsigned int tx_count, rx_count;
	struct ep_cm *cm; /* of a connected endpoint, else NULL */
	size_t min_multi_recv;
	size_t rma_inject_max, atomic_inject_max;
	size_t inject_limit; /* what no kind may exceed */
	int ref;             /* atomic: contexts, aliases, endpoints using a shared context */
};

/*
 * A shared transmit context: nothing of its own, sends use the endpoint's. It may be closed while endpoints
 * are bound to it; they send as before, and the last of them frees it.
 */
struct stx {
	struct fid_stx fid;
	struct domain *dom; /* until it is closed */
	int ref;            /* atomic: the application's until it closes it, endpoints bound */
	bool closed;
};

static inline struct ep *ep_of(struct fid_ep *fid)
{
	return (struct ep *)fid;
}

/* The longest injected operation of this kind: FI_ATOMIC, FI_RMA, FI_TAGGED, or else a message. */
static inline size_t ep_inject_max(const struct ep *ep, uint64_t kind)
{
	if (kind & FI_ATOMIC)
		return ep->atomic_inject_max;
	if (kind & FI_RMA)
		return ep->rma_inject_max;
	return kind & FI_TAGGED ? ep->tagged_inject_max : ep->inject_max;
}

/* No kind of operation may be injected beyond `most` bytes from now on. */
void ep_limit_inject(struct ep *ep, size_t most);
/* One kind, to no more than ep->inject_limit. */
void ep_set_inject(struct ep *ep, uint64_t kind, size_t value);

/* Shared by the files of endpoints and contexts. */
struct ep *ep_new(struct domain *dom, size_t fclass, void *context);
int ep_own_info(struct ep *ep, const struct fi_info *info);
void ep_free(struct ep *ep);
/* The worker of an endpoint or, for a context, of its scalable endpoint; opened when needed. */
int ep_worker(struct ep *ep);
/* Closes it again; nothing uses it yet. Domain locked. */
void ep_drop_worker(struct ep *ep);
int ep_enable(struct ep *ep);
int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int ep_close(struct fid *fid);
int ep_control(struct fid *fid, int command, void *arg);
/* Folds flags of the attributes and of the bindings into what the entries use. */
void ep_fold_flags(struct ep *ep, uint64_t tx_op_flags, uint64_t rx_op_flags);
int ep_alias(struct ep *ep, struct fi_alias *arg);
/* Takes the base's state over into its aliases. */
void ep_refresh_aliases(struct ep *ep);
/*
 * Binding to an endpoint that is enabled. ep_late: may an object of this class be bound then? The next two are
 * called before the object is entered in the endpoint, once its flags are known to be good: reading the object
 * makes progress on the endpoint from then on; or nothing has changed. 0 or a negative error, logged. The last two
 * and ep_take_bindings with the domain locked.
 */
int ep_late(const struct ep *ep, size_t fclass);
int ep_late_cq(struct ep *ep, struct cq *cq, uint64_t flags);
int ep_late_cntr(struct ep *ep, struct cntr *cntr, uint64_t flags);
/* What is bound to an enabled endpoint gets into what its entries, its receives and its aliases use. */
void ep_take_bindings(struct ep *ep);
/* The part of that for its aliases. */
void ep_follow_base(struct ep *base);
/* One user less of a shared transmit context. */
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
