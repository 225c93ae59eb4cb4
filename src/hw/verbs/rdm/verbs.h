/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs transport of the engine: packets are sends between reliable queue pairs, one per peer,
 * which the hellos describe. All peers of a worker share its receive slots. Each peer has credits
 * for some of them, so no packet arrives without a slot: those that need no credits, as they return some or end the
 * link, have spare ones. No queue is made before the first peer.
 * Links over several devices (verbs_rails.h) also return few credits at a time, so there the spare slots of the peer
 * are counted, too: packets of both kinds give back those that have been read.
 */
#ifndef WEFT_HW_VERBS_H
#define WEFT_HW_VERBS_H

#include "base/list.h"
#include "base/pool.h"
#include "link/link.h"
#include "link/opener.h"
#include "hw/verbs/dev/verbs_dev.h"
#include "link/wire.h"

/* Header before every payload, in host byte order. */
struct verbs_head {
	uint64_t head; /* 0: the packet carries only credits */
	uint64_t tag;
	uint64_t data;  /* meaningful with WIRE_DATA */
	uint32_t freed; /* credits that the packet returns */
	/* VERBS_PLAIN, VERBS_RAIL, from VERBS_SPARES on the spare slots returned, from VERBS_NUMBER on the packet's number */
	uint32_t flags;
};

_Static_assert(sizeof(struct verbs_head) == 32, "layout of a head");

#define VERBS_PLAIN 1u /* the sender has ended RDMA on the link */
/* Only on links over several devices: */
#define VERBS_RAIL        2u /* the payload is a struct verbs_rail_message */
#define VERBS_SPARES      2  /* shift of the number of spare slots that the packet returns */
#define VERBS_SPARES_MASK 3u
#define VERBS_NUMBER      8 /* shift of the number, which counts packets modulo 2^24 */
#define VERBS_NUMBER_MASK 0xffffffu

#define VERBS_PACKET_MAX WIRE_PACKET_MIN /* longest payload, in bytes */
#define VERBS_SLOT       (sizeof(struct verbs_head) + VERBS_PACKET_MAX)
#define VERBS_WINDOW     32  /* credits of a peer: packets under way to us */
#define VERBS_NARROW     4   /* credits of a peer when there are too many peers for that */
#define VERBS_SPARE      3   /* slots beyond a window, for packets that need no credits */
#define VERBS_SPARE_OWED 2   /* so many of these that were read are returned without delay */
#define VERBS_FLIGHT     64  /* sends of a link not known to be complete: a power of two */
#define VERBS_SIGNAL     16  /* one of this many sends is signaled: a power of two */
#define VERBS_INLINE     256 /* bytes to send inline, as asked of the device, header included */
#define VERBS_SEGMENTS   4   /* segments of a send, header included */
#define VERBS_RETRIES    6   /* of a packet; 7 would make software devices retry for ever */
#define VERBS_LINGER_MS  1000

/* A packet that stays in its slot until the peer's process has read it (verbs_rails.h). */
struct verbs_kept_packet {
	uint32_t number; /* of the send */
	uint32_t len;    /* bytes, header included */
	uint16_t slot;
};

/* Completions that a waiting send has read (verbs_ack.c); the next progress call handles them. */
struct verbs_kept {
	struct ibv_wc *wc;
	unsigned int first, count, size; /* index of the oldest; number; size of `wc` */
};

/* Transport state of a worker. */
struct verbs {
	struct opener *opener;
	const struct addr *at;     /* address of the device */
	struct verbs_multi *multi; /* the worker's other devices, of its first one; or NULL */
	int epfd;                  /* wakes sleepers: watches the completion channel, if `up` */
	bool up;                   /* device, queues and slots below are made */
	bool searched;             /* `multi` was decided */
	unsigned int got;          /* completions in `wc`, read by verbs_arm, older than `kept` */
	struct verbs_kept kept;
	unsigned int progress_calls;
	unsigned int troubles;  /* value of dev->troubles that was handled last */
	struct verbs_note note; /* events of `cq` and `srq` */
	struct verbs_path path;
	struct verbs_path watched; /* the device, open until the first link; dev NULL: closed */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct verbs_slots recv; /* posted to `srq`, except the slot that is being delivered */
	struct verbs_slots send;
	unsigned int credits_granted; /* windows and spares of all links */
	unsigned int regions;         /* registrations of links over several devices */
	struct list asked_regions;    /* of the application, registered here: verbs_rails_keys.c */
	struct pool links;            /* struct verbs_link */
	struct pool rdma_posted;      /* struct verbs_rdma of all links */
	struct list all;              /* struct verbs_link.in_all */
	struct list attend; /* struct verbs_link.in_attend: broken, or has credits to return */
	struct ibv_wc wc[16];
};

