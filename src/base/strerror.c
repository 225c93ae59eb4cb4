/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include <string.h>

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
