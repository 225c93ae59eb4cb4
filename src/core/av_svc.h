/* SPDX-License-Identifier: BSD-2-Clause */
/* Insertion of addresses by host and service, one or a range of them. */
#ifndef WEFT_CORE_AV_SVC_H
#define WEFT_CORE_AV_SVC_H

#include <rdma/fi_domain.h>

/* fi_av_insertsvc. May block to resolve names; no lock is held then. */
int av_svc_insert(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr,
		  uint64_t flags, void *context);

/* fi_av_insertsym. May block as av_svc_insert. */
int av_svc_insert_range(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context);

#endif
