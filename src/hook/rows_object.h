/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that open, bind and control objects, by the tables they are in. Each row is
 *
 *   CALL(result, call, table, member, parameters, arguments, values...)
 *   OPEN(result, call, table, member, parameters, arguments, opened, values...)
 *
 * where `opened` points to what a successful call opens, and `values` are what a trace shows
 * (hook/value.h). fi_close is not here: hook.c has it. fi_join opens what its event may have let
 * another thread close before it returns: that is not touched.
 */
#ifndef WEFT_HOOK_ROWS_OBJECT_H
#define WEFT_HOOK_ROWS_OBJECT_H

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "hook/value.h"

/* What an FI_ALIAS opens. */
#define ALIAS_OF(command, arg) ((command) == FI_ALIAS ? *((struct fi_alias *)(arg))->fid : NULL)

#define REGION DECODED(access, FI_TYPE_CAPS), HEX(requested_key), FLAGS(flags), POINTER(context)
#define OPTION POINTER(fid), NUMBER(level), NUMBER(optname), POINTER(optval)

/* clang-format off */
#define FID_CALLS(CALL, OPEN)                                                                      \
	CALL(int, fi_bind, fid->ops, bind,                                                         \
	     (struct fid *fid, struct fid *bfid, uint64_t flags),                                  \
	     (fid, bfid, flags),                                                                   \
	     POINTER(fid), POINTER(bfid), DECODED(flags, FI_TYPE_CAPS))                            \
	OPEN(int, fi_control, fid->ops, control,                                                   \
	     (struct fid *fid, int command, void *arg),                                            \
	     (fid, command, arg),                                                                  \
	     ALIAS_OF(command, arg), POINTER(fid), NUMBER(command), POINTER(arg))                  \
	CALL(int, fi_open_ops, fid->ops, ops_open,                                                 \
	     (struct fid *fid, const char *name, uint64_t flags, void **ops, void *context),       \
	     (fid, name, flags, ops, context),                                                     \
	     POINTER(fid), TEXT(name), HEX(flags), POINTER(context))                               \
	CALL(int, fid_tostr, fid->ops, tostr,                                                      \
	     (const struct fid *fid, char *buf, size_t len),                                       \
	     (fid, buf, len),                                                                      \
	     POINTER(fid), POINTER(buf), NUMBER(len))                                              \
	CALL(int, fi_set_ops, fid->ops, ops_set,                                                   \
	     (struct fid *fid, const char *name, uint64_t flags, void *ops, void *context),        \
	     (fid, name, flags, ops, context),                                                     \
	     POINTER(fid), TEXT(name), HEX(flags), POINTER(ops), POINTER(context))

#define FABRIC_CALLS(CALL, OPEN)                                                                   \
	OPEN(int, fi_domain, fabric->ops, domain,                                                  \
	     (struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,         \
	      void *context),                                                                      \
	     (fabric, info, domain, context),                                                      \
	     *domain, POINTER(fabric), DECODED_AT(info, FI_TYPE_INFO), POINTER(context))           \
	OPEN(int, fi_passive_ep, fabric->ops, passive_ep,                                          \
	     (struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,               \
	      void *context),                                                                      \
	     (fabric, info, pep, context),                                                         \
	     *pep, POINTER(fabric), DECODED_AT(info, FI_TYPE_INFO), POINTER(context))              \
	OPEN(int, fi_eq_open, fabric->ops, eq_open,                                                \
	     (struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,              \
	      void *context),                                                                      \
	     (fabric, attr, eq, context),                                                          \
	     *eq, POINTER(fabric), POINTER(attr), POINTER(context))                                \
	OPEN(int, fi_wait_open, fabric->ops, wait_open,                                            \
	     (struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **waitset),    \
	     (fabric, attr, waitset),                                                              \
	     *waitset, POINTER(fabric), POINTER(attr))                                             \
	CALL(int, fi_trywait, fabric->ops, trywait,                                                \
	     (struct fid_fabric *fabric, struct fid **fids, int count),                            \
	     (fabric, fids, count),                                                                \
	     POINTER(fabric), POINTER(fids), NUMBER(count))                                        \
	OPEN(int, fi_domain2, fabric->ops, domain2,                                                \
	     (struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,         \
	      uint64_t flags, void *context),                                                      \
	     (fabric, info, domain, flags, context),                                               \
	     *domain, POINTER(fabric), DECODED_AT(info, FI_TYPE_INFO), FLAGS(flags),               \
	     POINTER(context))

