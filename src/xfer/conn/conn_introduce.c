/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Introductions. Who waits for a peer behind a firewall, which alone can connect, asks endpoints that it is connected with
 * to tell that peer. FI_WEFT_RELAY names one that both sides connect to for this: conn_relay.c.
 *
 *   waits (FI_FIREWALL_ADDR)        third endpoint                  behind the firewall (FI_OPT_FIREWALL_ADDR)
 *   ASK: tell the one of this  ->   is connected with it: TELL ->   connects to this address
 *        address                    else: nothing
 *
 * ASK carries the address of the one that is to connect. TELL carries the address by which the third endpoint knows the
 * asker, from the asker's hello; nothing goes further than one hop. Nothing is answered, and what a link does not
 * take at once is dropped, since the question is repeated for as long as an operation waits.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/once.h"
#include "core/av.h"
#include "xfer/conn/advertise.h"
#include "xfer/conn/conn_own.h"

#define ASK_MS          1000 /* between two questions about one peer */
#define SOON_MS         10   /* until the next one while the relay is being connected to */
#define ASKED_MOST      8    /* endpoints that one question goes to, beside the relay */
#define HEARD_MS        1000
#define HEARD_MOST      64    /* introductions from one peer that count, within HEARD_MS */
#define UNANSWERED_MOST 16    /* attempts at a time to introduced endpoints that no entry names */
#define ANSWER_MS       10000 /* for an introduced endpoint that no entry names to answer, at most */

/* Does the peer understand introductions, and can one be sent to it? */
static bool listens(const struct peer *peer)
{
	return peer->state == PEER_CONNECTED && peer->conn.introduces;
}

/* False: the link does not take the packet now. */
static bool say(struct peer *to, enum wire_introduce word, const struct addr *of)
{
	struct wire_address w = {.port = of->port, .in6 = of->kind == ADDR_IN6};

	memcpy(w.ip, of->ip, sizeof(w.ip));
	return !to->real->ops->send(to->real, &w, sizeof(w), 0, WIRE_HEAD(WIRE_INTRODUCE, 0, 0, 0),
				    word);
}

/* ---- Who waits ---- */

/* Others than the relay, who have proven the same key. */
static bool may_be_asked(const struct peer *third, const struct peer *awaited,
			 const struct peer *relay)
{
	return third != relay && listens(third) && third->key_slot == awaited->key_slot;
}

/* Asks some of the endpoints that we are connected with, others each time. Returns how many. */
static unsigned int ask_some(struct peer *awaited, const struct peer *relay, uint64_t times)
{
	struct list *peers = &awaited->worker->peers_list;
	uint64_t count = 0, at = 0;
	unsigned int asked = 0;

	LIST_EACH (node, peers)
		count += may_be_asked(LIST_ENTRY(node, struct peer, in_worker), awaited, relay);
	if (count)
		at = count - times * ASKED_MOST % count;
	LIST_EACH (node, peers) {
		struct peer *third = LIST_ENTRY(node, struct peer, in_worker);

		if (may_be_asked(third, awaited, relay) && at++ % count < ASKED_MOST)
			asked += say(third, WIRE_INTRODUCE_ASK, &awaited->key);
	}
	return asked;
}

void conn_introduce_ask(struct peer *awaited)
{
	struct worker *worker = awaited->worker;
	uint64_t now = clock_coarse_ms(), times = (now - awaited->conn.attempt_ms) / ASK_MS;
	struct peer *relay = conn_relay(worker);
	unsigned int asked = 0;

	worker->relay.wanted = true;
	if (relay && !times && !listens(relay)) {
		awaited->conn.again_ms = now + SOON_MS;
		return;
	}
	awaited->conn.again_ms = now + ASK_MS;
	if (relay && listens(relay))
		asked = say(relay, WIRE_INTRODUCE_ASK, &awaited->key);
	asked += ask_some(awaited, relay, times);
	LOG_INFO(LOG_EP_CTRL, "%u endpoints are asked to tell %s to connect", asked,
		 peer_text(awaited));
}

/* ---- The third endpoint, and the one behind the firewall ---- */

static void drop(struct peer *from, const struct addr *of, const char *why)
{
	char text[ADDR_STR_MAX + 32];

	if (!log_due(&from->worker->introduce.logged))
		return;
	addr_print(of, text, sizeof(text));
	LOG_WARN(LOG_EP_CTRL, "%s: introduction of %s dropped: %s", peer_text(from), text, why);
}

