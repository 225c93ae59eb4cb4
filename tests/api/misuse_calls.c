/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_msg(3), fi_tagged(3), fi_rma(3) and fi_atomic(3) forbid. */
#include "obj.h"
#include "lib/rig.h"
#include "lib/misuse.h"

#define SELF(b) ((b)->r.self)
#define BASE(b) ((b)->r.base)
#define KEY(b)  ((b)->r.key)
#define ODD     (UINT64_C(1) << 62) /* a flag of no meaning */

/* ---- Messages: nothing, of some length ---- */

MISUSE(send_nothing, CHECKED(-FI_EINVAL), fi_send(EP(b), NULL, 8, NULL, SELF(b), b));
MISUSE(send_long_nothing, CHECKED(-FI_EINVAL), fi_send(EP(b), NULL, 1 << 20, NULL, SELF(b), b));
MISUSE(inject_nothing, CHECKED(-FI_EINVAL), fi_inject(EP(b), NULL, 8, SELF(b)));
MISUSE(senddata_nothing, CHECKED(-FI_EINVAL), fi_senddata(EP(b), NULL, 8, NULL, 1, SELF(b), b));
MISUSE(tsend_nothing, CHECKED(-FI_EINVAL), fi_tsend(EP(b), NULL, 8, NULL, SELF(b), 1, b));
MISUSE(tinject_nothing, CHECKED(-FI_EINVAL), fi_tinject(EP(b), NULL, 8, SELF(b), 1));
MISUSE(sendv_nothing, CHECKED(-FI_EINVAL),
       fi_sendv(EP(b), (struct iovec[]){{NULL, 8}, {b->bytes, 8}}, NULL, 2, SELF(b), b));
MISUSE(recv_nowhere, CHECKED(-FI_EINVAL), fi_recv(EP(b), NULL, 8, NULL, FI_ADDR_UNSPEC, b));
MISUSE(trecv_nowhere, CHECKED(-FI_EINVAL), fi_trecv(EP(b), NULL, 8, NULL, FI_ADDR_UNSPEC, 1, 0, b));
MISUSE(recvv_nowhere, CHECKED(-FI_EINVAL),
       fi_recvv(EP(b), (struct iovec[]){{NULL, 8}, {b->bytes, 8}}, NULL, 2, FI_ADDR_UNSPEC, b));
MISUSE(sendmsg_no_message, CHECKED(-FI_EINVAL), fi_sendmsg(EP(b), NULL, 0));
MISUSE(recvmsg_no_message, CHECKED(-FI_EINVAL), fi_recvmsg(EP(b), NULL, 0));
MISUSE(tsendmsg_no_message, CHECKED(-FI_EINVAL), fi_tsendmsg(EP(b), NULL, 0));
MISUSE(trecvmsg_no_message, CHECKED(-FI_EINVAL), fi_trecvmsg(EP(b), NULL, 0));

/* ---- Messages: lists, addresses, flags ---- */

MISUSE(sendv_no_list, -FI_EINVAL, fi_sendv(EP(b), NULL, NULL, 1, SELF(b), b));
MISUSE(sendv_long_list, -FI_EINVAL,
       fi_sendv(EP(b), (struct iovec *)(void *)b->r.words, NULL, SIZE_MAX, SELF(b), b));
MISUSE(recvv_no_list, -FI_EINVAL, fi_recvv(EP(b), NULL, NULL, 1, FI_ADDR_UNSPEC, b));
MISUSE(trecvv_long_list, -FI_EINVAL,
       fi_trecvv(EP(b), (struct iovec *)(void *)b->r.words, NULL, SIZE_MAX, FI_ADDR_UNSPEC, 0, 0,
		 b));
MISUSE(send_unknown, -FI_EINVAL, fi_send(EP(b), b->bytes, 8, NULL, 12345, b));
MISUSE(send_unspec, -FI_EINVAL, fi_send(EP(b), b->bytes, 8, NULL, FI_ADDR_UNSPEC, b));
MISUSE(inject_long, -FI_EMSGSIZE, fi_inject(EP(b), b->bytes, SIZE_MAX, SELF(b)));
MISUSE(tinject_long, -FI_EMSGSIZE, fi_tinject(EP(b), b->bytes, SIZE_MAX, SELF(b), 1));

