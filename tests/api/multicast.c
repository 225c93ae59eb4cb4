/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: members of a group get each datagram once, others none. fi_join, its event,
 * directions, errors, and leaving. Runs in a network namespace of its own. HW=udp
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <rdma/fi_eq.h>

#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"
#include "lib/dgram_side.h"
#include "lib/own_net.h"

#define NUMBER 7471 /* port of all groups here; they differ by address */

union name {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A struct side with an event queue. */
struct member {
	struct side s;
	struct fid_eq *eq;
	bool in6;
};

static union name name_of(bool in6, const char *text, uint16_t number)
{
	union name n;

	memset(&n, 0, sizeof(n));
	n.sa.sa_family = in6 ? AF_INET6 : AF_INET;
	if (in6)
		n.in6.sin6_port = htons(number);
	else
		n.in.sin_port = htons(number);
	CHECK(inet_pton(n.sa.sa_family, text,
			in6 ? (void *)&n.in6.sin6_addr : (void *)&n.in.sin_addr) == 1);
	return n;
}

static const char *where_text; /* address of the endpoints to open */

static void hint_there(struct fi_info *hints)
{
	bool in6 = strchr(where_text, ':') != NULL;
	union name n = name_of(in6, where_text, 0);

	if (in6)
		dgram_in6(hints);
	else
		dgram_in(hints);
	memcpy(hints->src_addr, &n, hints->src_addrlen);
}

static void bind_eq(struct member *m)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	OK(fi_eq_open(m->s.fabric, &attr, &m->eq, NULL));
	OK(fi_ep_bind(m->s.ep, &m->eq->fid, 0));
}

static void open_member(struct member *m, struct api *a, const char *where, uint64_t ways)
{
	struct side_opts o = {.caps = FI_MSG | FI_MULTICAST | FI_SOURCE | ways,
			      .tune = hint_there,
			      .not_enabled = true};

	where_text = where;
	*m = (struct member){.in6 = strchr(where, ':') != NULL};
	side_open(&m->s, a, &o);
	bind_eq(m);
	OK(fi_enable(m->s.ep));
	side_exchange(&m->s, &o);
	a->progress = side_progress;
	a->progress_arg = &m->s;
}

static void close_member(struct member *m)
{
	struct side *s = &m->s;

	api_meet(s->a);
	s->a->progress = NULL;
	OK(fi_close(&s->ep->fid));
	OK(fi_close(&m->eq->fid));
	OK(fi_close(&s->tx->fid));
	OK(fi_close(&s->rx->fid));
	OK(fi_close(&s->av->fid));
	OK(fi_close(&s->domain->fid));
	OK(fi_close(&s->fabric->fid));
	fi_freeinfo(s->info);
}

/* Joins a group and checks the event. */
static struct fid_mc *join(struct member *m, const char *group, uint64_t flags)
{
	union name n = name_of(m->in6, group, NUMBER);
	struct fi_eq_entry entry = {0};
	struct fid_mc *mc = NULL;
	uint32_t event = 0;

	OK(fi_join(m->s.ep, &n, flags, &mc, &n));
	CHECK_EQ(fi_eq_sread(m->eq, &event, &entry, sizeof(entry), 1000, 0), sizeof(entry));
	CHECK_EQ(event, FI_JOIN_COMPLETE);
	CHECK(entry.fid == &mc->fid && entry.context == &n && mc->fid.context == &n);
	CHECK_EQ(mc->fid.fclass, FI_CLASS_MC);
	CHECK(fi_mc_addr(mc) != FI_ADDR_NOTAVAIL);
	return mc;
}

static ssize_t try_send(struct member *m, fi_addr_t to, uint64_t *value)
{
	struct iovec iov = {value, sizeof(*value)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = to, .context = value};

	return fi_sendmsg(m->s.ep, &msg, FI_MULTICAST | FI_COMPLETION);
}

static void send_to(struct member *m, struct fid_mc *mc, uint64_t value)
{
	POST(&m->s, try_send(m, fi_mc_addr(mc), &value));
	SENT(&m->s, &value, FI_MSG);
}

