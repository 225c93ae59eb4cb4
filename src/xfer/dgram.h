/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram endpoints (FI_EP_DGRAM): messages that go out whole, unreliably and without a connection,
 * nothing of ours around them. The engine's half, and its contract with the transport. The kernel's
 * socket buffer is the queue of unexpected messages: it is read only while receives are posted, straight
 * into them. A send is complete when the kernel has the datagram. Domain locked throughout.
 */
#ifndef WEFT_XFER_DGRAM_H
#define WEFT_XFER_DGRAM_H

#include "base/addr.h"
#include "base/list.h"
#include "base/pool.h"
#include "core/ep.h"
#include "hw/wire.h"
#include "xfer/port.h"

#define DGRAM_HELD_MAX 32 /* datagrams that wait to go out together */

/* Upper bits of a group's fi_addr_t, below the 16 that may name a receive context: no entry of an
 * address vector has any of them. The lower 32 are its pool_id. */
#define DGRAM_GROUP (UINT64_C(1) << 47)

struct dgram;
struct xfer;

/* A multicast group as the endpoint joined it. */
struct dgram_group {
	struct list link; /* dgram->groups */
	struct addr addr;
	bool sends, receives;
	int fd; /* the transport's: where its datagrams come in; -1: nowhere, or elsewhere */
	uint32_t watched; /* the transport's */
};

/* A datagram that was accepted and is not out yet. */
struct dgram_out {
	struct ep *ep; /* whom to tell */
	struct addr to;
	uint64_t flags;
	void *context;
	size_t len, count;
	struct iovec iov[WIRE_IOV_MAX];
};

struct dgram_ops {
	/*
	 * One datagram. 0; -FI_EAGAIN: no room; another negative error: it cannot be sent at all; a
	 * positive one: there is no way to that address.
	 */
	int (*send)(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
	/* Several, in order: how many went out; if it is none, negative, why the first did not. */
	int (*send_many)(struct dgram *d, const struct dgram_out *outs, unsigned int count);
	/*
	 * From now on datagrams to the group come in; what is sent to a group leaves by the interface
	 * of the endpoint's address. 0 or a negative error.
	 */
	int (*join)(struct dgram *d, struct dgram_group *g);
	void (*leave)(struct dgram *d, struct dgram_group *g);
};

/* Embedded at the start of the transport's state, which it opens with dgram_init. */
struct dgram {
	const struct dgram_ops *ops;
	struct port *port;
	size_t max; /* bytes of the longest datagram */
	struct list groups;
	struct pool group_pool;
	struct dgram_out *held; /* DGRAM_HELD_MAX of them, NULL before the first */
	unsigned int held_count;
};

void dgram_init(struct dgram *d, struct port *port, const struct dgram_ops *ops);
/* The groups are left, what is held is dropped. */
void dgram_fini(struct dgram *d);

/* ---- The way up for the transport, from its turn -------------------------------------------- */

/* Is anybody waiting for a datagram? */
static inline bool dgram_wanted(const struct dgram *d)
{
	const struct rx *rx = d->port->rx[0];

	return rx && !list_empty(&rx->posted[0]);
}

/* Must a datagram's sender be known? */
static inline bool dgram_wants_source(const struct dgram *d)
{
	return d->port->rx[0]->caps & (FI_SOURCE | FI_SOURCE_ERR);
}

/*
 * The receives that the next datagrams go to, in that order, at most `max`: how many. One that takes
 * several messages is the last. They stay posted; each is good until dgram_came is called for it.
 */
unsigned int dgram_receives(struct dgram *d, struct recv *list[], unsigned int max);
/*
 * The first of them holds what of a datagram of `len` bytes fits. `from` may be NULL when its sender need
 * not be known.
 */
void dgram_came(struct dgram *d, struct recv *r, size_t len, const struct addr *from);

/* No more datagrams will come: all posted receives end with `err`, which is positive; dgram_wanted. */
void dgram_fail(struct dgram *d, int err);

/* Sends what is held, as far as there is room; true when anything moved. */
bool dgram_flush(struct dgram *d);

/* ---- For the entries ------------------------------------------------------------------------ */

/* The endpoint is being closed: see xfer_forget. What is held goes out now or never. */
void dgram_forget(struct dgram *d, struct ep *ep, struct ep *successor);

int dgram_send(struct ep *ep, const struct xfer *x);
/* The call is refused with `err`, which is returned; what was to go with it goes without, unless more follows. */
int dgram_refuse(struct ep *ep, uint64_t flags, int err);
int dgram_recv(struct ep *ep, const struct recv_args *args);

/* The group behind a fi_addr_t, or NULL. */
struct dgram_group *dgram_group_find(struct dgram *d, fi_addr_t addr);

extern const struct fi_ops_msg dgram_st; /* no lock */
extern const struct fi_ops_msg dgram_mt; /* the domain's lock */

#endif
