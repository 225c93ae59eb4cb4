/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of links over two devices: their numbers, and the copies that may go again. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/log.h"
#include "hw/verbs/rails/verbs_rails.h"

#define QUEUE_MAX (2 * VERBS_WINDOW) /* packets: what a rail kept, and messages about rails */

/* A packet that waits for space: header and payload. */
struct waiting {
	struct list link; /* verbs_rails.queue */
	size_t len;       /* bytes of the payload */
	struct verbs_head head;
	unsigned char payload[];
};

/* Sends a packet with a number over the rail that carries packets. 0 or -FI_EAGAIN. */
static int verbs_rails_packet_post(struct verbs_rails *r, struct verbs_head *h,
				   const struct iovec *iov, size_t count)
{
	struct verbs_rail *rail = &r->rail[r->active];
	unsigned int last = (rail->first + rail->count) % VERBS_WINDOW;
	int err;

	if (!verbs_rail_usable(rail))
		return -FI_EAGAIN;
	h->flags = (h->flags & ~(VERBS_PLAIN | VERBS_SPARES_MASK << VERBS_SPARES)) |
		   verbs_flags(rail->link);
	err = verbs_send_kept(rail->link, h, iov, count, &rail->kept[last]);
	if (!err)
		rail->count++;
	return err;
}

static bool is_disconnect(const struct verbs_head *h)
{
	return !(h->flags & VERBS_RAIL) && wire_op(h->head) == WIRE_DISCONNECT;
}

static uint32_t next_number(const struct verbs_rails *r)
{
	return (r->sent + 1) & VERBS_NUMBER_MASK;
}

static struct waiting *waiting_new(size_t len)
{
	struct waiting *w = malloc(sizeof(*w) + len);

	if (w)
		w->len = len;
	return w;
}

/* It needs neither credits nor a number, but goes behind what waits. */
static int send_disconnect(struct verbs_rails *r, uint64_t head)
{
	struct waiting *w;

	if (list_empty(&r->queue))
		return verbs_send(&r->rail[r->active].link->link, NULL, 0, 0, head, 0);
	w = waiting_new(0);
	if (!w)
		return -FI_EAGAIN;
	w->head = (struct verbs_head){.head = head};
	list_push(&r->queue, &w->link);
	return 0;
}

static int verbs_rails_packet_send_packet(struct verbs_rails *r, const struct packet *p,
					  const struct iovec *iov, size_t count)
{
	struct verbs_head h = {.head = p->head,
			       .tag = p->tag,
			       .data = p->data,
			       .flags = next_number(r) << VERBS_NUMBER};
	int err;

	if (!verbs_rail_usable(&r->rail[r->active]))
		return -FI_EAGAIN;
	if (is_disconnect(&h))
		return send_disconnect(r, p->head);
	err = list_empty(&r->queue) ? verbs_rails_packet_post(r, &h, iov, count) : -FI_EAGAIN;
	if (!err)
		r->sent = next_number(r);
	return err;
}

int verbs_rails_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		     uint64_t tag)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return len > link->eager_max
		       ? -FI_EMSGSIZE
		       : verbs_rails_packet_send_packet((struct verbs_rails *)link, &p, &iov, 1);
}

int verbs_rails_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		      size_t count)
{
	return verbs_rails_packet_send_packet((struct verbs_rails *)link, p, iov, count);
}

int verbs_rails_post(struct verbs_rails *r, const struct verbs_rail_message *m)
{
	unsigned int count = 0;
	struct waiting *w;

	LIST_EACH (node, &r->queue)
		count++;
	if (count >= QUEUE_MAX) {
		LOG_PEER(LOG_EP_DATA, "peer %#x returns no credits: %u packets wait already", r->id,
			 QUEUE_MAX);
		return -FI_EPROTO;
	}
	w = waiting_new(sizeof(*m));
	if (!w)
		return -FI_ENOMEM;
	r->sent = next_number(r);
	w->head = (struct verbs_head){.head = WIRE_HEAD(WIRE_MSG, 0, 0, 0),
				      .flags = VERBS_RAIL | r->sent << VERBS_NUMBER};
	memcpy(w->payload, m, sizeof(*m));
	list_push(&r->queue, &w->link);
	verbs_rails_flush(r);
	return 0;
}

