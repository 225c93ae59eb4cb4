/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/rndv/proto.h"

static bool suits(enum proto proto, const struct link *link)
{
	return proto == PROTO_FETCH || (proto == PROTO_RDMA && link->rdma_usable);
}

enum proto proto_select(const struct link *link, enum proto failed)
{
	enum proto proto = failed < PROTO_RDMA ? PROTO_RDMA : failed + 1;

	while (!suits(proto, link))
		proto++;
	return proto;
}
