/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extensions: sharing fabric objects between libraries, replacing the logger or the watch over
 * memory, and option names of single providers.  Man pages: fi_log(3), fi_mr(3), fi_control(3).
 */
#ifndef FI_EXT_H
#define FI_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ranges for values private to one provider; its option names are negative. */
#define FI_PROV_SPECIFIC_EFA	(0xefa << 16)
#define FI_PROV_SPECIFIC_TCP	(0x7cb << 16)

/* Options of the efa provider for fi_setopt() and fi_getopt(); others answer -FI_ENOPROTOOPT. */
enum {
	FI_OPT_EFA_RNR_RETRY = -FI_PROV_SPECIFIC_EFA,
	FI_OPT_EFA_EMULATED_READ,
	FI_OPT_EFA_EMULATED_WRITE,
	FI_OPT_EFA_EMULATED_ATOMICS,
	FI_OPT_EFA_USE_DEVICE_RDMA,
	FI_OPT_EFA_SENDRECV_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_WRITE_IN_ORDER_ALIGNED_128_BYTES,
	FI_OPT_EFA_HOMOGENEOUS_PEERS,
	FI_OPT_EFA_USE_UNSOLICITED_WRITE_RECV,
};

/* Argument of fi_control(FI_EXPORT_FID). */
struct fi_fid_export {
	struct fid **fid;	/* out: the exported object */
	uint64_t flags;
	void *context;
};

/*
 * Ask fid for an object that another library may import, in *expfid.  flags and context depend on
 * fid.  0 or a negative FI_E*.  fi_control(3)
 */
WEFT_CALL int
fi_export_fid(struct fid *fid, uint64_t flags, struct fid **expfid, void *context)
{
	struct fi_fid_export arg;

	arg.fid = expfid;
	arg.flags = flags;
	arg.context = context;
	return fi_control(fid, FI_EXPORT_FID, &arg);
}

/*
 * Bind expfid to fid.  The owner of expfid keeps it, open as long as fid uses it.  0 or a negative
 * FI_E*.  fi_log(3)
 */
WEFT_CALL int
fi_import_fid(struct fid *fid, struct fid *expfid, uint64_t flags)
{
	return fid->ops->bind(fid, expfid, flags);
}

/*
 * Open the library object `name` (see fi_open()), import fid into it and close it again.  0, or
 * the error of whichever step failed.  fi_log(3)
 */
WEFT_CALL int
fi_import(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags,
	  struct fid *fid, void *context)
{
	struct fid *object;
	int ret;

	ret = fi_open(version, name, attr, attr_len, flags, &object, context);
	if (ret)
		return ret;
	ret = fi_import_fid(object, fid, flags);
	fi_close(object);
	return ret;
}

/*
 * A memory monitor: watches the address space.  Import it into the object "mr_cache", so that
 * cached registrations end when their memory is unmapped.  fi_mr(3)
 */
struct fid_mem_monitor;

/*
 * The application's functions, called by the library; start and stop enclose all other calls.
 * start and subscribe return 0 or a negative FI_E*; addr and len are in bytes.
 */
struct fi_ops_mem_monitor {
	size_t size;	/* sizeof this struct, as the application knows it */
	int (*start)(struct fid_mem_monitor *monitor);
	void (*stop)(struct fid_mem_monitor *monitor);
	/* Begin to watch len bytes at addr.  After an error the library caches nothing there. */
	int (*subscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	void (*unsubscribe)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
	/* Is the memory still mapped as it was when it was subscribed? */
	bool (*valid)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

/* The library's function: the application calls it when len bytes at addr are being unmapped. */
struct fi_ops_mem_notify {
	size_t size;	/* sizeof this struct, as the library knows it */
	void (*notify)(struct fid_mem_monitor *monitor, const void *addr, size_t len);
};

struct fid_mem_monitor {
	struct fid fid;				/* fclass FI_CLASS_MEM_MONITOR */
	struct fi_ops_mem_monitor *export_ops;	/* filled by the application */
	struct fi_ops_mem_notify *import_ops;	/* filled by the library */
};

/* Flag of the log callbacks: FI_LOG_PROV does not include this provider. */
#define FI_LOG_PROV_FILTERED	(1ULL << 0)

/*
 * Replacements of fi_log_enabled(), fi_log_ready() and fi_log().  enabled and ready return 0 or 1;
 * msg is the formatted text, valid during the call.
 */
struct fi_ops_log {
	size_t size;	/* filled in by fi_import_log() */
	int (*enabled)(const struct fi_provider *prov, enum fi_log_level level,
		       enum fi_log_subsys subsys, uint64_t flags);
	int (*ready)(const struct fi_provider *prov, enum fi_log_level level,
		     enum fi_log_subsys subsys, uint64_t flags, uint64_t *showtime);
	void (*log)(const struct fi_provider *prov, enum fi_log_level level,
		    enum fi_log_subsys subsys, const char *func, int line, const char *msg);
};

struct fid_logging {
	struct fid fid;
	struct fi_ops_log *ops;
};

/*
 * Send all log output through log_fid->ops; for a NULL member the library's own function stays.
 * The caller owns log_fid; this call fills in its fclass and ops->size, the library fid.ops.
 * fi_close(&log_fid->fid) restores the library's log; before that a second import fails with
 * -FI_EALREADY.  fi_log(3)
 */
WEFT_CALL int
fi_import_log(uint32_t version, uint64_t flags, struct fid_logging *log_fid)
{
	log_fid->fid.fclass = FI_CLASS_LOG;
	log_fid->ops->size = sizeof(struct fi_ops_log);
	return fi_import(version, "logging", NULL, 0, flags, &log_fid->fid, log_fid);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_H */
