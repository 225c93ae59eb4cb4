/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of atomic operations and collectives: rows as in hook/rows_data.h. */
#ifndef WEFT_HOOK_ROWS_ATOMIC_H
#define WEFT_HOOK_ROWS_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>

#include "atomic/atomic.h"
#include "hook/value.h"

/* Values that several calls have. */
#define OPERANDS  POINTER(ep), POINTER(buf), NUMBER(count)
#define OPERANDSV POINTER(ep), POINTER(iov), NUMBER(count), NUMBER(bytes)
#define OPERATION DECODED(datatype, FI_TYPE_ATOMIC_TYPE), DECODED(op, FI_TYPE_ATOMIC_OP)
#define TARGET    ADDRESS(dest_addr), HEX(addr), HEX(key), OPERATION, POINTER(context)
#define OPERATION_MSG                                                                              \
	POINTER(ep), POINTER(msg), NUMBER(bytes), IN(msg, SHOW_ADDRESS, addr),                     \
		DECODED_IN(msg, datatype, FI_TYPE_ATOMIC_TYPE),                                    \
		DECODED_IN(msg, op, FI_TYPE_ATOMIC_OP), IN(msg, SHOW_POINTER, context),            \
		FLAGS(flags)
#define GROUP         ADDRESS(coll_addr), FLAGS(flags), POINTER(context)
#define GROUP_TYPE    DECODED(datatype, FI_TYPE_ATOMIC_TYPE), GROUP
#define GROUP_OP      DECODED(op, FI_TYPE_ATOMIC_OP), GROUP_TYPE
#define GROUP_BUFFERS POINTER(ep), POINTER(buf), NUMBER(count), POINTER(result)

/* Bytes of the operands. */
#define TYPE_BYTES  (count * atomic_size(datatype))
#define TYPEV_BYTES (value_elements(iov, count) * atomic_size(datatype))
#define ELEMENTS_BYTES                                                                             \
	(msg ? value_elements(msg->msg_iov, msg->iov_count) * atomic_size(msg->datatype) : 0)
/* Elements that are fetched. A read has no operands: their segments may be stale. */
#define FETCHED(operands, op)                                                                      \
	((op) == FI_ATOMIC_READ ? value_elements(resultv, result_count) : (operands))
#define FETCHV_BYTES (FETCHED(value_elements(iov, count), op) * atomic_size(datatype))
#define FETCH_ELEMENTS_BYTES                                                                       \
	(msg ? FETCHED(value_elements(msg->msg_iov, msg->iov_count), msg->op) *                    \
			 atomic_size(msg->datatype)                                                \
	     : 0)

