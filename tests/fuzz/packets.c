/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the engine's packet handling: packets of any content, while the endpoint communicates with
 * the peers that send them. The link is fake: it accepts as many packets as the input allows, holds
 * some zero-copy packets back, and records ids, so that peers can answer real requests.
 */
#include <sys/socket.h>

#include "app.h"
#include "xfer/events.h"

#define EAGER    16384u
#define PACKET   16384u
#define SENT_MAX 8
#define STEPS    200

struct far {
	struct link link; /* first */
	unsigned int room;
	struct iovec zcopy[48];
	size_t zcopy_count;
};

/* The last packets that the endpoint sent, to any peer. */
static struct {
	uint64_t head, tag;
} sent[SENT_MAX];
static unsigned int sent_count;

/* Reads all bytes sent, so that the sanitizer checks them. */
static void look_at(const struct iovec *iov, size_t count)
{
	static unsigned char copy[PACKET];

	for (size_t i = 0; i < count; i++)
		if (iov[i].iov_len)
			memcpy(copy, iov[i].iov_base, iov[i].iov_len);
}

static int far_put(struct far *f, const struct packet *p, const struct iovec *iov, size_t count,
		   bool zcopy)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += iov[i].iov_len;
	MUST(len == p->len);
	if (len > PACKET || count > 48)
		return -FI_EMSGSIZE;
	if (!f->room || link_holds(&f->link))
		return -FI_EAGAIN;
	f->room--;
	sent[sent_count % SENT_MAX].head = p->head;
	sent[sent_count++ % SENT_MAX].tag = p->tag;
	f->link.zcopy_posted += zcopy && f->room % 2;
	if (link_holds(&f->link))
		memcpy(f->zcopy, iov, (f->zcopy_count = count) * sizeof(*iov));
	else
		look_at(iov, count);
	return 0;
}

static int far_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count)
{
	return far_put((struct far *)link, p, iov, count, false);
}

static int far_zcopy(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count)
{
	return far_put((struct far *)link, p, iov, count, true);
}

static int far_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		    uint64_t tag)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return far_put((struct far *)link, &p, &iov, 1, false);
}

/* Reads a zero-copy packet that was held back, from the application's memory. */
static int far_zcopy_copy_out(struct link *link)
{
	struct far *f = (struct far *)link;

	if (link_holds(link))
		look_at(f->zcopy, f->zcopy_count);
	link->zcopy_done = link->zcopy_posted;
	return 0;
}

static void far_cork(struct link *link, bool more)
{
	(void)link, (void)more;
}

static void far_close(struct link *link)
{
	free(link);
}

static const struct link_ops far_ops = {
	.send = far_send,
	.sendv = far_sendv,
	.close = far_close,
};

static const struct link_zcopy_ops far_zcopy_ops = {
	.sendv = far_zcopy,
	.copy_out = far_zcopy_copy_out,
	.cork = far_cork,
};

/* Connects the peer, if it is not connected. */
static struct peer *connect_peer(unsigned int i)
{
	struct peer *peer = peer_made(i);
	struct far *f;

	if (contact_linked(&peer->conn))
		return peer;
	/* The peer was lost in the middle of a send, which began to connect again. */
	if (contact_attempts(&peer->conn))
		contact_failed(&peer->conn, FI_ECONNREFUSED);
	MUST(f = calloc(1, sizeof(*f)));
	f->link = (struct link){LINK_BARE, .ops = &far_ops};
	f->link.zcopy = &far_zcopy_ops;
	f->link.eager_max = EAGER;
	f->link.packet_max = PACKET;
	f->link.zcopy_min = 1000;
	f->room = 4;
	peer->conn.real = &f->link;
	peer->conn.kind = LINK_SOCKET;
	peer->conn.hello_flags = WIRE_HELLO_INTRODUCES;
	contact_connected(&peer->conn);
	return peer;
}

/* An endpoint that a peer names: another peer, or one that is nowhere, in a network for documentation. */
static struct wire_address place(struct input *in)
{
	uint8_t how = take8(in);
	struct wire_address a = {.ip = {192, 0, 2, how}, .port = 9};

	if (how < 128)
		a = (struct wire_address){.ip = {127, 0, 0, 1}, .port = 1 + how % 4};
	return a;
}

