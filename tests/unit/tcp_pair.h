/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two workers with the TCP transport alone. What it tells the engine is recorded here: packets and
 * ends of connections. The peer of a link is a plain socket of the test, or the other
 * worker.
 */
#ifndef UNIT_TCP_PAIR_H
#define UNIT_TCP_PAIR_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forked.h"
#include "core/domain.h"
#include "hw/tcp/tcp.h"
#include "hw/transports.h"
#include "link/wire.h"
#include "conn/connect.h"
#include "suite.h"

#define TCP_EAGER_MAX 262144u /* default of FI_WEFT_TCP_EAGER_MAX */

#define LIMIT    40 /* seconds */
#define LINKS    64
#define SEEN_MAX 65536

/* A worker of the test. */
struct side {
	struct opener opener;
	struct domain dom;
	struct list in_domain;
	void *hw;
};
static struct side sides[2];

/* One link. The transport knows it by its index in `joints` plus one. */
static struct joint {
	struct side *side;
	struct link *link;    /* NULL: closed */
	int peer;             /* the test's socket, or -1 */
	int ended;            /* error that `ended` reported */
	int ends;             /* calls of `ended` */
	bool ready;           /* `ready` was called */
	size_t held;          /* bytes: `hold`, `release` */
	unsigned int renewed; /* calls of `hold` with 0 bytes */
} joints[LINKS];
static unsigned int joint_count;

/* One packet that the transport delivered. */
struct seen {
	uint32_t src;
	uint64_t head, tag, data;
	size_t len, kept; /* kept: bytes of `payload` */
	bool landed;      /* came by direct placement */
	unsigned char *payload;
};
static struct seen seen[SEEN_MAX];
static unsigned int seen_count;

/* Payloads under way by direct placement. */
static struct placement {
	uint32_t src;
	struct packet p;
	unsigned char *to;
	size_t wanted; /* bytes to receive; the rest is discarded */
} placements[4];

/* Behaviour of the engine, set by a test. */
static struct {
	void (*on_deliver)(uint32_t src, const struct packet *p);
	void (*on_place)(uint32_t src);
	void (*on_placed)(uint32_t src);
	void (*on_wanted)(uint32_t src, uint32_t rail);
	bool places;        /* take payloads by direct placement */
	size_t wanted;      /* bytes received of each placed payload */
	bool coming;        /* a rail is being made */
	bool holds_none;    /* refuse what `hold` asks for */
	uint32_t rails;     /* of new links; the first worker makes their sockets */
	const uint8_t *key; /* of new sockets; NULL: they are not encrypted */
	size_t segment;     /* bytes of each segment that `placement_iov` returns */
} engine;

static inline void forget(void)
{
	for (unsigned int i = 0; i < seen_count; i++)
		free(seen[i].payload);
	seen_count = 0;
}

static void note(uint32_t src, const struct packet *p, const void *payload, size_t kept,
		 bool landed)
{
	struct seen *s = &seen[seen_count];

	ck_assert_uint_lt(seen_count, SEEN_MAX);
	*s = (struct seen){src, p->head, p->tag, p->data, p->len, kept, landed, malloc(kept + 1)};
	ck_assert_ptr_nonnull(s->payload);
	if (kept)
		memcpy(s->payload, payload, kept);
	seen_count++;
}

static struct joint *joint_of(const struct opener *o, uint32_t src)
{
	ck_assert(src > 0 && src <= joint_count);
	ck_assert_ptr_eq(&joints[src - 1].side->opener, o);
	ck_assert_ptr_nonnull(joints[src - 1].link); /* of a closed link nothing is told */
	return &joints[src - 1];
}

static inline void close_joint(uint32_t src)
{
	struct link *link = joints[src - 1].link;

	joints[src - 1].link = NULL;
	link->ops->close(link);
	ck_assert_uint_eq(joints[src - 1].held, 0);
}

/* What stands for the engine. */
static void engine_deliver(struct opener *o, uint32_t src, const struct packet *p)
{
	joint_of(o, src);
	note(src, p, p->payload, p->len, false);
	if (engine.on_deliver)
		engine.on_deliver(src, p);
	/* The payload stays valid until `deliver` returns. */
	ck_assert_mem_eq(seen[seen_count - 1].payload, p->payload, p->len);
}

static void *engine_payload_new(struct opener *o, uint32_t src, const struct packet *p)
{
	joint_of(o, src);
	return malloc(p->len);
}

static void engine_payload_free(struct opener *o, uint32_t src, void *payload)
{
	(void)o, (void)src;
	free(payload);
}

static bool engine_hold(struct opener *o, uint32_t src, size_t bytes)
{
	struct joint *j = joint_of(o, src);

	j->renewed += !bytes;
	j->held += engine.holds_none ? 0 : bytes;
	return !engine.holds_none;
}

