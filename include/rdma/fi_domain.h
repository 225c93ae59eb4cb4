/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Domains fi_domain(3), address vectors fi_av(3), memory registration fi_mr(3), and the data types
 * and operators of atomics and collectives, fi_atomic(3). Calls return 0 or a negative FI_E* unless
 * said otherwise. fi_close(&object->fid) closes an opened object; -FI_EBUSY while another object
 * uses it.
 */
#ifndef RDMA_FI_DOMAIN_H
#define RDMA_FI_DOMAIN_H

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_eq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Address vectors ------------------------------------------------------------------------- */

#define FI_SYMMETRIC (1ULL << 59) /* hint: each node has the same endpoints in a row */
#define FI_SYNC_ERR (1ULL << 58)  /* insert: context is an int array, one FI_E* for each address */
#define FI_UNIVERSE (1ULL << 57)  /* av set: contains all addresses of the vector */

/* Collectives that an av set is used for, so that resources can be reserved; fi_av_set(3). */
#define FI_BARRIER_SET (1ULL << 40)
#define FI_BROADCAST_SET (1ULL << 41)
#define FI_ALLTOALL_SET (1ULL << 42)
#define FI_ALLREDUCE_SET (1ULL << 43)
#define FI_ALLGATHER_SET (1ULL << 44)
#define FI_REDUCE_SCATTER_SET (1ULL << 45)
#define FI_REDUCE_SET (1ULL << 46)
#define FI_SCATTER_SET (1ULL << 47)
#define FI_GATHER_SET (1ULL << 48)

struct fi_av_attr {
	enum fi_av_type type;
	int rx_ctx_bits;    /* upper bits of an address that fi_rx_addr may use */
	size_t count;       /* hint: expected number of addresses */
	size_t ep_per_node; /* hint: endpoints per node; 0: unknown */
	const char *name;   /* shared between the processes of a host under this name */
	void *map_addr;     /* shared FI_AV_MAP: same in all processes, 0: written back */
	uint64_t flags;     /* FI_EVENT: insert asynchronously; FI_READ: named, read only;
			     * FI_SYMMETRIC; FI_AV_USER_ID */
};

struct fi_av_set_attr {
	size_t count;         /* expected number of members */
	fi_addr_t start_addr; /* initial members: start, start + stride ... end; */
	fi_addr_t end_addr;   /* both FI_ADDR_NOTAVAIL: none, or all with FI_UNIVERSE */
	uint64_t stride;
	size_t comm_key_size; /* bytes */
	uint8_t *comm_key;    /* key from a network that manages groups, else NULL */
	uint64_t flags;       /* FI_UNIVERSE, FI_*_SET */
};

struct fi_ops_av {
	size_t size; /* bytes of this table that its writer knows; so in each table below */
	int (*insert)(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
		      uint64_t flags, void *context);
	int (*insertsvc)(struct fid_av *av, const char *node, const char *service,
			 fi_addr_t *fi_addr, uint64_t flags, void *context);
	int (*insertsym)(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
			 size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context);
	int (*remove)(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags);
	int (*lookup)(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen);
	const char *(*straddr)(struct fid_av *av, const void *addr, char *buf, size_t *len);
	int (*av_set)(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set,
		      void *context);
	int (*insert_auth_key)(struct fid_av *av, const void *auth_key, size_t auth_key_size,
			       fi_addr_t *fi_addr, uint64_t flags);
	int (*lookup_auth_key)(struct fid_av *av, fi_addr_t addr, void *auth_key,
			       size_t *auth_key_size);
	int (*set_user_id)(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags);
#ifdef WEFT_API_2_7
	int (*lookup2)(void); /* parameters not settled; -FI_ENOSYS */
#endif
};

struct fid_av {
	struct fid fid;
	struct fi_ops_av *ops;
};

/* ---- Memory registration --------------------------------------------------------------------- */

/* fi_domain_bind: register asynchronously, FI_MR_COMPLETE arrives at the queue bound.  API 1.x. */
#define FI_REG_MR WEFT_OLD_NAME(1ULL << 59)