#define DOMAIN_CALLS(CALL, OPEN)                                                                   \
	OPEN(int, fi_av_open, domain->ops, av_open,                                                \
	     (struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,              \
	      void *context),                                                                      \
	     (domain, attr, av, context),                                                          \
	     *av, POINTER(domain), DECODED_AT(attr, FI_TYPE_AV_ATTR), POINTER(context))            \
	OPEN(int, fi_cq_open, domain->ops, cq_open,                                                \
	     (struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,              \
	      void *context),                                                                      \
	     (domain, attr, cq, context),                                                          \
	     hook_queue(*cq, attr), POINTER(domain), DECODED_AT(attr, FI_TYPE_CQ_ATTR),            \
	     POINTER(context))                                                                     \
	OPEN(int, fi_endpoint, domain->ops, endpoint,                                              \
	     (struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,                 \
	      void *context),                                                                      \
	     (domain, info, ep, context),                                                          \
	     *ep, POINTER(domain), DECODED_AT(info, FI_TYPE_INFO), POINTER(context))               \
	OPEN(int, fi_scalable_ep, domain->ops, scalable_ep,                                        \
	     (struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,                \
	      void *context),                                                                      \
	     (domain, info, sep, context),                                                         \
	     *sep, POINTER(domain), DECODED_AT(info, FI_TYPE_INFO), POINTER(context))              \
	OPEN(int, fi_cntr_open, domain->ops, cntr_open,                                            \
	     (struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,        \
	      void *context),                                                                      \
	     (domain, attr, cntr, context),                                                        \
	     *cntr, POINTER(domain), DECODED_AT(attr, FI_TYPE_CNTR_ATTR), POINTER(context))        \
	OPEN(int, fi_poll_open, domain->ops, poll_open,                                            \
	     (struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset),    \
	     (domain, attr, pollset),                                                              \
	     *pollset, POINTER(domain), POINTER(attr))                                             \
	OPEN(int, fi_stx_context, domain->ops, stx_ctx,                                            \
	     (struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,            \
	      void *context),                                                                      \
	     (domain, attr, stx, context),                                                         \
	     *stx, POINTER(domain), DECODED_AT(attr, FI_TYPE_TX_ATTR), POINTER(context))           \
	OPEN(int, fi_srx_context, domain->ops, srx_ctx,                                            \
	     (struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,           \
	      void *context),                                                                      \
	     (domain, attr, rx_ep, context),                                                       \
	     *rx_ep, POINTER(domain), DECODED_AT(attr, FI_TYPE_RX_ATTR), POINTER(context))         \
	CALL(int, fi_query_atomic, domain->ops, query_atomic,                                      \
	     (struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,                 \
	      struct fi_atomic_attr *attr, uint64_t flags),                                        \
	     (domain, datatype, op, attr, flags),                                                  \
	     POINTER(domain), DECODED(datatype, FI_TYPE_ATOMIC_TYPE),                              \
	     DECODED(op, FI_TYPE_ATOMIC_OP), POINTER(attr), FLAGS(flags))                          \
	CALL(int, fi_query_collective, domain->ops, query_collective,                              \
	     (struct fid_domain *domain, enum fi_collective_op coll,                               \
	      struct fi_collective_attr *attr, uint64_t flags),                                    \
	     (domain, coll, attr, flags),                                                          \
	     POINTER(domain), DECODED(coll, FI_TYPE_COLLECTIVE_OP), POINTER(attr), FLAGS(flags))   \
	OPEN(int, fi_endpoint2, domain->ops, endpoint2,                                            \
	     (struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags, \
	      void *context),                                                                      \
	     (domain, info, ep, flags, context),                                                   \
	     *ep, POINTER(domain), DECODED_AT(info, FI_TYPE_INFO), FLAGS(flags), POINTER(context))

#define MR_CALLS(CALL, OPEN)                                                                       \
	OPEN(int, fi_mr_reg, ((struct fid_domain *)fid)->mr, reg,                                  \
	     (struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,      \
	      uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context),          \
	     (fid, buf, len, access, offset, requested_key, flags, mr, context),                   \
	     *mr, POINTER(fid), POINTER(buf), NUMBER(len), REGION)                                 \
	OPEN(int, fi_mr_regv, ((struct fid_domain *)fid)->mr, regv,                                \
	     (struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,             \
	      uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,         \
	      void *context),                                                                      \
	     (fid, iov, count, access, offset, requested_key, flags, mr, context),                 \
	     *mr, POINTER(fid), POINTER(iov), NUMBER(count), REGION)                               \
	OPEN(int, fi_mr_regattr, ((struct fid_domain *)fid)->mr, regattr,                          \
	     (struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr), \
	     (fid, attr, flags, mr),                                                               \
	     *mr, POINTER(fid), POINTER(attr), IN(attr, SHOW_NUMBER, iov_count),                   \
	     DECODED_IN(attr, access, FI_TYPE_CAPS), IN(attr, SHOW_HEX, requested_key),            \
	     FLAGS(flags))

