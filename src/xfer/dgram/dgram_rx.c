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
	if (__builtin_expect(first && worker->sleepers, 0))
		worker_wake(worker);
	return 0;
}

bool dgram_wanted(const struct dgram *d)
{
	const struct rx *rx = d->worker->rx[0];

	return rx && !list_empty(&rx->posted[0]);
}

bool dgram_wants_source(const struct dgram *d)
{
	return d->worker->rx[0]->caps & (FI_SOURCE | FI_SOURCE_ERR);
}

unsigned int dgram_receives(struct dgram *d, struct recv *list[], unsigned int max)
{
	struct rx *rx = d->worker->rx[0];
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

static fi_addr_t source(struct av *av, const struct addr *from)
{
	fi_addr_t addr = from ? av_find(av, from, 0) : FI_ADDR_NOTAVAIL;

	return addr == FI_ADDR_NOTAVAIL ? addr : av_user_id(av, addr);
}

void dgram_came(struct dgram *d, struct recv *r, size_t len, const struct addr *from)
{
	struct message m = {
		.src = source(d->worker->av, from),
		.from = from,
		.head = WIRE_HEAD(WIRE_MSG, 0, 0, 0),
		.len = len,
	};
	void *base = r->flags & FI_MULTI_RECV ? r->iov[0].iov_base : NULL;
	struct rx *rx = d->worker->rx[0];
	size_t room = rx_reserve(rx, r, len);

	rx_finish(rx, r, &m, room, base, 0);
}

void dgram_spoilt(struct dgram *d, struct recv *r, int err)
{
	LOG_PEER(LOG_EP_DATA,
		 "a datagram is lost: the memory of its receive, at %p, cannot be written",
		 r->iov[0].iov_base);
	rx_recv_fail(d->worker->rx[0], r, err, FI_MSG);
}

void dgram_fail(struct dgram *d, int err)
{
	rx_fail_posted(d->worker->rx[0], err);
}
