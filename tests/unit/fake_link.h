/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint with one fake peer. The peer's link accepts as many packets as the test sets in
 * `fake.room` and records them. The test passes the peer's answers to rx_deliver.
 */
#ifndef FAKE_LINK_H
#define FAKE_LINK_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

#include "core/ep.h"
#include "xfer/events.h"
#include "link/wire.h"
#include "conn/attempt.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "suite.h"

#define FAKE_EAGER   256u /* bytes of a message */
#define FAKE_PACKET  WIRE_PACKET_MIN
#define FAKE_PACKETS 1024
#define FAKE_TX_SIZE 8
#define FAKE_PLENTY  1000000
#ifndef FAKE_CAPS
#define FAKE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV)
#endif

struct fake_packet {
	uint64_t head, tag, data;
	size_t len;
	unsigned char payload[FAKE_PACKET];
};

static struct fake {
	struct link link;
	int room;   /* packets that the link still accepts */
	int closed; /* calls of link_ops.close */
	unsigned int count;
	/* The endpoint and its objects. */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t addr; /* the peer's */
	struct worker *worker;
	struct peer *peer;
	struct fake_packet packets[FAKE_PACKETS]; /* `count` of them */
} fake;

static int fake_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		      size_t count)
{
	struct fake_packet *to = &fake.packets[fake.count];
	size_t at = 0;

	ck_assert_ptr_eq(link, &fake.link);
	ck_assert_uint_lt(fake.count, FAKE_PACKETS);
	ck_assert_uint_le(p->len, sizeof(to->payload));
	if (fake.room == 0)
		return -FI_EAGAIN;
	fake.room--;
	link->last = fake.count++;
	to->head = p->head;
	to->tag = p->tag;
	to->data = p->data;
	to->len = p->len;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(to->payload + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	ck_assert_uint_eq(at, p->len);
	return 0;
}

static int fake_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		     uint64_t tag)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .len = len};
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	bool rts = wire_op(head) == WIRE_RTS;

	if (len > FAKE_EAGER && !rts)
		return -FI_EMSGSIZE;
	return fake_sendv(link, &p, &iov, len != 0);
}

static void fake_close(struct link *link)
{
	(void)link;
	fake.closed++;
}

static const struct link_ops fake_ops = {
	.send = fake_send,
	.sendv = fake_sendv,
	.close = fake_close,
};

static bool fake_progress(void *state)
{
	(void)state;
	return false;
}

static const struct transport fake_transport = {.kind = LINK_SOCKET, .progress = fake_progress};

/* Returns the packet sent `back` packets before the last. */
static inline const struct fake_packet *fake_last(unsigned int back)
{
	ck_assert_uint_gt(fake.count, back);
	return &fake.packets[fake.count - 1 - back];
}

/* Delivers a packet of the peer. */
static inline void fake_says(uint64_t head, uint64_t tag, uint64_t data, const void *payload,
			     size_t len)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .payload = payload, .len = len};

	rx_deliver(&fake.worker->conn.opener, pool_id(fake.peer), &p);
}

static inline void fake_says_ats(uint32_t id, int err)
{
	fake_says(WIRE_HEAD(WIRE_ATS, 0, 0, id), (uint64_t)err, 0, NULL, 0);
}

/* The peer is being connected to. */
static inline void fake_attempt(enum peer_state state)
{
	ck_assert_int_eq(attempt_begin(&fake.peer->conn), 0);
	fake.peer->conn.state = state;
}

static inline void fake_connect(void)
{
	attempt_end(&fake.peer->conn);
	fake.peer->conn.real = &fake.link;
	contact_connected(&fake.peer->conn);
}

/*
 * Reads the queue once. Returns the completion, or NULL: the queue is empty. An error fails the
 * test.
 */
static inline const struct fi_cq_tagged_entry *fake_read(void)
{
	static struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_read(fake.cq, &entry, 1);

	ck_assert(ret == 1 || ret == -FI_EAGAIN);
	return ret == 1 ? &entry : NULL;
}

static inline void fake_expect(const void *context, uint64_t flags)
{
	const struct fi_cq_tagged_entry *entry = fake_read();

	ck_assert_ptr_nonnull(entry);
	ck_assert_ptr_eq(entry->op_context, context);
	ck_assert_uint_eq(entry->flags, flags);
}

static inline struct fi_cq_err_entry fake_expect_error(const void *context, int err)
{
	struct fi_cq_err_entry entry = {0};
	struct fi_cq_tagged_entry none;

	ck_assert_int_eq(fi_cq_read(fake.cq, &none, 1), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(fake.cq, &entry, 0), 1);
	ck_assert_ptr_eq(entry.op_context, context);
	ck_assert_int_eq(entry.err, err);
	return entry;
}

static inline void fake_expect_nothing(void)
{
	ck_assert_ptr_null(fake_read());
}

static void fake_open(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_FD};
	struct fi_info *hints = fi_allocinfo();

	memset(&fake, 0, offsetof(struct fake, packets));
	hints->fabric_attr->prov_name = strdup("shm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FAKE_CAPS;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->tx_attr->size = FAKE_TX_SIZE;
	ck_assert_int_eq(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &fake.info), 0);
	fi_freeinfo(hints);
	ck_assert_int_eq(fi_fabric(fake.info->fabric_attr, &fake.fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(fake.fabric, fake.info, &fake.domain, NULL), 0);
	ck_assert_int_eq(fi_cq_open(fake.domain, &cq_attr, &fake.cq, NULL), 0);
	ck_assert_int_eq(fi_av_open(fake.domain, &av_attr, &fake.av, NULL), 0);
	ck_assert_int_eq(fi_endpoint(fake.domain, fake.info, &fake.ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(fake.ep, &fake.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_ep_bind(fake.ep, &fake.av->fid, 0), 0);
	ck_assert_int_eq(fi_eq_open(fake.fabric, &eq_attr, &fake.eq, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(fake.ep, &fake.eq->fid, 0), 0);
	ck_assert_int_eq(fi_enable(fake.ep), 0);
	ck_assert_int_eq(fi_av_insert(fake.av, "fi_shm://fake", 1, &fake.addr, 0, NULL), 1);
	fake.link = (struct link){LINK_BARE, .ops = &fake_ops};
	fake.link.eager_max = FAKE_EAGER;
	fake.link.packet_max = FAKE_PACKET;
	fake.room = FAKE_PLENTY;
	fake.worker = ep_of(fake.ep)->worker;
	fake.worker->conn.via[LINK_SOCKET].transport =
		&fake_transport; /* that of the peer's link */
	fake.peer = peer_get(fake.worker, fake.addr);
	ck_assert_ptr_nonnull(fake.peer);
	fake_attempt(PEER_HANDSHAKE);
}

/* As fake_open, with the peer connected. */
static inline void fake_open_connected(void)
{
	fake_open();
	fake_connect();
}

static void fake_shut(void)
{
	int links = fake.peer->conn.real != NULL;

	ck_assert_int_eq(fi_close(&fake.ep->fid), 0);
	ck_assert_int_eq(fake.closed, links);
	ck_assert_int_eq(fi_close(&fake.eq->fid), 0);
	ck_assert_int_eq(fi_close(&fake.av->fid), 0);
	ck_assert_int_eq(fi_close(&fake.cq->fid), 0);
	ck_assert_int_eq(fi_close(&fake.domain->fid), 0);
	ck_assert_int_eq(fi_close(&fake.fabric->fid), 0);
	fi_freeinfo(fake.info);
}

#endif
