/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that a hostile peer sends once it no longer obeys. */
#ifndef FAULT_HOSTILE_ACTS_H
#define FAULT_HOSTILE_ACTS_H

#include "hostile_run.h"

#define UNWANTED_LEN 30000u /* bytes of a message that nobody receives */

/* Sends a packet of one of `count` kinds with any flags. */
static inline void act_of(struct run *r, struct raw_link *l, const unsigned char *ops, size_t count)
{
	unsigned int op = ops[rng_below(&r->rng, (uint32_t)count)];
	unsigned int flags = (unsigned int)rng_bits(&r->rng, 8);

	if (op >= WIRE_PUT && op <= WIRE_AMO &&
	    !rng_one_in(&r->rng, 3)) /* a form that makes sense */
		flags = (rng_one_in(&r->rng, 2) ? LONG : DATA) | (rng_one_in(&r->rng, 2) ? CQ : 0);
	hostile_make(&r->rng, l, op, flags);
	raw_link_put(l, hostile.f, hostile.payload);
}

#define ACT_OF(r, l, ...)                                                                          \
	act_of(r, l, (const unsigned char[]){__VA_ARGS__},                                         \
	       sizeof((const unsigned char[]){__VA_ARGS__}))

static void any_packet(struct run *r, struct raw_link *l)
{
	unsigned int op =
		rng_one_in(&r->rng, 50) ? rng_below(&r->rng, 256) : 1 + rng_below(&r->rng, 17);

	ACT_OF(r, l, (unsigned char)op);
}

static void half_a_packet(struct run *r, struct raw_link *l)
{
	static char bytes[4096];
	struct frame f = {.head = HEAD(1 + rng_below(&r->rng, 16), 0, 0, 0)};
	uint32_t sent = rng_below(&r->rng, sizeof(bytes));

	f.len = sent + rng_below(&r->rng, PACKET_MAX - sizeof(bytes));
	memcpy(bytes, &f, sizeof(f));
	if (!l->inside)
		raw_link_bytes(l, bytes, sent);
}

static void bytes_on_the_socket(struct run *r, struct raw_link *l)
{
	char bytes[64];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = rng_one_in(&r->rng, 2) ? 'w' : (char)rng_next(&r->rng);
	if (l->inside)
		raw_link_bytes(l, bytes, 1 + rng_below(&r->rng, sizeof(bytes) - 1));
}

static void rts_without_fragments(struct run *r, struct raw_link *l)
{
	ACT_OF(r, l, WIRE_RTS);
}

static void answers_to_nothing(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 8)
		ACT_OF(r, l, WIRE_ATS, WIRE_CTS, WIRE_DONE, WIRE_RESULT, WIRE_FAILED);
}

/* A long message whose fragments come in no order. */
static void fragments_out_of_order(struct run *r, struct raw_link *l)
{
	uint64_t cts = l->count[WIRE_CTS], words[] = {20000, 1, 8, 20000, 0};

	raw_link_put(l,
		     (struct frame){.head = HEAD(WIRE_RTS, TAGGED, 0, 78),
				    .tag = FOE_TAG,
				    .len = sizeof(words)},
		     words);
	raw_link_await(l, WIRE_CTS, cts, 2);
	for (uint32_t n = 1 + rng_below(&r->rng, 6); n; n--)
		put(l, WIRE_FRAG, 0, (uint32_t)l->seen[WIRE_CTS].tag,
		    rng_one_in(&r->rng, 3) ? hostile_number(&r->rng) : n * 4000, 0,
		    rng_below(&r->rng, 8000));
}

static void xoff_flood(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 200)
		put(l, rng_one_in(&r->rng, 10) ? WIRE_XON : WIRE_XOFF, 0, 0, 0, 0, 0);
}

static void one_sided(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 8)
		ACT_OF(r, l, WIRE_PUT, WIRE_GET, WIRE_AMO);
}

static void notifications(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 8)
		ACT_OF(r, l, WIRE_NOTIFY);
}

static void joint_copies(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 8)
		ACT_OF(r, l, WIRE_JOINT);
}

/* About closing idle connections. */
static void idle_words(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 8)
		ACT_OF(r, l, WIRE_RETIRE);
}

/* About endpoints that the endpoint is to connect to, or to tell of others. */
static void introductions(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 8)
		ACT_OF(r, l, WIRE_INTRODUCE);
}

static void group_control(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 8)
		ACT_OF(r, l, WIRE_GROUP);
}

static void message_to_group(struct run *r, struct raw_link *l)
{
	unsigned int op = rng_one_in(&r->rng, 4) ? WIRE_RTS : WIRE_MSG;
	uint64_t flags = TAGGED | DATA | rng_bits(&r->rng, 8);
	struct frame f = {.head = HEAD(op, flags, 0xffff, 5), .tag = rng_bits(&r->rng, 64)};

	f.data = rng_bits(&r->rng, rng_one_in(&r->rng, 2) ? 3 : 64);
	f.len = rng_below(&r->rng, l->inside ? SHM_PACKET_MAX : UNWANTED_LEN);
	memset(hostile.payload, 1, f.len);
	if (op == WIRE_RTS)
		f.len = (uint32_t)payload_rts(&r->rng);
	raw_link_put(l, f, hostile.payload);
}

static void messages_to_groups(struct run *r, struct raw_link *l)
{
	RUN_OFTEN (r, 4)
		message_to_group(r, l);
}

static void disconnect_then_more(struct run *r, struct raw_link *l)
{
	put(l, WIRE_DISCONNECT, 0, 0, 0, 0, 0);
	if (l->inside)
		raw_link_bytes(l, "b", 1);
	if (rng_one_in(&r->rng, 2))
		any_packet(r, l);
}

static void close_and_reconnect(struct run *r, struct raw_link *l)
{
	if (rng_one_in(&r->rng, 2))
		raw_link_close(l, rng_one_in(&r->rng, 2));
	else if (l->sock >= 0)
		shutdown(l->sock, rng_one_in(&r->rng, 2) ? SHUT_WR : SHUT_RD);
	run_join(r, STEP_MS);
}

/* Requests whose answers nobody reads. */
static void never_reads(struct run *r, struct raw_link *l)
{
	uint32_t id = 0;
	int room = 4096;

	if (l->sock >= 0 && !l->inside)
		setsockopt(l->sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	memcpy(hostile.payload, &(uint64_t){FOE_LEN}, 8);
	RUN_OFTEN (r, 60)
		raw_link_put(l,
			     (struct frame){.head = HEAD(WIRE_GET, DATA, 0, ++id),
					    .data = FOE_KEY,
					    .len = 8},
			     hostile.payload);
}

static void unwanted_messages(struct run *r, struct raw_link *l)
{
	hostile.strange_tags = true;
	RUN_OFTEN (r, 8)
		put(l, WIRE_MSG, TAGGED, 0, HONEST_TAG + rng_below(&r->rng, PEERS), 0,
		    l->inside ? SHM_PACKET_MAX : UNWANTED_LEN);
	ACT_OF(r, l, WIRE_MSG, WIRE_AMO);
	hostile.strange_tags = false;
}

static void announced_and_never_sent(struct run *r, struct raw_link *l)
{
	hostile.strange_tags = true;
	RUN_OFTEN (r, 30)
		ACT_OF(r, l, WIRE_RTS);
	hostile.strange_tags = false;
}

#endif
