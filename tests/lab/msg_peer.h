/* SPDX-License-Identifier: BSD-2-Clause */
/* State of msg_peer.c, and its helpers that send and wait for completions. */
#ifndef LAB_MSG_PEER_H
#define LAB_MSG_PEER_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "rdma_peer.h"

struct options {
	const char *address, *port, *from, *say, *want;
	bool listen, reject, leave, nobody, sleep;
	bool steps[PEER_STEPS];
	size_t size;
	double patience;
};

struct side {
	struct options o;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc;
	char *memory; /* blocks as in struct peer */
	struct peer_place theirs;
	struct fi_cq_data_entry arrived[PEER_RECVS];
	unsigned int arrivals, sent;
};

static inline void must(int ret, const char *call)
{
	if (ret)
		peer_fail("%s: %s", call, fi_strerror(-ret));
}

static inline char *block(const struct side *s, unsigned int n)
{
	return s->memory + n * s->o.size;
}

/* ---- Completions ----------------------------------------------------------------------------- */

static inline void complain(struct side *s)
{
	struct fi_cq_err_entry err = {0};

	if (fi_cq_readerr(s->cq, &err, 0) != 1)
		peer_fail("fi_cq_readerr fails");
	peer_fail("a completion says: %s (%s)", fi_strerror(err.err),
		  fi_cq_strerror(s->cq, err.prov_errno, err.err_data, NULL, 0));
}

/* Takes one completion, if there is one. */
static inline void look(struct side *s)
{
	struct fi_cq_data_entry entry;
	ssize_t n = s->o.sleep ? fi_cq_sread(s->cq, &entry, 1, NULL, 200)
			       : fi_cq_read(s->cq, &entry, 1);

	if (n == -FI_EAVAIL)
		complain(s);
	if (n == -FI_EAGAIN) {
		usleep(20);
		return;
	}
	if (n != 1)
		peer_fail("fi_cq_read: %s", fi_strerror((int)-n));
	if (entry.flags & (FI_RECV | FI_REMOTE_WRITE))
		s->arrived[s->arrivals++] = entry;
	else
		s->sent++;
}

static inline struct fi_cq_data_entry hear(struct side *s, uint64_t flags, const char *what)
{
	double end = peer_now() + s->o.patience;
	struct fi_cq_data_entry first;

	while (!s->arrivals) {
		if (peer_now() > end)
			peer_fail("%s: nothing came in", what);
		look(s);
	}
	first = s->arrived[0];
	s->arrivals--;
	memmove(s->arrived, s->arrived + 1, s->arrivals * sizeof(first));
	if (first.flags != flags)
		peer_fail("%s: came in with flags %#llx", what, (unsigned long long)first.flags);
	return first;
}

static inline void release(struct side *s, const struct fi_cq_data_entry *entry)
{
	char *at = entry->op_context;

	must((int)fi_recv(s->ep, at, s->o.size, s->desc, 0, at), "fi_recv");
}

static inline void wait_sent(struct side *s, ssize_t ret, const char *what)
{
	double end = peer_now() + s->o.patience;

	must((int)ret, what);
	while (!s->sent) {
		if (peer_now() > end)
			peer_fail("%s: does not complete", what);
		look(s);
	}
	s->sent--;
}

static inline void say(struct side *s, const void *what, size_t len)
{
	memcpy(block(s, PEER_OUT), what, len);
	wait_sent(s, fi_send(s->ep, block(s, PEER_OUT), len, s->desc, 0, s), "fi_send");
}

static inline void tell_sync(struct side *s, enum peer_step step, enum peer_what what)
{
	struct peer_sync half = {htonl(step), htonl(what)};

	say(s, &half, sizeof(half));
}

static inline void hear_sync(struct side *s, enum peer_step step, enum peer_what what)
{
	struct fi_cq_data_entry a = hear(s, FI_MSG | FI_RECV, "a half");
	struct peer_sync half;

	if (a.len != sizeof(half))
		peer_fail("a half of %zu bytes", a.len);
	memcpy(&half, a.op_context, sizeof(half));
	if (ntohl(half.step) != step || ntohl(half.what) != what)
		peer_fail("half %u of step %u, not %u of %u", ntohl(half.what), ntohl(half.step),
			  what, step);
	release(s, &a);
}

static inline void exchange_places(struct side *s)
{
	struct peer_place place = {htobe64((uintptr_t)block(s, PEER_WINDOW)),
				   htonl((uint32_t)fi_mr_key(s->mr)), htonl((uint32_t)s->o.size)};
	struct fi_cq_data_entry a;

	say(s, &place, sizeof(place));
	a = hear(s, FI_MSG | FI_RECV, "their place");
	if (a.len != sizeof(place))
		peer_fail("a place of %zu bytes", a.len);
	memcpy(&place, a.op_context, sizeof(place));
	s->theirs = (struct peer_place){be64toh(place.addr), ntohl(place.rkey), ntohl(place.size)};
	release(s, &a);
}

#endif
