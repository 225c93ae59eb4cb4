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
	unsigned char *base;      /* multi-receive: where this message lies; else NULL */
};

/* Asks the sender to stream an offered message that meets `r`, for which there is this much room. */
void arrival_pull(struct rx *rx, struct recv *r, const struct message *m, size_t room, void *base);
/* A piece of a message that was asked for. */
void arrival_frag(struct port *port, struct peer *peer, const struct packet *p);
/* The peer is gone: what it had begun to send ends with `err` (positive). */
void arrival_fail_peer(struct port *port, struct peer *peer, int err);
/* The context is being closed: what it is receiving ends with `err`. */
void arrival_fail_context(struct port *port, struct rx *rx, int err);

#endif