static ssize_t receive(struct bench *b, uint64_t flags, void *context)
{
	struct iovec iov = {b->bytes, sizeof(b->bytes)};
	struct fi_msg_tagged m = {.msg_iov = &iov,
				  .iov_count = 1,
				  .addr = FI_ADDR_UNSPEC,
				  .tag = 5,
				  .context = context};
	ssize_t ret = fi_trecvmsg(EP(b), &m, flags);

	if (!ret)
		fi_cancel(&EP(b)->fid, context);
	return ret;
}

MISUSE(peek_no_context, ANY, receive(b, FI_PEEK, NULL));
MISUSE(peek_claim_no_context, REFUSED, receive(b, FI_PEEK | FI_CLAIM, NULL));
MISUSE(claim_nothing, REFUSED, receive(b, FI_CLAIM, NULL));
MISUSE(claim_unclaimed, REFUSED, receive(b, FI_CLAIM, &(struct fi_context2){{0}}));
MISUSE(discard_nothing, REFUSED, receive(b, FI_CLAIM | FI_DISCARD, NULL));
MISUSE(discard_alone, ANY, receive(b, FI_DISCARD, &(struct fi_context2){{0}}));
MISUSE(receive_odd_flag, ANY, receive(b, ODD, b->bytes));

static ssize_t peek_found(struct bench *b, uint64_t flags)
{
	ssize_t ret;

	POST(b->r.o.cq, fi_tinject(EP(b), "xxxxxxx", 8, SELF(b), 5));
	for (int i = 0; i < 1000; i++)
		rig_progress(&b->r);
	ret = receive(b, flags, NULL);
	return ret;
}

MISUSE(peek_found_no_context, ANY, peek_found(b, FI_PEEK));
MISUSE(claim_found_no_context, REFUSED, peek_found(b, FI_PEEK | FI_CLAIM));

static ssize_t claim_twice(struct bench *b)
{
	struct fi_context2 context;
	struct fi_cq_tagged_entry e;
	struct iovec iov = {b->bytes, 8};
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = SELF(b), .tag = 5, .context = &context};
	ssize_t ret;

	POST(b->r.o.cq, fi_tinject(EP(b), "xxxxxxx", 8, SELF(b), 5));
	do {
		fi_cq_readerr(b->r.o.cq, &(struct fi_cq_err_entry){0}, 0);
		OK(fi_trecvmsg(EP(b), &m, FI_PEEK | FI_CLAIM));
		OBJ_UNTIL((ret = fi_cq_read(b->r.o.cq, &e, 1)) != -FI_EAGAIN, );
	} while (ret != 1);
	OK(fi_trecvmsg(EP(b), &m, FI_CLAIM));
	return fi_trecvmsg(EP(b), &m, FI_CLAIM);
}

MISUSE(claimed_twice, -FI_EINVAL, claim_twice(b));

static ssize_t send_flagged(struct bench *b, uint64_t flags)
{
	struct iovec iov = {b->bytes, 8};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = SELF(b)};
	ssize_t ret;

	OK(fi_recv(EP(b), b->bytes, 8, NULL, FI_ADDR_UNSPEC, b));
	while ((ret = fi_sendmsg(EP(b), &m, flags)) == -FI_EAGAIN)
		rig_progress(&b->r);
	return ret;
}

MISUSE(send_odd_flag, ANY, send_flagged(b, ODD));
MISUSE(send_multicast, ANY, send_flagged(b, FI_MULTICAST));

/* ---- One-sided ---- */

MISUSE(write_nothing, CHECKED(-FI_EINVAL),
       fi_write(EP(b), NULL, 8, NULL, SELF(b), BASE(b), KEY(b), b));
MISUSE(read_nowhere, CHECKED(-FI_EINVAL),
       fi_read(EP(b), NULL, 8, NULL, SELF(b), BASE(b), KEY(b), b));
MISUSE(inject_write_nothing, CHECKED(-FI_EINVAL),
       fi_inject_write(EP(b), NULL, 8, SELF(b), BASE(b), KEY(b)));
