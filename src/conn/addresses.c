/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/hello.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "info/ifaces.h"
#include "conn/connect.h"
#include "conn/station.h"

#define KEPT_MS 1000 /* interfaces come and go */

/* Addresses of the station's host for other hosts. */
struct addresses {
	uint64_t read_ms; /* ms: when they were found */
	struct wire_addresses list;
};

bool addresses_read(const struct wire_address *w, struct addr *a)
{
	*a = (struct addr){.kind = w->in6 ? ADDR_IN6 : ADDR_IN, .port = w->port};
	memcpy(a->ip, w->ip, w->in6 ? sizeof(w->ip) : 4);
	*a = addr_unmapped(a);
	return w->in6 <= 1 && w->port;
}

struct wire_address addresses_write(const struct addr *a)
{
	struct wire_address w = {.port = a->port, .in6 = a->kind == ADDR_IN6};

	memcpy(w.ip, a->ip, sizeof(w.ip));
	return w;
}

static void addresses_add(struct wire_addresses *list, const struct addr *a, uint16_t port)
{
	struct addr real = addr_unmapped(a);

	if (list->count == WIRE_ADDRESSES_MAX || addr_is_loopback(&real))
		return;
	real.port = port;
	list->at[list->count++] = addresses_write(&real);
}

/* Bridges of containers, and addresses of a link, are the same on many hosts: they name nobody. */
static bool names_host(const struct ifaces *all, const struct iface_addr *a)
{
	return ifaces_of(all, a)->kind != IFACE_BRIDGE && !addr_is_link_local(&a->addr);
}

static void addresses_find(struct station *station)
{
	struct wire_addresses *list = &station->addresses->list;
	int family = station->name.kind == ADDR_IN ? AF_INET : AF_UNSPEC;
	const struct iface_addr *a;
	struct ifaces all;
	size_t at = 0;

	if (ifaces_read(&all))
		return;
	list->count = 0;
	while ((a = ifaces_next(&all, family, NULL, &at)))
		if (names_host(&all, a))
			addresses_add(list, &a->addr, station->name.port);
	ifaces_free(&all);
}

/* Finds them when they are asked for first, and anew as they become old. NULL: no memory. */
static const struct wire_addresses *list_of(struct station *station)
{
	uint64_t now = clock_coarse_ms();
	bool first = !station->addresses;

	if (first)
		station->addresses = calloc(1, sizeof(*station->addresses));
	if (!station->addresses)
		return NULL;
	if (first || now - station->addresses->read_ms >= KEPT_MS) {
		station->addresses->read_ms = now;
		addresses_find(station);
	}
	return &station->addresses->list;
}

void addresses_tell(struct station *station, int sock, struct wire_hello *hello)
{
	const struct wire_addresses *known = list_of(station);
	struct wire_addresses list = {.count = 0};
	struct addr own;

	/* First the one that the receiver sees, if nobody between us translates it. */
	if (connect_local(sock, &own))
		addresses_add(&list, &own, station->name.port);
	for (uint32_t i = 0; known && i < known->count; i++)
		if (list.count < WIRE_ADDRESSES_MAX)
			list.at[list.count++] = known->at[i];
	memcpy(hello->data + sizeof(struct wire_rails), &list, sizeof(list));
}

unsigned int addresses_heard(const struct wire_hello *hello, struct addr at[WIRE_ADDRESSES_MAX])
{
	struct wire_addresses list;
	unsigned int count = 0;

	memcpy(&list, hello->data + sizeof(struct wire_rails), sizeof(list));
	for (uint32_t i = 0; i < list.count && i < WIRE_ADDRESSES_MAX; i++)
		if (addresses_read(&list.at[i], &at[count]))
			count++;
	return count;
}
