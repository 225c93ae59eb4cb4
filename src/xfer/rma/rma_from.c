/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the arguments of one-sided calls and converts them to struct rma. */
#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "base/log.h"
#include "xfer/rma/rma.h"
#include "xfer/engine.h"

/* Flags that mean nothing to a read; FI_TAGGED: nor to a write, an atomic goes by it. */
#define NOT_READ (FI_TAGGED | FI_REMOTE_CQ_DATA | FI_INJECT | FI_COMMIT_COMPLETE)

int rma_from_rma(struct rma *o, const struct fi_msg_rma *msg, uint64_t flags, bool write)
{
	size_t local;
	int err = IOV_ADD_UP(msg->msg_iov, iov_len, msg->iov_count, WIRE_IOV_MAX, &local);

	if (!err)
		err = IOV_ADD_UP(msg->rma_iov, len, msg->rma_iov_count, WIRE_IOV_MAX, &o->len);
	if (err)
		return err;
	if (MISUSED_LIST("read or write", msg->msg_iov, msg->iov_count))
		return -FI_EINVAL;
	if (!msg->rma_iov_count || local != o->len)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
				  "%s: %zu bytes in %zu local, %zu in %zu remote ranges",
				  write ? "write" : "read", local, msg->iov_count, o->len,
				  msg->rma_iov_count);
	*o = (struct rma){
		.wire = write ? WIRE_PUT : WIRE_GET,
		.kind = FI_RMA | (write ? FI_WRITE : FI_READ),
		.flags = flags & ~(write ? FI_TAGGED : NOT_READ),
		.addr = msg->addr,
		.context = msg->context,
		.data = msg->data,
		.len = local,
		.iov = write ? msg->msg_iov : NULL,
		.count = write ? msg->iov_count : 0,
		.result = write ? NULL : msg->msg_iov,
		.result_count = write ? 0 : msg->iov_count,
		.remote = msg->rma_iov,
		.remote_count = msg->rma_iov_count,
	};
	return 0;
}

int rma_atomic_valid(enum atomic_form form, enum fi_datatype type, enum fi_op op, size_t *count)
{
	size_t size = atomic_size(type);

	if (!size || (unsigned int)op > FI_DIFF)
		return -FI_EINVAL;
	if (!atomic_find(form, op, type))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = WIRE_AMO_MAX / size;
	return 0;
}

int xfer_atomic_valid(enum atomic_form form, enum fi_datatype type, enum fi_op op,
		      struct fi_atomic_attr *attr)
{
	int err = rma_atomic_valid(form, type, op, &attr->count);

	if (!err)
		attr->size = atomic_size(type);
	return err;
}

static __attribute__((noinline, cold)) int rma_from_too_many(size_t elements, size_t size)
{
	return LOG_REFUSE(-FI_EMSGSIZE, LOG_EP_DATA,
			  "atomic: %zu elements of %zu bytes; at most %zu are possible", elements,
			  size, WIRE_AMO_MAX / size);
}

int rma_from_plain(struct rma *o, enum fi_datatype type, enum fi_op op, size_t count)
{
	enum atomic_form form = o->amo.form;
	int err = rma_atomic_valid(form, type, op, NULL);

	if (err)
		return err;
	o->count = op != FI_ATOMIC_READ;
	o->compare_count = form == ATOMIC_COMPARE;
	o->result_count = form != ATOMIC_BASE;
	o->remote_count = 1;
	if (!count || (o->count && !o->iov->iov_base) ||
	    (o->compare_count && !o->compare->iov_base) ||
	    (o->result_count && !o->result->iov_base))
		return -FI_EINVAL;
	/* The first test prevents an overflow in the second. */
	if (count > WIRE_AMO_MAX || count * atomic_size(type) > WIRE_AMO_MAX)
		return rma_from_too_many(count, atomic_size(type));
	o->wire = WIRE_AMO;
	o->kind = FI_ATOMIC | (form == ATOMIC_BASE ? FI_WRITE : FI_READ);
	o->len = count * atomic_size(type);
	o->amo.op = (uint8_t)op;
	o->amo.type = (uint8_t)type;
	o->amo.len = (uint32_t)o->len;
	return 0;
}

