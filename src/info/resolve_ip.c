/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/resolve.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"

static const char *family_name(int family)
{
	return family == AF_INET6 ? "IPv6" : family == AF_INET ? "IPv4" : "IP";
}

static int resolve_ip_family_of(const struct addr *a)
{
	return a->kind == ADDR_IN6 ? AF_INET6 : AF_INET;
}

/* Returns the family that the hints' format implies. */
static int family_asked(const struct query *q)
{
	switch (q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC) {
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	default:
		return AF_UNSPEC;
	}
}

/* Reads an address from hints. All given addresses must be of one family. */
static bool read_hint(struct ip_ends *ends, struct addr *a, const char *hint, const void *from,
		      size_t len)
{
	if (addr_from_user(a, ends->strings ? ADDR_IP_STR : FI_SOCKADDR, from, len))
		return hints_refuse(&ends->why, "%s: no socket address of %zu bytes", hint, len);
	if (ends->family != AF_UNSPEC && ends->family != resolve_ip_family_of(a))
		return hints_refuse(&ends->why, "%s: is %s, %s asked", hint,
				    family_name(resolve_ip_family_of(a)),
				    family_name(ends->family));
	ends->family = resolve_ip_family_of(a);
	return true;
}

/* Splits "fi_sockaddr_in://host:port" or "fi_sockaddr_in6://[host]:port". */
static bool split_string(const char *text, char *host, size_t host_size, char *port,
			 size_t port_size)
{
	const char *at, *end, *colon;

	if (strncmp(text, "fi_sockaddr", 11) != 0)
		return false;
	at = strstr(text, "://") + 3;
	end = at + strcspn(at, "/?");
	if (*at == '[') {
		at++;
		colon = memchr(at, ']', (size_t)(end - at));
		if (!colon)
			return false;
		snprintf(host, host_size, "%.*s", (int)(colon - at), at);
		colon++;
	} else {
		colon = memchr(at, ':', (size_t)(end - at));
		snprintf(host, host_size, "%.*s", (int)((colon ? colon : end) - at), at);
	}
	*port = '\0';
	if (colon && colon < end && *colon == ':')
		snprintf(port, port_size, "%.*s", (int)(end - colon - 1), colon + 1);
	return true;
}

/* Takes the first IPv4 result, else the first IPv6 one. */
static bool resolve_ip_lookup(struct ip_ends *ends, struct addr *a, const char *node,
			      const char *service, int flags)
{
	struct addrinfo how = {
		.ai_family = ends->family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct addrinfo *list;
	int err = getaddrinfo(node, service, &how, &list);

	if (err)
		return hints_refuse(&ends->why, "node %.100s, service %.50s: %s",
				    node ? node : "(none)", service ? service : "(none)",
				    gai_strerror(err));
	a->kind = ADDR_NONE;
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (a->kind == ADDR_IN || (a->kind == ADDR_IN6 && ai->ai_family == AF_INET6))
			continue;
		addr_from_user(a, FI_SOCKADDR, ai->ai_addr, ai->ai_addrlen);
	}
	freeaddrinfo(list);
	return a->kind != ADDR_NONE ||
	       hints_refuse(&ends->why, "node %.100s: no IP address", node ? node : "(none)");
}

/* Reads node and service; one may be NULL. */
static bool read_names(struct ip_ends *ends, const struct query *q)
{
	bool source = q->flags & FI_SOURCE;
	struct addr *a = source ? &ends->src : &ends->dest;
	const char *node = q->node, *service = q->service;
	char host[256], port[16];
	int flags = (q->flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0) | (source ? AI_PASSIVE : 0);

	if (node && strstr(node, "://")) {
		if (service)
			return hints_refuse(&ends->why,
					    "node: \"%.100s\" is an address and takes no service",
					    node);
		if (!split_string(node, host, sizeof(host), port, sizeof(port)))
			return hints_refuse(&ends->why, "node: \"%.100s\" is no socket address",
					    node);
		node = host;
		service = *port ? port : NULL;
	}
	if (!resolve_ip_lookup(ends, a, node, service, flags))
		return false;
	/* A service without node gives only the port. */
	ends->all = !node && source;
	if (ends->all)
		a->kind = ADDR_NONE;
	else
		ends->family = resolve_ip_family_of(a);
	return true;
}

static bool read_ends(struct ip_ends *ends, const struct query *q)
{
	const struct fi_info *h = q->hints;
	bool named = q->node || q->service, source = q->flags & FI_SOURCE;

	ends->family = family_asked(q);
	ends->strings = h && h->addr_format == FI_ADDR_STR;
	if (h && h->src_addr && !source &&
	    !read_hint(ends, &ends->src, "src_addr", h->src_addr, h->src_addrlen))
		return false;
	if (h && h->dest_addr && (source || !named) &&
	    !read_hint(ends, &ends->dest, "dest_addr", h->dest_addr, h->dest_addrlen))
		return false;
	return !named || read_names(ends, q);
}

