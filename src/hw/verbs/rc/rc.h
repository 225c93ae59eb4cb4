/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bare reliable queue pairs (RC), connected by rdma_cm: what the application posts is what the device
 * does, and the other side may be any program that has such a queue pair. fi_verbs(7).
 *
 * A connection: NEW; RESOLVING (address, then route) and ASKING, of who asks; ANSWERING, of who was asked;
 * UP; OVER, for good, whatever it was before.
 */
#ifndef WEFT_HW_RC_H
#define WEFT_HW_RC_H

#include <rdma/fi_errno.h>

#include "core/ep.h"
#include "info/rules.h"
#include "hw/verbs/rc/verbs_cmlib.h"
#include "hw/verbs/dev/verbs_dev.h"
#include "link/offload.h"
#include "link/upcall.h"

#define RC_BATCH      16
#define RC_BATCH_MAX  32 /* sends that wait to be posted together */
#define RC_ASK_MOST   56 /* bytes of private data that fit beside what rdma_cm says itself */
#define RC_ANSWER     196
#define RC_REJECT     148
#define RC_REQUEST    UINT8_MAX           /* room for the data of a request, as events count it */
#define RC_RECEIVE    (UINT64_C(1) << 63) /* in a wr_id: a receive; the rest counts them */
#define RC_RETRIES    6                   /* software devices repeat for ever if told 7 */
#define RC_RNR_WAITS  7                   /* for ever */
#define RC_RNR_TIMER  12 /* 0.64 ms until a send comes again that found no receive */
#define RC_READS      16 /* reads and atomics under way, each way, at most */
#define RC_RESOLVE_MS 2000

#define RC_ACCESS                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum rc_state { RC_NEW, RC_RESOLVING, RC_ASKING, RC_ANSWERING, RC_UP, RC_OVER };

/* Of rc_work.flags, what a completion says. */
#define RC_SAYS (FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE)
/* It is nothing but this: it ends with the next one, which has its context. */
#define RC_HALF FI_MORE

/* A work request that the device has. */
struct rc_work {
	void *context;
	uint64_t
		flags; /* what it is (FI_MSG | FI_SEND ...), and FI_COMPLETION; 0: nobody's any more */
	size_t len;
	void *buf; /* of a receive */
};

/* Its rings hold a power of two of slots, which are counted up for ever. */
struct rc_ring {
	struct rc_work *work;
	uint32_t mask;
	uint32_t posted, over;
	uint32_t limit; /* posted may go up to here */
	uint32_t size;  /* under way at most */
};

/* A work request that waits for others, to go to the device with them. */
struct rc_batch {
	struct ibv_send_wr wr;
	struct ibv_sge sge[RULES_RC_IOV_MAX];
};

struct rc_srx;

struct rc {
	struct offload offload;
	struct ibv_qp *qp;    /* NULL until the endpoint is enabled */
	struct ibv_qp_ex *ex; /* the same, where the device writes numbers atomically; else NULL */
	struct rc_ring tx, rx;
	uint32_t inline_most;
	uint32_t message_most;
	uint32_t
		gate; /* tx.posted may rise to this on the fast path: tx.limit, unless requests are batched */
	uint32_t batch_count;
	struct rc_batch *batch; /* RC_BATCH_MAX of them, NULL before the first */
	struct ibv_send_wr one; /* of a send of one buffer, with the fields that never change filled in */
	struct ibv_sge one_sge;
	struct ibv_send_wr *bad; /* for ibv_post_send */
	struct lock *lock;       /* the domain's */
	uint32_t unsignaled;     /* sends of which one completes at least, less one: a mask */
	struct ep *ep;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct rc_srx *srx; /* shared receive queue, or NULL: receives are in rx */
	unsigned int got;   /* completions read by arm, in wc */
	struct ibv_wc wc[RC_BATCH];
	unsigned int progress_calls;
	uint64_t next_news;     /* ms: next poll for events of the device */
	struct verbs_note note; /* of its queues */
	bool removed;           /* the device was taken away; all that was under way has ended */
	struct ibv_mr *
		probe_mr; /* of `placed`, the target of reads that only confirm a write; or NULL */
	uint64_t probe;
	/* The connection. */
	const struct verbs_path *path; /* the domain's */
	const struct verbs_cmlib *lib;
	enum rc_state state;
	struct rdma_event_channel *events; /* NULL before the first connection event can come */
	struct rdma_cm_id *id;
	int epfd;    /* wakes sleepers: the completion channel and news_fd */
	int news_fd; /* an epoll instance: events and the timer, once they are there */
	int timer;   /* of a connect request that may stay unanswered; -1: none */
	uint8_t reads, writes_back; /* under way: ours, and theirs */
	size_t say_len;
	unsigned char say[RC_ASK_MOST];
};

