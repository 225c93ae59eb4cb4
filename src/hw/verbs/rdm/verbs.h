/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs transport of the engine: packets are sends between reliable queue pairs, one per peer, agreed on in
 * the hellos. All peers of a worker share its receive slots; each is granted credits for some of them, so that no
 * packet arrives without a slot. No queue is made before the first peer.
 */
#ifndef WEFT_HW_VERBS_H
#define WEFT_HW_VERBS_H

#include "base/list.h"
#include "base/pool.h"
#include "link/link.h"
#include "hw/verbs/dev/verbs_dev.h"
#include "hw/verbs/rdm/verbs_rdma.h"
#include "hw/verbs/rdm/verbs_slots.h"
#include "link/wire.h"

/* Header before every payload, in host byte order. */
struct verbs_head {
	uint64_t head; /* 0: the packet carries credits alone */
	uint64_t tag;
	uint64_t data;  /* meaningful with WIRE_DATA */
	uint32_t freed; /* credits returned */
	uint32_t flags; /* VERBS_PLAIN */
};

_Static_assert(sizeof(struct verbs_head) == 32, "layout of a head");

#define VERBS_PLAIN 1u /* no RDMA operations any more: verbs_rdma.h */

#define VERBS_PACKET_MAX WIRE_PACKET_MIN /* longest payload */
#define VERBS_SLOT       (sizeof(struct verbs_head) + VERBS_PACKET_MAX)
#define VERBS_WINDOW     32 /* credits of a peer: packets under way to us */
#define VERBS_NARROW     4  /* the same when there are too many peers for that */
#define VERBS_SPARE      2  /* slots beyond a window, for packets that carry credits alone */
#define VERBS_FLIGHT     64 /* sends of a link that are not known to have arrived: a power of two */
#define VERBS_SIGNAL     16 /* one of so many sends is signaled: a power of two, well below that */
#define VERBS_INLINE     256 /* bytes that the device is asked to send inline, header included */
#define VERBS_SEGMENTS   4   /* of a queue pair's sends, head included */
#define VERBS_LINGER_MS  1000

/* Completions that a send has read while it waited; the next progress call handles them. */
struct verbs_kept {
	struct ibv_wc *wc;
	unsigned int first, count, size; /* the oldest, how many, places */
};

/* The state of a worker. */
struct verbs {
	struct worker *worker;
	int epfd;         /* wakes sleepers: holds the completion channel, once there is one */
	bool up;          /* all below is made */
	unsigned int got; /* completions read by arm, in wc; older than the kept ones */
	struct verbs_kept kept;
	unsigned int progress_calls;
	unsigned int troubles;  /* of the device, as far as they were handled */
	struct verbs_note note; /* of the queues that all links share */
	struct verbs_path path;
	struct verbs_path early; /* keeps the device open until the first link; its `dev` may be NULL */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct verbs_slots recv; /* posted to srq, but for the slot that is being delivered */
	struct verbs_slots send;
	unsigned int credits_granted; /* of recv: windows and spares of all links */
	struct pool links;       /* struct verbs_link */
	struct pool rdma_posted; /* of all links, see verbs_rdma.h */
	struct list all;         /* struct verbs_link.in_all */
	struct list attend; /* struct verbs_link.in_attend: broken, or has credits to return */
	struct ibv_wc wc[16];
};