MISUSE(writev_nothing, CHECKED(-FI_EINVAL),
       fi_writev(EP(b), (struct iovec[]){{NULL, 8}}, NULL, 1, SELF(b), BASE(b), KEY(b), b));
MISUSE(writemsg_no_message, CHECKED(-FI_EINVAL), fi_writemsg(EP(b), NULL, 0));
MISUSE(readmsg_no_message, CHECKED(-FI_EINVAL), fi_readmsg(EP(b), NULL, 0));
MISUSE(writev_no_list, -FI_EINVAL, fi_writev(EP(b), NULL, NULL, 1, SELF(b), BASE(b), KEY(b), b));
MISUSE(writev_long_list, -FI_EINVAL,
       fi_writev(EP(b), (struct iovec *)(void *)b->r.words, NULL, SIZE_MAX, SELF(b), BASE(b),
		 KEY(b), b));
MISUSE(readv_long_list, -FI_EINVAL,
       fi_readv(EP(b), (struct iovec *)(void *)b->r.words, NULL, 999999, SELF(b), BASE(b), KEY(b),
		b));
MISUSE(write_unknown, -FI_EINVAL, fi_write(EP(b), b->bytes, 8, NULL, 12345, BASE(b), KEY(b), b));
MISUSE(writemsg_bare, -FI_EINVAL, fi_writemsg(EP(b), &(struct fi_msg_rma){.addr = SELF(b)}, 0));
MISUSE(writemsg_no_range, -FI_EINVAL,
       fi_writemsg(EP(b),
		   &(struct fi_msg_rma){.msg_iov = &(struct iovec){b->bytes, 8},
					.iov_count = 1,
					.addr = SELF(b),
					.rma_iov_count = 1},
		   0));

/* The target refuses; its errors come by the queue. */
static ssize_t refused(struct bench *b, ssize_t (*post)(struct bench *b))
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {0};
	ssize_t ret;

	OBJ_UNTIL((ret = post(b)) != -FI_EAGAIN, rig_progress(&b->r));
	if (ret)
		return ret;
	OBJ_UNTIL((ret = fi_cq_read(b->r.o.cq, &e, 1)) != -FI_EAGAIN, );
	if (ret == -FI_EAVAIL && fi_cq_readerr(b->r.o.cq, &err, 0) == 1)
		ret = -err.err;
	return ret;
}

static ssize_t no_such_key(struct bench *b)
{
	return fi_write(EP(b), b->bytes, 8, NULL, SELF(b), BASE(b), 987654, b);
}

static ssize_t beyond(struct bench *b)
{
	return fi_write(EP(b), b->bytes, 8, NULL, SELF(b), BASE(b) + sizeof(b->r.words) - 4, KEY(b),
			b);
}

static ssize_t around(struct bench *b)
{
	return fi_write(EP(b), b->bytes, 8, NULL, SELF(b), UINT64_MAX - 3, KEY(b), b);
}

static ssize_t before(struct bench *b)
{
	return fi_read(EP(b), b->bytes, 8, NULL, SELF(b), BASE(b) - 8, KEY(b), b);
}

MISUSE(write_no_such_key, REFUSED, refused(b, no_such_key));
MISUSE(write_beyond, REFUSED, refused(b, beyond));
MISUSE(write_around, REFUSED, refused(b, around));
MISUSE(read_before, REFUSED, refused(b, before));

/* ---- Atomics ---- */

#define ATOMIC(buf, count, type, op)                                                               \
	fi_atomic(EP(b), buf, count, NULL, SELF(b), BASE(b), KEY(b), type, op, b)
#define FETCH(buf, result, count)                                                                  \
	fi_fetch_atomic(EP(b), buf, count, NULL, result, NULL, SELF(b), BASE(b), KEY(b),           \
			FI_UINT64, FI_SUM, b)
#define SWAP(buf, compare, result)                                                                 \
	fi_compare_atomic(EP(b), buf, 1, NULL, compare, NULL, result, NULL, SELF(b), BASE(b),      \
			  KEY(b), FI_UINT64, FI_CSWAP, b)

