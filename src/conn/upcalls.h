/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What connecting calls in the engine, a room above it, which fills the table: station->up. Domain locked. A call that may free the
 * peer says so.
 */
#ifndef WEFT_CONN_UPCALLS_H
#define WEFT_CONN_UPCALLS_H

#include <stdbool.h>
#include <stdint.h>

struct contact;
struct station;

/* How the operations of a connection end. */
struct conn_down {
	int err;      /* positive */
	int reason;   /* their prov_errno */
	int directed; /* positive: of receives that name the peer alone; 0: they stay posted */
};

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

#endif
