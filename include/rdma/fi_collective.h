/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives: operations that all members of a group take part in.  Man pages:
 * fi_collective(3), fi_av_set(3).
 *
 * Steps: fi_av_set() names the members in order; fi_join_collective() forms the group;
 * FI_JOIN_COMPLETE on the endpoint's event queue says that the group exists; fi_mc_addr() returns
 * the coll_addr that the calls below take; fi_close() on the fid_mc leaves the group.
 *
 * `count` is in elements of datatype and per member, as in MPI.  With n members a buffer holds
 *
 *			buf				result
 *  broadcast		count (root sends it, the others receive into it)	-
 *  alltoall		count * n			count * n
 *  allreduce		count				count
 *  allgather		count				count * n
 *  reduce_scatter	count * n			count
 *  reduce		count				count, at the root only
 *  scatter		count * n, at the root only	count
 *  gather		count				count * n, at the root only
 *
 * and slice i of a "count * n" buffer belongs to member i of the group, in the order of its AV
 * set.  A buffer that a member does not need may be NULL.
 *
 * Shared by every transfer below:
 *  - all members call the same collectives of a group in the same order, with equal count,
 *    datatype, op and root;
 *  - root_addr is the root's address in the endpoint's AV;
 *  - desc and result_desc are fi_mr_desc() of the regions under FI_MR_LOCAL, else NULL;
 *  - buffers belong to the library until the completion, which goes where the endpoint's
 *    transmit completions go, with flags FI_COLLECTIVE; buf is not written, except by broadcast;
 *    the counter bound for FI_WRITE counts collectives; without one, the counter for FI_SEND;
 *  - buffers that are combined must be aligned as their type requires, else -FI_EINVAL; input and
 *    result may be the same, or overlap;
 *  - flags: FI_COMPLETION, FI_MORE, FI_FENCE (begins when all earlier collectives of the group
 *    have ended), the completion levels; others are -FI_EBADFLAGS;
 *  - if a member dies, or closes its endpoint or the group while other members still need it, all
 *    collectives under way in the group end with an error on all members (-FI_ECONNABORTED: the
 *    member had left); later calls return that error.  Members whose own collectives have completed
 *    may close the group at any time, in any order, without effect on other members;
 *  - if a member receives part of another collective than the one it called (other count, datatype,
 *    op, root or kind), the group ends in the same way, with -FI_EINVAL or -FI_ETRUNC.  Different
 *    roots, or count 0 on some members, may go undetected: members may then wait forever, or each
 *    gets the data of its own root;
 *  - 0 means accepted.  -FI_EAGAIN: no room now, read the completion queue and try again.
 *    -FI_EOPNOTSUPP: not offered for this datatype or op.  -FI_EMSGSIZE: too many elements.
 */
#ifndef FI_COLLECTIVE_H
#define FI_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fid_av_set;

/* Table of an AV set; no member is NULL. */
struct fi_ops_av_set {
	size_t size;
	int (*set_union)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*intersect)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*diff)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*insert)(struct fid_av_set *set, fi_addr_t addr);
	int (*remove)(struct fid_av_set *set, fi_addr_t addr);
	int (*addr)(struct fid_av_set *set, fi_addr_t *coll_addr);
};

/* An ordered subset of the addresses of one AV; closed with fi_close(&set->fid). */
struct fid_av_set {
	struct fid fid;
	struct fi_ops_av_set *ops;
};

/* What fi_join_collective() hands to the cm table's join as its address. */
struct fi_collective_addr {
	const struct fid_av_set *set;
	fi_addr_t coll_addr;
};

/* Question and answer of fi_query_collective(). */
struct fi_collective_attr {
	enum fi_op op;				/* in: operator; FI_NOOP where none applies */
	enum fi_datatype datatype;		/* in: FI_VOID for a barrier */
	struct fi_atomic_attr datatype_attr;	/* out: most elements, bytes of one */
	size_t max_members;			/* out */
	uint64_t mode;				/* reserved, 0 */
};

/* One collective in general form, as the table's msg member takes it. */
struct fi_msg_collective {
	const struct fi_ioc *msg_iov;	/* what the calls name buf */
	void **desc;
	size_t iov_count;
	fi_addr_t coll_addr;
	fi_addr_t root_addr;		/* FI_ADDR_UNSPEC for collectives without a root */
	enum fi_collective_op coll;
	enum fi_datatype datatype;
	enum fi_op op;
	void *context;
};

