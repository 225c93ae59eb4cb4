/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that make room. When descriptors are short, those that were not used for longest are closed, if both ends
 * agree that nothing is under way. The next operation connects again, so nobody notices but by the time that takes.
 *
 *   asker                                 peer
 *   ASK: may we close?             ->     idle: AGREE, PEER_RETIRING: sends no operation; else no answer
 *   still idle: DONE, closes       ->     closes; operations posted meanwhile connect again
 *   else: STAY                     ->     PEER_CONNECTED again
 *
 * The packets of a link come in order: with AGREE the asker has all that the peer has sent, with DONE the peer has all of
 * the asker's. The asker may send until it says DONE. If both ask, both may agree, and both say DONE. Each AGREE gets one
 * answer, and while PEER_RETIRING no second AGREE goes out, so no answer is taken for another one's.
 */
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

#define ASKED_MOST 16 /* peers at a time */
#define PART       8  /* and one more than this part of all */
#define PAUSE_MS   10 /* until others are asked */
#define QUIET_MS   10 /* a link that was used later is not idle */

/*
 * Could the connection be closed if it were idle? Peers that the address vector does not hold might find their place
 * taken when they come again, and behind a firewall only one side can connect. Groups watch their members' connections.
 */
static bool may_retire(struct contact *peer)
{
	const struct station *station = peer->station;

	return (peer->state == PEER_CONNECTED || peer->state == PEER_RETIRING) &&
	       peer->kind == LINK_SOCKET && !contact_expelled(peer) && !station->cm &&
	       !station->up->watched(station) && !station->reaches_out &&
	       contact_addr(peer) != FI_ADDR_NOTAVAIL && !conn_reach_firewalled(peer);
}

static bool conn_retire_is_idle(struct contact *peer)
{
	const struct conn_upcalls *up = peer->station->up;

	return may_retire(peer) && up->quiet(peer) && !up->awaited(peer);
}

/* False: the link does not take the packet now. */
static bool conn_retire_say(struct contact *peer, enum wire_retire word)
{
	return !peer->real->ops->send(peer->real, NULL, 0, 0, WIRE_HEAD(WIRE_RETIRE, 0, 0, 0),
				      word);
}

static void conn_retire_now(struct contact *peer)
{
	LOG_INFO(LOG_EP_CTRL, "the idle connection with %s is closed: descriptors are short",
		 contact_text(peer));
	peer->end = END_RETIRED;
	contact_not_taken(peer, FI_ESHUTDOWN);
	if (peer->state == PEER_IDLE)
		conn_forget(peer);
}

/* Has the peer all that was sent? A link that closes waits for that a short time only. */
static bool has_all(struct contact *peer)
{
	const struct transport *t = peer->station->via[LINK_SOCKET].transport;

	peer->real->zcopy->cork(peer->real, false);
	return t->arrived(peer->real);
}

/* One question in a ms is looked at: that takes a walk over the receives. */
static void conn_retire_hear_ask(struct contact *peer)
{
	uint64_t now = clock_coarse_ms();

	if (now == peer->station->retire.heard)
		return;
	peer->station->retire.heard = now;
	if (!conn_retire_is_idle(peer) || !conn_retire_say(peer, WIRE_RETIRE_AGREE))
		return;
	conn_event(peer, CONN_AGREES, NULL);
}

/* An asker that has begun something since it asked may not close: it would have said STAY. */
static void hear_done(struct contact *peer)
{
	if (!peer->station->up->receiving(peer) && !contact_expelled(peer))
		conn_retire_now(peer);
	else
		conn_fail(peer, FI_EPROTO, NULL);
}

static void retire_hear(struct contact *peer, const struct packet *p)
{
	bool agreed = peer->state == PEER_RETIRING, asked = peer->asked;

	switch (p->tag) {
	case WIRE_RETIRE_ASK:
		if (!agreed)
			conn_retire_hear_ask(peer);
		break;
	case WIRE_RETIRE_AGREE:
		peer->asked = false;
		if (asked && conn_retire_is_idle(peer) && has_all(peer) &&
		    conn_retire_say(peer, WIRE_RETIRE_DONE))
			conn_retire_now(peer);
		else
			peer->station->up->say(peer, WIRE_HEAD(WIRE_RETIRE, 0, 0, 0),
					       WIRE_RETIRE_STAY);
		break;
	case WIRE_RETIRE_DONE:
		if (agreed)
			hear_done(peer);
		break;
	case WIRE_RETIRE_STAY:
		if (agreed) {
			conn_event(peer, CONN_RESUMES, NULL);
			peer->station->up->stays(peer);
		}
		break;
	default:
		LOG_PEER(LOG_EP_CTRL, "%s: unknown word %llu about its connection dropped",
			 contact_text(peer), (unsigned long long)p->tag);
	}
}

/* ---- Which ones ---- */

struct candidate {
	struct contact *peer;
	uint64_t quiet_ms;
};

/* Enters a peer among those that were not used for longest, the first of all first. */
static void conn_retire_consider(struct candidate oldest[ASKED_MOST], struct contact *peer)
{
	const struct transport *t = peer->station->via[LINK_SOCKET].transport;
	struct candidate c = {peer, connect_quiet_ms(t->sock(peer->real))};

	if (c.quiet_ms < QUIET_MS)
		return;
	for (unsigned int i = 0; i < ASKED_MOST && c.peer; i++) {
		struct candidate next = oldest[i];

		if (next.peer && next.quiet_ms >= c.quiet_ms)
			continue;
		oldest[i] = c;
		c = next;
	}
}

/* May a connection that could make room come of what is under way with the peer? */
static bool is_in_the_making(const struct contact *peer)
{
	return peer->state == PEER_SECURING || (contact_attempts(peer) && peer->sock >= 0);
}

/* Asks some peers. False: there is no connection that could ever make room, and none is in the making. */
static bool conn_retire_ask_some(struct station *station)
{
	struct candidate oldest[ASKED_MOST] = {{.peer = NULL}};
	unsigned int count = 0;

	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		bool connected = may_retire(peer);

		count += connected || is_in_the_making(peer);
		if (connected && peer->state == PEER_CONNECTED && station->up->quiet(peer))
			conn_retire_consider(oldest, peer);
	}
	for (unsigned int i = 0; i < ASKED_MOST && i <= count / PART && oldest[i].peer; i++)
		oldest[i].peer->asked = !station->up->awaited(oldest[i].peer) &&
					conn_retire_say(oldest[i].peer, WIRE_RETIRE_ASK);
	return count;
}

static bool retire_some(struct station *station)
{
	uint64_t now = clock_coarse_ms();

	if (now >= station->retire.next) {
		station->retire.next = now + PAUSE_MS;
		station->retire.possible = conn_retire_ask_some(station);
	}
	return station->retire.possible;
}

const struct conn_option conn_retire_option = {
	.packet = WIRE_RETIRE,
	.hear = retire_hear,
	.make_room = retire_some,
};
