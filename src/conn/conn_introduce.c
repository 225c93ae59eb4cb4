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
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/once.h"
#include "conn/hello.h"
#include "conn/advertise.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"

#define ASK_MS     1000 /* between two questions about one peer */
#define SOON_MS    10   /* until the next one while the relay is being connected to */
#define ASKED_MOST 8    /* endpoints that one question goes to, beside the relay */
#define HEARD_MS   1000
#define ASKS_MOST  1024 /* questions of one peer that count, within HEARD_MS */
#define TELLS_MOST 64   /* introductions by one peer that are followed, within HEARD_MS */
/* Questions of ours within HEARD_MS. Twice as many come within HEARD_MS of the one that counts them, at most. */
#define PACE_MOST       (ASKS_MOST / 2)
#define UNANSWERED_MOST 16    /* attempts at a time to introduced endpoints that no entry names */
#define ANSWER_MS       10000 /* for an introduced endpoint that no entry names to answer, at most */
#define PATIENCE_MS     1500 /* likewise, while others want its place; a SYN goes again after 1 s */

/* Does the peer understand introductions, and can one be sent to it? */
static bool conn_introduce_listens(const struct contact *peer)
{
	return peer->state == PEER_CONNECTED && peer->hello_flags & WIRE_HELLO_INTRODUCES;
}

/* False: the link does not take the packet now. */
static bool conn_introduce_say(struct contact *to, enum wire_introduce word, const struct addr *of)
{
	struct wire_address w = addresses_write(of);

	return !to->real->ops->send(to->real, &w, sizeof(w), 0, WIRE_HEAD(WIRE_INTRODUCE, 0, 0, 0),
				    word);
}

/* ---- Who waits ---- */

/* Others than the relay, who have proven the same key. */
static bool may_be_asked(const struct contact *third, const struct contact *awaited,
			 const struct contact *relay)
{
	return third != relay && conn_introduce_listens(third) &&
	       third->key_slot == awaited->key_slot;
}

/* Asks some of the endpoints that we are connected with, others each time. Returns how many. */
static unsigned int conn_introduce_ask_some(struct contact *awaited, const struct contact *relay,
					    uint64_t times)
{
	struct list *peers = &awaited->station->peers_list;
	uint64_t count = 0, at;
	unsigned int asked = 0;

	LIST_EACH (node, peers)
		count += may_be_asked(LIST_ENTRY(node, struct contact, in_station), awaited, relay);
	if (!count)
		return 0;
	at = count - times * ASKED_MOST % count;
	LIST_EACH_OF (struct contact, third, peers, in_station) {
		if (may_be_asked(third, awaited, relay) && at++ % count < ASKED_MOST)
			asked += conn_introduce_say(third, WIRE_INTRODUCE_ASK, &awaited->key);
	}
	return asked;
}

/* Can one more peer be asked about now? Who is asked drops what is more than ASKS_MOST. */
static bool in_pace(struct station *station, uint64_t now)
{
	if (now - station->introduce.asked_ms >= HEARD_MS) {
		station->introduce.asked_ms = now;
		station->introduce.asked = 0;
	}
	return station->introduce.asked++ < PACE_MOST;
}

/* The others that are awaited get their questions before the next one about this peer. */
static void go_last(struct contact *awaited)
{
	list_remove(&awaited->in_station);
	list_push(&awaited->station->peers_list, &awaited->in_station);
}

static void introduce_ask(struct contact *awaited)
{
	struct station *station = awaited->station;
	uint64_t now = clock_coarse_ms(), times = (now - awaited->attempt_ms) / ASK_MS;
	struct contact *relay = station->relay.peer;
	unsigned int asked = 0;

	if (relay && !times && !conn_introduce_listens(relay)) {
		awaited->attempt->again_ms = now + SOON_MS;
		return;
	}
	if (!in_pace(station, now)) {
		awaited->attempt->again_ms = station->introduce.asked_ms + HEARD_MS;
		return;
	}
	awaited->attempt->again_ms = now + ASK_MS;
	go_last(awaited);
	if (relay && conn_introduce_listens(relay))
		asked = conn_introduce_say(relay, WIRE_INTRODUCE_ASK, &awaited->key);
	asked += conn_introduce_ask_some(awaited, relay, times);
	LOG_INFO(LOG_EP_CTRL, "%u endpoints are asked to tell %s to connect", asked,
		 contact_text(awaited));
}

/* ---- The third endpoint, and the one behind the firewall ---- */

static void conn_introduce_drop(struct contact *from, const struct addr *of, const char *why)
{
	char text[ADDR_STR_MAX + 32];

	addr_print(of, text, sizeof(text));
	LOG_PEER(LOG_EP_CTRL, "%s: introduction of %s dropped: %s", contact_text(from), text, why);
}

/* Counts an introduction that leads to something. True: it is one too many, and is dropped. */
static bool conn_introduce_too_many(struct contact *from, const struct addr *of,
				    enum wire_introduce word)
{
	uint64_t now = clock_coarse_ms();

	if (now - from->heard_ms >= HEARD_MS) {
		from->heard_ms = now;
		from->asks = from->tells = 0;
	}
	if (word == WIRE_INTRODUCE_ASK ? from->asks++ < ASKS_MOST : from->tells++ < TELLS_MOST)
		return false;
	conn_introduce_drop(from, of, "it sends too many within a second");
	return true;
}

