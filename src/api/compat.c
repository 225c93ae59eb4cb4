/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo and its companions at each symbol version: of our headers (FABRIC_1.9), of older releases, and of the
 * development line (FABRIC_1.10). Structures that a program passes are read at the size it knows; results have the size
 * of the development line, of which others see the beginning. The static library has no symbol versions: WEFT_STATIC
 * leaves out all calls but those of our headers.
 */
#include "base/log.h"
#include "info/info.h"

/* Sizes of the structures at a symbol version, each by the first member that it lacks. */
/* clang-format off */
#define SIZES(info, tx_attr, ep_attr, domain_attr) {info, tx_attr, ep_attr, domain_attr}
/* clang-format on */
#define INFO(member)   offsetof(struct fi_info, member)
#define TX(member)     offsetof(struct fi_tx_attr, member)
#define EP(member)     offsetof(struct fi_ep_attr, member)
#define DOMAIN(member) offsetof(struct fi_domain_attr, member)
#define ALL(type)      sizeof(struct type)

/* A program gets no interface newer than the structures that its symbol version knows. */
static int check_version(uint32_t version, uint32_t newest)
{
	if (FI_VERSION_GE(newest, version))
		return 0;
	return LOG_REFUSE(
		-FI_ENOSYS, LOG_CORE,
		"interface version %u.%u requested, the program is linked for up to %u.%u",
		FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(newest), FI_MINOR(newest));
}

/* Copies hints, which may be NULL, to the present size. 0 or -FI_ENOMEM. */
static int copy_hints(const struct fi_info *hints, const struct info_sizes *sizes,
		      struct fi_info **copy)
{
	*copy = hints ? info_copy(hints, sizes) : NULL;
	if (*copy || !hints)
		return 0;
	return LOG_REFUSE(-FI_ENOMEM, LOG_CORE, "hints of %zu bytes could not be copied",
			  sizes->info);
}

/* Defines two calls for structures of `sizes` and interface versions up to `newest`. */
#define CALLS(dupinfo, getinfo, sizes, newest)                                                     \
	EXTERNALLY_VISIBLE struct fi_info *dupinfo(const struct fi_info *info);                    \
	EXTERNALLY_VISIBLE int getinfo(uint32_t version, const char *name, const char *service,    \
				       uint64_t flags, const struct fi_info *hints,                \
				       struct fi_info **info);                                     \
                                                                                                   \
	struct fi_info *dupinfo(const struct fi_info *info)                                        \
	{                                                                                          \
		return info ? info_copy(info, &(sizes)) : info_blank();                            \
	}                                                                                          \
                                                                                                   \
	int getinfo(uint32_t version, const char *name, const char *service, uint64_t flags,       \
		    const struct fi_info *hints, struct fi_info **info)                            \
	{                                                                                          \
		struct fi_info *copy = NULL;                                                       \
		int ret = info ? check_version(version, newest) : -FI_EINVAL;                      \
                                                                                                   \
		if (!ret)                                                                          \
			ret = copy_hints(hints, &(sizes), &copy);                                  \
		if (!ret)                                                                          \
			ret = getinfo_query(version, name, service, flags, copy, info);            \
		fi_freeinfo(copy);                                                                 \
		return ret;                                                                        \
	}

static const struct info_sizes sizes_1_9 =
	SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_xpu_ctx_cnt));

_Static_assert(ALL(fi_info) == 120 && ALL(fi_tx_attr) == 80, "sizes of 1.9");
_Static_assert(EP(xpu_ctx) == 96 && DOMAIN(max_xpu_ctx_cnt) == 224, "sizes of 1.9");

CALLS(fi_dupinfo, fi_getinfo, sizes_1_9, fi_version())

#ifndef WEFT_STATIC

/* clang-format off */
static const struct info_sizes sizes_1_0 = SIZES(INFO(nic), TX(tclass), EP(auth_key_size), DOMAIN(cntr_cnt));
static const struct info_sizes sizes_1_1 = SIZES(INFO(nic), TX(tclass), EP(xpu_ctx), DOMAIN(tclass));
static const struct info_sizes sizes_1_2 = SIZES(ALL(fi_info), TX(tclass), EP(xpu_ctx), DOMAIN(tclass));
static const struct info_sizes sizes_1_3 = SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_ep_auth_key));
static const struct info_sizes sizes_1_7 = SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_group_id));
static const struct info_sizes sizes_1_8 = SIZES(ALL(fi_info), ALL(fi_tx_attr), EP(xpu_ctx), DOMAIN(max_cntr_value));
static const struct info_sizes sizes_1_10 = SIZES(ALL(fi_info), ALL(fi_tx_attr), ALL(fi_ep_attr), ALL(fi_domain_attr));
/* clang-format on */

_Static_assert(INFO(nic) == 112 && TX(tclass) == 72, "sizes of 1.0");
_Static_assert(EP(auth_key_size) == 80 && DOMAIN(cntr_cnt) == 120, "sizes of 1.0");
_Static_assert(DOMAIN(tclass) == 184, "sizes of 1.1");
_Static_assert(DOMAIN(max_ep_auth_key) == 192, "sizes of 1.3");
_Static_assert(DOMAIN(max_group_id) == 200, "sizes of 1.7");
_Static_assert(DOMAIN(max_cntr_value) == 208, "sizes of 1.8");
_Static_assert(ALL(fi_ep_attr) == 104 && ALL(fi_domain_attr) == 232, "sizes of 1.10");

#define BIND(function, symbol, node)                                                               \
	__asm__(".symver " #function "_" #node ", " symbol "@FABRIC_1." #node)

/* Defines the three calls at symbol version FABRIC_1.<node>. */
#define NODE(node, newest)                                                                         \
	CALLS(compat_dupinfo_##node, compat_getinfo_##node, sizes_1_##node, newest)                \
	EXTERNALLY_VISIBLE void compat_freeinfo_##node(struct fi_info *info);                      \
                                                                                                   \
	void compat_freeinfo_##node(struct fi_info *info)                                          \
	{                                                                                          \
		fi_freeinfo(info);                                                                 \
	}                                                                                          \
                                                                                                   \
	BIND(compat_dupinfo, "fi_dupinfo", node);                                                  \
	BIND(compat_freeinfo, "fi_freeinfo", node);                                                \
	BIND(compat_getinfo, "fi_getinfo", node)

NODE(0, fi_version());
NODE(1, fi_version());
NODE(2, fi_version());
NODE(3, fi_version());
NODE(7, fi_version());
NODE(8, fi_version());
NODE(10, INFO_NEWEST_API);

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

uint32_t fi_version(void)
{
	return INFO_RELEASE;
}
