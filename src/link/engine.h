/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the engine that the objects of src/core make: installing entries, opening and closing workers,
 * progress. A worker is the engine's state of one address: listeners, transports, peers. An endpoint has one; all
 * contexts of a scalable endpoint share one.
 */
#ifndef WEFT_LINK_ENGINE_H
#define WEFT_LINK_ENGINE_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "atomic/atomic.h"

struct addr;
struct av;
struct cm_listener;
struct cm_request;
struct cntr;
struct cq;
struct domain;
struct ep;
struct fi_deferred_work;
struct worker;
struct rx;
struct waiter;

#define XFER_INJECT_MAX 4096 /* bytes; every transport takes this much in one packet */
#define XFER_CTX_MAX    64   /* contexts of a scalable endpoint, each way */
#define XFER_ENDED      (UINT64_C(1) << 63) /* in ep->rx_flags: nothing more will come */
#define XFER_CM_DATA    512 /* bytes an application may say with a connection request or an answer */

/* PROVIDER_ bits of the transports that such an endpoint may use. */
unsigned int worker_wanted(const struct fi_info *info);
/*
 * Opens a worker: binds to info->src_addr, or to any free address. `barred`: PROVIDER_ bits of transports it must
 * not use. Domain locked.
 */
int worker_open(struct domain *dom, const struct fi_info *info, unsigned int barred,
		struct worker **worker);
/* Ends all its connections; operations still under way are dropped. Domain locked. */
void worker_close(struct worker *worker);
const struct addr *worker_name(const struct worker *worker);
/*
 * A completion could not be stored for want of memory: the next progress call disconnects all peers. Domain
 * locked.
 */
void xfer_starve(struct worker *worker);

/* Makes progress without blocking. True: something was sent, received or completed. Domain locked. */
bool worker_progress(struct worker *worker);
/* Counts the one-sided requests that peers have made of it. Domain locked. */
unsigned int worker_served(const struct worker *worker);

/*
 * Before sleeping on worker_fd. True: whatever arrives from now on makes the descriptor readable; false: something
 * is there already. Domain locked.
 */
bool worker_arm(struct worker *worker);
/* The waiter may sleep on the worker's descriptor. Domain locked. 0 or -FI_ENOMEM. */
int worker_add_waiter(struct worker *worker, struct waiter *w);
void worker_del_waiter(struct worker *worker, struct waiter *w);
/* Readable when a progress call would find something, once armed. Owned by the worker. */
int worker_fd(const struct worker *worker);

/*
 * True while something waits for space at a peer, or for an answer that may need rma_help. No event announces
 * either: the caller must nap and poll.
 */
bool worker_waits_for_room(const struct worker *worker);

/* The same for every worker of the domain; xfer_watch_all tells progress_watch of each. */
bool xfer_progress(struct domain *dom);
/* Makes progress on one other worker of the domain, the next one each time. */
void xfer_progress_other(struct domain *dom, const struct worker *worker);
bool xfer_arm(struct domain *dom);
bool xfer_waits_for_room(struct domain *dom);
void xfer_watch_all(struct domain *dom);

/*
 * Waits until all direct accesses by peers that began before the call have ended: as long as a peer's copy takes.
 * Domain locked.
 */
void xfer_quiesce(struct domain *dom);

/*
 * Binds the vector whose entries name peers; it calls worker_forget_entry of core/av.h for removed entries. Domain
 * locked.
 */
void worker_bind_av(struct worker *worker, struct av *av);
/*
 * Counters may count peers' accesses to our memory: peers that connect from now on notify us of them. Domain
 * locked.
 */
void worker_tell_all(struct worker *worker);
/* Messages for receive context `index` (below 64) go to `rx`; NULL: to none. Domain locked. */
void worker_bind_rx(struct worker *worker, unsigned int index, struct rx *rx);

