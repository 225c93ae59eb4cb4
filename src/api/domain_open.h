/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls domain and domain2 of a fabric. fi_domain(3). */
#ifndef WEFT_API_DOMAIN_OPEN_H
#define WEFT_API_DOMAIN_OPEN_H

#include "core/domain.h"

int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		void *context);
int domain_open2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		 uint64_t flags, void *context);

#endif
