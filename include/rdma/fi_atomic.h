/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote atomics: apply an operator to elements of a peer's registered memory.  Each element is
 * updated atomically, the array as a whole is not.  Man page: fi_atomic(3).
 *
 * Three families, by what travels besides the operands in buf:
 *  base		fi_atomic*		target = target OP buf
 *					FI_MIN FI_MAX FI_SUM FI_PROD FI_LOR FI_LAND FI_BOR FI_BAND
 *					FI_LXOR FI_BXOR FI_ATOMIC_WRITE FI_DIFF
 *  fetch	fi_fetch_atomic*	the same, the old target comes back in result; and
 *					FI_ATOMIC_READ, for which buf may be NULL
 *  compare	fi_compare_atomic*	FI_CSWAP, FI_CSWAP_NE, _LE, _LT, _GE, _GT: target = buf
 *					where (compare OP target) holds; FI_MSWAP: bits of buf where
 *					compare has ones; the old target comes back in result
 *
 * Shared by every call below:
 *  - counts are elements of datatype, from 1 to the count of the matching valid call; local and
 *    remote counts must agree; buffers and target may have any alignment, except that an 8-byte
 *    FI_ATOMIC_WRITE must be aligned to 8 at the target (else an error completion, FI_EINVAL):
 *    a process that polls the word never sees half of it;
 *  - (addr, key) as in fi_rma(3); with FI_TAGGED in the flags the target is a posted tagged
 *    receive instead: key is its tag, addr a byte offset into it.  It is matched as a message
 *    is, waits for a receive if there is none, and completes the receive (FI_ATOMIC in its flags);
 *  - desc is fi_mr_desc() of the local region under FI_MR_LOCAL (or for device memory), else NULL;
 *  - buf, compare and result belong to the library until the completion (buf and compare only for
 *    the call with FI_INJECT); fi_ioc, desc and msg structures only for the call;
 *  - a completion of a fetch or compare says that result is filled;
 *  - 0 means accepted.  -FI_EAGAIN: no space now, read the completion queue and try again.
 *    -FI_EOPNOTSUPP: this operator is not supported for this datatype.  -FI_EMSGSIZE: too many
 *    elements.  Bad keys, ranges and rights give error completions.
 */
#ifndef FI_ATOMIC_H
#define FI_ATOMIC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of fi_query_atomic(): which family is asked about; neither means base, both is an error. */
#define FI_FETCH_ATOMIC   (1ULL << 58)
#define FI_COMPARE_ATOMIC (1ULL << 59)

/* One atomic as the msg calls take it. */
struct fi_msg_atomic {
	const struct fi_ioc *msg_iov;     /* operands; NULL for FI_ATOMIC_READ */
	void **desc;                      /* one per entry of msg_iov, or NULL */
	size_t iov_count;                 /* entries, up to iov_limit */
	fi_addr_t addr;                   /* peer */
	const struct fi_rma_ioc *rma_iov; /* target ranges */
	size_t rma_iov_count;             /* entries, up to rma_iov_limit */
	enum fi_datatype datatype;
	enum fi_op op;
	void *context;
	uint64_t data; /* remote CQ data, with FI_REMOTE_CQ_DATA */
};

/* Result buffers of a fetch, as deferred work takes them. */
struct fi_msg_fetch {
	struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

/* Compare operands, as deferred work takes them. */
struct fi_msg_compare {
	const struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

/* Answer of fi_query_atomic(). */
struct fi_atomic_attr {
	size_t count; /* elements one call may carry */
	size_t size;  /* bytes of one element */
};

/* The endpoint's table; no member is NULL. */
struct fi_ops_atomic {
	size_t size;
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			 enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			  fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			  enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op);
	ssize_t (*readwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr,
			     uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*readwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			      size_t count, struct fi_ioc *resultv, void **result_desc,
			      size_t result_count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			      enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*readwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				struct fi_ioc *resultv, void **result_desc, size_t result_count,
				uint64_t flags);
	ssize_t (*compwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     const void *compare, void *compare_desc, void *result,
			     void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*compwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
			      size_t count, const struct fi_ioc *comparev, void **compare_desc,
			      size_t compare_count, struct fi_ioc *resultv, void **result_desc,
			      size_t result_count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			      enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*compwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				const struct fi_ioc *comparev, void **compare_desc,
				size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				size_t result_count, uint64_t flags);
	int (*writevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			  size_t *count);
	int (*readwritevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			      size_t *count);
	int (*compwritevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			      size_t *count);
};

/* Update `count` elements at the target; nothing comes back.  fi_atomic(3) */
WEFT_CALL ssize_t fi_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->write(ep, buf, count, desc, dest_addr, addr, key, datatype, op, context);
}

/* fi_atomic() with operands gathered from `count` entries of iov.  fi_atomic(3) */
WEFT_CALL ssize_t fi_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->writev(ep, iov, desc, count, dest_addr, addr, key, datatype, op,
				  context);
}

