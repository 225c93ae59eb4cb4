/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of a peer, for reports: struct fi_weft_peer; and pauses, which it tells of. */
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/av.h"
#include "core/ep.h"
#include "link/link.h"
#include "xfer/worker.h"

struct peer peer_nobody = {.conn = {.link = &contact_full_link,
				    .addr = FI_ADDR_NOTAVAIL,
				    .kind = LINK_SOCKET,
				    .sock = -1}};

int peer_missing(const struct ep *ep, fi_addr_t addr, const char *call)
{
	struct av *av = ep->worker->conn.av;

	if (av && av_addr(av, addr & ep->addr_mask))
		return LOG_REFUSE(-FI_ENOMEM, LOG_EP_DATA,
				  "%s: out of memory for the peer of fi_addr %#llx", call,
				  (unsigned long long)addr);
	return LOG_REFUSE(
		-FI_EINVAL, LOG_EP_DATA,
		"%s: fi_addr %#llx is not in the address vector: fi_av_insert returns those that are",
		call, (unsigned long long)addr);
}

void peer_pause_end(struct peer *peer)
{
	if (peer->tx.xoff_ms)
		peer->counts.paused_ms += clock_coarse_ms() - peer->tx.xoff_ms;
	peer->tx.xoff_ms = 0;
}

void peer_pause(struct peer *peer, bool pause)
{
	if (!pause) {
		peer_pause_end(peer);
	} else if (!peer->tx.xoff_ms) {
		peer->counts.xoff_received++;
		peer->tx.xoff_ms = clock_coarse_ms();
	}
	peer_refresh(peer);
	if (!pause)
		peer_busy(peer);
}

/* Why the worker has not opened the transport of this kind. */
static enum fi_weft_reason why_not_open(const struct worker *worker, enum link_kind kind)
{
	if (kind == LINK_DEVICE && worker->conn.auth.encrypts)
		return FI_WEFT_NOT_ENCRYPTING;
	for (const struct transport *const *t = transports; *t; t++)
		if ((*t)->kind == kind && (*t)->bit & worker->wanted)
			return FI_WEFT_NO_DEVICE;
	return FI_WEFT_LEFT_OUT;
}

/* The reason while there is no connection. */
static enum fi_weft_reason not_yet(const struct peer *peer)
{
	return peer->conn.last_error && !peer->conn.connections ? FI_WEFT_FAILED : FI_WEFT_USABLE;
}

static enum fi_weft_reason why_not_host(const struct peer *peer)
{
	/* The peer of a connected endpoint has no name before it connects. */
	if (peer->conn.name.kind != ADDR_NONE && !addr_is_local(&peer->conn.name))
		return FI_WEFT_OTHER_HOST;
	switch (peer->conn.host_error) {
	case 0:
		return contact_linked(&peer->conn) ? FI_WEFT_PEER_CHOSE : not_yet(peer);
	case FI_ECONNREFUSED:
		return FI_WEFT_NO_LISTENER;
	case FI_EACCES:
		return FI_WEFT_OTHER_USER;
	default:
		return FI_WEFT_FAILED;
	}
}

static enum fi_weft_reason why_not_device(const struct peer *peer)
{
	if (peer->conn.device_error)
		return FI_WEFT_FAILED;
	return contact_linked(&peer->conn) ? FI_WEFT_NO_COMMON_DEVICE : not_yet(peer);
}

static enum fi_weft_reason why_not(const struct peer *peer, enum link_kind kind)
{
	bool linked = contact_linked(&peer->conn);

	if (linked && peer->conn.kind == kind)
		return FI_WEFT_USED;
	if (!peer->conn.station->via[kind].state)
		return why_not_open(peer_worker(peer), kind);
	if (kind == LINK_HOST)
		return why_not_host(peer);
	if (peer->conn.name.kind == ADDR_STR)
		return FI_WEFT_NO_ADDRESS;
	if (linked && (kind == LINK_SOCKET || peer->conn.kind == LINK_HOST))
		return FI_WEFT_NOT_NEEDED;
	return kind == LINK_DEVICE ? why_not_device(peer) : not_yet(peer);
}

