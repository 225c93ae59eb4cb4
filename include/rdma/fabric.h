/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The base of the fabric interface: version, flags, attributes, the object every other one begins
 * with, and the calls that find and open a fabric.  weft(7), fi_getinfo(3), fi_fabric(3)
 *
 * Calls return 0 or a negative FI_E* of rdma/fi_errno.h unless said otherwise, and write through
 * an out pointer only on success.
 *
 * What a program may define before it includes any of these headers:
 *   WEFT_NO_DEPRECATED  no warning where a name of API 1.x is used
 *   WEFT_CALL           how the calls that go through a table of an object are defined, otherwise
 *                       "static inline".  The library defines it EXTERNALLY_VISIBLE in one file,
 *                       which gives every one of them a real, exported symbol.
 */
#ifndef RDMA_FABRIC_H
#define RDMA_FABRIC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rdma/fi_errno.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef WEFT_CALL
#define WEFT_CALL static inline
#endif

/* Names of API 1.x that still work but give a warning: functions, members and values. */
#if defined(__GNUC__) && !defined(WEFT_NO_DEPRECATED)
#define FI_DEPRECATED_FUNC  __attribute__((deprecated))
#define FI_DEPRECATED_FIELD __attribute__((deprecated))
/*
 * A macro cannot be deprecated, an enumerator can. Adding its value 0 changes nothing, also in #if.
 */
enum { weft_old_name __attribute__((deprecated("a name of API 1.x"))) = 0 };
#define WEFT_OLD_NAME(value) ((value) | weft_old_name)
#else
#define FI_DEPRECATED_FUNC
#define FI_DEPRECATED_FIELD
#define WEFT_OLD_NAME(value) (value)
#endif

#ifdef __GNUC__
#define FI_FORMAT_PRINTF(string, first) __attribute__((format(printf, string, first)))
#else
#define FI_FORMAT_PRINTF(string, first)
#endif

/* ---- Version --------------------------------------------------------------------------------- */

/* Build scripts of programs look for one blank before the number. */
/* clang-format off */
#define FI_MAJOR_VERSION 2
#define FI_MINOR_VERSION 6
#define FI_REVISION_VERSION 0
/* clang-format on */

/*
 * WEFT_API_2_7 adds what the development line after 2.6 has, and may still change: the library is
 * compiled with it. A program that defines it is still linked to fi_getinfo of 2.6, which ignores it.
 */

/*
 * Makes a version number. Pass the version that the program was written for, FI_VERSION(2, 6), not
 * FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), which changes with the header.
 */
#define FI_VERSION(major, minor) (((major) << 16) | (minor))
#define FI_MAJOR(version)        ((version) >> 16)
#define FI_MINOR(version)        ((version)&0xFFFF)
#define FI_VERSION_GE(v1, v2)    ((v1) >= (v2))
#define FI_VERSION_LT(v1, v2)    ((v1) < (v2))

/* Returns the version of the running library, as made by FI_VERSION. fi_version(3) */
EXTERNALLY_VISIBLE uint32_t fi_version(void);

/* ---- Names of objects ------------------------------------------------------------------------ */

struct fid;
struct fid_fabric;
struct fid_domain;
struct fid_av;
struct fid_av_set;
struct fid_wait;
struct fid_poll;
struct fid_eq;
struct fid_cq;
struct fid_cntr;
struct fid_ep;
struct fid_pep;
struct fid_stx;
struct fid_mr;
struct fid_mc;
struct fid_nic;
struct fi_eq_attr;
struct fi_wait_attr;

typedef struct fid *fid_t;

/* A peer's handle in an address vector. */
typedef uint64_t fi_addr_t;

#define FI_ADDR_UNSPEC    ((uint64_t)-1) /* any peer */
#define FI_ADDR_NOTAVAIL  ((uint64_t)-1) /* no peer, or unknown */
#define FI_KEY_NOTAVAIL   ((uint64_t)-1) /* result of fi_mr_key: there is no key */
#define FI_SHARED_CONTEXT ((uint64_t)-1) /* tx_ctx_cnt, rx_ctx_cnt: a shared context is bound */
#define FI_AV_AUTH_KEY    ((uint64_t)-1) /* domain auth_key_size: keys are in address vectors */

/* Class of an object, in fid.fclass. */
enum {
	FI_CLASS_UNSPEC,
	FI_CLASS_FABRIC,
	FI_CLASS_DOMAIN,
	FI_CLASS_EP,
	FI_CLASS_SEP,
	FI_CLASS_RX_CTX,
	FI_CLASS_SRX_CTX,
	FI_CLASS_TX_CTX,
	FI_CLASS_STX_CTX,
	FI_CLASS_PEP,
	FI_CLASS_INTERFACE,
	FI_CLASS_AV,
	FI_CLASS_MR,
	FI_CLASS_EQ,
	FI_CLASS_CQ,
	FI_CLASS_CNTR,
	FI_CLASS_WAIT,
	FI_CLASS_POLL,
	FI_CLASS_CONNREQ,
	FI_CLASS_MC,
	FI_CLASS_NIC,
	FI_CLASS_AV_SET,
	FI_CLASS_MR_CACHE,
	FI_CLASS_MEM_MONITOR,
	FI_CLASS_PEER_CQ,
	FI_CLASS_PEER_SRX,
	FI_CLASS_LOG,
	FI_CLASS_PEER_AV,
	FI_CLASS_PEER_AV_SET,
	FI_CLASS_PEER_CNTR,
	FI_CLASS_PROFILE,
#ifdef WEFT_API_2_7
	FI_CLASS_XPU_CTX
#endif
};

