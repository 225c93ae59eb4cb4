/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of an application, by the tables they are in. Each row is
 *
 *   ROW(CALL, result, call, table, member, (object, arguments...))
 *   ROW(OPEN, result, call, table, member, (object, arguments...), opened)
 *   ROW(DATA, result, call, table, member, (object, arguments...), bytes)
 *
 * where `opened` points to what a successful call opens, and `bytes` is what the call moves, unless it
 * fails; among the arguments it stands for that number. The arguments (hook/value.h) say the call's
 * prototype and what a trace shows. Those of DATA, and `bytes`, are read before the call, others after
 * it.
 */
#ifndef WEFT_HOOK_ROWS_H
#define WEFT_HOOK_ROWS_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "atomic/atomic.h"
#include "hook/value.h"

/* clang-format off */

/* ---- Arguments -------------------------------------------------------------------------------- */

#define FID     OBJECT(struct fid *, fid)
#define FABRIC  OBJECT(struct fid_fabric *, fabric)
#define DOMAIN  OBJECT(struct fid_domain *, domain)
#define EP      OBJECT(struct fid_ep *, ep)
#define PEP     OBJECT(struct fid_pep *, pep)
#define SEP     OBJECT(struct fid_ep *, sep)
#define AV      OBJECT(struct fid_av *, av)
#define AV_SET  OBJECT(struct fid_av_set *, set)
#define AV_SETS OBJECT(struct fid_av_set *, dst), POINTER(const struct fid_av_set *, src)
#define CQ      OBJECT(struct fid_cq *, cq)
#define EQ      OBJECT(struct fid_eq *, eq)
#define CNTR    OBJECT(struct fid_cntr *, cntr)
#define POLLSET OBJECT(struct fid_poll *, pollset)

#define CONTEXT POINTER(void *, context)
#define FLAGS   DECODED(uint64_t, flags, FI_TYPE_OP_FLAGS)
#define COUNT   NUMBER(size_t, count)
#define TIMEOUT NUMBER(int, timeout)
#define BUF     POINTER(const void *, buf)
#define INTO    POINTER(void *, buf)
#define LEN     NUMBER(size_t, len)
#define DESC    POINTER(void *, desc)
#define IOV     POINTER(const struct iovec *, iov)
/* Descriptors of segments are not shown. */
#define SEGMENTS      IOV, HIDDEN(void **, desc), COUNT, BYTES
#define BYTES         VALUE(bytes, bytes, SHOW_NUMBER, 0)
#define SRC           ADDRESS(src_addr)
#define DEST          ADDRESS(dest_addr)
#define REMOTE        HEX(addr), HEX(key)
#define MATCH         HEX(tag), HEX(ignore)
#define MESSAGE(type) EP, POINTER(const struct type *, msg), BYTES, IN(msg, SHOW_ADDRESS, addr)
#define MSG_DATA      IN(msg, SHOW_HEX, data)
#define MSG_TAGS      IN(msg, SHOW_HEX, tag), IN(msg, SHOW_HEX, ignore)
#define MSG_END       IN(msg, SHOW_POINTER, context), FLAGS

#define MSG_BYTES (msg ? value_bytes(msg->msg_iov, msg->iov_count) : 0)
/* To look at a message, or to discard it, takes no buffer: the segments may be stale. */
#define RECV_BYTES (flags & (FI_PEEK | FI_DISCARD) ? 0 : MSG_BYTES)

/* ---- Calls that open, bind and control objects ------------------------------------------------ */

/* What an FI_ALIAS opens. */
#define ALIAS_OF(command, arg) ((command) == FI_ALIAS ? *((struct fi_alias *)(arg))->fid : NULL)

/* What the call opens. */
#define NEW(type, name)     HIDDEN(struct fid_##type **, name)
#define ATTR(type, decoded) DECODED_AT(struct type *, attr, decoded)
#define INFO                DECODED_AT(struct fi_info *, info, FI_TYPE_INFO)
#define TX_ATTR             ATTR(fi_tx_attr, FI_TYPE_TX_ATTR)
#define RX_ATTR             ATTR(fi_rx_attr, FI_TYPE_RX_ATTR)
#define ACCESS              DECODED(uint64_t, access, FI_TYPE_CAPS), HIDDEN(uint64_t, offset), HEX(requested_key)
#define REGION              ACCESS, FLAGS, NEW(mr, mr), CONTEXT
#define OPTION              OBJECT(fid_t, fid), NUMBER(int, level), NUMBER(int, optname)
#define PARAM               POINTER(const void *, param), NUMBER(size_t, paramlen)
#define AV_ADDRS            POINTER(fi_addr_t *, fi_addr)

