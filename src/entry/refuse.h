/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template: a refusing function for each entry, so that no table holds NULL. refuse_state.c and
 * refuse_support.c include it and define REFUSAL (the error) and REFUSE_TABLE.
 */
#include "entry/tables.h"

/* The functions ignore their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSE(type, name, ...)                                                                    \
	static type name(__VA_ARGS__)                                                              \
	{                                                                                          \
		return REFUSAL;                                                                    \
	}

REFUSE(ssize_t, msg_recv, struct fid_ep *a, void *b, size_t c, void *d, fi_addr_t e, void *f)
REFUSE(ssize_t, msg_recvv, struct fid_ep *a, const struct iovec *b, void **c, size_t d, fi_addr_t e,
       void *f)
REFUSE(ssize_t, msg_recvmsg, struct fid_ep *a, const struct fi_msg *b, uint64_t c)
REFUSE(ssize_t, msg_send, struct fid_ep *a, const void *b, size_t c, void *d, fi_addr_t e, void *f)
REFUSE(ssize_t, msg_sendv, struct fid_ep *a, const struct iovec *b, void **c, size_t d, fi_addr_t e,
       void *f)
REFUSE(ssize_t, msg_sendmsg, struct fid_ep *a, const struct fi_msg *b, uint64_t c)
REFUSE(ssize_t, msg_inject, struct fid_ep *a, const void *b, size_t c, fi_addr_t d)
REFUSE(ssize_t, msg_senddata, struct fid_ep *a, const void *b, size_t c, void *d, uint64_t e,
       fi_addr_t f, void *g)
REFUSE(ssize_t, msg_injectdata, struct fid_ep *a, const void *b, size_t c, uint64_t d, fi_addr_t e)

REFUSE(ssize_t, tagged_recv, struct fid_ep *a, void *b, size_t c, void *d, fi_addr_t e, uint64_t f,
       uint64_t g, void *h)
REFUSE(ssize_t, tagged_recvv, struct fid_ep *a, const struct iovec *b, void **c, size_t d,
       fi_addr_t e, uint64_t f, uint64_t g, void *h)
REFUSE(ssize_t, tagged_recvmsg, struct fid_ep *a, const struct fi_msg_tagged *b, uint64_t c)
REFUSE(ssize_t, tagged_send, struct fid_ep *a, const void *b, size_t c, void *d, fi_addr_t e,
       uint64_t f, void *g)
REFUSE(ssize_t, tagged_sendv, struct fid_ep *a, const struct iovec *b, void **c, size_t d,
       fi_addr_t e, uint64_t f, void *g)
REFUSE(ssize_t, tagged_sendmsg, struct fid_ep *a, const struct fi_msg_tagged *b, uint64_t c)
REFUSE(ssize_t, tagged_inject, struct fid_ep *a, const void *b, size_t c, fi_addr_t d, uint64_t e)
REFUSE(ssize_t, tagged_senddata, struct fid_ep *a, const void *b, size_t c, void *d, uint64_t e,
       fi_addr_t f, uint64_t g, void *h)
REFUSE(ssize_t, tagged_injectdata, struct fid_ep *a, const void *b, size_t c, uint64_t d,
       fi_addr_t e, uint64_t f)

REFUSE(ssize_t, rma_read, struct fid_ep *a, void *b, size_t c, void *d, fi_addr_t e, uint64_t f,
       uint64_t g, void *h)
REFUSE(ssize_t, rma_readv, struct fid_ep *a, const struct iovec *b, void **c, size_t d, fi_addr_t e,
       uint64_t f, uint64_t g, void *h)
REFUSE(ssize_t, rma_readmsg, struct fid_ep *a, const struct fi_msg_rma *b, uint64_t c)
REFUSE(ssize_t, rma_write, struct fid_ep *a, const void *b, size_t c, void *d, fi_addr_t e,
       uint64_t f, uint64_t g, void *h)
REFUSE(ssize_t, rma_writev, struct fid_ep *a, const struct iovec *b, void **c, size_t d,
       fi_addr_t e, uint64_t f, uint64_t g, void *h)
REFUSE(ssize_t, rma_writemsg, struct fid_ep *a, const struct fi_msg_rma *b, uint64_t c)
REFUSE(ssize_t, rma_inject, struct fid_ep *a, const void *b, size_t c, fi_addr_t d, uint64_t e,
       uint64_t f)
REFUSE(ssize_t, rma_writedata, struct fid_ep *a, const void *b, size_t c, void *d, uint64_t e,
       fi_addr_t f, uint64_t g, uint64_t h, void *i)
REFUSE(ssize_t, rma_injectdata, struct fid_ep *a, const void *b, size_t c, uint64_t d, fi_addr_t e,
       uint64_t f, uint64_t g)

REFUSE(ssize_t, atomic_write, struct fid_ep *a, const void *b, size_t c, void *d, fi_addr_t e,
       uint64_t f, uint64_t g, enum fi_datatype h, enum fi_op i, void *j)
REFUSE(ssize_t, atomic_writev, struct fid_ep *a, const struct fi_ioc *b, void **c, size_t d,
       fi_addr_t e, uint64_t f, uint64_t g, enum fi_datatype h, enum fi_op i, void *j)
REFUSE(ssize_t, atomic_writemsg, struct fid_ep *a, const struct fi_msg_atomic *b, uint64_t c)
REFUSE(ssize_t, atomic_inject, struct fid_ep *a, const void *b, size_t c, fi_addr_t d, uint64_t e,
       uint64_t f, enum fi_datatype g, enum fi_op h)
REFUSE(ssize_t, atomic_readwrite, struct fid_ep *a, const void *b, size_t c, void *d, void *e,
       void *f, fi_addr_t g, uint64_t h, uint64_t i, enum fi_datatype j, enum fi_op k, void *l)
REFUSE(ssize_t, atomic_readwritev, struct fid_ep *a, const struct fi_ioc *b, void **c, size_t d,
       struct fi_ioc *e, void **f, size_t g, fi_addr_t h, uint64_t i, uint64_t j,
       enum fi_datatype k, enum fi_op l, void *m)
REFUSE(ssize_t, atomic_readwritemsg, struct fid_ep *a, const struct fi_msg_atomic *b,
       struct fi_ioc *c, void **d, size_t e, uint64_t f)
REFUSE(ssize_t, atomic_compwrite, struct fid_ep *a, const void *b, size_t c, void *d, const void *e,
       void *f, void *g, void *h, fi_addr_t i, uint64_t j, uint64_t k, enum fi_datatype l,
       enum fi_op m, void *n)
REFUSE(ssize_t, atomic_compwritev, struct fid_ep *a, const struct fi_ioc *b, void **c, size_t d,
       const struct fi_ioc *e, void **f, size_t g, struct fi_ioc *h, void **i, size_t j,
       fi_addr_t k, uint64_t l, uint64_t m, enum fi_datatype n, enum fi_op o, void *p)
REFUSE(ssize_t, atomic_compwritemsg, struct fid_ep *a, const struct fi_msg_atomic *b,
       const struct fi_ioc *c, void **d, size_t e, struct fi_ioc *f, void **g, size_t h, uint64_t i)
REFUSE(int, atomic_writevalid, struct fid_ep *a, enum fi_datatype b, enum fi_op c, size_t *d)
REFUSE(int, atomic_readwritevalid, struct fid_ep *a, enum fi_datatype b, enum fi_op c, size_t *d)
REFUSE(int, atomic_compwritevalid, struct fid_ep *a, enum fi_datatype b, enum fi_op c, size_t *d)

REFUSE(ssize_t, collective_barrier, struct fid_ep *a, fi_addr_t b, void *c)
REFUSE(ssize_t, collective_broadcast, struct fid_ep *a, void *b, size_t c, void *d, fi_addr_t e,
       fi_addr_t f, enum fi_datatype g, uint64_t h, void *i)
REFUSE(ssize_t, collective_alltoall, struct fid_ep *a, const void *b, size_t c, void *d, void *e,
       void *f, fi_addr_t g, enum fi_datatype h, uint64_t i, void *j)
REFUSE(ssize_t, collective_allreduce, struct fid_ep *a, const void *b, size_t c, void *d, void *e,
       void *f, fi_addr_t g, enum fi_datatype h, enum fi_op i, uint64_t j, void *k)
REFUSE(ssize_t, collective_allgather, struct fid_ep *a, const void *b, size_t c, void *d, void *e,
       void *f, fi_addr_t g, enum fi_datatype h, uint64_t i, void *j)
REFUSE(ssize_t, collective_reduce_scatter, struct fid_ep *a, const void *b, size_t c, void *d,
       void *e, void *f, fi_addr_t g, enum fi_datatype h, enum fi_op i, uint64_t j, void *k)
REFUSE(ssize_t, collective_reduce, struct fid_ep *a, const void *b, size_t c, void *d, void *e,
       void *f, fi_addr_t g, fi_addr_t h, enum fi_datatype i, enum fi_op j, uint64_t k, void *l)
REFUSE(ssize_t, collective_scatter, struct fid_ep *a, const void *b, size_t c, void *d, void *e,
       void *f, fi_addr_t g, fi_addr_t h, enum fi_datatype i, uint64_t j, void *k)
REFUSE(ssize_t, collective_gather, struct fid_ep *a, const void *b, size_t c, void *d, void *e,
       void *f, fi_addr_t g, fi_addr_t h, enum fi_datatype i, uint64_t j, void *k)
REFUSE(ssize_t, collective_msg, struct fid_ep *a, const struct fi_msg_collective *b,
       struct fi_ioc *c, void **d, size_t e, uint64_t f)
REFUSE(ssize_t, collective_barrier2, struct fid_ep *a, fi_addr_t b, uint64_t c, void *d)

const struct ep_tables REFUSE_TABLE = {
	.msg = ENTRY_MSG_OPS,
	.tagged = ENTRY_TAGGED_OPS,
	.rma = ENTRY_RMA_OPS,
	.atomic = ENTRY_ATOMIC_OPS,
	.collective = {.size = sizeof(struct fi_ops_collective),
		       .barrier = collective_barrier,
		       .broadcast = collective_broadcast,
		       .alltoall = collective_alltoall,
		       .allreduce = collective_allreduce,
		       .allgather = collective_allgather,
		       .reduce_scatter = collective_reduce_scatter,
		       .reduce = collective_reduce,
		       .scatter = collective_scatter,
		       .gather = collective_gather,
		       .msg = collective_msg,
		       .barrier2 = collective_barrier2},
};
