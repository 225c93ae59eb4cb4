/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/reason.h"

#include <rdma/fi_errno.h>
#include <stddef.h>

static const char *(*device_text)(int number);

void reason_given_by(const char *(*text)(int number))
{
	__atomic_store_n(&device_text, text, __ATOMIC_RELEASE);
}

const char *reason_text(int prov_errno)
{
	const char *(*text)(int number) = __atomic_load_n(&device_text, __ATOMIC_ACQUIRE);

	return text && prov_errno >= REASON_DEVICE ? text(prov_errno - REASON_DEVICE)
						   : fi_strerror(prov_errno);
}
