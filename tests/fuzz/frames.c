/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the TCP transport's input: bytes of any content and in any pieces on its sockets, while
 * the endpoint communicates with the peers that send them, also through encryption, and over several
 * rails, whose chunks have any place, and whose sockets come and go. The endpoint's
 * own output must be valid packets; the ids in them serve the peers for answers.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app.h"
#include "base/clock.h"
#include "base/forked.h"
#include "far.h"

#define STEPS 200
#define RAILS 3

static struct far far[SENDERS];

/* How the next links are made. */
enum { CLEAR, ENCRYPTED, ENCRYPTED_INITIATOR, RAILED, RAILED_ENCRYPTED, RAILED_INITIATOR, WAYS };
static unsigned int how;

static const struct auth auth = {.key = {"a key of this length", 20}, .encrypts = true};

static void make_progress(void)
{
	worker_progress(world.worker);
	reap();
}

static bool encrypts(void)
{
	return how != CLEAR && how != RAILED;
}

static bool is_initiator(void)
{
	return how == ENCRYPTED_INITIATOR || how == RAILED_INITIATOR;
}

/* The handshake of an encrypted socket, unless the link ends meanwhile. */
static void secure_rail(unsigned int i, struct rail *r)
{
	secure_begin(&r->secure, !is_initiator(), auth.key.bytes, auth.key.len, auth.asked);
	for (int n = 0; peer_is_connected(i) && !secure_ready(&r->secure, r->sock); n++) {
		make_progress();
		read_rail(&far[i], r);
		MUST(n < 100);
	}
}

/* Makes a socket of the peer; returns the endpoint's end. */
static int new_rail(struct rail *r)
{
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
	MUST(!forked_guard(pair[0]));
	close_rail(r);
	r->sock = pair[1];
	return pair[0];
}

/* A link as the hellos describe it: src/conn/conn_handshake.c. */
static void link_one(struct peer *peer, int sock)
{
	struct accepted conn = {.inside = false,
				.fds = {-1, -1},
				.hello.kind = is_initiator() ? HELLO_ACCEPT : HELLO_CONNECT};

	peer->conn.sock = peer->conn.wake = sock;
	peer->conn.kind = LINK_SOCKET;
	if (encrypts() && !is_initiator())
		conn.auth = auth;
	if (is_initiator()) {
		MUST(!attempt_begin(&peer->conn));
		MUST(peer->conn.attempt->auth = malloc(sizeof(auth)));
		*peer->conn.attempt->auth = auth;
	}
	MUST(!conn_link(&peer->conn, &conn, &(struct wire_nic){.qpn = 0}));
	attempt_end(&peer->conn);
}

/* What the transport is told of a socket that becomes a rail. */
static struct link_peer railed(struct peer *peer, int sock, uint8_t key[TLS_KEY])
{
	MUST(!encrypts() || auth_link_key(&auth, key));
	return (struct link_peer){.key = encrypts() ? key : NULL,
				  .initiator = is_initiator(),
				  .rails = RAILS,
				  .id = pool_id(peer),
				  .sock = sock};
}

/* A link with rails. Hellos agree on them only between hosts: tests/fault/rails_forger.c makes up those. */
static void link_railed(struct peer *peer, int sock)
{
	const struct transport *t = world.worker->conn.via[LINK_SOCKET].transport;
	uint8_t key[TLS_KEY];
	struct link_peer lp = railed(peer, sock, key);

	MUST(!t->connect(world.worker->conn.via[LINK_SOCKET].state, &lp, &peer->conn.real));
	peer->conn.kind = LINK_SOCKET;
	peer->conn.sock = peer->conn.wake = -1;
}

static void connect_peer(unsigned int i)
{
	struct peer *peer = peer_made(i);
	struct far *f = &far[i];
	int sock;

	if (contact_linked(&peer->conn))
		return;
	/* The peer was lost in the middle of a send, which began to connect again. */
	if (contact_attempts(&peer->conn))
		contact_failed(&peer->conn, FI_ECONNREFUSED);
	close_far(f);
	sock = new_rail(&f->rail[0]);
	*f = (struct far){.rail = {f->rail[0], f->rail[1], f->rail[2], f->rail[3]},
			  .rails = how >= RAILED};
	if (f->rails)
		link_railed(peer, sock);
	else
		link_one(peer, sock);
	contact_connected(&peer->conn);
	if (encrypts())
		secure_rail(i, &f->rail[0]);
}

/* A further socket becomes a rail of the link, or takes the place of one. */
static void join_rail(unsigned int i, unsigned int number)
{
	const struct transport *t = world.worker->conn.via[LINK_SOCKET].transport;
	struct rail *r = &far[i].rail[number];
	uint8_t key[TLS_KEY];
	struct link_peer lp;
	int sock;

	if (!far[i].rails || !peer_is_connected(i))
		return;
	sock = new_rail(r);
	lp = railed(peer_at(i), sock, key);
	if (t->join(peer_at(i)->conn.real, number, &lp)) {
		forked_close(sock);
		close_rail(r);
	} else if (encrypts()) {
		secure_rail(i, r);
	}
}

/* The peer closes its sockets, with or without unread bytes. That is noticed within some calls, not by what is looked at now and then. */
static void hang_up(unsigned int i)
{
	close_far(&far[i]);
	for (int n = 0; peer_is_connected(i); n++) {
		make_progress();
		MUST(n < 5000);
	}
	if (peer_at(i) && contact_attempts(&peer_at(i)->conn))
		contact_failed(&peer_at(i)->conn, FI_ECONNREFUSED);
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

	write_rail(&f->rail[f->use], bytes, take(in, bytes, len));
}

/* Sends a chunk whose head is as the input has it, near the place that is due or anywhere. */
static void chunk(struct input *in, struct far *f)
{
	static struct {
		struct tcp_chunk head;
		unsigned char bytes[TCP_CHUNK];
	} whole;
	uint8_t what = take8(in);

	whole.head.at = what & 1 ? f->out + take16(in) : word(in, f->out);
	whole.head.ack = word(in, f->next);
	whole.head.len = what & 2 ? 0 : what & 4 ? take32(in) : take8(in);
	whole.head.asks = what & 8 ? take8(in) : !!(what & 16);
	take(in, whole.bytes, what >> 5);
	write_rail(&f->rail[f->use], &whole, sizeof(whole.head) + (whole.head.len & 0xffff));
}

/* Time passes for the checks of rails. */
static void rails_wait(void)
{
	struct tcp *t = world.worker->conn.via[LINK_SOCKET].state;

	t->looked_rails -= 10000;
	t->next_rails = 0;
	tcp_rails_poll(t, clock_coarse_ms());
}

static void rail_event(struct input *in, uint8_t n, unsigned int i)
{
	unsigned int number = n / 8 % WIRE_RAILS_MAX;

	switch (n % 8) {
	case 2:
		join_rail(i, number);
		break;
	case 3:
		close_rail(&far[i].rail[number]);
		break;
	case 4:
		far[i].use = far[i].rails ? number : 0;
		break;
	case 5:
		rails_wait();
		break;
	default:
		if (far[i].rails)
			chunk(in, &far[i]);
	}
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
			how = tls_load() ? n / 8 % WAYS : CLEAR;
		} else if (n % 8 == 1) {
			retire_asked(i);
		} else {
			rail_event(in, n, i);
		}
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
			for (unsigned int n = 0; n < WIRE_RAILS_MAX; n++)
				far[i].rail[n].sock = -1;
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
	club_leave();
	world_quiesce();
	if (ends_all(size))
		world_close();
	return 0;
}