/*
 * The function of fi_close is in hook.c. fi_join opens what its event may have let another thread
 * close before it returns: that is not touched.
 */
#define FID_CALLS(ROW)                                                                                                 \
	ROW(CLOSE, int, fi_close, fid->ops, close, (FID))                                                              \
	ROW(CALL, int, fi_bind, fid->ops, bind,                                                                        \
	    (FID, POINTER(struct fid *, bfid), DECODED(uint64_t, flags, FI_TYPE_CAPS)))                                \
	ROW(OPEN, int, fi_control, fid->ops, control,                                                                  \
	    (FID, NUMBER(int, command), POINTER(void *, arg)), ALIAS_OF(command, arg))                                 \
	ROW(CALL, int, fi_open_ops, fid->ops, ops_open, (FID, TEXT(name), HEX(flags), HIDDEN(void **, ops), CONTEXT))  \
	ROW(CALL, int, fid_tostr, fid->ops, tostr, (OBJECT(const struct fid *, fid), POINTER(char *, buf), LEN))       \
	ROW(CALL, int, fi_set_ops, fid->ops, ops_set, (FID, TEXT(name), HEX(flags), POINTER(void *, ops), CONTEXT))

#define FABRIC_CALLS(ROW)                                                                                              \
	ROW(OPEN, int, fi_domain, fabric->ops, domain, (FABRIC, INFO, NEW(domain, domain), CONTEXT), *domain)          \
	ROW(OPEN, int, fi_passive_ep, fabric->ops, passive_ep, (FABRIC, INFO, NEW(pep, pep), CONTEXT), *pep)           \
	ROW(OPEN, int, fi_eq_open, fabric->ops, eq_open,                                                               \
	    (FABRIC, POINTER(struct fi_eq_attr *, attr), NEW(eq, eq), CONTEXT), *eq)                                   \
	ROW(OPEN, int, fi_wait_open, fabric->ops, wait_open,                                                           \
	    (FABRIC, POINTER(struct fi_wait_attr *, attr), NEW(wait, waitset)), *waitset)                              \
	ROW(CALL, int, fi_trywait, fabric->ops, trywait, (FABRIC, POINTER(struct fid **, fids), NUMBER(int, count)))   \
	ROW(OPEN, int, fi_domain2, fabric->ops, domain2,                                                               \
	    (FABRIC, INFO, NEW(domain, domain), FLAGS, CONTEXT), *domain)

#define DOMAIN_CALLS(ROW)                                                                                              \
	ROW(OPEN, int, fi_av_open, domain->ops, av_open,                                                               \
	    (DOMAIN, ATTR(fi_av_attr, FI_TYPE_AV_ATTR), NEW(av, av), CONTEXT), *av)                                    \
	ROW(OPEN, int, fi_cq_open, domain->ops, cq_open,                                                               \
	    (DOMAIN, ATTR(fi_cq_attr, FI_TYPE_CQ_ATTR), NEW(cq, cq), CONTEXT), hook_queue(*cq, attr))                  \
	ROW(OPEN, int, fi_endpoint, domain->ops, endpoint, (DOMAIN, INFO, NEW(ep, ep), CONTEXT), *ep)                  \
	ROW(OPEN, int, fi_scalable_ep, domain->ops, scalable_ep, (DOMAIN, INFO, NEW(ep, sep), CONTEXT), *sep)          \
	ROW(OPEN, int, fi_cntr_open, domain->ops, cntr_open,                                                           \
	    (DOMAIN, ATTR(fi_cntr_attr, FI_TYPE_CNTR_ATTR), NEW(cntr, cntr), CONTEXT), *cntr)                          \
	ROW(OPEN, int, fi_poll_open, domain->ops, poll_open,                                                           \
	    (DOMAIN, POINTER(struct fi_poll_attr *, attr), NEW(poll, pollset)), *pollset)                              \
	ROW(OPEN, int, fi_stx_context, domain->ops, stx_ctx, (DOMAIN, TX_ATTR, NEW(stx, stx), CONTEXT), *stx)          \
	ROW(OPEN, int, fi_srx_context, domain->ops, srx_ctx, (DOMAIN, RX_ATTR, NEW(ep, rx_ep), CONTEXT), *rx_ep)       \
	ROW(CALL, int, fi_query_atomic, domain->ops, query_atomic,                                                     \
	    (DOMAIN, DATATYPE, OP, POINTER(struct fi_atomic_attr *, attr), FLAGS))                                     \
	ROW(CALL, int, fi_query_collective, domain->ops, query_collective,                                             \
	    (DOMAIN, DECODED(enum fi_collective_op, coll, FI_TYPE_COLLECTIVE_OP),                                      \
	     POINTER(struct fi_collective_attr *, attr), FLAGS))                                                       \
	ROW(OPEN, int, fi_endpoint2, domain->ops, endpoint2, (DOMAIN, INFO, NEW(ep, ep), FLAGS, CONTEXT), *ep)

