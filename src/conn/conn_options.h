/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of connecting that a build can do without: it lacks the part's file, and its line in conn_options_table.c. Only that
 * table names them. Domain locked.
 */
#ifndef WEFT_CONN_OPTIONS_H
#define WEFT_CONN_OPTIONS_H

#include "conn/hello.h"

struct accepted;

/* What an option does when; NULL: nothing. */
struct conn_option {
	enum wire_op packet; /* the kind that it hears, if there is `hear` */
	uint16_t flag;       /* in hellos of ours, WIRE_HELLO_ */
	/* Handles a packet of its kind. The peer may be freed. */
	void (*hear)(struct contact *peer, const struct packet *p);
	/* The station is being opened: 0 or a negative error, which is logged. */
	int (*open)(struct station *station);
	/* Called often. */
	void (*tick)(struct station *station, uint64_t now);
	/* All peers are gone. */
	void (*close)(struct station *station);
	/* The peer has lost its link, or is freed. */
	void (*changed)(struct contact *peer);
	/* An operation waits for the peer, which alone can connect. */
	void (*await)(struct contact *peer);
	/* No descriptor is free. False: it can never make room. */
	bool (*make_room)(struct station *station);
	/* Our hello, or our answer, goes out to the peer: adds fields, in the memory of *rails. */
	void (*say)(struct contact *peer, struct hello_fields *fields, struct wire_rails *rails);
	/* A LINK_SOCKET is about to be made by the peer's hello: adds to *lp. 0 or a negative error. */
	int (*link)(struct contact *peer, const struct accepted *conn, struct link_peer *lp);
	/* HELLO_JOIN has come, or what else a listener for it takes. Owns `conn`. */
	void (*join)(struct station *station, struct accepted *conn);
	/* A socket of this STATION_RAIL has something to tell. */
	void (*socket)(struct station *station, uint32_t id);
	/* Of struct link_events. */
	void (*rail_wanted)(struct opener *o, uint32_t src, uint32_t rail, uint32_t ms);
	bool (*rail_coming)(struct opener *o, uint32_t src);
};

extern const struct conn_option conn_retire_option, conn_relay_option, conn_introduce_option,
	conn_rails_option;
/* Those of this build; the last one is NULL. conn_options_table.c */
extern const struct conn_option *const conn_options[];

/* Each does what all options do that have it: station->options, which is conn_options. */
int conn_options_open(struct station *station);
void conn_options_tick(struct station *station, uint64_t now);
void conn_options_close(struct station *station);
void conn_options_changed(struct contact *peer);
void conn_options_await(struct contact *peer);
bool conn_options_make_room(struct station *station);
void conn_options_say(struct contact *peer, struct hello_fields *fields, struct wire_rails *rails);
int conn_options_link(struct contact *peer, const struct accepted *conn, struct link_peer *lp);
void conn_options_join(struct station *station, struct accepted *conn);
void conn_options_socket(struct station *station, uint32_t id);

#endif
