/* SPDX-License-Identifier: BSD-2-Clause */
/* Received datagrams: each fills the oldest posted receive. */
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "core/av.h"
#include "xfer/dgram/dgram.h"

/* Flags that need kept messages, or a trigger: not supported for datagrams. */
#define IMPOSSIBLE (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER)

int dgram_recv(struct ep *ep, const struct recv_args *args)
{
	struct worker *worker = ep->worker;
	struct rx *rx = ep->rx;
	struct recv *r;
	bool first;
	int err;

	if (__builtin_expect((args->flags & IMPOSSIBLE) != 0, 0))
		return -FI_EOPNOTSUPP;
	if (args->flags & FI_MULTI_RECV && args->iov_count != 1)
		return -FI_EINVAL;
	err = rx_recv_new(rx, args, &r);
	if (err)
		return err;
	r->src = FI_ADDR_UNSPEC;
	first = list_empty(&rx->posted[0]);
	list_push(&rx->posted[0], &r->link);
	/* A sleeping waiter does not watch the socket while no receive is posted. */
	if (__builtin_expect(first && worker->conn.opener.sleepers, 0))
		station_wake(&worker->conn);
	return 0;
}

/* The worker's only receive context; NULL: closed, or not open yet. */
static struct rx *dgram_rx_context(const struct dgram *d)
{
	return worker_opener(d->opener)->rx[0];
}

static bool dgram_rx_wanted(const struct dgram *d)
{
	const struct rx *rx = dgram_rx_context(d);

	return rx && !list_empty(&rx->posted[0]);
}

static bool wants_source(const struct dgram *d)
{
	return dgram_rx_context(d)->caps & (FI_SOURCE | FI_SOURCE_ERR);
}

static unsigned int dgram_rx_receives(struct dgram *d, struct recv *list[], unsigned int max)
{
	struct rx *rx = dgram_rx_context(d);
	unsigned int n = 0;

	LIST_EACH (node, &rx->posted[0]) {
		if (n == max)
			break;
		list[n++] = LIST_ENTRY(node, struct recv, link);
		if (list[n - 1]->flags & FI_MULTI_RECV)
			break;
	}
	return n;
}

static fi_addr_t dgram_rx_source(struct av *av, const struct addr *from)
{
	fi_addr_t addr = from ? av_find(av, from, 0) : FI_ADDR_NOTAVAIL;

	return addr == FI_ADDR_NOTAVAIL ? addr : av_user_id(av, addr);
}

static void dgram_rx_came(struct dgram *d, struct recv *r, size_t len, const struct addr *from)
{
	const struct sender sender = {from ? *from : (struct addr){.kind = ADDR_NONE},
				      FI_ADDR_NOTAVAIL};
	struct message m = {
		.src = dgram_rx_source(worker_opener(d->opener)->conn.av, from),
		.from = from ? &sender : NULL,
		.head = WIRE_HEAD(WIRE_MSG, 0, 0, 0),
		.len = len,
	};
	void *base = r->flags & FI_MULTI_RECV ? r->iov[0].iov_base : NULL;
	struct rx *rx = dgram_rx_context(d);
	size_t room = rx_reserve(rx, r, len);

	rx_finish(rx, r, &m, room, base, 0);
}

static void dgram_rx_spoilt(struct dgram *d, struct recv *r, int err)
{
	LOG_PEER(LOG_EP_DATA,
		 "a datagram is lost: the memory of its receive, at %p, cannot be written",
		 r->iov[0].iov_base);
	rx_recv_fail(dgram_rx_context(d), r, err, FI_MSG);
}

static void dgram_rx_fail(struct dgram *d, int err)
{
	rx_fail_posted(dgram_rx_context(d), err);
}

const struct dgram_events dgram_events = {
	.wanted = dgram_rx_wanted,
	.wants_source = wants_source,
	.receives = dgram_rx_receives,
	.came = dgram_rx_came,
	.spoilt = dgram_rx_spoilt,
	.fail = dgram_rx_fail,
	.flush = dgram_flush,
};
