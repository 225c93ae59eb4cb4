/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts receives and matches them with messages. */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/iov.h"
#include "base/log.h"
#include "core/cq.h"
#include "link/wire.h"
#include "xfer/defer/defer.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/budget.h"
#include "xfer/msg/rx.h"

void rx_init(struct rx *rx, struct domain *dom)
{
	memset(rx, 0, sizeof(*rx));
	rx->dom = dom;
	rx->q = rx;
	rx->addr_mask = UINT64_MAX;
	rx->any_source[false] = rx->any_source[true] = FI_ADDR_UNSPEC;
	rx->unexpected_max = env_get()->unexpected_max;
	for (int i = 0; i < 2; i++) {
		list_init(&rx->posted[i]);
		list_init(&rx->unexpected[i]);
	}
	list_init(&rx->claimed);
	list_init(&rx->paused);
	pool_init(&rx->recv_pool, sizeof(struct recv));
}

void rx_fini(struct rx *rx)
{
	struct list *node;

	if (rx->q != rx)
		rx_forget_context(rx);
	for (int i = 0; i < 2; i++) {
		LIST_EACH_SAFE (at, &rx->unexpected[i]) {
			struct unexpected *u = LIST_ENTRY(at, struct unexpected, link);

			rx_take(rx, u);
			rx_drop(u);
		}
		while ((node = list_pop(&rx->posted[i])))
			if (LIST_ENTRY(node, struct recv, link)->work)
				defer_done(LIST_ENTRY(node, struct recv, link)->work, FI_ECANCELED);
	}
	while ((node = list_pop(&rx->claimed)))
		rx_drop(LIST_ENTRY(node, struct unexpected, link));
	rx_send_xon(rx);
	rx_index_free(rx);
	pool_fini(&rx->recv_pool);
}

struct rx *xfer_rx_open(struct domain *dom)
{
	struct rx *rx = malloc(sizeof(*rx));

	if (rx)
		rx_init(rx, dom);
	return rx;
}

void xfer_rx_close(struct rx *rx)
{
	rx_fini(rx);
	free(rx);
}

/* Senders that have been inserted into the address vector since are found by their address from now on. */
static void rx_match_look_up(struct rx *rx)
{
	if (rx->budget) {
		budget_look_up(rx->budget);
		return;
	}
	LIST_EACH (node, &rx->dom->workers)
		budget_look_up(&LIST_ENTRY(node, struct worker, conn.driven.in_domain)->budget);
}

/* The oldest message of just this tag. */
static struct unexpected *of_tag(struct rx *rx, bool tagged, fi_addr_t want, uint64_t tag)
{
	struct unexpected *u;

	if (want != FI_ADDR_UNSPEC)
		rx_match_look_up(rx);
	while ((u = rx_index_find(rx, tagged, want, tag)) && want != FI_ADDR_UNSPEC &&
	       rx_source(u) != want)
		rx_index_source(rx, u, rx_source(u));
	return u;
}

struct unexpected *rx_unexpected(struct rx *rx, bool tagged, const struct recv_args *args)
{
	if (rx->index && !args->ignore)
		return of_tag(rx, tagged, args->src, args->tag);
	LIST_EACH (node, &rx->unexpected[tagged]) {
		struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

		if (rx_fits(args->src, rx_source(u), u->tag ^ args->tag, args->ignore))
			return u;
	}
	return NULL;
}

void rx_message(struct rx *rx, struct peer *peer, const struct packet *p)
{
	bool tagged = wire_flags(p->head) & WIRE_TAGGED;
	struct message m = {.peer = peer,
			    .src = contact_addr(&peer->conn),
			    .head = p->head,
			    .tag = p->tag,
			    .data = p->data,
			    .len = p->len,
			    .payload = p->payload};
	struct recv *r = rx_find_posted(rx, tagged, m.src, p->tag);

	if (r)
		rx_accept(rx, r, &m);
	else if (p->tag && !tagged) /* no receive would match it */
		LOG_PEER(LOG_EP_DATA, "%s: untagged message with tag %#llx dropped",
			 contact_text(&peer->conn), (unsigned long long)p->tag);
	else
		rx_store(rx, &m, p->len);
}

