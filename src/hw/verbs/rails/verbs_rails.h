/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links over two devices (docs/NETWORKS.md): each rail is a verbs_link between a device of ours and
 * one of the peer's. The first is made by the hellos, the other one is agreed on by packets over it.
 *
 * Packets keep to one rail, have numbers, and are kept until the peer's process has returned their
 * credits. When that rail breaks, those go again over the other one, and the receiver drops what it
 * has. Who finds a rail broken destroys its queue pairs and sends VERBS_RAIL_BROKEN; the peer does
 * the same and answers VERBS_RAIL_CLOSED: nothing arrives by that rail any more.
 *
 * What is long goes in pieces, each over the rail that has fewest bytes under way, so each carries
 * what it can: messages, which the receiver reads, and operations on regions. The key of a region has
 * the rkey of its owner's first device; for that of another one the owner is asked.
 */
#ifndef WEFT_HW_VERBS_RAILS_H
#define WEFT_HW_VERBS_RAILS_H

#include <rdma/fi_rma.h>

#include "hw/verbs/rdm/verbs.h"

/* Rails of a link. The key of a message's segment has an rkey of 32 bits for each. */
#define VERBS_RAILS 2
/* Regions of a peer whose rkeys at its further devices are remembered. */
#define VERBS_KEYS 32

enum verbs_rail_what {
	VERBS_RAIL_PROPOSED = 1, /* initiator to target: `nic` is one end of another rail */
	VERBS_RAIL_ACCEPTED,     /* answer: `nic` is the other end, ready to receive */
	VERBS_RAIL_REFUSED,      /* answer: no device suits */
	VERBS_RAIL_BROKEN,       /* the sender's end is destroyed */
	VERBS_RAIL_CLOSED,       /* answer: so is this one */
	VERBS_RAIL_KEY_ASKED, /* which rkey has the region of `key` at the sender's partner device? */
	VERBS_RAIL_KEY        /* answer: `rkey`; 0: it is not registered there */
};

/* Payload of a packet with VERBS_RAIL, in host byte order. */
struct verbs_rail_message {
	uint32_t what; /* enum verbs_rail_what */
	uint32_t rail;
	uint32_t
		serial; /* which link of that rail: 0 is that of the hellos; the initiator counts */
	union {
		uint32_t prefix; /* VERBS_RAIL_PROPOSED: bits of the GID that name the network */
		uint32_t rkey;   /* VERBS_RAIL_KEY */
	};
	union {
		struct wire_nic nic;
		uint64_t key; /* VERBS_RAIL_KEY_ASKED, VERBS_RAIL_KEY */
	};
};

_Static_assert(sizeof(struct verbs_rail_message) == 56, "layout of a message about a rail");

struct verbs_rail {
	struct verbs_link *link; /* NULL: there is none now */
	struct verbs *device;    /* its device once it is proven, also without a link; or NULL */
	uint32_t serial;
	bool closing;      /* the peer has not answered VERBS_RAIL_BROKEN */
	bool proven;       /* the peer's device has acknowledged a packet of `link` */
	uint32_t pinged;   /* number of the last send that was posted to see whether it arrives */
	uint64_t ping_due; /* ms: time of the next one on an idle rail */
	size_t under_way;  /* bytes of pieces */
	unsigned int
		operations; /* pieces of operations on regions that it has, or had when it broke */
	/* Packets whose credits have not come back: a ring. */
	unsigned int first, count;
	struct verbs_kept_packet kept[VERBS_WINDOW];
};

/* What the peer's further devices know a region by. */
struct verbs_key {
	uint64_t key;
	unsigned int asked, known;  /* masks of rails */
	uint32_t rkey[VERBS_RAILS]; /* of those that `known` has; 0: not registered */
};

/*
 * What is moved by RDMA over two devices: a long message that is read, or an operation on regions of
 * the peer. What is long goes in pieces over both rails; each has a few under way, so it carries as
 * much as it can. A piece that its rail has lost is posted again.
 */
