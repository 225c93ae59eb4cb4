/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a reset by a TCP peer ends the right operations. The peer is a socket of this test.
 * It resets the connection before its hello, within it, within a packet, with many operations under
 * way, or goes wrong and is reset by us. Operations with the peer end with an error that says so,
 * receives from any source stay posted, and the next send connects anew.
 */
#include <poll.h>

#include "hello.h"

#define ROUNDS  12
#define WAIT_MS 2000
#define DEEP    3 /* operations of each kind under way */
#define LONG    300000
#define FILL    20 /* first context of the sends that fill the connection */

static struct node n;
static fi_addr_t peer;
static int listener, sock = -1;
static struct name peer_name;
static char buf[LONG];
static bool busy[64]; /* by context */
static int errs[64];

/* ---- The endpoint under test ---- */

static void poll_node(void)
{
	struct event e;

	while (node_poll(&n, &e)) {
		if (e.context < (void *)busy || e.context >= (void *)(busy + 64))
			fail("an operation nobody began ended");
		if (!*(bool *)e.context)
			fail("an operation ended twice");
		*(bool *)e.context = false;
		errs[(bool *)e.context - busy] = e.err;
	}
}

/* Makes progress until `fd` is readable. */
static void wait_fd(int fd, const char *what)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t end = now_ms() + WAIT_MS;

	while (poll(&p, 1, 0) == 0) {
		poll_node();
		if (now_ms() > end)
			fail("%s does not come", what);
	}
}

/* Waits for the operation's completion. Returns its error, 0: success. */
static int wait_end(unsigned int context, const char *what)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (busy[context]) {
		poll_node();
		if (now_ms() > end)
			fail("%s does not end", what);
	}
	return errs[context];
}

static void wait_ended(unsigned int context, int err, const char *what)
{
	int is = wait_end(context, what);

	if (is != err)
		fail("%s ended with %s, not with %s", what, fi_strerror(is), fi_strerror(err));
}

static void post_recv(unsigned int context, fi_addr_t from, size_t len)
{
	must(fi_recv(n.ep, buf, len, NULL, from, &busy[context]), "fi_recv");
	busy[context] = true;
}

static bool try_send(unsigned int context, size_t len, uint64_t flags)
{
	struct iovec iov = {buf, len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = peer};
	ssize_t ret;

	msg.context = &busy[context];
	ret = fi_sendmsg(n.ep, &msg, flags | FI_COMPLETION);
	if (ret != -FI_EAGAIN)
		must(ret, "fi_sendmsg");
	busy[context] = ret == 0;
	return ret == 0;
}

static void post_send(unsigned int context, size_t len, uint64_t flags)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!try_send(context, len, flags)) {
		poll_node();
		if (now_ms() > end)
			fail("no room for a send");
	}
}

static void begin_to_connect(void)
{
	if (try_send(0, 100, 0))
		fail("a send does not wait for its connection");
}

/* Tries to send until the call fails. Returns the error, positive. */
static int refusal(void)
{
	uint64_t end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = fi_send(n.ep, buf, 100, NULL, peer, NULL)) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("a send to somebody who hangs up does not fail");
	return (int)-ret;
}

/* ---- The peer ---- */

static void listen_here(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t len = sizeof(in);
	int room = 65536;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = tcp_socket();
	/* A small buffer, which sends to the peer soon fill. */
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(listener, (struct sockaddr *)&in, len) || listen(listener, 5) ||
	    getsockname(listener, (struct sockaddr *)&in, &len))
		fail("no listener: %s", strerror(errno));
	peer_name.len = len;
	memcpy(peer_name.bytes, &in, len);
}

static void hear_all(void *to, size_t len, const char *what)
{
	for (size_t got = 0; got < len;) {
		ssize_t ret;

		wait_fd(sock, what);
		ret = recv(sock, (char *)to + got, len - got, 0);
		if (ret <= 0)
			fail("%s: %s", what, ret ? strerror(errno) : "the end");
		got += (size_t)ret;
	}
}