struct message rx_message_of(struct peer *peer, const struct packet *p)
{
	return (struct message){.peer = peer,
				.src = contact_addr(&peer->conn),
				.head = p->head,
				.tag = p->tag,
				.data = p->data,
				.len = p->len};
}

void rx_message_lost(struct rx *rx, struct peer *peer, const struct packet *p)
{
	struct message m = rx_message_of(peer, p);
	struct recv *r = rx_find_posted(rx, wire_flags(p->head) & WIRE_TAGGED, m.src, m.tag);

	if (r)
		rx_accept_lost(rx, r, &m);
	else
		rx_store(rx, &m, p->len);
}

void rx_atomic(struct rx *rx, struct peer *peer, const struct packet *p)
{
	struct message m = rma_match(peer, p);
	struct recv *r = rx_find_posted(rx, true, m.src, m.tag);

	if (r)
		rx_accept(rx, r, &m);
	else
		rx_store(rx, &m, p->len);
}

int rx_recv_new(struct rx *rx, const struct recv_args *args, struct recv **recv)
{
	struct recv *r;
	size_t len;
	int err = IOV_ADD_UP(args->iov, iov_len, args->iov_count, RX_IOV_MAX, &len);

	if (__builtin_expect(err, 0))
		return err;
	if (MISUSED_LIST("receive", args->iov, args->iov_count))
		return -FI_EINVAL;
	r = pool_get(&rx->recv_pool);
	if (__builtin_expect(!r, 0))
		return -FI_EAGAIN;
	list_init(&r->link);
	rx_recv_fill(r, args->src, args->tag, args->ignore, args->flags, args->context);
	r->work = args->work;
	r->len = len;
	r->iov_count = (unsigned int)args->iov_count;
	for (size_t i = 0; i < args->iov_count; i++)
		r->iov[i] = args->iov[i];
	r->plain =
		r->iov_count == 1 && !r->work && !(r->flags & FI_MULTI_RECV) ? (ssize_t)r->len : -1;
	*recv = r;
	return 0;
}

/* Gives a kept message to the receive, which may be freed then. */
static void accept_unexpected(struct rx *rx, struct recv *r, struct unexpected *u)
{
	struct message m = {.peer = u->peer,
			    .src = rx_source(u),
			    .head = u->head,
			    .tag = u->tag,
			    .data = u->data,
			    .len = u->len,
			    .payload = u->payload,
			    .from = u->sender};

	rx_take(rx, u);
	(u->lost ? rx_accept_lost : rx_accept)(u->rx, r, &m);
	rx_drop(u);
}

static int rx_claimed(struct rx *rx, bool tagged, const struct recv_args *args)
{
	struct fi_context *context = args->context;
	struct unexpected *u = context ? context->internal[0] : NULL;
	struct recv *r;
	int err;

	if (!u)
		return -FI_EINVAL;
	if (args->flags & FI_DISCARD)
		return rx_discard_claimed(rx, tagged, args);
	err = rx_recv_new(rx, args, &r);
	if (err)
		return err;
	context->internal[0] = NULL;
	r->flags &= ~FI_MULTI_RECV;
	if (wire_op(u->head) != WIRE_MSG && !u->peer) {
		rx_take(rx, u);
		rx_drop(u);
		rx_recv_fail(rx, r, FI_ECONNRESET, tagged ? FI_TAGGED : FI_MSG);
		return 0;
	}
	accept_unexpected(rx, r, u);
	return 0;
}

static int post_multi(struct rx *rx, bool tagged, struct recv *r, const struct recv_args *args)
{
	struct unexpected *u;

	list_push(&rx->posted[tagged], &r->link);
	/* The buffer is last in the list until it is used up and freed. */
	while (rx->posted[tagged].prev == &r->link && (u = rx_unexpected(rx, tagged, args)))
		accept_unexpected(rx, r, u);
	return 0;
}

