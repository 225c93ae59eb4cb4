/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams over an unreliable queue pair (UD) of a device. Datagrams are received into, and sent from, slots of
 * ours: the application's memory needs no registration, and the 40 bytes of routing header before each datagram
 * stay here.
 */
#ifndef WEFT_HW_UD_H
#define WEFT_HW_UD_H

#include "hw/verbs/dev/verbs_dev.h"
#include "link/dgram.h"
#include "link/upcall.h"

#define UD_RECVS 256 /* slots; a datagram that finds none is lost */
#define UD_SENDS 64  /* a power of two */
#define UD_TELLS 16  /* one of so many sends is signaled: a power of two */
#define UD_BATCH 16
#define UD_GRH   40         /* bytes */
#define UD_QKEY  0x11111111 /* what both sides must say */

/* Slots in one fragment of memory. */
struct ud_slots {
	unsigned char *mem;
	struct ibv_mr *mr;
	size_t size; /* of one */
	size_t len;  /* of all */
};

/* Path to a worker: the device's address handle. */
struct ud_way {
	uint8_t gid[16];
	uint16_t lid;
	uint8_t sl;
	struct ibv_ah *ah; /* NULL: a free place */
};

struct ud {
	struct dgram dgram;
	struct verbs_path path;
	struct ibv_comp_channel *channel; /* of recv_cq */
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ud_slots recv, send;
	uint32_t sent,
		over; /* sends, counted for ever; those before `over` have left their slots */
	bool broken;  /* the queue pair has failed and is not reset yet */
	int dead;     /* positive: it cannot be reset, the error */
	struct verbs_note note; /* of its queues */
	unsigned int progress_calls;
	uint64_t looked;  /* ms: when the device was last asked whether it is broken */
	uint32_t at, got; /* completions of receives that are still to be looked at, in wc */
	struct ibv_wc wc[UD_BATCH];
	struct ud_way *ways; /* a hash table of way_capacity places, a power of two */
	uint32_t way_count, way_capacity;
	int epfd;
};

/* ud_tx.c */
int ud_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
int ud_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count);
void ud_drop_ways(struct ud *u);
/* Reads completions of sends. */
void ud_reap(struct ud *u);
/* Waits, a bounded time, until what was sent has left; `own`: our own name. */
void ud_drain(struct ud *u, const struct addr *own);

/* ud_rx.c */
bool ud_progress(void *state);
bool ud_arm(void *state);
/* Gives the slot to the device. 0 or an error, which is positive. */
int ud_post(struct ud *u, uint32_t slot);

/* ud_qp.c */
/* 0 or a negative error; what there is of it is the caller's to destroy in any case. */
int ud_make_pair(struct ud *u);
/*
 * Resets a failed queue pair; datagrams under way are lost, as datagrams may be. 0, or a negative error: it cannot
 * be used any more.
 */
int ud_mend(struct ud *u);
/* Handles events of the device. */
void ud_poll_device(struct ud *u);
/* Logs what could not be made, with errno. Returns the negative error. */
int ud_failed(const char *what);

#endif
