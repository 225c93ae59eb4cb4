/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More sockets for a link of several rails (docs/NETWORKS.md). The initiator of the link connects each pair of interfaces
 * in one network, and asks by HELLO_JOIN that the socket becomes a rail of the link; the target answers HELLO_JOINED. Each
 * shows the other a half of the token that came with the link's HELLO_ACCEPT. Endpoints with a key prove it before, on each
 * socket anew, as on the first one: auth.h.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hmac.h"
#include "base/log.h"
#include "conn/conn_options.h"
#include "conn/connect.h"
#include "conn/rails.h"

struct rail_attempt;

/* What a side knows of its link to a peer that has rails, or may have. */
struct peer_rails {
	bool agreed; /* the link has rails; else our hello has offered that */
	uint8_t token[WIRE_PROOF];
	uint32_t number; /* the initiator: the target's number of it */
	uint32_t count;  /* of pairs */
	struct rails_pair pair[WIRE_RAILS_MAX];
	struct rail_attempt
		*attempt[WIRE_RAILS_MAX]; /* under way, or ended a moment ago; or NULL */
};

enum stage {
	CONNECTING,
	PROVING, /* HELLO_GREETING is sent */
	ASKED,   /* HELLO_JOIN is sent */
};

/* A socket of ours that may become a rail. Ends with its link at the latest; owned by the station's pool. */
struct rail_attempt {
	uint32_t peer; /* pool_id */
	uint32_t rail;
	int sock;
	enum stage stage;
	struct auth *auth; /* the proof of a key; NULL: none */
	uint32_t ms;       /* each stage has so long */
	uint64_t deadline; /* of this one */
};

static void conn_rails_end(struct contact *peer, struct rail_attempt *a)
{
	if (a->sock >= 0)
		connect_close(a->sock);
	auth_end(&a->auth);
	peer->rails->attempt[a->rail] = NULL;
	pool_put(&peer->station->rails->pool, a);
}

static void rails_close(struct station *station)
{
	if (!station->rails)
		return;
	pool_fini(&station->rails->pool);
	free(station->rails);
	station->rails = NULL;
}

/* Finds the station's interfaces when they are asked for first. NULL: no memory. */
static struct rails *rails_of(struct station *station)
{
	if (station->rails)
		return station->rails;
	station->rails = calloc(1, sizeof(*station->rails));
	if (!station->rails)
		return NULL;
	pool_init(&station->rails->pool, sizeof(struct rail_attempt));
	rails_find(station->rails, &station->name);
	return station->rails;
}

/* May the link to the peer have several rails? */
static bool conn_rails_usable(struct contact *peer)
{
	struct station *station = peer->station;
	const struct rails *rails;

	if (!rails_asked() || station->cm || contact_inside(peer) || !station->opener.rails ||
	    addr_is_local(&peer->name))
		return false;
	rails = rails_of(station);
	return rails && rails->count > 1;
}

/* Those of a link that has rails, or NULL. */
static struct peer_rails *conn_rails_agreed(const struct contact *peer)
{
	return peer->rails && peer->rails->agreed ? peer->rails : NULL;
}

static struct peer_rails *conn_rails_add(struct contact *peer)
{
	peer->rails = calloc(1, sizeof(*peer->rails));
	return peer->rails;
}

static void rails_forget(struct contact *peer)
{
	for (uint32_t i = 0; peer->rails && i < WIRE_RAILS_MAX; i++)
		if (peer->rails->attempt[i])
			conn_rails_end(peer, peer->rails->attempt[i]);
	free(peer->rails);
	peer->rails = NULL;
}

/* Our hello tells our interfaces if the link may have several rails; our answer, if it has. */
static void rails_say(struct contact *peer, struct hello_fields *fields, struct wire_rails *list)
{
	const struct peer_rails *link = conn_rails_agreed(peer);

	if (fields->kind != HELLO_ACCEPT) {
		rails_forget(peer);
		if (!conn_rails_usable(peer) || !conn_rails_add(peer))
			return;
	} else if (link) {
		fields->token = link->token;
	} else {
		return;
	}
	*list = rails_list(peer->station->rails);
	fields->rails = list;
}

