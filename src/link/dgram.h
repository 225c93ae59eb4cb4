/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract between the engine and a datagram transport (FI_EP_DGRAM). Datagrams go out whole,
 * unreliably, without a connection and without headers of the library. Domain locked throughout.
 */
#ifndef WEFT_LINK_DGRAM_H
#define WEFT_LINK_DGRAM_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/pool.h"
#include "link/wire.h"

#define DGRAM_BATCH_MAX   64         /* datagrams in one batch */
#define DGRAM_BATCH_BYTES (64 << 10) /* a batch of so many bytes does not wait for more */

/*
 * High bits of the fi_addr_t of a multicast group, below the 16 bits of a receive context index. No
 * entry of an address vector has these bits. The low 32 bits are the group's pool_id.
 */
#define DGRAM_GROUP (UINT64_C(1) << 47)

struct dgram;
struct ep;
struct opener;
struct recv;

/* A multicast group that the endpoint has joined. */
struct dgram_group {
	struct list link; /* dgram->groups */
	struct addr addr;
	bool sends, receives;
	int fd; /* the transport's: the group's datagrams arrive here; -1: not on an own socket */
	uint32_t watched; /* for the transport's use */
};

/* A datagram that was accepted and is not sent yet. */
struct dgram_out {
	struct ep *ep; /* endpoint to which the completion is reported */
	struct addr to;
	uint64_t flags;
	void *context;
	size_t len, count;
	struct iovec iov[WIRE_IOV_MAX];
};

struct dgram_ops {
	/*
	 * Sends one datagram. Returns 0; -FI_EAGAIN: no space; another negative error: the datagram
	 * cannot be sent; a positive error: the destination is unreachable.
	 */
	int (*send)(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
	/* Sends several datagrams in order. Returns how many went out, or why the first did not. */
	int (*send_many)(struct dgram *d, const struct dgram_out *outs, unsigned int count);
	/*
	 * Joins `g`: from now on its datagrams are received. Datagrams to a group leave by the
	 * interface of the endpoint's address. Returns 0 or a negative error.
	 */
	int (*join)(struct dgram *d, struct dgram_group *g);
	void (*leave)(struct dgram *d, struct dgram_group *g);
};

/* What the transport tells and asks the engine. */
struct dgram_events {
	/* Is a receive posted? */
	bool (*wanted)(const struct dgram *d);
	/* Does the endpoint report the senders of datagrams? */
	bool (*wants_source)(const struct dgram *d);
	/*
	 * Fills in at most `max` receives for the next datagrams, in that order; a multi-receive buffer
	 * comes last. Returns their number. They stay posted and valid until `came` is called for them.
	 */
	unsigned int (*receives)(struct dgram *d, struct recv *list[], unsigned int max);
	/*
	 * The first of these receives holds a datagram of `len` bytes, perhaps truncated. `from` may be
	 * NULL if the endpoint does not report senders.
	 */
	void (*came)(struct dgram *d, struct recv *r, size_t len, const struct addr *from);
	/* The first of these receives has memory that cannot be written: it ends with `err` (positive). */
	void (*spoilt)(struct dgram *d, struct recv *r, int err);
	/* No more datagrams will come: ends all posted receives, there is one, with `err` (positive). */
	void (*fail)(struct dgram *d, int err);
	/* Sends the batch as far as the kernel accepts it. Returns true if something was sent. */
	bool (*flush)(struct dgram *d);
};

/* Embedded at the start of the transport's state. */
struct dgram {
	const struct dgram_ops *ops;
	size_t max; /* length limit of a datagram (bytes) */
	/* The transport's `open` fills in what stands above, the engine what follows. */
	const struct dgram_events *events;
	struct opener *opener;
	struct list groups;
	struct pool group_pool;
	struct dgram_out *batch; /* array of DGRAM_BATCH_MAX; NULL until the first use */
	unsigned int batch_count;
	size_t batch_bytes; /* that joined the batch since it was last empty */
};

#endif
