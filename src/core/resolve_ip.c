/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "core/resolve_ip.h"

static const char *family_name(int family)
{
	return family == AF_INET6 ? "IPv6" : "IPv4";
}

static socklen_t length_of(int family)
{
	if (family == AF_INET)
		return sizeof(struct sockaddr_in);
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

static void set(struct ip *ip, const void *addr, socklen_t len)
{
	memcpy(&ip->sa, addr, len);
	ip->len = len;
}

bool resolve_ip_read(struct ip *ip, const char *hint, const void *addr, size_t len, int *family,
		     struct refusal *why)
{
	sa_family_t theirs = AF_UNSPEC;
	socklen_t need;

	if (len == 0 || len >= sizeof(struct sockaddr))
		memcpy(&theirs, (const char *)addr + offsetof(struct sockaddr, sa_family),
		       sizeof(theirs));
	need = length_of(theirs);
	if (need == 0 || (len != 0 && len < need))
		return hints_refuse(why, "%s: no socket address (family %d, %zu bytes)", hint,
				    theirs, len);
	if (*family != AF_UNSPEC && *family != theirs)
		return hints_refuse(why, "%s: is %s, %s asked", hint, family_name(theirs),
				    family_name(*family));
	set(ip, addr, need);
	*family = theirs;
	return true;
}

/* "fi_sockaddr_in://host:port", "fi_sockaddr_in6://[host]:port" taken apart. */
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

static bool lookup(const char *node, const char *service, const struct addrinfo *how, struct ip *ip,
		   struct refusal *why)
{
	struct addrinfo *list, *best = NULL;
	int err = getaddrinfo(node, service, how, &list);

	if (err)
		return hints_refuse(why, "node %.100s, service %.50s: %s", node ? node : "(none)",
				    service ? service : "(none)", gai_strerror(err));
	for (struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		if (length_of(ai->ai_family) == 0)
			continue;
		if (!best || (best->ai_family == AF_INET6 && ai->ai_family == AF_INET))
			best = ai;
	}
	if (best)
		set(ip, best->ai_addr, length_of(best->ai_family));
	freeaddrinfo(list);
	return best || hints_refuse(why, "node %.100s: no IP address", node ? node : "(none)");
}

bool resolve_ip_lookup(const struct query *q, int *family, struct ip *ip, struct refusal *why)
{
	struct addrinfo how = {.ai_family = *family, .ai_socktype = SOCK_STREAM};
	const char *node = q->node, *service = q->service;
	char host[256], port[16];

	if (q->flags & FI_NUMERICHOST)
		how.ai_flags |= AI_NUMERICHOST;
	if (q->flags & FI_SOURCE)
		how.ai_flags |= AI_PASSIVE;
	if (node && strstr(node, "://")) {
		if (service)
			return hints_refuse(
				why, "node: \"%.100s\" is an address and takes no service", node);
		if (!split_string(node, host, sizeof(host), port, sizeof(port)))
			return hints_refuse(why, "node: \"%.100s\" is no socket address", node);
		node = host;
		service = *port ? port : NULL;
	}
	if (!lookup(node, service, &how, ip, why))
		return false;
	*family = ip->sa.sa_family;
	return true;
}

static in_port_t port_of(const struct ip *ip)
{
	return ip->sa.sa_family == AF_INET6 ? ip->in6.sin6_port : ip->in.sin_port;
}

static void set_port(struct ip *ip, in_port_t port)
{
	if (ip->sa.sa_family == AF_INET6)
		ip->in6.sin6_port = port;
	else
		ip->in.sin_port = port;
}

static bool is_any(const struct ip *ip)
{
	if (ip->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&ip->in6.sin6_addr);
	return ip->in.sin_addr.s_addr == htonl(INADDR_ANY);
}

static bool same_host(const struct ip *ip, const struct sockaddr *sa)
{
	if (!sa || sa->sa_family != ip->sa.sa_family)
		return false;
	if (sa->sa_family == AF_INET6)
		return memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, &ip->in6.sin6_addr,
			      sizeof(struct in6_addr)) == 0;
	return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == ip->in.sin_addr.s_addr;
}

/* Asks the routing table: a datagram socket is connected without sending anything. */
static bool route_to(const struct ip *dest, struct ip *src)
{
	socklen_t len = sizeof(src->in6);
	struct ip to = *dest;
	int fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (fd < 0)
		return false;
	if (port_of(&to) == 0)
		set_port(&to, htons(9));
	found = connect(fd, &to.sa, to.len) == 0 && getsockname(fd, &src->sa, &len) == 0;
	close(fd);
	if (!found)
		return false;
	src->len = length_of(src->sa.sa_family);
	set_port(src, 0);
	return true;
}

/* How well an interface's address serves as source; 0: not at all. */
static int fitness(const struct ifaddrs *ifa, int family, const char *asked)
{
	if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != family || !(ifa->ifa_flags & IFF_UP))
		return 0;
	if (asked)
		return strcmp(ifa->ifa_name, asked) == 0;
	if (ifa->ifa_flags & IFF_LOOPBACK)
		return 1;
	if (family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)ifa->ifa_addr)->sin6_addr))
		return 2;
	return ifa->ifa_flags & IFF_RUNNING ? 4 : 3;
}

static bool first_interface(const struct ifaddrs *list, int family, const char *asked,
			    struct ip *src)
{
	int best = 0;

	for (const struct ifaddrs *ifa = list; ifa; ifa = ifa->ifa_next) {
		int fit = fitness(ifa, family, asked);

		if (fit > best) {
			best = fit;
			set(src, ifa->ifa_addr, length_of(family));
		}
	}
	return best > 0;
}

static void loopback(struct ip *ip, int family)
{
	memset(ip, 0, sizeof(*ip));
	ip->len = length_of(family);
	ip->sa.sa_family = (sa_family_t)family;
	if (family == AF_INET6)
		ip->in6.sin6_addr = in6addr_loopback;
	else
		ip->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static bool find_source(const struct ifaddrs *list, const struct ip *dest, int family,
			const char *asked, struct ip *src)
{
	if (!asked && dest->len && !is_any(dest) && route_to(dest, src))
		return true;
	if (first_interface(list, family, asked, src))
		return true;
	loopback(src, family);
	return !asked;
}

/* An address may be on several interfaces; the one asked for counts. */
static void name_interface(const struct ifaddrs *list, const struct ip *src, const char *asked,
			   char *iface)
{
	for (; list; list = list->ifa_next) {
		if (!same_host(src, list->ifa_addr))
			continue;
		if (!*iface || (asked && strcmp(list->ifa_name, asked) == 0))
			snprintf(iface, IF_NAMESIZE, "%s", list->ifa_name);
	}
}

bool resolve_ip_source(struct ip *src, const struct ip *dest, int family, const char *asked,
		       char *iface, struct refusal *why)
{
	bool open = src->len == 0 || is_any(src), met = true;
	in_port_t port = src->len ? port_of(src) : 0;
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0)
		list = NULL;
	if (!asked && open)
		asked = env_get()->tcp_iface;
	if (family == AF_UNSPEC)
		family = AF_INET;
	if (open) {
		met = find_source(list, dest, family, asked, src);
		set_port(src, port);
	}
	name_interface(list, src, asked, iface);
	if (list)
		freeifaddrs(list);
	if (asked && (!met || strcmp(iface, asked) != 0))
		return hints_refuse(why,
				    "domain: \"%.60s\" asked, no such interface is up with "
				    "that %s address",
				    asked, family_name(family));
	if (open)
		LOG_INFO(LOG_CORE, "source address is that of %s", *iface ? iface : "loopback");
	return true;
}
