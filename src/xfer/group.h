/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the engine to the collectives (src/coll), a room above it, which fill the table. A worker gets a struct coll
 * when the worker, or a peer, first refers to a group. Domain locked throughout.
 */
#ifndef WEFT_XFER_GROUP_H
#define WEFT_XFER_GROUP_H

#include <rdma/fi_collective.h>

#include "link/link.h"

struct coll;
struct peer;
struct worker;
struct rx;

struct group_ops {
	/*
	 * Tries to give a message to WIRE_RX_GROUP to the running collective it belongs to. False: it must
	 * be matched or kept; *queues is then as `context` returns.
	 */
	bool (*take)(struct worker *worker, struct peer *peer, const struct packet *p,
		     struct rx **queues);
	/*
	 * Returns the group's context, in whose queues its messages are matched. The context has no completion queue,
	 * and each of its receives has a `work`. NULL: there is no such group, or the sender is not its member.
	 */
	struct rx *(*context)(struct worker *worker, struct peer *peer, const struct packet *p);
	/*
	 * Returns the context that keeps the message until the group exists. NULL: the message is not
	 * wanted, and the reason is logged or sent to the peer.
	 */
	struct rx *(*elsewhere)(struct worker *worker, struct peer *peer, const struct packet *p);
	/* Handles a WIRE_GROUP packet. */
	void (*hear)(struct worker *worker, struct peer *peer, const struct packet *p);
	/*
	 * Handles the end of a connection with `err` (positive); FI_ESHUTDOWN: in good order. The peer may be freed next.
	 */
	void (*peer_failed)(struct coll *coll, struct peer *peer, int err);
	/* The peer is freed next. */
	void (*forget_peer)(struct coll *coll, struct peer *peer);
	/* Handles a connection that ended before the hellos: polls members that wait for such a peer again soon. */
	void (*not_taken)(struct coll *coll);
	/* Makes progress on all groups. Returns true if anything was done. Not called within a transport's progress. */
	bool (*progress)(struct coll *coll);
	/* Is a group open, or being joined? */
	bool (*has_groups)(const struct coll *coll);
	/* Does a group wait for a time? No descriptor becomes readable then. */
	bool (*waits)(const struct coll *coll);
	/* Frees the worker's groups while it is being closed. Only groups that no member here has joined are left. */
	void (*close)(struct coll *coll);
	/* Entry functions of an endpoint with FI_COLLECTIVE. */
	const struct fi_ops_collective *entries;
};

#endif
