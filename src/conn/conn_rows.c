/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a state has no row for an event, the event is refused. */
#include "conn/conn_rows.h"

#define STAY    PEER_STATES
#define ANY     PEER_IDLE... PEER_STATES - 1
#define ATTEMPT PEER_RETRYING... PEER_CROSSED
#define LINKED  PEER_SECURING... PEER_RETIRING

const char *const conn_rows_states[PEER_STATES] = {
	[PEER_IDLE] = "no connection, and no attempt under way",
	[PEER_RETRYING] = "an attempt without a socket: it connects again after a pause",
	[PEER_AWAITED] = "an attempt without a socket: only the peer can connect, and has to come",
	[PEER_CONNECTING] = "connect() is under way",
	[PEER_HANDSHAKE] = "our hello is sent; its answer has to come",
	[PEER_CROSSED] = "both have connected, and the peer's attempt won: its hello has to come",
	[PEER_SECURING] = "the link is made, but takes no packet yet",
	[PEER_CONNECTED] = "connected",
	[PEER_RETIRING] = "connected, but agreed to close: sends no operation",
};

const char *const conn_rows_events[CONN_EVENTS] = {
	[CONN_START] = "an operation, or what else reaches out, wants a connection",
	[CONN_DUE] = "the attempt is to go on, if it has paused",
	[CONN_OVERDUE] = "the attempt has come to nothing by its deadline",
	[CONN_FORSAKEN] = "whom a third endpoint has named has not answered in its time",
	[CONN_EXPEL] = "the peer is to be disconnected",
	[CONN_CLOSE] = "we close the connection in good order",
	[CONN_SOCKET] = "the bootstrap socket has something to tell",
	[CONN_PACKET] = "a packet has come of a peer without a link",
	[CONN_LOST] = "the link has ended",
	[CONN_ACCEPTED] = "answer: the peer accepts us",
	[CONN_CROSSED] = "answer: the peer's own attempt wins",
	[CONN_REJECTED] = "answer: the peer rejects us",
	[CONN_CHALLENGED] = "answer: the peer wants our key proven",
	[CONN_GARBLED] = "answer: it makes no sense",
	[CONN_OLD] = "newcomer: of the run that we know, older than its link",
	[CONN_SAME_RUN] = "newcomer: of the run that we know",
	[CONN_BELIEVED] = "newcomer: it proves its address, or our connect() finds nobody there",
	[CONN_GREATER] = "newcomer: of a greater run number than ours",
	[CONN_SAME_PROCESS] = "newcomer: of a lesser one, in the process that we connect to",
	[CONN_LESSER] = "newcomer: of a lesser one",
	[CONN_REACHES] = "connect() is begun",
	[CONN_GREETS] = "our hello is sent",
	[CONN_PAUSES] = "the peer's backlog is full, no descriptor is free, or it wants us later",
	[CONN_HIDDEN] = "the peer is behind a firewall",
	[CONN_RESTARTS] = "the attempt begins anew",
	[CONN_TAKES] = "a newcomer is taken",
	[CONN_SECURES] = "the link is made, and is to be secured first",
	[CONN_LINKS] = "the link takes packets",
	[CONN_AGREES] = "we agree to close the idle connection",
	[CONN_RESUMES] = "the peer does not close it after all",
	[CONN_ENDS] = "the connection, or the attempt, is over",
};

