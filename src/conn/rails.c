/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/rails.h"

#include <string.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/log.h"
#include "info/ifaces.h"
#include "info/rails_setting.h"
#include "conn/acceptor.h"
#include "conn/connect.h"
#include "conn/listen.h"

/* auto: a process copies hardly faster than this, and a link with rails copies twice; Mbit/s. */
#define FASTEST      25000u
#define MEGABIT      1000000u
#define RAIL_BACKLOG 128

bool rails_asked(void)
{
	return rails_setting().most > 1;
}

static bool rails_suits(const struct rails_setting *c, const struct iface *i,
			const struct iface *own)
{
	const char *only = env_get()->tcp_iface;

	if (c->names)
		return ifaces_named(c->names, i->name);
	if (only && !ifaces_named(only, i->name))
		return false;
	return i->kind >= IFACE_VETH && i->speed >= own->speed / RAILS_SLOWEST;
}

static void rails_add(struct rails *r, const struct iface_addr *a, const struct iface *i)
{
	r->rail[r->count].addr = a->addr;
	r->rail[r->count].prefix = a->prefix;
	r->rail[r->count++].mbps = (uint32_t)(i->speed / MEGABIT);
}

static bool has_interface(const struct iface *list[], uint32_t count, const struct iface *i)
{
	for (uint32_t n = 0; n < count; n++)
		if (list[n] == i)
			return true;
	return false;
}

static bool rails_same_ip(const struct addr *a, const struct addr *b)
{
	return a->kind == b->kind && !memcmp(a->ip, b->ip, sizeof(a->ip));
}

/* Several interfaces may have the same address of a link. */
static const struct iface_addr *rails_address_of(const struct ifaces *all, const struct addr *name)
{
	for (size_t i = 0; i < all->addr_count; i++) {
		const struct addr *a = &all->addr[i].addr;

		if (rails_same_ip(a, name) &&
		    (!addr_is_link_local(name) || a->scope == name->scope))
			return &all->addr[i];
	}
	return NULL;
}

/*
 * The own interface, then one address of each that suits. None of a link but the own one: all links have the same network, so
 * such an address does not tell who can be reached.
 */
static void rails_choose(struct rails *r, const struct ifaces *all, const struct addr *name,
			 const struct rails_setting *c)
{
	int family = name->kind == ADDR_IN6 ? AF_INET6 : AF_INET;
	const struct iface_addr *own = rails_address_of(all, name), *a;
	const struct iface *used[WIRE_RAILS_MAX] = {NULL};
	size_t at = 0;

	if (!own || ifaces_of(all, own)->kind == IFACE_LOOPBACK)
		return;
	used[0] = ifaces_of(all, own);
	rails_add(r, own, used[0]);
	if (c->automatic && used[0]->speed / MEGABIT > FASTEST)
		return;
	while (r->count < c->most && (a = ifaces_next(all, family, NULL, &at))) {
		const struct iface *i = ifaces_of(all, a);

		if (addr_is_link_local(&a->addr) || has_interface(used, r->count, i) ||
		    !rails_suits(c, i, used[0]))
			continue;
		used[r->count] = i;
		rails_add(r, a, i);
	}
}

void rails_find(struct rails *r, const struct addr *name)
{
	struct rails_setting c = rails_setting();
	struct ifaces all;

	if (name->kind == ADDR_STR || env_get()->advertise || ifaces_read(&all))
		return;
	ifaces_near_first(&all, "/sys");
	rails_choose(r, &all, name, &c);
	ifaces_free(&all);
	if (r->count)
		r->rail[0].addr.port = name->port;
	if (c.names && r->count == 1)
		LOG_WARN(
			LOG_EP_CTRL,
			"FI_WEFT_RAILS=%s: the endpoint uses its own interface alone: none of these "
			"is another one that is up with an address of its kind",
			c.names);
	for (uint32_t i = 1; i < r->count; i++) {
		char text[ADDR_STR_MAX + 32];

		addr_print(&r->rail[i].addr, text, sizeof(text));
		LOG_INFO(LOG_EP_CTRL, "the endpoint may use %s, too, of %u Mbit/s", text,
			 r->rail[i].mbps);
	}
}