#define MR_CALLS(ROW)                                                                                                  \
	ROW(OPEN, int, fi_mr_reg, ((struct fid_domain *)fid)->mr, reg, (FID, BUF, LEN, REGION), *mr)                   \
	ROW(OPEN, int, fi_mr_regv, ((struct fid_domain *)fid)->mr, regv, (FID, IOV, COUNT, REGION), *mr)               \
	ROW(OPEN, int, fi_mr_regattr, ((struct fid_domain *)fid)->mr, regattr,                                         \
	    (FID, POINTER(const struct fi_mr_attr *, attr), IN(attr, SHOW_NUMBER, iov_count),                          \
	     DECODED_IN(attr, access, FI_TYPE_CAPS), IN(attr, SHOW_HEX, requested_key), FLAGS, NEW(mr, mr)), *mr)

#define EP_CALLS(ROW)                                                                                                  \
	ROW(CALL, ssize_t, fi_cancel, ((struct fid_ep *)fid)->ops, cancel, (OBJECT(fid_t, fid), CONTEXT))              \
	ROW(CALL, int, fi_getopt, ((struct fid_ep *)fid)->ops, getopt,                                                 \
	    (OPTION, POINTER(void *, optval), POINTER(size_t *, optlen)))                                              \
	ROW(CALL, int, fi_setopt, ((struct fid_ep *)fid)->ops, setopt,                                                 \
	    (OPTION, POINTER(const void *, optval), NUMBER(size_t, optlen)))                                           \
	ROW(OPEN, int, fi_tx_context, sep->ops, tx_ctx,                                                                \
	    (SEP, NUMBER(int, idx), TX_ATTR, NEW(ep, tx_ep), CONTEXT), *tx_ep)                                         \
	ROW(OPEN, int, fi_rx_context, sep->ops, rx_ctx,                                                                \
	    (SEP, NUMBER(int, idx), RX_ATTR, NEW(ep, rx_ep), CONTEXT), *rx_ep)                                         \
	ROW(CALL, ssize_t, fi_rx_size_left, ep->ops, rx_size_left, (EP))                                               \
	ROW(CALL, ssize_t, fi_tx_size_left, ep->ops, tx_size_left, (EP))

#define CM_CALLS(ROW)                                                                                                  \
	ROW(CALL, int, fi_setname, ((struct fid_ep *)fid)->cm, setname,                                                \
	    (OBJECT(fid_t, fid), ENDPOINT_NAME(void *, addr), NUMBER(size_t, addrlen)))                                \
	ROW(CALL, int, fi_getname, ((struct fid_ep *)fid)->cm, getname,                                                \
	    (OBJECT(fid_t, fid), NAME_UNLESS(ret, void *, addr), POINTER(size_t *, addrlen)))                          \
	ROW(CALL, int, fi_getpeer, ep->cm, getpeer, (EP, NAME_UNLESS(ret, void *, addr), POINTER(size_t *, addrlen)))  \
	ROW(CALL, int, fi_connect, ep->cm, connect, (EP, ENDPOINT_NAME(const void *, addr), PARAM))                    \
	ROW(CALL, int, fi_listen, pep->cm, listen, (PEP))                                                              \
	ROW(CALL, int, fi_accept, ep->cm, accept, (EP, PARAM))                                                         \
	ROW(CALL, int, fi_reject, pep->cm, reject, (PEP, POINTER(fid_t, handle), PARAM))                               \
	ROW(CALL, int, fi_shutdown, ep->cm, shutdown, (EP, FLAGS))                                                     \
	ROW(CALL, int, fi_join, ep->cm, join, (EP, POINTER(const void *, addr), FLAGS, NEW(mc, mc), CONTEXT))