/* The connection has ended: receives a message that came before. */
static int post_late(struct rx *rx, bool tagged, const struct recv_args *args)
{
	struct unexpected *u = rx_unexpected(rx, tagged, args);
	struct recv *r;
	int err;

	if (!u)
		return -FI_ENOTCONN;
	err = rx_recv_new(rx, args, &r);
	if (err)
		return err;
	if (!(args->flags & FI_MULTI_RECV)) {
		accept_unexpected(rx, r, u);
		return 0;
	}
	post_multi(rx, tagged, r, args);
	rx_fail_posted(rx, FI_ECANCELED);
	return 0;
}

/* A receive with FI_AUTH_KEY: does its source name a key? The flag means nothing elsewhere. fi_msg(3) */
static bool names_key(const struct rx *rx, const struct recv_args *args)
{
	if (!rx->dom->max_keys || args->src == FI_ADDR_UNSPEC)
		return false;
	LOG_WARN(
		LOG_EP_DATA,
		"FI_AUTH_KEY: a receive is not limited to one key: name a source with the key, or none");
	return true;
}

/* Handles calls that do more than post a receive. */
static __attribute__((noinline)) int post_special(struct rx *rx, struct worker *worker, bool tagged,
						  const struct recv_args *args)
{
	struct recv_args a = *args;
	struct recv *r;
	int err;

	a.src = rx_only_from(rx, tagged, a.src);
	if (a.flags & FI_AUTH_KEY && names_key(rx, &a))
		return -FI_EOPNOTSUPP;
	a.flags &= ~FI_AUTH_KEY;
	if (!(a.flags & RX_SPECIAL))
		return rx_post(rx, worker, tagged, &a);
	if (a.flags & FI_PEEK)
		return rx_peek(rx, worker, tagged, &a);
	if (a.flags & (FI_CLAIM | FI_DISCARD))
		return rx_claimed(rx, tagged, &a);
	if (a.flags & FI_MULTI_RECV && a.iov_count != 1)
		return -FI_EINVAL;
	if (a.flags & EP_ENDED)
		return post_late(rx, tagged, &a);
	err = rx_recv_new(rx, &a, &r);
	return err ? err : post_multi(rx, tagged, r, &a);
}

int rx_post(struct rx *rx, struct worker *worker, bool tagged, const struct recv_args *args)
{
	struct unexpected *u;
	struct recv *r;
	int err;

	if (__builtin_expect((args->flags & RX_SPECIAL) != 0, 0))
		return post_special(rx, worker, tagged, args);
	err = rx_recv_new(rx, args, &r);
	if (__builtin_expect(err, 0))
		return err;
	r->src = rx_only_from(rx, tagged, args->src);
	if (__builtin_expect(!list_empty(&rx->unexpected[tagged]), 0)) {
		struct recv_args a = *args;

		a.src = r->src;
		u = rx_unexpected(rx, tagged, &a);
		if (u) {
			accept_unexpected(rx, r, u);
			return 0;
		}
	}
	list_push(&rx->posted[tagged], &r->link);
	return 0;
}

int rx_cancel(struct rx *rx, void *context)
{
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH (node, &rx->posted[tagged]) {
			struct recv *r = LIST_ENTRY(node, struct recv, link);

			if (r->context == context && !r->work) {
				rx_recv_fail(rx, r, FI_ECANCELED, tagged ? FI_TAGGED : FI_MSG);
				return 0;
			}
		}
	return -FI_ENOENT;
}

bool rx_awaits(const struct rx *rx, fi_addr_t src)
{
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH (node, &rx->q->posted[tagged])
			if (LIST_ENTRY(node, struct recv, link)->src == src)
				return true;
	return false;
}

/* Receives that name `src` alone can match nothing any more. */
void rx_fail_directed(struct rx *rx, fi_addr_t src, int err)
{
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_SAFE (node, &rx->q->posted[tagged]) {
			struct recv *r = LIST_ENTRY(node, struct recv, link);

			if (r->src == src && src != FI_ADDR_UNSPEC)
				rx_recv_fail(rx, r, err, tagged ? FI_TAGGED : FI_MSG);
		}
}

void rx_fail_posted(struct rx *rx, int err)
{
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_SAFE (node, &rx->posted[tagged])
			rx_recv_fail(rx, LIST_ENTRY(node, struct recv, link), err,
				     tagged ? FI_TAGGED : FI_MSG);
}
