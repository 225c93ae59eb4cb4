/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of endpoints and contexts call of one another. Opening them: fi_endpoint(3). */
#ifndef WEFT_API_EP_H
#define WEFT_API_EP_H

#include "core/ep.h"
#include "core/eq.h"

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
/* Serves peers a last time, before their connections are closed. Waits a bounded time. Not locked. */
void ep_serve_last(struct ep *ep);
int ep_close(struct fid *fid);
int ep_control(struct fid *fid, int command, void *arg);
int ep_stats_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
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
/*
 * The connection has ended: no more messages will come for receives of the endpoint and its aliases. Other threads may be in
 * calls that read the flags, and that do not take the lock for it. Domain locked.
 */
void ep_end_receives(struct ep *ep);
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

/* ---- Connected endpoints: ep_cm.c ---- */

struct cm_request;

enum ep_cm_state {
	EP_CM_NEW,
	EP_CM_CONNECTING, /* fi_connect was called */
	EP_CM_CONNECTED,
	EP_CM_ENDED, /* the connection ended, or was never established */
};

/* Connection state of an FI_EP_MSG endpoint. Domain locked. */
struct ep_cm {
	struct eq_driver driver; /* progresses the worker for readers of the event queue */
	struct ep *ep;
	enum ep_cm_state state;
	bool driven;                /* the driver is in the event queue */
	int poll_ms;                /* ms between checks of a silent peer; 0: none needed */
	uint64_t next_poll;         /* ms */
	struct cm_request *request; /* the connection request to accept, or NULL; owned */
};

/* Allocates ep->cm and takes over the request or name of info->handle. 0 or a negative error. */
int ep_cm_open(struct ep *ep, const struct fi_info *info);
/* Removes the endpoint's driver from the event queue. No lock held. */
void ep_cm_leave(struct ep *ep);
/* Frees ep->cm; rejects a request that was not accepted. */
void ep_cm_free(struct ep *ep);

/* Called by the engine when the connection is established; `data` is the peer's of fi_accept. Domain locked. */
void ep_cm_connected(struct ep *ep, const void *data, size_t len);
/*
 * Called by the engine when the connection ended or failed. `err` is positive; `data` is the peer's
 * of fi_reject. Domain locked.
 */
void ep_cm_ended(struct ep *ep, int err, const void *data, size_t len);

extern struct fi_ops_cm ep_cm_ops;

/* fi_ops_cm.join: membership in a multicast group, or in a collective one. */
int mc_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);

#endif
