/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the TCP transport's input: bytes of any content and in any pieces on its sockets, while
 * the endpoint communicates with the peers that send them, also through encryption. The endpoint's
 * own output must be valid packets; the ids in them serve the peers for answers.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app.h"
#include "base/forked.h"
#include "hw/tcp/tcp.h"
#include "secure.h"

#define STEPS    200
#define SENT_MAX 8

/* The other end of a connection. */
static struct far {
	int sock; /* -1: closed */
	struct tcp_frame frame;
	size_t have, left; /* of the endpoint's output: bytes of `frame` read, of payload to come */
	struct secure secure;
} far[SENDERS];

/* How the next links are made. */
enum { CLEAR, ENCRYPTED, ENCRYPTED_INITIATOR };
static unsigned int how;

/* The last heads that the endpoint sent, to any peer. */
static struct tcp_frame sent[SENT_MAX];
static unsigned int sent_count;

/* Checks that the endpoint's output is a sequence of valid packets. */
static void parse(struct far *f, const unsigned char *at, size_t len)
{
	while (len) {
		size_t n = len < f->left ? len : f->left;

		at += n;
		len -= n;
		f->left -= n;
		n = sizeof(f->frame) - f->have;
		if (n > len)
			n = len;
		memcpy((unsigned char *)&f->frame + f->have, at, n);
		at += n;
		len -= n;
		f->have += n;
		if (f->have < sizeof(f->frame))
			continue;
		MUST(wire_op(f->frame.head) >= WIRE_MSG && wire_op(f->frame.head) < WIRE_OPS);
		MUST(f->frame.len <= TCP_PACKET_MAX && !f->frame.zero);
		sent[sent_count++ % SENT_MAX] = f->frame;
		f->left = f->frame.len;
		f->have = 0;
	}
}

static bool read_far(struct far *f)
{
	static unsigned char buf[65536];
	ssize_t len = 0;

	if (f->secure.tls)
		len = (ssize_t)secure_read(&f->secure, f->sock, buf, sizeof(buf));
	else if (f->sock >= 0)
		len = recv(f->sock, buf, sizeof(buf), MSG_DONTWAIT);
	if (len > 0)
		parse(f, buf, (size_t)len);
	return len > 0;
}

static void make_progress(void)
{
	worker_progress(world.worker);
	reap();
}

