/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoint under test, its application, and the invariants: every operation ends exactly once,
 * its buffer is not touched afterwards, peers change no memory without write access, and the engine
 * holds no request once all peers are lost and all receives cancelled. Buffers have exactly their
 * size, so that the sanitizer sees a byte too many. The world serves many inputs; world_quiesce
 * resets it.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "common.h"
#include "core/ep.h"
#include "conn/conn_own.h"
#include "xfer/worker.h"

#ifndef PROVIDER
#define PROVIDER "tcp"
#endif

#define PEERS   2     /* in the address vector */
#define UNKNOWN PEERS /* number of a peer that is not in it, and only sends */
#define SENDERS (PEERS + 1)
#define SLOTS   48
#define REGION  4096
#define TX_MAX  16

/* Limits of unexpected messages and of answers, in the environment. */
#define QUEUED_BYTES 40000
#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(it)  #it

/* Keys of the registered regions; addresses in them count from 0. */
enum { KEY_ALL = 1, KEY_READ, KEY_WRITE, KEYS };

/* The use of a slot. */
enum use {
	FREE,
	SEND, /* a send or one-sided operation */
	RECV,
	MULTI,
	PEEK,
	CLAIM,   /* a peek that claims the message it finds */
	CLAIMED, /* the context holds a claimed message */
};

struct slot {
	struct fi_context context; /* first: completions name it */
	enum use use;
	size_t len;
	unsigned char *buf, *result;
};

struct area {
	unsigned char before[64], data[REGION], after[64];
};

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_mr *mr[KEYS];
	fi_addr_t addr[PEERS], self;
	struct worker *worker;
	struct peer *known[PEERS];
	uint32_t
		unknown; /* id of the peer that the vector does not hold, which is freed when lost */
	struct slot slot[SLOTS];
	struct area memory[KEYS], copy[KEYS];
} world;

/* ---- Completions ---- */

static inline struct slot *slot_new(enum use use, size_t len)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		struct slot *s = &world.slot[i];

		if (s->use != FREE)
			continue;
		*s = (struct slot){.use = use, .len = len, .buf = malloc(len)};
		MUST(s->buf || !len);
		if (len)
			memset(s->buf, (int)i, len);
		return s;
	}
	return NULL;
}

static inline void slot_free(struct slot *s)
{
	free(s->buf);
	free(s->result);
	*s = (struct slot){.use = FREE};
}

/* Frees the slot if the call failed: no completion will come. */
static inline void slot_posted(struct slot *s, ssize_t ret)
{
	if (ret)
		slot_free(s);
}

static inline struct slot *slot_of(const void *context)
{
	size_t at = (size_t)((const char *)context - (const char *)world.slot);

	MUST(at < sizeof(world.slot) && at % sizeof(struct slot) == 0);
	return &world.slot[at / sizeof(struct slot)];
}

static inline void ended(struct slot *s, const struct fi_cq_tagged_entry *e, int err)
{
	switch (s->use) {
	case MULTI:
		MUST(e->len <= s->len);
		if (!err && e->len)
			MUST((unsigned char *)e->buf >= s->buf &&
			     (unsigned char *)e->buf + e->len <= s->buf + s->len);
		if (e->flags & FI_MULTI_RECV || err == FI_ECANCELED)
			slot_free(s);
		break;
	case CLAIM:
		s->use = CLAIMED;
		if (err)
			slot_free(s);
		break;
	case RECV:
		MUST(e->len <= s->len);
		MUST(e->flags & FI_RECV);
		slot_free(s);
		break;
	default:
		MUST(s->use != FREE && s->use != CLAIMED);
		slot_free(s);
	}
}

/* Reads all completions. Those of a peer's write with CQ data have no context. */
static inline void reap(void)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry error = {0};
	ssize_t ret;

	while ((ret = fi_cq_read(world.cq, &e, 1)) != -FI_EAGAIN) {
		MUST(ret == 1 || ret == -FI_EAVAIL);
		if (ret < 0) {
			MUST(fi_cq_readerr(world.cq, &error, 0) == 1);
			MUST(error.err > 0);
			e = (struct fi_cq_tagged_entry){.op_context = error.op_context,
							.flags = error.flags,
							.len = error.len};
		}
		if (e.op_context)
			ended(slot_of(e.op_context), &e, ret < 0 ? error.err : 0);
		else
			MUST(ret == 1 && e.flags & FI_REMOTE_CQ_DATA);
	}
}

