/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of the application under test, between steps of its peers; the input chooses each step. */
#ifndef FUZZ_APP_H
#define FUZZ_APP_H

#include "groups.h"

#define TAGS 4

static const size_t lengths[] = {0, 1, 8, 100, 3000, 4096, 5000, 20000, 140000, 300000};
static const uint64_t send_flags[] = {
	0,        FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE,   FI_INJECT,
	FI_FENCE, FI_REMOTE_CQ_DATA,    FI_TRANSMIT_COMPLETE};

/* Describes the slot's buffer as one segment or three. Returns their number. */
static inline size_t pieces(struct input *in, const struct slot *s, struct iovec iov[3])
{
	size_t a = s->len / 3, b = s->len / 2;

	if (take8(in) % 2 || s->use == MULTI) {
		iov[0] = (struct iovec){s->buf, s->len};
		return 1;
	}
	iov[0] = (struct iovec){s->buf, a};
	iov[1] = (struct iovec){s->buf + a, b - a};
	iov[2] = (struct iovec){s->buf + b, s->len - b};
	return 3;
}

static inline fi_addr_t from(struct input *in)
{
	uint8_t n = take8(in) % (PEERS + 1);

	return n < PEERS ? world.addr[n] : FI_ADDR_UNSPEC;
}

static inline void app_recv(struct input *in, enum use use)
{
	struct slot *s = slot_new(use, CHOOSE(in, lengths));
	bool tagged = take8(in) % 2;
	uint64_t flags = use == MULTI ? FI_MULTI_RECV : 0;
	struct iovec iov[3];

	if (!s)
		return;
	if (tagged) {
		struct fi_msg_tagged m = {.msg_iov = iov, .context = s};

		m.iov_count = pieces(in, s, iov);
		/*
		 * Not directed: the end of a directed multi-receive with a lost peer is not tested
		 * here.
		 */
		m.addr = use == MULTI ? FI_ADDR_UNSPEC : from(in);
		m.tag = take8(in) % TAGS;
		m.ignore = take8(in) % 2 ? UINT64_MAX : 0;
		slot_posted(s, fi_trecvmsg(world.ep, &m, flags | FI_COMPLETION));
	} else {
		struct fi_msg m = {.msg_iov = iov, .context = s};

		m.iov_count = pieces(in, s, iov);
		m.addr = use == MULTI ? FI_ADDR_UNSPEC : from(in);
		slot_posted(s, fi_recvmsg(world.ep, &m, flags | FI_COMPLETION));
	}
}

static inline void app_send(struct input *in)
{
	struct slot *s = slot_new(SEND, CHOOSE(in, lengths));
	uint64_t flags = CHOOSE(in, send_flags) | FI_COMPLETION;
	fi_addr_t to = world.addr[take8(in) % PEERS];
	struct iovec iov[3];

	if (!s)
		return;
	if (take8(in) % 2) {
		struct fi_msg_tagged m = {.msg_iov = iov, .addr = to, .context = s, .data = 9};

		m.iov_count = pieces(in, s, iov);
		m.tag = take8(in) % TAGS;
		slot_posted(s, fi_tsendmsg(world.ep, &m, flags));
	} else {
		struct fi_msg m = {.msg_iov = iov, .addr = to, .context = s, .data = 9};

		m.iov_count = pieces(in, s, iov);
		slot_posted(s, fi_sendmsg(world.ep, &m, flags));
	}
}

static inline void app_rma(struct input *in, bool write)
{
	struct slot *s = slot_new(SEND, CHOOSE(in, lengths));
	uint64_t flags = take8(in) % 2 ? FI_COMPLETION | FI_REMOTE_CQ_DATA : FI_COMPLETION;
	struct fi_rma_iov remote[2];
	struct iovec iov[3];
	struct fi_msg_rma m = {.msg_iov = iov,
			       .rma_iov = remote,
			       .rma_iov_count = 1 + take8(in) % 2,
			       .context = s,
			       .data = 8};

	if (!s)
		return;
	m.addr = world.addr[take8(in) % PEERS];
	m.iov_count = pieces(in, s, iov);
	remote[0] = (struct fi_rma_iov){.addr = 1000, .len = s->len, .key = 1};
	if (m.rma_iov_count == 2) {
		remote[0].len = s->len / 4;
		remote[1] = (struct fi_rma_iov){0, s->len - s->len / 4, 2};
	}
	slot_posted(s, write ? fi_writemsg(world.ep, &m, flags) : fi_readmsg(world.ep, &m, flags));
}

