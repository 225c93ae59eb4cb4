/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the protocol of a message. Only this file compares its length with the thresholds of a
 * link, which are fields of struct link filled from the rows of base/env.h. Domain locked.
 */
#ifndef WEFT_XFER_PROTO_H
#define WEFT_XFER_PROTO_H

#include "xfer/msg/tx.h"

/* Returns how a packet with a payload of `len` bytes is sent. */
static inline enum proto proto_of_packet(const struct link *link, size_t len)
{
	return len < link->zcopy_min ? PROTO_COPY : PROTO_ZCOPY;
}

/*
 * Is `len` beyond what the link sends as one packet? A longer message needs a rendezvous; a longer
 * one-sided operation accesses memory directly, if possible.
 */
static inline bool proto_is_long(const struct link *link, size_t len)
{
	return len > link->eager_max;
}

/* May the link send it as one packet that it copies within the call? */
static inline bool proto_copies(const struct link *link, size_t len)
{
	return !proto_is_long(link, len) && proto_of_packet(link, len) == PROTO_COPY;
}

/* Does the link copy it within the call, to send it soon with others of a stream? */
static inline bool proto_gathers(const struct link *link, size_t len)
{
	return link->gather_max && len <= link->gather_max;
}

/*
 * Returns the best protocol for a long message after `failed` (PROTO_COPY: none has failed); the
 * last resort is PROTO_FETCH.
 */
enum proto proto_select(const struct link *link, enum proto failed);

#endif
