/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of passive and connected endpoints: chosen, completed, refused, taken over. fi_cm(3). */
#include <netinet/in.h>

#include "obj.h"
#include "lib/cm.h"

static struct sockaddr_in in_of(const struct obj_name *name)
{
	struct sockaddr_in sin;

	CHECK_EQ(name->len, sizeof(sin));
	memcpy(&sin, name->bytes, sizeof(sin));
	CHECK_EQ(sin.sin_family, AF_INET);
	return sin;
}

static struct sockaddr_in name_of(struct fid *fid)
{
	struct obj_name name = obj_name(fid);

	return in_of(&name);
}

/* Returns an address of this host with a free port. */
static struct sockaddr_in free_name(struct cm *c)
{
	struct sockaddr_in name = cm_here(c, 0);
	struct fid_eq *eq = cm_eq(c, FI_WAIT_NONE);
	struct fid_pep *pep = cm_pep(c, eq);

	OK(fi_setname(&pep->fid, &name, sizeof(name)));
	name = name_of(&pep->fid);
	CLOSE(pep);
	cm_close_eq(c, eq);
	CHECK(name.sin_port != 0);
	return name;
}

/* Returns the number of established TCP connections with local port `port`. */
static int tcp_connections(uint16_t port)
{
	FILE *f = fopen("/proc/self/net/tcp", "r");
	unsigned int local, state;
	char line[256];
	int count = 0;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %*u: %*x:%x %*x:%*x %x", &local, &state) == 2)
			count += local == port && state == 1;
	fclose(f);
	return count;
}

/* Connects to `to`. Checks that a TCP connection is used only over network transports. */
static void connect_to(struct cm *c, const struct sockaddr_in *to)
{
	int tcp = api_networked() && !cm_bare();
	struct obj_name name = {.len = sizeof(*to)};
	struct cm_end active, passive;

	memcpy(name.bytes, to, sizeof(*to));
	cm_connect(c, &active, &name);
	cm_accept(c, &passive, cm_request(c));
	EVENT(c, active.eq, FI_CONNECTED, &active.ep->fid);
	cm_talk(&active, &passive);
	CHECK_EQ(tcp_connections(ntohs(to->sin_port)), tcp);
	cm_close_end(c, &active);
	cm_close_end(c, &passive);
}

/* The name exists before fi_listen, does not change by it, and cannot be set afterwards. */
static void listener(struct api *a)
{
	struct sockaddr_in before, after, other;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	other = cm_here(&c, 0);
	c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
	c.pep = cm_pep(&c, c.eq);
	before = name_of(&c.pep->fid);
	CHECK(before.sin_port != 0);
	OK(fi_listen(c.pep));
	after = name_of(&c.pep->fid);
	CHECK(!memcmp(&before, &after, sizeof(after)));
	CHECK_EQ(fi_setname(&c.pep->fid, &other, sizeof(other)), -FI_EOPBADSTATE);
	OK(fi_listen(c.pep));
	connect_to(&c, &after);
	cm_close(&c);
}

