/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The relay: an endpoint that FI_WEFT_RELAY names, and that both sides of an introduction connect to (conn_introduce.c).
 * One behind a firewall keeps a connection with it, others make one when an operation waits for a peer that alone can
 * connect. The attempts are repeated without end, so only a new error is logged.
 */
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"

#define RELAY_MS 3000 /* between two attempts to connect to the relay */
#define LAG_MS   10   /* coarse clocks lag behind timers by no more */

/* Reads FI_WEFT_RELAY. -FI_EINVAL: it is no address of an endpoint. */
static int relay_open(struct station *station)
{
	const char *text = env_get()->relay;
	struct addr relay = {.kind = ADDR_NONE};

	if (!text || !station_on_network(station))
		return 0;
	if (!addr_parse(&relay, text) && relay.kind != ADDR_STR && relay.port) {
		station->relay.name = addr_unmapped(&relay);
		return 0;
	}
	addr_free(&relay);
	return LOG_REFUSE(
		-FI_EINVAL, LOG_EP_CTRL,
		"FI_WEFT_RELAY=%s: the address of an endpoint is wanted, as fi_av_straddr prints "
		"it, like fi_sockaddr_in://10.0.0.7:4711",
		text);
}

/* Returns the relay, which is never freed while the station is open. NULL: there is none beside the station itself, or no memory. */
static struct contact *relay_of(struct station *station)
{
	const struct addr *name = &station->relay.name;

	if (station->relay.peer || name->kind == ADDR_NONE || station_goes_by(station, name))
		return station->relay.peer;
	station->relay.peer = contact_by_name(station, name, 0);
	if (station->relay.peer)
		station->relay.peer->named++;
	return station->relay.peer;
}

static void relay_await(struct contact *awaited)
{
	awaited->station->relay.wanted = true;
	relay_of(awaited->station);
}

static void refuse_hidden(struct contact *relay)
{
	if (conn_reach_news(relay->station, FI_EFIREWALLADDR))
		LOG_WARN(LOG_EP_CTRL,
			 "FI_WEFT_RELAY=%s: it is in the address vector with FI_FIREWALL_ADDR, so "
			 "nobody connects to it: both sides have to reach a relay",
			 contact_text(relay));
}

/*
 * Connects to the relay, if the station has one that is not connected and needs it: the station reaches out, or an operation
 * waits for a peer that alone can connect. A station that reaches out wakes its sleepers for that.
 */
static void relay_check(struct station *station, uint64_t now)
{
	struct contact *relay;

	if (now < station->relay.next || !(station->reaches_out || station->relay.wanted))
		return;
	relay = relay_of(station);
	if (!relay)
		return;
	station->relay.wanted = false;
	if (contact_linked(relay)) {
		conn_timer_clear(station);
		if (conn_reach_news(station, 0))
			LOG_INFO(LOG_EP_CTRL, "the relay %s is connected again",
				 contact_text(relay));
		return;
	}
	station->relay.next = now + RELAY_MS;
	if (station->reaches_out)
		conn_timer_set(station, RELAY_MS + LAG_MS);
	if (contact_addr(relay) != FI_ADDR_NOTAVAIL && conn_reach_firewalled(relay))
		refuse_hidden(relay);
	else if (relay->state == PEER_IDLE)
		conn_start_in_advance(relay, 0);
}

const struct conn_option conn_relay_option = {
	.open = relay_open,
	.tick = relay_check,
	.await = relay_await,
};
