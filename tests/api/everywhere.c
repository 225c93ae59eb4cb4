/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listener without an address of its own, or with a wildcard, is reached by each interface. In a
 * network namespace of its own, with two interfaces. fi_getinfo(3), fi_cm(3).
 */
#include <arpa/inet.h>

#include "obj.h"
#include "lib/cm.h"
#include "lib/own_net.h"

#define PORT "47110"

union name {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static bool is_any(const union name *n)
{
	return n->sa.sa_family == AF_INET ? n->in.sin_addr.s_addr == htonl(INADDR_ANY)
					  : IN6_IS_ADDR_UNSPECIFIED(&n->in6.sin6_addr);
}

static union name name_at(const void *addr, size_t len)
{
	union name n = {0};

	CHECK(addr && len && len <= sizeof(n));
	memcpy(&n, addr, len);
	return n;
}

/* Listens on `node` (NULL: none is given), of interface `domain` unless NULL. */
static void listen_on(struct cm *c, const char *node, const char *domain)
{
	struct fi_info *hints = obj_hints(FI_MSG | FI_TAGGED);

	memset(c, 0, sizeof(*c));
	hints->ep_attr->type = FI_EP_MSG;
	if (domain)
		hints->domain_attr->name = strdup(domain);
	c->o.hints = hints;
	OK(fi_getinfo(FI_VERSION(1, 17), node, PORT, FI_SOURCE, hints, &c->o.info));
	obj_domain(&c->o);
	cm_listen(c);
}

/* Begins to connect to port PORT of `to`, as a client that knows no more. */
static void call(struct cm *c, struct cm_end *e, const char *to)
{
	struct fi_info *hints = obj_hints(FI_MSG | FI_TAGGED), *info;

	hints->ep_attr->type = FI_EP_MSG;
	OK(fi_getinfo(FI_VERSION(1, 17), to, PORT, 0, hints, &info));
	cm_end(c, e, info);
	cm_enable(e);
	OK(fi_connect(e->ep, info->dest_addr, NULL, 0));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Is the address that of `text`, which an IPv4 address may have in mapped form? */
static bool is_address(const union name *n, const char *text)
{
	char is[INET6_ADDRSTRLEN], *plain = is;

	if (n->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &n->in.sin_addr, is, sizeof(is));
	else
		inet_ntop(AF_INET6, &n->in6.sin6_addr, is, sizeof(is));
	if (!strchr(text, ':') && !strncmp(is, "::ffff:", 7))
		plain += 7;
	return !strcmp(plain, text);
}

/* The request tells the address by which it came; both ends can talk. */
static void reached_by(struct cm *c, const char *to)
{
	struct cm_end active, passive;
	struct fi_info *request;
	union name own, peer;

	call(c, &active, to);
	request = cm_request(c);
	own = name_at(request->src_addr, request->src_addrlen);
	peer = name_at(request->dest_addr, request->dest_addrlen);
	CHECK_EQ(own.sa.sa_family, peer.sa.sa_family);
	CHECK(!is_any(&own) && !is_any(&peer));
	if (!strcmp(api_provider(), "tcp"))
		CHECK(is_address(&own, to));
	cm_accept(c, &passive, request);
	EVENT(c, active.eq, FI_CONNECTED, &active.ep->fid);
	cm_talk(&active, &passive);
	cm_close_end(c, &active);
	cm_close_end(c, &passive);
}

static void refused_by(struct cm *c, const char *to)
{
	struct cm_end active;

	call(c, &active, to);
	FAILURE(c, &active, FI_ECONNREFUSED);
	cm_close_end(c, &active);
}

/* What fi_getinfo and fi_getname say: the wildcard; an address that peers can use. */
static void expect_names(struct cm *c, bool all)
{
	union name asked = name_at(c->o.info->src_addr, c->o.info->src_addrlen), given;
	struct obj_name name = obj_name(&c->pep->fid);

	given = name_at(name.bytes, name.len);
	CHECK_EQ(is_any(&asked), all);
	CHECK(!is_any(&given));
	CHECK_EQ(ntohs(asked.in.sin_port), atoi(PORT));
	CHECK_EQ(ntohs(given.in.sin_port), atoi(PORT));
}

static void ipv4(struct api *a)
{
	static const char *const nodes[] = {NULL, "0.0.0.0"};

	(void)a;
	for (size_t i = 0; i < API_COUNT(nodes); i++) {
		struct cm c;

		listen_on(&c, nodes[i], NULL);
		expect_names(&c, true);
		reached_by(&c, "127.0.0.1");
		reached_by(&c, OWN_NET_IN);
		refused_by(&c, OWN_NET_IN6);
		cm_close(&c);
	}
}

/* The kernel's setting is that :: takes IPv4, too. */
static void ipv6(struct api *a)
{
	struct cm c;

	(void)a;
	listen_on(&c, "::", NULL);
	expect_names(&c, true);
	reached_by(&c, "::1");
	reached_by(&c, OWN_NET_IN6);
	reached_by(&c, "127.0.0.1");
	reached_by(&c, OWN_NET_IN);
	cm_close(&c);
}

/* An interface that the user or the application names is the only one. */
static void one_alone(struct api *a)
{
	struct cm c;

	(void)a;
	if (cm_inside())
		api_skip("no interface can be named");
	listen_on(&c, NULL, getenv("FI_TCP_IFACE") ? NULL : "weft0");
	expect_names(&c, false);
	reached_by(&c, OWN_NET_IN);
	refused_by(&c, "127.0.0.1");
	cm_close(&c);
}

/* A listener at one address is at that one. */
static void one_address(struct api *a)
{
	struct cm c;

	(void)a;
	listen_on(&c, "127.0.0.1", NULL);
	expect_names(&c, false);
	reached_by(&c, "127.0.0.1");
	refused_by(&c, OWN_NET_IN);
	cm_close(&c);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"ipv4", ipv4, 1, {0}},           {"ipv6", ipv6, 1, {0}},
		{"domain", one_alone, 1, {0}},    {"setting", one_alone, 1, {"FI_TCP_IFACE=weft0"}},
		{"address", one_address, 1, {0}},
	};

	if (!own_net_enter())
		return API_SKIP;
	return api_main(argc, argv, cases, API_COUNT(cases));
}