/* The endpoint's table; no member but the last may be NULL. */
struct fi_ops_collective {
	size_t size;
	ssize_t (*barrier)(struct fid_ep *ep, fi_addr_t coll_addr, void *context);
	ssize_t (*broadcast)(struct fid_ep *ep, void *buf, size_t count, void *desc,
			     fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
			     uint64_t flags, void *context);
	ssize_t (*alltoall)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    void *result, void *result_desc, fi_addr_t coll_addr,
			    enum fi_datatype datatype, uint64_t flags, void *context);
	ssize_t (*allreduce)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     void *result, void *result_desc, fi_addr_t coll_addr,
			     enum fi_datatype datatype, enum fi_op op, uint64_t flags,
			     void *context);
	ssize_t (*allgather)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     void *result, void *result_desc, fi_addr_t coll_addr,
			     enum fi_datatype datatype, uint64_t flags, void *context);
	ssize_t (*reduce_scatter)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				  void *result, void *result_desc, fi_addr_t coll_addr,
				  enum fi_datatype datatype, enum fi_op op, uint64_t flags,
				  void *context);
	ssize_t (*reduce)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			  void *result, void *result_desc, fi_addr_t coll_addr,
			  fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,
			  uint64_t flags, void *context);
	ssize_t (*scatter)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			   void *result, void *result_desc, fi_addr_t coll_addr,
			   fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
			   void *context);
	ssize_t (*gather)(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			  void *result, void *result_desc, fi_addr_t coll_addr,
			  fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
			  void *context);
	ssize_t (*msg)(struct fid_ep *ep, const struct fi_msg_collective *msg,
		       struct fi_ioc *resultv, void **result_desc, size_t result_count,
		       uint64_t flags);
	ssize_t (*barrier2)(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags, void *context);
};

/*
 * Create a set over av.  attr (struct fi_av_set_attr, the caller's, read during the call) gives
 * the first members: none, start_addr to end_addr by stride (FI_AV_TABLE), or all with
 * FI_UNIVERSE; FI_*_SET flags narrow the collectives wanted.  Local, nothing is sent.
 * -FI_EINVAL for a range outside the AV, -FI_ENOSYS when the AV has no sets.  fi_av_set(3)
 */
WEFT_CALL int
fi_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, av_set))
		return -FI_ENOSYS;
	return av->ops->av_set(av, attr, set, context);
}

/* Append to dst the members of src it lacks, in their order.  Both of one AV.  fi_av_set(3) */
WEFT_CALL int
fi_av_set_union(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->set_union(dst, src);
}

/* Keep in dst only members of src; the order of dst stays.  fi_av_set(3) */
WEFT_CALL int
fi_av_set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->intersect(dst, src);
}

/* Remove from dst the members of src; the order of dst stays.  fi_av_set(3) */
WEFT_CALL int
fi_av_set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->diff(dst, src);
}

/* Append one address of the AV; -FI_EINVAL when it is unknown or already in.  fi_av_set(3) */
WEFT_CALL int
fi_av_set_insert(struct fid_av_set *set, fi_addr_t addr)
{
	return set->ops->insert(set, addr);
}

/* Remove one address, the others keep their order; -FI_EINVAL when it is not in.  fi_av_set(3) */
WEFT_CALL int
fi_av_set_remove(struct fid_av_set *set, fi_addr_t addr)
{
	return set->ops->remove(set, addr);
}

/*
 * Return the address that names the set's members, for fi_join_collective(), in *coll_addr.
 * fi_av_set(3)
 */
WEFT_CALL int
fi_av_set_addr(struct fid_av_set *set, fi_addr_t *coll_addr)
{
	return set->ops->addr(set, coll_addr);
}

/*
 * Join the group of set.  The join is itself collective: it ends when all members have called it.
 * coll_addr: from fi_av_set_addr(); or fi_mc_addr() of an earlier group, to make a subgroup of it;
 * or FI_ADDR_NOTAVAIL: the application has set the group up itself, and the join waits for no
 * member.  The n-th such join of the same members and comm_key on one endpoint then means the same
 * group as the n-th on the others; each comm_key has a count of its own, and a new endpoint counts
 * from the start.
 * Asynchronous: *mc is valid on return 0, usable after FI_JOIN_COMPLETE on the event queue bound to
 * ep, and closed by the caller with fi_close().  The set may be changed or closed after the call.
 * flags: FI_SEND alone makes a member that only sends data (the root of a broadcast or a scatter,
 * the others in a reduce or a gather), FI_RECV alone one that only receives data; it may also call
 * barriers; other calls return -FI_EACCES.  0 or both flags: all that the endpoint supports.
 * Members that wait for each other in different groups get an error event after
 * FI_WEFT_JOIN_TIMEOUT.  -FI_ENOSYS: the endpoint has no FI_COLLECTIVE (all RDM endpoints but
 * scalable ones can have it); -FI_ENOEQ: no event queue is bound; -FI_EALREADY: the endpoint has
 * joined that set already; -FI_EINVAL: the endpoint is not a member of the set, or the set is not
 * a part of coll_addr.  fi_collective(3)
 */
