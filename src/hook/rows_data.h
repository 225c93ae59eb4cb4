/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that move data, by the tables they are in. Each row is
 *
 *   DATA(result, call, table, member, parameters, arguments, bytes, values...)
 *
 * where `bytes` is what the call moves, unless it fails, and `values` are what a trace shows
 * (hook/value.h); there `bytes` stands for that number. Both are read before the call.
 */
#ifndef WEFT_HOOK_ROWS_DATA_H
#define WEFT_HOOK_ROWS_DATA_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "hook/value.h"

/* Values that several calls have. */
#define BUFFER   POINTER(ep), POINTER(buf), NUMBER(len)
#define BUFFERS  POINTER(ep), POINTER(iov), NUMBER(count), NUMBER(bytes)
#define REMOTE   HEX(addr), HEX(key)
#define MATCH    HEX(tag), HEX(ignore)
#define MESSAGE  POINTER(ep), POINTER(msg), NUMBER(bytes), IN(msg, SHOW_ADDRESS, addr)
#define MSG_DATA IN(msg, SHOW_HEX, data)
#define MSG_TAGS IN(msg, SHOW_HEX, tag), IN(msg, SHOW_HEX, ignore)
#define MSG_END  IN(msg, SHOW_POINTER, context), FLAGS(flags)

#define MSG_BYTES (msg ? value_bytes(msg->msg_iov, msg->iov_count) : 0)
/* To look at a message, or to discard it, takes no buffer: the segments may be stale. */
#define RECV_BYTES (flags & (FI_PEEK | FI_DISCARD) ? 0 : MSG_BYTES)

/* clang-format off */
#define MSG_CALLS(DATA)                                                                            \
	DATA(ssize_t, fi_recv, ep->msg, recv,                                                      \
	     (struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,            \
	      void *context),                                                                      \
	     (ep, buf, len, desc, src_addr, context),                                              \
	     len, BUFFER, POINTER(desc), ADDRESS(src_addr), POINTER(context))                      \
	DATA(ssize_t, fi_recvv, ep->msg, recvv,                                                    \
	     (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,               \
	      fi_addr_t src_addr, void *context),                                                  \
	     (ep, iov, desc, count, src_addr, context),                                            \
	     value_bytes(iov, count), BUFFERS, ADDRESS(src_addr), POINTER(context))                \
	DATA(ssize_t, fi_recvmsg, ep->msg, recvmsg,                                                \
	     (struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags),                        \
	     (ep, msg, flags),                                                                     \
	     RECV_BYTES, MESSAGE, MSG_END)                                                         \
	DATA(ssize_t, fi_send, ep->msg, send,                                                      \
	     (struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,     \
	      void *context),                                                                      \
	     (ep, buf, len, desc, dest_addr, context),                                             \
	     len, BUFFER, POINTER(desc), ADDRESS(dest_addr), POINTER(context))                     \
	DATA(ssize_t, fi_sendv, ep->msg, sendv,                                                    \
	     (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,               \
	      fi_addr_t dest_addr, void *context),                                                 \
	     (ep, iov, desc, count, dest_addr, context),                                           \
	     value_bytes(iov, count), BUFFERS, ADDRESS(dest_addr), POINTER(context))               \
	DATA(ssize_t, fi_sendmsg, ep->msg, sendmsg,                                                \
	     (struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags),                        \
	     (ep, msg, flags),                                                                     \
	     MSG_BYTES, MESSAGE, MSG_DATA, MSG_END)                                                \
	DATA(ssize_t, fi_inject, ep->msg, inject,                                                  \
	     (struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr),                \
	     (ep, buf, len, dest_addr),                                                            \
	     len, BUFFER, ADDRESS(dest_addr))                                                      \
	DATA(ssize_t, fi_senddata, ep->msg, senddata,                                              \
	     (struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,           \
	      fi_addr_t dest_addr, void *context),                                                 \
	     (ep, buf, len, desc, data, dest_addr, context),                                       \
	     len, BUFFER, POINTER(desc), HEX(data), ADDRESS(dest_addr), POINTER(context))          \
	DATA(ssize_t, fi_injectdata, ep->msg, injectdata,                                          \
	     (struct fid_ep *ep, const void *buf, size_t len, uint64_t data,                       \
	      fi_addr_t dest_addr),                                                                \
	     (ep, buf, len, data, dest_addr),                                                      \
	     len, BUFFER, HEX(data), ADDRESS(dest_addr))