#define AV_CALLS(ROW)                                                                                                  \
	ROW(CALL, int, fi_av_insert, av->ops, insert,                                                                  \
	    (AV, NAME_UNLESS(ret <= 0, const void *, addr), COUNT, AV_ADDRS, FLAGS, CONTEXT))                          \
	ROW(CALL, int, fi_av_insertsvc, av->ops, insertsvc,                                                            \
	    (AV, TEXT(node), TEXT(service), AV_ADDRS, FLAGS, CONTEXT))                                                 \
	ROW(CALL, int, fi_av_insertsym, av->ops, insertsym,                                                            \
	    (AV, TEXT(node), NUMBER(size_t, nodecnt), TEXT(service), NUMBER(size_t, svccnt), AV_ADDRS, FLAGS,          \
	     CONTEXT))                                                                                                 \
	ROW(CALL, int, fi_av_remove, av->ops, remove, (AV, AV_ADDRS, COUNT, FLAGS))                                    \
	ROW(CALL, int, fi_av_lookup, av->ops, lookup,                                                                  \
	    (AV, ADDRESS(fi_addr), POINTER(void *, addr), POINTER(size_t *, addrlen)))                                 \
	ROW(CALL, const char *, fi_av_straddr, av->ops, straddr,                                                       \
	    (AV, POINTER(const void *, addr), POINTER(char *, buf), POINTER(size_t *, len)))                           \
	ROW(OPEN, int, fi_av_set, av->ops, av_set,                                                                     \
	    (AV, POINTER(struct fi_av_set_attr *, attr), NEW(av_set, set), CONTEXT), *set)                             \
	ROW(CALL, int, fi_av_insert_auth_key, av->ops, insert_auth_key,                                                \
	    (AV, HIDDEN(const void *, auth_key), NUMBER(size_t, auth_key_size), AV_ADDRS, FLAGS))                      \
	ROW(CALL, int, fi_av_lookup_auth_key, av->ops, lookup_auth_key,                                                \
	    (AV, ADDRESS(addr), HIDDEN(void *, auth_key), POINTER(size_t *, auth_key_size)))                           \
	ROW(CALL, int, fi_av_set_user_id, av->ops, set_user_id, (AV, ADDRESS(fi_addr), HEX(user_id), FLAGS))

#define AV_SET_CALLS(ROW)                                                                                              \
	ROW(CALL, int, fi_av_set_union, dst->ops, set_union, (AV_SETS))                                                \
	ROW(CALL, int, fi_av_set_intersect, dst->ops, intersect, (AV_SETS))                                            \
	ROW(CALL, int, fi_av_set_diff, dst->ops, diff, (AV_SETS))                                                      \
	ROW(CALL, int, fi_av_set_insert, set->ops, insert, (AV_SET, ADDRESS(addr)))                                    \
	ROW(CALL, int, fi_av_set_remove, set->ops, remove, (AV_SET, ADDRESS(addr)))                                    \
	ROW(CALL, int, fi_av_set_addr, set->ops, addr, (AV_SET, POINTER(fi_addr_t *, coll_addr)))

/* ---- Messages and remote memory --------------------------------------------------------------- */

#define MSG_CALLS(ROW)                                                                                                 \
	ROW(DATA, ssize_t, fi_recv, ep->msg, recv, (EP, INTO, LEN, DESC, SRC, CONTEXT), len)                           \
	ROW(DATA, ssize_t, fi_recvv, ep->msg, recvv, (EP, SEGMENTS, SRC, CONTEXT), value_bytes(iov, count))            \
	ROW(DATA, ssize_t, fi_recvmsg, ep->msg, recvmsg, (MESSAGE(fi_msg), MSG_END), RECV_BYTES)                       \
	ROW(DATA, ssize_t, fi_send, ep->msg, send, (EP, BUF, LEN, DESC, DEST, CONTEXT), len)                           \
	ROW(DATA, ssize_t, fi_sendv, ep->msg, sendv, (EP, SEGMENTS, DEST, CONTEXT), value_bytes(iov, count))           \
	ROW(DATA, ssize_t, fi_sendmsg, ep->msg, sendmsg, (MESSAGE(fi_msg), MSG_DATA, MSG_END), MSG_BYTES)              \
	ROW(DATA, ssize_t, fi_inject, ep->msg, inject, (EP, BUF, LEN, DEST), len)                                      \
	ROW(DATA, ssize_t, fi_senddata, ep->msg, senddata, (EP, BUF, LEN, DESC, HEX(data), DEST, CONTEXT), len)        \
	ROW(DATA, ssize_t, fi_injectdata, ep->msg, injectdata, (EP, BUF, LEN, HEX(data), DEST), len)

