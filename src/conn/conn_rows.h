/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection with a peer as rows of data: what an event does in each state, and which state comes next.
 * docs/CONNECTIONS.md is made from these rows. Domain locked.
 */
#ifndef WEFT_CONN_ROWS_H
#define WEFT_CONN_ROWS_H

#include "conn/contact.h"

struct accepted;

/* conn_rows_events has each in words. */
enum conn_event {
	/* Calls of ours, and time. */
	CONN_START,
	CONN_DUE,
	CONN_OVERDUE,
	CONN_FORSAKEN,
	CONN_EXPEL,
	CONN_CLOSE,
	/* Sockets, packets and links. */
	CONN_SOCKET,
	CONN_PACKET,
	CONN_LOST,
	/* The answer to our hello. */
	CONN_ACCEPTED,
	CONN_CROSSED,
	CONN_REJECTED,
	CONN_CHALLENGED,
	CONN_GARBLED,
	/* A hello in the peer's name, by what its sender is to us: each has an action in each state. */
	CONN_OLD,
	CONN_SAME_RUN,
	CONN_BELIEVED,
	CONN_GREATER,
	CONN_SAME_PROCESS,
	CONN_LESSER,
	/* What the actions bring about. */
	CONN_REACHES,
	CONN_GREETS,
	CONN_PAUSES,
	CONN_HIDDEN,
	CONN_RESTARTS,
	CONN_TAKES,
	CONN_SECURES,
	CONN_LINKS,
	CONN_AGREES,
	CONN_RESUMES,
	CONN_ENDS,
	CONN_EVENTS
};

/* Done by the switches of conn_event.c. */
enum conn_action {
	DO_REFUSE, /* the state has no such event: logged */
	DO_NOTHING,
	DO_ATTEMPT,  /* connects, or gets ready to */
	DO_AGAIN,    /* the same, within the same attempt */
	DO_ASK,      /* asks others to tell the peer that it has to connect */
	DO_ANEW,     /* begins again, a few times */
	DO_GIVE_UP,  /* ends the attempt */
	DO_EXPEL,    /* ends the connection; within a host, asks the peer to */
	DO_PART,     /* sends a disconnect message */
	DO_GREET,    /* looks how connect() has ended, and sends the hello */
	DO_HEAR,     /* reads the answer to the hello */
	DO_LISTEN,   /* reads wake-ups and the disconnect message */
	DO_LOSE,     /* ends the connection and its operations */
	DO_LINK,     /* makes the link */
	DO_YIELD,    /* leaves it to the peer's attempt */
	DO_REJECTED, /* comes again later, finds the peer by another name, or ends the attempt */
	DO_PROVE,    /* sends the hello proper, with the proof of the key */
	DO_BREAK,    /* ends the attempt: the answer makes no sense */
	DO_TAKE,     /* accepts the newcomer, if there is a place for it */
	DO_HOLD,     /* keeps it until our link or our attempt has ended */
	DO_CROSS,    /* tells it that our attempt wins */
	DO_DISMISS,  /* closes its connection, without an answer */
	DO_WAIT,     /* sees to it that a sleeper goes on with the attempt */
	DO_ABANDON,  /* ends our attempt, and nothing else */
	DO_OPEN,     /* sends what is queued */
};

struct conn_row {
	enum conn_action action;
	enum peer_state next; /* before the action; PEER_STATES: the state stays */
};

extern const struct conn_row conn_rows[CONN_EVENTS][PEER_STATES];
extern const char *const conn_rows_events[CONN_EVENTS], *const conn_rows_states[PEER_STATES];

/* What comes with an event. */
struct conn_with {
	struct accepted *conn; /* a newcomer, or the answer to our hello; owned by the action */
	const struct peer_also *also; /* the newcomer's further addresses */
	int err;                      /* CONN_LOST: how, positive */
	bool in_advance;              /* CONN_START: as in struct attempt */
	uint64_t until;               /* likewise */
};

/*
 * Something has happened to the peer's connection: its state becomes that of the row, and the row's action is done, by which
 * the peer may be freed. `with`: NULL if nothing comes with the event. No other function changes a peer's state. Returns what
 * the action does, 0 or a negative error; -FI_EOPBADSTATE: the row refuses the event.
 */
int conn_event(struct contact *peer, enum conn_event event, const struct conn_with *with);

#endif