/* Makes up a payload of packets of this kind: that which they have, or any bytes. Returns its length. */
static size_t payload(struct input *in, unsigned int op, void *to)
{
	size_t len = take16(in) % (PACKET + 1);

	if (op == WIRE_GROUP && len % 2) {
		*(struct wire_group *)to = club_message(in);
		return sizeof(struct wire_group);
	}
	if (op == WIRE_INTRODUCE && (len % 2 || len == sizeof(struct wire_address))) {
		*(struct wire_address *)to = place(in);
		return sizeof(struct wire_address);
	}
	take(in, to, len);
	return len;
}

/* Delivers a packet. Input: op, flags, receive context, id, tag, data, length, payload. */
static void packet(struct input *in, struct peer *peer)
{
	static unsigned char bytes[PACKET];
	unsigned int op = take8(in), flags = take8(in), rx = take8(in);
	unsigned int which = sent_count + SENT_MAX - 1 - take8(in) % SENT_MAX;
	uint64_t id = wire_id(sent[which % SENT_MAX].head), tag = sent[which % SENT_MAX].tag;
	struct packet p = {0};
	unsigned char *exact;

	id = word(in, id);
	if (op == WIRE_FRAG)
		id = word(in, tag); /* of a WIRE_CTS */
	/* 255 stands for groups. */
	p.head = WIRE_HEAD(op, flags, rx == UINT8_MAX ? WIRE_RX_GROUP : rx, (uint32_t)id);
	p.tag = rx == UINT8_MAX ? club_tag(in, tag) : word(in, tag);
	p.data = flags & WIRE_DATA ? word(in, rx == UINT8_MAX ? club_number() : 1) : 0;
	p.len = payload(in, op, bytes);
	exact = malloc(p.len); /* the sanitizer sees a byte too many */
	MUST(exact || !p.len);
	if (p.len)
		memcpy(exact, bytes, p.len);
	p.payload = exact;
	rx_deliver(&world.worker->conn.opener, pool_id(peer), &p);
	free(exact);
}

/* The connection ends, or an attempt that the application has begun since. */
static void lose(unsigned int i)
{
	struct peer *peer = peer_at(i);

	if (peer && (contact_linked(&peer->conn) || contact_attempts(&peer->conn)))
		conn_fail(&peer->conn, FI_ECONNRESET, NULL);
	reap();
}

/* Attempts to connect to endpoints that others have named end. */
static void lose_introduced(void)
{
	LIST_EACH_SAFE (node, &world.worker->conn.peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, conn.in_station);

		if (contact_attempts(&peer->conn))
			conn_fail(&peer->conn, FI_ETIMEDOUT, NULL);
	}
}

static void lose_or_ask(uint8_t n, unsigned int i)
{
	if (n % 8 == 0)
		lose(i);
	if (n % 8 == 1)
		retire_asked(i);
	if (n % 8 == 2)
		club_wait();
	if (n % 8 == 3)
		world.worker->conn.reaches_out = n & 8; /* follows introductions, or not */
}

static void step(struct input *in)
{
	uint8_t what = take8(in);
	unsigned int i = what & 64 ? UNKNOWN : what >> 7;
	struct peer *peer = connect_peer(i);
	struct far *f = (struct far *)peer->conn.real;

	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		packet(in, peer);
		break;
	case 3:
		f->room = take8(in);
		far_zcopy_copy_out(&f->link);
		break;
	case 4:
		worker_progress(world.worker);
		reap();
		break;
	case 5:
		lose_or_ask(take8(in), i);
		break;
	default:
		app_step(in);
	}
}

static int ends[2]; /* of a connection on which nothing is unsent */

static int far_sock(const struct link *link)
{
	(void)link;
	return ends[0];
}

static bool far_arrived(const struct link *link)
{
	return !link_holds(link);
}

/* tcp is asked nothing of these links: what it says of its own needs more of a link. */
static void initialize(void)
{
	static struct transport network;

	world_open();
	if (!ends[0])
		MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	network = *world.worker->conn.via[LINK_SOCKET].transport;
	network.sock = far_sock;
	network.arrived = far_arrived;
	network.describe = NULL;
	network.ping = NULL;
	network.join = NULL;
	world.worker->conn.via[LINK_SOCKET].transport = &network;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	if (!world.ep)
		initialize();
	for (unsigned int i = 0; i < SENDERS; i++)
		connect_peer(i);
	for (int i = 0; i < STEPS && in.left; i++) {
		step(&in);
		limits_check();
	}
	for (unsigned int i = 0; i < SENDERS; i++)
		lose(i);
	lose_introduced();
	world.worker->conn.reaches_out = false;
	sent_count = 0;
	memset(sent, 0, sizeof(sent));
	club_leave();
	world_quiesce();
	if (ends_all(size))
		world_close();
	return 0;
}
