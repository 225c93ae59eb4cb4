/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of struct fi_info, deep and at the sizes of any release. fi_getinfo(3). */
#ifndef WEFT_INFO_INFO_H
#define WEFT_INFO_INFO_H

#include <rdma/fabric.h>

/*
 * Bytes a caller has of each struct. Members were only ever appended, so an old struct is the
 * beginning of ours; fi_rx_attr and fi_fabric_attr have the same size in every release.
 */
struct info_sizes {
	size_t info, tx_attr, ep_attr, domain_attr;
};

/*
 * A copy of one entry, of which only the bytes of `sizes` are read; later members are 0 or NULL,
 * and so is `next`. Attributes that are NULL stay NULL; addresses, names, keys and the NIC are
 * copied, `handle`, `fabric` and `domain` refer to the same objects. NULL: no memory, or the NIC
 * could not be copied. Freed with fi_freeinfo.
 */
struct fi_info *info_copy(const struct fi_info *from, const struct info_sizes *sizes);

#endif
