/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bare reliable queue pairs (RC), connected by rdma_cm: the device performs exactly what the
 * application posts, and the peer may be any program with such a queue pair. fi_verbs(7).
 *
 * States of a connection: NEW; RESOLVING (address, then route) and ASKING at the connecting side;
 * ANSWERING at the accepting side; UP; OVER, which is final.
 */
#ifndef WEFT_HW_RC_H
#define WEFT_HW_RC_H

#include <rdma/rdma_cma.h>

#include "core/ep.h"
#include "info/rules.h"
#include "hw/verbs/dev/verbs_dev.h"
#include "link/offload.h"
#include "link/opener.h"

/* librdmacm, loaded like libibverbs (verbs_lib.h) when the first connection is made. */
#define VERBS_CMLIB_CALLS(CALL)                                                                    \
	CALL(create_event_channel)                                                                 \
	CALL(destroy_event_channel)                                                                \
	CALL(create_id)                                                                            \
	CALL(destroy_id)                                                                           \
	CALL(migrate_id)                                                                           \
	CALL(bind_addr)                                                                            \
	CALL(resolve_addr)                                                                         \
	CALL(resolve_route)                                                                        \
	CALL(init_qp_attr)                                                                         \
	CALL(connect)                                                                              \
	CALL(establish)                                                                            \
	CALL(listen)                                                                               \
	CALL(accept)                                                                               \
	CALL(reject)                                                                               \
	CALL(disconnect)                                                                           \
	CALL(get_cm_event)                                                                         \
	CALL(ack_cm_event)                                                                         \
	CALL(get_src_port)                                                                         \
	CALL(event_str)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): `name` is that of a member */
#define VERBS_CMLIB_MEMBER(name) __typeof__(rdma_##name) *name;
struct verbs_cmlib {
	VERBS_CMLIB_CALLS(VERBS_CMLIB_MEMBER)
};
#undef VERBS_CMLIB_MEMBER

#define RC_BATCH      16
#define RC_BATCH_MAX  32 /* sends of a batch */
#define RC_ASK_MOST   56 /* most private data (bytes) in a request; rdma_cm uses the rest */
#define RC_ANSWER     196
#define RC_REJECT     148
#define RC_REQUEST    UINT8_MAX           /* most data in a request: 8 bits count it */
#define RC_RECEIVE    (UINT64_C(1) << 63) /* bit of wr_id: a receive */
#define RC_RETRIES    6                   /* 7 would make software devices retry for ever */
#define RC_RNR_WAITS  7                   /* 7: for ever */
#define RC_RNR_TIMER  12 /* 0.64 ms until a send that found no receive is retried */
#define RC_READS      16 /* most reads and atomics under way, each way */
#define RC_RESOLVE_MS 2000

#define RC_ACCESS                                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum rc_state { RC_NEW, RC_RESOLVING, RC_ASKING, RC_ANSWERING, RC_UP, RC_OVER };

/* Bits of rc_work.flags that a completion reports. */
#define RC_SAYS (FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE)
/* rc_work.flags of the first request of two: the second one has the context and completes. */
#define RC_HALF FI_MORE

/* A work request that was posted. */
struct rc_work {
	void *context;
	uint64_t flags; /* FI_MSG | FI_SEND ...; FI_COMPLETION; 0: reported already */
	size_t len;
	void *buf; /* buffer of a receive */
};

/* Posted work requests: a ring with a power of two of slots, numbered for ever. */
struct rc_ring {
	struct rc_work *work;
	uint32_t mask;
	uint32_t posted, over;
	uint32_t limit; /* `posted` may rise to this */
	uint32_t size;  /* most requests under way */
};

/* A work request of a batch. */
struct rc_batch {
	struct ibv_send_wr wr;
	struct ibv_sge sge[RULES_RC_IOV_MAX];
};

/* A shared receive queue and the requests posted to it. Domain locked. */
struct rc_srx {
	struct verbs_dev *dev;
	struct ibv_srq *srq;
	struct verbs_note note;
	struct rc_work *work; /* by slot; `len` is not 0 while posted */
	uint32_t *free;       /* stack of free slots */
	uint32_t free_count;
	uint32_t size;
};