/* ---- Objects ---- */

static inline void memory_fill(void)
{
	for (unsigned int i = 0; i < KEYS; i++)
		for (size_t at = 0; at < sizeof(struct area); at++)
			((unsigned char *)&world.copy[i])[at] = (unsigned char)(at * 7 + i);
	memcpy(world.memory, world.copy, sizeof(world.copy));
}

/* Checks memory that no peer may write; restores the regions that peers may write. */
static inline void memory_check(void)
{
	for (unsigned int i = 0; i < KEYS; i++) {
		const struct area *is = &world.memory[i], *was = &world.copy[i];

		MUST(!memcmp(is->before, was->before, sizeof(is->before)));
		MUST(!memcmp(is->after, was->after, sizeof(is->after)));
		if (i != KEY_ALL && i != KEY_WRITE)
			MUST(!memcmp(is->data, was->data, sizeof(is->data)));
	}
	memcpy(world.memory, world.copy, sizeof(world.copy));
}

static inline void region_open(uint64_t key)
{
	static const uint64_t access[KEYS] = {[KEY_ALL] = FI_REMOTE_READ | FI_REMOTE_WRITE,
					      [KEY_READ] = FI_REMOTE_READ,
					      [KEY_WRITE] = FI_REMOTE_WRITE};

	if (!world.mr[key])
		MUST(!fi_mr_reg(world.domain, world.memory[key].data, REGION, access[key], 0, key,
				0, &world.mr[key], NULL));
}

static inline void region_close(uint64_t key)
{
	if (world.mr[key])
		MUST(!fi_close(&world.mr[key]->fid));
	world.mr[key] = NULL;
}

/* Peers have addresses 127.0.0.1:1 and up, where nobody listens. */
static inline struct sockaddr_in peer_name(unsigned int i)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(1 + i))};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return in;
}

static inline void peers_insert(void)
{
	struct sockaddr_in own;
	size_t len = sizeof(own);

	MUST(!fi_getname(&world.ep->fid, &own, &len));
	MUST(fi_av_insert(world.av, &own, 1, &world.self, 0, NULL) == 1);
	for (unsigned int i = 0; i < PEERS; i++) {
		struct sockaddr_in in = peer_name(i);

		MUST(fi_av_insert(world.av, &in, 1, &world.addr[i], 0, NULL) == 1);
		world.known[i] = peer_get(world.worker, world.addr[i]);
		MUST(world.known[i]);
	}
}

/* Returns the peer, or NULL if it is the unknown one and was freed. */
static inline struct peer *peer_at(unsigned int i)
{
	return i < PEERS ? world.known[i] : pool_find(&world.worker->conn.peer_pool, world.unknown);
}

/* The same, but makes the unknown one anew. */
static inline struct peer *peer_made(unsigned int i)
{
	struct sockaddr_in in = peer_name(i);
	struct peer *peer = peer_at(i);
	struct addr name;

	if (peer)
		return peer;
	MUST(!addr_from_user(&name, FI_SOCKADDR_IN, &in, sizeof(in)));
	peer = peer_of(contact_by_name(&world.worker->conn, &name, 0));
	MUST(peer);
	world.unknown = pool_id(peer);
	return peer;
}

static inline bool peer_is_connected(unsigned int i)
{
	return peer_at(i) && contact_linked(&peer_at(i)->conn);
}

/* The endpoint has asked the peer whether it may close the connection; it looks at the next question, whenever that comes. */
static inline void retire_asked(unsigned int i)
{
	struct peer *peer = peer_at(i);

	if (peer && peer->conn.state == PEER_CONNECTED)
		peer->conn.asked = true;
	world.worker->conn.retire.heard = 0;
}

/* Limits on what is kept for peers are within reach of an input. */
static inline void limits_set(void)
{
	setenv("FI_WEFT_UNEXPECTED_MAX", "5000", 1);
	setenv("FI_WEFT_UNEXPECTED_LIMIT", TEXT(QUEUED_BYTES), 1);
}

/* In good order. What is registered is closed first. */
static inline void world_close(void)
{
	for (unsigned int i = 0; i < KEYS; i++)
		CLOSE(world.mr[i]);
	CLOSE(world.ep);
	CLOSE(world.av);
	CLOSE(world.cq);
	CLOSE(world.eq);
	CLOSE(world.domain);
	CLOSE(world.fabric);
	fi_freeinfo(world.info);
	world.info = NULL;
	world.worker = NULL;
}

