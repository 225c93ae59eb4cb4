/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other direction of link/link.h: what a transport knows of the worker that has opened it, and what it tells that worker by
 * a table which the engine (src/xfer) fills. Domain locked, or only one thread.
 */
#ifndef WEFT_LINK_OPENER_H
#define WEFT_LINK_OPENER_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"

struct addr;
struct domain;
struct idle;
struct link;
struct opener;
struct packet;
struct work;

/*
 * `src` names the peer: its number in the worker's pool of peers, which our hello told the peer; for LINK_SOCKET it is
 * link_peer.id.
 */
struct link_events {
	/* ---- Received packets, from `progress`. -------------------------------------------- */

	/* Handles a complete packet. */
	void (*deliver)(struct opener *o, uint32_t src, const struct packet *p);
	/*
	 * A link is to keep so many bytes of what it has received, and cannot deliver yet. False: it must not, and the engine
	 * is about to end the connection. With 0 bytes: some of what it keeps has become complete. What it keeps it releases
	 * before its `close` returns.
	 */
	bool (*hold)(struct opener *o, uint32_t src, size_t bytes);
	void (*release)(struct opener *o, uint32_t src, size_t bytes);
	/*
	 * Returns memory to collect the payload of a packet in, aligned for any type, which counts as held; p->payload is
	 * ignored. NULL: there is none, or not for this peer; the receive of a message has been told, and the engine is about
	 * to end the connection. The engine keeps a message that no receive waits for where it was collected.
	 */
	void *(*payload_new)(struct opener *o, uint32_t src, const struct packet *p);
	void (*payload_free)(struct opener *o, uint32_t src, void *payload); /* accepts NULL */
	/* As `deliver`, of a packet whose payload was collected; its memory is the engine's from now on. */
	void (*deliver_collected)(struct opener *o, uint32_t src, const struct packet *p);
	/*
	 * Handles the head of a packet whose payload (p->len bytes; p->payload is ignored) is still to come. Returns an id for
	 * the next two calls if the payload may be placed directly; 0: collect it.
	 */
	uint32_t (*placement_begin)(struct opener *o, uint32_t src, const struct packet *p);
	/*
	 * Fills in at most `max` segments for the payload from `offset` on. Returns their number; 0: discard the rest of the
	 * payload. The segments are valid until the transport's next event.
	 */
	size_t (*placement_iov)(struct opener *o, uint32_t id, size_t offset, struct iovec *iov,
				size_t max);
	/* The payload is complete. */
	void (*placement_end)(struct opener *o, uint32_t id);

	/* ---- Copies, see link_memory_ops.copy. --------------------------------------------- */

	/* Copy `id`, which was under way, has ended: enum link_copied, or a negative error. */
	void (*copied)(struct opener *o, uint64_t id, int ret);
	/* A device has failed on the link: operations not reported as done are not done, and none will be posted any more. */
	void (*rdma_failed)(struct opener *o, uint32_t src);
	/* The same for operations on regions alone, which go by packets. Later ones may be posted again. */
	void (*rma_failed)(struct opener *o, uint32_t src);
	/* Are these bytes part of a message that we send to the peer, and that it may read? */
	bool (*readable)(struct opener *o, uint32_t src, uint64_t at, size_t len);
	/* Returns the link to the peer. NULL: there is none yet, or none any more. */
	struct link *(*link)(struct opener *o, uint32_t src);

	/* ---- Connections. ------------------------------------------------------------------ */

	/* A link that was `securing` takes packets now. */
	void (*ready)(struct opener *o, uint32_t src);
	/*
	 * The connection of a LINK_SOCKET or LINK_DEVICE has ended with `err` (positive). -FI_ENOMEM: bytes that the peer has
	 * sent are lost for want of memory, and nobody knows of which packets: the queues tell. Closes the link before it
	 * returns.
	 */
	void (*ended)(struct opener *o, uint32_t src, int err);
	/*
	 * The initiator's link lacks this rail: transport.join will bring one, if that is possible within `ms`. Called again
	 * and again meanwhile.
	 */
	void (*rail_wanted)(struct opener *o, uint32_t src, uint32_t rail, uint32_t ms);
	/* Has the peer been asked for a rail that it may have made already? */
	bool (*rail_coming)(struct opener *o, uint32_t src);
	/* Returns the transport's state in another open worker of the domain, NULL if there is none. */
	void *(*successor)(struct opener *o, const void *state);
};

/* A worker as the transports see it that it opens. They read it in any of their functions. */
struct opener {
	const struct link_events *events;
	struct domain *dom;
	struct addr *name;   /* the worker's address, which the transport's `open` may complete */
	struct idle *idle;   /* tells whether a progress call is due */
	unsigned int opened; /* transports of the worker */
	bool all;      /* opened with the wildcard, for which `name` has one interface's address */
	bool counts;   /* peers must notify us of accesses to our memory: counters count them */
	bool rails;    /* a link over sockets may have several: struct transport's `join` */
	bool armed;    /* the worker's descriptor was, and its sockets were not polled since */
	bool sleepers; /* a thread may sleep on the descriptor, so that nobody calls progress soon */
};

/* A posted receive. Datagram transports fill it directly. */
#define RX_IOV_MAX 16
struct recv {
	struct list link;
	fi_addr_t src; /* FI_ADDR_UNSPEC: from any peer */
	uint64_t tag, ignore;
	ssize_t plain; /* a whole message of up to so many bytes only has to be copied to iov[0]; -1: none */
	void *context;
	uint64_t flags;        /* FI_MULTI_RECV, FI_COMPLETION, FI_CLAIM ... */
	struct work *work;     /* deferred work that posted the receive, or NULL */
	size_t len;            /* free bytes in all segments */
	uint16_t iov_count;    /* with the next two a single store of a new receive */
	uint16_t exhausted;    /* 1: multi-receive without space for another message */
	unsigned int arriving; /* messages being received into this receive */
	struct iovec iov[RX_IOV_MAX];
};

#endif