/* Further devices of a worker, and its links over several. */
struct verbs_multi {
	unsigned int count;
	struct verbs further[WIRE_RAILS_MAX - 1];
	struct addr at[WIRE_RAILS_MAX - 1];
	uint32_t prefix[WIRE_RAILS_MAX - 1]; /* bits of the GID that name its network */
	struct list links;                   /* struct verbs_rails.in_all */
	struct pool pieces;                  /* struct verbs_piece of all links */
	uint64_t due;                        /* ms: time of the next look at the links */
};

/*
 * RDMA reads and writes, on a queue pair of their own. If the peer's device refuses an access, only that queue pair
 * ends, and the engine goes on by packets. VERBS_PLAIN in packet headers tells the peer.
 */
#define VERBS_RDMA_FLIGHT 64 /* requests of a queue pair whose completion we have not read */
/*
 * RDMA reads that a queue pair serves, or has under way, at a time, and bytes of each. Enough to fill a wire, but no
 * more than the network's queues hold, because read responses have no flow control.
 */
#define VERBS_READS       4
#define VERBS_READ_MAX    (16u << 10)
#define VERBS_RDMA_INLINE 64         /* bytes of a write to send inline, as asked of the device */
#define VERBS_WRITE_MAX   (1u << 20) /* bytes of one write request, so that others can go between */

struct verbs_direct {
	struct ibv_qp *qp; /* NULL: none, or ended */
	uint32_t posted;   /* requests posted, modulo 2^32 */
	uint32_t arrived;  /* posted requests that have completed */
	uint32_t seen;     /* last request whose completion was read; v->kept may hold it */
	uint32_t reads;    /* reads under way */
	uint32_t read_max; /* most bytes of one read request */
	uint32_t write_max;
	uint32_t inline_max;
	struct list rdma_posted; /* struct verbs_rdma.link, in the order of posting */
	struct verbs_rdma *next; /* first operation that is not completely posted, or NULL */
	bool late;               /* software device: a write was not acknowledged in time */
	bool failed;             /* broken: the next progress call ends the queue pair */
};

struct verbs_rails;

struct verbs_link {
	struct link link;
	struct verbs *own;
	struct verbs_rails *rails; /* the link is a rail of this one; NULL: it is whole by itself */
	struct ibv_qp *qp;
	/* Members that a send uses. */
	uint32_t credits;  /* packets we may send; 0 until the peer is ready to receive */
	uint32_t posted;   /* sends, modulo 2^32 */
	uint32_t arrived;  /* sends known to be complete */
	uint32_t freed;    /* slots freed since we last returned credits */
	uint32_t peer_imm; /* immediate data of our sends: the peer's number of the link */
	uint32_t inline_max;
	uint32_t unsignaled; /* mask: a send whose number has none of these bits is signaled */
	bool software;       /* software device: sends wait for acknowledgement (verbs_ack.c) */
	bool late;           /* the last packet waited for was not acknowledged in time */
	uint32_t id;         /* the engine's id of the peer */
	uint32_t psn;        /* first packet sequence number */
	uint32_t window;
	uint32_t credit_limit; /* the peer's window: `credits` is never more */
	uint32_t unknown;      /* mask: flags that the peer's packets may not have */
	/* Links over several devices: */
	uint32_t spares;       /* spare slots that the peer has for us */
	uint32_t spares_freed; /* those of ours that were freed since we last returned some */
	bool heard;
	bool disconnected; /* the peer sent a disconnect message and reads nothing more */
	bool owes;         /* verbs_say failed: credits are still to be returned */
	bool ended;        /* the engine was told */
	int err;           /* the link is broken by this error, positive; 0: it is not */
	struct verbs_direct direct;
	uint16_t slots[VERBS_FLIGHT]; /* slot of each send under way, or VERBS_NO_SLOT */
	struct list in_all;
	struct list in_attend;
};

/* Returns the flags for headers of packets to the peer. */
static inline uint32_t verbs_flags(const struct verbs_link *l)
{
	return l->link.rdma_usable ? 0 : VERBS_PLAIN;
}

