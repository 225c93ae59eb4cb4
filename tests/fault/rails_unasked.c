/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint without FI_WEFT_RAILS offers no interfaces. A peer, which the test plays, that answers as if it had fails with
 * FI_EPROTO; one that answers well gets the message.
 */
#include "hello.h"

#define WAIT_MS    5000
#define FLAG_RAILS 0x4u /* of `flags` */
#define TEXT       "over one"

/* The data of a hello with FLAG_RAILS: link/wire.h. */
struct rails {
	uint32_t count, number;
	uint8_t rail[4][24];
};

static struct node n;
static fi_addr_t to; /* the listener */

static int listener_at(struct name *name)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int sock = tcp_socket();

	if (bind(sock, (struct sockaddr *)&in, len) || listen(sock, 1) ||
	    getsockname(sock, (struct sockaddr *)&in, &len))
		fail("no listener: %s", strerror(errno));
	name->len = len;
	memcpy(name->bytes, &in, len);
	return sock;
}

/* Reads `len` bytes of a socket while the endpoint makes progress. */
static void read_all(int sock, void *to, size_t len)
{
	uint64_t end = now_ms() + WAIT_MS;
	size_t have = 0;
	struct event e;

	while (have < len) {
		ssize_t got = recv(sock, (char *)to + have, len - have, MSG_DONTWAIT);

		have += got > 0 ? (size_t)got : 0;
		if (!got || now_ms() > end)
			fail("%zu of %zu bytes", have, len);
		if (node_poll(&n, &e) && e.err)
			fail("the send ended with %s", fi_strerror(e.err));
	}
}

static ssize_t try_send(void)
{
	return fi_send(n.ep, TEXT, sizeof(TEXT), NULL, to, NULL);
}

/* Sends once there is a connection. Returns what the call does then. */
static ssize_t send_text(void)
{
	uint64_t end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = try_send()) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("there is no connection");
	return ret;
}

/* Begins to send to a listener, whose HELLO_ACCEPT has these flags. Returns the connection. */
static int exchange_hellos(uint16_t flags)
{
	const struct rails rails = {.count = 2};
	struct hello theirs, ours = good_hello(1);
	struct name name = {.len = 0};
	int listener = listener_at(&name), sock = -1;
	struct event e;

	to = node_insert(&n, &name);
	if (try_send() != -FI_EAGAIN)
		fail("a send does not wait for its connection");
	for (uint64_t end = now_ms() + WAIT_MS; sock < 0 && now_ms() < end;) {
		sock = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		node_poll(&n, &e);
	}
	if (sock < 0)
		fail("the endpoint does not connect");
	read_all(sock, &theirs, sizeof(theirs));
	if (theirs.kind != HELLO_CONNECT || theirs.data_len)
		fail("a hello of kind %#x with %u bytes of data", theirs.kind, theirs.data_len);
	ours.kind = HELLO_ACCEPT;
	ours.flags = flags;
	if (flags & FLAG_RAILS) {
		ours.data_len = sizeof(rails);
		memcpy(ours.data, &rails, sizeof(rails));
	}
	if (send(sock, &ours, sizeof(ours), MSG_NOSIGNAL) != sizeof(ours))
		fail("send: %s", strerror(errno));
	close(listener);
	return sock;
}

static void refused(void *arg)
{
	ssize_t ret;
	int sock;

	(void)arg;
	node_open(&n, NULL);
	sock = exchange_hellos(FLAG_RAILS);
	ret = send_text();
	if (ret != -FI_EPROTO)
		fail("the send fails with %s", fi_strerror((int)-ret));
	close(sock);
	node_close(&n);
}

static void taken(void *arg)
{
	struct {
		struct frame frame;
		char text[sizeof(TEXT)];
	} __attribute__((packed)) packet;
	int sock;

	(void)arg;
	node_open(&n, NULL);
	sock = exchange_hellos(0);
	must(send_text(), "fi_send");
	read_all(sock, &packet, sizeof(packet));
	if (packet.frame.len != sizeof(TEXT) || strcmp(packet.text, TEXT) != 0)
		fail("another message, of %u bytes", packet.frame.len);
	close(sock);
	node_close(&n);
}

int main(void)
{
	alarm(30);
	need_provider();
	need_network();
	unsetenv("FI_WEFT_RAILS");
	finish(start("refused", refused, NULL), "refused");
	finish(start("taken", taken, NULL), "taken");
	return EXIT_SUCCESS;
}