/* ---- Capabilities and flags of operations, one space of 64 bits ------------------------------ */

/*
 * Kinds of transfer and their direction. As capabilities: offered or wanted; in a completion: what
 * completed.
 */
#define FI_MSG          (1ULL << 1)
#define FI_RMA          (1ULL << 2)
#define FI_TAGGED       (1ULL << 3)
#define FI_ATOMIC       (1ULL << 4)
#define FI_ATOMICS      FI_ATOMIC
#define FI_MULTICAST    (1ULL << 5)
#define FI_COLLECTIVE   (1ULL << 6)
#define FI_READ         (1ULL << 8)
#define FI_WRITE        (1ULL << 9)
#define FI_RECV         (1ULL << 10)
#define FI_SEND         (1ULL << 11)
#define FI_TRANSMIT     FI_SEND
#define FI_REMOTE_READ  (1ULL << 12) /* reads of our memory by a peer */
#define FI_REMOTE_WRITE (1ULL << 13) /* writes to our memory by a peer */

/* Flags of one operation. */
#define FI_MULTI_RECV        (1ULL << 16)  /* the buffer receives messages until it is full */
#define FI_REMOTE_CQ_DATA    (1ULL << 17)  /* carries data for the peer's completion */
#define FI_MORE              (1ULL << 18)  /* more follows at once: may be sent together */
#define FI_PEEK              (1ULL << 19)  /* report, do not remove */
#define FI_TRIGGER           (1ULL << 20)  /* start at a threshold; see rdma/fi_trigger.h */
#define FI_FENCE             (1ULL << 21)  /* start after all before to this peer completed */
#define FI_COMPLETION        (1ULL << 24)  /* give a completion where the queue is selective */
#define FI_EVENT             FI_COMPLETION /* fi_av_open: insert asynchronously */
#define FI_INJECT            (1ULL << 25)  /* the buffer is free again when the call returns */
#define FI_INJECT_COMPLETE   (1ULL << 26)  /* complete: the buffer is free */
#define FI_TRANSMIT_COMPLETE (1ULL << 27)  /* complete: the peer's side has it, no resend */
#define FI_DELIVERY_COMPLETE (1ULL << 28)  /* complete: in the memory of the peer's application */
#define FI_AFFINITY          (1ULL << 29)  /* signaling_vector of a queue counts */
#define FI_COMMIT_COMPLETE   (1ULL << 30)  /* complete: in persistent memory */
#define FI_MATCH_COMPLETE    (1ULL << 31)  /* complete: it matched a posted receive */

/* fi_getinfo. */
#define FI_RESCAN         (1ULL << 35) /* search for devices again */
#define FI_PROV_ATTR_ONLY (1ULL << 54) /* one entry per provider, no search for resources */
#define FI_NUMERICHOST    (1ULL << 55) /* node is a numeric address, no name lookup */
#define FI_SOURCE         (1ULL << 57) /* node and service are our own; cap: fi_cq_readfrom */

/* Other capabilities. */
#define FI_PEER_TRANSFER        (1ULL << 36) /* fi_getinfo(3) */
#define FI_AV_USER_ID           (1ULL << 41) /* completions report an id of the application */
#define FI_FIREWALL_ADDR        (1ULL << 42) /* the address cannot be connected to from outside */
#define FI_PEER                 (1ULL << 43) /* fi_getinfo(3) */
#ifdef WEFT_API_2_7
#define FI_XPU (1ULL << 44) /* an accelerator posts operations by itself */
#endif
#define FI_TAGGED_DIRECTED_RECV (1ULL << 45) /* FI_DIRECTED_RECV, tagged messages only */
#define FI_TAGGED_MULTI_RECV    (1ULL << 46) /* FI_MULTI_RECV, tagged messages too */
#define FI_HMEM                 (1ULL << 47) /* buffers in device memory */
#define FI_EXACT_DIRECTED_RECV  (1ULL << 48) /* every receive names its source */
#define FI_RMA_PMEM             (1ULL << 49) /* targets in persistent memory */
#define FI_SOURCE_ERR           (1ULL << 50) /* unknown senders give an error with their address */
#define FI_LOCAL_COMM           (1ULL << 51) /* peers on this host */
#define FI_REMOTE_COMM          (1ULL << 52) /* peers on other hosts */
#define FI_SHARED_AV            (1ULL << 53) /* address vectors between processes */
#define FI_RMA_EVENT            (1ULL << 56) /* accesses by peers can be counted */
#define FI_NAMED_RX_CTX         (1ULL << 58) /* peers choose the receive context */
#define FI_DIRECTED_RECV        (1ULL << 59) /* receives may name their source */

