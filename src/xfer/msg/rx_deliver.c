/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks packets from transports and dispatches them. */
#include <rdma/fi_errno.h>

#include "base/copy.h"
#include "base/log.h"
#include "base/once.h"
#include "base/probe.h"
#include "cntr/cntr.h"
#include "core/cq.h"
#include "link/wire.h"
#include "xfer/events.h"
#include "xfer/rndv/rxreq.h"
#include "conn/conn.h"
#include "xfer/group.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/rx_plain.h"
#include "xfer/msg/tx.h"

/*
 * Reads an RTS. False: its figures do not agree with each other or with the packet. Read once: the
 * sender may still write to the payload.
 */
static bool read_rts(const struct packet *p, struct wire_rts *rts)
{
	size_t fixed = offsetof(struct wire_rts, segment);
	uint64_t sum = 0;

	if (p->len < fixed || p->len > sizeof(*rts))
		return false;
	once_copy(rts, p->payload, p->len);
	if (rts->count > WIRE_IOV_MAX || p->len != fixed + rts->count * sizeof(rts->segment[0]))
		return false;
	for (size_t i = 0; i < rts->count; i++)
		if (__builtin_add_overflow(sum, rts->segment[i].len, &sum))
			return false;
	return sum == rts->len && sum; /* an empty message has no RTS: its bytes would never come */
}

static void refuse_message(struct peer *peer, const struct packet *p, const char *why)
{
	/* The worker is closing: the sender will see the end of the connection. */
	if (peer->conn.station->closing)
		return;
	LOG_PEER(LOG_EP_DATA, "%s: message for receive context %u dropped: %s",
		 contact_text(&peer->conn), wire_rx(p->head), why);
	if (rx_wants_ack(p->head))
		tx_control(peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(p->head)), FI_EOPNOTSUPP);
}

struct rx *rx_context_of(struct worker *worker, struct peer *peer, const struct packet *p)
{
	unsigned int index = wire_rx(p->head);

	if (__builtin_expect(index < WORKER_RX_MAX, 1))
		return worker->rx[index];
	return wire_of_group(p->head) ? worker->groups->context(worker, peer, p) : NULL;
}

/* Delivers an RTS whose payload is a copy: it is used where it was judged. */
static __attribute__((noinline)) void deliver_rts(struct rx *rx, struct peer *peer,
						  const struct packet *p)
{
	struct packet own = *p;
	struct wire_rts rts;

	own.payload = &rts;
	if (read_rts(p, &rts))
		rx_message(rx, peer, &own);
	else
		refuse_message(peer, p, "its RTS contradicts itself");
}

static inline void deliver_to(struct rx *rx, struct peer *peer, const struct packet *p)
{
	if (__builtin_expect(!rx, 0))
		refuse_message(peer, p, "no such context, or not enabled");
	else if (wire_op(p->head) == WIRE_RTS)
		deliver_rts(rx, peer, p);
	else
		rx_message(rx, peer, p);
}

static void deliver_to_group(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct rx *rx;

	if (!worker->groups->take(worker, peer, p, &rx))
		deliver_to(rx ? rx : worker->groups->elsewhere(worker, peer, p), peer, p);
}

static void deliver_message(struct worker *worker, struct peer *peer, const struct packet *p)
{
	/* A packet of the peer was lost: drops all later ones. */
	if (__builtin_expect(contact_expelled(&peer->conn), 0))
		return;
	if (__builtin_expect(wire_of_group(p->head), 0))
		deliver_to_group(worker, peer, p);
	else
		deliver_to(rx_context_of(worker, peer, p), peer, p);
}

/* Handles an atomic on a tagged receive, which is parsed more than once: parses a copy. */
static __attribute__((noinline)) void deliver_matched(struct rx *rx, struct peer *peer,
						      const struct packet *p)
{
	_Alignas(16) char payload[WIRE_PACKET_MIN];
	struct packet own = *p;

	own.payload = payload;
	if (p->len <= sizeof(payload))
		once_copy(payload, p->payload, p->len);
	if (p->len > sizeof(payload) || !rma_match_valid(peer, &own))
		refuse_message(peer, p, "its atomic contradicts itself");
	else
		rx_atomic(rx, peer, &own);
}

