/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages to a peer: sent at once, or kept until there is space for them. */
#include <stdlib.h>
#include <string.h>

#include "xfer/msg/answers.h"
#include "xfer/msg/tx.h"
#include "xfer/peer.h"

static void keep_control(struct peer *peer, const struct packet *p)
{
	struct control *c = malloc(sizeof(*c) + p->len);

	if (!c || !answers_add(peer, sizeof(*c) + p->len)) {
		if (!c)
			contact_starve(&peer->conn, "an answer to it");
		free(c);
		return;
	}
	c->head = p->head;
	c->tag = p->tag;
	c->data = p->data;
	c->len = p->len;
	if (p->len)
		memcpy(c->payload, p->payload, p->len);
	list_push(&peer->tx.controls, &c->link);
	peer_busy(peer);
	peer_refresh(peer);
}

void tx_control_data(struct peer *peer, const struct packet *p)
{
	struct iovec iov = {(void *)(uintptr_t)p->payload, p->len};

	/*
	 * A peer that has accepted us may send before we have read its hello: the link comes later,
	 * so the message is kept.
	 */
	if (peer->conn.state == PEER_IDLE)
		return;
	if (!peer->conn.real || !list_empty(&peer->tx.controls) ||
	    peer->conn.real->ops->sendv(peer->conn.real, p, &iov, p->len ? 1 : 0))
		keep_control(peer, p);
}

void tx_control(struct peer *peer, uint64_t head, uint64_t tag)
{
	tx_control_data(peer, &(struct packet){.head = head, .tag = tag});
}