#define EP_CALLS(CALL, OPEN)                                                                       \
	CALL(ssize_t, fi_cancel, ((struct fid_ep *)fid)->ops, cancel,                              \
	     (fid_t fid, void *context),                                                           \
	     (fid, context),                                                                       \
	     POINTER(fid), POINTER(context))                                                       \
	CALL(int, fi_getopt, ((struct fid_ep *)fid)->ops, getopt,                                  \
	     (fid_t fid, int level, int optname, void *optval, size_t *optlen),                    \
	     (fid, level, optname, optval, optlen),                                                \
	     OPTION, POINTER(optlen))                                                              \
	CALL(int, fi_setopt, ((struct fid_ep *)fid)->ops, setopt,                                  \
	     (fid_t fid, int level, int optname, const void *optval, size_t optlen),               \
	     (fid, level, optname, optval, optlen),                                                \
	     OPTION, NUMBER(optlen))                                                               \
	OPEN(int, fi_tx_context, sep->ops, tx_ctx,                                                 \
	     (struct fid_ep *sep, int idx, struct fi_tx_attr *attr, struct fid_ep **tx_ep,         \
	      void *context),                                                                      \
	     (sep, idx, attr, tx_ep, context),                                                     \
	     *tx_ep, POINTER(sep), NUMBER(idx), DECODED_AT(attr, FI_TYPE_TX_ATTR),                 \
	     POINTER(context))                                                                     \
	OPEN(int, fi_rx_context, sep->ops, rx_ctx,                                                 \
	     (struct fid_ep *sep, int idx, struct fi_rx_attr *attr, struct fid_ep **rx_ep,         \
	      void *context),                                                                      \
	     (sep, idx, attr, rx_ep, context),                                                     \
	     *rx_ep, POINTER(sep), NUMBER(idx), DECODED_AT(attr, FI_TYPE_RX_ATTR),                 \
	     POINTER(context))                                                                     \
	CALL(ssize_t, fi_rx_size_left, ep->ops, rx_size_left,                                      \
	     (struct fid_ep *ep), (ep), POINTER(ep))                                               \
	CALL(ssize_t, fi_tx_size_left, ep->ops, tx_size_left,                                      \
	     (struct fid_ep *ep), (ep), POINTER(ep))

#define CM_CALLS(CALL, OPEN)                                                                       \
	CALL(int, fi_setname, ((struct fid_ep *)fid)->cm, setname,                                 \
	     (fid_t fid, void *addr, size_t addrlen), (fid, addr, addrlen),                        \
	     POINTER(fid), ENDPOINT_NAME(addr), NUMBER(addrlen))                                   \
	CALL(int, fi_getname, ((struct fid_ep *)fid)->cm, getname,                                 \
	     (fid_t fid, void *addr, size_t *addrlen), (fid, addr, addrlen),                       \
	     POINTER(fid), WRITTEN_NAME(addr), POINTER(addrlen))                                   \
	CALL(int, fi_getpeer, ep->cm, getpeer,                                                     \
	     (struct fid_ep *ep, void *addr, size_t *addrlen), (ep, addr, addrlen),                \
	     POINTER(ep), WRITTEN_NAME(addr), POINTER(addrlen))                                    \
	CALL(int, fi_connect, ep->cm, connect,                                                     \
	     (struct fid_ep *ep, const void *addr, const void *param, size_t paramlen),            \
	     (ep, addr, param, paramlen),                                                          \
	     POINTER(ep), ENDPOINT_NAME(addr), POINTER(param), NUMBER(paramlen))                   \
	CALL(int, fi_listen, pep->cm, listen, (struct fid_pep *pep), (pep), POINTER(pep))          \
	CALL(int, fi_accept, ep->cm, accept,                                                       \
	     (struct fid_ep *ep, const void *param, size_t paramlen), (ep, param, paramlen),       \
	     POINTER(ep), POINTER(param), NUMBER(paramlen))                                        \
	CALL(int, fi_reject, pep->cm, reject,                                                      \
	     (struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen),              \
	     (pep, handle, param, paramlen),                                                       \
	     POINTER(pep), POINTER(handle), POINTER(param), NUMBER(paramlen))                      \
	CALL(int, fi_shutdown, ep->cm, shutdown,                                                   \
	     (struct fid_ep *ep, uint64_t flags), (ep, flags), POINTER(ep), FLAGS(flags))          \
	CALL(int, fi_join, ep->cm, join,                                                           \
	     (struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,             \
	      void *context),                                                                      \
	     (ep, addr, flags, mc, context),                                                       \
	     POINTER(ep), POINTER(addr), FLAGS(flags), POINTER(context))

