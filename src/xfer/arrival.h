/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages matched to a receive whose bytes have not all come. Domain locked. */
#ifndef WEFT_XFER_ARRIVAL_H
#define WEFT_XFER_ARRIVAL_H

#include "xfer/rx.h"

struct arrival {
	struct list link; /* peer->arrivals */
	struct rx *rx;
	struct recv *recv;
	struct peer *peer;
	uint64_t head, tag, data; /* of the message */
	size_t len;               /* of the message */
	size_t room;              /* what of it fits */
	size_t received;          /* so far, the part that does not fit included */
	size_t landing;           /* bytes of the packet that is being read into its place */
	bool owed;                /* its sender waits to hear of its end */
	bool moving;              /* a device brings it; no pieces of it are taken */
	unsigned char *base;      /* multi-receive: where this message lies; else NULL */
};

/*
 * Gets an offered message that meets `r`, for which there is this much room: by `move` if that is not NULL
 * and the link can do it, else its sender is asked to stream it. The id of the move is filled in.
 */
void arrival_pull(struct rx *rx, struct recv *r, const struct message *m, size_t room, void *base,
		  struct link_move *move);
/* No device brings what the peer has offered: its sender is asked. */
void arrival_stalled(struct peer *peer);
/* Is a device writing to what the context receives from this peer? */
bool arrival_moves(const struct peer *peer, const struct rx *rx);
/* A piece of a message that was asked for. */
void arrival_frag(struct port *port, struct peer *peer, const struct packet *p);
/* The peer is gone: what it had begun to send ends with `err` (positive). */
void arrival_fail_peer(struct port *port, struct peer *peer, int err);
/* The context is being closed: what it is receiving ends with `err`. */
void arrival_fail_context(struct port *port, struct rx *rx, int err);

#endif