struct verbs_link {
	struct link link;
	struct verbs *own;
	struct ibv_qp *qp;
	/* What a send touches. */
	uint32_t credits;     /* packets we may send; 0 until the peer is known to receive */
	uint32_t posted;   /* sends, modulo 2^32 */
	uint32_t arrived;  /* of those, known to be over */
	uint32_t freed;    /* slots that are free again and not returned as credits yet */
	uint32_t peer_imm; /* the peer's number of its end, in its pool of links */
	uint32_t inline_max;
	uint32_t unsignaled; /* bits of a send's number of which one is set unless it is signaled */
	bool software;       /* the device is a software one: a send is complete when it is acknowledged */
	bool late;           /* the last packet was not acknowledged in time */
	uint32_t id;         /* the engine's id of the peer */
	uint32_t psn;        /* of our first packet */
	uint32_t window;
	uint32_t credit_limit; /* all credits there are */
	bool heard;
	bool disconnected; /* the peer sent a disconnect message: it reads nothing any more */
	bool owes;         /* credits could not be returned: see verbs_say */
	bool ended;        /* rx_ended was called */
	int err;           /* positive: broken */
	struct verbs_direct direct;
	uint16_t slots[VERBS_FLIGHT]; /* of each send under way, or VERBS_NO_SLOT */
	struct list in_all;
	struct list in_attend;
};

/* What the heads of packets to the peer say. */
static inline uint32_t verbs_flags(const struct verbs_link *l)
{
	return l->link.rdma_usable ? 0 : VERBS_PLAIN;
}

/* verbs_up.c */
/* Opens the device and makes what all links share, if that is not there. 0 or a negative error. */
int verbs_up(struct verbs *v);
/* The opposite, when no link is left. */
void verbs_down(struct verbs *v);
/* Closes a device that was opened before its first use. */
void verbs_let_go(struct verbs *v);
/* Reserves slots and completions for one more link. Returns the credits it grants; 0: none left. */
unsigned int verbs_grant(struct verbs *v);
void verbs_revoke(struct verbs *v, unsigned int window);

/* verbs_link.c */
int verbs_prepare(void *state, const struct wire_nic *theirs, struct wire_nic *ours,
		  void **pending);
void verbs_abandon(void *state, void *pending);
int verbs_connect(void *state, const struct link_peer *peer, struct link **link);
/* Waits, a bounded time, until all that was sent has arrived. */
void verbs_drain(void *state);

/* verbs_qp.c: 0 or a negative error, which is logged. */
/* The queue pairs of a half; the second one may be missing. */
int verbs_qp_make(struct verbs_link *l);
/* What the peer has to know of them, for the hello. */
struct wire_nic verbs_qp_tell(struct verbs_link *l);
/* Joins them to the peer's. */
int verbs_qp_join(struct verbs_link *l, const struct wire_nic *theirs);

/* verbs_tx.c */
int verbs_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	       uint64_t tag);
int verbs_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);
/* Returns credits without a packet; later, if the link cannot send now. */
void verbs_say(struct verbs_link *l, bool signaled);
/* The same if there are many credits to return. */
void verbs_tell(struct verbs_link *l);
/* Sends up to the one numbered `posted` are over. */
void verbs_sent(struct verbs_link *l, uint32_t posted);

/* verbs_ack.c: for software devices. Nothing is called up. */
/* Waits, a bounded time, until all packets have arrived. */
void verbs_ack_wait(struct verbs_link *l);
/* The same for all RDMA requests. */
void verbs_ack_write(struct verbs_link *l);
/* Takes the oldest kept completions, at most so many. Returns their number. */
int verbs_ack_kept(struct verbs *v, struct ibv_wc *wc, int most);
void verbs_ack_drop(struct verbs *v);

/* verbs_event.c */
/* Handles events of the device and breaks the links they concern. All may be down afterwards. */
void verbs_poll_events(struct verbs *v);
/* May more links be made? The worker is up. */
bool verbs_usable(const struct verbs *v);

/* verbs_progress.c */
bool verbs_progress(void *state);
/* Reads the next completions into v->wc. Their number; 0 or negative: none. */
int verbs_read(struct verbs *v);
bool verbs_arm(void *state);
/* Handles a completion while the worker is being closed: of received packets only a disconnect message matters. */
void verbs_last_messages(struct verbs *v, const struct ibv_wc *wc);
/* The link is broken: `err` is positive. The engine hears of it in the next progress call. */
void verbs_fail(struct verbs_link *l, int err);
/* Puts a slot back for the next packet. */
void verbs_repost(struct verbs *v, uint16_t slot);

#endif