#define TAGGED_CALLS(ROW)                                                                                              \
	ROW(DATA, ssize_t, fi_trecv, ep->tagged, recv, (EP, INTO, LEN, DESC, SRC, MATCH, CONTEXT), len)                \
	ROW(DATA, ssize_t, fi_trecvv, ep->tagged, recvv,                                                               \
	    (EP, SEGMENTS, SRC, MATCH, CONTEXT), value_bytes(iov, count))                                              \
	ROW(DATA, ssize_t, fi_trecvmsg, ep->tagged, recvmsg, (MESSAGE(fi_msg_tagged), MSG_TAGS, MSG_END), RECV_BYTES)  \
	ROW(DATA, ssize_t, fi_tsend, ep->tagged, send, (EP, BUF, LEN, DESC, DEST, HEX(tag), CONTEXT), len)             \
	ROW(DATA, ssize_t, fi_tsendv, ep->tagged, sendv,                                                               \
	    (EP, SEGMENTS, DEST, HEX(tag), CONTEXT), value_bytes(iov, count))                                          \
	ROW(DATA, ssize_t, fi_tsendmsg, ep->tagged, sendmsg,                                                           \
	    (MESSAGE(fi_msg_tagged), MSG_TAGS, MSG_DATA, MSG_END), MSG_BYTES)                                          \
	ROW(DATA, ssize_t, fi_tinject, ep->tagged, inject, (EP, BUF, LEN, DEST, HEX(tag)), len)                        \
	ROW(DATA, ssize_t, fi_tsenddata, ep->tagged, senddata,                                                         \
	    (EP, BUF, LEN, DESC, HEX(data), DEST, HEX(tag), CONTEXT), len)                                             \
	ROW(DATA, ssize_t, fi_tinjectdata, ep->tagged, injectdata, (EP, BUF, LEN, HEX(data), DEST, HEX(tag)), len)

#define RMA_CALLS(ROW)                                                                                                 \
	ROW(DATA, ssize_t, fi_read, ep->rma, read, (EP, INTO, LEN, DESC, SRC, REMOTE, CONTEXT), len)                   \
	ROW(DATA, ssize_t, fi_readv, ep->rma, readv, (EP, SEGMENTS, SRC, REMOTE, CONTEXT), value_bytes(iov, count))    \
	ROW(DATA, ssize_t, fi_readmsg, ep->rma, readmsg, (MESSAGE(fi_msg_rma), MSG_END), MSG_BYTES)                    \
	ROW(DATA, ssize_t, fi_write, ep->rma, write, (EP, BUF, LEN, DESC, DEST, REMOTE, CONTEXT), len)                 \
	ROW(DATA, ssize_t, fi_writev, ep->rma, writev,                                                                 \
	    (EP, SEGMENTS, DEST, REMOTE, CONTEXT), value_bytes(iov, count))                                            \
	ROW(DATA, ssize_t, fi_writemsg, ep->rma, writemsg, (MESSAGE(fi_msg_rma), MSG_DATA, MSG_END), MSG_BYTES)        \
	ROW(DATA, ssize_t, fi_inject_write, ep->rma, inject, (EP, BUF, LEN, DEST, REMOTE), len)                        \
	ROW(DATA, ssize_t, fi_writedata, ep->rma, writedata,                                                           \
	    (EP, BUF, LEN, DESC, HEX(data), DEST, REMOTE, CONTEXT), len)                                               \
	ROW(DATA, ssize_t, fi_inject_writedata, ep->rma, injectdata, (EP, BUF, LEN, HEX(data), DEST, REMOTE), len)

/* ---- Atomic operations and collectives -------------------------------------------------------- */