/* The peer has agreed: its link has rails, so ours must. 0 or -FI_EPROTO. */
static int conn_rails_confirm(struct contact *peer, const struct accepted *conn,
			      const struct wire_rails *theirs)
{
	struct peer_rails *link = peer->rails;

	if (!link) {
		LOG_PEER(LOG_EP_CTRL,
			 "%s makes a connection over %u interfaces, which it was not offered",
			 contact_text(peer), theirs->count);
		return -FI_EPROTO;
	}
	link->agreed = true;
	link->number = conn->hello.your_id;
	link->count = rails_match(peer->station->rails, theirs, conn->sock, link->pair);
	memcpy(link->token, conn->hello.nonce, sizeof(link->token));
	return 0;
}

/* The peer has offered rails: the link has some if interfaces match. */
static void conn_rails_agree(struct contact *peer, const struct accepted *conn,
			     const struct wire_rails *theirs)
{
	struct station *station = peer->station;
	struct peer_rails *link = conn_rails_usable(peer) ? conn_rails_add(peer) : NULL;

	if (!link)
		return;
	rails_listen(station->rails, &station->acceptor);
	link->count = rails_match(station->rails, theirs, conn->sock, link->pair);
	link->agreed = link->count &&
		       getrandom(link->token, sizeof(link->token), 0) == sizeof(link->token);
	if (!link->agreed)
		rails_forget(peer);
}

/* Decides by the peer's hello if the link has several rails, or one that is no bare socket. */
static int rails_link(struct contact *peer, const struct accepted *conn, struct link_peer *lp)
{
	struct wire_rails theirs;
	bool offered = hello_rails(&conn->hello, &theirs);
	int err = 0;

	if (offered && conn->hello.kind == HELLO_ACCEPT)
		err = conn_rails_confirm(peer, conn, &theirs);
	else
		rails_forget(peer);
	if (offered && conn->hello.kind != HELLO_ACCEPT)
		conn_rails_agree(peer, conn, &theirs);
	if (conn_rails_agreed(peer))
		lp->rails = peer->rails->count ? peer->rails->count : 1;
	return err;
}

static void rails_socket(struct station *station, uint32_t id);

/* Ends an attempt that is overdue, unless its answer has just come. Returns whether that is so. */
static bool conn_rails_overdue(struct contact *peer, struct rail_attempt *a, uint64_t now)
{
	uint32_t rail = a->rail;

	if (a->stage != CONNECTING)
		rails_socket(peer->station, pool_id(a));
	if (!peer->rails->attempt[rail] || now < a->deadline)
		return true;
	conn_rails_end(peer, a);
	return false;
}

/* Is an attempt for this rail under way, or was one a moment ago? */
static bool conn_rails_attempted(struct contact *peer, uint32_t rail, uint64_t now)
{
	struct rail_attempt *a = peer->rails->attempt[rail];

	return a && (now < a->deadline || conn_rails_overdue(peer, a, now));
}

static int conn_rails_watch(struct station *station, struct rail_attempt *a, int op,
			    uint32_t events)
{
	struct epoll_event ev = {.events = events,
				 .data.u64 = (uint64_t)STATION_RAIL << 32 | pool_id(a)};

	return epoll_ctl(station->driven.fd, op, a->sock, &ev);
}

static void log_failure(const struct rails_pair *pair, uint32_t rail, int err)
{
	char from[ADDR_STR_MAX + 32], to[ADDR_STR_MAX + 32];

	addr_print(&pair->from, from, sizeof(from));
	addr_print(&pair->to, to, sizeof(to));
	LOG_INFO(LOG_EP_CTRL, "rail %u cannot be made from %s to %s: %s", rail, from, to,
		 fi_strerror(err));
}

