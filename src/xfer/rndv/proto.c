/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/rndv/proto.h"

#include "xfer/defer/defer.h"

#define COMPARE_AFTER 64u /* messages between two that are read together, for comparison */

static struct spec_record *record_of(const struct txreq *req)
{
	enum spec_length length = req->len > WIRE_SPEC_MAX                 ? SPEC_LONG
				  : req->len < req->peer->real->helped_min ? SPEC_SHORT
									   : SPEC_WHOLE;

	return &req->peer->tx.spec[length];
}

/* Does the message belong to a batch? */
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
	case PROTO_SPEC:
		return link->spec_max && !record_of(req)->trial.skip &&
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

void proto_compare(const struct txreq *req)
{
	struct spec_record *r = record_of(req);

	if (req->len >= req->peer->real->helped_min && !r->trial.skip &&
	    (!r->helped_cost || ++r->since >= COMPARE_AFTER))
		r->trial.skip = 1;
}

void proto_sent(const struct txreq *req)
{
	unsigned int *skip = &record_of(req)->trial.skip;

	if (*skip && !req->rndv && !(in_batch(req) && req->peer->real->fetches))
		--*skip;
}

void proto_judge(const struct txreq *req, bool useful, uint64_t ns)
{
	struct spec_record *r = record_of(req);
	bool measured = ns && req->len && req->len >= req->peer->real->helped_min;
	uint64_t cost = measured ? ns * 1000 / req->len + 1 : 0;

	if (req->limit) {
		trial_judge(&r->trial, useful && (!r->helped_cost || cost <= r->helped_cost));
	} else if (measured) {
		r->helped_cost = cost;
		r->since = 0;
	}
}

size_t proto_spec_bytes(const struct peer *peer, const struct txreq *req, enum proto proto)
{
	size_t most = proto == PROTO_SPEC ? peer->real->spec_max : 0;

	return req->len < most ? req->len : most;
}
