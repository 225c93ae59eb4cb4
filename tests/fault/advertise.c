/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two containers on one host that publishes their ports: each endpoint is bound to an address that the other container
 * cannot reach, and FI_WEFT_ADVERTISE names the host's address and the first published port. The host passes bytes on,
 * and nothing else. All endpoints reach each other by the names that fi_getname gives, also inside a
 * container. A setting that fits no port is refused.
 */
#include <poll.h>

#include "hello.h"
#include "lab.h"
#include "talk.h"

#define HOST_IP  "10.50.0.1"
#define LOW      21000 /* first port of an endpoint, in each container */
#define SHOWN    31000 /* the one that stands for it; the second container's are 100 higher */
#define PORTS    2
#define SHOWN_IP "198.51.100.7" /* no network leads to it */
#define ROUNDS   2

struct container {
	int which, peer_end, host_end;
};

/* ---- The host ---- */

/* Passes bytes from one socket to the other. False: the first has ended. */
static bool pass_on(int from, int to)
{
	char buf[65536];
	ssize_t got = recv(from, buf, sizeof(buf), 0);

	for (ssize_t sent = 0, n; got > 0 && sent < got; sent += n) {
		n = send(to, buf + sent, (size_t)(got - sent), MSG_NOSIGNAL);
		if (n <= 0)
			return false;
	}
	return got > 0;
}

struct flow {
	int outer;
	struct sockaddr_in to;
};

/* One connection. */
static void forward_one(void *arg)
{
	const struct flow *flow = arg;
	int inner = tcp_socket();
	struct pollfd p[2] = {{.fd = flow->outer, .events = POLLIN},
			      {.fd = inner, .events = POLLIN}};

	if (connect(inner, (const struct sockaddr *)&flow->to, sizeof(flow->to)))
		exit(EXIT_SUCCESS);
	while (poll(p, 2, -1) > 0)
		for (int i = 0; i < 2; i++)
			if (p[i].revents && !pass_on(p[i].fd, p[!i].fd))
				exit(EXIT_SUCCESS);
}

static struct sockaddr_in in_of(const char *ip, int port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	inet_pton(AF_INET, ip, &in.sin_addr);
	return in;
}

/* Publishes all ports until the process is ended. */
static void forward(void *arg)
{
	struct pollfd p[2 * PORTS];
	struct flow flow;

	for (int i = 0; i < 2 * PORTS; i++) {
		struct sockaddr_in at = in_of(HOST_IP, SHOWN + 100 * (i / PORTS) + i % PORTS);

		p[i] = (struct pollfd){.fd = tcp_socket(), .events = POLLIN};
		if (bind(p[i].fd, (struct sockaddr *)&at, sizeof(at)) || listen(p[i].fd, 16))
			fail("no published port: %s", strerror(errno));
	}
	tell(*(int *)arg, "", 1);
	signal(SIGCHLD, SIG_IGN);
	while (poll(p, 2 * PORTS, -1) > 0)
		for (int i = 0; i < 2 * PORTS; i++)
			if (p[i].revents) {
				flow.to = in_of(i / PORTS ? "10.52.0.2" : "10.51.0.2",
						LOW + i % PORTS);
				flow.outer = accept(p[i].fd, NULL, NULL);
				start("flow", forward_one, &flow);
				close(flow.outer);
			}
}

/* ---- A container ---- */

static void enter(const struct container *c)
{
	if (unshare(CLONE_NEWNET))
		fail("unshare: %s", strerror(errno));
	tell(c->host_end, "", 1);
	hear(c->host_end, &(char){0}, 1); /* the wire is there */
	if (run("ip link set lo up && ip addr add 10.5%d.0.2/24 dev eth0 && ip link set eth0 up && "
		"ip route add default via 10.5%d.0.1",
		c->which + 1, c->which + 1))
		fail("no address in a container");
	lab_wait_for_wire("eth0");
	tell(c->host_end, "", 1);
	hear(c->host_end, &(char){0}, 1); /* the ports are published */
}