MISUSE(atomic_nothing, -FI_EINVAL, ATOMIC(NULL, 1, FI_UINT64, FI_SUM));
MISUSE(atomic_of_none, REFUSED, ATOMIC(b->bytes, 0, FI_UINT64, FI_SUM));
MISUSE(atomic_of_many, -FI_EMSGSIZE, ATOMIC(b->bytes, SIZE_MAX, FI_UINT64, FI_SUM));
MISUSE(atomic_type, REFUSED, ATOMIC(b->bytes, 1, (enum fi_datatype)999, FI_SUM));
MISUSE(atomic_negative_type, REFUSED, ATOMIC(b->bytes, 1, (enum fi_datatype) - 1, FI_SUM));
MISUSE(atomic_op, REFUSED, ATOMIC(b->bytes, 1, FI_UINT64, (enum fi_op)999));
MISUSE(atomic_negative_op, REFUSED, ATOMIC(b->bytes, 1, FI_UINT64, (enum fi_op) - 1));
MISUSE(atomic_swap, REFUSED, ATOMIC(b->bytes, 1, FI_UINT64, FI_CSWAP));
MISUSE(atomic_void, REFUSED, ATOMIC(b->bytes, 1, FI_VOID, FI_SUM));
MISUSE(fetch_nothing, -FI_EINVAL, FETCH(NULL, b->bytes, 1));
MISUSE(fetch_nowhere, -FI_EINVAL, FETCH(b->bytes, NULL, 1));
MISUSE(swap_nothing, -FI_EINVAL, SWAP(NULL, b->bytes, b->bytes));
MISUSE(swap_no_compare, -FI_EINVAL, SWAP(b->bytes, NULL, b->bytes));
MISUSE(swap_nowhere, -FI_EINVAL, SWAP(b->bytes, b->bytes, NULL));
MISUSE(inject_atomic_nothing, -FI_EINVAL,
       fi_inject_atomic(EP(b), NULL, 1, SELF(b), BASE(b), KEY(b), FI_UINT64, FI_SUM));
MISUSE(atomicv_no_list, -FI_EINVAL,
       fi_atomicv(EP(b), NULL, NULL, 1, SELF(b), BASE(b), KEY(b), FI_UINT64, FI_SUM, b));
MISUSE(atomicv_long_list, -FI_EINVAL,
       fi_atomicv(EP(b), (struct fi_ioc *)(void *)b->r.words, NULL, SIZE_MAX, SELF(b), BASE(b),
		  KEY(b), FI_UINT64, FI_SUM, b));
MISUSE(atomicmsg_no_message, CHECKED(-FI_EINVAL), fi_atomicmsg(EP(b), NULL, 0));
MISUSE(fetchmsg_no_message, CHECKED(-FI_EINVAL), fi_fetch_atomicmsg(EP(b), NULL, NULL, NULL, 0, 0));
MISUSE(atomicmsg_bare, REFUSED, fi_atomicmsg(EP(b), &(struct fi_msg_atomic){.addr = SELF(b)}, 0));
MISUSE(fetchmsg_no_result, REFUSED,
       fi_fetch_atomicmsg(EP(b),
			  &(struct fi_msg_atomic){
				  .addr = SELF(b),
				  .msg_iov = &(struct fi_ioc){b->bytes, 1},
				  .iov_count = 1,
				  .rma_iov = &(struct fi_rma_ioc){BASE(b), 1, KEY(b)},
				  .rma_iov_count = 1,
				  .datatype = FI_UINT64,
				  .op = FI_SUM},
			  NULL, NULL, 1, 0));
MISUSE(atomicvalid_no_count, ANY, fi_atomicvalid(EP(b), FI_UINT64, FI_SUM, NULL));
MISUSE(atomicvalid_type, REFUSED, fi_atomicvalid(EP(b), (enum fi_datatype) - 5, FI_SUM, &b->len));
MISUSE(query_no_attr, ANY, fi_query_atomic(DOMAIN(b), FI_UINT64, FI_SUM, NULL, 0));
MISUSE(query_flags, ANY,
       fi_query_atomic(DOMAIN(b), FI_UINT64, FI_SUM, &(struct fi_atomic_attr){0}, ODD));
MISUSE(query_type, REFUSED,
       fi_query_atomic(DOMAIN(b), (enum fi_datatype) - 5, FI_SUM, &(struct fi_atomic_attr){0}, 0));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