#define TAGGED_CALLS(DATA)                                                                         \
	DATA(ssize_t, fi_trecv, ep->tagged, recv,                                                  \
	     (struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,            \
	      uint64_t tag, uint64_t ignore, void *context),                                       \
	     (ep, buf, len, desc, src_addr, tag, ignore, context),                                 \
	     len, BUFFER, POINTER(desc), ADDRESS(src_addr), MATCH, POINTER(context))               \
	DATA(ssize_t, fi_trecvv, ep->tagged, recvv,                                                \
	     (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,               \
	      fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context),                   \
	     (ep, iov, desc, count, src_addr, tag, ignore, context),                               \
	     value_bytes(iov, count), BUFFERS, ADDRESS(src_addr), MATCH, POINTER(context))         \
	DATA(ssize_t, fi_trecvmsg, ep->tagged, recvmsg,                                            \
	     (struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags),                 \
	     (ep, msg, flags),                                                                     \
	     RECV_BYTES, MESSAGE, MSG_TAGS, MSG_END)                                               \
	DATA(ssize_t, fi_tsend, ep->tagged, send,                                                  \
	     (struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,     \
	      uint64_t tag, void *context),                                                        \
	     (ep, buf, len, desc, dest_addr, tag, context),                                        \
	     len, BUFFER, POINTER(desc), ADDRESS(dest_addr), HEX(tag), POINTER(context))           \
	DATA(ssize_t, fi_tsendv, ep->tagged, sendv,                                                \
	     (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,               \
	      fi_addr_t dest_addr, uint64_t tag, void *context),                                   \
	     (ep, iov, desc, count, dest_addr, tag, context),                                      \
	     value_bytes(iov, count), BUFFERS, ADDRESS(dest_addr), HEX(tag), POINTER(context))     \
	DATA(ssize_t, fi_tsendmsg, ep->tagged, sendmsg,                                            \
	     (struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags),                 \
	     (ep, msg, flags),                                                                     \
	     MSG_BYTES, MESSAGE, MSG_TAGS, MSG_DATA, MSG_END)                                      \
	DATA(ssize_t, fi_tinject, ep->tagged, inject,                                              \
	     (struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag),  \
	     (ep, buf, len, dest_addr, tag),                                                       \
	     len, BUFFER, ADDRESS(dest_addr), HEX(tag))                                            \
	DATA(ssize_t, fi_tsenddata, ep->tagged, senddata,                                          \
	     (struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,           \
	      fi_addr_t dest_addr, uint64_t tag, void *context),                                   \
	     (ep, buf, len, desc, data, dest_addr, tag, context),                                  \
	     len, BUFFER, POINTER(desc), HEX(data), ADDRESS(dest_addr), HEX(tag),                  \
	     POINTER(context))                                                                     \
	DATA(ssize_t, fi_tinjectdata, ep->tagged, injectdata,                                      \
	     (struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr,  \
	      uint64_t tag),                                                                       \
	     (ep, buf, len, data, dest_addr, tag),                                                 \
	     len, BUFFER, HEX(data), ADDRESS(dest_addr), HEX(tag))

#define RMA_CALLS(DATA)                                                                            \
	DATA(ssize_t, fi_read, ep->rma, read,                                                      \
	     (struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,            \
	      uint64_t addr, uint64_t key, void *context),                                         \
	     (ep, buf, len, desc, src_addr, addr, key, context),                                   \
	     len, BUFFER, POINTER(desc), ADDRESS(src_addr), REMOTE, POINTER(context))              \
	DATA(ssize_t, fi_readv, ep->rma, readv,                                                    \
	     (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,               \
	      fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context),                     \
	     (ep, iov, desc, count, src_addr, addr, key, context),                                 \
	     value_bytes(iov, count), BUFFERS, ADDRESS(src_addr), REMOTE, POINTER(context))        \
	DATA(ssize_t, fi_readmsg, ep->rma, readmsg,                                                \
	     (struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags),                    \
	     (ep, msg, flags),                                                                     \
	     MSG_BYTES, MESSAGE, MSG_END)                                                          \
	DATA(ssize_t, fi_write, ep->rma, write,                                                    \
	     (struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,     \
	      uint64_t addr, uint64_t key, void *context),                                         \
	     (ep, buf, len, desc, dest_addr, addr, key, context),                                  \
	     len, BUFFER, POINTER(desc), ADDRESS(dest_addr), REMOTE, POINTER(context))             \
	DATA(ssize_t, fi_writev, ep->rma, writev,                                                  \
	     (struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,               \
	      fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context),                    \
	     (ep, iov, desc, count, dest_addr, addr, key, context),                                \
	     value_bytes(iov, count), BUFFERS, ADDRESS(dest_addr), REMOTE, POINTER(context))       \
	DATA(ssize_t, fi_writemsg, ep->rma, writemsg,                                              \
	     (struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags),                    \
	     (ep, msg, flags),                                                                     \
	     MSG_BYTES, MESSAGE, MSG_DATA, MSG_END)                                                \
	DATA(ssize_t, fi_inject_write, ep->rma, inject,                                            \
	     (struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t addr,  \
	      uint64_t key),                                                                       \
	     (ep, buf, len, dest_addr, addr, key),                                                 \
	     len, BUFFER, ADDRESS(dest_addr), REMOTE)                                              \
	DATA(ssize_t, fi_writedata, ep->rma, writedata,                                            \
	     (struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,           \
	      fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context),                    \
	     (ep, buf, len, desc, data, dest_addr, addr, key, context),                            \
	     len, BUFFER, POINTER(desc), HEX(data), ADDRESS(dest_addr), REMOTE, POINTER(context))  \
	DATA(ssize_t, fi_inject_writedata, ep->rma, injectdata,                                    \
	     (struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr,  \
	      uint64_t addr, uint64_t key),                                                        \
	     (ep, buf, len, data, dest_addr, addr, key),                                           \
	     len, BUFFER, HEX(data), ADDRESS(dest_addr), REMOTE)
/* clang-format on */

#endif
