/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Networks where only one side can connect: a firewall drops what comes to the other, or its address is one that only its
 * own network knows. The side that cannot connect waits until the other one does.
 */
#include <rdma/fi_errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/av.h"
#include "conn/advertise.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

#define TEXT_MAX (ADDR_STR_MAX + 32)

/* The kernel repeats a SYN after a second: two have got no answer. */
#define UNANSWERED_MS 1500

#define LASTED_MS    UINT64_C(1000) /* from its attempt on, a connection has lasted that is renewed */
#define DOUBLED_MOST 6              /* times, as renewals follow each other */

bool conn_reach_firewalled(const struct contact *peer)
{
	return peer->addr != FI_ADDR_NOTAVAIL && av_firewalled(peer->station->av, peer->addr);
}

/*
 * Where is the peer if it is an endpoint of this host that advertises its address? Networks need not lead what is sent
 * to that address back into the host.
 */
static bool conn_reach_nearby(const struct contact *peer, struct addr *at)
{
	return !peer->attempt->outward && connect_local(peer->station->acceptor.network[0], at) &&
	       at->kind == peer->name.kind && advertise_port(&peer->name, &at->port);
}

bool conn_reach_outward(struct contact *peer)
{
	struct addr at;

	if (!conn_reach_nearby(peer, &at))
		return false;
	peer->attempt->outward = true;
	return true;
}

struct addr conn_reach_address(const struct contact *peer)
{
	const struct addr *own = &peer->station->name;
	struct addr to = peer->key, at;

	if (conn_reach_nearby(peer, &at))
		return at;
	if (addr_is_link_local(&to) && addr_is_link_local(own))
		to.scope = own->scope;
	return to;
}

int conn_reach_inside(const struct contact *peer)
{
	struct addr all = {.kind = peer->key.kind, .port = peer->key.port};
	int sock = connect_inside(&peer->key);

	if (sock != -FI_ECONNREFUSED || all.kind == ADDR_STR || !addr_is_local(&peer->name))
		return sock;
	sock = connect_inside(&all);
	if (sock != -FI_ECONNREFUSED || all.kind == ADDR_IN6)
		return sock;
	all.kind = ADDR_IN6; /* takes IPv4, too */
	return connect_inside(&all);
}

bool conn_reach_unanswered(const struct contact *peer)
{
	return clock_coarse_ms() - peer->attempt_ms >= UNANSWERED_MS;
}

void conn_reach_out(struct station *station, fi_addr_t addr)
{
	const struct addr *name = av_addr(station->av, addr);
	struct contact *peer = name && !addr_is_local(name) ? contact_get(station, addr) : NULL;

	if (peer && peer->state == PEER_IDLE && !conn_reach_firewalled(peer))
		conn_start_in_advance(peer, 0);
}

bool conn_reach_renews(struct contact *peer, int err)
{
	uint64_t lasted = clock_coarse_ms() - peer->attempt_ms;

	if ((err != FI_ECONNRESET && err != FI_ETIMEDOUT) || !contact_linked(peer) ||
	    contact_expelled(peer) || peer->addr == FI_ADDR_NOTAVAIL)
		return false;
	if (lasted >= LASTED_MS << (DOUBLED_MOST + 1))
		peer->renewals = 0;
	if (lasted < LASTED_MS << peer->renewals)
		return false;
	peer->renewals += peer->renewals < DOUBLED_MOST;
	return true;
}

/* What became of the attempt within the host, if there was one. */
static void conn_reach_inside_text(const struct contact *peer, char *text, size_t len)
{
	*text = '\0';
	if (peer->host_error && peer->host_error != FI_EHOSTUNREACH)
		snprintf(text, len, "within the host: %s; ", fi_strerror(peer->host_error));
}

bool conn_reach_news(struct station *station, int err)
{
	bool news = err != station->relay.err;

	station->relay.err = err;
	return news;
}

/* Attempts that no operation waits for are repeated without end, or others bring them about: not each is told. */
static bool is_news(const struct contact *peer, int err)
{
	struct station *station = peer->station;

	if (!peer->attempt->in_advance || peer->station->up->waiting(peer))
		return true;
	if (peer == station->relay.peer)
		return conn_reach_news(station, err);
	return !peer->attempt->until || log_due(&station->introduce.logged);
}

void conn_reach_explain(const struct contact *peer, int err)
{
	char ours[TEXT_MAX], within[TEXT_MAX];
	const char *theirs = contact_text(peer);
	unsigned long long ms = clock_coarse_ms() - peer->attempt_ms;

	if (!is_news(peer, err))
		return;
	addr_print(&peer->station->name, ours, sizeof(ours));
	conn_reach_inside_text(peer, within, sizeof(within));
	if (peer->station->cm)
		LOG_WARN(LOG_EP_CTRL, "cannot connect to %s: %s%s after %llu ms", theirs, within,
			 fi_strerror(err), ms);
	else if (peer->state == PEER_AWAITED)
		LOG_WARN(LOG_EP_CTRL,
			 "no connection with %s: %swe do not connect, for it is behind a firewall "
			 "(FI_FIREWALL_ADDR); it has not connected to %s within %llu ms",
			 theirs, within, ours, ms);
	else
		LOG_WARN(LOG_EP_CTRL,
			 "no connection with %s: %swe connect: %s after %llu ms; it has not "
			 "connected to %s either (fi_info --why tells more)",
			 theirs, within, fi_strerror(err), ms, ours);
}