/* A reserved address refuses connections, and no other endpoint can have it. */
static void reserved(struct api *a)
{
	struct obj_name name;
	struct fid_pep *other;
	struct cm_end e;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
	c.pep = cm_pep(&c, c.eq);
	name = obj_name(&c.pep->fid);
	cm_connect(&c, &e, &name);
	FAILURE(&c, &e, FI_ECONNREFUSED);
	OK(fi_listen(c.pep));
	other = cm_pep(&c, c.eq);
	CHECK_EQ(fi_setname(&other->fid, name.bytes, name.len), -FI_EADDRINUSE);
	/* The other endpoint can listen with another port. */
	OK(fi_listen(other));
	CHECK(name_of(&other->fid).sin_port != in_of(&name).sin_port);
	CLOSE(other);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/* An address is free at once after closing its endpoint, even right after connections to it. */
static void again(struct api *a)
{
	struct sockaddr_in name;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	name = free_name(&c);
	for (int i = 0; i < 5; i++) {
		struct sockaddr_in got;

		c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
		c.pep = cm_pep(&c, c.eq);
		OK(fi_setname(&c.pep->fid, &name, sizeof(name)));
		OK(fi_listen(c.pep));
		got = name_of(&c.pep->fid);
		CHECK(!memcmp(&got, &name, sizeof(got)));
		connect_to(&c, &name);
		CLOSE(c.pep);
		c.pep = NULL;
		cm_close_eq(&c, c.eq);
		c.eq = NULL;
	}
	cm_close(&c);
}

/* Listening on all addresses: each can be connected to, and the reported name is one of them. */
static void wildcard(struct api *a)
{
	struct sockaddr_in all = {.sin_family = AF_INET}, reported, another;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	c.eq = cm_eq(&c, FI_WAIT_UNSPEC);
	c.pep = cm_pep(&c, c.eq);
	OK(fi_setname(&c.pep->fid, &all, sizeof(all)));
	OK(fi_listen(c.pep));
	reported = name_of(&c.pep->fid);
	if (!api_other())
		CHECK(reported.sin_addr.s_addr != INADDR_ANY);
	connect_to(&c, &reported);
	another = cm_here(&c, ntohs(reported.sin_port));
	connect_to(&c, &another);
	cm_close(&c);
}

/* The name of an active endpoint is the dest_addr of its request. */
static void active_name(struct api *a)
{
	struct sockaddr_in mine, other;
	struct fi_info *request;
	struct obj_name to;
	struct cm_end e;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	mine = free_name(&c);
	other = cm_here(&c, 1);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	cm_end(&c, &e, c.o.info);
	OK(fi_setname(&e.ep->fid, &mine, sizeof(mine)));
	OK(fi_enable(e.ep));
	OK(fi_connect(e.ep, to.bytes, NULL, 0));
	CHECK_EQ(fi_setname(&e.ep->fid, &other, sizeof(other)), -FI_EOPBADSTATE);
	request = cm_request(&c);
	CHECK_EQ(request->dest_addrlen, sizeof(mine));
	CHECK(!memcmp(request->dest_addr, &mine, sizeof(mine)));
	OK(fi_reject(c.pep, request->handle, NULL, 0));
	fi_freeinfo(request);
	FAILURE(&c, &e, FI_ECONNREFUSED);
	cm_close_end(&c, &e);
	cm_close(&c);
}

/*
 * An active endpoint opened with a passive endpoint as handle takes over its address. The address
 * refuses connections from then on.
 */
static void taken_over(struct api *a)
{
	struct fi_info *info, *request;
	struct sockaddr_in mine, got;
	struct obj_name to, dead;
	struct cm_end e, other;
	struct fid_ep *second;
	struct fid_pep *pep;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	pep = cm_pep(&c, c.eq);
	OK(fi_listen(pep));
	dead = obj_name(&pep->fid);
	mine = in_of(&dead);
	info = fi_dupinfo(c.o.info);
	info->handle = &pep->fid;
	cm_end(&c, &e, info);
	CHECK(fi_endpoint(c.o.domain, info, &second, NULL) < 0);
	cm_connect(&c, &other, &dead);
	FAILURE(&c, &other, FI_ECONNREFUSED);
	CLOSE(pep);
	got = name_of(&e.ep->fid);
	CHECK(!memcmp(&got, &mine, sizeof(mine)));
	OK(fi_connect(e.ep, to.bytes, NULL, 0));
	request = cm_request(&c);
	CHECK(!memcmp(request->dest_addr, &mine, sizeof(mine)));
	fi_close(request->handle);
	fi_freeinfo(request);
	FAILURE(&c, &e, FI_ECONNREFUSED);
	fi_freeinfo(info);
	cm_close_end(&c, &e);
	cm_close_end(&c, &other);
	cm_close(&c);
}

static void ask_ip6(struct fi_info *hints)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	hints->addr_format = FI_SOCKADDR_IN6;
	hints->src_addr = malloc(sizeof(sin6));
	CHECK(hints->src_addr != NULL);
	memcpy(hints->src_addr, &sin6, sizeof(sin6));
	hints->src_addrlen = sizeof(sin6);
}

static void ip6(struct api *a)
{
	struct cm_end active, passive;
	struct obj_name name;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, ask_ip6);
	cm_both(&c, &active, &passive);
	name = cm_peer(active.ep);
	CHECK_EQ(name.len, sizeof(struct sockaddr_in6));
	name = cm_peer(passive.ep);
	CHECK_EQ(name.len, sizeof(struct sockaddr_in6));
	CHECK_EQ(((struct sockaddr_in6 *)(void *)name.bytes)->sin6_family, AF_INET6);
	cm_talk(&active, &passive);
	cm_close_both(&c, &active, &passive);
}

/* A buffer that is too small: the call returns the required length. */
static void no_room(struct api *a)
{
	struct cm_end active, passive;
	size_t len = 4;
	char few[4];
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_both(&c, &active, &passive);
	CHECK_EQ(fi_getname(&c.pep->fid, few, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, sizeof(struct sockaddr_in));
	len = 4;
	CHECK_EQ(fi_getpeer(active.ep, few, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, sizeof(struct sockaddr_in));
	cm_close_both(&c, &active, &passive);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"listener", listener, 1, {0}},
		{"reserved", reserved, 1, {0}},
		{"again", again, 1, {0}},
		{"wildcard", wildcard, 1, {0}},
		{"active-name", active_name, 1, {0}},
		{"taken-over", taken_over, 1, {0}},
		{"ip6", ip6, 1, {0}},
		{"no-room", no_room, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
