/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/fault/accepted.c with keys of the library's: the devices write by themselves. */
#define NODE_MR (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

#include "../fault/accepted.c"