#ifdef WEFT_API_2_7
/* fi_control with FI_GET_MR_XPU_DESC: what an accelerator names a region by. */
struct fi_mr_xpu_desc {
	void *buf;
	size_t len; /* bytes */
	uint64_t flags;
	void *ctx;
};
#endif

/* Flags of the register calls. */
#define FI_MR_DMABUF (1ULL << 40)        /* attr->dmabuf names the memory, not mr_iov */
#define FI_MR_SINGLE_USE (1ULL << 41)    /* ends after one access of a peer; -FI_EOPNOTSUPP */
#define FI_HMEM_HOST_ALLOC (1ULL << 45)  /* host memory allocated by a device library */
#define FI_HMEM_DEVICE_ONLY (1ULL << 46) /* the CPU cannot reach the memory */

/* Which software manages the memory. */
enum fi_hmem_iface {
	FI_HMEM_SYSTEM, /* the operating system */
	FI_HMEM_CUDA,
	FI_HMEM_ROCR,
	FI_HMEM_ZE,
	FI_HMEM_NEURON,
	FI_HMEM_SYNAPSEAI
};

/* Returns the device number of FI_HMEM_ZE: driver in the upper 16 bits, device below. fi_mr(3) */
WEFT_CALL int fi_hmem_ze_device(int driver_index, int device_index)
{
	return (int) ((unsigned) driver_index << 16 | (unsigned) device_index);
}

struct fi_mr_dmabuf {
	int fd;          /* descriptor of the dma-buf; the caller keeps it */
	uint64_t offset; /* bytes into it */
	size_t len;
	void *base_addr; /* address that corresponds to offset 0 of the dma-buf */
};

/* auth_key of fi_mr_attr when the domain takes its keys from address vectors. */
struct fi_mr_auth_key {
	struct fid_av *av;
	fi_addr_t src_addr;
};

struct fi_mr_attr {
	__extension__ union {
		const struct iovec *mr_iov;
		const struct fi_mr_dmabuf *dmabuf; /* with FI_MR_DMABUF */
	};
	size_t iov_count;       /* up to mr_iov_limit of the domain */
	uint64_t access;        /* FI_SEND FI_RECV FI_READ FI_WRITE FI_REMOTE_* FI_COLLECTIVE */
	uint64_t offset;        /* 0 */
	uint64_t requested_key; /* used without FI_MR_PROV_KEY */
	void *context;          /* context of the fid and of the FI_MR_COMPLETE event */
	size_t auth_key_size;   /* bytes; 0: that of the domain */
	uint8_t *auth_key;
	enum fi_hmem_iface iface; /* this and device: only with FI_HMEM */
	union {
		uint64_t reserved;
		int cuda;
		int ze; /* see fi_hmem_ze_device */
		int neuron;
		int synapseai;
		int rocr;
	} device;
	void *hmem_data;             /* of the device library, with FI_HMEM */
	size_t page_size;            /* hint: page size of the memory; 0: unknown */
	const struct fid_mr *base_mr; /* the region that this one is part of, or NULL */
	size_t sub_mr_cnt;           /* hint: number of parts that will be registered */
};

/* Argument of FI_REFRESH. */
struct fi_mr_modify {
	uint64_t flags;
	struct fi_mr_attr attr;
};

struct fid_mr {
	struct fid fid;
	void *mem_desc;
	uint64_t key;
};

struct fi_ops_mr {
	size_t size;
	int (*reg)(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		   uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context);
	int (*regv)(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		    uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		    void *context);
	int (*regattr)(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		       struct fid_mr **mr);
};

/* Name for fi_set_ops on a domain: the application's copy functions for device memory. */
#define FI_SET_OPS_HMEM_OVERRIDE "hmem_override_ops"

/*
 * Copy functions; all members must be set. Each returns the bytes copied or a negative FI_E*.
 * fi_domain(3)
 */
struct fi_hmem_override_ops {
	size_t size; /* sizeof this struct */
	ssize_t (*copy_from_hmem_iov)(void *dest, size_t size, enum fi_hmem_iface iface,
				      uint64_t device, const struct iovec *hmem_iov,
				      size_t hmem_iov_count, uint64_t hmem_iov_offset);
	ssize_t (*copy_to_hmem_iov)(enum fi_hmem_iface iface, uint64_t device,
				    const struct iovec *hmem_iov, size_t hmem_iov_count,
				    uint64_t hmem_iov_offset, const void *src, size_t size);
};