/* Counts an introduction that leads to something. True: it is one too many, and is dropped. */
static bool too_many(struct peer *from, const struct addr *of)
{
	uint64_t now = clock_coarse_ms();

	if (now - from->conn.heard_ms >= HEARD_MS) {
		from->conn.heard_ms = now;
		from->conn.heard = 0;
	}
	if (++from->conn.heard <= HEARD_MOST)
		return false;
	drop(from, of, "it sends too many within a second");
	return true;
}

static void pass_on(struct peer *asker, const struct addr *hidden)
{
	struct peer *to = peer_find(asker->worker, hidden, asker->key_slot);

	if (!to || to == asker || !listens(to) || asker->key.kind == ADDR_STR ||
	    too_many(asker, hidden))
		return;
	if (say(to, WIRE_INTRODUCE_TELL, &asker->key))
		LOG_INFO(LOG_EP_CTRL, "%s is told that another one waits for it", peer_text(to));
}

/* Do we try to connect to an introduced endpoint that no entry names? */
static bool is_unanswered(const struct peer *peer)
{
	return peer_attempts(peer) && peer->conn.until && peer->addr == FI_ADDR_NOTAVAIL;
}

bool conn_introduce_overdue(const struct peer *peer, uint64_t now)
{
	return is_unanswered(peer) && now >= peer->conn.until;
}

/* Counts attempts to introduced endpoints. Those to entries of the vector are limited by these. */
static unsigned int count_unanswered(const struct worker *worker)
{
	unsigned int n = 0;

	LIST_EACH (node, &worker->peers_list)
		n += is_unanswered(LIST_ENTRY(node, struct peer, in_worker));
	return n;
}

/* Why do we not connect to the idle peer that we were told of? NULL: we do. */
static const char *refusal(struct peer *peer)
{
	const struct worker *worker = peer->worker;

	if (peer_addr(peer) != FI_ADDR_NOTAVAIL)
		return conn_reach_firewalled(peer) ? "it is behind a firewall, too" : NULL;
	if (worker->auth.closed)
		return "the address vector does not hold it (FI_WEFT_CLOSED)";
	if (count_unanswered(worker) >= UNANSWERED_MOST)
		return "too many others have not answered yet";
	return conn_has_place(peer) ? NULL : "too many peers are in no address vector";
}

/* Is the address one by which this host is reached, also from outside? */
static bool is_here(const struct addr *a)
{
	return addr_is_local(a) || advertise_is_own(a);
}

static void follow(struct peer *from, const struct addr *waiting)
{
	struct worker *worker = from->worker;
	const char *why;
	struct peer *peer;

	if (!worker->reaches_out || is_here(waiting)) {
		drop(from, waiting,
		     worker->reaches_out ? "that is this host" : "we are behind no firewall");
		return;
	}
	peer = peer_by_name(worker, waiting, from->key_slot);
	if (!peer || peer->state != PEER_IDLE)
		return;
	why = refusal(peer);
	if (why)
		drop(from, waiting, why);
	else if (!too_many(from, waiting))
		conn_start_early(peer, clock_coarse_ms() + ANSWER_MS);
	if (peer->state == PEER_IDLE)
		conn_forget(peer);
}

/* Reads the payload once, since its sender may still write to it. False: there is no address of an endpoint in it. */
static bool read_address(const struct packet *p, struct addr *a)
{
	struct wire_address w;

	if (p->len != sizeof(w))
		return false;
	once_copy(&w, p->payload, sizeof(w));
	*a = (struct addr){.kind = w.in6 ? ADDR_IN6 : ADDR_IN, .port = w.port};
	memcpy(a->ip, w.ip, w.in6 ? sizeof(w.ip) : 4);
	*a = addr_unmapped(a);
	return w.in6 <= 1 && w.port;
}

void conn_introduce_hear(struct peer *from, const struct packet *p)
{
	struct worker *worker = from->worker;
	struct addr of;

	if (worker->closing)
		return;
	if (worker->cm || p->tag < WIRE_INTRODUCE_ASK || p->tag > WIRE_INTRODUCE_TELL ||
	    !read_address(p, &of)) {
		if (log_due(&worker->introduce.logged))
			LOG_WARN(LOG_EP_CTRL,
				 "%s: introduction of kind %llu with %zu bytes (%zu are right) and "
				 "no good address, or to a connected endpoint, dropped",
				 peer_text(from), (unsigned long long)p->tag, p->len,
				 sizeof(struct wire_address));
	} else if (p->tag == WIRE_INTRODUCE_ASK) {
		pass_on(from, &of);
	} else {
		follow(from, &of);
	}
}
