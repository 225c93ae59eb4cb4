/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of an endpoint's data calls, those that they come from, and those that refuse. */
#ifndef WEFT_ENTRY_TABLES_H
#define WEFT_ENTRY_TABLES_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/*
 * Tables of one endpoint, at the same place from its opening to its end: fid.msg and its like point
 * here. Calls that the endpoint lacks, or that come too early, refuse; none is NULL.
 */
struct ep_tables {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
	struct fi_ops_atomic atomic;
	struct fi_ops_collective collective;
};

/* Whole tables of those who perform calls: an endpoint gets what its capabilities permit. Static; none is NULL. */
struct entry_tables {
	const struct fi_ops_msg *msg;
	const struct fi_ops_tagged *tagged;
	const struct fi_ops_rma *rma;
	const struct fi_ops_atomic *atomic;
};

/* What the templates name their functions. */
#define ENTRY_MSG_OPS                                                                              \
	{                                                                                          \
		.recv = msg_recv, .recvv = msg_recvv, .recvmsg = msg_recvmsg, .send = msg_send,    \
		.sendv = msg_sendv, .sendmsg = msg_sendmsg, .inject = msg_inject,                  \
		.senddata = msg_senddata, .injectdata = msg_injectdata,                            \
		.size = sizeof(struct fi_ops_msg)                                                  \
	}
#define ENTRY_TAGGED_OPS                                                                           \
	{                                                                                          \
		.recv = tagged_recv, .recvv = tagged_recvv, .recvmsg = tagged_recvmsg,             \
		.send = tagged_send, .sendv = tagged_sendv, .sendmsg = tagged_sendmsg,             \
		.inject = tagged_inject, .senddata = tagged_senddata,                              \
		.injectdata = tagged_injectdata, .size = sizeof(struct fi_ops_tagged)              \
	}
#define ENTRY_RMA_OPS                                                                              \
	{                                                                                          \
		.read = rma_read, .readv = rma_readv, .readmsg = rma_readmsg, .write = rma_write,  \
		.writev = rma_writev, .writemsg = rma_writemsg, .inject = rma_inject,              \
		.writedata = rma_writedata, .injectdata = rma_injectdata,                          \
		.size = sizeof(struct fi_ops_rma)                                                  \
	}
#define ENTRY_ATOMIC_OPS                                                                           \
	{                                                                                          \
		.write = atomic_write, .writev = atomic_writev, .writemsg = atomic_writemsg,       \
		.inject = atomic_inject, .readwrite = atomic_readwrite,                            \
		.readwritev = atomic_readwritev, .readwritemsg = atomic_readwritemsg,              \
		.compwrite = atomic_compwrite, .compwritev = atomic_compwritev,                    \
		.compwritemsg = atomic_compwritemsg, .writevalid = atomic_writevalid,              \
		.readwritevalid = atomic_readwritevalid, .compwritevalid = atomic_compwritevalid,  \
		.size = sizeof(struct fi_ops_atomic)                                               \
	}

/* Tables whose entry functions all refuse. */
extern const struct ep_tables refuse_state;   /* -FI_EOPBADSTATE: not enabled */
extern const struct ep_tables refuse_support; /* -FI_EOPNOTSUPP: not a capability */

#endif
