/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/reason.h"

#include <rdma/fi_errno.h>
#include <stddef.h>

static const char *(*device_text)(int number);

void reason_given_by(const char *(*text)(int number))
{
	__atomic_store_n(&device_text, text, __ATOMIC_RELEASE);
}

static const char *const own[] = {
	[REASON_BUDGET - REASON_BUDGET] =
		"the peer exceeded a limit of ours, FI_WEFT_UNEXPECTED_LIMIT or "
		"another one: FI_LOG_LEVEL=warn names it",
	[REASON_MEMORY - REASON_BUDGET] = "no memory was left for what the peer sent",
	[REASON_OVERDUE - REASON_BUDGET] = "the peer did not send what it announced within "
					   "FI_WEFT_SENDER_TIMEOUT",
	[REASON_CLOSED - REASON_BUDGET] = "the peer closed its endpoint",
	[REASON_SILENT - REASON_BUDGET] = "no sign of life of the peer within FI_WEFT_PEER_TIMEOUT",
	[REASON_NOBODY - REASON_BUDGET] = "no endpoint is at the address, or it closed while we "
					  "connected",
	[REASON_REFUSED - REASON_BUDGET] = "refused: FI_WEFT_CLOSED, or the keys of the two sides "
					   "differ",
	[REASON_ENDED - REASON_BUDGET] = "the peer's process ended, or the network cut the "
					 "connection",
	[REASON_STUCK - REASON_BUDGET] =
		"an operation made no progress for "
		"FI_WEFT_OPERATION_TIMEOUT: the peer is stopped, or computes",
	[REASON_AWAITED - REASON_BUDGET] =
		"the address was inserted with FI_FIREWALL_ADDR, and the "
		"peer has not connected within FI_WEFT_PEER_TIMEOUT",
};

_Static_assert(sizeof(own) / sizeof(own[0]) == REASON_END - REASON_BUDGET,
	       "each reason has a text");

const char *reason_text(int prov_errno)
{
	const char *(*text)(int number) = __atomic_load_n(&device_text, __ATOMIC_ACQUIRE);

	if (prov_errno >= REASON_BUDGET && prov_errno < REASON_END)
		return own[prov_errno - REASON_BUDGET];
	return text && prov_errno >= REASON_DEVICE ? text(prov_errno - REASON_DEVICE)
						   : fi_strerror(prov_errno);
}