static void rail_wanted(struct opener *o, uint32_t src, uint32_t rail, uint32_t ms)
{
	struct station *station = station_opener(o);
	struct contact *peer = pool_find(&station->peer_pool, src);
	struct peer_rails *link = peer ? conn_rails_agreed(peer) : NULL;
	const struct rails_pair *pair;
	uint64_t now = clock_coarse_ms();
	struct rail_attempt *a;

	if (!link || rail >= link->count || conn_rails_attempted(peer, rail, now))
		return;
	a = pool_get(&station->rails->pool);
	if (!a)
		return;
	pair = &link->pair[rail];
	*a = (struct rail_attempt){.peer = src, .rail = rail, .ms = ms, .deadline = now + ms};
	link->attempt[rail] = a;
	a->sock = connect_network(&pair->to, pair->from.kind == ADDR_NONE ? NULL : &pair->from);
	if (a->sock >= 0 && !conn_rails_watch(station, a, EPOLL_CTL_ADD, EPOLLOUT))
		return;
	log_failure(pair, rail, a->sock < 0 ? -a->sock : FI_ENOMEM);
	if (a->sock >= 0)
		conn_rails_end(peer, a); /* else it stands for the time until the next try */
}

static bool rail_coming(struct opener *o, uint32_t src)
{
	const struct station *station = station_opener(o);
	const struct contact *peer = pool_find(&station->peer_pool, src);

	for (uint32_t i = 0; peer && peer->rails && i < WIRE_RAILS_MAX; i++) {
		const struct rail_attempt *a = peer->rails->attempt[i];

		if (a && a->stage == ASKED && a->sock >= 0)
			return true;
	}
	return false;
}

static void conn_rails_enter(struct rail_attempt *a, enum stage stage)
{
	a->stage = stage;
	a->deadline = clock_coarse_ms() + a->ms;
}

/* Sends HELLO_JOIN. 0 or a negative error. */
static int conn_rails_ask(const struct peer_rails *link, struct rail_attempt *a)
{
	const struct wire_rails which = {.number = a->rail};
	uint8_t half[WIRE_PROOF] = {0};
	const struct hello_fields fields = {.kind = HELLO_JOIN,
					    .id = link->number,
					    .rails = &which,
					    .token = half,
					    .auth = a->auth};

	memcpy(half, link->token, WIRE_TOKEN);
	conn_rails_enter(a, ASKED);
	return hello_send(NULL, a->sock, false, &fields);
}

/* connect() has ended. 0 or a negative error. */
static int conn_rails_connected(struct contact *peer, const struct peer_rails *link,
				struct rail_attempt *a)
{
	int err = connect_result(a->sock);

	if (err)
		return err;
	if (conn_rails_watch(peer->station, a, EPOLL_CTL_MOD, EPOLLIN))
		return -FI_ENOMEM;
	if (!peer->station->auth.keyed)
		return conn_rails_ask(link, a);
	conn_rails_enter(a, PROVING);
	return auth_greet(peer, a->sock, false, &a->auth);
}

/* Is there a link, be it not ready yet, that sockets may join? */
static bool conn_rails_joinable(const struct contact *peer)
{
	return contact_linked(peer) && peer->kind == LINK_SOCKET;
}

/* Gives the socket in *conn to the link. `auth`: its proof of a key, or NULL. 0 or a negative error. */
static int conn_rails_join(struct contact *peer, uint32_t rail, const struct accepted *conn,
			   const struct auth *auth)
{
	const struct transport *t = peer->station->via[LINK_SOCKET].transport;
	struct link_peer lp = {.hello = &conn->hello,
			       .sock = conn->sock,
			       .initiator = conn->hello.kind == HELLO_JOINED};
	bool encrypts = auth && auth->encrypts;
	uint8_t key[TLS_KEY];
	int err;

	if (!conn_rails_joinable(peer))
		return -FI_ENOTCONN;
	if (encrypts && !auth_link_key(auth, key))
		return -FI_EIO;
	lp.key = encrypts ? key : NULL;
	connect_set_linked(conn->sock);
	err = t->join(peer->real, rail, &lp);
	explicit_bzero(key, sizeof(key));
	return err;
}

/* Has something come? 0: not all yet; 1: the socket is a rail; else a negative error. */
static int conn_rails_hear(struct contact *peer, const struct peer_rails *link,
			   struct rail_attempt *a)
{
	struct accepted conn = {.sock = a->sock};
	int ret = hello_recv(a->sock, false, &conn.hello, conn.fds);