static void say(const void *what, size_t len)
{
	if (send(sock, what, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("send: %s", strerror(errno));
}

static void take_call(void)
{
	wait_fd(listener, "a connection");
	sock = accept(listener, NULL, NULL);
	if (sock < 0)
		fail("accept: %s", strerror(errno));
}

static void hear_hello(void)
{
	struct hello h;

	hear_all(&h, sizeof(h), "a hello");
	if (h.magic != MAGIC || h.version != VERSION || h.size != sizeof(h) ||
	    h.kind != HELLO_CONNECT)
		fail("magic %#x, version %u, size %u, kind %u", h.magic, h.version, h.size, h.kind);
}

static struct hello acceptance(unsigned int round)
{
	struct hello h = good_hello(round);

	h.kind = HELLO_ACCEPT;
	memcpy(h.name, peer_name.bytes, peer_name.len);
	return h;
}

/* Receives an eager message of the endpoint: `len` bytes of value `len`. */
static void hear_message(size_t len)
{
	static unsigned char in[LONG];
	struct frame f;

	hear_all(&f, sizeof(f), "a frame");
	if ((f.head & 0xff) != WIRE_MSG || f.len != len || f.zero)
		fail("a frame of kind %u and %u bytes", (unsigned int)f.head & 0xff, f.len);
	hear_all(in, len, "a payload");
	for (size_t i = 0; i < len; i++)
		if (in[i] != (unsigned char)len)
			fail("byte %zu of a message of %zu", i, len);
}

static void say_message(size_t len, size_t sent)
{
	struct frame f = {.head = WIRE_MSG, .len = (uint32_t)len};
	static char out[sizeof(f) + LONG];

	memcpy(out, &f, sizeof(f));
	memset(out + sizeof(f), (int)len, len);
	say(out, sent);
}

static void end(void)
{
	slam(sock);
	sock = -1;
}

/* ---- Rounds ---- */

/* Connects by a send, which arrives. */
static void meet(unsigned int round)
{
	struct hello h = acceptance(round);

	memset(buf, 100, sizeof(buf));
	begin_to_connect();
	take_call();
	hear_hello();
	say(&h, sizeof(h));
	post_send(0, 100, 0);
	hear_message(100);
	wait_ended(0, 0, "the first send");
}

/* The peer resets after `after` bytes of its hello. */
static void die_young(unsigned int round, size_t after)
{
	struct hello h = acceptance(round);
	int err;

	post_recv(1, FI_ADDR_UNSPEC, 8);
	begin_to_connect();
	take_call();
	hear_hello();
	if (after)
		say(&h, after);
	usleep(round % 2 * 2000);
	end();
	err = refusal();
	/* The reset may discard the part of the hello that came. */
	if (err != FI_ECONNREFUSED && (err != FI_EPROTO || !after))
		fail("after %zu bytes of a hello a send ended with %s", after, fi_strerror(err));
	if (!busy[1])
		fail("a receive from anybody ended with it");
	must(fi_cancel(&n.ep->fid, &busy[1]), "fi_cancel");
	wait_ended(1, FI_ECANCELED, "a receive");
}

/* Sends until -FI_EAGAIN, with contexts from `i` on. Returns the first unused context. */
static unsigned int fill(unsigned int i, uint64_t flags)
{
	for (int tries = 0; tries < 3 && i < 64;) {
		if (try_send(i, 100000, flags)) {
			i++;
			continue;
		}
		poll_node();
		usleep(1000);
		tries++;
	}
	return i;
}

/* The peer resets with operations of all kinds under way. */
static void die_busy(unsigned int round)
{
	unsigned int last;

	meet(round);
	post_recv(1, FI_ADDR_UNSPEC, 8);
	for (unsigned int i = 0; i < DEEP; i++) {
		post_recv(2 + i, peer, 8);
		post_send(5 + i, 100, FI_DELIVERY_COMPLETE);
		post_send(8 + i, 100, FI_MATCH_COMPLETE);
		post_send(11 + i, LONG, 0);
	}
	last = fill(FILL, 0);
	end();
	for (unsigned int i = 2; i < 14; i++)
		wait_ended(i, FI_ECONNRESET, "an operation that a reset interrupts");
	for (unsigned int i = FILL; i < last; i++)
		wait_ended(i, busy[i] || errs[i] ? FI_ECONNRESET : 0, "a send without room");
	if (!busy[1])
		fail("a receive from anybody ended with it");
	meet(round);
	say_message(8, sizeof(struct frame) + 8);
	wait_ended(1, 0, "the receive from anybody");
	end();
}

/*
 * The peer resets after `sent` bytes of a packet. A receive that the packet has begun to fill
 * fails.
 */
static void die_talking(unsigned int round, size_t len, size_t sent)
{
	meet(round);
	post_recv(1, FI_ADDR_UNSPEC, LONG);
	/* The second of two long messages is placed directly into the receive. */
	say_message(len, sizeof(struct frame) + len);
	wait_ended(1, 0, "a whole message");
	post_recv(1, FI_ADDR_UNSPEC, LONG);
	post_recv(2, peer, LONG);
	say_message(len, sent);
	for (uint64_t until = now_ms() + 5; now_ms() < until;)
		poll_node();
	end();
	wait_ended(2, FI_ECONNRESET, "a receive from the peer");
	meet(round);
	if (busy[1]) {
		say_message(8, sizeof(struct frame) + 8);
		wait_ended(1, 0, "the receive from anybody");
	} else {
		wait_ended(1, FI_ECONNRESET, "the receive that had begun");
	}
	end();
}

/*
 * The peer sends no packet of ours, which ends the connection, and goes on reading. Sends that were
 * reported as failed do not go out on the old connection.
 */
static void go_wrong(unsigned int round)
{
	const struct frame wrong = {.head = 255};
	static char scrap[LONG];
	unsigned int last;
	ssize_t ret;

	meet(round);
	last = fill(FILL, FI_DELIVERY_COMPLETE);
	post_recv(2, peer, 8);
	say(&wrong, sizeof(wrong));
	wait_ended(2, FI_EPROTO, "a receive from who went wrong");
	for (unsigned int i = FILL; i < last; i++)
		wait_ended(i, FI_EPROTO, "a send to who went wrong");
	do {
		wait_fd(sock, "the end of the connection");
		ret = recv(sock, scrap, sizeof(scrap), 0);
	} while (ret > 0);
	if (!ret)
		fail("all that was sent on the connection came, what had failed, too");
	close(sock);
	sock = -1;
}

int main(void)
{
	int fds = 0;

	alarm(LIMIT);
	need_network();
	listen_here();
	node_open(&n, NULL);
	peer = node_insert(&n, &peer_name);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		die_young(round, 0);
		die_young(round, 1 + round * 50);
		die_busy(round);
		die_talking(round, 1000, sizeof(struct frame) + 500);
		die_talking(round, 100000, sizeof(struct frame) + 50000);
		die_talking(round, 100000, 20);
		go_wrong(round);
		if (round == 0)
			fds = count_fds(getpid());
	}
	if (count_fds(getpid()) != fds)
		fail("%d descriptors have become %d", fds, count_fds(getpid()));
	node_close(&n);
	close(listener);
	return EXIT_SUCCESS;
}
