/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is moved by RDMA over two devices: a long message that is read, or an operation on regions of
 * the peer. What is long goes in pieces over both rails; each has a few under way, so it carries as
 * much as it can. A piece that its rail has lost is posted again.
 */
#ifndef WEFT_HW_VERBS_TRANSFER_H
#define WEFT_HW_VERBS_TRANSFER_H

#include <rdma/fi_rma.h>

#include "hw/verbs/rails/verbs_rails.h"

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
