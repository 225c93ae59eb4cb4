/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/av_insert.h"

#define NODE_MAX 256 /* bytes of a host's name with its NUL */

/* A node of the range: its address at the first service, or an error. */
struct site {
	struct addr addr;
	int err;
};

static int av_svc_family_of(uint32_t format)
{
	switch (format) {
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	default:
		return AF_UNSPEC;
	}
}

static bool av_svc_fits(uint32_t format, const struct addr *a)
{
	int family = av_svc_family_of(format);

	if (format == FI_ADDR_IB_UD)
		return a->kind == ADDR_IB;
	if (format == FI_ADDR_STR || a->kind == ADDR_STR)
		return format == FI_ADDR_STR && a->kind == ADDR_STR;
	return family == AF_UNSPEC || family == (a->kind == ADDR_IN ? AF_INET : AF_INET6);
}

/* Reads a complete address as text: the only way for strings, one of two for IP formats. */
static int read_uri(uint32_t format, const char *node, struct addr *a)
{
	int err = format == FI_ADDR_STR ? addr_from_user(a, format, node, 0) : addr_parse(a, node);

	if (err)
		return err;
	if (av_svc_fits(format, a))
		return 0;
	addr_free(a);
	return -FI_EINVAL;
}

static int av_svc_look_up(uint32_t format, const char *node, const char *service, struct addr *a)
{
	struct addrinfo hints = {.ai_family = av_svc_family_of(format), .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int err = getaddrinfo(node, service, &hints, &found);

	if (err) {
		LOG_WARN(LOG_AV, "host %s, service %s: %s", node ? node : "(none)", service,
			 gai_strerror(err));
		return err == EAI_MEMORY ? -FI_ENOMEM : -FI_EADDRNOTAVAIL;
	}
	err = addr_from_user(a, FI_SOCKADDR, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return err;
}

static int av_svc_resolve(uint32_t format, const char *node, const char *service, struct addr *a)
{
	if (node && !service)
		return read_uri(format, node, a);
	if (!service || format == FI_ADDR_STR || format == FI_ADDR_IB_UD)
		return -FI_EINVAL;
	return av_svc_look_up(format, node, service, a);
}

static bool is_numeric(const char *node)
{
	unsigned char ip[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, node, ip) == 1 || inet_pton(AF_INET6, node, ip) == 1;
}

static int advance_ip(struct addr *a, size_t add)
{
	for (int i = a->kind == ADDR_IN ? 3 : 15; i >= 0 && add; i--) {
		add += a->ip[i];
		a->ip[i] = (uint8_t)add;
		add >>= 8;
	}
	return add ? -FI_EADDRNOTAVAIL : 0;
}

/* "host09" and 2 make "host11": the number at the end goes on and keeps its width. */
static int advance_name(const char *node, size_t add, char *name)
{
	size_t len = strlen(node), stem = len;
	unsigned long long number;

	while (stem && node[stem - 1] >= '0' && node[stem - 1] <= '9')
		stem--;
	if (stem == len || len - stem > 18) /* 18 digits fit into `number` */
		return -FI_EINVAL;
	number = strtoull(node + stem, NULL, 10) + add;
	if (snprintf(name, NODE_MAX, "%.*s%0*llu", (int)stem, node, (int)(len - stem), number) >=
	    NODE_MAX)
		return -FI_EINVAL;
	return 0;
}

/* Resolves node `i` > 0 of the range; sites[0] is known. */
static int resolve_further(uint32_t format, const char *node, size_t i, const char *service,
			   struct site *sites)
{
	char name[NODE_MAX];
	int err;

	if (is_numeric(node)) {
		sites[i] = sites[0];
		return sites[i].err ? sites[i].err : advance_ip(&sites[i].addr, i);
	}
	err = advance_name(node, i, name);
	return err ? err : av_svc_resolve(format, name, service, &sites[i].addr);
}

static void insert_sites(struct av_insertion *in, struct site *sites, size_t svccnt)
{
	for (size_t i = 0; i < in->count; i++) {
		const struct site *site = &sites[i / svccnt];
		struct addr a = site->addr; /* a string has one site and one service */
		size_t port = a.port + i % svccnt;
		int err = site->err;

		if (!err && svccnt > 1 && (port > UINT16_MAX || !a.port))
			err = -FI_EADDRNOTAVAIL;
		a.port = (uint16_t)port;
		av_insert_next(in, &a, err);
	}
}

/* The string of the first site goes to the vector or is freed here. */
static int insert_all(struct av_insertion *in, struct site *sites, size_t svccnt)
{
	int err = av_insert_begin(in);

	if (err) {
		if (!sites[0].err)
			addr_free(&sites[0].addr);
		return err;
	}
	insert_sites(in, sites, svccnt);
	return av_insert_end(in);
}

int av_svc_insert_range(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct av_insertion in = {
		.av = av_of(fid), .fi_addr = fi_addr, .flags = flags, .context = context};
	struct site *sites;
	int ret;

	if (!node && (!service || nodecnt > 1))
		return -FI_EINVAL;
	if (!service && (nodecnt > 1 || svccnt > 1))
		return -FI_EINVAL;
	if (__builtin_mul_overflow(nodecnt, svccnt, &in.count) || in.count > INT_MAX)
		return -FI_EINVAL;
	sites = calloc(nodecnt + 1, sizeof(*sites));
	if (!sites)
		return -FI_ENOMEM;
	for (size_t i = 0; i < nodecnt && in.count; i++)
		sites[i].err = i ? resolve_further(in.av->format, node, i, service, sites)
				 : av_svc_resolve(in.av->format, node, service, &sites[0].addr);
	ret = insert_all(&in, sites, svccnt);
	free(sites);
	return ret;
}

int av_svc_insert(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr,
		  uint64_t flags, void *context)
{
	return av_svc_insert_range(fid, node, 1, service, 1, fi_addr, flags, context);
}