/* Converts element counts to bytes. 0, -FI_EINVAL or -FI_EMSGSIZE. */
static int to_bytes(struct iovec *iov, const struct fi_ioc *ioc, size_t count, size_t size)
{
	if (count > WIRE_IOV_MAX || (count && !ioc))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (ioc[i].count && !ioc[i].addr)
			return -FI_EINVAL;
		if (ioc[i].count > WIRE_AMO_MAX / size)
			return rma_from_too_many(ioc[i].count, size);
		iov[i] = (struct iovec){ioc[i].addr, ioc[i].count * size};
	}
	return 0;
}

static int remote_to_bytes(struct fi_rma_iov *to, const struct fi_msg_atomic *msg, size_t size)
{
	if (!msg->rma_iov_count || msg->rma_iov_count > WIRE_IOV_MAX || !msg->rma_iov)
		return -FI_EINVAL;
	for (size_t i = 0; i < msg->rma_iov_count; i++) {
		const struct fi_rma_ioc *from = &msg->rma_iov[i];

		if (from->count > WIRE_AMO_MAX / size)
			return rma_from_too_many(from->count, size);
		to[i] = (struct fi_rma_iov){
			.addr = from->addr, .len = from->count * size, .key = from->key};
	}
	return 0;
}

/*
 * Do operands, compare values and results each cover all elements, where they are needed, and have the ranges one key
 * where that is a tag? Each entry has at most WIRE_AMO_MAX bytes.
 */
static bool lists_agree(struct rma *o, const struct entry_atomic_msg *m)
{
	size_t operand = iov_bytes(o->iov, o->count),
	       compare = iov_bytes(o->compare, o->compare_count),
	       result = iov_bytes(o->result, o->result_count);

	o->len = 0;
	for (size_t i = 0; i < o->remote_count; i++) {
		if (o->flags & FI_TAGGED && o->remote[i].key != o->remote[0].key)
			return false;
		o->len += o->remote[i].len;
	}
	if (!o->len)
		return false;
	if (o->amo.op != FI_ATOMIC_READ && operand != o->len)
		return false;
	if (m->form == ATOMIC_COMPARE && compare != o->len)
		return false;
	return m->form == ATOMIC_BASE || result == o->len;
}

int rma_from_atomic(struct rma *o, struct rma_store *store, const struct entry_atomic_msg *m,
		    uint64_t flags)
{
	const struct fi_msg_atomic *msg = m->msg;
	size_t size = atomic_size(msg->datatype);
	bool reads = msg->op == FI_ATOMIC_READ;
	int err = rma_atomic_valid(m->form, msg->datatype, msg->op, NULL);

	if (!err && !reads)
		err = to_bytes(store->iov, msg->msg_iov, msg->iov_count, size);
	if (!err && m->form == ATOMIC_COMPARE)
		err = to_bytes(store->compare, m->compare, m->compare_count, size);
	if (!err && m->form != ATOMIC_BASE)
		err = to_bytes(store->result, m->result, m->result_count, size);
	if (!err)
		err = remote_to_bytes(store->remote, msg, size);
	if (err)
		return err;
	*o = (struct rma){
		.wire = WIRE_AMO,
		.kind = FI_ATOMIC | (m->form == ATOMIC_BASE ? FI_WRITE : FI_READ),
		.flags = flags,
		.addr = msg->addr,
		.context = msg->context,
		.data = msg->data,
		.iov = store->iov,
		.count = reads ? 0 : msg->iov_count,
		.compare = store->compare,
		.compare_count = m->form == ATOMIC_COMPARE ? m->compare_count : 0,
		.result = store->result,
		.result_count = m->form == ATOMIC_BASE ? 0 : m->result_count,
		.remote = store->remote,
		.remote_count = msg->rma_iov_count,
		.amo = {.op = (uint8_t)msg->op,
			.type = (uint8_t)msg->datatype,
			.form = (uint8_t)m->form},
	};
	if (!lists_agree(o, m))
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_DATA,
			"atomic: %zu operands, %zu results and %zu remote ranges do not agree in elements or keys",
			msg->iov_count, o->result_count, o->remote_count);
	if (o->len > WIRE_AMO_MAX)
		return rma_from_too_many(o->len / size, size);
	o->amo.len = (uint32_t)o->len;
	return 0;
}