#define FI_VARIABLE_MSG 0ULL /* of API 1.x, gone */

/* fi_ep_bind of a completion queue: success gives an entry only with FI_COMPLETION. */
#define FI_SELECTIVE_COMPLETION (1ULL << 59)

/* Tagged messages found by FI_PEEK, fi_tagged(3); and addresses that name a key, fi_av(3). */
#define FI_AUTH_KEY (1ULL << 57)
#define FI_DISCARD  (1ULL << 58) /* drop the message */
#define FI_CLAIM    (1ULL << 59) /* keep the message for this context, or receive the kept one */

/* ---- Mode: duties of the application --------------------------------------------------------- */

#define FI_CONTEXT2                                                                                \
	(1ULL                                                                                      \
	 << 52) /* context of an operation is a struct fi_context2, the library's until completion */
#define FI_RX_CQ_DATA (1ULL << 56) /* remote CQ data uses up a posted receive */
#define FI_ASYNC_IOV  (1ULL << 57) /* the library reads iov arrays until completion */
#define FI_MSG_PREFIX (1ULL << 58) /* the library uses msg_prefix_size bytes before each buffer */
#define FI_CONTEXT                                                                                 \
	(1ULL                                                                                      \
	 << 59) /* context of an operation is a struct fi_context, the library's until completion */
#define FI_LOCAL_MR WEFT_OLD_NAME(1ULL << 55) /* FI_MR_LOCAL, before API 1.5 */

#define FI_NOTIFY_FLAGS_ONLY 0ULL /* of API 1.x, gone */
#define FI_RESTRICTED_COMP   0ULL /* of API 1.x, gone */

/* mr_mode of a domain: bits; below API 1.5 one of the first three. */
#define FI_MR_UNSPEC     WEFT_OLD_NAME(0)
#define FI_MR_BASIC      WEFT_OLD_NAME(1) /* VIRT_ADDR, ALLOCATED, PROV_KEY */
#define FI_MR_SCALABLE   WEFT_OLD_NAME(2) /* none of the bits */
#define FI_MR_LOCAL      (1 << 2)         /* local buffers must be registered and desc passed */
#define FI_MR_RAW        (1 << 3)         /* keys by fi_mr_raw_attr and fi_mr_map_raw */
#define FI_MR_VIRT_ADDR  (1 << 4)         /* peers give virtual addresses, not offsets */
#define FI_MR_ALLOCATED  (1 << 5)         /* the memory must exist when it is registered */
#define FI_MR_PROV_KEY   (1 << 6)         /* the library chooses the key */
#define FI_MR_MMU_NOTIFY (1 << 7)         /* fi_mr_refresh when pages change */
#define FI_MR_RMA_EVENT  (1 << 8)         /* regions with a counter: fi_mr_enable */
#define FI_MR_ENDPOINT   (1 << 9)         /* regions are bound to an endpoint */
#define FI_MR_HMEM       (1 << 10)        /* FI_MR_LOCAL for device memory */
#define FI_MR_COLLECTIVE (1 << 11)        /* FI_MR_LOCAL for collectives */
#ifdef WEFT_API_2_7
#define FI_MR_XPU_DESC (1 << 12) /* accelerators use a struct fi_mr_xpu_desc */
#endif

/* ---- Order: XAY means X posted after Y to one peer is handled after it.  fi_endpoint(3) ------ */

#define FI_ORDER_RAR        (1ULL << 0) /* R: read, W: write, S: send */
#define FI_ORDER_RAW        (1ULL << 1)
#define FI_ORDER_RAS        (1ULL << 2)
#define FI_ORDER_WAR        (1ULL << 3)
#define FI_ORDER_WAW        (1ULL << 4)
#define FI_ORDER_WAS        (1ULL << 5)
#define FI_ORDER_SAR        (1ULL << 6)
#define FI_ORDER_SAW        (1ULL << 7)
#define FI_ORDER_SAS        (1ULL << 8)
#define FI_ORDER_RMA_RAR    (1ULL << 32) /* RMA alone */
#define FI_ORDER_RMA_RAW    (1ULL << 33)
#define FI_ORDER_RMA_WAR    (1ULL << 34)
#define FI_ORDER_RMA_WAW    (1ULL << 35)
#define FI_ORDER_ATOMIC_RAR (1ULL << 36) /* atomics alone */
#define FI_ORDER_ATOMIC_RAW (1ULL << 37)
#define FI_ORDER_ATOMIC_WAR (1ULL << 38)
#define FI_ORDER_ATOMIC_WAW (1ULL << 39)
#define FI_ORDER_NONE       WEFT_OLD_NAME(0ULL)
#define FI_ORDER_STRICT     WEFT_OLD_NAME(0x1FF)      /* comp_order: as posted */
#define FI_ORDER_DATA       WEFT_OLD_NAME(1ULL << 16) /* comp_order: bytes of a transfer too */