/* Checks that the next datagram has this value and source, and that no other follows. */
static void take(struct member *m, uint64_t value, int from)
{
	uint64_t got = 0, none = 0;
	fi_addr_t src = 0;

	POST(&m->s, fi_recv(m->s.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	POST(&m->s, fi_recv(m->s.ep, &none, sizeof(none), NULL, FI_ADDR_UNSPEC, &none));
	CHECK(TAKE_FROM(&m->s, m->s.rx, &src).op_context == &got);
	CHECK_EQ(got, value);
	CHECK_EQ(src, m->s.addr[from]);
	QUIET(&m->s, m->s.rx, 20);
	OK(fi_cancel(&m->s.ep->fid, &none));
	TAKE_ERR(&m->s, m->s.rx, FI_ECANCELED);
}

static void take_nothing(struct member *m)
{
	uint64_t none = 0;

	POST(&m->s, fi_recv(m->s.ep, &none, sizeof(none), NULL, FI_ADDR_UNSPEC, &none));
	QUIET(&m->s, m->s.rx, 20);
	OK(fi_cancel(&m->s.ep->fid, &none));
	TAKE_ERR(&m->s, m->s.rx, FI_ECANCELED);
}

/* Rank `from` sends; the ranks in `to` (bits) must receive. */
static void round_of(struct member *m, struct fid_mc *mc, int from, unsigned int to)
{
	static uint64_t rounds;
	int rank = m->s.a->rank;

	api_meet(m->s.a);
	rounds++;
	if (rank == from)
		send_to(m, mc, rounds);
	if (to >> rank & 1)
		take(m, rounds, from);
	else
		take_nothing(m);
}

#define ALL  7u /* ranks 0 to 2 */
#define SOME 6u /* ranks 1 and 2 */

/* Three processes, two groups that differ only in their address. */
static void members(struct api *a, const char *where, const char *first, const char *second)
{
	struct fid_mc *mc[2] = {NULL};
	struct member m;

	open_member(&m, a, where, 0);
	mc[0] = join(&m, first, 0);
	if (SOME >> a->rank & 1)
		mc[1] = join(&m, second, 0);
	for (int from = 0; from < 3; from++) {
		round_of(&m, mc[0], from, ALL);
		if (SOME >> from & 1)
			round_of(&m, mc[1], from, SOME);
	}
	/* Unicast still works. */
	api_meet(a);
	if (a->rank == 1)
		POST(&m.s, fi_inject(m.s.ep, &(uint64_t){77}, 8, m.s.addr[0]));
	if (a->rank == 0)
		take(&m, 77, 1);
	/* A member that leaves gets no more datagrams, the others do; it may join again. */
	if (a->rank == 2)
		OK(fi_close(&mc[0]->fid));
	round_of(&m, mc[0], 0, ALL & ~4u);
	round_of(&m, mc[1], 1, SOME);
	if (a->rank == 2)
		mc[0] = join(&m, first, 0);
	round_of(&m, mc[0], 2, ALL);
	for (int i = 0; i < 2; i++)
		if (mc[i])
			OK(fi_close(&mc[i]->fid));
	round_of(&m, NULL, 3, 0);
	close_member(&m);
}

static void three(struct api *a)
{
	members(a, OWN_NET_IN, "239.7.7.1", "239.7.7.2");
}

static void three_loopback(struct api *a)
{
	members(a, "127.0.0.1", "239.7.7.3", "239.7.7.4");
}

static void need_in6(void)
{
	union name n = name_of(true, OWN_NET_IN6, 0);
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, &n.sa, sizeof(n.in6)))
		api_skip("this host has no IPv6");
	close(fd);
}

static void three6(struct api *a)
{
	need_in6();
	members(a, OWN_NET_IN6, "ff15::7:1", "ff15::7:2");
}

/* Link-local groups, on the interface of the endpoint. */
static void three6_link(struct api *a)
{
	need_in6();
	members(a, OWN_NET_IN6, "ff12::7:3", "ff12::7:4");
}

/* A member that joined to send gets nothing; one that joined to receive may not send. */
static void ways(struct api *a)
{
	struct fid_mc *mc;
	struct member m;
	uint64_t value = 1;

	open_member(&m, a, OWN_NET_IN, 0);
	mc = join(&m, "239.7.7.1",
		  a->rank == 0   ? FI_SEND
		  : a->rank == 1 ? FI_RECV
				 : FI_SEND | FI_RECV);
	round_of(&m, mc, 0, SOME);
	round_of(&m, mc, 2, SOME);
	if (a->rank == 1)
		CHECK_EQ(try_send(&m, fi_mc_addr(mc), &value), -FI_EACCES);
	OK(fi_close(&mc->fid));
	close_member(&m);
}

