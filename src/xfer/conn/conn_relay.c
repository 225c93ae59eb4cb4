/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The relay: an endpoint that FI_WEFT_RELAY names, and that both sides of an introduction connect to (conn_introduce.c).
 * One behind a firewall keeps a connection with it, others make one when an operation waits for a peer that alone can
 * connect. The attempts are repeated without end, so only a new error is logged.
 */
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "xfer/conn/conn_own.h"

#define RELAY_MS 3000 /* between two attempts to connect to the relay */
#define LAG_MS   10   /* coarse clocks lag behind timers by no more */

int conn_relay_open(struct worker *worker)
{
	const char *text = env_get()->relay;
	struct addr relay = {.kind = ADDR_NONE};

	if (!text || !worker_on_network(worker))
		return 0;
	if (!addr_parse(&relay, text) && relay.kind != ADDR_STR && relay.port) {
		worker->relay.name = addr_unmapped(&relay);
		return 0;
	}
	addr_free(&relay);
	LOG_WARN(LOG_EP_CTRL,
		 "FI_WEFT_RELAY=%s: the address of an endpoint is wanted, as fi_av_straddr prints "
		 "it, like fi_sockaddr_in://10.0.0.7:4711",
		 text);
	return -FI_EINVAL;
}

struct peer *conn_relay(struct worker *worker)
{
	const struct addr *name = &worker->relay.name;

	if (worker->relay.peer || name->kind == ADDR_NONE || worker_goes_by(worker, name))
		return worker->relay.peer;
	worker->relay.peer = peer_by_name(worker, name, 0);
	if (worker->relay.peer)
		worker->relay.peer->named++;
	return worker->relay.peer;
}

bool conn_relay_news(struct worker *worker, int err)
{
	bool news = err != worker->relay.err;

	worker->relay.err = err;
	return news;
}

static void refuse_hidden(struct peer *relay)
{
	if (conn_relay_news(relay->worker, FI_EFIREWALLADDR))
		LOG_WARN(LOG_EP_CTRL,
			 "FI_WEFT_RELAY=%s: it is in the address vector with FI_FIREWALL_ADDR, so "
			 "nobody connects to it: both sides have to reach a relay",
			 peer_text(relay));
}

void conn_relay_check(struct worker *worker, uint64_t now)
{
	struct peer *relay;

	if (now < worker->relay.next || !(worker->reaches_out || worker->relay.wanted))
		return;
	relay = conn_relay(worker);
	if (!relay)
		return;
	worker->relay.wanted = false;
	if (peer_linked(relay)) {
		conn_timer_clear(worker);
		if (conn_relay_news(worker, 0))
			LOG_INFO(LOG_EP_CTRL, "the relay %s is connected again", peer_text(relay));
		return;
	}
	worker->relay.next = now + RELAY_MS;
	if (worker->reaches_out)
		conn_timer_set(worker, RELAY_MS + LAG_MS);
	if (peer_addr(relay) != FI_ADDR_NOTAVAIL && conn_reach_firewalled(relay))
		refuse_hidden(relay);
	else if (relay->state == PEER_IDLE)
		conn_start_early(relay, 0);
}