static void engine_release(struct opener *o, uint32_t src, size_t bytes)
{
	(void)o;
	ck_assert_uint_ge(joints[src - 1].held, bytes);
	joints[src - 1].held -= bytes;
}

static void engine_deliver_collected(struct opener *o, uint32_t src, const struct packet *p)
{
	engine_deliver(o, src, p);
	free((void *)(uintptr_t)p->payload);
}

static void engine_rail_wanted(struct opener *o, uint32_t src, uint32_t rail, uint32_t ms)
{
	ck_assert_uint_gt(ms, 0);
	joint_of(o, src);
	if (engine.on_wanted)
		engine.on_wanted(src, rail);
}

static bool engine_rail_coming(struct opener *o, uint32_t src)
{
	joint_of(o, src);
	return engine.coming;
}

static uint32_t engine_placement_begin(struct opener *o, uint32_t src, const struct packet *p)
{
	joint_of(o, src);
	if (engine.on_place)
		engine.on_place(src);
	for (uint32_t i = 0; engine.places && i < 4; i++)
		if (!placements[i].to) {
			placements[i] = (struct placement){src, *p, malloc(p->len), p->len};
			if (placements[i].wanted > engine.wanted)
				placements[i].wanted = engine.wanted;
			memset(placements[i].to, 0xee, p->len);
			return i + 1;
		}
	return 0;
}

static size_t engine_placement_iov(struct opener *o, uint32_t id, size_t offset, struct iovec *iov,
				   size_t max)
{
	struct placement *to = &placements[id - 1];
	size_t count = 0;

	joint_of(o, to->src);
	ck_assert_ptr_nonnull(to->to);
	ck_assert_uint_lt(offset, to->p.len);
	for (; count < max && offset < to->wanted; count++) {
		size_t n = to->wanted - offset;

		iov[count] =
			(struct iovec){to->to + offset, n < engine.segment ? n : engine.segment};
		offset += iov[count].iov_len;
	}
	return count;
}

static void engine_placement_end(struct opener *o, uint32_t id)
{
	struct placement *to = &placements[id - 1];
	uint32_t src = to->src;

	joint_of(o, src);
	ck_assert_ptr_nonnull(to->to);
	note(src, &to->p, to->to, to->p.len, true);
	free(to->to);
	to->to = NULL;
	if (engine.on_placed)
		engine.on_placed(src);
}

static void engine_ready(struct opener *o, uint32_t src)
{
	struct joint *j = joint_of(o, src);

	ck_assert(j->link->securing && !j->ready);
	j->ready = true;
}

static void engine_ended(struct opener *o, uint32_t src, int err)
{
	struct joint *j = joint_of(o, src);

	j->ended = err;
	j->ends++;
	close_joint(src);
	for (int i = 0; i < 4; i++)
		if (placements[i].to && placements[i].src == src) {
			free(placements[i].to);
			placements[i].to = NULL;
		}
}

static void *engine_successor(struct opener *o, const void *state)
{
	(void)o, (void)state;
	return NULL;
}

static const struct link_events events = {
	.deliver = engine_deliver,
	.hold = engine_hold,
	.release = engine_release,
	.payload_new = engine_payload_new,
	.payload_free = engine_payload_free,
	.deliver_collected = engine_deliver_collected,
	.placement_begin = engine_placement_begin,
	.placement_iov = engine_placement_iov,
	.placement_end = engine_placement_end,
	.ready = engine_ready,
	.ended = engine_ended,
	.rail_wanted = engine_rail_wanted,
	.rail_coming = engine_rail_coming,
	.successor = engine_successor,
};

static void tcp_sockets(int fds[2])
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&in, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fds[0], (struct sockaddr *)&in, len), 0);
	fds[1] = accept(listener, NULL, NULL);
	ck_assert_int_ge(fds[1], 0);
	close(listener);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(fcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
}

