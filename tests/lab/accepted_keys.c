/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/fault/accepted.c with keys chosen by the library: the devices perform the writes. */
#define NODE_MR (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

#include "../fault/accepted.c"
