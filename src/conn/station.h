/* SPDX-License-Identifier: BSD-2-Clause */
/* An open endpoint, as connecting knows it: embedded in the engine's struct worker. Domain locked. */
#ifndef WEFT_CONN_STATION_H
#define WEFT_CONN_STATION_H

#include "base/pool.h"
#include "conn/acceptor.h"
#include "conn/contact.h"
#include "conn/source.h"
#include "conn/stall.h"
#include "core/domain.h"
#include "core/driven.h"
#include "link/opener.h"

struct station;

/* How the operations of a connection end. */
struct conn_down {
	int err;      /* positive */
	int reason;   /* their prov_errno */
	int directed; /* positive: of receives that name the peer alone; 0: they stay posted */
};

/*
 * What connecting calls in the engine, a room above it, which fills the table: station->up. A call that may free the peer says so.
 */
struct conn_upcalls {
	/* A peer is made: its contact is filled in, what the engine has behind that is undefined. */
	void (*made)(struct contact *peer);
	/* The peer is freed next. */
	void (*freed)(struct contact *peer);
	/* A connection is made: sends what is queued. */
	void (*up)(struct contact *peer);
	/* The connection that was to be closed stays: sends what is queued. */
	void (*stays)(struct contact *peer);
	/* The connection, or the attempt, is over: all operations end as `how` says. */
	void (*down)(struct contact *peer, const struct conn_down *how);
	/* It is over, and nothing fails with it: see contact_not_taken. The link is still there. */
	void (*parted)(struct contact *peer);
	/* The end of `parted`, without a link. Do operations wait for the next connection? */
	bool (*again)(struct contact *peer);
	/* Do operations wait for the connection? */
	bool (*waiting)(const struct contact *peer);
	/* Is nothing under way, either way, that would not survive the connection? */
	bool (*quiet)(const struct contact *peer);
	/* Do receives name the peer alone? They end with its connection, if that breaks: it stays for them. */
	bool (*awaited)(struct contact *peer);
	/* Is a message of the peer being received? */
	bool (*receiving)(const struct contact *peer);
	/* Are connections watched, so that none may be closed? */
	bool (*watched)(const struct station *station);
	/* The link has ended, and packets of the peer are lost with it. */
	void (*lost)(struct contact *peer);
	/* The peer is asked to disconnect: nothing more is sent to it. */
	void (*mute)(struct contact *peer);
	/* All messages of a disconnected peer have been delivered; `directed` as in struct conn_down. */
	void (*read_out)(struct contact *peer, int directed);
	/* The next progress call looks at the peer; sleepers wake and make one. */
	void (*soon)(struct contact *peer);
	/* Sends a packet about the connection as soon as the link takes it. */
	void (*say)(struct contact *peer, uint64_t head, uint64_t word);
};

#define STATION_INTRODUCTIONS 1024u

struct addresses;
struct av;
struct conn_option;
struct rails;
struct station_cm;

/* Upper half of the data of an event in the endpoint's epoll instance, driven.fd, beyond enum acceptor_source. */
enum station_source { STATION_PEER = ACCEPTOR_SOURCES, STATION_HW, STATION_STALL, STATION_RAIL };

struct station {
	/* Fields that a send and a progress call read. */
	struct contact **peers; /* by fi_addr_t; `nobody`: no peer was made for this entry */
	size_t peer_count;
	struct driven driven;
	struct opener opener; /* what transports see */
	bool in_progress;
	bool closing;
	unsigned int unread; /* disconnected peers with undelivered messages: contact.unread_ms */
	/* Attempts to connect under way; sockets are polled more often meanwhile. */
	unsigned int handshakes;
	struct {
		const struct transport *transport;
		void *state;
	} via[LINK_KINDS]; /* the transport of each kind; both NULL if there is none */
	/* Fields of slow paths. */
	const struct conn_upcalls *up;
	struct contact *nobody; /* never changes */
	struct stall stall;     /* of the receive ring */
	struct av *av;
	struct addr name;
	struct addr key;             /* `name` unmapped; shares its string */
	const struct station_cm *cm; /* not NULL: connected endpoint, whose one peer is peers[0] */
	void *cm_data; /* application data of the connection request, owned here; or NULL */
	size_t cm_len;
	bool reaches_out;    /* peers cannot connect to it: see worker_reach_out */
	bool pinging;        /* some peer's conn.pinging is set */
	uint64_t expired_ms; /* ms: when held connections and deadlines were last looked at */
	uint64_t looked_ms;  /* ms: the same of the descriptors that the acceptor lacks */
	int cm_sock;         /* socket of the connection; not owned */
	int timer;           /* of an attempt to connect, in driven.fd: -1: none */
	bool cm_named;       /* the port number of `name` was taken from our connecting socket */
	const struct conn_option *const *options; /* of connections; the last one is NULL */
	uint64_t hellos;                          /* number of hellos sent */
	uint16_t hello_flags;                     /* in each, of conn_options.c: WIRE_HELLO_ */
	uint64_t incarnation;                     /* random number of this run of the station */
	uint64_t cma_word; /* peers read this word to test whether CMA works */
	/* Peers that the address vector does not hold: conn_on_hello.c. */
	struct {
		uint64_t seen_av; /* av_version when they were looked up last */
		uint64_t refused;
	} unknown;
	struct pool peer_pool;
	struct list peers_list;
	/* Idle connections that make room: conn_retire.c. */
	struct {
		uint64_t next;  /* ms: not before, peers are asked again */
		uint64_t heard; /* ms: when a peer's question was last looked at */
		bool possible;  /* there was a connection that could make room */
	} retire;
	/* Introductions: conn_introduce.c. */
	struct {
		uint64_t asked_ms;    /* ms */
		unsigned int asked;   /* peers that others were asked about since `asked_ms` */
		uint64_t followed_ms; /* ms */
		bool followed[STATION_INTRODUCTIONS]; /* by their hash, since `followed_ms` */
		uint64_t logged; /* log_due, of attempts that they bring about */
	} introduce;
	/* conn_relay.c. */
	struct {
		struct addr name;     /* FI_WEFT_RELAY, unmapped; ADDR_NONE: none */
		struct contact *peer; /* of this name, once it is wanted; or NULL */
		uint64_t next;        /* ms: not before, it is connected to again */
		int err;              /* positive: why the last attempt failed; 0: it did not */
		bool wanted;          /* an operation waits for a peer that alone can connect */
	} relay;
	struct auth_own auth;
	struct acceptor acceptor;
	struct addresses *addresses; /* with `all`, once a hello has told them; or NULL */
	struct rails *rails;         /* its interfaces, once a link may use several; or NULL */
	struct sources sources;
};

static inline struct station *station_opener(struct opener *o)
{
	return (struct station *)((char *)o - offsetof(struct station, opener));
}

/* Ends the sleep of all that sleep on the endpoint. */
static inline void station_wake(struct station *station)
{
	station->opener.sleepers = false;
	driven_wake(&station->driven);
}

/* Is this, unmapped, an address of our own endpoint? */
static inline bool station_goes_by(const struct station *station, const struct addr *key)
{
	if (addr_equal(key, &station->key))
		return true;
	return station->opener.all && key->port == station->key.port &&
	       (key->kind == ADDR_IN || key->kind == station->key.kind) && addr_is_local(key);
}

/* Are links to peers made across the network? */
static inline bool station_on_network(const struct station *station)
{
	return station->via[LINK_SOCKET].state || station->via[LINK_DEVICE].state;
}

#endif
