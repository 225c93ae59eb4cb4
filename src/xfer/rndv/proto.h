/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of a message: the only place that compares its length with the thresholds of a link. Those are
 * fields of struct link, filled from the rows of base/env.h. Domain locked.
 */
#ifndef WEFT_XFER_PROTO_H
#define WEFT_XFER_PROTO_H

#include "xfer/msg/tx.h"

/* How one packet of that length goes out. */
static inline enum proto proto_of_packet(const struct link *link, size_t len)
{
	return len < link->zcopy_min ? PROTO_COPY : PROTO_ZCOPY;
}

/* Too long for one packet: a message needs a rendezvous, a one-sided operation sooner goes directly. */
static inline bool proto_is_long(const struct link *link, size_t len)
{
	return len > link->eager_max;
}

/* May the link copy it within the call? */
static inline bool proto_copies(const struct link *link, size_t len)
{
	return !proto_is_long(link, len) && proto_of_packet(link, len) == PROTO_COPY;
}

/* Which of the peer's two records of speculative fragments counts messages of that length: struct peer_tx.spec. */
static inline unsigned int proto_spec_class(size_t len)
{
	return len > WIRE_SPEC_MAX;
}

/* The best protocol for a long message behind `failed` (PROTO_COPY: nothing has failed); at last PROTO_FETCH. */
enum proto proto_select(const struct peer *peer, const struct txreq *req, enum proto failed);
/* The bytes of it that are to follow its RTS as speculative fragments. */
size_t proto_spec_bytes(const struct peer *peer, const struct txreq *req, enum proto proto);

#endif
