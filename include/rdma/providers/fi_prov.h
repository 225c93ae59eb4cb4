/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a provider library shows to the core, and configuration parameters.  For writers of
 * providers; applications have no use for it.  Man pages: fi_provider(3), fi_param(3).
 */
#ifndef FI_PROV_H
#define FI_PROV_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A provider library is a file named *-fi.so. */
#define FI_LIB_EXTENSION	"fi"
#define FI_LIB_SUFFIX		FI_LIB_EXTENSION ".so"

/*
 * Head of the one function a provider library exports; the body follows:
 *	FI_EXT_INI { return &my_provider; }
 * Visible whatever -fvisibility says, with the C name also from C++.  Returns the provider's own
 * static object, or NULL when it cannot run here.
 */
#ifdef __cplusplus
#define FI_EXT_INI	extern "C" EXTERNALLY_VISIBLE struct fi_provider *fi_prov_ini(void)
#else
#define FI_EXT_INI	EXTERNALLY_VISIBLE struct fi_provider *fi_prov_ini(void)
#endif

/* A provider; the object stays the provider's and lives until cleanup returned. */
struct fi_provider {
	uint32_t version;		/* of the provider, FI_VERSION(major, minor) */
	uint32_t fi_version;		/* of the interface it was written against */
	struct fi_context context;	/* the core's */
	const char *name;		/* as in fi_fabric_attr.prov_name */
	/* As fi_getinfo(): 0 and a list for fi_freeinfo(), or -FI_ENODATA when nothing fits. */
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	/* As fi_fabric(). */
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	/* Called once, last. */
	void (*cleanup)(void);
};

/*
 * Make the parameter FI_<provider>_<param_name> known (FI_<param_name> for a NULL provider).
 * Name and help, a printf format, are copied and must not be NULL or empty.  0, or -FI_EINVAL,
 * -FI_ENOMEM.  fi_param(3)
 */
EXTERNALLY_VISIBLE int
fi_param_define(const struct fi_provider *provider, const char *param_name,
		enum fi_param_type type, const char *help_string_fmt, ...)
	FI_FORMAT_PRINTF(4, 5);

/*
 * Read a defined parameter from the environment into *value: a char * (the environment's memory,
 * not to be freed), int or size_t, as its type says; booleans are int 0 or 1.  0 when set;
 * -FI_ENODATA when not set, -FI_ENOENT when not defined, -FI_EINVAL when the text does not fit
 * the type: these leave *value alone.  fi_param(3)
 */
EXTERNALLY_VISIBLE int
fi_param_get(struct fi_provider *provider, const char *param_name, void *value);

/* fi_param_get() of a FI_PARAM_STRING.  fi_param(3) */
WEFT_CALL int
fi_param_get_str(struct fi_provider *provider, const char *param_name, char **value)
{
	return fi_param_get(provider, param_name, value);
}

/* fi_param_get() of a FI_PARAM_INT.  fi_param(3) */
WEFT_CALL int
fi_param_get_int(struct fi_provider *provider, const char *param_name, int *value)
{
	return fi_param_get(provider, param_name, value);
}

/* fi_param_get() of a FI_PARAM_BOOL; 0 or 1.  fi_param(3) */
WEFT_CALL int
fi_param_get_bool(struct fi_provider *provider, const char *param_name, int *value)
{
	return fi_param_get(provider, param_name, value);
}

/* fi_param_get() of a FI_PARAM_SIZE_T.  fi_param(3) */
WEFT_CALL int
fi_param_get_size_t(struct fi_provider *provider, const char *param_name, size_t *value)
{
	return fi_param_get(provider, param_name, value);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_PROV_H */