/* The endpoint's capabilities give the default direction, and limit the one asked for. */
static void one_way(struct api *a)
{
	uint64_t other = a->rank ? FI_SEND : FI_RECV;
	union name n = name_of(false, "239.7.7.1", NUMBER);
	struct fid_mc *mc, *none;
	struct member m;
	uint64_t value = 1, got = 0;

	open_member(&m, a, OWN_NET_IN, a->rank ? FI_RECV : FI_SEND);
	CHECK_EQ(fi_join(m.s.ep, &n, other, &none, NULL), -FI_EINVAL);
	mc = join(&m, "239.7.7.1", 0);
	if (a->rank)
		POST(&m.s, fi_recv(m.s.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	api_meet(a);
	if (a->rank)
		GOT(&m.s, &got, FI_MSG, sizeof(got));
	else
		send_to(&m, mc, value);
	CHECK_EQ(got, a->rank ? value : 0);
	OK(fi_close(&mc->fid));
	close_member(&m);
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* A group joined twice needs two closes to leave; each datagram arrives once. */
static void twice(struct api *a)
{
	struct fid_mc *first, *second;
	struct member m;
	int files;

	open_member(&m, a, OWN_NET_IN, 0);
	files = open_files();
	first = join(&m, "239.7.7.1", 0);
	second = join(&m, "239.7.7.1", 0);
	CHECK(fi_mc_addr(first) != fi_mc_addr(second));
	round_of(&m, second, 0, 1);
	OK(fi_close(&first->fid));
	round_of(&m, second, 0, 1);
	first = join(&m, "239.7.7.1", 0);
	OK(fi_close(&second->fid));
	round_of(&m, first, 0, 1);
	OK(fi_close(&first->fid));
	take_nothing(&m);
	CHECK_EQ(open_files(), files);
	close_member(&m);
}

static void mistakes(struct api *a)
{
	union name group = name_of(false, "239.7.7.1", NUMBER);
	union name single = name_of(false, OWN_NET_IN, NUMBER);
	struct fid_mc *mc, *none;
	uint64_t value = 1;
	struct member m;
	fi_addr_t gone;

	open_member(&m, a, OWN_NET_IN, 0);
	CHECK_EQ(fi_join(m.s.ep, &single, 0, &none, NULL), -FI_EINVAL);
	CHECK_EQ(fi_join(m.s.ep, NULL, 0, &none, NULL), -FI_EINVAL);
	CHECK_EQ(fi_join(m.s.ep, &group, FI_MULTI_RECV, &none, NULL), -FI_EBADFLAGS);
	mc = join(&m, "239.7.7.1", 0);
	CHECK_EQ(fi_close(&m.s.ep->fid), -FI_EBUSY);
	CHECK_EQ(try_send(&m, m.s.addr[0], &value), -FI_EINVAL);
	send_to(&m, mc, 3);
	gone = fi_mc_addr(mc);
	OK(fi_close(&mc->fid));
	CHECK_EQ(try_send(&m, gone, &value), -FI_EINVAL);
	mc = join(&m, "239.7.7.2", 0);
	CHECK_EQ(try_send(&m, gone, &value), -FI_EINVAL);
	OK(fi_close(&mc->fid));
	close_member(&m);
}

/* fi_join needs an event queue, and a datagram endpoint. */
static void no_queue(struct api *a)
{
	union name group = name_of(false, "239.7.7.1", NUMBER);
	struct side_opts o = {.caps = FI_MSG | FI_MULTICAST, .tune = hint_there};
	struct fid_mc *none;
	struct side s;

	where_text = OWN_NET_IN;
	side_open(&s, a, &o);
	CHECK_EQ(fi_join(s.ep, &group, 0, &none, NULL), -FI_ENOEQ);
	side_close(&s);
	o = dgram_opts(FI_MSG, false);
	side_open(&s, a, &o);
	CHECK_EQ(fi_join(s.ep, &group, 0, &none, NULL), -FI_ENOSYS);
	side_close(&s);
}

/* A group can be joined before the endpoint is enabled. All forms of send reach the group. */
static void forms(struct api *a)
{
	static const enum form sends[] = {FORM_PLAIN, FORM_VECTOR, FORM_MSG, FORM_INJECT};
	struct side_opts o = {
		.caps = FI_MSG | FI_MULTICAST, .tune = hint_there, .not_enabled = true};
	struct member m = {.in6 = false};
	struct side *s = &m.s;
	struct fid_mc *mc;

	where_text = OWN_NET_IN;
	side_open(s, a, &o);
	bind_eq(&m);
	mc = join(&m, "239.7.7.1", 0);
	OK(fi_enable(s->ep));
	for (unsigned int i = 0; i < API_COUNT(sends); i++) {
		size_t len = 400 + i;
		struct data out = data_full(len, sends[i] == FORM_VECTOR ? 3 : 1, i);
		struct data in = data_new(len, 1);
		struct form_args f = {.form = sends[i],
				      .d = &out,
				      .peer = fi_mc_addr(mc),
				      .flags = FI_MULTICAST | FI_COMPLETION,
				      .context = &out};

		POST(s, fi_recv(s->ep, data_at(&in), len, NULL, FI_ADDR_UNSPEC, &in));
		FORM_SEND(s, &f);
		GOT(s, &in, FI_MSG, len);
		DATA_EXPECT(&in, len, i);
		data_free(&out);
		data_free(&in);
	}
	OK(fi_close(&mc->fid));
	close_member(&m);
}

/*
 * A plain socket in the group receives the message alone, and can send to it. Port 0 means the
 * endpoint's own port.
 */
static void wire(struct api *a)
{
	struct ip_mreqn mreq = {0};
	union name own, group, from;
	socklen_t len = sizeof(from);
	struct fi_eq_entry entry;
	struct fid_mc *mc;
	struct member m;
	uint32_t event;
	uint64_t got = 0, none;
	char buf[16];
	size_t own_len = sizeof(own);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), yes = 1;

	open_member(&m, a, OWN_NET_IN, 0);
	OK(fi_getname(&m.s.ep->fid, &own, &own_len));
	group = name_of(false, "239.7.7.1", 0);
	OK(fi_join(m.s.ep, &group, 0, &mc, NULL));
	CHECK_EQ(fi_eq_read(m.eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	group.in.sin_port = own.in.sin_port;
	mreq.imr_multiaddr = group.in.sin_addr;
	mreq.imr_address = own.in.sin_addr;
	CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
	CHECK(bind(fd, &group.sa, sizeof(group.in)) == 0);
	CHECK(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq)) == 0);
	CHECK(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &mreq, sizeof(mreq)) == 0);
	send_to(&m, mc, UINT64_C(0x1122334455667788));
	CHECK_EQ(recvfrom(fd, buf, sizeof(buf), 0, &from.sa, &len), 8);
	memcpy(&got, buf, 8);
	CHECK_EQ(got, UINT64_C(0x1122334455667788));
	CHECK(!memcmp(&from.in, &own.in, sizeof(own.in)));
	take(&m, got, 0);
	POST(&m.s, fi_recv(m.s.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &none));
	CHECK_EQ(sendto(fd, "87654321", 8, 0, &group.sa, sizeof(group.in)), 8);
	GOT(&m.s, &none, FI_MSG, 8);
	CHECK(!memcmp(&got, "87654321", 8));
	close(fd);
	OK(fi_close(&mc->fid));
	close_member(&m);
}

/* FI_MULTICAST as a default flag: all addresses are those of groups. */
static void by_default(struct api *a)
{
	uint64_t value = 5, acknowledged = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	struct fid_ep *alias;
	struct fid_mc *mc;
	struct member m;

	open_member(&m, a, OWN_NET_IN, 0);
	mc = join(&m, "239.7.7.1", 0);
	OK(fi_ep_alias(m.s.ep, &alias, FI_TRANSMIT | FI_MULTICAST));
	CHECK_EQ(fi_send(alias, &value, 8, NULL, m.s.addr[0], NULL), -FI_EINVAL);
	CHECK_EQ(fi_inject(alias, &value, 8, m.s.addr[0]), -FI_EINVAL);
	OK(fi_inject(alias, &value, 8, fi_mc_addr(mc)));
	take(&m, value, 0);
	CHECK_EQ(fi_control(&alias->fid, FI_SETOPSFLAG, &acknowledged), -FI_EBADFLAGS);
	OK(fi_close(&alias->fid));
	OK(fi_close(&mc->fid));
	close_member(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"three", three, 3, {0}},       {"three-loopback", three_loopback, 3, {0}},
		{"three6", three6, 3, {0}},     {"three6-link", three6_link, 3, {0}},
		{"ways", ways, 3, {0}},         {"one-way", one_way, 2, {0}},
		{"twice", twice, 1, {0}},       {"mistakes", mistakes, 1, {0}},
		{"no-queue", no_queue, 1, {0}}, {"forms", forms, 1, {0}},
		{"wire", wire, 1, {0}},         {"by-default", by_default, 1, {0}},
	};

	if (!own_net_enter())
		return API_SKIP;
	return api_main(argc, argv, cases, API_COUNT(cases));
}
