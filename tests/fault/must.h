/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of calls that must succeed; a failure ends the process with the call's error. */
#ifndef FAULT_MUST_H
#define FAULT_MUST_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "process.h"

static inline void must(ssize_t ret, const char *what)
{
	if (ret < 0)
		fail("%s: %s", what, fi_strerror((int)-ret));
}

/* Repeats a call that finds no connection or no space; reads the queue for progress. */
#define MUST(cq, call)                                                                             \
	do {                                                                                       \
		ssize_t must_ret;                                                                  \
                                                                                                   \
		while ((must_ret = (call)) == -FI_EAGAIN)                                          \
			fi_cq_read((cq), NULL, 0);                                                 \
		must(must_ret, #call);                                                             \
	} while (0)

#endif
