/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer providers: one provider (the owner) lets another (the peer) write into its queues.  For
 * writers of providers only; both sides must be of the same release.  The
 * providers of this library have no peers.
 *
 * The pattern: the owner opens an object of the peer with FI_PEER in the flags and one of the
 * *_context structs below as context.  `size` is the size the owner knows.  What such a struct
 * points to stays the owner's and must live until the peer's object is closed.  owner_ops are
 * filled by the owner and called by the peer, peer_ops the other way round.
 */
#ifndef FI_PEER_H
#define FI_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_ext.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- address vector: fi_av_open() --- */

struct fid_peer_av;

struct fi_ops_av_owner {
	size_t size;
	/* Fill attr with what the AV is now. */
	int (*query)(struct fid_peer_av *av, struct fi_av_attr *attr);
	/* Address of a local endpoint, FI_ADDR_NOTAVAIL when it was not inserted. */
	fi_addr_t (*ep_addr)(struct fid_peer_av *av, struct fid_ep *ep);
};

struct fid_peer_av {
	struct fid fid;
	struct fi_ops_av_owner *owner_ops;
};

struct fi_peer_av_context {
	size_t size;
	struct fid_peer_av *av;
};

/* --- AV set: fi_av_set() --- */

struct fid_peer_av_set;
/* Never defined: the interface has this name, but means struct fid_peer_av_set. */
struct fi_peer_av_set;

struct fi_ops_av_set_owner {
	size_t size;
	/* Copy the members; *count: room, then how many.  -FI_ETOOSMALL when they do not fit. */
	int (*members)(struct fid_peer_av_set *av_set, fi_addr_t *addr, size_t *count);
};

struct fid_peer_av_set {
	struct fid fid;
	struct fi_ops_av_set_owner *owner_ops;
};

struct fi_peer_av_set_context {
	size_t size;
	struct fi_peer_av_set *av_set;
};

/* --- completion queue: fi_cq_open() --- */

struct fid_peer_cq;

/* The owner locks, signals and handles overflow; it ignores fields that the CQ format lacks. */
struct fi_ops_cq_owner {
	size_t size;
	/* src is relative to the peer's AV, or FI_ADDR_NOTAVAIL. */
	ssize_t (*write)(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len,
			 void *buf, uint64_t data, uint64_t tag, fi_addr_t src);
	ssize_t (*writeerr)(struct fid_peer_cq *cq, const struct fi_cq_err_entry *err_entry);
};

struct fid_peer_cq {
	struct fid fid;
	struct fi_ops_cq_owner *owner_ops;
};

/* The owner drives the peer's progress with fi_cq_read(cq, NULL, 0). */
struct fi_peer_cq_context {
	size_t size;
	struct fid_peer_cq *cq;
};

/* --- counter: fi_cntr_open() --- */

struct fid_peer_cntr;

struct fi_ops_cntr_owner {
	size_t size;
	void (*inc)(struct fid_peer_cntr *cntr);
	void (*incerr)(struct fid_peer_cntr *cntr);
};

struct fid_peer_cntr {
	struct fid fid;
	struct fi_ops_cntr_owner *owner_ops;
};

struct fi_peer_cntr_context {
	size_t size;
	struct fid_peer_cntr *cntr;
};

/* --- domain: fi_domain2(), event queue: fi_eq_open(); the owner's own objects --- */

struct fi_peer_domain_context {
	size_t size;
	struct fid_domain *domain;
};

struct fi_peer_eq_context {
	size_t size;
	struct fid_eq *eq;
};

/* --- shared receive context: fi_srx_context() --- */

struct fid_peer_srx;

/* A receive, or a message waiting for one; allocated by the owner, ended with free_entry. */
struct fi_peer_rx_entry {
	struct fid_peer_srx *srx;
	fi_addr_t addr;
	size_t msg_size;	/* bytes of the incoming message */
	uint64_t tag;
	uint64_t cq_data;	/* valid with FI_REMOTE_CQ_DATA in flags */
	uint64_t flags;
	void *context;		/* the application's */
	size_t count;		/* entries in iov and desc */
	void **desc;
	void *peer_context;	/* the peer's */
	void *owner_context;	/* the owner's */
	struct iovec *iov;
};

/* Attributes of an incoming message, to find its receive. */
struct fi_peer_match_attr {
	fi_addr_t addr;		/* FI_ADDR_UNSPEC when not known */
	size_t msg_size;	/* bytes */
	uint64_t tag;		/* for get_tag */
};

struct fi_ops_srx_owner {
	size_t size;
	/*
	 * Find the receive for a message.  0: *entry has the buffers.  -FI_ENOENT: none yet;
	 * *entry is valid, the peer sets peer_context and queues it with queue_msg or queue_tag.
	 * Getting and queueing must not be interleaved with another message's.
	 */
	int (*get_msg)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		       struct fi_peer_rx_entry **entry);
	int (*get_tag)(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		       struct fi_peer_rx_entry **entry);
	int (*queue_msg)(struct fi_peer_rx_entry *entry);
	int (*queue_tag)(struct fi_peer_rx_entry *entry);
	/* New addresses are known: ask get_addr for each queued entry that has none. */
	void (*foreach_unspec_addr)(struct fid_peer_srx *srx,
				    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry));
	void (*free_entry)(struct fi_peer_rx_entry *entry);
};

/* Called for an entry that the peer had queued: start it, or discard its message. */
struct fi_ops_srx_peer {
	size_t size;
	int (*start_msg)(struct fi_peer_rx_entry *entry);
	int (*start_tag)(struct fi_peer_rx_entry *entry);
	int (*discard_msg)(struct fi_peer_rx_entry *entry);
	int (*discard_tag)(struct fi_peer_rx_entry *entry);
};

struct fid_peer_srx {
	struct fid_ep ep_fid;
	struct fi_ops_srx_owner *owner_ops;
	struct fi_ops_srx_peer *peer_ops;
};

struct fi_peer_srx_context {
	size_t size;
	struct fid_peer_srx *srx;
};

/* --- transfers of one over the other: fi_endpoint2() with FI_PEER_TRANSFER --- */

/* Called when a transfer that the peer started over the owner ends; never recursively. */
struct fi_ops_transfer_peer {
	size_t size;
	ssize_t (*complete)(struct fid_ep *ep, struct fi_cq_tagged_entry *buf, fi_addr_t src_addr);
	ssize_t (*comperr)(struct fid_ep *ep, struct fi_cq_err_entry *buf);
};

struct fi_peer_transfer_context {
	size_t size;
	struct fi_info *info;			/* the owner's limits, or NULL */
	struct fid_ep *ep;			/* the owner's endpoint */
	struct fi_ops_transfer_peer *peer_ops;	/* filled by the peer before it returns */
};

#ifdef __cplusplus
}
#endif

#endif /* FI_PEER_H */
