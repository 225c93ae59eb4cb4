/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which way a message goes. In the engine only this file compares lengths with thresholds: fields of struct link, filled
 * from the rows of base/env.h, and WIRE_PAUSED_MAX. Domain locked.
 */
#ifndef WEFT_XFER_WAY_H
#define WEFT_XFER_WAY_H

#include <rdma/fi_rma.h>

#include "link/link.h"
#include "link/wire.h"

/* How its sender sends it. */
enum way_out {
	OUT_COPY,  /* one packet, which the link copies within the call */
	OUT_ZCOPY, /* one packet; the link may send it later, from the application's memory */
	OUT_RDMA,  /* RTS, and the memory is registered: the receiver's device reads it */
	OUT_RTS    /* RTS: the receiver chooses */
};

/* How its receiver gets the bytes of one that was announced by RTS. */
enum way_in {
	IN_NOTHING, /* the receive has no space for any */
	IN_READ,    /* by a copy of the link: this process's, that of both, or the device's */
	IN_STREAM   /* asks for it by CTS: the sender sends fragments */
};

/*
 * Is `len` beyond what the link sends as one packet? A longer message is announced; a longer one-sided
 * operation accesses memory directly, if possible.
 */
static inline bool way_is_long(const struct link *link, size_t len)
{
	return len > link->eager_max;
}

/* How a packet with a payload of `len` bytes goes: OUT_COPY or OUT_ZCOPY. */
static inline enum way_out way_of_packet(const struct link *link, size_t len)
{
	return len < link->zcopy_min ? OUT_COPY : OUT_ZCOPY;
}

/* `paused`: under XOFF the receiver is to keep little. Memory that cannot be registered goes by OUT_RTS instead of OUT_RDMA. */
static inline enum way_out way_out(const struct link *link, size_t len, bool paused)
{
	if (way_is_long(link, len) || (paused && len > WIRE_PAUSED_MAX))
		return link->rdma_usable ? OUT_RDMA : OUT_RTS;
	return way_of_packet(link, len);
}

/* May the link copy it within the call, so that its end can be reported; or need not be, for it is `silent`? */
static inline bool way_copies(const struct link *link, size_t len, bool silent)
{
	enum way_out way = way_out(link, len, false);

	return way == OUT_COPY || (way == OUT_ZCOPY && silent && !link->zcopy_min);
}

/* Does the link copy it within the call, to send it soon with others of a stream? */
static inline bool way_gathers(const struct link *link, size_t len)
{
	return link->gather_max && len <= link->gather_max;
}

/* Has the sender's device registered all of these ranges? */
static inline bool way_registered(const struct fi_rma_iov *range, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!range[i].key)
			return false;
	return true;
}

/* `range`: of the message, as far as the receive has space. The link is NULL when the sender has gone. */
static inline enum way_in way_in(const struct link *link, const struct fi_rma_iov *range,
				 size_t count)
{
	if (!count)
		return IN_NOTHING;
	if (link && (link->local || (link->rdma_usable && way_registered(range, count))))
		return IN_READ;
	return IN_STREAM;
}

#endif
