/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/rndv/proto.h"

#include "xfer/defer/defer.h"

/* Does the message belong to a batch? Within one, several receivers copy the same memory. */
static bool in_batch(const struct txreq *req)
{
	return req->work && req->work->batch;
}

static bool suits(enum proto proto, const struct peer *peer, const struct txreq *req)
{
	const struct link *link = peer->real;

	switch (proto) {
	case PROTO_RDMA:
		return link->rdma_usable;
	case PROTO_BOUNCE:
		return in_batch(req) && req->len <= link->bounce_max;
	case PROTO_PIPE:
		return in_batch(req) && req->len >= link->pipe_min;
	case PROTO_SPEC:
		return link->spec_max && !peer->tx.spec[proto_spec_class(req->len)].skip &&
		       !(in_batch(req) && link->fetches);
	default:
		return proto == PROTO_FETCH;
	}
}

enum proto proto_select(const struct peer *peer, const struct txreq *req, enum proto failed)
{
	enum proto proto = failed < PROTO_RDMA ? PROTO_RDMA : failed + 1;

	while (!suits(proto, peer, req))
		proto++;
	return proto;
}

size_t proto_spec_bytes(const struct peer *peer, const struct txreq *req, enum proto proto)
{
	size_t most = proto == PROTO_SPEC ? peer->real->spec_max : 0;

	return req->len < most ? req->len : most;
}
