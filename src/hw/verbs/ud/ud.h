/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams over an unreliable queue pair (UD) of a device. They are received into, and sent from, slots of ours: the
 * application's memory needs no registration, and the 40 bytes of routing header before each datagram stay in the slot.
 */
#ifndef WEFT_HW_UD_H
#define WEFT_HW_UD_H

#include "hw/verbs/dev/verbs_dev.h"
#include "link/dgram.h"
#include "link/opener.h"

#define UD_RECVS 256 /* receive slots; a datagram that finds none is lost */
#define UD_SENDS 64  /* send slots: a power of two */
#define UD_TELLS 16  /* one of this many sends is signaled: a power of two */
#define UD_BATCH 16
#define UD_GRH   40         /* bytes of the routing header */
#define UD_QKEY  0x11111111 /* key that both sides must use */

struct ud_way {
	struct addr
		port; /* where it leads, and the service level: an address without a queue pair */
	struct ibv_ah *ah; /* the device's address handle; NULL: a free entry */
};

struct ud {
	struct dgram dgram;
	struct verbs_path path;
	struct ibv_comp_channel *channel; /* of recv_cq */
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct verbs_slots recv, send; /* each used in order, not by its list of free ones */
	uint32_t sent, over;           /* sends posted; sends before number `over` have completed */
	bool broken;                   /* the queue pair has failed and is not reset yet */
	int dead;                      /* positive: the queue pair cannot be reset, by this error */
	struct verbs_note note;        /* events of the queues */
	unsigned int progress_calls;
	uint64_t looked;  /* when the queue pair was last queried (coarse ms) */
	uint32_t at, got; /* next completion in `wc`, and number of completions there */
	struct ibv_wc wc[UD_BATCH];
	struct ud_way *ways; /* hash table of way_capacity entries, a power of two */
	uint32_t way_count, way_capacity;
	int epfd;
};

/* ud_tx.c */
int ud_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
int ud_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count);
void ud_drop_ways(struct ud *u);
/* Reads completions of sends. */
void ud_reap(struct ud *u);
/* Waits, a bounded time, until all sends have left; `own`: our own address. */
void ud_drain(struct ud *u, const struct addr *own);

/* ud_rx.c */
bool ud_progress(void *state);
bool ud_arm(void *state);
/* Posts a receive slot. 0 or a positive error. */
int ud_post(struct ud *u, uint32_t slot);

/* ud_qp.c */
/* Makes queues and queue pair. 0 or a negative error; the caller destroys them in any case. */
int ud_make_pair(struct ud *u);
/* Resets a failed queue pair, losing datagrams. Negative error: it stays unusable. */
int ud_mend(struct ud *u);
/* Handles events of the device. */
void ud_poll_device(struct ud *u);

#endif
