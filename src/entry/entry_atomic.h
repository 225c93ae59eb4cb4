/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template: the entries of an atomic table, fi_atomic(3). The including file is the implementation.
 * It includes entry/args.h and core/ep.h, and defines before:
 *   ENTRY_FETCH_FLAGS(ep)         the default flags of an atomic with a result
 *   ENTRY_MSG_FLAGS(ep, flags)    the flags of a ...msg call
 *   atomic_one(ep, struct entry_atomic)               posts an atomic on one buffer of each kind
 *   atomic_lists(ep, entry_atomic_msg, flags)         posts one on lists
 *   atomic_valid(form, datatype, op, count)           the answer of fi_*atomicvalid
 */

/* Posts an atomic on lists and the one range of `m`, which gets as many elements as they have. */
static ssize_t atomic_vector(struct ep *ep, const struct entry_atomic_msg *m,
			     struct fi_rma_ioc *range, uint64_t flags)
{
	bool fetches = m->form != ATOMIC_BASE;
	int err = IOV_ADD_UP(fetches ? m->result : m->msg->msg_iov, count,
			     fetches ? m->result_count : m->msg->iov_count, WIRE_IOV_MAX,
			     &range->count);

	return err ? err : atomic_lists(ep, m, flags);
}

/* What a call on one buffer of each kind has, whatever its form. */
#define ATOMIC_ONE                                                                                 \
	.type = datatype, .op = op, .operand = buf, .count = count, .addr = dest_addr,             \
	.remote = addr, .key = key

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest_addr,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	return atomic_one(ep_of(fid), (struct entry_atomic){
					      .form = ATOMIC_BASE, ATOMIC_ONE, .flags = FI_INJECT});
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			    fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return atomic_one(ep, (struct entry_atomic){.form = ATOMIC_BASE,
						    ATOMIC_ONE,
						    .flags = ep->tx_flags,
						    .context = context});
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr,
				uint64_t key, enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return atomic_one(ep, (struct entry_atomic){.form = ATOMIC_FETCH,
						    ATOMIC_ONE,
						    .result = result,
						    .result_desc = result_desc,
						    .flags = ENTRY_FETCH_FLAGS(ep),
						    .context = context});
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc, (void)compare_desc;

	return atomic_one(ep, (struct entry_atomic){.form = ATOMIC_COMPARE,
						    ATOMIC_ONE,
						    .compare = compare,
						    .result = result,
						    .result_desc = result_desc,
						    .flags = ENTRY_FETCH_FLAGS(ep),
						    .context = context});
}

/* The message of a ...v call: its lists, and one remote range. */
#define ATOMIC_MSG                                                                                 \
	&(struct fi_msg_atomic)                                                                    \
	{                                                                                          \
		.msg_iov = iov, .iov_count = count, .addr = dest_addr, .rma_iov = &range,          \
		.rma_iov_count = 1, .datatype = datatype, .op = op, .context = context             \
	}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_rma_ioc range = {.addr = addr, .key = key};
	struct ep *ep = ep_of(fid);
	(void)desc;

	return atomic_vector(ep, &(struct entry_atomic_msg){.form = ATOMIC_BASE, .msg = ATOMIC_MSG},
			     &range, ep->tx_flags);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_atomicmsg", msg))
		return -FI_EINVAL;
	return atomic_lists(ep, &(struct entry_atomic_msg){.form = ATOMIC_BASE, .msg = msg},
			    ENTRY_MSG_FLAGS(ep, flags));
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct fi_rma_ioc range = {.addr = addr, .key = key};
	struct ep *ep = ep_of(fid);
	(void)desc;

	return atomic_vector(ep,
			     &(struct entry_atomic_msg){.form = ATOMIC_FETCH,
							.msg = ATOMIC_MSG,
							.result = resultv,
							.result_desc = result_desc,
							.result_count = result_count},
			     &range, ENTRY_FETCH_FLAGS(ep));
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc, size_t result_count,
				   uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_fetch_atomicmsg", msg))
		return -FI_EINVAL;
	return atomic_lists(ep,
			    &(struct entry_atomic_msg){.form = ATOMIC_FETCH,
						       .msg = msg,
						       .result = resultv,
						       .result_desc = result_desc,
						       .result_count = result_count},
			    ENTRY_MSG_FLAGS(ep, flags));
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct fi_rma_ioc range = {.addr = addr, .key = key};
	struct ep *ep = ep_of(fid);
	(void)desc, (void)compare_desc;

	return atomic_vector(ep,
			     &(struct entry_atomic_msg){ATOMIC_COMPARE, ATOMIC_MSG, resultv,
							result_desc, result_count, comparev,
							compare_count},
			     &range, ENTRY_FETCH_FLAGS(ep));
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct ep *ep = ep_of(fid);
	(void)compare_desc;

	if (MISUSED_MSG("fi_compare_atomicmsg", msg))
		return -FI_EINVAL;
	return atomic_lists(ep,
			    &(struct entry_atomic_msg){ATOMIC_COMPARE, msg, resultv, result_desc,
						       result_count, comparev, compare_count},
			    ENTRY_MSG_FLAGS(ep, flags));
}

static int atomic_writevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	(void)fid;
	return atomic_valid(ATOMIC_BASE, datatype, op, count);
}

static int atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return atomic_valid(ATOMIC_FETCH, datatype, op, count);
}

static int atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return atomic_valid(ATOMIC_COMPARE, datatype, op, count);
}
