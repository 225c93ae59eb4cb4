/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/conn/conn_options.h"

#include "xfer/conn/conn_own.h"
#include "xfer/events.h"

/* Each option of the worker that has this. */
#define OPTIONS_EACH(o, worker, what)                                                              \
	for (const struct conn_option *const *at = (worker)->conn.options, *o; at && (o = *at);    \
	     at++)                                                                                 \
		if (o->what)

bool conn_hear(struct peer *peer, const struct packet *p)
{
	if (wire_op(p->head) == WIRE_DISCONNECT) {
		conn_hear_disconnect(peer);
		return true;
	}
	OPTIONS_EACH (o, peer->conn.worker, hear) {
		if (o->packet != wire_op(p->head))
			continue;
		o->hear(peer, p);
		return true;
	}
	return false;
}

int conn_options_open(struct worker *worker)
{
	int err = 0;

	OPTIONS_EACH (o, worker, flag)
		worker->conn.hello_flags |= o->flag;
	OPTIONS_EACH (o, worker, open)
		err = err ? err : o->open(worker);
	return err;
}

void conn_options_tick(struct worker *worker, uint64_t now)
{
	OPTIONS_EACH (o, worker, tick)
		o->tick(worker, now);
}

void conn_options_close(struct worker *worker)
{
	OPTIONS_EACH (o, worker, close)
		o->close(worker);
}

void conn_options_changed(struct peer *peer)
{
	OPTIONS_EACH (o, peer->conn.worker, changed)
		o->changed(peer);
}

void conn_options_await(struct peer *peer)
{
	OPTIONS_EACH (o, peer->conn.worker, await)
		o->await(peer);
}

bool conn_options_make_room(struct worker *worker)
{
	bool can = false;

	OPTIONS_EACH (o, worker, make_room)
		can |= o->make_room(worker);
	return can;
}

void conn_options_say(struct peer *peer, struct hello_fields *fields, struct wire_rails *rails)
{
	OPTIONS_EACH (o, peer->conn.worker, say)
		o->say(peer, fields, rails);
}

int conn_options_link(struct peer *peer, const struct accepted *conn, struct link_peer *lp)
{
	int err = 0;

	OPTIONS_EACH (o, peer->conn.worker, link)
		err = err ? err : o->link(peer, conn, lp);
	return err;
}

void conn_options_join(struct worker *worker, struct accepted *conn)
{
	OPTIONS_EACH (o, worker, join) {
		o->join(worker, conn);
		return;
	}
	acceptor_dismiss(conn);
}

void conn_options_socket(struct worker *worker, uint32_t id)
{
	OPTIONS_EACH (o, worker, socket)
		o->socket(worker, id);
}

void conn_rail_wanted(struct opener *opener, uint32_t src, uint32_t rail, uint32_t ms)
{
	OPTIONS_EACH (o, worker_opener(opener), rail_wanted)
		o->rail_wanted(opener, src, rail, ms);
}

bool conn_rail_coming(struct opener *opener, uint32_t src)
{
	bool coming = false;

	OPTIONS_EACH (o, worker_opener(opener), rail_coming)
		coming |= o->rail_coming(opener, src);
	return coming;
}
