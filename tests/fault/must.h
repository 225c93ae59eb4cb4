/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of calls that must succeed; a failure ends the process with the call's error. */
#ifndef FAULT_MUST_H
#define FAULT_MUST_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "process.h"

static inline void must(ssize_t ret, const char *what)
{
	if (ret < 0)
		fail("%s: %s", what, fi_strerror((int)-ret));
}

#endif