/* clang-format off */
#define ATOMIC_CALLS(DATA)                                                                         \
	DATA(ssize_t, fi_atomic, ep->atomic, write,                                                \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest_addr,   \
	      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,               \
	      void *context),                                                                      \
	     (ep, buf, count, desc, dest_addr, addr, key, datatype, op, context),                  \
	     TYPE_BYTES, OPERANDS, TARGET)                                                         \
	DATA(ssize_t, fi_atomicv, ep->atomic, writev,                                              \
	     (struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,              \
	      fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,         \
	      enum fi_op op, void *context),                                                       \
	     (ep, iov, desc, count, dest_addr, addr, key, datatype, op, context),                  \
	     TYPEV_BYTES, OPERANDSV, TARGET)                                                       \
	DATA(ssize_t, fi_atomicmsg, ep->atomic, writemsg,                                          \
	     (struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags),                 \
	     (ep, msg, flags),                                                                     \
	     ELEMENTS_BYTES, OPERATION_MSG)                                                        \
	DATA(ssize_t, fi_inject_atomic, ep->atomic, inject,                                        \
	     (struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr,               \
	      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op),              \
	     (ep, buf, count, dest_addr, addr, key, datatype, op),                                 \
	     TYPE_BYTES, OPERANDS, ADDRESS(dest_addr), HEX(addr), HEX(key), OPERATION)             \
	DATA(ssize_t, fi_fetch_atomic, ep->atomic, readwrite,                                      \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,                 \
	      enum fi_datatype datatype, enum fi_op op, void *context),                            \
	     (ep, buf, count, desc, result, result_desc, dest_addr, addr, key, datatype, op,       \
	      context),                                                                            \
	     TYPE_BYTES, OPERANDS, POINTER(result), TARGET)                                        \
	DATA(ssize_t, fi_fetch_atomicv, ep->atomic, readwritev,                                    \
	     (struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,              \
	      struct fi_ioc *resultv, void **result_desc, size_t result_count,                     \
	      fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,         \
	      enum fi_op op, void *context),                                                       \
	     (ep, iov, desc, count, resultv, result_desc, result_count, dest_addr, addr, key,      \
	      datatype, op, context),                                                              \
	     FETCHV_BYTES, OPERANDSV, POINTER(resultv), TARGET)                                    \
	DATA(ssize_t, fi_fetch_atomicmsg, ep->atomic, readwritemsg,                                \
	     (struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,          \
	      void **result_desc, size_t result_count, uint64_t flags),                            \
	     (ep, msg, resultv, result_desc, result_count, flags),                                 \
	     FETCH_ELEMENTS_BYTES, OPERATION_MSG, POINTER(resultv))                                \
	DATA(ssize_t, fi_compare_atomic, ep->atomic, compwrite,                                    \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,   \
	      void *compare_desc, void *result, void *result_desc, fi_addr_t dest_addr,            \
	      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,               \
	      void *context),                                                                      \
	     (ep, buf, count, desc, compare, compare_desc, result, result_desc, dest_addr, addr,   \
	      key, datatype, op, context),                                                         \
	     TYPE_BYTES, OPERANDS, POINTER(compare), POINTER(result), TARGET)                      \
	DATA(ssize_t, fi_compare_atomicv, ep->atomic, compwritev,                                  \
	     (struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,              \
	      const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,            \
	      struct fi_ioc *resultv, void **result_desc, size_t result_count,                     \
	      fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,         \
	      enum fi_op op, void *context),                                                       \
	     (ep, iov, desc, count, comparev, compare_desc, compare_count, resultv, result_desc,   \
	      result_count, dest_addr, addr, key, datatype, op, context),                          \
	     TYPEV_BYTES, OPERANDSV, POINTER(comparev), POINTER(resultv), TARGET)                  \
	DATA(ssize_t, fi_compare_atomicmsg, ep->atomic, compwritemsg,                              \
	     (struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,   \
	      void **compare_desc, size_t compare_count, struct fi_ioc *resultv,                   \
	      void **result_desc, size_t result_count, uint64_t flags),                            \
	     (ep, msg, comparev, compare_desc, compare_count, resultv, result_desc, result_count,  \
	      flags),                                                                              \
	     ELEMENTS_BYTES, OPERATION_MSG, POINTER(comparev), POINTER(resultv))                   \
	DATA(int, fi_atomicvalid, ep->atomic, writevalid,                                          \
	     (struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count),         \
	     (ep, datatype, op, count),                                                            \
	     0, POINTER(ep), OPERATION)                                                            \
	DATA(int, fi_fetch_atomicvalid, ep->atomic, readwritevalid,                                \
	     (struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count),         \
	     (ep, datatype, op, count),                                                            \
	     0, POINTER(ep), OPERATION)                                                            \
	DATA(int, fi_compare_atomicvalid, ep->atomic, compwritevalid,                              \
	     (struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count),         \
	     (ep, datatype, op, count),                                                            \
	     0, POINTER(ep), OPERATION)