/* ---- Kinds ----------------------------------------------------------------------------------- */

/* addr_format; the address is the struct of that name, or opaque.  fi_getinfo(3) */
enum {
	FI_FORMAT_UNSPEC,
	FI_SOCKADDR,     /* any struct sockaddr */
	FI_SOCKADDR_IN,  /* struct sockaddr_in */
	FI_SOCKADDR_IN6, /* struct sockaddr_in6 */
	FI_SOCKADDR_IB,  /* struct sockaddr_ib */
	FI_ADDR_PSMX,
	FI_ADDR_GNI,
	FI_ADDR_BGQ,
	FI_ADDR_MLX,
	FI_ADDR_STR, /* text that ends with a zero byte: format://... */
	FI_ADDR_PSMX2,
	FI_ADDR_IB_UD,
	FI_ADDR_EFA,
	FI_ADDR_PSMX3,
	FI_ADDR_OPX,
	FI_ADDR_CXI,
	FI_ADDR_UCX,
	FI_SOCKADDR_IP /* struct sockaddr_in or sockaddr_in6 */
};

enum fi_av_type {
	FI_AV_UNSPEC,
	FI_AV_MAP,  /* fi_addr_t opaque */
	FI_AV_TABLE /* fi_addr_t 0, 1, 2 ... in the order of insertion */
};

/* Promises of the application about its threads: concurrent calls that do not happen. */
enum fi_threading {
	FI_THREAD_UNSPEC,
	FI_THREAD_SAFE,   /* no promise */
	FI_THREAD_FID,    /* one thread at a time in each object */
	FI_THREAD_DOMAIN, /* one thread at a time in all objects of a domain */
	/* One thread at a time in a queue or counter and all objects bound to it. */
	FI_THREAD_COMPLETION,
	FI_THREAD_ENDPOINT /* as FID, contexts counted as their endpoint */
};

/* What drives operations forward. */
enum fi_progress {
	FI_PROGRESS_UNSPEC,
	FI_PROGRESS_AUTO,           /* the library, on its own */
	FI_PROGRESS_MANUAL,         /* calls that read queues and counters, or wait */
	FI_PROGRESS_CONTROL_UNIFIED /* manual; the same calls drive control operations */
};

enum fi_resource_mgmt {
	FI_RM_UNSPEC,
	FI_RM_DISABLED, /* the application must prevent queue overruns */
	FI_RM_ENABLED   /* a full queue gives -FI_EAGAIN */
};

enum fi_ep_type {
	FI_EP_UNSPEC,
	FI_EP_MSG,   /* connected, reliable */
	FI_EP_DGRAM, /* connectionless, messages may be lost */
	FI_EP_RDM    /* connectionless, reliable */
};

#define FI_EP_SOCK_STREAM 0 /* of API 1.x, gone */

/*
 * Wire protocol of an endpoint: two endpoints can communicate if theirs are equal. Highest bit set:
 * private numbers.
 */
enum {
	FI_PROTO_UNSPEC,
	FI_PROTO_RDMA_CM_IB_RC, /* reliable connected queue pairs under the RDMA CM */
	FI_PROTO_IWARP,
	FI_PROTO_IB_UD, /* unreliable datagram queue pairs */
	FI_PROTO_PSMX,
	FI_PROTO_UDP,
	FI_PROTO_SOCK_TCP,
	FI_PROTO_MXM,
	FI_PROTO_IWARP_RDM,
	FI_PROTO_IB_RDM,
	FI_PROTO_GNI,
	FI_PROTO_RXM, /* reliable datagrams over FI_EP_MSG */
	FI_PROTO_RXD, /* reliable datagrams over FI_EP_DGRAM */
	FI_PROTO_MLX,
	FI_PROTO_NETWORKDIRECT,
	FI_PROTO_PSMX2,
	FI_PROTO_SHM, /* shared memory */
	FI_PROTO_MRAIL,
	FI_PROTO_RSTREAM,
	FI_PROTO_RDMA_CM_IB_XRC,
	FI_PROTO_EFA,
	FI_PROTO_PSMX3,
	FI_PROTO_RXM_TCP,
	FI_PROTO_OPX,
	FI_PROTO_CXI,
	FI_PROTO_XNET, /* TCP, connectionless endpoints */
	FI_PROTO_COLL,
	FI_PROTO_UCX,
	FI_PROTO_SM2,
	FI_PROTO_CXI_RNR,
	FI_PROTO_LPP,
	FI_PROTO_LNX
};

/* mem_tag_format: these, or a mask in which each run of ones and of zeros is a field. */
enum {
	FI_TAG_BITS,
	FI_TAG_MPI, /* see fi_tag_mpi of rdma/fi_tagged.h */
	FI_TAG_CCL,
	FI_TAG_MAX_FORMAT = 1 << 16
};