#define DATATYPE      DECODED(enum fi_datatype, datatype, FI_TYPE_ATOMIC_TYPE)
#define OP            DECODED(enum fi_op, op, FI_TYPE_ATOMIC_OP)
#define OPERANDS      EP, BUF, COUNT, HIDDEN(void *, desc)
#define OPERANDSV     EP, POINTER(const struct fi_ioc *, iov), HIDDEN(void **, desc), COUNT, BYTES
#define COMPARE       POINTER(const void *, compare), HIDDEN(void *, compare_desc)
#define COMPAREV      POINTER(const struct fi_ioc *, comparev), COMPAREV_REST
#define COMPAREV_REST HIDDEN(void **, compare_desc), HIDDEN(size_t, compare_count)
#define RESULT        POINTER(void *, result), HIDDEN(void *, result_desc)
#define RESULTV       POINTER(struct fi_ioc *, resultv), RESULTV_REST
#define RESULTV_REST  HIDDEN(void **, result_desc), HIDDEN(size_t, result_count)
#define TARGET        DEST, REMOTE, DATATYPE, OP
#define OPERATION_MSG EP, POINTER(const struct fi_msg_atomic *, msg)
/* A trace shows them behind the flags, which are the last argument of a message's call. */
#define COMPAREV_OF_MSG HIDDEN(const struct fi_ioc *, comparev), COMPAREV_REST
#define RESULTV_OF_MSG  HIDDEN(struct fi_ioc *, resultv), RESULTV_REST
#define OPERATION_END  BYTES, IN(msg, SHOW_ADDRESS, addr), DECODED_IN(msg, datatype, FI_TYPE_ATOMIC_TYPE), \
	DECODED_IN(msg, op, FI_TYPE_ATOMIC_OP), IN(msg, SHOW_POINTER, context), FLAGS
#define SHOWN_AT_END(name) VALUE(name, (uintptr_t)(name), SHOW_POINTER, 0)

/* Bytes of the operands. */
#define TYPE_BYTES     (count * atomic_size(datatype))
#define TYPEV_BYTES    (value_elements(iov, count) * atomic_size(datatype))
#define ELEMENTS_BYTES (msg ? value_elements(msg->msg_iov, msg->iov_count) * atomic_size(msg->datatype) : 0)
/* Elements that are fetched. A read has no operands: their segments may be stale. */
#define FETCHED(operands, op) ((op) == FI_ATOMIC_READ ? value_elements(resultv, result_count) : (operands))
#define FETCHV_BYTES          (FETCHED(value_elements(iov, count), op) * atomic_size(datatype))
#define FETCH_ELEMENTS_BYTES \
	(msg ? FETCHED(value_elements(msg->msg_iov, msg->iov_count), msg->op) * atomic_size(msg->datatype) : 0)

#define ATOMIC_CALLS(ROW)                                                                                              \
	ROW(DATA, ssize_t, fi_atomic, ep->atomic, write, (OPERANDS, TARGET, CONTEXT), TYPE_BYTES)                      \
	ROW(DATA, ssize_t, fi_atomicv, ep->atomic, writev, (OPERANDSV, TARGET, CONTEXT), TYPEV_BYTES)                  \
	ROW(DATA, ssize_t, fi_atomicmsg, ep->atomic, writemsg, (OPERATION_MSG, OPERATION_END), ELEMENTS_BYTES)         \
	ROW(DATA, ssize_t, fi_inject_atomic, ep->atomic, inject, (EP, BUF, COUNT, TARGET), TYPE_BYTES)                 \
	ROW(DATA, ssize_t, fi_fetch_atomic, ep->atomic, readwrite, (OPERANDS, RESULT, TARGET, CONTEXT), TYPE_BYTES)    \
	ROW(DATA, ssize_t, fi_fetch_atomicv, ep->atomic, readwritev,                                                   \
	    (OPERANDSV, RESULTV, TARGET, CONTEXT), FETCHV_BYTES)                                                       \
	ROW(DATA, ssize_t, fi_fetch_atomicmsg, ep->atomic, readwritemsg,                                               \
	    (OPERATION_MSG, RESULTV_OF_MSG, OPERATION_END, SHOWN_AT_END(resultv)), FETCH_ELEMENTS_BYTES)               \
	ROW(DATA, ssize_t, fi_compare_atomic, ep->atomic, compwrite,                                                   \
	    (OPERANDS, COMPARE, RESULT, TARGET, CONTEXT), TYPE_BYTES)                                                  \
	ROW(DATA, ssize_t, fi_compare_atomicv, ep->atomic, compwritev,                                                 \
	    (OPERANDSV, COMPAREV, RESULTV, TARGET, CONTEXT), TYPEV_BYTES)                                              \
	ROW(DATA, ssize_t, fi_compare_atomicmsg, ep->atomic, compwritemsg,                                             \
	    (OPERATION_MSG, COMPAREV_OF_MSG, RESULTV_OF_MSG, OPERATION_END, SHOWN_AT_END(comparev),                    \
	     SHOWN_AT_END(resultv)), ELEMENTS_BYTES)                                                                   \
	ROW(DATA, int, fi_atomicvalid, ep->atomic, writevalid, (EP, DATATYPE, OP, HIDDEN(size_t *, count)), 0)         \
	ROW(DATA, int, fi_fetch_atomicvalid, ep->atomic, readwritevalid,                                               \
	    (EP, DATATYPE, OP, HIDDEN(size_t *, count)), 0)                                                            \
	ROW(DATA, int, fi_compare_atomicvalid, ep->atomic, compwritevalid,                                             \
	    (EP, DATATYPE, OP, HIDDEN(size_t *, count)), 0)