/* Is the host not given? */
static bool is_open(const struct addr *a)
{
	return a->kind == ADDR_NONE || addr_is_any(a);
}

static int find_out(struct ip_ends *ends, const struct query *q)
{
	int err;

	if (!read_ends(ends, q))
		return -FI_ENODATA;
	err = ifaces_read(&ends->net);
	if (err)
		return err;
	ends->all = (ends->all || addr_is_any(&ends->src)) && is_open(&ends->dest);
	if (is_open(&ends->src) && !is_open(&ends->dest) &&
	    !ifaces_route(&ends->net, &ends->dest, &ends->from)) {
		LOG_INFO(LOG_CORE, "the kernel has no route to the destination");
		ends->from.kind = ADDR_NONE;
	}
	return 0;
}

int resolve_ip_ends(struct ip_ends *ends, const struct query *q, struct refusal *why)
{
	if (!ends->known) {
		ends->known = true;
		ends->err = find_out(ends, q);
	}
	if (ends->err)
		*why = ends->why;
	return ends->err;
}

void resolve_ip_forget(struct ip_ends *ends)
{
	ifaces_free(&ends->net);
}

/* Chooses an address of this host for a source that was not given. */
static bool resolve_ip_choose(const struct ip_ends *ends, const char *name, struct addr *a)
{
	const struct iface *way = ifaces_holding(&ends->net, &ends->from, name);
	const struct iface_addr *best;
	size_t at = 0;

	if (ends->from.kind != ADDR_NONE && (!name || (way && ifaces_named(name, way->name)))) {
		*a = ends->from;
		return true;
	}
	best = ifaces_next(&ends->net, ends->family, name, &at);
	*a = best ? best->addr : addr_loopback(ends->family == AF_INET6 ? ADDR_IN6 : ADDR_IN, 0);
	return best || !name;
}

/* `asked`: one name; else `name` is a list. */
static bool resolve_ip_belongs(const struct ip_source *s, const char *asked, const char *name)
{
	return s->iface &&
	       (asked ? strcmp(s->iface->name, asked) == 0 : ifaces_named(name, s->iface->name));
}

static void resolve_ip_report(struct ip_ends *ends, const struct ip_source *s)
{
	char text[ADDR_STR_MAX];

	if (ends->logged)
		return;
	ends->logged = true;
	addr_print(&s->addr, text, sizeof(text));
	LOG_INFO(LOG_CORE, "source address is %s of %s", text,
		 s->iface ? s->iface->name : "no interface");
}

bool resolve_ip_format(uint32_t format)
{
	return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IP ||
	       format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6 || format == FI_ADDR_STR;
}

bool resolve_ip_is_open(const struct ip_ends *ends)
{
	return is_open(&ends->src);
}

bool resolve_ip_all(const struct ip_ends *ends, const char *asked, struct ip_source *s)
{
	if (!ends->all || asked || env_get()->tcp_iface)
		return false;
	*s = (struct ip_source){.addr = {.kind = s->addr.kind, .port = s->addr.port}};
	return true;
}

bool resolve_ip_source(struct ip_ends *ends, const char *asked, struct ip_source *s,
		       struct refusal *why)
{
	bool open = is_open(&ends->src), met = true;
	const char *name = asked || !open ? asked : env_get()->tcp_iface;

	s->addr = ends->src;
	if (open) {
		met = resolve_ip_choose(ends, name, &s->addr);
		s->addr.port = ends->src.port;
	}
	s->iface = ifaces_holding(&ends->net, &s->addr, name);
	if (name && (!met || !resolve_ip_belongs(s, asked, name)))
		return hints_refuse(
			why, "%s: \"%.60s\" asked, no such interface is up with %s %s address",
			asked ? "domain_attr->name" : "FI_TCP_IFACE", name, open ? "an" : "that",
			family_name(ends->family));
	resolve_ip_report(ends, s);
	return true;
}

bool resolve_ip_other(const struct ip_ends *ends, const char *asked, const struct ip_source *first,
		      size_t *at, struct ip_source *other)
{
	const struct iface_addr *a;

	if (!asked)
		asked = env_get()->tcp_iface;
	do
		a = ifaces_next(&ends->net, ends->family, asked, at);
	while (a && addr_equal(&a->addr, &first->addr));
	if (!a)
		return false;
	*other = (struct ip_source){a->addr, ifaces_of(&ends->net, a)};
	return true;
}

bool resolve_ip_inside(const struct query *q, const char *domain, struct refusal *why)
{
	if (domain)
		return hints_refuse(why, "domain_attr->name: \"%.100s\" asked", domain);
	if (q->ends->src.kind != ADDR_NONE && !addr_is_local(&q->ends->src))
		return hints_refuse(why, "src_addr: is none of this host");
	if (q->ends->dest.kind != ADDR_NONE && !addr_is_local(&q->ends->dest))
		return hints_refuse(why, "dest_addr: is none of this host");
	return true;
}