/* ---- Types and operators of atomics and collectives ------------------------------------------ */

enum fi_datatype {
	FI_INT8,
	FI_UINT8,
	FI_INT16,
	FI_UINT16,
	FI_INT32,
	FI_UINT32,
	FI_INT64,
	FI_UINT64,
	FI_FLOAT,
	FI_DOUBLE,
	FI_FLOAT_COMPLEX,
	FI_DOUBLE_COMPLEX,
	FI_LONG_DOUBLE,
	FI_LONG_DOUBLE_COMPLEX,
	FI_INT128,
	FI_UINT128,
	FI_FLOAT16,     /* IEEE 754 half */
	FI_BFLOAT16,    /* upper half of a float */
	FI_FLOAT8_E4M3, /* 4 bits exponent, 3 mantissa */
	FI_FLOAT8_E5M2, /* 5 bits exponent, 2 mantissa */
	FI_VOID = 256   /* uninterpreted bytes; collectives only */
};

#define FI_COLLECTIVE_OFFSET 256 /* values from here on: collectives only */

/* New value of target t, for operand v and compare value c. */
enum fi_op {
	FI_MIN,
	FI_MAX,
	FI_SUM,
	FI_PROD,
	FI_LOR,
	FI_LAND,
	FI_BOR,
	FI_BAND,
	FI_LXOR,
	FI_BXOR,
	FI_ATOMIC_READ,  /* t, which is fetched */
	FI_ATOMIC_WRITE, /* v */
	FI_CSWAP,        /* v if c == t */
	FI_CSWAP_NE,     /* v if c != t */
	FI_CSWAP_LE,     /* v if c <= t */
	FI_CSWAP_LT,     /* v if c < t */
	FI_CSWAP_GE,     /* v if c >= t */
	FI_CSWAP_GT,     /* v if c > t */
	FI_MSWAP,        /* t with the bits of v where c has ones */
	FI_DIFF,         /* t - v */
	FI_NOOP = 256    /* collectives only */
};

enum fi_collective_op {
	FI_BARRIER,
	FI_BROADCAST,
	FI_ALLTOALL,
	FI_ALLREDUCE,
	FI_ALLGATHER,
	FI_REDUCE_SCATTER,
	FI_REDUCE,
	FI_SCATTER,
	FI_GATHER
};

/* ---- Domain ---------------------------------------------------------------------------------- */

struct fi_atomic_attr;
struct fi_collective_attr;

struct fi_ops_domain {
	size_t size;
	int (*av_open)(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		       void *context);
	int (*cq_open)(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		       void *context);
	int (*endpoint)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			void *context);
	int (*scalable_ep)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			   void *context);
	int (*cntr_open)(struct fid_domain *domain, struct fi_cntr_attr *attr,
			 struct fid_cntr **cntr, void *context);
	int (*poll_open)(struct fid_domain *domain, struct fi_poll_attr *attr,
			 struct fid_poll **pollset);
	int (*stx_ctx)(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		       void *context);
	int (*srx_ctx)(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		       void *context);
	int (*query_atomic)(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, uint64_t flags);
	int (*query_collective)(struct fid_domain *domain, enum fi_collective_op coll,
				struct fi_collective_attr *attr, uint64_t flags);
	int (*endpoint2)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			 uint64_t flags, void *context);
#ifdef WEFT_API_2_7
	int (*xpu_ctx)(void); /* parameters not settled; -FI_ENOSYS */
#endif
};

struct fid_domain {
	struct fid fid;
	struct fi_ops_domain *ops;
	struct fi_ops_mr *mr;
};

/* Opens the domain that info->domain_attr names. info is only read. fi_domain(3) */
WEFT_CALL int fi_domain(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, void *context)
{
	return fabric->ops->domain(fabric, info, domain, context);
}

