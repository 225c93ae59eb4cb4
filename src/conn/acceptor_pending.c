/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/acceptor.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "conn/connect.h"
#include "conn/hello.h"
#include "conn/source.h"

#define LIMIT_MAX 4096
/* An origin may have this part of all places without being dropped at once. */
#define SHARES 16

/* Returns the limit: FI_WEFT_PENDING_MAX within its bounds. */
static unsigned int acceptor_pending_max(void)
{
	size_t max = env_get()->pending_max;

	return max < 1 ? 1 : max > LIMIT_MAX ? LIMIT_MAX : (unsigned int)max;
}

unsigned int acceptor_pending_places(const struct acceptor *a)
{
	return a->lacks_files ? 1 : acceptor_pending_max();
}

static struct origin *origin_of(struct acceptor *a, int sock, pid_t pid)
{
	struct addr from = {.kind = ADDR_NONE};
	uint64_t id = pid < 0 && connect_remote(sock, &from) ? source_id(&from) : 0;
	struct origin *o;

	LIST_EACH (node, &a->origins) {
		o = LIST_ENTRY(node, struct origin, in_acceptor);
		if (o->pid == pid && o->id == id)
			return o;
	}
	o = pool_get(&a->origin_pool);
	if (!o)
		return NULL;
	from.port = 0;
	*o = (struct origin){.addr = from, .id = id, .pid = pid};
	list_init(&o->pending);
	list_push(&a->origins, &o->in_acceptor);
	return o;
}

static void free_empty(struct acceptor *a, struct origin *o)
{
	if (o->count)
		return;
	list_remove(&o->in_acceptor);
	pool_put(&a->origin_pool, o);
}

/* The oldest come first: one that is held has its time from before. */
static void acceptor_pending_enter(struct origin *o, struct pending *p)
{
	struct list *at = &o->pending;

	while (at->prev != &o->pending &&
	       LIST_ENTRY(at->prev, struct pending, in_origin)->since > p->since)
		at = at->prev;
	list_insert_before(at, &p->in_origin);
	o->count++;
}

struct pending *acceptor_pending_add(struct acceptor *a, int sock, pid_t pid, uint64_t since)
{
	struct origin *o = origin_of(a, sock, pid);
	struct pending *p = o ? pool_get(&a->pool) : NULL;

	if (!p) {
		if (o)
			free_empty(a, o);
		return NULL;
	}
	*p = (struct pending){.origin = o, .sock = sock, .since = since};
	list_init(&p->in_held);
	acceptor_pending_enter(o, p);
	a->count++;
	return p;
}

void acceptor_pending_free(struct acceptor *a, struct pending *p)
{
	struct origin *o = p->origin;

	list_remove(&p->in_origin);
	list_remove(&p->in_held);
	if (p->held) {
		a->held_count--;
		explicit_bzero(&p->held->auth, sizeof(p->held->auth));
		free(p->held);
	}
	auth_end(&p->auth);
	pool_put(&a->pool, p);
	a->count--;
	o->count--;
	free_empty(a, o);
}

bool acceptor_pending_inside(const struct pending *p)
{
	return p->origin->pid >= 0;
}

bool acceptor_pending_readable(int sock)
{
	struct pollfd poll_in = {.fd = sock, .events = POLLIN};

	return poll(&poll_in, 1, 0) == 1;
}

static void name_origin(const struct origin *o, char *text, size_t len)
{
	if (o->pid >= 0)
		snprintf(text, len, "process %d", (int)o->pid);
	else
		addr_print(&o->addr, text, len);
}

/* Closes a connection that has said nothing since `since`. */
static void acceptor_pending_silent(struct acceptor *a, struct pending *p, uint64_t now)
{
	struct accepted conn = {
		.sock = p->sock, .inside = acceptor_pending_inside(p), .pid = p->origin->pid};
	char from[ADDR_STR_MAX + 32];

	a->dropped++;
	if (p->auth) {
		auth_refuse(a->auth, &conn, "it did not prove its key in time");
	} else {
		name_origin(p->origin, from, sizeof(from));
		LOG_PEER(LOG_EP_CTRL,
			 "%s connected and said nothing for %u ms: closed; it has %u of %u pending "
			 "connections (FI_WEFT_PENDING_MAX=%u), %llu were closed so far",
			 from, (unsigned int)(now - p->since), p->origin->count, a->count,
			 acceptor_pending_max(), (unsigned long long)a->dropped);
	}
	connect_close(p->sock);
	acceptor_pending_free(a, p);
}

