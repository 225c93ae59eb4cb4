/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a connection, or an attempt to make one, ends. docs/NETWORKS.md has the rows, too. */
#ifndef WEFT_CONN_END_H
#define WEFT_CONN_END_H

#include <stdbool.h>

struct contact;

enum conn_end {
	END_NONE, /* it goes on */
	/* What an error tells, of the kernel, a transport or the peer's answer: conn_end_of. */
	END_LOST,     /* the peer's process ended, or the network cut the connection */
	END_SILENT,   /* no sign of life */
	END_NOBODY,   /* nobody is at the address */
	END_REFUSED,  /* one side does not let the other one in */
	END_AWAITED,  /* the peer alone could connect, and has not */
	END_PROTOCOL, /* what it sent was not understood */
	END_OTHER,    /* any other error */
	/* Ends in good order: posted packets are still sent. */
	END_CLOSED,  /* the peer's disconnect message has come; what it sent before still counts */
	END_LOCAL,   /* we close our endpoint, or shut the connection down */
	END_RETIRED, /* both sides close an idle connection */
	/* The peer is expelled: nothing that it sends counts any more, and the next progress call ends the connection. */
	END_BUDGET,  /* it exceeded a limit of ours */
	END_KEYS,    /* it used too many unknown keys */
	END_MEMORY,  /* we had no memory for what it sent, or for an answer */
	END_OVERDUE, /* it did not send what it announced */
	END_STUCK,   /* an operation with it stands still */
	END_COUNT
};

struct conn_end_row {
	int error;     /* positive: what requests end with; 0: the error that was found */
	int reason;    /* their prov_errno; 0: the error */
	bool forfeits; /* complete messages that no receive has taken are dropped, too */
};

extern const struct conn_end_row conn_end_rows[END_COUNT];

/*
 * The connection ends now: as peer->end says, else by `found` (positive), which is noted there. Returns the error
 * (positive) that requests end with.
 */
int conn_end_decide(struct contact *peer, int found);
/* The peer's disconnect message has come. */
void conn_end_closed(struct contact *peer);
/* Returns the prov_errno of requests that end with the connection, by error `err` (positive). */
int conn_end_reason(const struct contact *peer, int err);

#endif
