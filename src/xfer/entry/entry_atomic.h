/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of the atomic table; included after entry_rma.h, ENTRY_ATOMIC is its name. */

static ssize_t post_atomic(struct ep *ep, const struct rma_atomic_msg *m, uint64_t flags)
{
	struct rma_store store;
	struct rma o;
	int err = rma_from_atomic(&o, &store, m, flags);

	return err ? err : post_rma(ep, &o);
}

/* The elements of all lists are meant for one range. */
static size_t elements(const struct fi_ioc *ioc, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count && ioc; i++)
		sum += ioc[i].count;
	return sum;
}

/* What travels and comes back, where there is one buffer of each. */
struct plain {
	const void *operand, *compare;
	void *result;
	size_t count;
	enum fi_datatype type;
	enum fi_op op;
};

static inline ssize_t post_plain_atomic(struct ep *ep, struct rma o, const struct plain *p,
					uint64_t addr, uint64_t key)
{
	struct iovec operand = {.iov_base = (void *)(uintptr_t)p->operand},
		     compare = {.iov_base = (void *)(uintptr_t)p->compare},
		     result = {.iov_base = p->result};
	struct fi_rma_iov remote = {.addr = addr, .key = key};
	int err;

	o.iov = &operand;
	o.compare = &compare;
	o.result = &result;
	o.remote = &remote;
	err = rma_from_plain(&o, p->type, p->op, p->count);
	if (err)
		return err;
	operand.iov_len = compare.iov_len = result.iov_len = remote.len = o.len;
	return post_rma(ep, &o);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest_addr,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	return post_plain_atomic(
		ep_of(fid),
		(struct rma){.flags = FI_INJECT, .addr = dest_addr, .amo.form = ATOMIC_BASE},
		&(struct plain){.operand = buf, .count = count, .type = datatype, .op = op}, addr,
		key);
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			    fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return post_plain_atomic(
		ep,
		(struct rma){.flags = ep->tx_flags,
			     .addr = dest_addr,
			     .context = context,
			     .amo.form = ATOMIC_BASE},
		&(struct plain){.operand = buf, .count = count, .type = datatype, .op = op}, addr,
		key);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr,
				uint64_t key, enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc, (void)result_desc;

	return post_plain_atomic(ep,
				 (struct rma){.flags = ep->tx_flags,
					      .addr = dest_addr,
					      .context = context,
					      .amo.form = ATOMIC_FETCH},
				 &(struct plain){.operand = buf,
						 .result = result,
						 .count = count,
						 .type = datatype,
						 .op = op},
				 addr, key);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc, (void)compare_desc, (void)result_desc;

	return post_plain_atomic(ep,
				 (struct rma){.flags = ep->tx_flags,
					      .addr = dest_addr,
					      .context = context,
					      .amo.form = ATOMIC_COMPARE},
				 &(struct plain){.operand = buf,
						 .compare = compare,
						 .result = result,
						 .count = count,
						 .type = datatype,
						 .op = op},
				 addr, key);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_ioc remote = {.addr = addr, .count = elements(iov, count), .key = key};
	struct fi_msg_atomic msg = {.msg_iov = iov,
				    .iov_count = count,
				    .addr = dest_addr,
				    .rma_iov = &remote,
				    .rma_iov_count = 1,
				    .datatype = datatype,
				    .op = op,
				    .context = context};
	(void)desc;

	return post_atomic(ep, &(struct rma_atomic_msg){.form = ATOMIC_BASE, .msg = &msg},
			   ep->tx_flags);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	return post_atomic(ep, &(struct rma_atomic_msg){.form = ATOMIC_BASE, .msg = msg},
			   flags | ep->tx_msg_flags);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_ioc remote = {
		.addr = addr, .count = elements(resultv, result_count), .key = key};
	struct fi_msg_atomic msg = {.msg_iov = iov,
				    .iov_count = count,
				    .addr = dest_addr,
				    .rma_iov = &remote,
				    .rma_iov_count = 1,
				    .datatype = datatype,
				    .op = op,
				    .context = context};
	(void)desc, (void)result_desc;

	return post_atomic(ep,
			   &(struct rma_atomic_msg){.form = ATOMIC_FETCH,
						    .msg = &msg,
						    .result = resultv,
						    .result_count = result_count},
			   ep->tx_flags);
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc, size_t result_count,
				   uint64_t flags)
{
	struct ep *ep = ep_of(fid);
	(void)result_desc;

	return post_atomic(ep,
			   &(struct rma_atomic_msg){.form = ATOMIC_FETCH,
						    .msg = msg,
						    .result = resultv,
						    .result_count = result_count},
			   flags | ep->tx_msg_flags);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_ioc remote = {
		.addr = addr, .count = elements(resultv, result_count), .key = key};
	struct fi_msg_atomic msg = {.msg_iov = iov,
				    .iov_count = count,
				    .addr = dest_addr,
				    .rma_iov = &remote,
				    .rma_iov_count = 1,
				    .datatype = datatype,
				    .op = op,
				    .context = context};
	(void)desc, (void)compare_desc, (void)result_desc;

	return post_atomic(ep,
			   &(struct rma_atomic_msg){.form = ATOMIC_COMPARE,
						    .msg = &msg,
						    .compare = comparev,
						    .compare_count = compare_count,
						    .result = resultv,
						    .result_count = result_count},
			   ep->tx_flags);
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct ep *ep = ep_of(fid);
	(void)compare_desc, (void)result_desc;

	return post_atomic(ep,
			   &(struct rma_atomic_msg){.form = ATOMIC_COMPARE,
						    .msg = msg,
						    .compare = comparev,
						    .compare_count = compare_count,
						    .result = resultv,
						    .result_count = result_count},
			   flags | ep->tx_msg_flags);
}

static int atomic_writevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	(void)fid;
	return rma_atomic_valid(ATOMIC_BASE, datatype, op, count);
}

static int atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return rma_atomic_valid(ATOMIC_FETCH, datatype, op, count);
}

static int atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return rma_atomic_valid(ATOMIC_COMPARE, datatype, op, count);
}

const struct fi_ops_atomic ENTRY_ATOMIC = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};
