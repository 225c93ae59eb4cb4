/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the engine that src/api makes: installing entries, opening and closing
 * workers. A worker is the engine's state of one address: listeners, transports, peers.
 * Each endpoint has one worker; all contexts of a scalable endpoint share one.
 */
#ifndef WEFT_XFER_ENGINE_H
#define WEFT_XFER_ENGINE_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "atomic/atomic.h"

struct addr;
struct av;
struct cntr;
struct cq;
struct domain;
struct driven;
struct ep;
struct fi_deferred_work;
struct fi_weft_peer;
struct fi_weft_stats;
struct worker;
struct rx;

#define XFER_CTX_MAX 64  /* contexts of a scalable endpoint, per direction */
#define XFER_CM_DATA 512 /* bytes of application data in a connection request or answer */

/*
 * Opens a worker, bound to info->src_addr, or to any free address. `barred`: PROVIDER_ bits of
 * transports that the worker must not use. Domain locked.
 */
int worker_open(struct domain *dom, const struct fi_info *info, unsigned int barred,
		struct worker **worker);
/*
 * Before connections are closed: does and answers what peers have asked for and has come. False: answers wait until
 * peers read. Domain locked.
 */
bool worker_serve_last(struct worker *worker);
/* Ends all connections of the worker and drops outstanding operations. Domain locked. */
void worker_close(struct worker *worker);
/* What queues, counters and waits know of the worker. */
struct driven *worker_driven(struct worker *worker);
/* Does the worker touch what other workers touch, too: a device? */
bool worker_shares(const struct worker *worker);
/* Fills in all members but `size`. Domain locked. */
void worker_stats(const struct worker *worker, struct fi_weft_stats *stats);
/*
 * Peers, see fi_weft_ops_peers of rdma/fi_ext_weft.h. worker_peer_state fills in all members but `size`; worker_report
 * writes text, worker_report_head that of the worker without its peers. Return 0 or a negative error. Domain locked.
 */
int worker_peer_state(struct worker *worker, fi_addr_t addr, struct fi_weft_peer *state);
int worker_connect(struct worker *worker, fi_addr_t addr);
void worker_report(struct worker *worker, FILE *out);
void worker_report_head(struct worker *worker, FILE *out);
/* Returns the words for an enum fi_weft_reason. */
const char *worker_reason(uint32_t reason);
const struct addr *worker_name(const struct worker *worker);
/* Makes progress, never blocks. Returns true if anything came, went or completed. Domain locked. */
bool worker_progress(struct worker *worker);
/*
 * Waits until all direct accesses by peers that began before the call have ended, and lets none begin any more: the worker
 * is being closed. 0; -FI_EBUSY: one may still be under way after FI_WEFT_ACCESS_TIMEOUT. Domain locked.
 */
int worker_quiesce(struct worker *worker);

/* Binds the vector whose entries name the worker's peers. Domain locked. */
void worker_bind_av(struct worker *worker, struct av *av);
/*
 * Peers cannot connect to the worker: it connects to each address of its vector that is not on this host, now and when
 * one is inserted. Domain locked.
 */
void worker_reach_out(struct worker *worker);
/* For struct domain_calls. worker_reach_entry: workers that reach out connect to the entry. */
void worker_reach_entry(struct av *av, fi_addr_t index);
void worker_forget_entry(struct av *av, fi_addr_t index);
void worker_forget_id(struct av *av, fi_addr_t index);
/*
 * Counters may count peers' accesses to our memory: peers that connect from now on must send
 * notifications. Domain locked.
 */
void worker_notify_all(struct worker *worker);
/* Messages for receive context `index` (below 64) go to `rx`; NULL: to none. Domain locked. */
void worker_bind_rx(struct worker *worker, unsigned int index, struct rx *rx);

/*
 * Joins a multicast group to send (FI_SEND), to receive (FI_RECV) or both; sets *addr to its
 * fi_addr_t. A port number of 0 means the worker's. Returns 0 or a negative error. Domain locked.
 */
int dgram_join(struct worker *worker, const struct addr *group, uint64_t flags, fi_addr_t *addr);
void dgram_leave(struct worker *worker, fi_addr_t addr);

/*
 * Collective groups, see src/coll. coll_join is fi_ops_cm.join with FI_COLLECTIVE; `ep` is no
 * alias. coll_query is fi_query_collective. Both take the domain's lock.
 */
int coll_join(struct ep *ep, const struct fi_collective_addr *addr, uint64_t flags,
	      struct fid_mc **mc, void *context);
/* To be called before the endpoint is closed. No lock held. */
void coll_leave(struct ep *ep);
int coll_query(enum fi_collective_op coll, struct fi_collective_attr *attr, uint64_t flags);