WEFT_CALL int
fi_join_collective(struct fid_ep *ep, fi_addr_t coll_addr, const struct fid_av_set *set,
		   uint64_t flags, struct fid_mc **mc, void *context)
{
	struct fi_collective_addr addr;

	addr.set = set;
	addr.coll_addr = coll_addr;
	return fi_join(ep, &addr, flags | FI_COLLECTIVE, mc, context);
}

/* Complete once all members have called it.  fi_collective(3) */
WEFT_CALL ssize_t
fi_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	return ep->collective->barrier(ep, coll_addr, context);
}

/* fi_barrier() with flags; -FI_ENOSYS: the endpoint supports no flags.  fi_collective(3) */
WEFT_CALL ssize_t
fi_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags, void *context)
{
	if (!flags)
		return fi_barrier(ep, coll_addr, context);
	if (!FI_CHECK_OP(ep->collective, struct fi_ops_collective, barrier2))
		return -FI_ENOSYS;
	return ep->collective->barrier2(ep, coll_addr, flags, context);
}

/* Copy the root's buf, `count` elements, to the buf of all members.  fi_collective(3) */
WEFT_CALL ssize_t
fi_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t coll_addr,
	     fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context)
{
	return ep->collective->broadcast(ep, buf, count, desc, coll_addr, root_addr, datatype,
					 flags, context);
}

/*
 * Slice j of buf goes to member j, where it becomes slice i of result when i is the sender; buf
 * and result hold count * members elements.  fi_collective(3)
 */
WEFT_CALL ssize_t
fi_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	    void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,
	    void *context)
{
	return ep->collective->alltoall(ep, buf, count, desc, result, result_desc, coll_addr,
					datatype, flags, context);
}

/* Combine everyone's buf element by element with op; all get the result.  fi_collective(3) */
WEFT_CALL ssize_t
fi_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	     void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op,
	     uint64_t flags, void *context)
{
	return ep->collective->allreduce(ep, buf, count, desc, result, result_desc, coll_addr,
					 datatype, op, flags, context);
}

/*
 * Everyone's buf of count elements, one after the other in member order, to all; result holds
 * count * members elements.  fi_collective(3)
 */
WEFT_CALL ssize_t
fi_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	     void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,
	     void *context)
{
	return ep->collective->allgather(ep, buf, count, desc, result, result_desc, coll_addr,
					 datatype, flags, context);
}

/*
 * Combine everyone's buf of count * members elements with op; member i gets slice i of it, count
 * elements.  fi_collective(3)
 */
WEFT_CALL ssize_t
fi_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
		  void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype,
		  enum fi_op op, uint64_t flags, void *context)
{
	return ep->collective->reduce_scatter(ep, buf, count, desc, result, result_desc,
					      coll_addr, datatype, op, flags, context);
}

/* fi_allreduce() whose result only the root gets.  fi_collective(3) */
WEFT_CALL ssize_t
fi_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	  void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
	  enum fi_op op, uint64_t flags, void *context)
{
	return ep->collective->reduce(ep, buf, count, desc, result, result_desc, coll_addr,
				      root_addr, datatype, op, flags, context);
}

/*
 * Slice i of the root's buf (count * members elements there) becomes the result of member i,
 * count elements.  fi_collective(3)
 */
WEFT_CALL ssize_t
fi_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	   void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
	   uint64_t flags, void *context)
{
	return ep->collective->scatter(ep, buf, count, desc, result, result_desc, coll_addr,
				       root_addr, datatype, flags, context);
}

/* fi_allgather() whose result only the root gets, count * members elements.  fi_collective(3) */
WEFT_CALL ssize_t
fi_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
	  void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
	  uint64_t flags, void *context)
{
	return ep->collective->gather(ep, buf, count, desc, result, result_desc, coll_addr,
				      root_addr, datatype, flags, context);
}

/*
 * Is coll offered with attr->op and attr->datatype?  0 and the out members of *attr, else
 * -FI_EOPNOTSUPP; -FI_ENOSYS when the domain cannot answer.  flags: 0, or FI_SCATTER to ask about
 * the scattering form of FI_REDUCE.  fi_collective(3)
 */
WEFT_CALL int
fi_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
		    struct fi_collective_attr *attr, uint64_t flags)
{
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, query_collective))
		return -FI_ENOSYS;
	return domain->ops->query_collective(domain, coll, attr, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_COLLECTIVE_H */
