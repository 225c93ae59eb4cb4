/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA on links over two devices: transfers of long messages, in any order, and of operations on regions. Nobody has
 * been told yet that a transfer is there if a piece of it goes again. One of an operation waits until the peer's end of
 * the broken rail is destroyed, too: nothing of it arrives late, on top of what is written next.
 *
 * Operations keep the order of one device: a rail does what it gets in order, so an operation begins on the rail alone
 * that earlier ones are still under way on, on none if they are on both. If no rail can do one, it and all later ones
 * go by packets when those under way have ended.
 */
#include <rdma/fi_errno.h>

#include "hw/verbs/rails/verbs_rails.h"

#define ALL ((1u << VERBS_RAILS) - 1)

void verbs_rails_name(struct verbs_rails *r)
{
	LIST_EACH (node, &r->operations)
		verbs_transfer_name(r, LIST_ENTRY(node, struct verbs_transfer, link));
}

void verbs_rails_update(struct verbs_rails *r)
{
	const struct verbs_link *first = r->rail[0].link;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		r->keyed |= r->rail[i].link && r->rail[i].link->link.reaches;
	r->link.counted = first ? first->link.counted : r->link.counted;
	r->link.rdma_usable = verbs_transfer_rails(r) != 0;
	r->link.reaches = r->keyed && r->link.rdma_usable;
	verbs_rails_name(r);
}

/* ---- Order ----------------------------------------------------------------------------------- */

/*
 * Returns the mask of rails on which the operation does not overtake an earlier one. It is the first
 * that is not completely posted.
 */
static unsigned int in_order(const struct verbs_rails *r, const struct verbs_transfer *t)
{
	unsigned int busy = 0;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		busy |= r->rail[i].operations > t->on[i] ? 1u << i : 0;
	if (!busy)
		return ALL;
	return busy & (busy - 1) ? 0 : busy;
}

/* Returns the first operation from `node` on that is not completely posted, or NULL. */
static struct verbs_transfer *first_unposted(struct verbs_rails *r, struct list *node)
{
	for (; node != &r->operations; node = node->next) {
		struct verbs_transfer *t = LIST_ENTRY(node, struct verbs_transfer, link);

		if (!verbs_transfer_is_posted(t))
			return t;
	}
	return NULL;
}

static void serve_operations(struct verbs_rails *r)
{
	while (r->next && !r->giving_up) {
		struct verbs_transfer *t = r->next;

		verbs_transfer_serve(r, t, in_order(r, t));
		if (!verbs_transfer_is_posted(t))
			return;
		r->next = first_unposted(r, t->link.next);
	}
}

/* Messages and operations come first by turns, so neither waits for all of the others. */
static void verbs_rails_rdma_pump(struct verbs_rails *r)
{
	r->messages_last = !r->messages_last;
	if (r->messages_last)
		serve_operations(r);
	LIST_EACH (node, &r->messages)
		verbs_transfer_serve(r, LIST_ENTRY(node, struct verbs_transfer, link), ALL);
	serve_operations(r);
}

static void free_transfer(struct verbs_rails *r, struct verbs_transfer *t)
{
	if (r->next == t)
		r->next = first_unposted(r, t->link.next);
	verbs_transfer_free(r, t);
}

static void free_all(struct verbs_rails *r, struct list *list)
{
	while (!list_empty(list))
		free_transfer(r, LIST_ENTRY(list->next, struct verbs_transfer, link));
}

/* ---- The engine's functions ------------------------------------------------------------------ */

/* Can no rail do what is left? A device that still has a piece may access the memory. */
static bool is_hopeless(const struct verbs_rails *r, const struct verbs_transfer *t)
{
	return !verbs_transfer_suits(r, t) && !verbs_transfer_is_under_way(t);
}

