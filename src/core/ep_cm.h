/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of endpoints, and the one connection of those of type FI_EP_MSG. fi_cm(3). */
#ifndef WEFT_CORE_EP_CM_H
#define WEFT_CORE_EP_CM_H

#include "core/ep.h"
#include "core/eq.h"

struct connreq;

enum ep_cm_state {
	EP_CM_NEW,
	EP_CM_CONNECTING, /* fi_connect was called */
	EP_CM_CONNECTED,
	EP_CM_ENDED, /* or it never came */
};

/* Of a connected endpoint. Domain locked. */
struct ep_cm {
	struct eq_driver driver; /* progresses the worker for those who only read the event queue */
	struct ep *ep;
	enum ep_cm_state state;
	bool driven;             /* the queue has the driver */
	int poll_ms;             /* so often the peer is looked for; 0: its end tells itself */
	uint64_t next_poll;      /* ms */
	struct connreq *request; /* what it was opened to accept, or NULL; its owner */
};

/* Makes ep->cm, with what info->handle says. 0 or a negative error. */
int ep_cm_open(struct ep *ep, const struct fi_info *info);
/* The event queue does not progress the worker from now on. No lock held. */
void ep_cm_leave(struct ep *ep);
/* Frees ep->cm; a request not accepted is refused. */
void ep_cm_free(struct ep *ep);

/* The engine tells: the connection stands, and what was said on accepting. Domain locked. */
void ep_cm_connected(struct ep *ep, const void *data, size_t len);
/* It has ended, or did not come to be: `err` is positive; and what was said on rejecting. Domain locked. */
void ep_cm_ended(struct ep *ep, int err, const void *data, size_t len);

int ep_name_get(fid_t fid, void *addr, size_t *addrlen);
int ep_name_set(fid_t fid, void *addr, size_t addrlen);

extern struct fi_ops_cm ep_cm_ops;

#endif
