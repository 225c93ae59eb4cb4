/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry points of programs linked with older releases. Structures that such programs pass are read
 * at the size they know; results have the present size, of which they see the beginning. The static
 * library has no symbol versions: WEFT_STATIC leaves all of this out.
 */
#ifndef WEFT_STATIC

#include <stdbool.h>

#include "base/log.h"
#include "info/info.h"

/* Sizes of the structures at a symbol version, each by the first member that it lacks. */
#define SIZES(info, tx_attr, ep_attr, domain_attr)                                                 \
	{                                                                                          \
		info, tx_attr, ep_attr, domain_attr                                                \
	}
#define INFO(member)   offsetof(struct fi_info, member)
#define TX(member)     offsetof(struct fi_tx_attr, member)
#define EP(member)     offsetof(struct fi_ep_attr, member)
#define DOMAIN(member) offsetof(struct fi_domain_attr, member)
#define ALL(type)      sizeof(struct type)

static const struct info_sizes sizes_1_0 =
	SIZES(INFO(nic), TX(tclass), EP(auth_key_size), DOMAIN(cntr_cnt));
static const struct info_sizes sizes_1_1 =
	SIZES(INFO(nic), TX(tclass), EP(xpu_ctx), DOMAIN(tclass));
static const struct info_sizes sizes_1_2 =
	SIZES(ALL(fi_info), TX(tclass), EP(xpu_ctx), DOMAIN(tclass));
static const struct info_sizes sizes_1_3 =
	SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_ep_auth_key));
static const struct info_sizes sizes_1_7 =
	SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_group_id));
static const struct info_sizes sizes_1_8 =
	SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_cntr_value));
static const struct info_sizes sizes_1_9 =
	SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_xpu_ctx_cnt));

_Static_assert(INFO(nic) == 112 && TX(tclass) == 72, "sizes of 1.0");
_Static_assert(EP(auth_key_size) == 80 && DOMAIN(cntr_cnt) == 120, "sizes of 1.0");
_Static_assert(EP(xpu_ctx) == 96 && DOMAIN(tclass) == 184, "sizes of 1.1");
_Static_assert(ALL(fi_info) == 120, "sizes of 1.2");
_Static_assert(ALL(fi_tx_attr) == 80 && DOMAIN(max_ep_auth_key) == 192, "sizes of 1.3");
_Static_assert(DOMAIN(max_group_id) == 200, "sizes of 1.7");
_Static_assert(DOMAIN(max_cntr_value) == 208, "sizes of 1.8");
_Static_assert(DOMAIN(max_xpu_ctx_cnt) == 224, "sizes of 1.9");

/* Copies hints, which may be NULL, to the present size. 0 or -FI_ENOMEM. */
static int copy_hints(const struct fi_info *hints, const struct info_sizes *sizes,
		      struct fi_info **copy)
{
	*copy = hints ? info_copy(hints, sizes) : NULL;
	if (*copy || !hints)
		return 0;
	LOG_WARN(LOG_CORE, "hints of %zu bytes could not be copied", sizes->info);
	return -FI_ENOMEM;
}

#define BIND(function, symbol, node)                                                               \
	__asm__(".symver " #function "_" #node ", " symbol "@FABRIC_1." #node)

/* Defines the three calls at symbol version FABRIC_1.<node>. */
#define NODE(node)                                                                                 \
	EXTERNALLY_VISIBLE struct fi_info *compat_dupinfo_##node(const struct fi_info *info);      \
	EXTERNALLY_VISIBLE void compat_freeinfo_##node(struct fi_info *info);                      \
	EXTERNALLY_VISIBLE int compat_getinfo_##node(                                              \
		uint32_t version, const char *name, const char *service, uint64_t flags,           \
		const struct fi_info *hints, struct fi_info **info);                               \
                                                                                                   \
	struct fi_info *compat_dupinfo_##node(const struct fi_info *info)                          \
	{                                                                                          \
		return info ? info_copy(info, &sizes_1_##node) : fi_dupinfo(NULL);                 \
	}                                                                                          \
                                                                                                   \
	void compat_freeinfo_##node(struct fi_info *info)                                          \
	{                                                                                          \
		fi_freeinfo(info);                                                                 \
	}                                                                                          \
                                                                                                   \
	int compat_getinfo_##node(uint32_t version, const char *name, const char *service,         \
				  uint64_t flags, const struct fi_info *hints,                     \
				  struct fi_info **info)                                           \
	{                                                                                          \
		struct fi_info *copy;                                                              \
		int ret = copy_hints(hints, &sizes_1_##node, &copy);                               \
                                                                                                   \
		if (!ret)                                                                          \
			ret = fi_getinfo(version, name, service, flags, copy, info);               \
		fi_freeinfo(copy);                                                                 \
		return ret;                                                                        \
	}                                                                                          \
                                                                                                   \
	BIND(compat_dupinfo, "fi_dupinfo", node);                                                  \
	BIND(compat_freeinfo, "fi_freeinfo", node);                                                \
	BIND(compat_getinfo, "fi_getinfo", node)

NODE(0);
NODE(1);
NODE(2);
NODE(3);
NODE(7);
NODE(8);
NODE(9);

/* At version 1.0 the bytes of api_version were padding. */
EXTERNALLY_VISIBLE int compat_fabric_0(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
				       void *context);

int compat_fabric_0(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fi_fabric_attr present;

	if (!attr)
		return -FI_EINVAL;
	present = *attr;
	present.api_version = FI_VERSION(1, 0);
	return fi_fabric(&present, fabric, context);
}

BIND(compat_fabric, "fi_fabric", 0);

#endif
