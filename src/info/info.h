/* SPDX-License-Identifier: BSD-2-Clause */
/* Deep copies of struct fi_info, in the size of any release. fi_getinfo(3). */
#ifndef WEFT_INFO_INFO_H
#define WEFT_INFO_INFO_H

#include <rdma/fabric.h>

/*
 * The newest interface served: that of the development line, whose programs bind to FABRIC_1.10.
 * fi_version is that of the latest release.
 */
#define INFO_NEWEST_API FI_VERSION(2, 7)
#define INFO_RELEASE    FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/*
 * Sizes (bytes) of the caller's structs. Releases only append members, so an old struct is the
 * beginning of ours. fi_rx_attr and fi_fabric_attr have one size in all releases.
 */
struct info_sizes {
	size_t info, tx_attr, ep_attr, domain_attr;
};

/*
 * Copies one entry. Reads only the bytes of `sizes`; later members and `next` become 0 or NULL. NULL attributes stay
 * NULL. Addresses, names, keys and the NIC are copied; `handle`, `fabric` and `domain` refer to the same objects.
 * Returns NULL if memory is out or the NIC cannot be copied. Free with fi_freeinfo.
 */
struct fi_info *info_copy(const struct fi_info *from, const struct info_sizes *sizes);

/* The same of an entry that the library has made. */
struct fi_info *info_dup(const struct fi_info *from);

/* Returns an entry whose attributes are all there and zero; NULL: no memory. Free with fi_freeinfo. */
struct fi_info *info_blank(void);

/* The query behind fi_getinfo of every symbol version. */

/*
 * fi_getinfo(3), for hints whose structures have the present size. The caller has refused versions
 * that it does not serve, and info == NULL.
 */
int getinfo_query(uint32_t version, const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **info);

#endif