struct rc {
	struct offload offload;
	struct ibv_qp *qp;    /* NULL until the endpoint is enabled */
	struct ibv_qp_ex *ex; /* `qp`, if the device can write atomically; else NULL */
	struct rc_ring tx, rx;
	uint32_t inline_most;
	uint32_t message_most;
	/* Limit of tx.posted on the fast path: tx.limit, or with a batch tx.posted. */
	uint32_t gate;
	uint32_t batch_count;
	struct rc_batch *batch; /* RC_BATCH_MAX entries; NULL before the first batch */
	struct ibv_send_wr one; /* a prepared send of one buffer */
	struct ibv_sge one_sge;
	struct ibv_send_wr *bad; /* for ibv_post_send */
	struct lock *lock;       /* of the domain's main shard */
	uint32_t unsignaled;     /* mask: a send whose number has none of these bits is signaled */
	struct ep *ep;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct rc_srx *srx; /* shared receive queue, or NULL: receives are in rx */
	unsigned int got;   /* completions in `wc`, read by rc_arm */
	struct ibv_wc wc[RC_BATCH];
	unsigned int progress_calls;
	uint64_t next_news;     /* when to poll for events next (coarse ms) */
	struct verbs_note note; /* events of `cq` and `qp` */
	bool removed;           /* the device was removed, and all operations have ended */
	struct ibv_mr *ping_mr; /* of `ping`, the target of reads that confirm a write; or NULL */
	uint64_t ping;
	/* The connection. */
	const struct verbs_path *path; /* the domain's */
	const struct verbs_cmlib *lib;
	enum rc_state state;
	struct rdma_event_channel *events; /* NULL before the first connection event can come */
	struct rdma_cm_id *id;
	int epfd;    /* wakes sleepers: the completion channel and news_fd */
	int news_fd; /* an epoll instance with device and connection events and the timer */
	int timer;   /* timerfd of a connect request without an answer; -1: none */
	uint8_t reads, writes_back; /* most reads under way: ours, the peer's */
	size_t say_len;
	unsigned char say[RC_ASK_MOST];
};

/* A connection request. Its id has an event channel of its own, as it may outlive the listener. */
struct offload_request {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct addr name, own;
	uint8_t reads, writes_back; /* RDMA reads that the peer agrees to: ours, the peer's */
	size_t len;
	unsigned char data[RC_REQUEST];
};

static inline struct rc *rc_of(struct offload *n)
{
	return (struct rc *)n;
}

/* Sets `gate` after a change of tx.limit or batch_count. */
static inline void rc_set_gate(struct rc *rc)
{
	rc->gate = rc->batch_count ? rc->tx.posted : rc->tx.limit;
}

static inline struct rc *rc_of_ep(const struct ep *ep)
{
	return (struct rc *)ep->offload;
}

/* Of reads and atomics under way: both sides must allow them. */
static inline int rc_least(int a, int b)
{
	return a < b ? a : b;
}

/* verbs_cmlib.c */
/* Returns the functions; NULL, and logged once: no library. From any thread. */
const struct verbs_cmlib *verbs_cmlib(void);

/*
 * Returns a non-blocking event channel, closed in a forked child, which would keep its connections
 * open. NULL, with errno: no memory or no connection manager.
 */
struct rdma_event_channel *verbs_cmlib_channel(void);
/* Closes the channel; no id uses it. */
void verbs_cmlib_drop(struct rdma_event_channel *channel);

/* rc_up.c */
int rc_enable(struct offload *n, struct ep *ep);

/* rc_cm.c */
int rc_connect(struct offload *n, const struct addr *to, const void *data, size_t len);
int rc_accept(struct offload *n, struct offload_request *req, const void *data, size_t len);
void rc_shutdown(struct offload *n);
int rc_fd(const struct offload *n);
/* Handles events of the connection. True: there was one. */
bool rc_news(struct rc *rc);
/* Ends the connection: cancels operations, queues the endpoint's event. `err` is positive. */
void rc_end(struct rc *rc, int err);
/* Frees the connection's resources. */
void rc_leave(struct rc *rc);

/* rc_listen.c */
extern const struct offload_cm rc_cm;
void rc_reject(struct offload_request *req, const void *data, size_t len);

/* rc_progress.c */
/* Handles the device's removal: all operations have ended on return. */
void rc_removed(struct rc *rc);
/*
 * Waits for what the device still completes, and gives it to `take`: until `is_over` says that all is in the completion queue,
 * or a while after the last one, which is not long.
 */
void rc_collect(struct rc *rc, bool (*is_over)(const struct rc *rc),
		void (*take)(struct rc *rc, const struct ibv_wc *wc));
bool rc_progress(void *state);
bool rc_arm(void *state);
/* A receive has completed, with or without error. */
void rc_came(struct rc *rc, const struct ibv_wc *wc);
/* Completes a receive as cancelled that the device cannot take any more. */
void rc_give_back(struct rc *rc, const struct rc_work *work);
/* Completes a refused send with `err` (positive). */
void rc_unsent(struct rc *rc, const struct rc_work *work, int err, int prov_errno);
int rc_cancel(const struct offload *n, void *context);

/* rc_more.c */
/* Posts the batch. */
void rc_flush_batch(struct rc *rc);

/* rc_srx.c */
/* Implement device_ops.srx_open and its like. */
int rc_srx_open(void *device, size_t size, void **srx);
void rc_srx_close(void *srx);
int rc_srx_cancel(void *srx, void *context);

int rc_srx_post(struct rc_srx *s, struct ibv_recv_wr *wr, const struct rc_work *work);
/* Frees the slot of a completed receive. Returns its request. */
struct rc_work rc_srx_take(struct rc_srx *s, uint64_t wr_id);

/* rc_mem.c */
extern const struct device_ops rc_device;

/* rc_msg.c, rc_rma.c, rc_atomic.c */
struct entry_tables;
extern const struct entry_tables rc_entries;
extern const struct fi_ops_rma rc_rma_ops;
extern const struct fi_ops_atomic rc_atomic_ops;
/* See device_ops.atomic. */
int rc_atomic_valid(int form, int datatype, int op, size_t *count, size_t *size);

#endif