void rails_listen(struct rails *r, struct acceptor *a)
{
	const struct listen_how how = {.network = true, .backlog = RAIL_BACKLOG};
	uint32_t good = 1;

	if (r->listening)
		return;
	r->listening = true;
	for (uint32_t i = 1; i < r->count; i++) {
		int socks[2], err = listen_bind(&r->rail[i].addr, &how, socks);

		if (err)
			continue;
		err = listen_begin(a, &how, socks);
		listen_drop(socks);
		if (!err)
			r->rail[good++] = r->rail[i];
	}
	r->count = good;
}

struct wire_rails rails_list(const struct rails *r)
{
	struct wire_rails list = {.count = r->count};

	for (uint32_t i = 0; i < r->count; i++) {
		struct wire_rail *w = &list.rail[i];

		memcpy(w->ip, r->rail[i].addr.ip, sizeof(w->ip));
		w->port = r->rail[i].addr.port;
		w->in6 = r->rail[i].addr.kind == ADDR_IN6;
		w->prefix = r->rail[i].prefix;
		w->mbps = r->rail[i].mbps;
	}
	return list;
}

static struct addr address_from(const struct wire_rail *w)
{
	struct addr a = {.kind = w->in6 ? ADDR_IN6 : ADDR_IN, .port = w->port};

	memcpy(a.ip, w->ip, w->in6 ? 16 : 4);
	return a;
}

static bool rails_same_network(const struct addr *a, const struct addr *b, unsigned int bits)
{
	unsigned int bytes = bits / 8, rest = bits % 8;

	if (a->kind != b->kind || bits > (a->kind == ADDR_IN6 ? 128u : 32u))
		return false;
	return !memcmp(a->ip, b->ip, bytes) &&
	       (!rest || (a->ip[bytes] ^ b->ip[bytes]) >> (8 - rest) == 0);
}

/* Our own end of a socket. */
static struct addr near_end(int sock)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct addr a = {.kind = ADDR_NONE};

	if (!getsockname(sock, (struct sockaddr *)&ss, &len))
		addr_from_user(&a, FI_SOCKADDR, &ss, len);
	return a;
}

/* Which of the peer's interfaces, not in `taken`, is in the network of our interface `own`? */
static uint32_t rails_partner(const struct rails *r, uint32_t own, const struct wire_rails *list,
			      uint32_t taken)
{
	uint32_t i = 0;

	for (; i < list->count; i++) {
		struct addr theirs = address_from(&list->rail[i]);

		/* Bridges of containers have the same address on many hosts. */
		if (!(taken & 1u << i) && !addr_is_link_local(&theirs) &&
		    rails_same_network(&r->rail[own].addr, &theirs, r->rail[own].prefix) &&
		    !addr_is_local(&theirs))
			break;
	}
	return i;
}

uint32_t rails_match(const struct rails *r, const struct wire_rails *theirs, int sock,
		     struct rails_pair pair[WIRE_RAILS_MAX])
{
	struct addr near = near_end(sock), far = {.kind = ADDR_NONE};
	uint32_t count = 1, taken = 0;

	if (r->count < 2 || theirs->count < 2 || !connect_remote(sock, &far) || addr_is_local(&far))
		return 0;
	for (uint32_t i = 0; i < theirs->count; i++) {
		struct addr a = address_from(&theirs->rail[i]);

		if (rails_same_ip(&a, &far)) {
			taken |= 1u << i;
			far.port = a.port; /* of its listener */
		}
	}
	if (!taken)
		return 0; /* addresses are translated between us */
	near.port = 0;
	pair[0] = (struct rails_pair){near, far};
	for (uint32_t i = 0; i < r->count && count < WIRE_RAILS_MAX; i++) {
		uint32_t other = rails_partner(r, i, theirs, taken);

		if (rails_same_ip(&r->rail[i].addr, &near) || other == theirs->count)
			continue;
		taken |= 1u << other;
		pair[count++] =
			(struct rails_pair){r->rail[i].addr, address_from(&theirs->rail[other])};
	}
	return count > 1 ? count : 0;
}
