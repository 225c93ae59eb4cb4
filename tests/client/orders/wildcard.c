/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server bound to no address: node NULL with a port, 0.0.0.0, or ::. Its clients come by 127.0.0.1 and by the address
 * of each interface: connected endpoints over tcp, datagrams over udp.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include "order.h"

#define ADDRESSES 16

static char addresses[ADDRESSES][INET_ADDRSTRLEN];
static int count;

static void list_addresses(void)
{
	struct ifaddrs *all, *i;

	CHECK(getifaddrs(&all) == 0);
	for (i = all; i && count < ADDRESSES; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && i->ifa_flags & IFF_UP)
			inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr,
				  addresses[count++], INET_ADDRSTRLEN);
	freeifaddrs(all);
}

static struct fi_info *ask(const struct side *s, enum fi_ep_type type, const char *node,
			   const char *port, uint64_t flags)
{
	struct fi_info *hints = side_hints(s, FI_MSG), *found;

	hints->ep_attr->type = type;
	hints->addr_format = node && strchr(node, ':') ? FI_SOCKADDR_IN6 : FI_FORMAT_UNSPEC;
	OK(fi_getinfo(VERSION, node, port, flags, hints, &found));
	fi_freeinfo(hints);
	return found;
}

/* Waits for an event of connected endpoints. */
static struct fi_info *await(struct fid_eq *eq, uint32_t wanted)
{
	struct fi_eq_cm_entry entry = {0};
	uint32_t event;

	CHECK(fi_eq_sread(eq, &event, &entry, sizeof(entry), LIMIT * 1000, 0) == sizeof(entry));
	CHECK(event == wanted);
	return entry.info;
}

static struct fid_eq *open_eq(const struct side *s)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_eq *eq;

	OK(fi_eq_open(s->fabric, &attr, &eq, NULL));
	return eq;
}

static void open_connected(struct side *s, struct fid_eq *eq, struct fi_info *info)
{
	OK(fi_domain(s->fabric, info, &s->domain, NULL));
	s->cq = side_cq(s, FI_CQ_FORMAT_DATA);
	OK(fi_endpoint(s->domain, info, &s->ep, NULL));
	OK(fi_ep_bind(s->ep, &eq->fid, 0));
	OK(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(s->ep));
}

static void close_connected(struct side *s)
{
	OK(fi_close(&s->ep->fid));
	OK(fi_close(&s->cq->fid));
	OK(fi_close(&s->domain->fid));
}

static void serve_connected(struct side *s, const char *node, const char *port)
{
	struct fi_info *info = ask(s, FI_EP_MSG, node, port, FI_SOURCE), *request;
	struct fid_pep *pep;
	struct fid_eq *eq;

	OK(fi_fabric(info->fabric_attr, &s->fabric, NULL));
	eq = open_eq(s);
	OK(fi_passive_ep(s->fabric, info, &pep, NULL));
	OK(fi_pep_bind(pep, &eq->fid, 0));
	OK(fi_listen(pep));
	meet(s);
	for (int i = 0; i < count; i++) {
		request = await(eq, FI_CONNREQ);
		open_connected(s, eq, request);
		OK(fi_accept(s->ep, NULL, 0));
		await(eq, FI_CONNECTED);
		fi_freeinfo(request);
		meet(s);
		close_connected(s);
		meet(s);
	}
	OK(fi_close(&pep->fid));
	OK(fi_close(&eq->fid));
	OK(fi_close(&s->fabric->fid));
	fi_freeinfo(info);
}

static void call_connected(struct side *s, const char *node, const char *port)
{
	struct fi_info *info;
	struct fid_eq *eq;

	(void)node;
	meet(s);
	for (int i = 0; i < count; i++) {
		info = ask(s, FI_EP_MSG, addresses[i], port, 0);
		OK(fi_fabric(info->fabric_attr, &s->fabric, NULL));
		eq = open_eq(s);
		open_connected(s, eq, info);
		OK(fi_connect(s->ep, info->dest_addr, NULL, 0));
		await(eq, FI_CONNECTED);
		meet(s);
		close_connected(s);
		OK(fi_close(&eq->fid));
		OK(fi_close(&s->fabric->fid));
		fi_freeinfo(info);
		meet(s);
	}
}

static void serve_datagrams(struct side *s, const char *node, const char *port)
{
	struct fi_context2 context;
	char buf[64];

	s->info = ask(s, FI_EP_DGRAM, node, port, FI_SOURCE);
	OK(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	OK(fi_domain(s->fabric, s->info, &s->domain, NULL));
	side_endpoint(s, FI_CQ_FORMAT_DATA);
	meet(s);
	for (int i = 0; i < count; i++) {
		unsigned int before = s->received;

		OK(fi_recv(s->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, &context));
		while (s->received == before)
			side_read(s);
		meet(s);
	}
	side_close(s);
}

/* Datagrams may be lost: each goes again until the server has it. */
static void call_datagrams(struct side *s, const char *node, const char *port)
{
	char sign;

	(void)node;
	meet(s);
	for (int i = 0; i < count; i++) {
		s->info = ask(s, FI_EP_DGRAM, addresses[i], port, 0);
		OK(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
		OK(fi_domain(s->fabric, s->info, &s->domain, NULL));
		side_endpoint(s, FI_CQ_FORMAT_DATA);
		CHECK(fi_av_insert(s->av, s->info->dest_addr, 1, &s->peer, 0, NULL) == 1);
		do
			POST(s, fi_inject(s->ep, "d", 1, s->peer));
		while (!usleep(1000) && recv(s->wire, &sign, 1, MSG_DONTWAIT) != 1);
		tell(s, "", 1);
		side_close(s);
	}
}

typedef void (*part)(struct side *s, const char *node, const char *port);

static void each_wildcard(struct side *s, part connected, part datagrams)
{
	static const char *const nodes[] = {NULL, "0.0.0.0", "::"};
	part play = strcmp(s->provider, "udp") ? connected : datagrams;
	char port[8];

	list_addresses();
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++) {
		snprintf(port, sizeof(port), "%d", (int)(24000 + (getppid() + getpid()) % 5000));
		if (play == serve_connected || play == serve_datagrams)
			tell(s, port, sizeof(port));
		else
			hear(s, port, sizeof(port));
		play(s, nodes[i], port);
	}
}

static void first(struct side *s)
{
	each_wildcard(s, serve_connected, serve_datagrams);
}

static void second(struct side *s)
{
	each_wildcard(s, call_connected, call_datagrams);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], first, second);
}