static void drop_held(struct acceptor *a, struct pending *p)
{
	char from[ADDR_STR_MAX + 32];

	a->dropped++;
	name_origin(p->origin, from, sizeof(from));
	LOG_PEER(LOG_EP_CTRL,
		 "%s waits in the name of a peer that is connected, and others wait: sent away; "
		 "it has %u of %u pending connections (FI_WEFT_PENDING_MAX=%u)",
		 from, p->origin->count, a->count, acceptor_pending_max());
	hello_send(NULL, p->sock, p->held->inside,
		   &(struct hello_fields){
			   .kind = HELLO_REJECT, .error = FI_EAGAIN, .auth = &p->held->auth});
	acceptor_dismiss(p->held);
	acceptor_pending_free(a, p);
}

/*
 * Drops the origin's oldest connection without a hello, else the oldest one that is held. An origin with no more than
 * its share has ACCEPTOR_FULL_MS for the hello, as has each connection that was asked to prove its key: the answer takes a
 * round trip. True: one was dropped.
 */
static bool drop_oldest(struct acceptor *a, struct origin *o, uint64_t now)
{
	bool greedy = o->count > (acceptor_pending_places(a) + SHARES - 1) / SHARES;
	struct pending *held = NULL;

	LIST_EACH_OF (struct pending, p, &o->pending, in_origin) {
		bool young = now - p->since < ACCEPTOR_FULL_MS;

		if (!greedy && young)
			break;
		if (p->auth && young)
			continue;
		if (p->held) {
			held = held ? held : p;
		} else if (!acceptor_pending_readable(p->sock)) {
			acceptor_pending_silent(a, p, now);
			return true;
		} /* else its hello is there: the next events take it */
	}
	if (held)
		drop_held(a, held);
	return held;
}

/* The origin that has most, of those that were not passed. */
static struct origin *acceptor_pending_largest(struct acceptor *a)
{
	struct origin *most = NULL;

	LIST_EACH_OF (struct origin, o, &a->origins, in_acceptor) {
		if (!o->passed && (!most || o->count > most->count))
			most = o;
	}
	return most;
}

bool acceptor_pending_room(struct acceptor *a)
{
	uint64_t now = clock_coarse_ms();
	struct origin *o;

	if (a->count < acceptor_pending_places(a))
		return true;
	LIST_EACH (node, &a->origins)
		LIST_ENTRY(node, struct origin, in_acceptor)->passed = false;
	while ((o = acceptor_pending_largest(a))) {
		if (drop_oldest(a, o, now))
			return true;
		o->passed = true;
	}
	return false;
}

/* The origin's oldest connection that is overdue; NULL: none. */
static struct pending *acceptor_pending_overdue(const struct origin *o, uint64_t now, uint64_t age)
{
	LIST_EACH_OF (struct pending, p, &o->pending, in_origin) {
		if (now - p->since < age)
			return NULL;
		if (!p->held && !acceptor_pending_readable(p->sock))
			return p;
	}
	return NULL;
}

bool acceptor_pending_expire(struct acceptor *a, uint64_t age)
{
	uint64_t now = clock_coarse_ms();
	bool any = false;

	LIST_EACH_SAFE_OF (struct origin, o, &a->origins, in_acceptor) {
		unsigned int left = o->count; /* the last one takes the origin with it */
		struct pending *p;

		while (left-- && (p = acceptor_pending_overdue(o, now, age))) {
			acceptor_pending_silent(a, p, now);
			any = true;
		}
	}
	return any;
}

void acceptor_pending_close(struct acceptor *a)
{
	while (a->count) {
		struct origin *o = LIST_ENTRY(a->origins.next, struct origin, in_acceptor);
		struct pending *p = LIST_ENTRY(o->pending.next, struct pending, in_origin);

		if (p->held)
			acceptor_dismiss(p->held);
		else
			connect_close(p->sock);
		acceptor_pending_free(a, p);
	}
}