/* tclass: a label, or fi_tc_dscp_set. */
enum {
	FI_TC_UNSPEC,
	FI_TC_DSCP = 0x100,
	FI_TC_LABEL = 0x200,
	FI_TC_BEST_EFFORT = FI_TC_LABEL,
	FI_TC_LOW_LATENCY,
	FI_TC_DEDICATED_ACCESS,
	FI_TC_BULK_DATA,
	FI_TC_SCAVENGER,
	FI_TC_NETWORK_CTRL
};

/* Returns the traffic class of a DSCP value of IP, 0 to 63. fi_endpoint(3) */
WEFT_CALL uint32_t fi_tc_dscp_set(uint8_t dscp)
{
	return (uint32_t)dscp | FI_TC_DSCP;
}

/* Returns the DSCP value of a traffic class, 0 if it has none. fi_endpoint(3) */
WEFT_CALL uint8_t fi_tc_dscp_get(uint32_t tclass)
{
	return tclass & FI_TC_DSCP ? (uint8_t)tclass : 0;
}

enum {
	FI_NAME_MAX = 64,      /* bytes of a name, the zero byte included */
	FI_DATATYPE_LAST = 14, /* frozen; not the number of data types */
	FI_ATOMIC_OP_LAST = 19 /* frozen; not the number of operators */
};

/* ---- Memory that an application passes ------------------------------------------------------- */

/* `count` elements of a data type at `addr`. */
struct fi_ioc {
	void *addr;
	size_t count;
};

/* Context with mode FI_CONTEXT: the library uses it from the call until the completion. */
struct fi_context {
	void *internal[4];
};

/* Context with mode FI_CONTEXT2, likewise. */
struct fi_context2 {
	void *internal[8];
};

/* Context of a buffered receive of API 1.x. */
struct fi_recv_context {
	struct fid_ep *ep;
	void *context;
};

/* ---- Attributes. In hints 0 and NULL accept anything; results hold the actual values. -------- */

/* Transmit side. */
struct fi_tx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;    /* default flags: FI_COMPLETION FI_INJECT FI_*_COMPLETE */
	uint64_t msg_order;   /* FI_ORDER_* */
	uint64_t comp_order;  /* of completions */
	size_t inject_size;   /* bytes that an inject call accepts */
	size_t size;          /* maximum operations in flight */
	size_t iov_limit;     /* entries of an iov */
	size_t rma_iov_limit; /* entries of an rma iov */
	uint32_t tclass;      /* FI_TC_* */
};

/* Receive side. */
struct fi_rx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t total_buffered_recv; /* of API 1.x */
	size_t size;                /* maximum posted receives */
	size_t iov_limit;
};

struct fi_ep_attr {
	enum fi_ep_type type;
	uint32_t protocol; /* FI_PROTO_* */
	uint32_t protocol_version;
	size_t max_msg_size;       /* bytes */
	size_t msg_prefix_size;    /* bytes; with FI_MSG_PREFIX */
	size_t max_order_raw_size; /* bytes up to which FI_ORDER_RAW holds for data */
	size_t max_order_war_size;
	size_t max_order_waw_size;
	uint64_t mem_tag_format;
	size_t tx_ctx_cnt; /* contexts of a scalable endpoint, or FI_SHARED_CONTEXT */
	size_t rx_ctx_cnt;
	size_t auth_key_size; /* bytes */
	uint8_t *auth_key;
#ifdef WEFT_API_2_7
	void *xpu_ctx; /* accelerator that posts by itself; NULL here */
#endif
};

struct fi_domain_attr {
	struct fid_domain *domain; /* one that is open */
	char *name;
	enum fi_threading threading;
	enum fi_progress control_progress;
	__extension__ union {
		enum fi_progress data_progress;
		enum fi_progress progress;
	};
	enum fi_resource_mgmt resource_mgmt;
	enum fi_av_type av_type;
	int mr_mode;         /* FI_MR_* */
	size_t mr_key_size;  /* bytes of a raw key, at most */
	size_t cq_data_size; /* bytes of FI_REMOTE_CQ_DATA */
	size_t cq_cnt;       /* maximum, or best, number of objects; so for the next nine */
	size_t ep_cnt;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t max_ep_tx_ctx; /* of an endpoint */
	size_t max_ep_rx_ctx;
	size_t max_ep_stx_ctx;
	size_t max_ep_srx_ctx;
	size_t cntr_cnt;
	size_t mr_iov_limit; /* pieces of a region */
	uint64_t caps;
	uint64_t mode;
	uint8_t *auth_key;
	size_t auth_key_size; /* bytes, or FI_AV_AUTH_KEY */
	size_t max_err_data;  /* bytes of err_data of an error entry */
	size_t mr_cnt;
	uint32_t tclass;
	size_t max_ep_auth_key; /* keys of an endpoint */
	uint32_t max_group_id;  /* see fi_group_addr */
	uint64_t max_cntr_value;
	uint64_t max_err_cntr_value;
#ifdef WEFT_API_2_7
	size_t max_xpu_ctx_cnt; /* 0 here */
#endif
};

struct fi_fabric_attr {
	struct fid_fabric *fabric; /* one that is open */
	char *name;
	char *prov_name;       /* hint: "a,b" names providers, "^c" excludes one */
	uint32_t prov_version; /* as FI_VERSION */
	uint32_t api_version;  /* version argument of fi_getinfo */
};