static int post_waiting(struct verbs_rails *r, struct waiting *w)
{
	struct iovec iov = {w->payload, w->len};

	if (!is_disconnect(&w->head))
		return verbs_rails_packet_post(r, &w->head, &iov, 1);
	return verbs_send(&r->rail[r->active].link->link, NULL, 0, 0, w->head.head, 0);
}

void verbs_rails_flush(struct verbs_rails *r)
{
	LIST_EACH_SAFE_OF (struct waiting, w, &r->queue, link) {
		if (post_waiting(r, w))
			return;
		list_remove(&w->link);
		free(w);
	}
}

bool verbs_rails_queued(const struct verbs *v)
{
	LIST_EACH_OF (const struct verbs_rails, r, &v->multi->links, in_all) {
		if (!list_empty(&r->queue) && verbs_rail_usable(&r->rail[r->active]) &&
		    !verbs_rails_disconnected(r))
			return true;
	}
	return false;
}

/* Frees the rail's oldest packets. */
static void verbs_rails_packet_release(struct verbs_rail *rail, uint32_t packets)
{
	for (; packets && rail->count; packets--, rail->count--) {
		verbs_drop_kept(rail->link, &rail->kept[rail->first]);
		rail->first = (rail->first + 1) % VERBS_WINDOW;
	}
}

void verbs_rails_credited(struct verbs_link *l, uint32_t credits)
{
	verbs_rails_packet_release(&l->rails->rail[l->rails->rail[0].link == l ? 0 : 1], credits);
	verbs_rails_return(l->rails);
	verbs_rails_flush(l->rails);
}

bool verbs_rails_spared(struct verbs_link *l, const struct verbs_head *h)
{
	uint32_t returned = h->flags >> VERBS_SPARES & VERBS_SPARES_MASK;

	if (returned > VERBS_SPARE - l->spares || (!h->head && l->spares_freed == VERBS_SPARE))
		return false;
	l->spares += returned;
	l->spares_freed += !h->head;
	return true;
}

void verbs_rails_return(struct verbs_rails *r)
{
	const struct verbs_rail *first = &r->rail[0];

	if (!r->active || r->rail[1].count || !verbs_rail_usable(first) || !first->proven)
		return;
	r->active = 0;
}

bool verbs_rails_take(struct verbs_link *l, uint32_t flags, const struct packet *p)
{
	struct verbs_rails *r = l->rails;
	uint32_t ahead = ((flags >> VERBS_NUMBER) - r->got) & VERBS_NUMBER_MASK;

	if (is_disconnect(&(struct verbs_head){.head = p->head, .flags = flags}))
		return true;
	if (ahead > 1 && ahead <= VERBS_NUMBER_MASK / 2) {
		LOG_PEER(LOG_EP_DATA, "peer %#x sent packet %u behind packet %u", r->id,
			 flags >> VERBS_NUMBER, r->got);
		verbs_fail(l, FI_EPROTO);
	}
	if (ahead != 1)
		return false;
	r->got = flags >> VERBS_NUMBER;
	if (!(flags & VERBS_RAIL))
		return true;
	verbs_rails_hear(r, p);
	return false;
}

/* Takes the newest packet that the rail keeps. -FI_ENOMEM: there is no memory for a copy. */
static int requeue_last(struct verbs_rails *r, struct verbs_rail *rail)
{
	const struct verbs_kept_packet *last =
		&rail->kept[(rail->first + --rail->count) % VERBS_WINDOW];
	const unsigned char *packet = verbs_slots_at(&rail->link->own->send, last->slot);
	struct waiting *w = waiting_new(last->len - sizeof(w->head));

	if (w) {
		memcpy(&w->head, packet, sizeof(w->head));
		memcpy(w->payload, packet + sizeof(w->head), w->len);
		list_push_front(&r->queue, &w->link);
	}
	verbs_drop_kept(rail->link, last);
	return w ? 0 : -FI_ENOMEM;
}

int verbs_rails_requeue(struct verbs_rails *r, unsigned int rail)
{
	int err = 0;

	while (!err && r->rail[rail].count)
		err = requeue_last(r, &r->rail[rail]);
	return err;
}

void verbs_rails_forget(struct verbs_rails *r)
{
	struct list *node;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (r->rail[i].link)
			verbs_rails_packet_release(&r->rail[i], r->rail[i].count);
	while ((node = list_pop(&r->queue)))
		free(LIST_ENTRY(node, struct waiting, link));
}