int verbs_rails_rdma(struct link *link, const struct link_copy *op)
{
	struct verbs_rails *r = (struct verbs_rails *)link;
	struct verbs_transfer *t;

	if (op->at_once)
		return -FI_ENOSYS;
	if (!op->message && (r->giving_up || (op->now && r->next)))
		return -FI_EAGAIN;
	t = verbs_transfer_new(r, op);
	if (!t)
		return -FI_ENOMEM;
	list_push(op->message ? &r->messages : &r->operations, &t->link);
	if (!op->message && !r->next)
		r->next = t;
	if (op->message)
		verbs_transfer_serve(r, t, ALL);
	else
		serve_operations(r);
	if (!is_hopeless(r, t) && !(t->now && !verbs_transfer_is_posted(t))) {
		t->now = false;
		return LINK_UNDER_WAY;
	}
	free_transfer(r, t);
	return -FI_ENOMEM;
}

void verbs_rails_abort(struct link *link)
{
	struct verbs_rails *r = (struct verbs_rails *)link;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (r->rail[i].link)
			verbs_rdma_end(r->rail[i].link, true);
	free_all(r, &r->messages);
	free_all(r, &r->operations);
	r->giving_up = false;
	verbs_rails_update(r);
}

void verbs_rails_done(struct verbs_link *l, uint64_t id)
{
	struct verbs *v = l->own;
	struct verbs_rails *r = l->rails;
	struct verbs_piece *piece = pool_find(&r->own->multi->pieces, (uint32_t)id);
	uint32_t number = pool_id(l);
	struct verbs_transfer *t;

	if (!piece)
		return;
	t = piece->transfer;
	if (verbs_transfer_advance(r, piece)) {
		id = t->id;
		free_transfer(r, t);
		/* Before the engine gets back what is not done. It may close the link. */
		v->opener->events->copied(v->opener, id,
					  r->link.counted ? LINK_COUNTED : LINK_DONE);
		l = pool_find(&v->links, number);
	}
	if (l && l->rails)
		verbs_rails_resume(l->rails);
}

/* ---- Rails that break ------------------------------------------------------------------------ */

/* Takes the pieces of the transfers from the rail. */
static void verbs_rails_rdma_lose(struct verbs_rails *r, struct list *list, unsigned int rail)
{
	LIST_EACH (node, list)
		verbs_transfer_lose(r, LIST_ENTRY(node, struct verbs_transfer, link), rail);
	r->next = first_unposted(r, r->operations.next);
}

void verbs_rails_lost(struct verbs_rails *r, unsigned int rail)
{
	verbs_rails_rdma_lose(r, &r->messages, rail);
}

void verbs_rails_closed(struct verbs_rails *r, unsigned int rail)
{
	verbs_rails_rdma_lose(r, &r->operations, rail);
	verbs_rails_resume(r);
}

/* Returns a message that no rail can read, or NULL. */
static struct verbs_transfer *verbs_rails_rdma_hopeless(struct verbs_rails *r)
{
	LIST_EACH_OF (struct verbs_transfer, t, &r->messages, link) {
		if (is_hopeless(r, t)) /* NOLINT(clang-analyzer-unix.Malloc): as in list_pop */
			return t;
	}
	return NULL;
}

/* Once nothing is under way, the engine sends the operations by packets. */
static void verbs_rails_rdma_give_up(struct verbs_rails *r)
{
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (r->rail[i].operations)
			return;
	free_all(r, &r->operations);
	r->giving_up = false;
	r->own->opener->events->rma_failed(r->own->opener, r->id);
}

void verbs_rails_resume(struct verbs_rails *r)
{
	struct opener *opener = r->own->opener;
	struct verbs_transfer *t;

	verbs_rails_rdma_pump(r);
	r->giving_up |= r->next && !verbs_transfer_suits(r, r->next);
	if (r->giving_up)
		verbs_rails_rdma_give_up(r);
	while ((t = verbs_rails_rdma_hopeless(r))) {
		uint64_t id = t->id;

		free_transfer(r, t);
		opener->events->copied(opener, id, -FI_EIO);
	}
}

/* A refused operation cannot be told from others of the rail: all go by packets. */
void verbs_rails_rdma_ended(struct verbs_link *l)
{
	struct verbs_rails *r = l->rails;
	unsigned int rail = r->rail[0].link == l ? 0 : 1;

	r->giving_up |= r->rail[rail].operations > 0;
	verbs_rails_rdma_lose(r, &r->messages, rail);
	verbs_rails_rdma_lose(r, &r->operations, rail);
	verbs_rails_update(r);
	verbs_rails_resume(r);
}
