/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/info.h"

uint32_t fi_version(void)
{
	return INFO_RELEASE;
}
