/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: listeners, and the one connection of a worker. XFER_CM_DATA bytes of application data travel. */
#ifndef WEFT_API_CM_H
#define WEFT_API_CM_H

#include "xfer/engine.h"
#include "conn/acceptor.h"
#include "conn/listen.h"

struct offload_cm;
struct offload_listener;
struct offload_request;

/*
 * Connection requests: fi_info.handle of an FI_CONNREQ event. The event owns the request until the application reads the
 * event; then the application owns it, then the endpoint that is opened with it. A request may outlive the passive
 * endpoint that received it. fi_cm(3), fi_eq(3).
 */
struct cm_request {
	struct fid fid;
	bool taken;         /* an endpoint was opened with the request, and frees it */
	bool answered;      /* accepted or rejected: the fields below were given away */
	unsigned int forks; /* forked_count of the receiving process; not valid in others */
	const struct offload_cm *cm; /* of `offload`; the other fields are then unused. Or NULL */
	struct offload_request *offload;
	struct accepted conn;
	struct addr name; /* the requester's */
	struct addr own;  /* the address that it came to; ADDR_NONE: the listener's */
};

/* Returns the request behind a handle; NULL: the handle is none, or the parent process's. */
struct cm_request *cm_request_of(struct fid *handle);

/* Of a request that is not answered: address and data of the requester; the name it used for us, NULL: the listener's. */
const struct addr *cm_request_name(const struct cm_request *c);
const struct addr *cm_request_own_name(const struct cm_request *c);
const void *cm_request_data(const struct cm_request *c, size_t *len);

/*
 * Rejects the request, with `len` bytes of data; frees it unless an endpoint has it. From any thread. 0, or -FI_EINVAL: it
 * was answered already.
 */
int cm_request_reject(struct cm_request *c, const void *data, size_t len);
/* Rejects the request unless it was answered, and frees it. */
void cm_request_free(struct cm_request *c);

/* The listener of a passive endpoint, whose owner serializes all calls. */
struct cm_listener {
	/* Connection manager of `offload`; the other fields are then unused. Or NULL. */
	const struct offload_cm *cm;
	struct offload_listener *offload;
	struct acceptor acceptor;
	struct auth_own auth;
	int epfd;
	struct listen_how how;
	int socks[2]; /* bound sockets until the acceptor takes them; -1: none */
	uint8_t kind; /* address kind of its name; requests must have the same kind */
	bool all;     /* bound to the wildcard; that of IPv6 may take IPv4, too */
};

/*
 * Binds to *name (ADDR_NONE: any), and sets it to an address that peers can use. Connections are accepted only after
 * cm_listen. The listener stays where it is until cm_close. Return 0 or an error.
 */
int cm_open(struct cm_listener *l, const struct fi_info *info, struct addr *name);
int cm_listen(struct cm_listener *l, int backlog);
/* Readable when cm_next may return a request. */
int cm_fd(const struct cm_listener *l);
/* Returns the next connection request, owned by the caller; NULL: none. Never blocks. */
struct cm_request *cm_next(struct cm_listener *l);
/* Refuses requests that were not taken. */
void cm_close(struct cm_listener *l);

/*
 * The worker belongs to connected endpoint `ep`, whose ep_cm_connected and ep_cm_ended
 * (api/ep.h) report the connection. Domain locked, also for the functions below.
 */
void cm_own(struct worker *worker, struct ep *ep);
/*
 * Sends a connection request to the listener at `to`. Returns 0: the outcome will be reported to
 * the endpoint; -FI_ENOMEM: nothing was done; another negative error: no request can be sent.
 */
int cm_connect(struct worker *worker, const struct addr *to, const void *data, size_t len);
/* Accepts the request, which is answered then. Returns 0 (connected), CM_LATER (outcome told later) or an error. */
#define CM_LATER 1
int cm_accept(struct worker *worker, struct cm_request *req, const void *data, size_t len);
/* Ends the connection or the attempt; outstanding operations complete with an error. */
void cm_shutdown(struct worker *worker);
/* Returns the bytes of application data that fit any request or answer of such endpoints. */
#define CM_OFFLOAD_DATA 56 /* limit of the network's own connection manager */
size_t cm_data_most(const struct fi_info *info);
const struct addr *cm_peer_name(const struct worker *worker);

#endif
