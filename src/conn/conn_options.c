/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/conn_options.h"

#include "conn/conn_own.h"

/* Each option of the station that has this. */
#define OPTIONS_EACH(o, station, what)                                                             \
	for (const struct conn_option *const *at = (station)->options, *o; at && (o = *at); at++)  \
		if (o->what)

bool conn_hear(struct contact *peer, const struct packet *p)
{
	if (wire_op(p->head) == WIRE_DISCONNECT) {
		conn_hear_disconnect(peer);
		return true;
	}
	OPTIONS_EACH (o, peer->station, hear) {
		if (o->packet != wire_op(p->head))
			continue;
		o->hear(peer, p);
		return true;
	}
	return false;
}

int conn_options_open(struct station *station)
{
	int err = 0;

	OPTIONS_EACH (o, station, flag)
		station->hello_flags |= o->flag;
	OPTIONS_EACH (o, station, open)
		err = err ? err : o->open(station);
	return err;
}

void conn_options_tick(struct station *station, uint64_t now)
{
	OPTIONS_EACH (o, station, tick)
		o->tick(station, now);
}

void conn_options_close(struct station *station)
{
	OPTIONS_EACH (o, station, close)
		o->close(station);
}

void conn_options_changed(struct contact *peer)
{
	OPTIONS_EACH (o, peer->station, changed)
		o->changed(peer);
}

void conn_options_await(struct contact *peer)
{
	OPTIONS_EACH (o, peer->station, await)
		o->await(peer);
}

bool conn_options_make_room(struct station *station)
{
	bool can = false;

	OPTIONS_EACH (o, station, make_room)
		can |= o->make_room(station);
	return can;
}

void conn_options_say(struct contact *peer, struct hello_fields *fields, struct wire_rails *rails)
{
	OPTIONS_EACH (o, peer->station, say)
		o->say(peer, fields, rails);
}

int conn_options_link(struct contact *peer, const struct accepted *conn, struct link_peer *lp)
{
	int err = 0;

	OPTIONS_EACH (o, peer->station, link)
		err = err ? err : o->link(peer, conn, lp);
	return err;
}

void conn_options_join(struct station *station, struct accepted *conn)
{
	OPTIONS_EACH (o, station, join) {
		o->join(station, conn);
		return;
	}
	acceptor_dismiss(conn);
}

void conn_options_socket(struct station *station, uint32_t id)
{
	OPTIONS_EACH (o, station, socket)
		o->socket(station, id);
}

void conn_rail_wanted(struct opener *opener, uint32_t src, uint32_t rail, uint32_t ms)
{
	OPTIONS_EACH (o, station_opener(opener), rail_wanted)
		o->rail_wanted(opener, src, rail, ms);
}

bool conn_rail_coming(struct opener *opener, uint32_t src)
{
	bool coming = false;

	OPTIONS_EACH (o, station_opener(opener), rail_coming)
		coming |= o->rail_coming(opener, src);
	return coming;
}