static void setting(const char *name, const char *format, int value)
{
	char text[64];

	snprintf(text, sizeof(text), format, value);
	setenv(name, text, 1);
}

/* The name is the host's address with the port that stands for the endpoint's. */
static void check_name(const struct container *c, const struct name *name)
{
	struct sockaddr_in in, want = in_of(HOST_IP, 0);
	int port;

	memcpy(&in, name->bytes, sizeof(in));
	port = ntohs(in.sin_port) - SHOWN - 100 * c->which;
	if (in.sin_addr.s_addr != want.sin_addr.s_addr || port < 0 || port >= PORTS)
		fail("fi_getname gives %s:%d", inet_ntoa(in.sin_addr), ntohs(in.sin_port));
}

/* A listener of connected endpoints has such a name, too. */
static void check_listener(const struct container *c)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct name name = {.len = sizeof(name.bytes)};
	struct fid_fabric *fabric;
	struct fid_pep *pep;

	hints->fabric_attr->prov_name = strdup(provider());
	hints->ep_attr->type = FI_EP_MSG;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	must(fi_getname(&pep->fid, name.bytes, &name.len), "fi_getname");
	check_name(c, &name);
	must(fi_close(&pep->fid), "fi_close");
	must(fi_close(&fabric->fid), "fi_close");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Two endpoints of one container. */