#define AV_CALLS(CALL, OPEN)                                                                       \
	CALL(int, fi_av_insert, av->ops, insert,                                                   \
	     (struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,               \
	      uint64_t flags, void *context),                                                      \
	     (av, addr, count, fi_addr, flags, context),                                           \
	     POINTER(av), SHOWN("addr", (uintptr_t)(ret > 0 ? addr : NULL), SHOW_NAME, 0),         \
	     NUMBER(count), POINTER(fi_addr), FLAGS(flags),                                        \
	     POINTER(context))                                                                     \
	CALL(int, fi_av_insertsvc, av->ops, insertsvc,                                             \
	     (struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr,        \
	      uint64_t flags, void *context),                                                      \
	     (av, node, service, fi_addr, flags, context),                                         \
	     POINTER(av), TEXT(node), TEXT(service), POINTER(fi_addr), FLAGS(flags),               \
	     POINTER(context))                                                                     \
	CALL(int, fi_av_insertsym, av->ops, insertsym,                                             \
	     (struct fid_av *av, const char *node, size_t nodecnt, const char *service,            \
	      size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context),                   \
	     (av, node, nodecnt, service, svccnt, fi_addr, flags, context),                        \
	     POINTER(av), TEXT(node), NUMBER(nodecnt), TEXT(service), NUMBER(svccnt),              \
	     POINTER(fi_addr), FLAGS(flags), POINTER(context))                                     \
	CALL(int, fi_av_remove, av->ops, remove,                                                   \
	     (struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags),                \
	     (av, fi_addr, count, flags),                                                          \
	     POINTER(av), POINTER(fi_addr), NUMBER(count), FLAGS(flags))                           \
	CALL(int, fi_av_lookup, av->ops, lookup,                                                   \
	     (struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen),                  \
	     (av, fi_addr, addr, addrlen),                                                         \
	     POINTER(av), ADDRESS(fi_addr), POINTER(addr), POINTER(addrlen))                       \
	CALL(const char *, fi_av_straddr, av->ops, straddr,                                        \
	     (struct fid_av *av, const void *addr, char *buf, size_t *len),                        \
	     (av, addr, buf, len),                                                                 \
	     POINTER(av), POINTER(addr), POINTER(buf), POINTER(len))                               \
	OPEN(int, fi_av_set, av->ops, av_set,                                                      \
	     (struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,             \
	      void *context),                                                                      \
	     (av, attr, set, context),                                                             \
	     *set, POINTER(av), POINTER(attr), POINTER(context))                                   \
	CALL(int, fi_av_insert_auth_key, av->ops, insert_auth_key,                                 \
	     (struct fid_av *av, const void *auth_key, size_t auth_key_size, fi_addr_t *fi_addr,   \
	      uint64_t flags),                                                                     \
	     (av, auth_key, auth_key_size, fi_addr, flags),                                        \
	     POINTER(av), NUMBER(auth_key_size), POINTER(fi_addr), FLAGS(flags))                   \
	CALL(int, fi_av_lookup_auth_key, av->ops, lookup_auth_key,                                 \
	     (struct fid_av *av, fi_addr_t addr, void *auth_key, size_t *auth_key_size),           \
	     (av, addr, auth_key, auth_key_size),                                                  \
	     POINTER(av), ADDRESS(addr), POINTER(auth_key_size))                                   \
	CALL(int, fi_av_set_user_id, av->ops, set_user_id,                                         \
	     (struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags),            \
	     (av, fi_addr, user_id, flags),                                                        \
	     POINTER(av), ADDRESS(fi_addr), HEX(user_id), FLAGS(flags))

#define AV_SET_CALLS(CALL, OPEN)                                                                   \
	CALL(int, fi_av_set_union, dst->ops, set_union,                                            \
	     (struct fid_av_set *dst, const struct fid_av_set *src), (dst, src),                   \
	     POINTER(dst), POINTER(src))                                                           \
	CALL(int, fi_av_set_intersect, dst->ops, intersect,                                        \
	     (struct fid_av_set *dst, const struct fid_av_set *src), (dst, src),                   \
	     POINTER(dst), POINTER(src))                                                           \
	CALL(int, fi_av_set_diff, dst->ops, diff,                                                  \
	     (struct fid_av_set *dst, const struct fid_av_set *src), (dst, src),                   \
	     POINTER(dst), POINTER(src))                                                           \
	CALL(int, fi_av_set_insert, set->ops, insert,                                              \
	     (struct fid_av_set *set, fi_addr_t addr), (set, addr), POINTER(set), ADDRESS(addr))   \
	CALL(int, fi_av_set_remove, set->ops, remove,                                              \
	     (struct fid_av_set *set, fi_addr_t addr), (set, addr), POINTER(set), ADDRESS(addr))   \
	CALL(int, fi_av_set_addr, set->ops, addr,                                                  \
	     (struct fid_av_set *set, fi_addr_t *coll_addr), (set, coll_addr),                     \
	     POINTER(set), POINTER(coll_addr))
/* clang-format on */

#endif