/*
 * Base atomic with flags instead of the endpoint's: FI_COMPLETION, FI_MORE, FI_INJECT, FI_FENCE,
 * FI_TAGGED and the completion levels of fi_rma(3).  fi_atomic(3)
 */
WEFT_CALL ssize_t fi_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return ep->atomic->writemsg(ep, msg, flags);
}

/*
 * fi_atomic() of up to inject_size bytes of operands; buf is the caller's again on return and
 * success gives no CQ entry.  fi_atomic(3)
 */
WEFT_CALL ssize_t fi_inject_atomic(struct fid_ep *ep, const void *buf, size_t count,
				   fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				   enum fi_datatype datatype, enum fi_op op)
{
	return ep->atomic->inject(ep, buf, count, dest_addr, addr, key, datatype, op);
}

/* Update `count` elements and bring their old values into result.  fi_atomic(3) */
WEFT_CALL ssize_t fi_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				  void *result, void *result_desc, fi_addr_t dest_addr,
				  uint64_t addr, uint64_t key, enum fi_datatype datatype,
				  enum fi_op op, void *context)
{
	return ep->atomic->readwrite(ep, buf, count, desc, result, result_desc, dest_addr, addr,
				     key, datatype, op, context);
}

/* fi_fetch_atomic() between lists: counts are entries, elements are inside.  fi_atomic(3) */
WEFT_CALL ssize_t fi_fetch_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				   size_t count, struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				   uint64_t key, enum fi_datatype datatype, enum fi_op op,
				   void *context)
{
	return ep->atomic->readwritev(ep, iov, desc, count, resultv, result_desc, result_count,
				      dest_addr, addr, key, datatype, op, context);
}

/*
 * Fetch atomic with flags, as in fi_atomicmsg().  FI_INJECT frees the operands on return, never
 * the result buffers.  fi_atomic(3)
 */
WEFT_CALL ssize_t fi_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				     struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, uint64_t flags)
{
	return ep->atomic->readwritemsg(ep, msg, resultv, result_desc, result_count, flags);
}

/*
 * Compare `count` elements with compare and write buf where op holds; the old values come into
 * result either way, so the caller sees which ones were swapped.  fi_atomic(3)
 */
WEFT_CALL ssize_t fi_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				    const void *compare, void *compare_desc, void *result,
				    void *result_desc, fi_addr_t dest_addr, uint64_t addr,
				    uint64_t key, enum fi_datatype datatype, enum fi_op op,
				    void *context)
{
	return ep->atomic->compwrite(ep, buf, count, desc, compare, compare_desc, result,
				     result_desc, dest_addr, addr, key, datatype, op, context);
}

/* fi_compare_atomic() between lists: counts are entries, elements are inside.  fi_atomic(3) */
WEFT_CALL ssize_t fi_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				     size_t count, const struct fi_ioc *comparev,
				     void **compare_desc, size_t compare_count,
				     struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				     uint64_t key, enum fi_datatype datatype, enum fi_op op,
				     void *context)
{
	return ep->atomic->compwritev(ep, iov, desc, count, comparev, compare_desc, compare_count,
				      resultv, result_desc, result_count, dest_addr, addr, key,
				      datatype, op, context);
}

/* Compare atomic with flags, as in fi_atomicmsg().  fi_atomic(3) */
WEFT_CALL ssize_t fi_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				       const struct fi_ioc *comparev, void **compare_desc,
				       size_t compare_count, struct fi_ioc *resultv,
				       void **result_desc, size_t result_count, uint64_t flags)
{
	return ep->atomic->compwritemsg(ep, msg, comparev, compare_desc, compare_count, resultv,
					result_desc, result_count, flags);
}

/*
 * Does the base family take this operator on this datatype?  0 and *count = the most elements one
 * call may carry; else -FI_EOPNOTSUPP (or -FI_EINVAL for values out of range).  fi_atomic(3)
 */
WEFT_CALL int fi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	return ep->atomic->writevalid(ep, datatype, op, count);
}

/* fi_atomicvalid() for the fetch family.  fi_atomic(3) */
WEFT_CALL int fi_fetch_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				   size_t *count)
{
	return ep->atomic->readwritevalid(ep, datatype, op, count);
}

/* fi_atomicvalid() for the compare family.  fi_atomic(3) */
WEFT_CALL int fi_compare_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op,
				     size_t *count)
{
	return ep->atomic->compwritevalid(ep, datatype, op, count);
}

/*
 * The same question to the domain, before any endpoint: flags are 0, FI_FETCH_ATOMIC or
 * FI_COMPARE_ATOMIC, each also with FI_TAGGED.  Fills *attr and returns 0; -FI_EOPNOTSUPP when
 * not offered, -FI_EINVAL for both family flags, -FI_ENOSYS when the domain cannot answer.
 * fi_atomic(3)
 */
WEFT_CALL int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			      struct fi_atomic_attr *attr, uint64_t flags)
{
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, query_atomic))
		return -FI_ENOSYS;
	return domain->ops->query_atomic(domain, datatype, op, attr, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_ATOMIC_H */