/* Posts an atomic on a region, or on a tagged receive. */
static inline void app_atomic(struct input *in)
{
	static const size_t counts[] = {1, 2, 100, 512};
	size_t count = CHOOSE(in, counts);
	struct slot *s = slot_new(SEND, count * 16);
	uint64_t flags = FI_COMPLETION | (take8(in) % 2 ? FI_TAGGED : 0);
	struct fi_ioc operand, compare, result;
	struct fi_rma_ioc remote = {.addr = 8, .count = count, .key = 1};
	struct fi_msg_atomic m = {.msg_iov = &operand,
				  .iov_count = 1,
				  .rma_iov = &remote,
				  .rma_iov_count = 1,
				  .datatype = FI_UINT64,
				  .op = FI_SUM,
				  .context = s};
	unsigned int form = take8(in) % 3;

	if (!s)
		return;
	s->result = malloc(count * 8);
	MUST(s->result);
	operand = (struct fi_ioc){s->buf, count};
	compare = (struct fi_ioc){s->buf + count * 8, count};
	result = (struct fi_ioc){s->result, count};
	m.addr = world.addr[take8(in) % PEERS];
	if (form == 0) {
		slot_posted(s, fi_atomicmsg(world.ep, &m, flags));
	} else if (form == 1) {
		slot_posted(s, fi_fetch_atomicmsg(world.ep, &m, &result, NULL, 1, flags));
	} else {
		m.op = FI_CSWAP;
		slot_posted(s, fi_compare_atomicmsg(world.ep, &m, &compare, NULL, 1, &result, NULL,
						    1, flags));
	}
}

static inline void app_cancel(struct input *in)
{
	struct slot *s = &world.slot[take8(in) % SLOTS];

	if (s->use == RECV || s->use == MULTI || s->use == SEND)
		fi_cancel(&world.ep->fid, s);
}

static inline void app_peek(struct input *in)
{
	static const uint64_t more[] = {0, FI_CLAIM, FI_DISCARD};
	uint64_t flags = CHOOSE(in, more);
	struct slot *s = slot_new(flags == FI_CLAIM ? CLAIM : PEEK, 0);
	struct fi_msg_tagged m = {.context = s, .addr = from(in), .tag = take8(in) % TAGS};

	if (!s)
		return;
	m.ignore = take8(in) % 2 ? UINT64_MAX : 0;
	slot_posted(s, fi_trecvmsg(world.ep, &m, FI_PEEK | FI_COMPLETION | flags));
	reap();
}

/* Receives a claimed message. */
static inline void app_claimed(struct input *in)
{
	struct slot *s = &world.slot[take8(in) % SLOTS];
	struct iovec iov[3];
	struct fi_msg_tagged m = {.msg_iov = iov, .context = s};

	if (s->use != CLAIMED)
		return;
	s->len = CHOOSE(in, lengths);
	s->use = RECV;
	free(s->buf);
	s->buf = malloc(s->len);
	MUST(s->buf || !s->len);
	m.iov_count = pieces(in, s, iov);
	MUST(!fi_trecvmsg(world.ep, &m, FI_CLAIM | FI_COMPLETION));
}

static inline void app_region(struct input *in)
{
	uint64_t key = KEY_ALL + take8(in) % (KEYS - KEY_ALL);

	if (world.mr[key])
		region_close(key);
	else
		region_open(key);
}

#define APP_STEPS 12

static inline void app_step(struct input *in)
{
	switch (take8(in) % APP_STEPS) {
	case 0:
	case 1:
		app_recv(in, RECV);
		break;
	case 2:
		app_recv(in, MULTI);
		break;
	case 3:
		app_send(in);
		break;
	case 4:
		app_rma(in, true);
		break;
	case 5:
		app_rma(in, false);
		break;
	case 6:
		app_atomic(in);
		break;
	case 7:
		app_cancel(in);
		break;
	case 8:
		app_peek(in);
		break;
	case 9:
		app_claimed(in);
		break;
	case 10:
		club_step(in);
		break;
	default:
		app_region(in);
	}
}

#endif
