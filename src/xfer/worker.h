/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's side of an address: its peers, receive contexts, sockets. Domain locked. */
#ifndef WEFT_XFER_WORKER_H
#define WEFT_XFER_WORKER_H

#include "base/addr.h"
#include "base/list.h"
#include "base/pool.h"
#include "core/domain.h"
#include "xfer/conn/acceptor.h"
#include "xfer/peer.h"
#include "xfer/msg/rx.h"
#include "link/engine.h"

#define WORKER_RX_MAX XFER_CTX_MAX

/* What an event of the worker's epoll instance is about, beyond enum acceptor_source. */
enum worker_source { WORKER_PEER = ACCEPTOR_SOURCES, WORKER_HW };

struct av;
struct dgram;
struct offload;

struct worker {
	/* What a send touches. */
	struct peer **peers; /* by fi_addr_t; &peer_nobody where never talked to */
	size_t peer_count;
	/* What a progress call touches. */
	struct {
		bool (*progress)(void *state);
		void *state;
	} open[LINK_KINDS]; /* the transports it uses */
	unsigned int open_count;
	bool in_progress;
	bool closing;
	bool counts;   /* peers are to notify us of accesses to our memory */
	bool armed;    /* poll the sockets at the next progress call */
	bool sleepers; /* a thread may sleep on the worker's descriptor */
	unsigned int progress_calls;
	unsigned int served; /* one-sided requests of peers that were delivered */
	uint64_t next_poll;  /* ms: when the sockets are polled again */
	struct list busy;    /* struct peer.tx.in_busy: something waits to be sent */
	struct list
		awaiting; /* struct peer.rma.in_awaiting: one-sided operations without an answer */
	struct list spec; /* struct rxreq.in_spec: speculative fragments of it may come */
	struct list spec_only;    /* the same of messages that cannot be fetched by CMA */
	struct list acks_pending; /* struct peer.target.in_acks_pending: DONE to be sent */
	uint64_t spec_us;         /* us: end of the last progress call that left any in `spec` */
	unsigned int waits;       /* progress calls while there were any in awaiting */
	unsigned int unread;      /* disconnected peers whose messages are still to be delivered */
	unsigned int handshakes;  /* under way: sockets are polled more often */
	struct {
		const struct transport *transport;
		void *state;
	} via[LINK_KINDS]; /* the transport of each kind, or NULL and NULL */
	struct rx *rx[WORKER_RX_MAX];
	struct dgram *dgram;     /* of a datagram endpoint, which has no peers; else NULL */
	struct offload *offload; /* of a connected one that is the device's, likewise */
	struct coll *coll;       /* see xfer/group.h; or NULL */
	/* The rest. */
	struct waiter **waiters; /* that may sleep on the worker's descriptor */
	unsigned int waiter_count;
	struct domain *dom;
	struct av *av;
	struct addr name;
	struct addr key;            /* the name unmapped */
	const struct worker_cm *cm; /* of a connected endpoint: its one peer is peers[0] */
	void *cm_arg;               /* its owner's */
	void *cm_data;              /* what the application says with its request, or NULL */
	size_t cm_len;
	int cm_sock;     /* of the connection, not ours to close */
	int cm_timer;    /* of an attempt, in epfd; 0: none */
	bool cm_named;   /* the name's port number is one that a socket of ours was given */
	uint64_t hellos; /* sent */
	uint64_t incarnation;
	uint64_t probe; /* the word peers try a direct fetch on */
	int epfd;
	struct acceptor acceptor;
	struct pool peer_pool;
	struct pool tx_pool;    /* struct txreq */
	struct pool rxreq_pool; /* struct rxreq */
	struct list peers_list;
	struct list in_domain;
	struct list in_av;
};

/* Waiters that sleep on the worker make a progress call and arm anew. */
void worker_wake(struct worker *worker);
/* Makes room in the table for entry `addr`. 0 or -FI_ENOMEM. */
int worker_reserve(struct worker *worker, fi_addr_t addr);

/* Whom an entry of the vector is; &peer_nobody: never talked to, see peer_get. */
static inline struct peer *worker_peer(const struct worker *worker, fi_addr_t addr)
{
	return addr < worker->peer_count ? worker->peers[addr] : &peer_nobody;
}

/* Does it make links to peers across the network? */
static inline bool worker_on_network(const struct worker *worker)
{
	return worker->via[LINK_SOCKET].state || worker->via[LINK_DEVICE].state;
}

#endif