/* Handles a one-sided request. An atomic on a tagged receive is matched like a message. */
static void deliver_request(struct worker *worker, struct peer *peer, const struct packet *p)
{
	bool matched = wire_op(p->head) == WIRE_AMO && wire_flags(p->head) & WIRE_MATCH;
	unsigned int index = wire_rx(p->head);
	struct rx *rx = index < WORKER_RX_MAX ? worker->rx[index] : NULL;

	/*
	 * The peer has accepted us, but we have not read its hello. Reads it now, so that the request can be answered.
	 */
	if (__builtin_expect(!peer->conn.real && !(wire_flags(p->head) & WIRE_ORPHAN), 0))
		conn_finish(&peer->conn);
	worker->conn.driven.served++;
	if (!matched)
		rma_serve(worker, peer, p);
	else if (!rx || !(rx->caps & FI_TAGGED))
		refuse_message(peer, p, "no such context, or none for tagged messages");
	else
		deliver_matched(rx, peer, p);
}

static void deliver_control(struct worker *worker, struct peer *peer, const struct packet *p)
{
	switch (wire_op(p->head)) {
	case WIRE_ATS:
		tx_ats(worker, peer, p);
		break;
	case WIRE_CTS:
		tx_cts(worker, peer, p);
		break;
	case WIRE_FRAG:
		rxreq_frag(worker, peer, p);
		break;
	case WIRE_XOFF:
	case WIRE_XON:
		peer_pause(peer, wire_op(p->head) == WIRE_XOFF);
		break;
	case WIRE_PUT:
	case WIRE_GET:
	case WIRE_AMO:
	case WIRE_NOTIFY:
		deliver_request(worker, peer, p);
		break;
	case WIRE_DONE:
	case WIRE_RESULT:
	case WIRE_FAILED:
		rma_answer(peer, p);
		break;
	case WIRE_GROUP:
		worker->groups->hear(worker, peer, p);
		break;
	default:
		if (conn_hear(&peer->conn, p))
			break;
		LOG_PEER(
			LOG_EP_DATA,
			"%s: packet of unknown kind %u dropped; do both sides use the same version of the library?",
			contact_text(&peer->conn), wire_op(p->head));
	}
}

_Static_assert((WORKER_RX_MAX & (WORKER_RX_MAX - 1)) == 0,
	       "the bits of RX_PLAIN_BITS name contexts only");

/* Delivers a plain message. */
static void rx_deliver_place(struct rx *rx, struct peer *peer, const struct packet *p)
{
	struct recv *r = rx_plain_find(rx, contact_addr(&peer->conn), p);
	struct cq *cq = rx->plain_cq;

	if (!r) {
		rx_message(rx, peer, p);
		return;
	}
	PROBE4(deliver, r, peer, p->tag, p->len);
	if (p->len)
		copy_bytes(r->iov[0].iov_base, p->payload, p->len);
	cq_push(cq, rx_plain_end(rx, r, contact_reported(&peer->conn), p));
}

static __attribute__((noinline)) void deliver_other(struct peer *peer, const struct packet *p)
{
	struct worker *worker = peer_worker(peer);

	if (wire_op(p->head) <= WIRE_RTS)
		deliver_message(worker, peer, p);
	else
		deliver_control(worker, peer, p);
}

static __attribute__((noinline, cold)) void drop_unknown(uint32_t src)
{
	LOG_INFO(LOG_EP_DATA, "packet from unknown peer id %#x dropped", src);
}

void rx_deliver(struct opener *o, uint32_t src, const struct packet *p)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);
	struct rx *rx = worker->rx[wire_rx(p->head) % WORKER_RX_MAX];

	if (__builtin_expect(!peer, 0))
		drop_unknown(src);
	else if ((p->head & ~RX_PLAIN_BITS(WORKER_RX_MAX - 1)) != WIRE_MSG || !rx ||
		 !rx->plain_cq ||
		 (peer->conn.reported == FI_ADDR_NOTAVAIL && contact_expelled(&peer->conn)))
		deliver_other(peer, p);
	else
		rx_deliver_place(rx, peer, p);
}
