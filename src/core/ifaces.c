/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/ifaces.h"

#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"

#define STEP 16 /* entries an array grows by */

static void *grow(void **array, size_t count, size_t size)
{
	char *larger = *array;

	if (count % STEP == 0) {
		larger = realloc(*array, (count + STEP) * size);
		if (!larger)
			return NULL;
		*array = larger;
	}
	return memset(larger + count * size, 0, size);
}

struct iface *ifaces_add(struct ifaces *all)
{
	struct iface *i = grow((void **)&all->iface, all->count, sizeof(*i));

	all->count += i != NULL;
	return i;
}

struct iface_addr *ifaces_add_addr(struct ifaces *all)
{
	struct iface_addr *a = grow((void **)&all->addr, all->addr_count, sizeof(*a));

	all->addr_count += a != NULL;
	return a;
}

void ifaces_free(struct ifaces *all)
{
	free(all->iface);
	free(all->addr);
	memset(all, 0, sizeof(*all));
}

struct iface *ifaces_at(const struct ifaces *all, int index)
{
	for (size_t n = 0; n < all->count; n++) {
		if (all->iface[n].index == index)
			return &all->iface[n];
	}
	return NULL;
}

static bool is_ip(const struct addr *a, int family)
{
	if (family == AF_UNSPEC)
		return a->kind == ADDR_IN || a->kind == ADDR_IN6;
	return a->kind == (family == AF_INET6 ? ADDR_IN6 : ADDR_IN);
}

const struct iface_addr *ifaces_next(const struct ifaces *all, int family, const char *name,
				     size_t *at)
{
	while (*at < all->addr_count) {
		const struct iface_addr *a = &all->addr[(*at)++];
		const struct iface *i = ifaces_of(all, a);

		if (!is_ip(&a->addr, family))
			continue;
		if (name ? i->up && strcmp(i->name, name) == 0 : ifaces_usable(all, a))
			return a;
	}
	return NULL;
}

static bool same_ip(const struct addr *a, const struct addr *b)
{
	return a->kind == b->kind && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0 &&
	       (a->scope == b->scope || !a->scope || !b->scope);
}

const struct iface *ifaces_holding(const struct ifaces *all, const struct addr *a, const char *name)
{
	const struct iface *found = NULL;

	for (size_t n = 0; n < all->addr_count; n++) {
		const struct iface *i = ifaces_of(all, &all->addr[n]);
		/* Loopback has its whole network. */
		bool of_lo = i->kind == IFACE_LOOPBACK && a->kind == ADDR_IN &&
			     a->ip[0] == IN_LOOPBACKNET;

		if (!of_lo && !same_ip(&all->addr[n].addr, a))
			continue;
		if (!found || (name && strcmp(i->name, name) == 0))
			found = i;
	}
	return found;
}

/* The way to a link-local address is said by its scope, not by a route. */
static bool on_link(const struct ifaces *all, const struct addr *to, struct addr *from)
{
	for (size_t n = 0; n < all->addr_count; n++) {
		const struct addr *a = &all->addr[n].addr;

		if (a->kind == ADDR_IN6 && a->scope == to->scope) {
			*from = *a;
			return true;
		}
	}
	return false;
}

bool ifaces_route(const struct ifaces *all, const struct addr *to, struct addr *from)
{
	struct in6_addr in6;

	memcpy(&in6, to->ip, sizeof(in6));
	if (to->kind == ADDR_IN6 && IN6_IS_ADDR_LINKLOCAL(&in6))
		return to->scope && on_link(all, to, from);
	return ifaces_ask_route(to, from);
}

/*
 * Megabits a second, -1 where the driver cannot say. The file is read only of what may be
 * preferred for it.
 */
static uint64_t read_speed(const char *name)
{
	char path[64];
	long long megabits = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lld", &megabits) != 1 || megabits < 0 || megabits > UINT32_MAX)
		megabits = 0;
	fclose(file);
	return (uint64_t)megabits * 1000000;
}

static void read_speeds(struct ifaces *all)
{
	for (size_t n = 0; n < all->addr_count; n++) {
		struct iface *i = &all->iface[all->addr[n].of];

		if (i->kind == IFACE_NIC && i->running && !i->speed)
			i->speed = read_speed(i->name);
	}
}

/* Where would packets to anywhere go? Addresses kept for examples are nobody's neighbours. */
static void find_far(struct ifaces *all)
{
	static const struct addr anywhere[] = {
		{.kind = ADDR_IN, .ip = {203, 0, 113, 1}},
		{.kind = ADDR_IN6, .ip = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}},
	};

	for (size_t n = 0; n < sizeof(anywhere) / sizeof(anywhere[0]); n++) {
		const struct iface *i;
		struct addr from;

		if (!ifaces_ask_route(&anywhere[n], &from))
			continue;
		i = ifaces_holding(all, &from, NULL);
		if (i)
			ifaces_at(all, i->index)->far = true;
	}
}

int ifaces_read(struct ifaces *all)
{
	int err;

	memset(all, 0, sizeof(*all));
	err = ifaces_ask(all);
	if (err) {
		ifaces_free(all);
		return err;
	}
	read_speeds(all);
	find_far(all);
	ifaces_rank(all);
	return 0;
}

static void set_loopback(struct addr *a, int family)
{
	memset(a, 0, sizeof(*a));
	a->kind = family == AF_INET6 ? ADDR_IN6 : ADDR_IN;
	if (family == AF_INET6)
		a->ip[15] = 1;
	else
		memcpy(a->ip, (const uint8_t[]){IN_LOOPBACKNET, 0, 0, 1}, 4);
}

int ifaces_default(int family, struct addr *a)
{
	const char *name = env_get()->tcp_iface;
	const struct iface_addr *best;
	struct ifaces all;
	size_t at = 0;
	int err = ifaces_read(&all);

	if (err)
		return err;
	best = ifaces_next(&all, family, name, &at);
	if (best)
		*a = best->addr;
	else if (!name)
		set_loopback(a, family);
	else
		err = -FI_EADDRNOTAVAIL;
	if (err)
		LOG_WARN(LOG_EP_CTRL, "FI_TCP_IFACE: \"%.60s\" is not up with an %s address", name,
			 family == AF_INET6 ? "IPv6" : family == AF_INET ? "IPv4" : "IP");
	ifaces_free(&all);
	return err;
}
