/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the engine asks of the collectives (src/coll), which stand above it. A worker has a struct coll from
 * the first time on that it, or a peer, has to do with a group. Domain locked throughout.
 */
#ifndef WEFT_XFER_GROUP_H
#define WEFT_XFER_GROUP_H

#include <rdma/fi_collective.h>

#include "link/link.h"

struct coll;
struct peer;
struct worker;
struct rx;

/*
 * Has a message for WIRE_RX_GROUP found who waits for it, or a place where who will does? If not, *queues is
 * where it goes, as coll_context says.
 */
bool coll_take(struct worker *worker, struct peer *peer, const struct packet *p,
	       struct rx **queues);
/*
 * Where one waits to be matched: a context without completion queue whose receives all have their
 * `work`; NULL: its group is not there.
 */
struct rx *coll_context(struct worker *worker, struct peer *peer, const struct packet *p);
/* Where it goes then, until the group is there; NULL: nobody wants it, and it was said why. */
struct rx *coll_elsewhere(struct worker *worker, struct peer *peer, const struct packet *p);
/* A WIRE_GROUP packet. */
void coll_hear(struct worker *worker, struct peer *peer, const struct packet *p);
/* The connection is gone, `err` is positive; peer->conn.disconnect_received tells how. The peer may be freed next. */
void coll_peer_failed(struct coll *coll, struct peer *peer, int err);
/* A peer ended its connection before it was made: members that wait for it are polled again soon. */
void coll_not_taken(struct coll *coll);
/* Goes on with all that can; true when anything did. Outside of the transports' progress. */
bool coll_progress(struct coll *coll);
/* Something waits for a time, of which no descriptor tells. */
bool coll_waits(const struct coll *coll);
/* The worker is being closed; no group is left but what nobody has joined. */
void coll_close(struct coll *coll);

/* The entries of an endpoint that has the capability. */
extern const struct fi_ops_collective coll_entries;

#endif