/* Writes `bytes` to the endpoint, unless the connection has ended. */
static void write_far(struct far *f, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	if (f->secure.tls) {
		f->secure.out.len = 0;
		MUST(tls_write(f->secure.tls, bytes, len));
		at = f->secure.out.bytes;
		len = f->secure.out.len;
	}

	for (int i = 0; len && i < 100 && f->sock >= 0; i++) {
		ssize_t n = send(f->sock, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
		if (len)
			make_progress();
	}
}

static void close_far(struct far *f)
{
	secure_end(&f->secure);
	if (f->sock >= 0)
		close(f->sock);
	f->sock = -1;
}

/* The handshake of an encrypted link. */
static void secure_far(struct far *f, const struct auth *auth, bool initiator)
{
	secure_begin(&f->secure, initiator, auth->key.bytes, auth->key.len, auth->asked);
	for (int n = 0; !secure_ready(&f->secure, f->sock); n++) {
		make_progress();
		read_far(f);
		MUST(n < 100);
	}
}

static void connect_peer(unsigned int i)
{
	struct peer *peer = peer_made(i);
	const struct auth auth = {.key = {"a key of this length", 20}, .encrypts = true};
	struct accepted conn = {.inside = false,
				.fds = {-1, -1},
				.hello.kind =
					how == ENCRYPTED_INITIATOR ? HELLO_ACCEPT : HELLO_CONNECT};
	int pair[2];

	if (peer_linked(peer))
		return;
	/* The peer was lost in the middle of a send, which began to connect again. */
	if (peer_attempts(peer))
		peer_failed(peer, FI_ECONNREFUSED);
	close_far(&far[i]);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
	MUST(!forked_guard(pair[0]));
	far[i] = (struct far){.sock = pair[1]};
	peer->conn.sock = peer->conn.wake = pair[0];
	peer->conn.inside = false;
	if (how == ENCRYPTED)
		conn.auth = auth;
	if (how == ENCRYPTED_INITIATOR) {
		MUST(peer->conn.auth = malloc(sizeof(auth)));
		*peer->conn.auth = auth;
	}
	MUST(!conn_link(peer, &conn, &(struct wire_nic){.qpn = 0}));
	peer_connected(peer);
	if (how)
		secure_far(&far[i], &auth, how == ENCRYPTED);
}

/* The peer closes its socket, with or without unread bytes. */
static void hang_up(unsigned int i)
{
	close_far(&far[i]);
	for (int n = 0; peer_is_connected(i); n++) {
		make_progress();
		MUST(n < 100000);
	}
	if (peer_at(i) && peer_attempts(peer_at(i)))
		peer_failed(peer_at(i), FI_ECONNREFUSED);
}

/* Returns a field's value: small, the endpoint's own (`ours`), or any. */
static uint64_t word(struct input *in, uint64_t ours)
{
	switch (take8(in) % 4) {
	case 0:
		return take8(in);
	case 1:
		return ours;
	case 2:
		return take32(in);
	default:
		return take64(in);
	}
}

/* Sends a well-formed packet; its payload is the input's, or `filler` equal bytes. */
static void frame(struct input *in, struct far *f)
{
	unsigned int op = take8(in) % WIRE_OPS, flags = take8(in);
	struct tcp_frame ours = sent[(sent_count + SENT_MAX - 1 - take8(in) % SENT_MAX) % SENT_MAX];
	struct tcp_frame is = {0};
	static unsigned char payload[TCP_PACKET_MAX];
	size_t len = take16(in), filler = len & 0x8000 ? (len & 0x7fff) * 8 : 0;
	uint64_t id = word(in, wire_id(ours.head));

	if (op == WIRE_FRAG)
		id = word(in, ours.tag); /* of a WIRE_CTS */
	is.head = WIRE_HEAD(op, flags, 0, (uint32_t)id);
	is.tag = word(in, ours.tag);
	is.data = 1;
	is.len = (uint32_t)(filler ? filler : len);
	write_far(f, &is, sizeof(is));
	if (filler) {
		memset(payload, (int)len, filler);
		write_far(f, payload, filler);
	} else {
		take(in, payload, len);
		write_far(f, payload, len);
	}
}

static void raw(struct input *in, struct far *f)
{
	unsigned char bytes[256];
	size_t len = take8(in);

	write_far(f, bytes, take(in, bytes, len));
}

static void step(struct input *in)
{
	uint8_t what = take8(in);
	unsigned int i = what & 64 ? UNKNOWN : what >> 7;
	uint8_t n;

	switch (what % 8) {
	case 0:
	case 1:
		frame(in, &far[i]);
		break;
	case 2:
		raw(in, &far[i]);
		break;
	case 3:
		for (n = take8(in); n && read_far(&far[i]); n--)
			make_progress();
		break;
	case 4:
		make_progress();
		break;
	case 5:
		n = take8(in);
		if (n % 8 == 0) {
			hang_up(i);
			how = tls_load() ? n / 8 % 3 : CLEAR;
		}
		if (n % 8 == 1)
			retire_asked(i);
		break;
	default:
		for (i = 0; i < SENDERS; i++)
			connect_peer(i);
		app_step(in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	if (!world.ep) {
		world_open();
		for (unsigned int i = 0; i < SENDERS; i++)
			far[i].sock = -1;
	}
	how = CLEAR;
	for (unsigned int i = 0; i < SENDERS; i++)
		connect_peer(i);
	for (int i = 0; i < STEPS && in.left; i++) {
		step(&in);
		limits_check();
	}
	for (unsigned int i = 0; i < SENDERS; i++)
		hang_up(i);
	make_progress();
	sent_count = 0;
	memset(sent, 0, sizeof(sent));
	world_quiesce();
	return 0;
}