/* One way to communicate; fi_getinfo returns a list in order of preference. fi_getinfo(3) */
struct fi_info {
	struct fi_info *next;
	uint64_t caps;
	uint64_t mode; /* hint: duties that the application accepts; result: duties that it has */
	uint32_t addr_format; /* FI_SOCKADDR* FI_ADDR_* */
	size_t src_addrlen;   /* bytes */
	size_t dest_addrlen;
	void *src_addr;
	void *dest_addr;
	fid_t handle; /* handle of FI_CONNREQ, or a passive endpoint whose address is taken over */
	struct fi_tx_attr *tx_attr;
	struct fi_rx_attr *rx_attr;
	struct fi_ep_attr *ep_attr;
	struct fi_domain_attr *domain_attr;
	struct fi_fabric_attr *fabric_attr;
	struct fid_nic *nic; /* device behind it, or NULL */
};

/* ---- Device.  fi_getinfo(3) ------------------------------------------------------------------ */

enum fi_bus_type { FI_BUS_UNKNOWN, FI_BUS_UNSPEC = FI_BUS_UNKNOWN, FI_BUS_PCI };

enum fi_link_state { FI_LINK_UNKNOWN, FI_LINK_DOWN, FI_LINK_UP };

struct fi_pci_attr {
	uint16_t domain_id;
	uint8_t bus_id;
	uint8_t device_id;
	uint8_t function_id;
};

struct fi_bus_attr {
	enum fi_bus_type bus_type;
	union {
		struct fi_pci_attr pci;
	} attr;
};

/* Texts; NULL: unknown. */
struct fi_device_attr {
	char *name;
	char *device_id;
	char *device_version;
	char *vendor_id;
	char *driver;
	char *firmware;
};

struct fi_link_attr {
	char *address;
	size_t mtu;   /* bytes */
	size_t speed; /* bits a second */
	enum fi_link_state state;
	char *network_type;
};

/* ---- The head of each object ----------------------------------------------------------------- */

/*
 * Each table begins with its size in bytes, as known to the side that filled it in. Members that
 * the headers call without FI_CHECK_OP are never NULL.
 */
struct fi_ops {
	size_t size;
	int (*close)(struct fid *fid);
	int (*bind)(struct fid *fid, struct fid *bfid, uint64_t flags);
	int (*control)(struct fid *fid, int command, void *arg);
	int (*ops_open)(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context);
	int (*tostr)(const struct fid *fid, char *buf, size_t len);
	int (*ops_set)(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
};

struct fid {
	size_t fclass; /* FI_CLASS_* */
	void *context; /* context of the opening call; the application may change it */
	struct fi_ops *ops;
};

struct fid_nic {
	struct fid fid;
	struct fi_device_attr *device_attr;
	struct fi_bus_attr *bus_attr;
	struct fi_link_attr *link_attr;
	void *prov_attr;
};

struct fi_ops_fabric {
	size_t size;
	int (*domain)(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		      void *context);
	int (*passive_ep)(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			  void *context);
	int (*eq_open)(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		       void *context);
	int (*wait_open)(struct fid_fabric *fabric, struct fi_wait_attr *attr,
			 struct fid_wait **waitset);
	int (*trywait)(struct fid_fabric *fabric, struct fid **fids, int count);
	int (*domain2)(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		       uint64_t flags, void *context);
};

struct fid_fabric {
	struct fid fid;
	struct fi_ops_fabric *ops;
	/* The caller's API version: selects the structs that the caller knows. */
	uint32_t api_version;
};

/* Does the table have this member? `ops` may be NULL or of an older layout. */
#define FI_CHECK_OP(ops, opstype, op) ((ops) && (ops)->size > offsetof(opstype, op) && (ops)->op)

/*
 * Commands of fi_control, with the type that arg points to. The man page of an object lists its
 * commands.
 */
enum {
	FI_GETFIDFLAG,  /* uint64_t */
	FI_SETFIDFLAG,  /* uint64_t */
	FI_GETOPSFLAG,  /* uint64_t, FI_TRANSMIT or FI_RECV set on entry: default flags */
	FI_SETOPSFLAG,  /* uint64_t, FI_TRANSMIT or FI_RECV and flags; -FI_EBADFLAGS: unknown */
	FI_ALIAS,       /* struct fi_alias */
	FI_GETWAIT,     /* int, struct fi_mutex_cond or struct fi_wait_pollfd by wait object */
	FI_ENABLE,      /* NULL */
	FI_BACKLOG,     /* int: backlog of connection requests */
	FI_GET_RAW_MR,  /* struct fi_mr_raw_attr */
	FI_MAP_RAW_MR,  /* struct fi_mr_map_raw */
	FI_UNMAP_KEY,   /* uint64_t */
	FI_QUEUE_WORK,  /* struct fi_deferred_work */
	FI_CANCEL_WORK, /* struct fi_deferred_work */
	FI_FLUSH_WORK,  /* NULL */
	FI_REFRESH,     /* struct fi_mr_modify */
	FI_DUP,         /* struct fid *: copy of the object */
	FI_GETWAITOBJ,  /* enum fi_wait_obj */
	FI_GET_VAL,     /* struct fi_fid_var */
	FI_SET_VAL,     /* struct fi_fid_var */
	FI_EXPORT_FID,  /* struct fi_fid_export */
	FI_GET_FD,      /* int */
#ifdef WEFT_API_2_7
	FI_GET_MR_XPU_DESC /* struct fi_mr_xpu_desc; -FI_ENOSYS */
#endif
};

struct fi_alias {
	struct fid **fid; /* out */
	uint64_t flags;
};

struct fi_fid_var {
	int name;
	void *val;
};

struct fi_mr_raw_attr {
	uint64_t flags;
	uint64_t *base_addr;
	uint8_t *raw_key;
	size_t *key_size; /* bytes */
};

struct fi_mr_map_raw {
	uint64_t flags;
	uint64_t base_addr;
	uint8_t *raw_key;
	size_t key_size; /* bytes */
	uint64_t *key;   /* out */
};

/* ---- Calls: any object ----------------------------------------------------------------------- */

/*
 * Closes an object of any kind and frees it. -FI_EBUSY while another object uses it.
 * An endpoint: incomplete operations end with FI_ECANCELED in its queue, posted receives vanish.
 * Injected and completed messages are delivered: the call waits, at most a second, until the peers'
 * kernels or devices have the data. fi_fabric(3)
 */
WEFT_CALL int fi_close(struct fid *fid)
{
	return fid->ops->close(fid);
}

/*
 * Performs one of the commands above. No other call may use the object meanwhile. -FI_ENOSYS:
 * unknown command. fi_control(3)
 */
WEFT_CALL int fi_control(struct fid *fid, int command, void *arg)
{
	return fid->ops->control(fid, command, arg);
}

/* Opens a second handle to an object; see fi_ep_alias. Both must be closed. fi_control(3) */
WEFT_CALL int fi_alias(struct fid *fid, struct fid **alias_fid, uint64_t flags)
{
	struct fi_alias arg;

	arg.fid = alias_fid;
	arg.flags = flags;
	return fi_control(fid, FI_ALIAS, &arg);
}

/* Reads variable `name` of the object into *val, whose type depends on the name. fi_control(3) */
WEFT_CALL int fi_get_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var arg;

