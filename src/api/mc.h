/* SPDX-License-Identifier: BSD-2-Clause */
/* Memberships in multicast groups. fi_cm(3). */
#ifndef WEFT_API_MC_H
#define WEFT_API_MC_H

#include <rdma/fi_cm.h>

/* fi_ops_cm.join */
int mc_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);

#endif