static void talk_inside(struct node *a, struct node *b)
{
	struct name name = node_name(b);
	fi_addr_t to = node_insert(a, &name);
	uint64_t end = now_ms() + TALK_MS;
	struct event e;
	int left = 2;
	ssize_t ret;
	char in[8];

	must(fi_recv(b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while ((ret = fi_send(a->ep, "inside", 7, NULL, to, NULL)) == -FI_EAGAIN)
		fi_cq_read(b->cq, NULL, 0);
	must(ret, "fi_send");
	while (left && now_ms() < end)
		for (int i = 0; i < 2; i++)
			if (node_poll(i ? b : a, &e))
				left = e.err ? 99 : left - 1;
	if (left)
		fail("a message inside a container did not arrive");
}

/* The endpoint connects to the listener. */
static void await_connection(struct node *n, int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	uint64_t end = now_ms() + TALK_MS;
	struct event e;

	while (poll(&p, 1, 1) == 0) {
		if (node_poll(n, &e))
			fail("nothing was sent to the advertised address: %s", fi_strerror(e.err));
		if (now_ms() >= end)
			fail("nobody connected to the advertised address");
	}
}

static void refused(const char *why)
{
	struct node n;
	int ret;

	node_create(&n, NULL);
	must(fi_ep_bind(n.ep, &n.av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(n.ep, &n.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	ret = fi_enable(n.ep);
	if (ret != -FI_EINVAL)
		fail("%s: %s", why, fi_strerror(-ret));
	node_close(&n);
}

static void live(void *arg)
{
	const struct container *c = arg;
	struct node n, second;
	struct name name;
	fi_addr_t peer;

	setting("FI_TCP_PORT_LOW_RANGE", "%d", LOW);
	setting("FI_TCP_PORT_HIGH_RANGE", "%d", LOW + PORTS - 1);
	setting("FI_WEFT_ADVERTISE", HOST_IP ":%d", SHOWN + 100 * c->which);
	enter(c);
	check_listener(c);
	node_open(&n, NULL);
	node_open(&second, NULL);
	name = node_name(&n);
	check_name(c, &name);
	name = node_name(&second);
	check_name(c, &name);
	talk_inside(&n, &second);
	peer = node_meet(&n, c->peer_end);
	for (unsigned int i = 0; i < ROUNDS; i++)
		talk(&n, peer, i, c->which);
	tell(c->peer_end, "", 1);
	hear(c->peer_end, &(char){0}, 1);
	node_close(&second);
	node_close(&n);
}

/* Settings that name no address, or a port that stands for none. */
static void live_wrong(void *arg)
{
	setenv("FI_WEFT_ADVERTISE", arg, 1);
	setenv("FI_TCP_IFACE", "eth0", 1);
	if (unshare(CLONE_NEWNET) ||
	    run("ip link add eth0 type veth peer name eth1 && ip addr add 10.51.0.2/24 dev eth0 && "
		"ip link set eth0 up && ip link set eth1 up"))
		fail("no network of our own");
	refused(arg);
}

/*
 * No network leads the advertised address back into the host. Its endpoints reach each other and themselves all the same,
 * and a name that none of them has is looked for where the address leads. Of a range with 100 numbers, some have none that
 * stands for them.
 */
static void live_alone(void *arg)
{
	struct sockaddr_in far;
	struct name name;
	struct node n, second, gone;
	int elsewhere;
	fi_addr_t peer;

	setenv("FI_WEFT_ADVERTISE", arg, 1);
	setenv("FI_TCP_IFACE", "eth0", 1);
	setting("FI_TCP_PORT_LOW_RANGE", "%d", LOW);
	setting("FI_TCP_PORT_HIGH_RANGE", "%d", LOW + 99);
	if (unshare(CLONE_NEWNET) ||
	    run("ip link set lo up && ip link add eth0 type veth peer name eth1 && "
		"ip addr add 10.51.0.2/24 dev eth0 && ip link set eth0 up && ip link set eth1 up"))
		fail("no network of our own");
	node_open(&n, NULL);
	node_open(&second, NULL);
	talk_inside(&n, &second);
	talk_inside(&second, &n);
	talk_inside(&n, &n);
	node_open(&gone, NULL);
	name = node_name(&gone);
	memcpy(&far, name.bytes, sizeof(far));
	node_close(&gone);
	elsewhere = tcp_socket();
	if (run("ip addr add " SHOWN_IP "/32 dev lo") ||
	    bind(elsewhere, (struct sockaddr *)&far, sizeof(far)) || listen(elsewhere, 1))
		fail("no address elsewhere");
	if (fi_av_insert(n.av, &far, 1, &peer, 0, NULL) != 1)
		fail("fi_av_insert refuses an address");
	if (fi_send(n.ep, "far", 4, NULL, peer, NULL) != -FI_EAGAIN)
		fail("a send does not wait for its connection");
	await_connection(&n, elsewhere);
	close(elsewhere);
	node_close(&second);
	node_close(&n);
}

static void host(void)
{
	struct container c[2];
	pid_t pids[2], forwarder;
	int ends[2], host_ends[2][2];

	if (unshare(CLONE_NEWNET) ||
	    run("ip link set lo up && ip addr add " HOST_IP "/32 dev lo && "
		"echo 0 > /proc/sys/net/ipv4/ip_forward"))
		fail("no host");
	wire(ends);
	for (int i = 0; i < 2; i++) {
		wire(host_ends[i]);
		c[i] = (struct container){i, ends[i], host_ends[i][1]};
		pids[i] = start(i ? "second" : "first", live, &c[i]);
		hear(host_ends[i][0], &(char){0}, 1);
		if (run("ip link add wire%d type veth peer name eth0 netns %d && "
			"ip addr add 10.5%d.0.1/24 dev wire%d && ip link set wire%d up",
			i, (int)pids[i], i + 1, i, i))
			fail("no wire to a container");
		tell(host_ends[i][0], "", 1);
		hear(host_ends[i][0], &(char){0}, 1);
	}
	wire(ends);
	forwarder = start("forwarder", forward, &ends[1]);
	hear(ends[0], &(char){0}, 1);
	for (int i = 0; i < 2; i++)
		tell(host_ends[i][0], "", 1);
	for (int i = 0; i < 2; i++)
		finish(pids[i], i ? "second" : "first");
	slay(forwarder);
}

int main(void)
{
	static char *const wrong[] = {"nowhere", "10.50.0.1:31000", "0.0.0.0", "10.50.0.1:70000"};

	alarm(LIMIT);
	need_lab();
	need_network();
	finish(start("alone", live_alone, SHOWN_IP), "alone");
	finish(start("alone, another port", live_alone, SHOWN_IP ":65532"), "alone, another port");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		finish(start("wrong", live_wrong, wrong[i]), wrong[i]);
	host();
	return EXIT_SUCCESS;
}