static void pass_on(struct contact *asker, const struct addr *hidden)
{
	struct contact *to = contact_find(asker->station, hidden, asker->key_slot);

	if (!to || to == asker || !conn_introduce_listens(to) || asker->key.kind == ADDR_STR ||
	    conn_introduce_too_many(asker, hidden, WIRE_INTRODUCE_ASK))
		return;
	if (conn_introduce_say(to, WIRE_INTRODUCE_TELL, &asker->key))
		LOG_INFO(LOG_EP_CTRL, "%s is told that another one waits for it", contact_text(to));
}

/*
 * Is there a place for one more attempt? Those to entries of the vector are limited by these. The oldest attempt is given up
 * for it once an endpoint that is there would have answered: *goes, else NULL. Else a few names of nobody would keep all
 * others out.
 */
static bool has_place(struct station *station, struct contact **goes)
{
	uint64_t now = clock_coarse_ms();
	struct contact *oldest = NULL;
	unsigned int n = 0;

	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		if (!attempt_introduced(peer) || attempt_forsaken(peer, now))
			continue;
		n++;
		if (!oldest || peer->attempt->until < oldest->attempt->until)
			oldest = peer;
	}
	*goes = n < UNANSWERED_MOST ? NULL : oldest;
	return !*goes || now + ANSWER_MS >= oldest->attempt->until + PATIENCE_MS;
}

/* Why do we not connect to the idle peer that we were told of? NULL: we do, and another attempt *goes, if that is not NULL. */
static const char *conn_introduce_refusal(struct contact *peer, struct contact **goes)
{
	struct station *station = peer->station;

	if (contact_addr(peer) != FI_ADDR_NOTAVAIL)
		return conn_reach_firewalled(peer) ? "it is behind a firewall, too" : NULL;
	if (station->auth.closed)
		return "the address vector does not hold it (FI_WEFT_CLOSED)";
	if (!conn_has_place(peer))
		return "too many peers are in no address vector";
	return has_place(station, goes) ? NULL : "too many others have not answered yet";
}

/* Is the address one by which this host is reached, also from outside? */
static bool is_here(const struct addr *a)
{
	return addr_is_local(a) || advertise_is_own(a);
}

/*
 * Returns the note that we have followed this introduction by this peer within the second. It is not followed again then: else
 * one who asks a third endpoint could, by a name that leads nowhere, use up what that one may say for all others. Two may
 * share a note; the second one comes again.
 */
static bool *conn_introduce_followed(const struct contact *from, const struct addr *waiting)
{
	struct station *station = from->station;
	uint64_t now = clock_coarse_ms(), ip[2];

	if (now - station->introduce.followed_ms >= HEARD_MS) {
		station->introduce.followed_ms = now;
		memset(station->introduce.followed, 0, sizeof(station->introduce.followed));
	}
	memcpy(ip, waiting->ip, sizeof(ip));
	ip[1] ^= (uint64_t)(uintptr_t)from ^ waiting->port;
	ip[0] ^= hash_mix(ip[1] ^ station->introduce.followed_ms);
	return &station->introduce.followed[hash_mix(ip[0]) % STATION_INTRODUCTIONS];
}

static void conn_introduce_follow(struct contact *from, const struct addr *waiting)
{
	struct station *station = from->station;
	struct contact *peer, *goes = NULL;
	const char *why;
	bool *before;

	if (!station->reaches_out || is_here(waiting)) {
		conn_introduce_drop(from, waiting,
				    station->reaches_out ? "that is this host"
							 : "we are behind no firewall");
		return;
	}
	peer = contact_by_name(station, waiting, from->key_slot);
	if (!peer || peer->state != PEER_IDLE)
		return;
	before = conn_introduce_followed(from, waiting);
	why = *before ? "it was named a moment ago" : conn_introduce_refusal(peer, &goes);
	if (why) {
		conn_introduce_drop(from, waiting, why);
	} else if (!conn_introduce_too_many(from, waiting, WIRE_INTRODUCE_TELL)) {
		*before = true;
		if (goes)
			goes->attempt->until =
				clock_coarse_ms(); /* the next poll of the sockets ends it */
		conn_start_in_advance(peer, clock_coarse_ms() + ANSWER_MS);
	}
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
	return addresses_read(&w, a);
}

static void introduce_hear(struct contact *from, const struct packet *p)
{
	struct station *station = from->station;
	struct addr of;

	if (station->closing)
		return;
	if (station->cm || p->tag < WIRE_INTRODUCE_ASK || p->tag > WIRE_INTRODUCE_TELL ||
	    !read_address(p, &of)) {
		LOG_PEER(LOG_EP_CTRL,
			 "%s: introduction of kind %llu with %zu bytes (%zu are right) and "
			 "no good address, or to a connected endpoint, dropped",
			 contact_text(from), (unsigned long long)p->tag, p->len,
			 sizeof(struct wire_address));
	} else if (p->tag == WIRE_INTRODUCE_ASK) {
		pass_on(from, &of);
	} else {
		conn_introduce_follow(from, &of);
	}
}

const struct conn_option conn_introduce_option = {
	.packet = WIRE_INTRODUCE,
	.flag = WIRE_HELLO_INTRODUCES,
	.hear = introduce_hear,
	.await = introduce_ask,
};
