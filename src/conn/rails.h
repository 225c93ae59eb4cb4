/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces that an endpoint uses together: FI_WEFT_RAILS. The first is that of its own address. */
#ifndef WEFT_CONN_RAILS_H
#define WEFT_CONN_RAILS_H

#include "base/addr.h"
#include "base/pool.h"
#include "link/wire.h"

struct acceptor;

struct rails {
	bool listening; /* rails_listen was called */
	uint32_t count; /* 0 or 1: there is nothing to use together */
	struct {
		struct addr addr;
		uint8_t prefix;
		uint32_t mbps;
	} rail[WIRE_RAILS_MAX];
	struct pool pool; /* of conn_rails.c: sockets that may become rails of links */
};

/* Two ends of a connection. */
struct rails_pair {
	struct addr from; /* ADDR_NONE: any */
	struct addr to;
};

/* Does FI_WEFT_RAILS ask for more than one interface? */
bool rails_asked(void);
/* Finds the interfaces for an endpoint of this address; its scope counts. What is wrong with the setting is logged. */
void rails_find(struct rails *r, const struct addr *name);
/* Listens on all but the first, once. Those where that fails are left out, which is logged. */
void rails_listen(struct rails *r, struct acceptor *a);
/* Returns them as a hello names them. */
struct wire_rails rails_list(const struct rails *r);
/*
 * Fills in the pairs of our interfaces with the peer's that are in one network; the first pair is that of `sock`, by
 * which the peer's list came. Each interface is in one pair at most. Returns their number.
 */
uint32_t rails_match(const struct rails *r, const struct wire_rails *theirs, int sock,
		     struct rails_pair pair[WIRE_RAILS_MAX]);

#endif