/* As fi_domain; flags: FI_PEER, context then is a struct fi_peer_domain_context.  fi_domain(3) */
WEFT_CALL int fi_domain2(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_domain **domain, uint64_t flags, void *context)
{
	if (!flags)
		return fi_domain(fabric, info, domain, context);
	if (!FI_CHECK_OP(fabric->ops, struct fi_ops_fabric, domain2))
		return -FI_ENOSYS;
	return fabric->ops->domain2(fabric, info, domain, flags, context);
}

/* With FI_REG_MR in flags, event queue fid gets FI_MR_COMPLETE; flags 0: nothing. fi_domain(3) */
WEFT_CALL int fi_domain_bind(struct fid_domain *domain, struct fid *fid, uint64_t flags)
{
	return domain->fid.ops->bind(&domain->fid, fid, flags);
}

/* Opens a completion queue; attr may be written back, NULL: all defaults.  fi_cq(3) */
WEFT_CALL int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
			 void *context)
{
	return domain->ops->cq_open(domain, attr, cq, context);
}

/* Opens a counter, both values 0; attr NULL: all defaults.  fi_cntr(3) */
WEFT_CALL int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			   struct fid_cntr **cntr, void *context)
{
	return domain->ops->cntr_open(domain, attr, cntr, context);
}

/* Opens a wait set.  Of API 1.x.  fi_poll(3) */
FI_DEPRECATED_FUNC WEFT_CALL int fi_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
					      struct fid_wait **waitset)
{
	return fabric->ops->wait_open(fabric, attr, waitset);
}

/* Opens a poll set.  Of API 1.x.  fi_poll(3) */
FI_DEPRECATED_FUNC WEFT_CALL int fi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
					      struct fid_poll **pollset)
{
	return domain->ops->poll_open(domain, attr, pollset);
}

/* ---- Calls: memory. The caller owns the memory, which must outlive the region. --------------- */

/*
 * Registers len bytes at buf. acs: as access of fi_mr_attr; offset 0; requested_key: key of the
 * region unless the domain has FI_MR_PROV_KEY (-FI_ENOKEY: the key is in use); flags: FI_RMA_EVENT,
 * FI_RMA_PMEM and the FI_MR_* and FI_HMEM_* flags above. If the domain registers asynchronously,
 * *mr must stay valid until FI_MR_COMPLETE. fi_mr(3)
 */
WEFT_CALL int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t acs,
			uint64_t offset, uint64_t requested_key, uint64_t flags,
			struct fid_mr **mr, void *context)
{
	return domain->mr->reg(&domain->fid, buf, len, acs, offset, requested_key, flags, mr,
			       context);
}

/* As fi_mr_reg, for count segments of memory that form one contiguous region. fi_mr(3) */
WEFT_CALL int fi_mr_regv(struct fid_domain *domain, const struct iovec *iov, size_t count,
			 uint64_t acs, uint64_t offset, uint64_t requested_key, uint64_t flags,
			 struct fid_mr **mr, void *context)
{
	return domain->mr->regv(&domain->fid, iov, count, acs, offset, requested_key, flags, mr,
				context);
}

/*
 * As fi_mr_reg, with all arguments in attr; the only call for device memory. The API version of the
 * fabric says how much of attr is read. fi_mr(3)
 */
WEFT_CALL int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
			    uint64_t flags, struct fid_mr **mr)
{
	return domain->mr->regattr(&domain->fid, attr, flags, mr);
}

/* Returns the descriptor to pass as desc for memory of this region. fi_mr(3) */
WEFT_CALL void *fi_mr_desc(struct fid_mr *mr)
{
	return mr->mem_desc;
}

/* Returns the key for peers; FI_KEY_NOTAVAIL: none, as peers have no right to access. fi_mr(3) */
WEFT_CALL uint64_t fi_mr_key(struct fid_mr *mr)
{
	return mr->key;
}

/*
 * Returns the raw key. *key_size: space at raw_key in bytes on entry, size of the key on return,
 * also with -FI_ETOOSMALL. *base_addr: the address that peers count from. flags 0. fi_mr(3)
 */
