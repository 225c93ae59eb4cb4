/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom a hello means. Names are believed, but for an address of this host that comes from another one. An endpoint that
 * all addresses of its host reach has one name, and may be in the address vector by another address, which its hello
 * tells. Inside this host that may be any.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/av.h"
#include "conn/hello.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

bool conn_names_afar(const struct accepted *conn, struct addr *from)
{
	return !conn->inside && connect_remote(conn->sock, from) && !addr_is_local(from);
}

/*
 * Replaces an address of this host, loopback or not, in the hello of a peer across the network by
 * the address that it connects from.
 */
static void name_by_socket(const struct accepted *conn, struct addr *name)
{
	struct addr from;
	uint16_t port = name->port;

	if (!addr_is_local(name) || !conn_names_afar(conn, &from))
		return;
	*name = from;
	name->port = port;
}

/*
 * Fills in the sender's further addresses. None of this host is believed to be one of another, and closed endpoints
 * believe none.
 */
static void hear_also(const struct station *station, const struct accepted *conn,
		      const struct addr *name, struct peer_also *also)
{
	struct addr from, list[WIRE_ADDRESSES_MAX];
	bool afar = conn_names_afar(conn, &from);
	unsigned int count;

	also->count = 0;
	if (!(conn->hello.flags & WIRE_HELLO_ALL) || name->kind == ADDR_STR)
		return;
	if (!afar && addr_is_local(name))
		also->at[also->count++] = addr_loopback(addr_unmapped(name).kind, name->port);
	if (!afar || station->auth.closed)
		return;
	count = addresses_heard(&conn->hello, list);
	for (unsigned int i = 0; i < count; i++)
		if (list[i].port == name->port && !addr_is_local(&list[i]))
			also->at[also->count++] = list[i];
}

/* If the vector does not have the name, but another address of the sender, that is its name. */
static void name_by_entry(struct station *station, const struct accepted *conn, struct addr *name,
			  const struct peer_also *also)
{
	const struct addr *known;

	if (!also->count || !station->av)
		return;
	known = av_addr(station->av, contact_entry(station, name, also, conn->auth.slot));
	if (known)
		*name = *known;
}

int conn_names_sender(struct station *station, const struct accepted *conn, struct addr *name,
		      struct peer_also *also)
{
	int err = hello_name(&conn->hello, name);

	if (err)
		return err;
	addr_map(name, station->name.kind);
	name_by_socket(conn, name);
	hear_also(station, conn, name, also);
	name_by_entry(station, conn, name, also);
	return 0;
}

void conn_names_keep(struct contact *peer, const struct peer_also *also)
{
	if (also->count && !peer->also)
		peer->also = malloc(sizeof(*also));
	if (also->count && peer->also)
		*peer->also = *also;
}

/* Returns the connected peer that is this run of an endpoint, or NULL. */
static struct contact *connected_run(const struct contact *peer, uint64_t incarnation)
{
	LIST_EACH_OF (struct contact, other, &peer->station->peers_list, in_station) {
		if (other != peer && contact_linked(other) && other->key_slot == peer->key_slot &&
		    other->incarnation == incarnation)
			return other;
	}
	return NULL;
}

bool conn_names_join(struct contact *peer, const struct wire_hello *hello)
{
	struct contact *other = connected_run(peer, hello->incarnation);
	char text[ADDR_STR_MAX + 32];

	if (!other)
		return false;
	addr_print(&other->name, text, sizeof(text));
	LOG_INFO(LOG_EP_CTRL, "%s is %s, which is connected", contact_text(peer), text);
	contact_failed(peer, FI_EADDRINUSE);
	contact_hand_over(peer, other);
	conn_forget(peer);
	return true;
}