const struct conn_row conn_rows[CONN_EVENTS][PEER_STATES] = {
	[CONN_START] = {[PEER_IDLE] = {DO_ATTEMPT, STAY}},
	[CONN_DUE] = {[PEER_RETRYING] = {DO_AGAIN, STAY},
		      [PEER_AWAITED] = {DO_ASK, STAY},
		      [PEER_CONNECTING... PEER_CROSSED] = {DO_NOTHING, STAY}},
	/* Our hello has arrived, so the peer is alive: no deadline. */
	[CONN_OVERDUE] = {[PEER_RETRYING... PEER_CONNECTING] = {DO_GIVE_UP, STAY},
			  [PEER_HANDSHAKE] = {DO_NOTHING, STAY},
			  [PEER_CROSSED] = {DO_ANEW, STAY}},
	[CONN_FORSAKEN] = {[ATTEMPT] = {DO_GIVE_UP, STAY}},
	[CONN_EXPEL] =
		{[PEER_IDLE... PEER_CROSSED] = {DO_NOTHING, STAY}, [LINKED] = {DO_EXPEL, STAY}},
	[CONN_CLOSE] = {[PEER_IDLE... PEER_SECURING] = {DO_NOTHING, STAY},
			[PEER_CONNECTED... PEER_RETIRING] = {DO_PART, STAY}},

	[CONN_SOCKET] = {[PEER_CONNECTING] = {DO_GREET, STAY},
			 [PEER_HANDSHAKE] = {DO_HEAR, STAY},
			 [PEER_CONNECTED] = {DO_LISTEN, STAY}},
	[CONN_PACKET] = {[PEER_IDLE... PEER_CONNECTING] = {DO_NOTHING, STAY},
			 [PEER_HANDSHAKE] = {DO_HEAR, STAY},
			 [PEER_CROSSED... PEER_RETIRING] = {DO_NOTHING, STAY}},
	[CONN_LOST] =
		{[PEER_IDLE... PEER_CROSSED] = {DO_NOTHING, STAY}, [LINKED] = {DO_LOSE, STAY}},

	[CONN_ACCEPTED] = {[PEER_HANDSHAKE] = {DO_LINK, STAY}},
	[CONN_CROSSED] = {[PEER_HANDSHAKE] = {DO_YIELD, PEER_CROSSED}},
	[CONN_REJECTED] = {[PEER_HANDSHAKE] = {DO_REJECTED, STAY}},
	[CONN_CHALLENGED] = {[PEER_HANDSHAKE] = {DO_PROVE, STAY}},
	[CONN_GARBLED] = {[PEER_HANDSHAKE] = {DO_BREAK, STAY}},

	/*
	 * A link that stands is not given up for a hello. Nor is an attempt of ours whose hello is with the peer: its answer
	 * says if the peer's attempt won, and which one that is.
	 */
	[CONN_OLD] = {[PEER_IDLE... PEER_AWAITED] = {DO_TAKE, STAY},
		      [PEER_CONNECTING... PEER_HANDSHAKE] = {DO_HOLD, STAY},
		      [PEER_CROSSED] = {DO_TAKE, STAY},
		      [LINKED] = {DO_DISMISS, STAY}},
	[CONN_SAME_RUN] = {[PEER_IDLE... PEER_AWAITED] = {DO_TAKE, STAY},
			   [PEER_CONNECTING... PEER_HANDSHAKE] = {DO_HOLD, STAY},
			   [PEER_CROSSED] = {DO_TAKE, STAY},
			   [LINKED] = {DO_HOLD, STAY}},
	[CONN_BELIEVED] = {[PEER_IDLE... PEER_CONNECTING] = {DO_TAKE, STAY},
			   [PEER_HANDSHAKE... PEER_RETIRING] = {DO_HOLD, STAY}},
	[CONN_GREATER] = {[PEER_IDLE... PEER_AWAITED] = {DO_TAKE, STAY},
			  [PEER_CONNECTING] = {DO_HOLD, STAY},
			  [PEER_HANDSHAKE] = {DO_CROSS, STAY},
			  [PEER_CROSSED... PEER_RETIRING] = {DO_HOLD, STAY}},
	[CONN_SAME_PROCESS] = {[PEER_IDLE... PEER_AWAITED] = {DO_TAKE, STAY},
			       [PEER_CONNECTING] = {DO_HOLD, STAY},
			       [PEER_HANDSHAKE] = {DO_TAKE, STAY},
			       [PEER_CROSSED... PEER_RETIRING] = {DO_HOLD, STAY}},
	[CONN_LESSER] = {[PEER_IDLE... PEER_AWAITED] = {DO_TAKE, STAY},
			 [PEER_CONNECTING... PEER_RETIRING] = {DO_HOLD, STAY}},

	[CONN_REACHES] = {[PEER_IDLE... PEER_RETRYING] = {DO_NOTHING, PEER_CONNECTING}},
	[CONN_GREETS] = {[PEER_IDLE... PEER_RETRYING] = {DO_NOTHING, PEER_HANDSHAKE},
			 [PEER_CONNECTING] = {DO_NOTHING, PEER_HANDSHAKE}},
	[CONN_PAUSES] = {[PEER_IDLE... PEER_RETRYING] = {DO_WAIT, PEER_RETRYING},
			 [PEER_CONNECTING... PEER_HANDSHAKE] = {DO_WAIT, PEER_RETRYING}},
	[CONN_HIDDEN] = {[PEER_IDLE... PEER_RETRYING] = {DO_WAIT, PEER_AWAITED}},
	[CONN_RESTARTS] = {[PEER_CONNECTING... PEER_CROSSED] = {DO_AGAIN, PEER_RETRYING}},
	[CONN_TAKES] = {[PEER_IDLE] = {DO_NOTHING, STAY}, [ATTEMPT] = {DO_ABANDON, PEER_IDLE}},
	[CONN_SECURES] = {[PEER_IDLE] = {DO_NOTHING, PEER_SECURING},
			  [PEER_HANDSHAKE] = {DO_NOTHING, PEER_SECURING}},
	[CONN_LINKS] = {[PEER_IDLE] = {DO_OPEN, PEER_CONNECTED},
			[PEER_HANDSHAKE] = {DO_OPEN, PEER_CONNECTED},
			[PEER_SECURING] = {DO_OPEN, PEER_CONNECTED}},
	[CONN_AGREES] = {[PEER_CONNECTED] = {DO_NOTHING, PEER_RETIRING}},
	[CONN_RESUMES] = {[PEER_RETIRING] = {DO_NOTHING, PEER_CONNECTED}},
	[CONN_ENDS] = {[ANY] = {DO_NOTHING, PEER_IDLE}},
};
