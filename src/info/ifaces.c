/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/ifaces.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"

#define STEP  16                     /* growth of an array, in entries */
#define MASKS ((size_t)3 * INT8_MAX) /* limit of the 32-bit words behind ethtool_link_settings */

static void *ifaces_grow(void **array, size_t count, size_t size)
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
	struct iface *i = ifaces_grow((void **)&all->iface, all->count, sizeof(*i));

	all->count += i != NULL;
	return i;
}

struct iface_addr *ifaces_add_addr(struct ifaces *all)
{
	struct iface_addr *a = ifaces_grow((void **)&all->addr, all->addr_count, sizeof(*a));

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

bool ifaces_named(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, len) && (at[len] == ',' || !at[len]))
			return true;
	}
	return false;
}

const struct iface_addr *ifaces_next(const struct ifaces *all, int family, const char *name,
				     size_t *at)
{
	while (*at < all->addr_count) {
		const struct iface_addr *a = &all->addr[(*at)++];
		const struct iface *i = ifaces_of(all, a);

		if (!is_ip(&a->addr, family))
			continue;
		if (name ? i->up && ifaces_named(name, i->name) : ifaces_usable(all, a))
			return a;
	}
	return NULL;
}

static bool ifaces_same_ip(const struct addr *a, const struct addr *b)
{
	return a->kind == b->kind && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0 &&
	       (a->scope == b->scope || !a->scope || !b->scope);
}

const struct iface *ifaces_holding(const struct ifaces *all, const struct addr *a, const char *name)
{
	const struct iface *found = NULL;

	for (size_t n = 0; n < all->addr_count; n++) {
		const struct iface *i = ifaces_of(all, &all->addr[n]);
		/* The loopback interface has all of 127.0.0.0/8. */
		bool of_lo = i->kind == IFACE_LOOPBACK && a->kind == ADDR_IN &&
			     a->ip[0] == IN_LOOPBACKNET;

		if (!of_lo && !ifaces_same_ip(&all->addr[n].addr, a))
			continue;
		if (!found || (name && ifaces_named(name, i->name)))
			found = i;
	}
	return found;
}

/* For link-local addresses the scope, not a route, selects the interface. */
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
	if (addr_is_link_local(to))
		return to->scope && on_link(all, to, from);
	return ifaces_ask_route(to, from);
}

/* Returns the driver's link speed in bits per second; 0: unknown. */
static uint64_t speed_of(int fd, const char *name)
{
	union {
		struct ethtool_link_settings settings;
		char room[sizeof(struct ethtool_link_settings) + MASKS * sizeof(uint32_t)];
	} ask = {.settings = {.cmd = ETHTOOL_GLINKSETTINGS}};
	struct ifreq req = {.ifr_data = (char *)&ask};
	int words;

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	/* The first call only returns the length of the masks, negated. */
	if (ioctl(fd, SIOCETHTOOL, &req))
		return 0;
	words = -ask.settings.link_mode_masks_nwords;
	if (words <= 0)
		return 0;
	memset(&ask, 0, sizeof(ask));
	ask.settings.cmd = ETHTOOL_GLINKSETTINGS;
	ask.settings.link_mode_masks_nwords = (int8_t)words;
	if (ioctl(fd, SIOCETHTOOL, &req) || ask.settings.speed == (uint32_t)SPEED_UNKNOWN)
		return 0;
	return ask.settings.speed * UINT64_C(1000000);
}

static void read_speeds(struct ifaces *all)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	for (struct iface *i = all->iface; i < all->iface + all->count; i++) {
		if (i->kind != IFACE_LOOPBACK && i->running)
			i->speed = speed_of(fd, i->name);
	}
	close(fd);
}

/* Marks interfaces of default routes: asks for routes to documentation addresses, which no host has. */
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
		*a = addr_loopback(family == AF_INET6 ? ADDR_IN6 : ADDR_IN, 0);
	else
		err = -FI_EADDRNOTAVAIL;
	if (err)
		LOG_WARN(LOG_EP_CTRL, "FI_TCP_IFACE: \"%.60s\" is not up with an %s address", name,
			 family == AF_INET6  ? "IPv6"
			 : family == AF_INET ? "IPv4"
					     : "IP");
	ifaces_free(&all);
	return err;
}
