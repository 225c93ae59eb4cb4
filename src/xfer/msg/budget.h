/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker keeps of messages that no receive waits for: one budget, whatever context they are for and however
 * often their senders connect. Each peer of the address vector has an account, which outlives its connections; peers
 * that the vector does not hold have one each while they are connected, and share one afterwards. What links of those
 * keep of packets that are not complete counts, too.
 *
 * Within FI_WEFT_UNEXPECTED_MAX all is well. Beyond it senders with more than their share get XOFF. What is under way
 * then is kept, but not without limit: half of FI_WEFT_UNEXPECTED_LIMIT is for peers of the vector, and
 * BUDGET_UNDER_WAY for each of them that is connected; half is for all others together. A message without bytes counts,
 * too: as what it takes here (rx_cost). Beyond these limits the peer that took least notice of XOFF is disconnected, or
 * the oldest messages of those that have gone are dropped. Domain locked.
 */
#ifndef WEFT_XFER_BUDGET_H
#define WEFT_XFER_BUDGET_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct fi_weft_stats;
struct peer;
struct unexpected;
struct worker;

/*
 * Bytes that a connected peer may have under way when it gets XOFF: socket buffers of 10 MiB, full
 * of messages without bytes, which take up to six times their frames here.
 */
#define BUDGET_UNDER_WAY ((size_t)64 << 20)

struct budget_sum {
	size_t bytes, count;
};

/* Messages of one sender. Those of a peer: struct peer.rx.account. */
struct account {
	struct budget_sum sum;
	size_t begun;          /* bytes that its link keeps of what is not complete */
	fi_addr_t src;         /* of the sender, when it was looked up last; or FI_ADDR_NOTAVAIL */
	bool known;            /* the address vector held it then */
	struct list kept;      /* struct unexpected.in_account, whose sender is connected */
	struct list left;      /* the same, whose sender is disconnected; oldest first */
	struct list in_budget; /* budget->holders[known], while anything counts; not of `gone` */
};

struct budget {
	struct worker *worker;
	struct budget_sum all, known; /* `known` is part of `all` */
	size_t begun;                 /* sum of account.begun of those that are not known */
	struct list holders[2];       /* struct account.in_budget; [1]: known ones */
	size_t holder_count[2];
	struct account gone;   /* of peers that the vector does not hold, disconnected */
	size_t allowed;        /* bytes for known peers; counted anew when it is exceeded */
	uint64_t seen_av;      /* av_version when holders[0] was looked up last */
	uint64_t dropped;      /* messages not kept, or dropped, for these limits */
	uint64_t disconnected; /* peers */
	bool pausing;          /* a sender got XOFF for what other contexts keep */
};

/* Half of FI_WEFT_UNEXPECTED_LIMIT: what peers of the address vector have, and what all others have. */
size_t budget_half(void);
void budget_init(struct budget *b, struct worker *worker);
/* The messages that are left stay with their contexts, and nothing counts them any more. */
void budget_fini(struct budget *b);

void budget_account_init(struct account *a);
/* The peer is to be freed. */
void budget_account_fini(struct peer *peer);

/*
 * Makes room for `bytes` of a further message of the peer, whose address is `src`. False: the peer
 * is over budget and its message must be dropped. May drop messages of others.
 */
bool budget_admit(struct peer *peer, fi_addr_t src, size_t bytes);
/* Adds a message, on whose list it is, to its sender's account. */
void budget_charge(struct budget *b, struct unexpected *u);
/* Takes it off again; does nothing if it is on none. */
void budget_uncharge(struct budget *b, struct unexpected *u);
/*
 * The peer's link is to keep so many bytes more. False: it must not, as the peer is about to be disconnected. May drop
 * messages of others, and disconnect them. With 0 bytes: what the link keeps has become complete, and is others' by now.
 */
bool budget_hold(struct peer *peer, size_t bytes);
void budget_release(struct peer *peer, size_t bytes);
/* The sender of the message is disconnected: sets u->peer to NULL. */
void budget_leave(struct budget *b, struct unexpected *u);
/* A peer is disconnected. */
void budget_recount(struct budget *b);

/* Has the peer more than its share of `mark` bytes? */
bool budget_pauses(const struct peer *peer, size_t mark);
/* Has it less than half of its share? */
bool budget_resumes(const struct peer *peer, size_t mark);
/* Do all senders together have more than `mark` bytes? */
static inline bool budget_full(const struct budget *b, size_t mark)
{
	return b->all.bytes > mark;
}

/* Finds out which senders the address vector holds by now. */
void budget_look_up(struct budget *b);
/* The address vector has lost this entry. */
void budget_forget_addr(struct budget *b, fi_addr_t addr);

void budget_stats(const struct budget *b, struct fi_weft_stats *stats);

#endif