/* A long message that is being read, or an operation on regions. */
struct verbs_transfer {
	struct list link; /* verbs_rails.messages or .operations */
	uint64_t id;
	bool message;
	bool write;
	bool now;             /* it is posted at once, or refused */
	unsigned int known;   /* mask: rails whose devices know the memory at the peer's end */
	unsigned int unknown; /* mask: rails whose devices do not, as the peer has said */
	unsigned int refused; /* mask: rails whose devices refused ours */
	size_t len;           /* bytes */
	size_t begun;         /* bytes that pieces stand for, or stood */
	size_t left;          /* bytes that are not there yet */
	unsigned int idle;    /* pieces that no rail has */
	struct list pieces;   /* struct verbs_piece.link: those that are not there yet */
	unsigned int on[VERBS_RAILS]; /* pieces that each rail has */
	size_t local_count, remote_count;
	struct iovec local[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
	uint32_t rkey[VERBS_RAILS][WIRE_IOV_MAX]; /* of each remote range, at the peer's devices */
};

/* A part of a transfer. */
struct verbs_piece {
	struct list link;
	struct verbs_transfer *transfer;
	unsigned int rail; /* VERBS_RAILS: none, it is to be posted */
	size_t at, len;    /* bytes of the transfer */
};

struct verbs_rails {
	struct link link; /* what the engine knows */
	struct verbs *own;
	struct verbs_rail rail[VERBS_RAILS];
	uint32_t id; /* the engine's id of the peer */
	bool initiator;
	unsigned int active; /* the rail that carries packets */
	uint32_t sent,
		got;       /* number of the last packet that has been sent, and received in order */
	struct list queue; /* packets with numbers that wait for space, in order */
	struct list messages;   /* struct verbs_transfer.link: reads of long messages */
	struct list operations; /* the same for operations on regions, in order */
	struct verbs_transfer
		*next;      /* first of `operations` that is not completely posted, or NULL */
	bool messages_last; /* operations have been served first the last time */
	bool giving_up;     /* all operations go by packets when none is under way */
	bool keyed;         /* the keys of the peer's regions have rkeys */
	struct verbs_key keys[VERBS_KEYS];
	unsigned int keys_next; /* which one is forgotten next */
	/* The initiator, to agree on a rail: */
	struct verbs_link *pending; /* its end, until the answer; NULL: none is proposed */
	unsigned int pending_rail;
	uint32_t serial;        /* that of the last proposal */
	unsigned int candidate; /* which further device is proposed next */
	unsigned int refusals;  /* of such devices, and failures, one after the other */
	uint64_t propose_due;   /* ms */
	struct list in_all;
};

/* Is the rail to be used? Its packets may still be lost. */
static inline bool verbs_rail_usable(const struct verbs_rail *rail)
{
	return rail->link && !rail->link->err && rail->link->heard;
}

/* What has no comment implements struct verbs_rails_ops. */

/* verbs_rails.c */
bool verbs_rails_disconnected(const struct verbs_rails *r);
/* A link becomes a rail, before its queue pairs are connected; and is none if that fails. */
void verbs_rails_add(struct verbs_rails *r, unsigned int rail, struct verbs_link *l,
		     uint32_t serial);
void verbs_rails_drop(struct verbs_rails *r, unsigned int rail);
/*
 * Frees the rail's link; what was under way goes over the other one. Returns 0 or a negative error:
 * the link has ended, and `r` is freed.
 */
int verbs_rails_detach(struct verbs_rails *r, unsigned int rail, int err);

/* verbs_rails_join.c */
/* No rail of the device that was proposed works: another one is proposed, or a pause follows. */
void verbs_rails_next(struct verbs_rails *r, unsigned int rail);
/* Proposes a rail that is missing. */
void verbs_rails_propose(struct verbs_rails *r);
/* Handles a message of the peer about rails. May end the link. */
void verbs_rails_hear(struct verbs_rails *r, const struct packet *p);
/* Sends `what` about a rail. 0 or a negative error, as verbs_rails_post. */
int verbs_rails_say(struct verbs_rails *r, enum verbs_rail_what what, unsigned int rail,
		    uint32_t serial);

/* verbs_rails_packet.c */
int verbs_rails_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		     uint64_t tag);
int verbs_rails_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		      size_t count);
/* Sends a message about rails, later if there is no space now. 0, -FI_ENOMEM or -FI_EPROTO. */
int verbs_rails_post(struct verbs_rails *r, const struct verbs_rail_message *m);
void verbs_rails_credited(struct verbs_link *l, uint32_t credits);
bool verbs_rails_spared(struct verbs_link *l, const struct verbs_head *h);
/* Packets go over the first rail again, if it is back and the other one keeps none. */
void verbs_rails_return(struct verbs_rails *r);
bool verbs_rails_take(struct verbs_link *l, uint32_t flags, const struct packet *p);
/* Moves the packets that the rail keeps to the queue. 0 or -FI_ENOMEM. */
int verbs_rails_requeue(struct verbs_rails *r, unsigned int rail);
/* Sends what is in the queue, as far as there is space. */
void verbs_rails_flush(struct verbs_rails *r);
bool verbs_rails_queued(const struct verbs *v);
/* Frees the queue, and the slots of packets that are kept. */
void verbs_rails_forget(struct verbs_rails *r);

