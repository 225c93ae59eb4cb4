/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments that the entries of entry_msg.h, entry_rma.h and entry_atomic.h pass to their includer. */
#ifndef WEFT_ENTRY_ARGS_H
#define WEFT_ENTRY_ARGS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "atomic/atomic.h"
#include "base/iov.h"
#include "base/log.h"
#include "entry/tables.h"

/* A send of one buffer. */
struct entry_msg {
	const void *buf;
	size_t len;
	void *desc;
	fi_addr_t addr; /* of the peer */
	uint64_t
		kind; /* FI_INJECT, FI_REMOTE_CQ_DATA, both or none: the default flags are not in it */
	uint64_t data; /* with FI_REMOTE_CQ_DATA */
	void *context;
};

/* A read or write of one buffer and one range of the same length. */
struct entry_rma {
	const struct iovec *local;
	const struct fi_rma_iov *remote;
	void *desc;
	fi_addr_t addr; /* of the peer */
	uint64_t flags;
	uint64_t data; /* with FI_REMOTE_CQ_DATA */
	void *context;
};

/* An atomic on one buffer of each kind and one range, `count` elements each. */
struct entry_atomic {
	enum atomic_form form;
	enum fi_datatype type;
	enum fi_op op;
	const void *operand, *compare;
	void *result, *result_desc;
	size_t count;
	fi_addr_t addr; /* of the peer */
	uint64_t remote, key;
	uint64_t flags;
	void *context;
};

/* The lists of an atomic's ...msg call. */
struct entry_atomic_msg {
	enum atomic_form form;
	const struct fi_msg_atomic *msg;
	const struct fi_ioc *result;
	void **result_desc;
	size_t result_count;
	const struct fi_ioc *compare;
	size_t compare_count;
};

#endif
