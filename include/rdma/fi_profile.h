/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiling: counters and events that an endpoint or domain keeps about itself.  Man page:
 * fi_profile(3).
 */
#ifndef FI_PROFILE_H
#define FI_PROFILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fid_profile;

/* Well-known variables; a provider's own ones have ids above them. */
enum {
	FI_VAR_UNEXP_MSG_CNT,		/* unexpected messages held now, uint64_t */
	FI_VAR_UNEXP_MSG_QUEUE,		/* their list, struct fi_cq_msg_entry or tagged_entry */
	FI_VAR_MSG_QUEUE_CNT,		/* messages queued */
	FI_VAR_CONNECTION_CNT,		/* connections open */
	FI_VAR_CONN_REQUEST,		/* connection requests seen */
	FI_VAR_CONN_ACCEPT,		/* ... accepted */
	FI_VAR_CONN_REJECT,		/* ... rejected */
	FI_VAR_OFI_MEM,			/* memory the library uses, bytes */
};

/* Well-known events. */
enum {
	FI_EVENT_UNEXP_MSG_RECVD,	/* a message arrived before its receive */
	FI_EVENT_UNEXP_MSG_MATCHED,	/* a receive found such a message */
};

/* Which member of fi_profile_desc.datatype holds. */
enum fi_profile_type {
	fi_primitive_type,
	fi_defined_type,
};

/* One variable or event; the strings are the library's and live as long as the profile. */
struct fi_profile_desc {
	uint32_t id;
	enum fi_profile_type datatype_sel;
	union {
		enum fi_datatype primitive;
		enum fi_type defined;
	} datatype;
	uint64_t flags;
	size_t size;			/* bytes of the value */
	const char *name;
	const char *desc;
};

/* No member is NULL. */
struct fi_profile_ops {
	size_t size;
	void (*reset)(struct fid_profile *prof_fid, uint64_t flags);
	ssize_t (*query_vars)(struct fid_profile *prof_fid, struct fi_profile_desc *varlist,
			      size_t *count);
	ssize_t (*query_events)(struct fid_profile *prof_fid, struct fi_profile_desc *eventlist,
				size_t *count);
	ssize_t (*read_var)(struct fid_profile *prof_fid, uint32_t var_id, void *data,
			    size_t *size);
	int (*reg_callback)(struct fid_profile *prof_fid, uint32_t event_id,
			    int (*callback)(struct fid_profile *prof_fid,
					    struct fi_profile_desc *event, void *param,
					    size_t size, void *context),
			    void *context);
	void (*start_reads)(struct fid_profile *prof_fid, uint64_t flags);
	void (*end_reads)(struct fid_profile *prof_fid, uint64_t flags);
};

struct fid_profile {
	struct fid fid;
	struct fi_profile_ops *ops;
};

/*
 * Open the profile of an endpoint; *prof_fid is closed by the caller before fid.  0, or
 * -FI_ENOSYS when fid keeps none.  fi_profile(3)
 */
WEFT_CALL int
fi_profile_open(struct fid *fid, uint64_t flags, struct fid_profile **prof_fid, void *context)
{
	void *ops;
	int ret;

	ret = fi_open_ops(fid, "fi_profile_ops", flags, &ops, context);
	if (ret)
		return ret;
	/* fi_open_ops() gives the address of a profile's ops member. */
	*prof_fid = (struct fid_profile *)(void *)((char *)ops -
						   offsetof(struct fid_profile, ops));
	return 0;
}

/* Close a profile; callbacks stop.  fi_profile(3) */
WEFT_CALL int
fi_profile_close(struct fid_profile *prof_fid)
{
	return prof_fid->fid.ops->close(&prof_fid->fid);
}

/* Reset the data of the profile; flags 0.  fi_profile(3) */
WEFT_CALL void
fi_profile_reset(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->reset(prof_fid, flags);
}

/*
 * List the variables into the caller's array.  *count: room in it, then how many there are; a
 * NULL array only asks for the number.  Negative FI_E* on error.  fi_profile(3)
 */
WEFT_CALL ssize_t
fi_profile_query_vars(struct fid_profile *prof_fid, struct fi_profile_desc *varlist, size_t *count)
{
	return prof_fid->ops->query_vars(prof_fid, varlist, count);
}

/* fi_profile_query_vars() for events.  fi_profile(3) */
WEFT_CALL ssize_t
fi_profile_query_events(struct fid_profile *prof_fid, struct fi_profile_desc *eventlist,
			size_t *count)
{
	return prof_fid->ops->query_events(prof_fid, eventlist, count);
}

/* Read a variable of type FI_UINT64 into *data; 0 or negative FI_E*.  fi_profile(3) */
WEFT_CALL ssize_t
fi_profile_read_u64(struct fid_profile *prof_fid, uint32_t var_id, uint64_t *data)
{
	size_t size = sizeof(*data);
	ssize_t ret = prof_fid->ops->read_var(prof_fid, var_id, data, &size);

	return ret > 0 ? 0 : ret;
}

/*
 * Have callback called at each event event_id, with `size` bytes of data at `param` that are the
 * library's and valid for the call.  It may run with locks of the library held: no call back into
 * it.  0 or -FI_E*.  fi_profile(3)
 */
WEFT_CALL int
fi_profile_register_callback(struct fid_profile *prof_fid, uint32_t event_id,
			     int (*callback)(struct fid_profile *prof_fid,
					     struct fi_profile_desc *event, void *param,
					     size_t size, void *context),
			     void *context)
{
	return prof_fid->ops->reg_callback(prof_fid, event_id, callback, context);
}

/* Between start and end, values read belong together; keep it short.  fi_profile(3) */
WEFT_CALL void
fi_profile_start_reads(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->start_reads(prof_fid, flags);
}

/* Partner of fi_profile_start_reads().  fi_profile(3) */
WEFT_CALL void
fi_profile_end_reads(struct fid_profile *prof_fid, uint64_t flags)
{
	prof_fid->ops->end_reads(prof_fid, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_PROFILE_H */
