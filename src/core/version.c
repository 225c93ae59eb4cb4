/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fabric.h>

uint32_t fi_version(void)
{
	return FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}
