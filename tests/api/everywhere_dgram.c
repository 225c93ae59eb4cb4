/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A datagram endpoint without an address of its own, or with a wildcard, hears each interface, and
 * its answers arrive. In a network namespace of its own, with two interfaces. HW=udp
 */
#include <arpa/inet.h>

#include "obj.h"
#include "lib/dgram.h"
#include "lib/own_net.h"

#define PORT "47111"

static void open_at(struct obj *o, const char *node, const char *service, uint64_t flags)
{
	memset(o, 0, sizeof(*o));
	o->hints = obj_hints(FI_MSG | FI_SOURCE | FI_SOURCE_ERR);
	o->hints->ep_attr->type = FI_EP_DGRAM;
	OK(fi_getinfo(FI_VERSION(1, 17), node, service, flags, o->hints, &o->info));
	obj_open(o);
}

static struct sockaddr_storage name_of(struct obj *o)
{
	struct obj_name name = obj_name(&o->ep->fid);
	struct sockaddr_storage sa = {0};

	CHECK(name.len <= sizeof(sa));
	memcpy(&sa, name.bytes, name.len);
	return sa;
}

/*
 * A client sends to `to`; the server learns the client's address from the datagram and answers it.
 */
static void talk_by(struct obj *server, const char *to)
{
	int asked = 0, answered = 0, word = 7;
	struct fi_cq_err_entry err;
	fi_addr_t there, client;
	struct obj o;

	open_at(&o, to, PORT, 0);
	CHECK_EQ(fi_av_insert(o.av, o.info->dest_addr, 1, &there, 0, NULL), 1);
	OK(fi_recv(server->ep, &asked, sizeof(asked), NULL, FI_ADDR_UNSPEC, &asked));
	OK(fi_recv(o.ep, &answered, sizeof(answered), NULL, FI_ADDR_UNSPEC, &answered));
	OK(fi_send(o.ep, &word, sizeof(word), NULL, there, &word));
	obj_done(o.cq, &word);
	err = obj_error(server->cq);
	CHECK_EQ(err.err, FI_EADDRNOTAVAIL);
	CHECK_EQ(asked, 7);
	CHECK_EQ(fi_av_insert(server->av, err.err_data, 1, &client, 0, NULL), 1);
	OK(fi_send(server->ep, &word, sizeof(word), NULL, client, &word));
	obj_done(server->cq, &word);
	obj_done(o.cq, &answered);
	CHECK_EQ(answered, 7);
	OK(fi_av_remove(server->av, &client, 1, 0));
	obj_close(&o);
}

static void ipv4(struct api *a)
{
	static const char *const nodes[] = {NULL, "0.0.0.0"};

	(void)a;
	for (size_t i = 0; i < API_COUNT(nodes); i++) {
		struct sockaddr_storage name;
		struct obj server;

		open_at(&server, nodes[i], PORT, FI_SOURCE);
		name = name_of(&server);
		CHECK(((struct sockaddr_in *)&name)->sin_addr.s_addr != htonl(INADDR_ANY));
		CHECK_EQ(ntohs(((struct sockaddr_in *)&name)->sin_port), atoi(PORT));
		talk_by(&server, "127.0.0.1");
		talk_by(&server, OWN_NET_IN);
		obj_close(&server);
	}
}

/* The kernel's setting is that :: takes IPv4, too. */
static void ipv6(struct api *a)
{
	struct sockaddr_storage name;
	struct obj server;

	(void)a;
	open_at(&server, "::", PORT, FI_SOURCE);
	name = name_of(&server);
	CHECK(!IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)&name)->sin6_addr));
	talk_by(&server, "::1");
	talk_by(&server, OWN_NET_IN6);
	talk_by(&server, "127.0.0.1");
	talk_by(&server, OWN_NET_IN);
	obj_close(&server);
}

/* An interface that the user names is the only one. */
static void setting(struct api *a)
{
	int got = 0, word = 7;
	struct obj server, o;
	fi_addr_t there;

	(void)a;
	open_at(&server, NULL, PORT, FI_SOURCE);
	talk_by(&server, OWN_NET_IN);
	unsetenv("FI_TCP_IFACE");
	open_at(&o, "127.0.0.1", PORT, 0);
	CHECK_EQ(fi_av_insert(o.av, o.info->dest_addr, 1, &there, 0, NULL), 1);
	OK(fi_recv(server.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	fi_inject(o.ep, &word, sizeof(word), there);
	obj_quiet(server.cq, 50);
	obj_close(&o);
	obj_close(&server);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"ipv4", ipv4, 1, {0}},
		{"ipv6", ipv6, 1, {0}},
		{"setting", setting, 1, {"FI_TCP_IFACE=weft0"}},
	};

	if (!own_net_enter())
		return API_SKIP;
	return api_main(argc, argv, cases, API_COUNT(cases));
}