/* A trace shows the group behind the type, and the type behind the operation. */
#define GROUP      HIDDEN(fi_addr_t, coll_addr)
#define GROUP_TYPE HIDDEN(enum fi_datatype, datatype), GROUP_END
#define GROUP_OP   HIDDEN(enum fi_datatype, datatype), OP, GROUP_END
#define GROUP_END    VALUE(datatype, datatype, SHOW_DECODED, FI_TYPE_ATOMIC_TYPE), \
	VALUE(coll_addr, coll_addr, SHOW_ADDRESS, 0), FLAGS, CONTEXT
#define ROOT ADDRESS(root_addr)

#define COLLECTIVE_CALLS(ROW)                                                                                          \
	ROW(DATA, ssize_t, fi_barrier, ep->collective, barrier, (EP, ADDRESS(coll_addr), CONTEXT), 0)                  \
	ROW(DATA, ssize_t, fi_barrier2, ep->collective, barrier2, (EP, ADDRESS(coll_addr), FLAGS, CONTEXT), 0)         \
	ROW(DATA, ssize_t, fi_broadcast, ep->collective, broadcast,                                                    \
	    (EP, INTO, COUNT, HIDDEN(void *, desc), GROUP, ROOT, GROUP_TYPE), TYPE_BYTES)                              \
	ROW(DATA, ssize_t, fi_alltoall, ep->collective, alltoall, (OPERANDS, RESULT, GROUP, GROUP_TYPE), TYPE_BYTES)   \
	ROW(DATA, ssize_t, fi_allreduce, ep->collective, allreduce, (OPERANDS, RESULT, GROUP, GROUP_OP), TYPE_BYTES)   \
	ROW(DATA, ssize_t, fi_allgather, ep->collective, allgather,                                                    \
	    (OPERANDS, RESULT, GROUP, GROUP_TYPE), TYPE_BYTES)                                                         \
	ROW(DATA, ssize_t, fi_reduce_scatter, ep->collective, reduce_scatter,                                          \
	    (OPERANDS, RESULT, GROUP, GROUP_OP), TYPE_BYTES)                                                           \
	ROW(DATA, ssize_t, fi_reduce, ep->collective, reduce, (OPERANDS, RESULT, GROUP, ROOT, GROUP_OP), TYPE_BYTES)   \
	ROW(DATA, ssize_t, fi_scatter, ep->collective, scatter,                                                        \
	    (OPERANDS, RESULT, GROUP, ROOT, GROUP_TYPE), TYPE_BYTES)                                                   \
	ROW(DATA, ssize_t, fi_gather, ep->collective, gather,                                                          \
	    (OPERANDS, RESULT, GROUP, ROOT, GROUP_TYPE), TYPE_BYTES)                                                   \
	ROW(DATA, ssize_t, fi_collective_msg, ep->collective, msg,                                                     \
	    (EP, POINTER(const struct fi_msg_collective *, msg), RESULTV_OF_MSG, BYTES,                                \
	     DECODED_IN(msg, coll, FI_TYPE_COLLECTIVE_OP), IN(msg, SHOW_ADDRESS, coll_addr), MSG_END), ELEMENTS_BYTES)

/* ---- Completions, events and counters --------------------------------------------------------- */

#define COMPLETIONS  CQ, INTO, COUNT, \
	VALUE(entries, (uintptr_t)(struct value_entries[]){hook_entries(cq, buf, ret)}, SHOW_ENTRIES, 0)
/* An error that was read. */
#define READ_ERROR(object)  \
	IN(ret > 0 ? buf : NULL, SHOW_POINTER, object), IN(ret > 0 ? buf : NULL, SHOW_NUMBER, err), \
	IN(ret > 0 ? buf : NULL, SHOW_NUMBER, prov_errno)