/* Returns the number of sends that are not known to be complete. */
static inline uint32_t verbs_in_flight(const struct verbs_link *l)
{
	return l->posted - l->arrived;
}

/*
 * Links over several devices, by the folder rails/: verbs_rails.h. In a build without it this is NULL: no worker has further
 * devices and no link has rails, and for others nothing else of the table is called.
 */
struct verbs_rails_ops {
	/* Finds the further devices of the worker whose first one `v` is, if FI_WEFT_RAILS asks for some. */
	void (*find)(struct verbs *v);
	void (*close)(struct verbs *v);
	bool (*progress)(struct verbs *v);
	/* The worker may sleep: returns credits that peers may wait for. */
	void (*sleep)(struct verbs *v);
	/* Has any link of the worker a queue that its peer can still get? */
	bool (*queued)(const struct verbs *v);
	/* Ends the registrations that were made for peers with the device. */
	void (*drop_regions)(struct verbs *v);
	/* As verbs_connect, if both sides have further devices. */
	int (*connect)(struct verbs_link *l, const struct link_peer *peer, struct link **link);
	/* Is it a link with rails, which the engine knows? */
	bool (*has)(const struct link *link);
	/* Returns the rail that carries its packets. */
	const struct verbs_link *(*carrier)(const struct link *link);
	/* Implements transport.ping. */
	bool (*ping)(struct link *link);
	/* Has the peer sent a disconnect message, over whichever rail? */
	bool (*disconnected)(const struct verbs_rails *r);
	/* Sets what the engine knows of RDMA on the link, and what operations know of the peer's keys. */
	void (*update)(struct verbs_rails *r);
	/* The device's exponent of the time after which a packet of a rail is sent again. */
	uint8_t (*ack_timeout)(void);
	/* Can the link go on without this rail? */
	bool (*spare)(const struct verbs_link *l);
	/* The rail has broken: the other one goes on, or the engine's link ends. */
	void (*broke)(struct verbs_link *l);
	/*
	 * Takes the spare slots that a packet returns, and notes that one of ours is free if it took one. False: the peer
	 * returns, or has used, more than there are.
	 */
	bool (*spared)(struct verbs_link *l, const struct verbs_head *h);
	/* The peer's process has returned so many credits of the rail. */
	void (*credited)(struct verbs_link *l, uint32_t credits);
	/* Is the packet, received over this rail, one for the engine? May end the link. */
	bool (*take)(struct verbs_link *l, uint32_t flags, const struct packet *p);
	/* Piece `id`, which the rail had, is done. */
	void (*done)(struct verbs_link *l, uint64_t id);
	/* RDMA has ended on a rail that goes on with packets. */
	void (*rdma_ended)(struct verbs_link *l);
};
extern const struct verbs_rails_ops verbs_rails_here, *const verbs_rails_ops;

/* verbs_worker.c */
/* Begins the state of a device, zeroed before, that has this address. Nothing is opened yet. */
void verbs_state_init(struct verbs *v, struct opener *opener, const struct addr *at);
/* Ends it. No link is left. */
void verbs_state_fini(struct verbs *v);

/* verbs_up.c */
/* Unless `up`, opens the device, and makes what all links share. 0 or a negative error. */
int verbs_up(struct verbs *v);
/* Undoes verbs_up; no link is left. */
void verbs_down(struct verbs *v);
/* Closes the device that was opened before its first use. */
void verbs_let_go(struct verbs *v);
/* Reserves slots and completions for one more link. Returns the credits it grants; 0: none left. */
unsigned int verbs_grant(struct verbs *v);
void verbs_revoke(struct verbs *v, unsigned int window);
/* Handles events of the device, and fails the links they concern. May call verbs_down. */
void verbs_poll_events(struct verbs *v);
/* Can links still be made? v->up is set. */
bool verbs_usable(const struct verbs *v);

/* verbs_link.c */
int verbs_prepare(void *state, const struct wire_nic *theirs, struct wire_nic *ours,
		  void **pending);
void verbs_abandon(void *state, void *pending);
/* Connects a pending link to the peer's end. `id` as in struct link_peer. 0 or a negative error. */
int verbs_link_join(struct verbs_link *l, const struct wire_nic *theirs, uint32_t id);
void verbs_link_free(struct verbs_link *l);
int verbs_connect(void *state, const struct link_peer *peer, struct link **link);
/* Waits until all sends have arrived, at most VERBS_LINGER_MS. */
void verbs_drain(void *state);

