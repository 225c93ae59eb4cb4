/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hellos from another host that name an address of this one, or tell it as a further one of theirs: what follows them
 * counts as a message from the address that the connection comes from, and matches no receive for a peer of this host.
 */
#include "hello.h"
#include "lab.h"

#define LEN     8
#define WAIT_MS 4000

static struct lab lab;

static struct name name_of(const char *ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct name name = {.len = sizeof(in)};

	if (inet_pton(AF_INET, ip, &in.sin_addr) != 1)
		fail("inet_pton");
	memcpy(name.bytes, &in, sizeof(in));
	return name;
}

/* One receive for the peer of each address; the message must come to that of the far one. */
static void receive(struct node *n, fi_addr_t near, fi_addr_t far)
{
	static char bufs[2][LEN];
	struct event e;

	must(fi_recv(n->ep, bufs[0], LEN, NULL, near, bufs[0]), "fi_recv");
	must(fi_recv(n->ep, bufs[1], LEN, NULL, far, bufs[1]), "fi_recv");
	tell(lab.end, "", 1);
	e = node_wait(n, WAIT_MS, "a message from another host");
	if (e.err || e.context != bufs[1])
		fail("a message from another host came to a receive for this one");
	must(fi_cancel(&n->ep->fid, bufs[0]), "fi_cancel");
	e = node_wait(n, WAIT_MS, "a receive that was cancelled");
	if (e.err != FI_ECANCELED)
		fail("a receive ended with %s", fi_strerror(e.err));
	tell(lab.end, "", 1);
}

static void one(struct node *n, const char *ip, uint16_t port)
{
	struct name own = name_of(ip, port), other = name_of("10.99.0.2", port);

	receive(n, node_insert(n, &own), node_insert(n, &other));
}

static void near(void)
{
	struct name mine;
	struct node n;

	node_open(&n, NULL);
	mine = node_name(&n);
	tell(lab.end, &mine, sizeof(mine));
	one(&n, "10.99.0.1", 7);
	one(&n, "127.0.0.1", 8);
	one(&n, "10.99.0.1", 9);
	one(&n, "127.0.0.1", 10);
	node_close(&n);
}

static struct hello hello_named(const char *ip, uint16_t port)
{
	struct name name = name_of(ip, port);
	struct hello h = good_hello(1);

	memcpy(h.name, name.bytes, name.len);
	h.incarnation = port;
	return h;
}

/* Says that all addresses of its sender's host reach it, and that `ip` is one; the vector holds another one. */
static struct hello hello_telling(const char *ip, uint16_t port)
{
	struct hello h = hello_named("10.99.5.5", port);
	struct further_address *further = further_addresses(&h, 2);

	h.flags = WIRE_HELLO_ALL;
	further[0].port = further[1].port = port;
	if (inet_pton(AF_INET, ip, further[0].ip) != 1 ||
	    inet_pton(AF_INET, "10.99.0.2", further[1].ip) != 1)
		fail("inet_pton");
	return h;
}

/* Connects with this hello and sends a message. */
static void come(const struct name *to, struct hello h)
{
	struct {
		struct frame frame;
		char payload[LEN];
	} message = {.frame = {.head = WIRE_MSG, .len = LEN}};
	int sock;

	hear(lab.end, &(char){0}, 1);
	sock = raw_connect_tcp(to);
	if (send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h) ||
	    recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("a hello is not accepted");
	if (send(sock, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
		fail("send: %s", strerror(errno));
	hear(lab.end, &(char){0}, 1);
	slam(sock);
}

static void far(void)
{
	struct name to;

	hear(lab.end, &to, sizeof(to));
	come(&to, hello_named("10.99.0.1", 7));
	come(&to, hello_named("127.0.0.1", 8));
	come(&to, hello_telling("10.99.0.1", 9));
	come(&to, hello_telling("127.0.0.1", 10));
}

static void live(void *arg)
{
	lab = *(const struct lab *)arg;
	setenv("FI_TCP_IFACE", "eth0", 1);
	lab_enter(&lab);
	(lab.which ? far : near)();
}

int main(void)
{
	struct lab sides[2];
	int ends[2];
	pid_t pid;

	alarm(LIMIT);
	need_lab();
	need_network();
	wire(ends);
	sides[1] = (struct lab){.end = ends[1], .which = 1};
	pid = start("far", live, &sides[1]);
	sides[0] = (struct lab){.end = ends[0], .which = 0, .peer = pid};
	finish(start("near", live, &sides[0]), "near");
	finish(pid, "far");
	return EXIT_SUCCESS;
}