static inline void buffers(int sock, int bytes)
{
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

/* What the engine has learned when it gives a link a socket. */
static struct link_peer learned(const struct side *side, int sock)
{
	static const struct wire_hello hello = {.flags = WIRE_HELLO_KERNEL_TLS};

	ck_assert_int_eq(forked_guard(sock), 0);
	return (struct link_peer){.hello = &hello,
				  .id = joint_count + 1,
				  .fds = {-1, -1},
				  .sock = sock,
				  .rails = engine.rails,
				  .key = engine.key,
				  .initiator = side == &sides[0]};
}

static uint32_t join_socket(struct side *side, int sock)
{
	struct link_peer peer = learned(side, sock);
	struct joint *j = &joints[joint_count];

	ck_assert_uint_lt(joint_count, LINKS);
	joint_count++;
	*j = (struct joint){.side = side, .peer = -1};
	connect_tune(sock); /* as the exchange of hellos leaves a socket */
	connect_set_linked(sock);
	ck_assert_int_eq(tcp_transport.connect(side->hw, &peer, &j->link), 0);
	return peer.id;
}

/* Links the first worker to a socket of the test. Returns the link's id. */
static inline uint32_t join_raw(void)
{
	uint32_t id;
	int fds[2];

	tcp_sockets(fds);
	id = join_socket(&sides[0], fds[0]);
	joints[id - 1].peer = fds[1];
	return id;
}

/* Links the two workers. Returns the first worker's id; the second worker's id is one more. */
static inline uint32_t join_both(void)
{
	uint32_t id;
	int fds[2];

	tcp_sockets(fds);
	id = join_socket(&sides[0], fds[0]);
	join_socket(&sides[1], fds[1]);
	return id;
}

static inline struct link *link_of(uint32_t id)
{
	return joints[id - 1].link;
}

static inline int peer_of(uint32_t id)
{
	return joints[id - 1].peer;
}

static inline bool make_progress(int side)
{
	return tcp_transport.progress(sides[side].hw);
}

/* Calls progress of both workers until `condition` holds; fails after 10 s. */
#define PROGRESS_UNTIL(condition)                                                                  \
	do {                                                                                       \
		uint64_t end_ = clock_coarse_ms() + 10000;                                         \
		bool so_;                                                                          \
		while (!(so_ = (condition)) && clock_coarse_ms() < end_)                           \
			make_progress(0), make_progress(1);                                        \
		ck_assert_msg(so_, "%s", #condition);                                              \
	} while (0)

static inline void quiet_calls(int ms)
{
	uint64_t end = clock_coarse_ms() + (uint64_t)ms;

	while (clock_coarse_ms() < end)
		make_progress(0), make_progress(1);
}

static inline void write_all(int sock, const void *buf, size_t len)
{
	const char *at = buf;

	while (len) {
		ssize_t n = send(sock, at, len, MSG_NOSIGNAL);

		if (n < 0) {
			ck_assert_int_eq(errno, EAGAIN);
			make_progress(0);
			continue;
		}
		at += n;
		len -= (size_t)n;
	}
}

/* Layout of a packet's head on the wire, in bytes. */
#define FRAME   32
#define AT_LEN  24
#define AT_ZERO 28

/* Writes the head of a packet. Returns its length. */
static inline size_t put_frame(unsigned char *to, uint64_t head, uint64_t tag, uint64_t data,
			       uint32_t len)
{
	memset(to, 0, FRAME);
	memcpy(to, &head, 8);
	memcpy(to + 8, &tag, 8);
	memcpy(to + 16, &data, 8);
	memcpy(to + AT_LEN, &len, 4);
	return FRAME;
}

/* Returns byte `at` of the payload of packet `number`. */
static inline unsigned char byte_of(uint64_t number, size_t at)
{
	return (unsigned char)(number * 31 + at * 7 + at / 251);
}

static inline void fill(unsigned char *to, uint64_t number, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = byte_of(number, i);
}

/*
 * Checks that delivery `at` is packet `number`: its first `good` bytes as sent, the others never
 * written.
 */
static inline void expect_seen(unsigned int at, uint32_t src, uint64_t number, size_t len,
			       size_t good)
{
	const struct seen *s = &seen[at];

	ck_assert_uint_lt(at, seen_count);
	ck_assert_uint_eq(s->src, src);
	ck_assert_uint_eq(s->tag, number);
	ck_assert_uint_eq(s->len, len);
	for (size_t i = 0; i < good; i++)
		if (s->payload[i] != byte_of(number, i))
			ck_abort_msg("byte %zu of packet %u", i, (unsigned int)number);
	for (size_t i = good; i < len; i++)
		ck_assert_uint_eq(s->payload[i], 0xee);
}

static void setup(void)
{
	alarm(LIMIT);
	memset(&engine, 0, sizeof(engine));
	engine.wanted = engine.segment = SIZE_MAX;
	joint_count = 0;
	for (int i = 0; i < 2; i++) {
		memset(&sides[i], 0, sizeof(sides[i]));
		sides[i].opener =
			(struct opener){.events = &events, .dom = &sides[i].dom, .opened = 1};
		list_init(&sides[i].dom.workers);
		list_push(&sides[i].dom.workers, &sides[i].in_domain);
		ck_assert_int_eq(tcp_transport.open(&sides[i].opener, &sides[i].hw), 0);
	}
}

static void teardown(void)
{
	for (uint32_t id = 1; id <= joint_count; id++) {
		if (joints[id - 1].link)
			close_joint(id);
		if (joints[id - 1].peer >= 0)
			close(joints[id - 1].peer);
	}
	for (int i = 0; i < 2; i++)
		tcp_transport.close(sides[i].hw);
	forget();
	for (int i = 0; i < 4; i++)
		free(placements[i].to);
	memset(placements, 0, sizeof(placements));
}

static inline int run_suite(Suite *suite, TCase *tcase)
{
	tcase_set_timeout(tcase, LIMIT + 5);
	tcase_add_checked_fixture(tcase, setup, teardown);
	return suite_run(suite);
}

#endif