/* Receive contexts: see xfer/msg/rx.h. */
struct rx *xfer_rx_open(struct domain *dom);
/* Drops posted receives and kept messages. */
void xfer_rx_close(struct rx *rx);

struct rx_target {
	struct cq *cq;     /* completions go here; may be NULL */
	struct cntr *cntr; /* counts FI_RECV; may be NULL */
	struct cntr *read_cntr,
		*write_cntr; /* count FI_REMOTE_READ, FI_REMOTE_WRITE; may be NULL */
	uint64_t caps;
	uint64_t addr_mask; /* removes the context index from a fi_addr_t */
	size_t min_multi_recv;
	bool selective;    /* completions only for receives that ask for one */
	struct rx *shared; /* shared context whose queues this context uses, or NULL */
};

/* Enables an endpoint of a device, once its queues are known. Returns 0 or a negative error. */
int xfer_enable(struct ep *ep);

void rx_context_set(struct rx *rx, const struct rx_target *target);
int rx_context_cancel(struct rx *rx, void *context);
void rx_context_min_multi_recv(struct rx *rx, size_t bytes);

/* What operations an endpoint may start. */
struct xfer_roles {
	bool sends, receives; /* messages */
	bool initiates;       /* one-sided operations */
};

/*
 * Returns the limits of one such atomic (fi_query_atomic) and 0, -FI_EINVAL (unknown type or
 * operator) or -FI_EOPNOTSUPP.
 */
int xfer_atomic_valid(enum atomic_form form, enum fi_datatype type, enum fi_op op,
		      struct fi_atomic_attr *attr);

/*
 * May counters of peers' accesses still be bound? False: a peer that is connected over a device was
 * not asked to send notifications.
 */
bool xfer_notifies_late(const struct worker *worker);
/* Does a device perform the endpoint's operations and completions? See link/offload.h. */
bool xfer_offloaded(const struct worker *worker);
/*
 * Allocates ep->tables, to which fid.msg and its like point from here on; all calls refuse until
 * xfer_install. Returns 0 or -FI_ENOMEM.
 */
int xfer_tables(struct ep *ep);
/* Frees them. All calls refuse again, those of an application that uses the closed endpoint, too. */
void xfer_tables_free(struct ep *ep);
/* Fills the tables with what fits the endpoint's capabilities and `roles`. */
void xfer_install(struct ep *ep, const struct xfer_roles *roles);
/*
 * The endpoint is being closed: its outstanding operations complete on `successor`; if that is
 * NULL, by FI_ECANCELED. Messages partly sent still go out, within a bounded time. Domain locked.
 */
void xfer_forget(struct ep *ep, struct ep *successor);
/*
 * Triggered and deferred operations, see xfer/defer/defer.h, fi_trigger(3). The first three
 * functions implement fi_control on the domain and take its lock. Return 0 or a negative error.
 */
int defer_queue(struct domain *dom, struct fi_deferred_work *work);
/* -FI_ENOENT: `work` is not waiting; it may have started. */
int defer_cancel_work(struct domain *dom, const struct fi_deferred_work *work);
/* Discards all waiting work; `work` not NULL: only what waits for its triggering counter. */
int defer_flush(struct domain *dom, const struct fi_deferred_work *work);
/* Starts due work; cheap if none is due, does nothing within itself. Domain locked, as below. */
void defer_run(struct domain *dom);
/*
 * The endpoint is being closed: its waiting work passes to `successor`. If that is NULL, triggered
 * operations end with FI_ECANCELED, and deferred work counts an error on its completion counter.
 */
void defer_forget(struct ep *ep, struct ep *successor);
/* Ends the context's waiting triggered operation by -FI_ECANCELED. Returns 0 or -FI_ENOENT. */
int defer_cancel(struct ep *ep, void *context);
/*
 * Ends the unsent operation of the endpoint, which has a worker, with this context by FI_ECANCELED.
 * Returns 0 or -FI_ENOENT.
 */
int xfer_cancel(const struct ep *ep, void *context);

/* ---- Connected endpoints: xfer/worker_wait.c. Domain locked. ------------------------ */

/* Progress call of the worker that polls its sockets. */
void cm_progress(struct worker *worker);
/* Like cm_progress, and checks that a remote peer is alive. How often (ms) to call it; 0: never. */
void cm_poll(struct worker *worker);
int cm_poll_ms(const struct worker *worker);
/* Readable on news of the connection, until it ends; -1: watch the worker's descriptor, then cm_sock. */
int cm_news_fd(const struct worker *worker);
/* Socket of the connection, to watch for its end only. No disconnect message precedes its end. */
int cm_sock(const struct worker *worker);

#endif
