/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fake link for tests of one-sided operations: registered memory with guards around it, the
 * peer's requests built byte by byte, checks of the answers, and the captured log.
 */
#ifndef FAKE_RMA_H
#define FAKE_RMA_H

#define FAKE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC)
#include "fake_link.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <stdio.h>

#include "base/log.h"
#include "core/mr.h"
#include "xfer/rma/rma.h"

#define GUARD  4096
#define REGION 32768

/*
 * Keys of the registered regions, each with its access rights; that of KEY_LOCAL is only requested. Addresses in them
 * count from 0.
 */
enum { KEY_ALL = 10, KEY_READ, KEY_WRITE, KEY_LOCAL, KEY_OFF, KEY_GONE, KEY_UNKNOWN };

struct area {
	unsigned char before[GUARD], data[REGION], after[GUARD];
};

static struct area memory[2], copy[2]; /* [0]: KEY_ALL, KEY_WRITE; [1]: KEY_READ, the others */
static struct fid_mr *regions[KEY_GONE];

static struct {
	unsigned int count; /* lines */
	char text[4096];    /* the last line */
} logged;

static bool log_all(const char *prov, int level, int subsys)
{
	(void)prov, (void)subsys;
	return level <= FI_LOG_INFO;
}

static void log_keep(const struct log_place *place, const char *msg)
{
	(void)place;
	logged.count++;
	snprintf(logged.text, sizeof(logged.text), "%s", msg);
}

static const struct log_sink log_sink = {.enabled = log_all, .write = log_keep};

static void memory_fill(void)
{
	for (unsigned int i = 0; i < 2; i++)
		for (size_t at = 0; at < sizeof(struct area); at++)
			((unsigned char *)&memory[i])[at] = (unsigned char)(at * 7 + at / 256 + i);
	memcpy(copy, memory, sizeof(copy));
}

static struct fid_mr *region_open(void *at, size_t len, uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	ck_assert_int_eq(fi_mr_reg(fake.domain, at, len, access, 0, key, 0, &mr, NULL), 0);
	ck_assert_uint_eq(fi_mr_key(mr),
			  access & (FI_REMOTE_READ | FI_REMOTE_WRITE) ? key : FI_KEY_NOTAVAIL);
	return mr;
}

static void regions_open(void)
{
	struct fid_mr *gone;

	memory_fill();
	regions[KEY_ALL] =
		region_open(memory[0].data, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE, KEY_ALL);
	regions[KEY_WRITE] = region_open(memory[0].data, REGION, FI_REMOTE_WRITE, KEY_WRITE);
	regions[KEY_READ] = region_open(memory[1].data, REGION, FI_REMOTE_READ, KEY_READ);
	regions[KEY_LOCAL] = region_open(memory[1].data, REGION, FI_READ | FI_WRITE, KEY_LOCAL);
	regions[KEY_OFF] =
		region_open(memory[1].data, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE, KEY_OFF);
	/* Not enabled: the state of a region between fi_mr_regattr and fi_mr_enable. */
	LIST_ENTRY(regions[KEY_OFF], struct mr, fid)->enabled = false;
	gone = region_open(memory[1].data, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE, KEY_GONE);
	ck_assert_int_eq(fi_close(&gone->fid), 0);
}

static void region_close(uint64_t key)
{
	if (regions[key])
		ck_assert_int_eq(fi_close(&regions[key]->fid), 0);
	regions[key] = NULL;
}

static inline void rma_setup(void)
{
	fake_open_connected();
	regions_open();
	logged.count = 0;
	log_redirect(&log_sink);
}

static inline void rma_teardown(void)
{
	for (uint64_t key = KEY_ALL; key < KEY_GONE; key++)
		region_close(key);
	fake_shut();
	log_redirect(NULL);
}

static inline bool guards_whole(void)
{
	return !memcmp(memory[0].before, copy[0].before, GUARD) &&
	       !memcmp(memory[0].after, copy[0].after, GUARD) &&
	       !memcmp(&memory[1], &copy[1], sizeof(memory[1]));
}

static inline bool memory_untouched(void)
{
	return !memcmp(memory, copy, sizeof(copy));
}