	arg.name = name;
	arg.val = val;
	return fi_control(fid, FI_GET_VAL, &arg);
}

/* Sets variable `name` of the object from *val. fi_control(3) */
WEFT_CALL int fi_set_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var arg;

	arg.name = name;
	arg.val = val;
	return fi_control(fid, FI_SET_VAL, &arg);
}

/*
 * Returns the extra table of this name, owned by the object, in *ops. -FI_ENOSYS: there is none.
 * fi_fabric(3)
 */
WEFT_CALL int fi_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops,
			  void *context)
{
	return fid->ops->ops_open(fid, name, flags, ops, context);
}

/*
 * Replaces functions of the library by those of the application, FI_SET_OPS_*. `ops` must stay
 * valid. -FI_ENOSYS: unknown name. fi_fabric(3)
 */
WEFT_CALL int fi_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops,
			 void *context)
{
	if (!FI_CHECK_OP(fid->ops, struct fi_ops, ops_set))
		return -FI_ENOSYS;
	return fid->ops->ops_set(fid, name, flags, ops, context);
}

/* ---- Calls: finding and opening -------------------------------------------------------------- */

/*
 * Returns the matching entries, best first, in *info; free them with fi_freeinfo. version: the API
 * that the program was written for. node and service: the peer, or with FI_SOURCE ourselves; NULL:
 * any. hints: requirements; NULL: none. flags: FI_NUMERICHOST FI_SOURCE FI_PROV_ATTR_ONLY; others
 * have no effect. -FI_ENODATA: nothing matches; -FI_ENOSYS: version above the library's;
 * -FI_EINVAL, -FI_ENOMEM. fi_getinfo(3)
 */
EXTERNALLY_VISIBLE int fi_getinfo(uint32_t version, const char *node, const char *service,
				  uint64_t flags, const struct fi_info *hints,
				  struct fi_info **info);

/*
 * Frees a list of fi_getinfo or a copy, with all that it points to; NULL is allowed. fi_getinfo(3)
 */
EXTERNALLY_VISIBLE void fi_freeinfo(struct fi_info *info);

/*
 * Returns a deep copy of the first entry, with next NULL; of NULL an empty entry with all attribute
 * structs. NULL: no memory. Free it with fi_freeinfo. fi_getinfo(3)
 */
EXTERNALLY_VISIBLE struct fi_info *fi_dupinfo(const struct fi_info *info);

/* Returns an empty entry with all attribute structs, for hints. NULL: no memory. fi_getinfo(3) */
WEFT_CALL struct fi_info *fi_allocinfo(void)
{
	return fi_dupinfo(NULL);
}

