/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "core/resolve.h"
#include "core/resolve_ip.h"

/* Copies an address into an entry. */
static int keep(void **member, size_t *member_len, const void *addr, size_t len)
{
	void *copy = malloc(len);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, addr, len);
	*member = copy;
	*member_len = len;
	return 0;
}

static int keep_domain(struct fi_info *info, const char *name)
{
	info->domain_attr->name = strdup(name);
	return info->domain_attr->name ? 0 : -FI_ENOMEM;
}

static int keep_ip(void **member, size_t *member_len, const struct ip *ip)
{
	return ip->len ? keep(member, member_len, &ip->sa, ip->len) : 0;
}

/* The family a format stands for; AF_UNSPEC: either; -1: none. */
static int family_of(uint32_t format)
{
	switch (format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
		return AF_UNSPEC;
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	default:
		return -1;
	}
}

/* What was said of both ends; each may stay unknown (len 0). */
static bool ip_ends(const struct query *q, int *family, struct ip *src, struct ip *dest,
		    struct refusal *why)
{
	const struct fi_info *h = q->hints;
	bool named = q->node || q->service, source = q->flags & FI_SOURCE;

	if (h && h->src_addr && !source &&
	    !resolve_ip_read(src, "src_addr", h->src_addr, h->src_addrlen, family, why))
		return false;
	if (h && h->dest_addr && (source || !named) &&
	    !resolve_ip_read(dest, "dest_addr", h->dest_addr, h->dest_addrlen, family, why))
		return false;
	return !named || resolve_ip_lookup(q, family, source ? src : dest, why);
}

static int resolve_sockets(const struct view *v, const struct query *q, struct fi_info *info,
			   struct refusal *why)
{
	const char *asked = q->hints && q->hints->domain_attr ? q->hints->domain_attr->name : NULL;
	uint32_t format = q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC;
	struct ip src = {.len = 0}, dest = {.len = 0};
	int family = family_of(format), ret;
	char iface[IF_NAMESIZE] = "";

	if (family < 0) {
		hints_refuse_value(why, "addr_format", FI_TYPE_ADDR_FORMAT, format, v->format);
		return -FI_ENODATA;
	}
	/* The view's own name for the domain says nothing of an interface. */
	if (asked && strcmp(asked, v->domain) == 0)
		asked = NULL;
	if (!ip_ends(q, &family, &src, &dest, why) ||
	    !resolve_ip_source(&src, &dest, family, asked, iface, why))
		return -FI_ENODATA;
	info->addr_format = src.sa.sa_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	ret = keep_ip(&info->src_addr, &info->src_addrlen, &src);
	if (!ret)
		ret = keep_ip(&info->dest_addr, &info->dest_addrlen, &dest);
	return ret ? ret : keep_domain(info, *iface ? iface : v->domain);
}

/* "fi_ns://node:service" needs nothing more to be unique, "fi_shm://node" does. */
static bool string_name(char *out, const struct query *q, struct refusal *why)
{
	int len;

	if (q->node && strstr(q->node, "://")) {
		if (q->service)
			return hints_refuse(why,
					    "node: \"%.100s\" is an address and takes no service",
					    q->node);
		len = snprintf(out, ADDR_STR_MAX, "%s", q->node);
	} else if (q->node && q->service) {
		len = snprintf(out, ADDR_STR_MAX, "fi_ns://%s:%s", q->node, q->service);
	} else if (q->service) {
		len = snprintf(out, ADDR_STR_MAX, "fi_ns://%s", q->service);
	} else {
		len = snprintf(out, ADDR_STR_MAX, "fi_shm://%s", q->node);
	}
	return len < ADDR_STR_MAX ||
	       hints_refuse(why, "node and service: %d characters, %d are the most", len,
			    ADDR_STR_MAX - 1);
}

/* Takes over a string of the hints, whose length may be wrong or leave out the terminator. */
static bool string_read(char *out, const char *hint, const void *addr, size_t len,
			struct refusal *why)
{
	size_t n = strnlen(addr, len && len < ADDR_STR_MAX ? len : ADDR_STR_MAX);

	if (n >= ADDR_STR_MAX)
		return hints_refuse(why, "%s: longer than %d characters", hint, ADDR_STR_MAX - 1);
	memcpy(out, addr, n);
	out[n] = '\0';
	return true;
}

static bool string_ends(const struct query *q, char *src, char *dest, struct refusal *why)
{
	const struct fi_info *h = q->hints;
	bool named = q->node || q->service, source = q->flags & FI_SOURCE;

	if (h && h->src_addr && !source &&
	    !string_read(src, "src_addr", h->src_addr, h->src_addrlen, why))
		return false;
	if (h && h->dest_addr && (source || !named) &&
	    !string_read(dest, "dest_addr", h->dest_addr, h->dest_addrlen, why))
		return false;
	return !named || string_name(source ? src : dest, q, why);
}

static int resolve_strings(const struct view *v, const struct query *q, struct fi_info *info,
			   struct refusal *why)
{
	const char *asked = q->hints && q->hints->domain_attr ? q->hints->domain_attr->name : NULL;
	uint32_t format = q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC;
	char src[ADDR_STR_MAX] = "", dest[ADDR_STR_MAX] = "";
	int ret;

	if (format != FI_FORMAT_UNSPEC && format != v->format) {
		hints_refuse_value(why, "addr_format", FI_TYPE_ADDR_FORMAT, format, v->format);
		return -FI_ENODATA;
	}
	if (asked && strcmp(asked, v->domain) != 0) {
		hints_refuse(why, "domain_attr->name: \"%.100s\" asked, \"%s\" offered", asked,
			     v->domain);
		return -FI_ENODATA;
	}
	if (!string_ends(q, src, dest, why))
		return -FI_ENODATA;
	if (!*src)
		snprintf(src, sizeof(src), "fi_shm://%d", (int)getpid());
	info->addr_format = v->format;
	ret = keep(&info->src_addr, &info->src_addrlen, src, strlen(src) + 1);
	if (!ret && *dest)
		ret = keep(&info->dest_addr, &info->dest_addrlen, dest, strlen(dest) + 1);
	return ret ? ret : keep_domain(info, v->domain);
}

int resolve(const struct view *v, const struct query *q, struct fi_info *info, struct refusal *why)
{
	return v->format == FI_ADDR_STR ? resolve_strings(v, q, info, why)
					: resolve_sockets(v, q, info, why);
}
