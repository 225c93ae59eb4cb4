/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The relay: an endpoint that FI_WEFT_RELAY names, and that both sides of an introduction connect to (conn_introduce.c).
 * One behind a firewall keeps a connection with it, others make one when an operation waits for a peer that alone can
 * connect. The attempts are repeated without end, so only a new error is logged.
 */
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "xfer/conn/conn_options.h"
#include "xfer/conn/conn_own.h"

#define RELAY_MS 3000 /* between two attempts to connect to the relay */
#define LAG_MS   10   /* coarse clocks lag behind timers by no more */

/* Reads FI_WEFT_RELAY. -FI_EINVAL: it is no address of an endpoint. */
static int relay_open(struct worker *worker)
{
	const char *text = env_get()->relay;
	struct addr relay = {.kind = ADDR_NONE};

	if (!text || !worker_on_network(worker))
		return 0;
	if (!addr_parse(&relay, text) && relay.kind != ADDR_STR && relay.port) {
		worker->conn.relay.name = addr_unmapped(&relay);
		return 0;
	}
	addr_free(&relay);
	LOG_WARN(LOG_EP_CTRL,
		 "FI_WEFT_RELAY=%s: the address of an endpoint is wanted, as fi_av_straddr prints "
		 "it, like fi_sockaddr_in://10.0.0.7:4711",
		 text);
	return -FI_EINVAL;
}

/* Returns the relay, which is never freed while the worker is open. NULL: there is none beside the worker itself, or no memory. */
static struct peer *relay_of(struct worker *worker)
{
	const struct addr *name = &worker->conn.relay.name;

	if (worker->conn.relay.peer || name->kind == ADDR_NONE || worker_goes_by(worker, name))
		return worker->conn.relay.peer;
	worker->conn.relay.peer = peer_by_name(worker, name, 0);
	if (worker->conn.relay.peer)
		worker->conn.relay.peer->conn.named++;
	return worker->conn.relay.peer;
}

static void relay_await(struct peer *awaited)
{
	awaited->conn.worker->conn.relay.wanted = true;
	relay_of(awaited->conn.worker);
}

static void refuse_hidden(struct peer *relay)
{
	if (conn_reach_news(relay->conn.worker, FI_EFIREWALLADDR))
		LOG_WARN(LOG_EP_CTRL,
			 "FI_WEFT_RELAY=%s: it is in the address vector with FI_FIREWALL_ADDR, so "
			 "nobody connects to it: both sides have to reach a relay",
			 peer_text(relay));
}

/*
 * Connects to the relay, if the worker has one that is not connected and needs it: the worker reaches out, or an operation
 * waits for a peer that alone can connect. A worker that reaches out wakes its sleepers for that.
 */
static void relay_check(struct worker *worker, uint64_t now)
{
	struct peer *relay;

	if (now < worker->conn.relay.next ||
	    !(worker->conn.reaches_out || worker->conn.relay.wanted))
		return;
	relay = relay_of(worker);
	if (!relay)
		return;
	worker->conn.relay.wanted = false;
	if (peer_linked(relay)) {
		conn_timer_clear(worker);
		if (conn_reach_news(worker, 0))
			LOG_INFO(LOG_EP_CTRL, "the relay %s is connected again", peer_text(relay));
		return;
	}
	worker->conn.relay.next = now + RELAY_MS;
	if (worker->conn.reaches_out)
		conn_timer_set(worker, RELAY_MS + LAG_MS);
	if (peer_addr(relay) != FI_ADDR_NOTAVAIL && conn_reach_firewalled(relay))
		refuse_hidden(relay);
	else if (relay->conn.state == PEER_IDLE)
		conn_start_early(relay, 0);
}

const struct conn_option conn_relay_option = {
	.open = relay_open,
	.tick = relay_check,
	.await = relay_await,
};