/*
 * Joins a multicast group, to send (FI_SEND), to receive (FI_RECV) or both; *addr is its fi_addr_t. A group
 * without a port number has the worker's. 0 or a negative error. Domain locked.
 */
int dgram_join(struct worker *worker, const struct addr *group, uint64_t flags, fi_addr_t *addr);
void dgram_leave(struct worker *worker, fi_addr_t addr);

/*
 * Collective groups, see src/coll. coll_join is fi_ops_cm.join with FI_COLLECTIVE in the flags, of an
 * endpoint that is no alias; coll_query is fi_query_collective. Both take the domain's lock.
 */
int coll_join(struct ep *ep, const struct fi_collective_addr *addr, uint64_t flags,
	      struct fid_mc **mc, void *context);
/* The endpoint is about to be closed. No lock held. */
void coll_leave(struct ep *ep);
int coll_query(enum fi_collective_op coll, struct fi_collective_attr *attr, uint64_t flags);

/* Receive contexts: see xfer/msg/rx.h. */
struct rx *xfer_rx_open(struct domain *dom);
/* Posted receives vanish, kept messages are dropped. */
void xfer_rx_close(struct rx *rx);

struct rx_target {
	struct cq *cq;                       /* where completions go, or NULL */
	struct cntr *cntr;                   /* FI_RECV, or NULL */
	struct cntr *read_cntr, *write_cntr; /* FI_REMOTE_READ, FI_REMOTE_WRITE, or NULL */
	uint64_t caps;
	uint64_t addr_mask; /* strips a context index off a fi_addr_t */
	size_t min_multi_recv;
	bool selective;    /* completions only for receives that ask for one */
	struct rx *shared; /* the shared context whose queues it uses, or NULL */
};

/* Of an endpoint whose worker is a device's, once its queues are known. 0 or a negative error. */
int xfer_enable(struct ep *ep);

void rx_context_set(struct rx *rx, const struct rx_target *target);
int rx_context_cancel(struct rx *rx, void *context);
void rx_context_min_multi_recv(struct rx *rx, size_t bytes);

/* What an endpoint may begin. */
struct xfer_roles {
	bool sends, receives; /* messages */
	bool initiates;       /* one-sided operations */
};

/*
 * What one atomic of this kind may carry: 0, -FI_EINVAL (no such type or operator) or -FI_EOPNOTSUPP.
 * fi_query_atomic.
 */
int xfer_atomic_valid(enum atomic_form form, enum fi_datatype type, enum fi_op op,
		      struct fi_atomic_attr *attr);

/*
 * May counters of peers' accesses be bound now? False: a peer is connected by a device's link, which was not asked
 * to notify.
 */
bool xfer_tells_late(const struct worker *worker);
/* Are its operations and completions a device's own, see link/offload.h? */
bool xfer_offloaded(const struct worker *worker);
/* Installs tables that fit the endpoint's capabilities and its roles. 0 or -FI_ENOMEM. */
int xfer_install(struct ep *ep, const struct xfer_roles *roles);
/* The same for an endpoint that is not enabled, or shut down: all entries refuse. */
void xfer_refuse(struct ep *ep);
/*
 * The endpoint is being closed: its operations under way complete on `successor`. If that is NULL they end by
 * FI_ECANCELED; what has begun to go out goes on, within a bounded time. Domain locked.
 */
void xfer_forget(struct ep *ep, struct ep *successor);
/*
 * Operations that start later, see xfer/defer/defer.h. The first three are fi_control on the domain and
 * take its lock; 0 or a negative error. fi_trigger(3)
 */
int defer_queue(struct domain *dom, struct fi_deferred_work *work);
/* -FI_ENOENT: it is not waiting, which may mean that it has started. */
int defer_cancel_work(struct domain *dom, const struct fi_deferred_work *work);
/* Discards all waiting work, or that of the triggering counter of `work` if that is not NULL. */
int defer_flush(struct domain *dom, const struct fi_deferred_work *work);
/*
 * Starts due work; does nothing within itself, and is cheap if none is due. Domain locked, as the functions below.
 */
