/* SPDX-License-Identifier: BSD-2-Clause */
/* Joint copies: see link_local_ops.joint. A worker owns one at a time. Domain locked. */
#ifndef WEFT_XFER_JOINT_H
#define WEFT_XFER_JOINT_H

#include "link/link.h"

struct peer;
struct worker;

/* In `id` of a joint copy: it is of a transmit request; else of a receive request. */
#define JOINT_OF_TXREQ (UINT64_C(1) << 32)

/*
 * Copies together with the peer. As link_local_ops.joint; after -FI_EINPROGRESS progress calls end the
 * request `id` by rma_joint_ended or rxreq_joint_ended.
 */
int joint_begin(struct peer *peer, const struct link_joint *copy, uint64_t id);
void joint_progress(struct worker *worker);
/* Is a joint copy under way that reads a message of the peer? */
bool joint_receives(const struct peer *peer);
/* The peer's link will be closed, and its requests end otherwise. */
void joint_abandon(struct peer *peer);
/* Handles WIRE_JOINT: takes part in a copy that the peer has offered. */
void joint_help(struct peer *peer, const struct packet *p);

#endif