/*
 * Opens the fabric that attr names. -FI_EINVAL: attr, its name or prov_name is NULL; -FI_ENODEV: no
 * such provider. fi_fabric(3)
 */
EXTERNALLY_VISIBLE int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
				 void *context);

/* As fi_fabric, for info->fabric_attr. -FI_EINVAL: flags not 0, or info NULL. fi_fabric(3) */
EXTERNALLY_VISIBLE int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags,
				  void *context);

/*
 * Opens an object of the library itself: "logging" or "mr_cache", with attr NULL, attr_len and flags
 * 0. -FI_ENOSYS: unknown name; -FI_EALREADY: a log is imported. fi_fabric(3)
 */
EXTERNALLY_VISIBLE int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len,
			       uint64_t flags, struct fid **fid, void *context);

/* ---- Calls: text ----------------------------------------------------------------------------- */

/* Type that `data` of fi_tostr points to. */
enum fi_type {
	FI_TYPE_INFO,           /* struct fi_info, this entry */
	FI_TYPE_EP_TYPE,        /* enum fi_ep_type */
	FI_TYPE_CAPS,           /* uint64_t */
	FI_TYPE_OP_FLAGS,       /* uint64_t */
	FI_TYPE_ADDR_FORMAT,    /* uint32_t */
	FI_TYPE_TX_ATTR,        /* struct fi_tx_attr */
	FI_TYPE_RX_ATTR,        /* struct fi_rx_attr */
	FI_TYPE_EP_ATTR,        /* struct fi_ep_attr */
	FI_TYPE_DOMAIN_ATTR,    /* struct fi_domain_attr */
	FI_TYPE_FABRIC_ATTR,    /* struct fi_fabric_attr */
	FI_TYPE_THREADING,      /* enum fi_threading */
	FI_TYPE_PROGRESS,       /* enum fi_progress */
	FI_TYPE_PROTOCOL,       /* uint32_t */
	FI_TYPE_MSG_ORDER,      /* uint64_t */
	FI_TYPE_MODE,           /* uint64_t */
	FI_TYPE_AV_TYPE,        /* enum fi_av_type */
	FI_TYPE_ATOMIC_TYPE,    /* enum fi_datatype */
	FI_TYPE_ATOMIC_OP,      /* enum fi_op */
	FI_TYPE_VERSION,        /* not read: the version of the library */
	FI_TYPE_EQ_EVENT,       /* uint32_t */
	FI_TYPE_CQ_EVENT_FLAGS, /* uint64_t */
	FI_TYPE_MR_MODE,        /* int */
	FI_TYPE_OP_TYPE,        /* enum fi_op_type */
	FI_TYPE_FID,            /* struct fid */
	FI_TYPE_COLLECTIVE_OP,  /* enum fi_collective_op */
	FI_TYPE_HMEM_IFACE,     /* enum fi_hmem_iface */
	FI_TYPE_CQ_FORMAT,      /* enum fi_cq_format */
	FI_TYPE_LOG_LEVEL,      /* enum fi_log_level */
	FI_TYPE_LOG_SUBSYS,     /* enum fi_log_subsys */
	FI_TYPE_AV_ATTR,        /* struct fi_av_attr */
	FI_TYPE_CQ_ATTR,        /* struct fi_cq_attr */
	FI_TYPE_MR_ATTR,        /* struct fi_mr_attr */
	FI_TYPE_CNTR_ATTR,      /* struct fi_cntr_attr */
	FI_TYPE_CQ_ERR_ENTRY,   /* struct fi_cq_err_entry */
	FI_TYPE_CQ_WAIT_COND,   /* enum fi_cq_wait_cond */
	FI_TYPE_WAIT_OBJ        /* enum fi_wait_obj */
};

/* Returns data as text, in a buffer of the library that the next call overwrites. fi_fabric(3) */
EXTERNALLY_VISIBLE char *fi_tostr(const void *data, enum fi_type datatype);

/* As fi_tostr, into buf of len bytes, truncated if needed; returns buf. fi_fabric(3) */
EXTERNALLY_VISIBLE char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype);

/* ---- Calls: settings ------------------------------------------------------------------------- */

enum fi_param_type {
	FI_PARAM_STRING,
	FI_PARAM_INT,
	FI_PARAM_BOOL, /* 0 1 on off yes no true false */
	FI_PARAM_SIZE_T
};

/* An environment variable that the library reads. */
struct fi_param {
	const char *name;
	enum fi_param_type type;
	const char *help_string;
	const char *value; /* as set, or NULL */
};

/*
 * Returns all settings in *params: *count entries, then one whose name is NULL. Free them with
 * fi_freeparams. fi_param(3)
 */
EXTERNALLY_VISIBLE int fi_getparams(struct fi_param **params, int *count);

/* Frees the array of fi_getparams with its texts.  fi_param(3) */
EXTERNALLY_VISIBLE void fi_freeparams(struct fi_param *params);

#ifdef __cplusplus
}
#endif

#endif /* RDMA_FABRIC_H */