/* verbs_rails_keys.c */
/*
 * Fills in the region's rkey at the peer's device of a rail; 0: it is not registered there. False: the
 * peer has not answered that yet; it is asked, now or by a later call.
 */
bool verbs_rails_rkey(struct verbs_rails *r, unsigned int rail, uint64_t key, uint32_t *rkey);
/* The rail has another link: nothing is known of the device at its end. */
void verbs_rails_forget_keys(struct verbs_rails *r, unsigned int rail);
/* Handle VERBS_RAIL_KEY_ASKED and VERBS_RAIL_KEY. 0 or a negative error, as verbs_rails_post. */
int verbs_rails_key_asked(struct verbs_rails *r, const struct verbs_rail_message *m);
int verbs_rails_key_answered(struct verbs_rails *r, const struct verbs_rail_message *m);
void verbs_rails_drop_regions(struct verbs *v);

/* verbs_rails_mem.c */
int verbs_rails_register(struct link *link, const struct iovec *iov, size_t count,
			 struct fi_rma_iov *at, void **registered);
void verbs_rails_deregister(struct link *link, void *registered);

/* verbs_rails_rdma.c */
int verbs_rails_rdma(struct link *link, const struct link_copy *op);
void verbs_rails_abort(struct link *link);
/* Sets what the engine knows of RDMA on the link, and what operations know of the peer's keys. */
void verbs_rails_update(struct verbs_rails *r);
/* Sets only the latter. */
void verbs_rails_name(struct verbs_rails *r);
void verbs_rails_done(struct verbs_link *l, uint64_t id);
void verbs_rails_rdma_ended(struct verbs_link *l);
/* Our end of the rail is being destroyed: pieces of long messages wait for another one. */
void verbs_rails_lost(struct verbs_rails *r, unsigned int rail);
/* So is the peer's: nothing comes by this rail any more, and pieces of operations go again. */
void verbs_rails_closed(struct verbs_rails *r, unsigned int rail);
/* Posts further pieces. What no rail can do is the engine's again. */
void verbs_rails_resume(struct verbs_rails *r);

/* verbs_transfer.c */
/* Makes the pool of pieces for the functions below. */
void verbs_transfer_pool(struct pool *pool);
/* Returns what `op` describes, none of it posted; NULL: no memory. It is in no list. */
struct verbs_transfer *verbs_transfer_new(struct verbs_rails *r, const struct link_copy *op);
/* Takes it from its list and frees it. */
void verbs_transfer_free(struct verbs_rails *r, struct verbs_transfer *t);
/* Looks up the keys that it lacks, and drops those of rails by which no RDMA is possible. */
void verbs_transfer_name(struct verbs_rails *r, struct verbs_transfer *t);
/* Returns the mask of rails by which RDMA is possible, and of those that the transfer may use. */
unsigned int verbs_transfer_rails(const struct verbs_rails *r);
unsigned int verbs_transfer_suits(const struct verbs_rails *r, const struct verbs_transfer *t);
/* Posts further pieces on rails of the mask. */
void verbs_transfer_serve(struct verbs_rails *r, struct verbs_transfer *t, unsigned int mask);
/* Are all its pieces posted? Is one? */
bool verbs_transfer_is_posted(const struct verbs_transfer *t);
bool verbs_transfer_is_under_way(const struct verbs_transfer *t);
/* The rail has none of its pieces any more. */
void verbs_transfer_lose(struct verbs_rails *r, struct verbs_transfer *t, unsigned int rail);
/* A piece is done, and freed. True: all of its transfer is. */
bool verbs_transfer_advance(struct verbs_rails *r, struct verbs_piece *piece);

#endif