/* A request of the peer, before request_write encodes it. Unset fields are 0. */
struct request {
	unsigned int op, flags;
	uint32_t seq;
	uint64_t addr, key; /* short form */
	uint64_t want;      /* of WIRE_GET in the short form */
	uint64_t cq;
	/* Long form. `said`: a wrong count to encode instead of `count`. */
	uint64_t offset, count, said;
	struct wire_range range[WIRE_IOV_MAX + 1];
	struct wire_amo amo;
	size_t len;          /* bytes of data or operands, from request_byte */
	unsigned char first; /* of the data */
	size_t cut, more;    /* bytes missing, or added, at the end */
};

struct raw {
	struct packet p;
	unsigned char payload[FAKE_PACKET];
};

static inline unsigned char request_byte(const struct request *r, size_t at)
{
	return (unsigned char)(r->first + at * 3);
}

static void append(struct raw *raw, const void *from, size_t len)
{
	ck_assert_uint_le(raw->p.len + len, sizeof(raw->payload));
	memcpy(raw->payload + raw->p.len, from, len);
	raw->p.len += len;
}

static void request_write(struct raw *raw, const struct request *r)
{
	uint64_t count = r->said ? r->said : r->count;

	raw->p = (struct packet){
		.head = WIRE_HEAD(r->op, r->flags, 0, r->seq), .tag = r->addr, .data = r->key};
	if (r->flags & WIRE_LONG) {
		append(raw, &r->offset, sizeof(r->offset));
		append(raw, &count, sizeof(count));
		append(raw, r->range, r->count * sizeof(r->range[0]));
	}
	if (r->flags & WIRE_CQ)
		append(raw, &r->cq, sizeof(r->cq));
	if (r->op == WIRE_AMO)
		append(raw, &r->amo, sizeof(r->amo));
	if (r->op == WIRE_GET && !(r->flags & WIRE_LONG))
		append(raw, &r->want, sizeof(r->want));
	for (size_t i = 0; i < r->len + r->more; i++)
		append(raw, &(unsigned char){request_byte(r, i)}, 1);
	raw->p.len -= r->cut;
}

/*
 * Delivers the packet from a block of exactly its size, so that a sanitizer sees a read beyond it.
 */
static void raw_say(const struct raw *raw)
{
	unsigned char *exact = malloc(raw->p.len);

	ck_assert(exact || !raw->p.len);
	if (raw->p.len)
		memcpy(exact, raw->payload, raw->p.len);
	fake_says(raw->p.head, raw->p.tag, raw->p.data, exact, raw->p.len);
	free(exact);
}

static inline void request_say(const struct request *r)
{
	static struct raw raw;

	request_write(&raw, r);
	raw_say(&raw);
}

/* Checks that exactly one answer was sent. Returns it and clears the record. */
static inline struct fake_packet answer_take(void)
{
	struct fake_packet p;

	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 1);
	p = fake.packets[0];
	fake.count = 0;
	return p;
}

static inline void answer_expect_done(uint32_t seq)
{
	struct fake_packet p = answer_take();

	ck_assert_uint_eq(p.head, WIRE_HEAD(WIRE_DONE, 0, 0, seq));
	ck_assert_uint_eq(p.len, 0);
}

static inline void answer_expect_failed(uint32_t seq, int err, int reason)
{
	struct fake_packet p = answer_take();

	ck_assert_uint_eq(p.head, WIRE_HEAD(WIRE_FAILED, 0, 0, seq));
	ck_assert_uint_eq(p.tag, (uint64_t)err | (uint64_t)reason << 16);
}

static inline void answer_expect_result(uint32_t seq, const void *bytes, size_t len)
{
	struct fake_packet p = answer_take();

	ck_assert_uint_eq(p.head, WIRE_HEAD(WIRE_RESULT, 0, 0, seq));
	ck_assert_uint_eq(p.tag, 0);
	ck_assert_uint_eq(p.len, len);
	if (len)
		ck_assert_mem_eq(p.payload, bytes, len);
}

static inline void answer_expect_ats(uint32_t id, int err, size_t len)
{
	struct fake_packet p = answer_take();

	ck_assert_uint_eq(p.head, WIRE_HEAD(WIRE_ATS, 0, 0, id));
	ck_assert_uint_eq(p.tag, err);
	ck_assert_uint_eq(p.len, len);
}

#endif