/* verbs_qp.c: 0 or a negative error, which is logged. */
/* Makes the queue pairs of a pending link. The link may lack the second one, for RDMA. */
int verbs_qp_make(struct verbs_link *l);
/* Returns the description of the queue pairs for our hello. */
struct wire_nic verbs_qp_tell(struct verbs_link *l);
/* Connects the queue pairs to the peer's. */
int verbs_qp_join(struct verbs_link *l, const struct wire_nic *theirs);

/* verbs_tx.c */
int verbs_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	       uint64_t tag);
int verbs_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);
/*
 * Sends a packet of a link over several devices, and keeps it. Fills in h->freed and *packet, whose slot is the
 * caller's until verbs_drop_kept. Returns 0 or -FI_EAGAIN.
 */
int verbs_send_kept(struct verbs_link *l, struct verbs_head *h, const struct iovec *iov,
		    size_t count, struct verbs_kept_packet *packet);
/*
 * Frees the packet's slot, once our device needs it no more: a peer may return credits for packets that it has not got.
 */
void verbs_drop_kept(struct verbs_link *l, const struct verbs_kept_packet *packet);
/* Returns credits in a packet of their own; later, if the link cannot send now. */
void verbs_say(struct verbs_link *l, bool signaled);
/*
 * Posts what the peer's device acknowledges without its process, and without a slot. Only on links
 * over several devices: others' queue pairs may refuse it.
 */
void verbs_ping(struct verbs_link *l);
/* Calls verbs_say if half of the window or some spare slots are to be returned, or an earlier verbs_say failed. */
void verbs_tell(struct verbs_link *l);
/* The sends up to number `posted` are complete. */
void verbs_sent(struct verbs_link *l, uint32_t posted);

/* verbs_rdma.c */
/* Makes the pool of operations for the functions below. */
void verbs_rdma_pool(struct pool *pool);
/* As link_memory_ops.copy. */
int verbs_rdma(struct link *link, const struct link_copy *m);
void verbs_rdma_abort(struct link *link);
int verbs_rndv_register(struct link *link, const struct iovec *iov, size_t count,
			struct fi_rma_iov *at, void **registered);
void verbs_rndv_deregister(struct link *link, void *registered);
/* Posts more of the operations, as far as the queue pair has space, once the peer is ready. */
void verbs_rdma_on(struct verbs_link *l);
/* Handles a completion of the RDMA queue pair; with `silent` the engine is not called. */
void verbs_rdma_done(struct verbs_link *l, const struct ibv_wc *wc, bool silent);
/* Ends RDMA: the device no longer accesses our memory. Calls the engine unless `silent`. */
void verbs_rdma_end(struct verbs_link *l, bool silent);
/* Is an RDMA write under way? */
bool verbs_rdma_writes(const struct verbs_link *l);

/* verbs_ack.c: for software devices. No function calls up. */
/* Waits, a bounded time, until the peer has acknowledged all packets of the link or, with `direct`, its RDMA requests. */
void verbs_ack_wait(struct verbs_link *l, bool direct);
/* Moves the oldest kept completions to `wc`, at most `most`. Returns their number. */
int verbs_ack_kept(struct verbs *v, struct ibv_wc *wc, int most);
void verbs_ack_drop(struct verbs *v);

/* verbs_progress.c */
bool verbs_progress(void *state);
/* The same for one device of the worker. */
bool verbs_progress_device(struct verbs *v);
bool verbs_idle(const void *state);
/* Reads the next completions into v->wc. Returns their number; 0 or negative: none. */
int verbs_read(struct verbs *v);
bool verbs_arm(void *state);
/* Handles a completion while the worker closes: only disconnect messages are looked at. */
void verbs_last_messages(struct verbs *v, const struct ibv_wc *wc);
/* The next progress call looks after the link. */
void verbs_attend(struct verbs_link *l);
/* Marks the link as broken; `err` is positive. The next progress call tells the engine. */
void verbs_fail(struct verbs_link *l, int err);
/* The same for the reason that a completion gives. */
void verbs_fail_status(struct verbs_link *l, enum ibv_wc_status status);
/* Posts a receive slot again. */
void verbs_repost(struct verbs *v, uint16_t slot);

#endif
