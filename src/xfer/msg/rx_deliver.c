/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks packets from transports and dispatches them. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/copy.h"
#include "base/log.h"
#include "base/once.h"
#include "base/probe.h"
#include "cntr/cntr.h"
#include "core/cq.h"
#include "link/wire.h"
#include "link/upcall.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/conn/conn.h"
#include "xfer/group.h"
#include "xfer/joint.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
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
	if (peer->worker->closing)
		return;
	LOG_WARN(LOG_EP_DATA, "%s: message for receive context %u dropped: %s", peer_text(peer),
		 wire_rx(p->head), why);
	if (rx_wants_ack(p->head))
		tx_control(peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(p->head)), FI_EOPNOTSUPP);
}

struct rx *rx_context_of(struct worker *worker, struct peer *peer, const struct packet *p)
{
	unsigned int index = wire_rx(p->head);

	if (__builtin_expect(index < WORKER_RX_MAX, 1))
		return worker->rx[index];
	return wire_of_group(p->head) ? coll_context(worker, peer, p) : NULL;
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

	if (!coll_take(worker, peer, p, &rx))
		deliver_to(rx ? rx : coll_elsewhere(worker, peer, p), peer, p);
}

static void deliver_message(struct worker *worker, struct peer *peer, const struct packet *p)
{
	/* A packet of the peer was lost: drops all later ones. */
	if (__builtin_expect(peer->conn.over_budget, 0))
		return;
	if (__builtin_expect(wire_of_group(p->head), 0))
		deliver_to_group(worker, peer, p);
	else
		deliver_to(rx_context_of(worker, peer, p), peer, p);
}

unsigned int worker_served(const struct worker *worker)
{
	return worker->served;
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
	 * The peer has accepted us, but we have not read its hello. Reads it now, so that the
	 * request can be answered.
	 */
	if (__builtin_expect(!peer->real && !(wire_flags(p->head) & WIRE_ORPHAN), 0))
		conn_finish(peer);
	worker->served++;
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
	case WIRE_JOINT:
		joint_help(peer, p);
		break;
	case WIRE_DONE:
	case WIRE_RESULT:
	case WIRE_FAILED:
		rma_answer(peer, p);
		break;
	case WIRE_DISCONNECT:
		peer->conn.disconnect_received = true;
		break;
	case WIRE_GROUP:
		coll_hear(worker, peer, p);
		break;
	case WIRE_RETIRE:
		conn_retire_hear(peer, p);
		break;
	default:
		LOG_WARN(
			LOG_EP_DATA,
			"%s: packet of unknown kind %u dropped; do both sides use the same version of the library?",
			peer_text(peer), wire_op(p->head));
	}
}

/* The head of a whole message that no answer is due to has, besides WIRE_MSG, no bits but these. */
#define PLAIN_BITS WIRE_HEAD(0, WIRE_TAGGED | WIRE_DATA, WORKER_RX_MAX - 1, UINT32_MAX)

_Static_assert((WORKER_RX_MAX & (WORKER_RX_MAX - 1)) == 0,
	       "the bits of PLAIN_BITS name contexts only");

/*
 * Reports a plain message of `src`. Writes the slot in place, member by member, as it will be read soon.
 */
static inline void report(struct cq_slot *slot, fi_addr_t src, const struct recv *r,
			  const struct packet *p)
{
	static const uint64_t kinds[] = {
		[0] = FI_RECV | FI_MSG,
		[WIRE_TAGGED] = FI_RECV | FI_TAGGED,
		[WIRE_DATA] = FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA,
		[WIRE_TAGGED | WIRE_DATA] = FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA,
	};

	slot->context = r->context;
	slot->flags = kinds[wire_flags(p->head)];
	slot->len = p->len;
	slot->buf = NULL;
	slot->data = p->data;
	slot->tag = p->tag;
	slot->src = src;
	slot->error = NULL;
}

/*
 * Delivers a whole message that, if a plain receive is posted for it, only has to be copied and reported. `shortest`: it has
 * eight bytes, and neither its source nor the slot of its completion takes a call, so that nothing here does.
 */
static __attribute__((always_inline)) inline void place(struct rx *rx, struct peer *peer,
							const struct packet *p, bool shortest)
{
	struct cq *cq = rx->plain_cq;
	struct recv *r = rx_find_posted(rx, wire_flags(p->head) & WIRE_TAGGED,
					shortest ? peer->addr : peer_addr(peer), p->tag);

	if (__builtin_expect(!r || p->len >= r->plain ||
				     !(rx->complete_all || r->flags & FI_COMPLETION),
			     0)) {
		rx_message(rx, peer, p);
		return;
	}
	PROBE4(deliver, r, peer, p->tag, p->len);
	if (shortest)
		memcpy(r->iov[0].iov_base, p->payload, 8);
	else if (p->len)
		copy_bytes(r->iov[0].iov_base, p->payload, p->len);
	list_unlink(&r->link);
	report(shortest ? cq_slot_next(cq) : cq_slot(cq),
	       shortest ? peer->reported : peer_reported(peer), r, p);
	pool_put(&rx->q->recv_pool, r);
	wait_notify(&cq->wait);
}

static __attribute__((noinline)) void place_any(struct rx *rx, struct peer *peer,
						const struct packet *p)
{
	/* A packet of the peer was lost: drops all later ones. */
	if (__builtin_expect(!peer->conn.over_budget, 1))
		place(rx, peer, p, false);
}

static __attribute__((noinline)) void deliver_other(struct worker *worker, struct peer *peer,
						    const struct packet *p)
{
	if (wire_op(p->head) <= WIRE_RTS)
		deliver_message(worker, peer, p);
	else
		deliver_control(worker, peer, p);
}

static __attribute__((noinline, cold)) void drop_unknown(uint32_t src)
{
	LOG_INFO(LOG_EP_DATA, "packet from unknown peer id %#x dropped", src);
}

/* An eight byte message into a posted receive calls no function, so it needs no stack frame. */
void rx_deliver(struct worker *worker, uint32_t src, const struct packet *p)
{
	struct peer *peer = pool_find(&worker->peer_pool, src);
	struct rx *rx = worker->rx[wire_rx(p->head) % WORKER_RX_MAX];

	if (__builtin_expect(!peer, 0))
		drop_unknown(src);
	else if ((p->head & ~PLAIN_BITS) != WIRE_MSG || !rx || !rx->plain_cq ||
		 !list_empty(&worker->spec))
		deliver_other(worker, peer, p);
	else if (p->len != 8 || peer->reported == FI_ADDR_NOTAVAIL || cq_full(rx->plain_cq))
		place_any(rx, peer, p);
	else
		place(rx, peer, p, true);
}