static inline void world_open(void)
{
	static bool before;
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_info *hints = fi_allocinfo();

	if (!before)
		atexit(world_close);
	before = true;
	limits_set();
	log_redirect(&log_sink);
	hints->fabric_attr->prov_name = strdup(PROVIDER);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC | FI_MULTI_RECV |
		      FI_COLLECTIVE;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->tx_attr->size = TX_MAX;
	MUST(!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &world.info));
	fi_freeinfo(hints);
	MUST(!fi_fabric(world.info->fabric_attr, &world.fabric, NULL));
	MUST(!fi_domain(world.fabric, world.info, &world.domain, NULL));
	MUST(!fi_cq_open(world.domain, &cq, &world.cq, NULL));
	MUST(!fi_eq_open(world.fabric, &eq, &world.eq, NULL));
	MUST(!fi_av_open(world.domain, &av, &world.av, NULL));
	MUST(!fi_endpoint(world.domain, world.info, &world.ep, NULL));
	MUST(!fi_ep_bind(world.ep, &world.cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(!fi_ep_bind(world.ep, &world.av->fid, 0));
	MUST(!fi_ep_bind(world.ep, &world.eq->fid, 0));
	MUST(!fi_enable(world.ep));
	world.worker = ep_of(world.ep)->worker;
	memory_fill();
	for (uint64_t key = KEY_ALL; key < KEYS; key++)
		region_open(key);
	peers_insert();
}

/* Receives or discards all claimed and unexpected messages. */
static inline void unexpected_drain(void)
{
	struct rx *rx = ep_of(world.ep)->rx;

	for (unsigned int i = 0; i < SLOTS; i++) {
		struct slot *s = &world.slot[i];
		struct fi_msg_tagged msg = {.context = s};

		if (s->use != CLAIMED)
			continue;
		s->use = PEEK;
		MUST(!fi_trecvmsg(world.ep, &msg, FI_CLAIM | FI_DISCARD));
	}
	reap();
	while (rx->unexpected_bytes) {
		bool tagged = list_empty(&rx->unexpected[0]);
		struct slot *s = slot_new(RECV, 16);
		ssize_t ret = tagged ? fi_trecv(world.ep, s->buf, s->len, NULL, FI_ADDR_UNSPEC, 0,
						UINT64_MAX, s)
				     : fi_recv(world.ep, s->buf, s->len, NULL, FI_ADDR_UNSPEC, s);

		MUST(!ret);
		reap();
	}
}

/* What is kept is in somebody's account, and what unknown peers have is within half of the limits. */
static inline void limits_check(void)
{
	const struct budget *b = &world.worker->budget;
	struct budget_sum sum = b->gone.sum;

	LIST_EACH (node, &world.worker->conn.peers_list) {
		const struct peer *peer = LIST_ENTRY(node, struct peer, conn.in_station);

		sum.bytes += peer->rx.account.sum.bytes;
		sum.count += peer->rx.account.sum.count;
	}
	MUST(sum.bytes == b->all.bytes && sum.count == b->all.count);
	MUST(b->all.bytes - b->known.bytes <= QUEUED_BYTES / 2);
	MUST(world.worker->answers.unknown <= QUEUED_BYTES / 2);
}

/* Ends all operations and checks the invariants. All peers are idle. */
static inline void world_quiesce(void)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (world.slot[i].use == RECV || world.slot[i].use == MULTI)
			MUST(!fi_cancel(&world.ep->fid, &world.slot[i]));
	reap();
	unexpected_drain();
	for (unsigned int i = 0; i < SLOTS; i++)
		MUST(world.slot[i].use == FREE);
	MUST(pool_in_use(&world.worker->tx_pool) == 0);
	MUST(pool_in_use(&world.worker->rxreq_pool) == 0);
	MUST(world.worker->answers.bytes == 0 && world.worker->answers.unknown == 0);
	limits_check();
	MUST(!peer_at(UNKNOWN));
	MUST(pool_in_use(&ep_of(world.ep)->rx->recv_pool) == 0);
	for (uint64_t key = KEY_ALL; key < KEYS; key++)
		region_open(key);
	memory_check();
}

#endif