#define READ_EVENT VALUE(event, (uintptr_t)(ret > 0 ? event : NULL), SHOW_DECODED_AT, FI_TYPE_EQ_EVENT)
#define EVENT      EQ, HIDDEN(uint32_t *, event), INTO, LEN
#define PROVIDER_ERROR  NUMBER(int, prov_errno), POINTER(const void *, err_data), HIDDEN(char *, buf), \
	HIDDEN(size_t, len)
#define SENDERS POINTER(fi_addr_t *, src_addr)
#define COND    POINTER(const void *, cond)

#define CQ_CALLS(ROW)                                                                                                  \
	ROW(CALL, ssize_t, fi_cq_read, cq->ops, read, (COMPLETIONS))                                                   \
	ROW(CALL, ssize_t, fi_cq_readfrom, cq->ops, readfrom, (COMPLETIONS, SENDERS))                                  \
	ROW(CALL, ssize_t, fi_cq_readerr, cq->ops, readerr,                                                            \
	    (CQ, HIDDEN(struct fi_cq_err_entry *, buf), FLAGS, READ_ERROR(op_context)))                                \
	ROW(CALL, ssize_t, fi_cq_sread, cq->ops, sread, (COMPLETIONS, COND, TIMEOUT))                                  \
	ROW(CALL, ssize_t, fi_cq_sreadfrom, cq->ops, sreadfrom, (COMPLETIONS, SENDERS, COND, TIMEOUT))                 \
	ROW(CALL, int, fi_cq_signal, cq->ops, signal, (CQ))                                                            \
	ROW(CALL, const char *, fi_cq_strerror, cq->ops, strerror, (CQ, PROVIDER_ERROR))

#define EQ_CALLS(ROW)                                                                                                  \
	ROW(CALL, ssize_t, fi_eq_read, eq->ops, read, (EVENT, FLAGS, READ_EVENT))                                      \
	ROW(CALL, ssize_t, fi_eq_readerr, eq->ops, readerr,                                                            \
	    (EQ, HIDDEN(struct fi_eq_err_entry *, buf), FLAGS, READ_ERROR(fid)))                                       \
	ROW(CALL, ssize_t, fi_eq_write, eq->ops, write,                                                                \
	    (EQ, DECODED(uint32_t, event, FI_TYPE_EQ_EVENT), BUF, LEN, FLAGS))                                         \
	ROW(CALL, ssize_t, fi_eq_sread, eq->ops, sread,                                                                \
	    (EVENT, HIDDEN(int, timeout), FLAGS, VALUE(timeout, timeout, SHOW_NUMBER, 0), READ_EVENT))                 \
	ROW(CALL, const char *, fi_eq_strerror, eq->ops, strerror, (EQ, PROVIDER_ERROR))

#define CNTR_CALLS(ROW)                                                                                                \
	ROW(CALL, uint64_t, fi_cntr_read, cntr->ops, read, (CNTR))                                                     \
	ROW(CALL, uint64_t, fi_cntr_readerr, cntr->ops, readerr, (CNTR))                                               \
	ROW(CALL, int, fi_cntr_add, cntr->ops, add, (CNTR, NUMBER(uint64_t, value)))                                   \
	ROW(CALL, int, fi_cntr_set, cntr->ops, set, (CNTR, NUMBER(uint64_t, value)))                                   \
	ROW(CALL, int, fi_cntr_wait, cntr->ops, wait, (CNTR, NUMBER(uint64_t, threshold), TIMEOUT))                    \
	ROW(CALL, int, fi_cntr_adderr, cntr->ops, adderr, (CNTR, NUMBER(uint64_t, value)))                             \
	ROW(CALL, int, fi_cntr_seterr, cntr->ops, seterr, (CNTR, NUMBER(uint64_t, value)))

#define WAIT_CALLS(ROW)                                                                                                \
	ROW(CALL, int, fi_wait, waitset->ops, wait, (OBJECT(struct fid_wait *, waitset), TIMEOUT))

#define POLL_CALLS(ROW)                                                                                                \
	ROW(CALL, int, fi_poll, pollset->ops, poll, (POLLSET, POINTER(void **, context), NUMBER(int, count)))          \
	ROW(CALL, int, fi_poll_add, pollset->ops, poll_add, (POLLSET, POINTER(struct fid *, event_fid), FLAGS))        \
	ROW(CALL, int, fi_poll_del, pollset->ops, poll_del, (POLLSET, POINTER(struct fid *, event_fid), FLAGS))
/* clang-format on */

#endif