WEFT_CALL int fi_mr_raw_attr(struct fid_mr *mr, uint64_t *base_addr, uint8_t *raw_key,
			     size_t *key_size, uint64_t flags)
{
	struct fi_mr_raw_attr arg;

	arg.flags = flags;
	arg.base_addr = base_addr;
	arg.raw_key = raw_key;
	arg.key_size = key_size;
	return mr->fid.ops->control(&mr->fid, FI_GET_RAW_MR, &arg);
}

/*
 * Converts a peer's raw key of key_size bytes to a *key for transfers; release it by
 * fi_mr_unmap_key. flags 0. fi_mr(3)
 */
WEFT_CALL int fi_mr_map_raw(struct fid_domain *domain, uint64_t base_addr, uint8_t *raw_key,
			    size_t key_size, uint64_t *key, uint64_t flags)
{
	struct fi_mr_map_raw arg;

	arg.flags = flags;
	arg.base_addr = base_addr;
	arg.raw_key = raw_key;
	arg.key_size = key_size;
	arg.key = key;
	return domain->fid.ops->control(&domain->fid, FI_MAP_RAW_MR, &arg);
}

/* Releases a key of fi_mr_map_raw; call it before the domain is closed. fi_mr(3) */
WEFT_CALL int fi_mr_unmap_key(struct fid_domain *domain, uint64_t key)
{
	return domain->fid.ops->control(&domain->fid, FI_UNMAP_KEY, &key);
}

/*
 * Binds bfid to the region: an endpoint (domains with FI_MR_ENDPOINT, flags 0), or a counter of
 * accesses by peers, which needs FI_RMA_EVENT. flags of a counter: FI_REMOTE_WRITE counts writes
 * and all atomics that modify memory; FI_REMOTE_READ counts accesses that return a value. Call it
 * before fi_mr_enable. fi_mr(3)
 */
WEFT_CALL int fi_mr_bind(struct fid_mr *mr, struct fid *bfid, uint64_t flags)
{
	return mr->fid.ops->bind(&mr->fid, bfid, flags);
}

/*
 * Domains with FI_MR_MMU_NOTIFY: takes in anew the changed pages of count ranges; iov NULL: of the
 * whole region. Accesses fail meanwhile. fi_mr(3)
 */
WEFT_CALL int fi_mr_refresh(struct fid_mr *mr, const struct iovec *iov, size_t count,
			    uint64_t flags)
{
	struct fi_mr_modify arg;

	memset(&arg, 0, sizeof(arg));
	arg.flags = flags;
	arg.attr.mr_iov = iov;
	arg.attr.iov_count = count;
	return mr->fid.ops->control(&mr->fid, FI_REFRESH, &arg);
}

/* Makes a region accessible to peers after its binds (FI_MR_ENDPOINT, FI_MR_RMA_EVENT). fi_mr(3) */
WEFT_CALL int fi_mr_enable(struct fid_mr *mr)
{
	return mr->fid.ops->control(&mr->fid, FI_ENABLE, NULL);
}

/* ---- Calls: address vectors ------------------------------------------------------------------ */

/* Opens an address vector; attr may be written back.  fi_av(3) */
WEFT_CALL int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
			 void *context)
{
	return domain->ops->av_open(domain, attr, av, context);
}

/* Binds event queue fid to a vector opened with FI_EVENT; flags 0. API 1.x. fi_av(3) */
FI_DEPRECATED_FUNC WEFT_CALL int fi_av_bind(struct fid_av *av, struct fid *fid, uint64_t flags)
{
	return av->fid.ops->bind(&av->fid, fid, flags);
}

/*
 * Inserts count addresses from array addr, in the address format of the domain (FI_ADDR_STR: an
 * array of char *). Array fi_addr gets a handle for each, FI_ADDR_NOTAVAIL for those that failed;
 * it may be NULL with FI_AV_TABLE. With FI_AV_USER_ID it holds the ids on entry. Returns how many
 * were inserted; with FI_EVENT 0, and fi_addr must stay valid until FI_AV_COMPLETE. flags: FI_MORE,
 * FI_SYNC_ERR, FI_AV_USER_ID, FI_AUTH_KEY; FI_FIREWALL_ADDR: the peers alone can connect. With
 * FI_AUTH_KEY, required where domain_attr has FI_AV_AUTH_KEY, fi_addr holds the keys on entry.
 * fi_av(3)
 */
