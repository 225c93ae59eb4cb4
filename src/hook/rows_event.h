/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that read completions, events and counters: rows as in hook/rows_object.h. */
#ifndef WEFT_HOOK_ROWS_EVENT_H
#define WEFT_HOOK_ROWS_EVENT_H

#include <rdma/fi_eq.h>

#include "hook/value.h"

#define COMPLETIONS                                                                                \
	POINTER(cq), POINTER(buf), NUMBER(count),                                                  \
		SHOWN("entries", (uintptr_t)(struct value_entries[]){hook_entries(cq, buf, ret)},  \
		      SHOW_ENTRIES, 0)
/* An error that was read. */
#define READ_ERROR                                                                                 \
	IN(ret > 0 ? buf : NULL, SHOW_NUMBER, err),                                                \
		IN(ret > 0 ? buf : NULL, SHOW_NUMBER, prov_errno)
#define READ_EVENT                                                                                 \
	SHOWN("event", (uintptr_t)(ret > 0 ? event : NULL), SHOW_DECODED_AT, FI_TYPE_EQ_EVENT)
#define EVENT          POINTER(eq), POINTER(buf), NUMBER(len), FLAGS(flags)
#define PROVIDER_ERROR NUMBER(prov_errno), POINTER(err_data)

/* clang-format off */
#define CQ_CALLS(CALL)                                                                             \
	CALL(ssize_t, fi_cq_read, cq->ops, read,                                                   \
	     (struct fid_cq *cq, void *buf, size_t count), (cq, buf, count), COMPLETIONS)          \
	CALL(ssize_t, fi_cq_readfrom, cq->ops, readfrom,                                           \
	     (struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr),                    \
	     (cq, buf, count, src_addr),                                                           \
	     COMPLETIONS, POINTER(src_addr))                                                       \
	CALL(ssize_t, fi_cq_readerr, cq->ops, readerr,                                             \
	     (struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags), (cq, buf, flags),   \
	     POINTER(cq), FLAGS(flags), IN(ret > 0 ? buf : NULL, SHOW_POINTER, op_context),        \
	     READ_ERROR)                                                                           \
	CALL(ssize_t, fi_cq_sread, cq->ops, sread,                                                 \
	     (struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout),          \
	     (cq, buf, count, cond, timeout),                                                      \
	     COMPLETIONS, POINTER(cond), NUMBER(timeout))                                          \
	CALL(ssize_t, fi_cq_sreadfrom, cq->ops, sreadfrom,                                         \
	     (struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr, const void *cond,   \
	      int timeout),                                                                        \
	     (cq, buf, count, src_addr, cond, timeout),                                            \
	     COMPLETIONS, POINTER(src_addr), POINTER(cond), NUMBER(timeout))                       \
	CALL(int, fi_cq_signal, cq->ops, signal, (struct fid_cq *cq), (cq), POINTER(cq))           \
	CALL(const char *, fi_cq_strerror, cq->ops, strerror,                                      \
	     (struct fid_cq *cq, int prov_errno, const void *err_data, char *buf, size_t len),     \
	     (cq, prov_errno, err_data, buf, len),                                                 \
	     POINTER(cq), PROVIDER_ERROR)

#define EQ_CALLS(CALL)                                                                             \
	CALL(ssize_t, fi_eq_read, eq->ops, read,                                                   \
	     (struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags),          \
	     (eq, event, buf, len, flags),                                                         \
	     EVENT, READ_EVENT)                                                                    \
	CALL(ssize_t, fi_eq_readerr, eq->ops, readerr,                                             \
	     (struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags), (eq, buf, flags),   \
	     POINTER(eq), FLAGS(flags), IN(ret > 0 ? buf : NULL, SHOW_POINTER, fid), READ_ERROR)   \
	CALL(ssize_t, fi_eq_write, eq->ops, write,                                                 \
	     (struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags),     \
	     (eq, event, buf, len, flags),                                                         \
	     POINTER(eq), DECODED(event, FI_TYPE_EQ_EVENT), POINTER(buf), NUMBER(len),             \
	     FLAGS(flags))                                                                         \
	CALL(ssize_t, fi_eq_sread, eq->ops, sread,                                                 \
	     (struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,              \
	      uint64_t flags),                                                                     \
	     (eq, event, buf, len, timeout, flags),                                                \
	     EVENT, NUMBER(timeout), READ_EVENT)                                                   \
	CALL(const char *, fi_eq_strerror, eq->ops, strerror,                                      \
	     (struct fid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len),     \
	     (eq, prov_errno, err_data, buf, len),                                                 \
	     POINTER(eq), PROVIDER_ERROR)

#define CNTR_CALLS(CALL)                                                                           \
	CALL(uint64_t, fi_cntr_read, cntr->ops, read, (struct fid_cntr *cntr), (cntr),             \
	     POINTER(cntr))                                                                        \
	CALL(uint64_t, fi_cntr_readerr, cntr->ops, readerr, (struct fid_cntr *cntr), (cntr),       \
	     POINTER(cntr))                                                                        \
	CALL(int, fi_cntr_add, cntr->ops, add,                                                     \
	     (struct fid_cntr *cntr, uint64_t value), (cntr, value), POINTER(cntr), NUMBER(value)) \
	CALL(int, fi_cntr_set, cntr->ops, set,                                                     \
	     (struct fid_cntr *cntr, uint64_t value), (cntr, value), POINTER(cntr), NUMBER(value)) \
	CALL(int, fi_cntr_wait, cntr->ops, wait,                                                   \
	     (struct fid_cntr *cntr, uint64_t threshold, int timeout), (cntr, threshold, timeout), \
	     POINTER(cntr), NUMBER(threshold), NUMBER(timeout))                                    \
	CALL(int, fi_cntr_adderr, cntr->ops, adderr,                                               \
	     (struct fid_cntr *cntr, uint64_t value), (cntr, value), POINTER(cntr), NUMBER(value)) \
	CALL(int, fi_cntr_seterr, cntr->ops, seterr,                                               \
	     (struct fid_cntr *cntr, uint64_t value), (cntr, value), POINTER(cntr), NUMBER(value))

#define WAIT_CALLS(CALL)                                                                           \
	CALL(int, fi_wait, waitset->ops, wait,                                                     \
	     (struct fid_wait *waitset, int timeout), (waitset, timeout),                          \
	     POINTER(waitset), NUMBER(timeout))

#define POLL_CALLS(CALL)                                                                           \
	CALL(int, fi_poll, pollset->ops, poll,                                                     \
	     (struct fid_poll *pollset, void **context, int count), (pollset, context, count),     \
	     POINTER(pollset), POINTER(context), NUMBER(count))                                    \
	CALL(int, fi_poll_add, pollset->ops, poll_add,                                             \
	     (struct fid_poll *pollset, struct fid *event_fid, uint64_t flags),                    \
	     (pollset, event_fid, flags),                                                          \
	     POINTER(pollset), POINTER(event_fid), FLAGS(flags))                                   \
	CALL(int, fi_poll_del, pollset->ops, poll_del,                                             \
	     (struct fid_poll *pollset, struct fid *event_fid, uint64_t flags),                    \
	     (pollset, event_fid, flags),                                                          \
	     POINTER(pollset), POINTER(event_fid), FLAGS(flags))
/* clang-format on */

#endif
