/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/reason.h"

#include <rdma/fi_errno.h>
#include <string.h>

static const char *(*device_text)(int number);

void reason_given_by(const char *(*text)(int number))
{
	__atomic_store_n(&device_text, text, __ATOMIC_RELEASE);
}

/* clang-format off */
static const char *const own[] = {
	[REASON_BUDGET - REASON_BUDGET] = "the peer exceeded a limit of ours, FI_WEFT_UNEXPECTED_LIMIT or another one: "
		"FI_LOG_LEVEL=warn names it",
	[REASON_MEMORY - REASON_BUDGET] = "no memory was left for what the peer sent",
	[REASON_OVERDUE - REASON_BUDGET] = "the peer did not send what it announced within FI_WEFT_SENDER_TIMEOUT",
	[REASON_CLOSED - REASON_BUDGET] = "the peer closed its endpoint",
	[REASON_SILENT - REASON_BUDGET] = "no sign of life of the peer within FI_WEFT_PEER_TIMEOUT",
	[REASON_NOBODY - REASON_BUDGET] = "no endpoint is at the address, or it closed while we connected",
	[REASON_REFUSED - REASON_BUDGET] = "refused: FI_WEFT_CLOSED, or the keys of the two sides differ",
	[REASON_ENDED - REASON_BUDGET] = "the peer's process ended, or the network cut the connection",
	[REASON_STUCK - REASON_BUDGET] = "an operation made no progress for FI_WEFT_OPERATION_TIMEOUT: "
		"the peer is stopped, or computes",
	[REASON_AWAITED - REASON_BUDGET] = "the address was inserted with FI_FIREWALL_ADDR, "
		"and the peer has not connected within FI_WEFT_PEER_TIMEOUT",
};
/* clang-format on */

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

#define AT(errnum) [(errnum)-FI_ERRNO_OFFSET]

static const char *const texts[FI_ERRNO_MAX - FI_ERRNO_OFFSET] = {
	AT(FI_EOTHER) = "Unspecified error",
	AT(FI_ETOOSMALL) = "Provided buffer is too small",
	AT(FI_EOPBADSTATE) = "Operation not permitted in current state",
	AT(FI_EAVAIL) = "Error available",
	AT(FI_EBADFLAGS) = "Flags not supported",
	AT(FI_ENOEQ) = "Missing or unavailable event queue",
	AT(FI_EDOMAIN) = "Invalid resource domain",
	AT(FI_ENOCQ) = "Missing or unavailable completion queue",
	AT(FI_ECRC) = "CRC error",
	AT(FI_ETRUNC) = "Truncation error",
	AT(FI_ENOKEY) = "Required key not available",
	AT(FI_ENOAV) = "Missing or unavailable address vector",
	AT(FI_EOVERRUN) = "Queue has been overrun",
	AT(FI_ENORX) = "Receiver not ready, no receive buffers available",
	AT(FI_ENOMR) = "Memory registration limit exceeded",
	AT(FI_EFIREWALLADDR) =
		"Host unreacheable due to firewall", /* spelled as in other implementations */
};

const char *fi_strerror(int errnum)
{
	unsigned int n = errnum < 0 ? 0U - (unsigned int)errnum : (unsigned int)errnum;

	if (n < FI_ERRNO_OFFSET)
		return strerror((int)n);
	return texts[n < FI_ERRNO_MAX ? n - FI_ERRNO_OFFSET : 0];
}