WEFT_CALL int fi_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
			   uint64_t flags, void *context)
{
	return av->ops->insert(av, addr, count, fi_addr, flags, context);
}

/* As fi_av_insert, for one address given by node and service as in fi_getinfo. fi_av(3) */
WEFT_CALL int fi_av_insertsvc(struct fid_av *av, const char *node, const char *service,
			      fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return av->ops->insertsvc(av, node, service, fi_addr, flags, context);
}

/*
 * As fi_av_insert, for nodecnt * svccnt addresses: each of nodecnt consecutive nodes with each of
 * svccnt consecutive services. fi_av(3)
 */
WEFT_CALL int fi_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt,
			      const char *service, size_t svccnt, fi_addr_t *fi_addr,
			      uint64_t flags, void *context)
{
	return av->ops->insertsym(av, node, nodecnt, service, svccnt, fi_addr, flags, context);
}

/*
 * Removes count addresses; no operation to them may be under way. flags 0, or FI_AUTH_KEY: keys,
 * -FI_EBUSY while an endpoint or an address has one. fi_av(3)
 */
WEFT_CALL int fi_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	return av->ops->remove(av, fi_addr, count, flags);
}

/*
 * Copies the address of fi_addr. *addrlen: space on entry, full size on return; a longer address is
 * truncated. fi_av(3)
 */
WEFT_CALL int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	return av->ops->lookup(av, fi_addr, addr, addrlen);
}

/*
 * Writes an address as text into buf and returns buf. *len: space on entry, bytes needed on return;
 * a longer text is truncated. fi_av(3)
 */
WEFT_CALL const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
{
	return av->ops->straddr(av, addr, buf, len);
}

/*
 * Inserts an authorization key of auth_key_size bytes, 16 to 64. *fi_addr then names it; flags 0.
 * -FI_ENOSYS: domain_attr has no FI_AV_AUTH_KEY; -FI_ENOSPC: beyond its max_ep_auth_key. fi_av(3)
 */
WEFT_CALL int fi_av_insert_auth_key(struct fid_av *av, const void *auth_key, size_t auth_key_size,
				    fi_addr_t *fi_addr, uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, insert_auth_key))
		return -FI_ENOSYS;
	return av->ops->insert_auth_key(av, auth_key, auth_key_size, fi_addr, flags);
}

/*
 * Copies the key that addr names, or that of an entry; *auth_key_size as *addrlen of fi_av_lookup;
 * -FI_ENOSYS. fi_av(3)
 */
WEFT_CALL int fi_av_lookup_auth_key(struct fid_av *av, fi_addr_t addr, void *auth_key,
				    size_t *auth_key_size)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, lookup_auth_key))
		return -FI_ENOSYS;
	return av->ops->lookup_auth_key(av, addr, auth_key, auth_key_size);
}

/*
 * Makes completions report user_id as the source instead of fi_addr; needs FI_AV_USER_ID. flags 0,
 * or FI_AUTH_KEY if fi_addr names a key. -FI_ENOSYS. fi_av(3)
 */
WEFT_CALL int fi_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id,
				uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, set_user_id))
		return -FI_ENOSYS;
	return av->ops->set_user_id(av, fi_addr, user_id, flags);
}

/*
 * Returns the address of receive context rx_index of scalable endpoint fi_addr; the index is in the
 * upper rx_ctx_bits bits (0 to 63, as in the attr of the vector). fi_av(3)
 */
WEFT_CALL fi_addr_t fi_rx_addr(fi_addr_t fi_addr, int rx_index, int rx_ctx_bits)
{
	if (!rx_ctx_bits)
		return fi_addr;
	return (uint64_t) rx_index << (64 - rx_ctx_bits) | fi_addr;
}

/* Returns the address of fi_addr within group_id, at most max_group_id of the domain. fi_av(3) */
WEFT_CALL fi_addr_t fi_group_addr(fi_addr_t fi_addr, uint32_t group_id)
{
	return (uint64_t) group_id << 32 | fi_addr;
}

#ifdef __cplusplus
}
#endif

#endif /* RDMA_FI_DOMAIN_H */
