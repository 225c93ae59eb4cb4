/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_API_EP_CM_H
#define WEFT_API_EP_CM_H

#include "api/ep.h"
#include "core/eq.h"

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
