/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_OPT_SHARED_MEMORY_PERMITTED: endpoints without shared memory use another transport, if any.
 * fi_endpoint(3).
 */
#include <netinet/in.h>

#include "obj.h"

#define LONG_LEN 300000

/* Returns the number of established TCP connections of this host with that port at either end. */
static int tcp_connections(uint16_t port)
{
	FILE *f = fopen("/proc/self/net/tcp", "r");
	unsigned int local, remote, state;
	char line[256];
	int count = 0;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %*u: %*x:%x %*x:%x %x", &local, &remote, &state) == 3)
			count += (local == port || remote == port) && state == 1;
	fclose(f);
	return count;
}

static int permit(struct fid_ep *ep, bool permitted)
{
	return fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED, &permitted,
			 sizeof(permitted));
}

static bool permitted(struct fid_ep *ep)
{
	size_t len = sizeof(bool);
	bool is;

	OK(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_SHARED_MEMORY_PERMITTED, &is, &len));
	CHECK_EQ(len, sizeof(is));
	return is;
}

static bool inside_alone(void)
{
	return !strcmp(api_provider(), "shm");
}

/* When the option can be set, and its values. */
static void option(struct api *a)
{
	struct obj o = {0};

	(void)a;
	if (api_other())
		api_skip("the option is younger");
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	CHECK(permitted(o.ep));
	CHECK_EQ(permit(o.ep, false), inside_alone() ? -FI_EOPNOTSUPP : 0);
	CHECK_EQ(permitted(o.ep), inside_alone());
	OK(permit(o.ep, true));
	CHECK(permitted(o.ep));
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(o.ep));
	OK(permit(o.ep, true));
	if (api_networked()) /* no shared memory in use anyway */
		OK(permit(o.ep, false));
	else
		FAILS(permit(o.ep, false));
	obj_close(&o);
}

static void send_to(struct obj *o, fi_addr_t peer, char *buf, size_t len)
{
	data_fill(buf, len, 3);
	POST(o->cq, fi_send(o->ep, buf, len, NULL, peer, buf));
	obj_done(o->cq, buf);
}

static void receive(struct obj *o, char *buf, size_t len)
{
	OK(fi_recv(o->ep, buf, len, NULL, FI_ADDR_UNSPEC, buf));
	CHECK_EQ(obj_done(o->cq, buf).len, len);
	data_check(buf, len, 3);
}

/* Opens an endpoint, with shared memory forbidden if `barred`; skips if that is impossible. */
static void open_as(struct obj *o, bool barred)
{
	if (api_other())
		api_skip("the option is younger");
	if (inside_alone())
		api_skip("there is nothing else");
	obj_domain(o);
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->cq = obj_cq(o, FI_WAIT_NONE);
	o->ep = obj_ep(o);
	if (barred)
		OK(permit(o->ep, false));
	OK(fi_ep_bind(o->ep, &o->av->fid, 0));
	OK(fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(o->ep));
}

/*
 * One side forbids shared memory, the other does not know that. Both communicate over the network,
 * whichever connects first.
 */
static void talk(struct api *a, int first)
{
	static char buf[LONG_LEN];
	struct obj_name mine, all[2];
	struct sockaddr_in in;
	struct obj o = {0};
	fi_addr_t peer;

	open_as(&o, a->rank == 0);
	mine = obj_name(&o.ep->fid);
	api_swap(a, &mine, all, sizeof(mine));
	peer = obj_insert(o.av, &all[!a->rank]);
	obj_progress(a, o.cq);
	for (int n = 0; n < 4; n++) {
		size_t len = n < 2 ? 8 : LONG_LEN;

		if (a->rank == (first ^ (n & 1)))
			send_to(&o, peer, buf, len);
		else
			receive(&o, buf, len);
	}
	memcpy(&in, all[!first].bytes, sizeof(in));
	if (in.sin_family == AF_INET)
		CHECK(tcp_connections(ntohs(in.sin_port)) > 0);
	api_meet(a);
	a->progress = NULL;
	obj_close(&o);
}

static void from_barred(struct api *a)
{
	talk(a, 0);
}

static void to_barred(struct api *a)
{
	talk(a, 1);
}

/* The same with messages to itself. */
static void self(struct api *a)
{
	static char buf[8], got[8];
	struct obj o = {0};
	fi_addr_t peer;

	(void)a;
	open_as(&o, true);
	peer = obj_insert_ep(o.av, o.ep);
	OK(fi_recv(o.ep, got, sizeof(got), NULL, FI_ADDR_UNSPEC, got));
	POST(o.cq, fi_send(o.ep, buf, sizeof(buf), NULL, peer, buf));
	for (int n = 0; n < 2; n++)
		obj_next(o.cq, NULL);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"option", option, 1, {0}},
		{"from_barred", from_barred, 2, {0}},
		{"to_barred", to_barred, 2, {0}},
		{"self", self, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
