/* SPDX-License-Identifier: BSD-2-Clause */
#include <ifaddrs.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/forked.h"

#define KEPT_MS 1000

/* Addresses of this host's interfaces; guarded by FORKED_INTERFACES, read again after KEPT_MS. */
static struct addr *mine;
static size_t mine_count;
static uint64_t read_at; /* clock_coarse_ms */

static size_t count_ifaddrs(const struct ifaddrs *list)
{
	size_t n = 0;

	for (; list; list = list->ifa_next)
		n++;
	return n;
}

/* Keeps the old addresses on failure. */
static void read_interfaces(void)
{
	struct ifaddrs *list;
	struct addr *found;
	size_t n = 0;

	if (getifaddrs(&list))
		return;
	found = calloc(count_ifaddrs(list) + 1, sizeof(*found));
	if (found) {
		for (struct ifaddrs *i = list; i; i = i->ifa_next)
			if (i->ifa_addr &&
			    addr_from_user(&found[n], FI_SOCKADDR, i->ifa_addr, 0) == 0)
				n++;
		free(mine);
		mine = found;
		mine_count = n;
	}
	freeifaddrs(list);
}

static bool is_interface(const struct addr *a)
{
	uint64_t now = clock_coarse_ms();
	bool found = false;

	forked_take(FORKED_INTERFACES);
	if (!mine || now - read_at >= KEPT_MS) {
		read_interfaces();
		read_at = now;
	}
	for (size_t i = 0; mine && i < mine_count && !found; i++)
		found = mine[i].kind == a->kind && memcmp(mine[i].ip, a->ip, sizeof(a->ip)) == 0;
	forked_give(FORKED_INTERFACES);
	return found;
}

static const uint8_t mapped[12] = {[10] = 0xff, 0xff};

void addr_map(struct addr *a, uint8_t kind)
{
	if (a->kind != ADDR_IN || kind != ADDR_IN6)
		return;
	a->kind = ADDR_IN6;
	memcpy(a->ip + sizeof(mapped), a->ip, 4);
	memcpy(a->ip, mapped, sizeof(mapped));
}

struct addr addr_unmapped(const struct addr *a)
{
	struct addr v4 = {.kind = ADDR_IN, .port = a->port};

	if (a->kind != ADDR_IN6 || memcmp(a->ip, mapped, sizeof(mapped)) != 0)
		return *a;
	memcpy(v4.ip, a->ip + sizeof(mapped), 4);
	return v4;
}

bool addr_is_any(const struct addr *a)
{
	static const uint8_t any[sizeof(a->ip)];

	return (a->kind == ADDR_IN || a->kind == ADDR_IN6) && memcmp(a->ip, any, sizeof(any)) == 0;
}

static const uint8_t loopback6[16] = {[15] = 1};

struct addr addr_loopback(uint8_t kind, uint16_t port)
{
	struct addr a = {.kind = kind, .port = port, .ip = {IN_LOOPBACKNET, 0, 0, 1}};

	if (kind == ADDR_IN6)
		memcpy(a.ip, loopback6, sizeof(loopback6));
	return a;
}

bool addr_is_loopback(const struct addr *a)
{
	struct addr real = addr_unmapped(a);

	if (real.kind == ADDR_IN6)
		return memcmp(real.ip, loopback6, sizeof(loopback6)) == 0;
	return real.kind == ADDR_IN && real.ip[0] == IN_LOOPBACKNET;
}

bool addr_is_link_local(const struct addr *a)
{
	return a->kind == ADDR_IN6 && a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

bool addr_is_local(const struct addr *a)
{
	struct addr real = addr_unmapped(a);

	if (a->kind == ADDR_STR)
		return true;
	if (a->kind == ADDR_NONE)
		return false;
	return addr_is_loopback(&real) || addr_is_any(&real) || is_interface(&real);
}

/* ---- Addresses for applications that use strings for all of them; fi_shm:// names ---- */

static bool as_text(const struct addr *a, uint32_t format)
{
	return format == ADDR_IP_STR && (a->kind == ADDR_IN || a->kind == ADDR_IN6);
}

size_t addr_format_len(const struct addr *a, uint32_t format)
{
	char text[ADDR_STR_MAX];

	if (!as_text(a, format))
		return addr_user_len(a);
	addr_print(a, text, sizeof(text));
	return strlen(text) + 1;
}

int addr_to_format(const struct addr *a, uint32_t format, void *buf, size_t *len)
{
	char text[ADDR_STR_MAX];
	struct addr shown = {.kind = ADDR_STR, .str = text};

	if (!as_text(a, format))
		return addr_to_user(a, buf, len);
	addr_print(a, text, sizeof(text));
	return addr_to_user(&shown, buf, len);
}

int addr_of_process(struct addr *a)
{
	char text[ADDR_STR_MAX];

	snprintf(text, sizeof(text), "fi_shm://%d", (int)getpid());
	return addr_from_user(a, FI_ADDR_STR, text, 0);
}