static void describe_ways(const struct peer *peer, struct fi_weft_peer *state)
{
	static const enum link_kind kinds[] = {[FI_WEFT_SHM] = LINK_HOST,
					       [FI_WEFT_VERBS] = LINK_DEVICE,
					       [FI_WEFT_TCP] = LINK_SOCKET};

	state->transport = FI_WEFT_TRANSPORTS;
	for (unsigned int i = 0; i < FI_WEFT_TRANSPORTS; i++) {
		enum fi_weft_reason reason = why_not(peer, kinds[i]);

		state->reasons[i] = reason;
		if (reason == FI_WEFT_USED ||
		    (reason == FI_WEFT_USABLE && state->transport == FI_WEFT_TRANSPORTS))
			state->transport = i;
	}
}

static void describe_link(const struct peer *peer, struct fi_weft_peer *state)
{
	struct link_state link = {.direct_read = FI_WEFT_USABLE};
	const struct transport *t = peer->conn.station->via[peer->conn.kind].transport;

	if (peer->conn.real && t->describe)
		t->describe(peer->conn.real, &link);
	else if (peer->conn.real)
		link.direct_read = FI_WEFT_LEFT_OUT;
	state->credits = link.credits;
	state->unsent_bytes = link.unsent_bytes;
	state->retransmissions = link.retransmissions;
	state->direct_read = link.direct_read;
}

static void describe_counts(const struct peer_counts *c, struct fi_weft_peer *state)
{
	state->sent_zcopy = c->sent[OUT_ZCOPY];
	state->sent_rdma = c->sent[OUT_RDMA];
	state->sent_rts = c->sent[OUT_RTS];
	state->sent_streamed = c->streamed;
	state->received_read = c->read;
	state->received_joint = c->helped;
	state->received_rdma = c->rdma;
	state->received_streamed = c->asked;
	state->xoff_sent = c->xoff_sent;
	state->xoff_received = c->xoff_received;
	state->paused_ms = c->paused_ms;
}

static uint64_t peer_state_length(const struct list *list)
{
	uint64_t count = 0;

	LIST_EACH (node, list)
		count++;
	return count;
}

static void describe_queues(const struct peer *peer, struct fi_weft_peer *state)
{
	static const enum txreq_state sent[] = {TXREQ_RMA, TXREQ_RDMA, TXREQ_ACK, TXREQ_STREAM,
						TXREQ_ZCOPY};

	state->queued = peer->tx.backlog_count + peer_state_length(&peer->txreqs[TXREQ_AHEAD]);
	for (unsigned int i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
		state->unanswered += peer_state_length(&peer->txreqs[sent[i]]);
	state->sent_requests = peer->rma.seq;
	state->received_requests = peer->target.done_seq;
	state->answers_bytes = peer->tx.reply_bytes;
	state->unexpected_bytes = peer->rx.account.sum.bytes;
	if (peer->tx.xoff_ms)
		state->paused_ms += clock_coarse_ms() - peer->tx.xoff_ms;
}

void peer_describe(const struct peer *peer, struct fi_weft_peer *state)
{
	bool tries = contact_attempts(&peer->conn) || peer->conn.state == PEER_SECURING;

	state->connection = contact_linked(&peer->conn) && !tries ? FI_WEFT_CONNECTED
			    : tries                               ? FI_WEFT_CONNECTING
								  : FI_WEFT_UNCONNECTED;
	state->last_error = (uint32_t)peer->conn.last_error;
	state->connections = peer->conn.connections;
	describe_ways(peer, state);
	describe_link(peer, state);
	describe_counts(&peer->counts, state);
	describe_queues(peer, state);
}