#define COLLECTIVE_CALLS(DATA)                                                                     \
	DATA(ssize_t, fi_barrier, ep->collective, barrier,                                         \
	     (struct fid_ep *ep, fi_addr_t coll_addr, void *context),                              \
	     (ep, coll_addr, context),                                                             \
	     0, POINTER(ep), ADDRESS(coll_addr), POINTER(context))                                 \
	DATA(ssize_t, fi_barrier2, ep->collective, barrier2,                                       \
	     (struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags, void *context),              \
	     (ep, coll_addr, flags, context),                                                      \
	     0, POINTER(ep), GROUP)                                                                \
	DATA(ssize_t, fi_broadcast, ep->collective, broadcast,                                     \
	     (struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t coll_addr,         \
	      fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context),      \
	     (ep, buf, count, desc, coll_addr, root_addr, datatype, flags, context),               \
	     TYPE_BYTES, OPERANDS, ADDRESS(root_addr), GROUP_TYPE)                                 \
	DATA(ssize_t, fi_alltoall, ep->collective, alltoall,                                       \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,   \
	      void *context),                                                                      \
	     (ep, buf, count, desc, result, result_desc, coll_addr, datatype, flags, context),     \
	     TYPE_BYTES, GROUP_BUFFERS, GROUP_TYPE)                                                \
	DATA(ssize_t, fi_allreduce, ep->collective, allreduce,                                     \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op,    \
	      uint64_t flags, void *context),                                                      \
	     (ep, buf, count, desc, result, result_desc, coll_addr, datatype, op, flags, context), \
	     TYPE_BYTES, GROUP_BUFFERS, GROUP_OP)                                                  \
	DATA(ssize_t, fi_allgather, ep->collective, allgather,                                     \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,   \
	      void *context),                                                                      \
	     (ep, buf, count, desc, result, result_desc, coll_addr, datatype, flags, context),     \
	     TYPE_BYTES, GROUP_BUFFERS, GROUP_TYPE)                                                \
	DATA(ssize_t, fi_reduce_scatter, ep->collective, reduce_scatter,                           \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op,    \
	      uint64_t flags, void *context),                                                      \
	     (ep, buf, count, desc, result, result_desc, coll_addr, datatype, op, flags, context), \
	     TYPE_BYTES, GROUP_BUFFERS, GROUP_OP)                                                  \
	DATA(ssize_t, fi_reduce, ep->collective, reduce,                                           \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,                         \
	      enum fi_datatype datatype, enum fi_op op, uint64_t flags, void *context),            \
	     (ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, op,       \
	      flags, context),                                                                     \
	     TYPE_BYTES, GROUP_BUFFERS, ADDRESS(root_addr), GROUP_OP)                              \
	DATA(ssize_t, fi_scatter, ep->collective, scatter,                                         \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,                         \
	      enum fi_datatype datatype, uint64_t flags, void *context),                           \
	     (ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags,    \
	      context),                                                                            \
	     TYPE_BYTES, GROUP_BUFFERS, ADDRESS(root_addr), GROUP_TYPE)                            \
	DATA(ssize_t, fi_gather, ep->collective, gather,                                           \
	     (struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,          \
	      void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr,                         \
	      enum fi_datatype datatype, uint64_t flags, void *context),                           \
	     (ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags,    \
	      context),                                                                            \
	     TYPE_BYTES, GROUP_BUFFERS, ADDRESS(root_addr), GROUP_TYPE)                            \
	DATA(ssize_t, fi_collective_msg, ep->collective, msg,                                      \
	     (struct fid_ep *ep, const struct fi_msg_collective *msg, struct fi_ioc *resultv,      \
	      void **result_desc, size_t result_count, uint64_t flags),                            \
	     (ep, msg, resultv, result_desc, result_count, flags),                                 \
	     ELEMENTS_BYTES, POINTER(ep), POINTER(msg),                                            \
	     NUMBER(bytes),                                                                        \
	     DECODED_IN(msg, coll, FI_TYPE_COLLECTIVE_OP), IN(msg, SHOW_ADDRESS, coll_addr),       \
	     IN(msg, SHOW_POINTER, context), FLAGS(flags))
/* clang-format on */

#endif