/* A connection request; its id has an event channel of its own because it may outlive the listener. */
struct offload_request {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct addr name, own;
	uint8_t reads, writes_back; /* RDMA reads it agrees to: ours, and its own */
	size_t len;
	unsigned char data[RC_REQUEST];
};

static inline struct rc *rc_of(struct offload *n)
{
	return (struct rc *)n;
}

/* After a change of tx.limit or batch_count. */
static inline void rc_set_gate(struct rc *rc)
{
	rc->gate = rc->batch_count ? rc->tx.posted : rc->tx.limit;
}

static inline struct rc *rc_of_ep(const struct ep *ep)
{
	return (struct rc *)ep->offload;
}

/* rc_up.c */
int rc_enable(struct offload *n, struct ep *ep);

/* rc_cm.c */
int rc_connect(struct offload *n, const struct addr *to, const void *data, size_t len);
int rc_accept(struct offload *n, struct offload_request *req, const void *data, size_t len);
void rc_shutdown(struct offload *n);
int rc_fd(const struct offload *n);
/* Handles events of the connection. True: there was one. */
bool rc_news(struct rc *rc);
/*
 * Ends the connection: operations under way complete as cancelled, the endpoint gets its event. `err` is positive.
 */
void rc_end(struct rc *rc, int err);
/* Frees the connection's resources. */
void rc_leave(struct rc *rc);

/* rc_listen.c */
extern const struct offload_cm rc_cm;
/* Frees the request without its id and channel. */
void rc_forget_request(struct offload_request *req);
void rc_reject(struct offload_request *req, const void *data, size_t len);

/* rc_removed.c */
/* Handles events of the device. True: one concerned the endpoint. */
bool rc_device_news(struct rc *rc, bool waiting);
/* The device was taken away: all operations under way have ended when this returns. */
void rc_removed(struct rc *rc);

/* rc_progress.c */
bool rc_progress(void *state);
bool rc_arm(void *state);
/* A work request has completed, with or without error. */
void rc_complete(struct rc *rc, const struct ibv_wc *wc);
/* The device reports nothing any more: ends what is under way as flushed. */
void rc_give_up(struct rc *rc);
/* A receive has completed, with or without error. */
void rc_came(struct rc *rc, const struct ibv_wc *wc);
/* A receive that came too late for the device completes as cancelled. */
void rc_give_back(struct rc *rc, const struct rc_work *work);
/* A send that the device refused completes with this error (positive). */
void rc_unsent(struct rc *rc, const struct rc_work *work, int err, int prov_errno);

/* rc_more.c */
/* Posts the batch. */
void rc_flush_batch(struct rc *rc);

/* rc_progress.c */
int rc_cancel(const struct offload *n, void *context);

/* rc_mem.c */
extern const struct device_ops rc_device;

/* rc_msg.c, rc_rma.c, rc_atomic.c */
extern const struct fi_ops_msg rc_msg_ops;
extern const struct fi_ops_rma rc_rma_ops;
extern const struct fi_ops_atomic rc_atomic_ops;
/* What one atomic may carry: see device_ops.atomic. */
int rc_atomic_valid(int form, int datatype, int op, size_t *count, size_t *size);

#endif