	if (ret <= 0)
		return ret;
	if (!auth_hear(peer, a->auth, &conn))
		return -FI_EACCES;
	if (a->auth && conn.hello.kind == HELLO_CHALLENGE)
		return conn_rails_ask(link, a);
	if (conn.hello.kind != HELLO_JOINED ||
	    !hmac_equal(conn.hello.nonce, link->token + WIRE_TOKEN, WIRE_TOKEN))
		return -FI_ECONNREFUSED;
	epoll_ctl(peer->station->driven.fd, EPOLL_CTL_DEL, a->sock, NULL);
	ret = conn_rails_join(peer, a->rail, &conn, a->auth);
	if (ret)
		return ret;
	a->sock = -1;
	return 1;
}

static void rails_socket(struct station *station, uint32_t id)
{
	struct rail_attempt *a = station->rails ? pool_find(&station->rails->pool, id) : NULL;
	struct contact *peer = a ? pool_find(&station->peer_pool, a->peer) : NULL;
	const struct peer_rails *link = peer ? conn_rails_agreed(peer) : NULL;
	int ret;

	if (!link || a->sock < 0)
		return;
	ret = a->stage == CONNECTING ? conn_rails_connected(peer, link, a)
				     : conn_rails_hear(peer, link, a);
	if (ret == 0 || ret == -FI_EAGAIN)
		return;
	if (ret > 0) {
		conn_rails_end(peer, a);
		return;
	}
	log_failure(&link->pair[a->rail], a->rail, -ret);
	connect_close(a->sock);
	a->sock = -1; /* the next try is at the deadline */
}

/* NULL: the socket may become rail `number` of the link. */
static const char *conn_rails_fault(const struct contact *peer, const struct peer_rails *link,
				    const struct accepted *conn, uint32_t number)
{
	const struct wire_hello *hello = &conn->hello;

	if (conn->inside)
		return "it comes from within the host";
	if (hello->kind != HELLO_JOIN)
		return "only rails of links are taken here (FI_WEFT_RAILS)";
	if (!link || !conn_rails_joinable(peer))
		return "there is no such link";
	if (!hmac_equal(hello->nonce, link->token, WIRE_TOKEN))
		return "it does not show the token of the link";
	if (conn->auth.slot != peer->key_slot)
		return "it proves another key than that of the link";
	return number < WIRE_RAILS_MAX ? NULL : "there are not so many rails";
}

static void rails_join(struct station *station, struct accepted *conn)
{
	struct contact *peer = pool_find(&station->peer_pool, conn->hello.your_id);
	struct peer_rails *link = peer ? conn_rails_agreed(peer) : NULL;
	struct wire_rails which = {.number = WIRE_RAILS_MAX};
	const char *why;
	uint8_t half[WIRE_PROOF] = {0};
	int err;

	/* A peer that had to wait for long has given up, and made another socket, which must not lose its place to this one. */
	if (connect_closed(conn->sock)) {
		acceptor_dismiss(conn);
		return;
	}
	hello_rails(&conn->hello, &which);
	why = conn_rails_fault(peer, link, conn, which.number);
	if (why) {
		auth_refuse(&station->auth, conn, why);
		acceptor_dismiss(conn);
		return;
	}
	memcpy(half, link->token + WIRE_TOKEN, WIRE_TOKEN);
	err = hello_send(
		NULL, conn->sock, false,
		&(struct hello_fields){.kind = HELLO_JOINED, .token = half, .auth = &conn->auth});
	if (!err)
		err = conn_rails_join(peer, which.number, conn, &conn->auth);
	if (err)
		acceptor_dismiss(conn);
}

const struct conn_option conn_rails_option = {
	.close = rails_close,
	.changed = rails_forget,
	.say = rails_say,
	.link = rails_link,
	.join = rails_join,
	.socket = rails_socket,
	.rail_wanted = rail_wanted,
	.rail_coming = rail_coming,
};