void defer_run(struct domain *dom);
/*
 * The endpoint is being closed: its waiting work belongs to `successor` from now on. If that is NULL, triggered
 * operations end by FI_ECANCELED, and deferred work counts an error on its completion counter.
 */
void defer_forget(struct ep *ep, struct ep *successor);
/* Ends the triggered operation of this context that still waits by -FI_ECANCELED. 0 or -FI_ENOENT. */
int defer_cancel(struct ep *ep, void *context);
/*
 * From now on reads of the counter, and waits for it, progress all workers of its domain: any of them may change
 * it. 0 or -FI_ENOMEM.
 */
int defer_join(struct cntr *c);
/* A worker was opened, or is about to be closed. 0 or -FI_ENOMEM. */
int defer_worker_opened(struct worker *worker);
void defer_worker_closing(struct worker *worker);

/* Ends the operation of this context that waits to go out by -FI_ECANCELED. 0 or -FI_ENOENT. */
int xfer_cancel(struct worker *worker, void *context);

/* ---- Connected endpoints, see xfer/conn/cm.c. XFER_CM_DATA bytes of application data travel. ----------- */

/*
 * Listeners of a passive endpoint; the owner serializes all calls. cm_open binds to *name (ADDR_NONE: any) and
 * sets it to an address that peers can use; no connection is accepted before cm_listen. 0 or a negative error.
 */
int cm_open(const struct fi_info *info, struct addr *name, struct cm_listener **l);
int cm_listen(struct cm_listener *l, int backlog);
/* Readable when cm_next may have something. */
int cm_fd(const struct cm_listener *l);
/* The next request to be connected, the caller's; NULL: none. Never blocks. */
struct cm_request *cm_next(struct cm_listener *l);
/* Requests that nobody has taken are refused. */
void cm_close(struct cm_listener *l);

/* Who asks, and what it says; and by which name it reached us, NULL: the listener's. */
const struct addr *cm_request_name(const struct cm_request *req);
const struct addr *cm_request_own_name(const struct cm_request *req);
const void *cm_request_data(const struct cm_request *req, size_t *len);
/* Says no, and frees it. From any thread. */
void cm_reject(struct cm_request *req, const void *data, size_t len);

/*
 * The worker of a connected endpoint is this one's: ep_cm_connected and ep_cm_ended of core/ep_cm.h are
 * told of it. Domain locked, the rest too.
 */
void cm_own(struct worker *worker, struct ep *ep);
/*
 * Asks the listener at `to`. 0: the endpoint will be told what comes of it; -FI_ENOMEM: nothing was
 * done; or why nobody can be asked.
 */
int cm_connect(struct worker *worker, const struct addr *to, const void *data, size_t len);
/* Takes the request, in any case; 0: connected; CM_LATER: the endpoint will be told what comes of it. */
#define CM_LATER 1
int cm_accept(struct worker *worker, struct cm_request *req, const void *data, size_t len);
/* Ends the connection, or the attempt; what is under way completes with an error. */
void cm_shutdown(struct worker *worker);
/* What may be said with any request or answer, for endpoints of such an entry. */
#define CM_OFFLOAD_DATA 56 /* where the network's own connection manager carries it */
size_t cm_data_most(const struct fi_info *info);
/* Of the other side. */
const struct addr *cm_peer_name(const struct worker *worker);
/* A progress call of the worker that polls its sockets. */
void cm_progress(struct worker *worker);
/* The same, which also finds out whether a peer across the network is still there: so often (ms); 0: never. */
void cm_poll(struct worker *worker);
int cm_poll_ms(const struct worker *worker);
/* Readable when there is news of the connection, for its whole life; -1: look at worker_fd, then cm_sock. */
int cm_news_fd(const struct worker *worker);
/* The socket of the connection, to look for its end alone; closed without a word. */
int cm_sock(const struct worker *worker);

#endif
