/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract between the engine (src/xfer) and a transport (src/hw/NAME). A transport gives one
 * `struct transport`; for every worker the engine opens a state of it, and for every connected peer a
 * link: a reliable, ordered path.
 *
 * Every function here is called with the domain's lock held (or by the only thread) and must not
 * block. A transport calls up only from `progress`, and only by the
 * functions of link/upcall.h.
 */
#ifndef WEFT_LINK_LINK_H
#define WEFT_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define WIRE_FDS 2 /* descriptors that travel with a hello */

struct addr;
struct fi_info;
struct fi_mr_dmabuf;
struct fi_ops_msg;
struct fi_rma_iov;
struct link;
struct offload_cm;
struct worker;
struct wire_hello;
struct wire_nic;

/* A packet as it is sent and delivered: see wire.h for the words. */
struct packet {
	uint64_t head;
	uint64_t tag;
	uint64_t data; /* meaningful with WIRE_DATA */
	const void *payload;
	size_t len;
};

/*
 * Bytes for a device to move between segments of ours and ranges of the peer's memory, both of the same
 * length in all, which is not 0. The lists are the caller's again after the call.
 */
struct link_rdma {
	uint64_t id; /* the engine's, for rx_rdma_done */
	bool write;  /* from us to the peer; else the other way */
	bool now;    /* the device gets all of it within the call, or post fails with -FI_EAGAIN */
	const struct iovec *local;
	size_t local_count; /* at most WIRE_IOV_MAX, likewise of the other list */
	const struct fi_rma_iov *remote;
	size_t remote_count;
};

/* The protocols by which a message goes out; of those with a rendezvous the better ones come first. */
enum proto {
	PROTO_COPY,   /* one packet, which the link copies */
	PROTO_ZCOPY,  /* one packet, which the link may send from the application's memory later */
	PROTO_RDMA,   /* RTS: the receiver's device reads the memory */
	PROTO_BOUNCE, /* RTS: the receivers copy it out of the sender's bounce buffer */
	PROTO_PIPE,   /* RTS: the receiver's kernel copies it out of a pipe that holds the pages */
	PROTO_SPEC,   /* RTS and speculative fragments */
	PROTO_FETCH /* RTS: the receiver reads the memory by CMA or, if it cannot, sends CTS for fragments */
};

/*
 * What a link does: a table for each capability, each complete. A link that lacks a capability has the table
 * of link.c that refuses.
 */

/* Packets. Every link has them. */
struct link_ops {
	/*
	 * Sends one packet. The payload is copied before it returns. 0; -FI_EAGAIN: no space now, there will be
	 * some, or it is better sent by zcopy; -FI_EMSGSIZE: more than link->eager_max bytes of payload. The order
	 * of the arguments is that of fi_tsend, so that they stay in the registers they came in.
	 */
	int (*send)(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		    uint64_t tag);
	/*
	 * The same with the payload in segments, at most packet_max bytes; p->payload is not read, p->len is the
	 * sum of their lengths.
	 */
	int (*sendv)(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count);
	/*
	 * Frees the link, and its socket if it is a LINK_SOCKET. The peer can read packets already sent as far as
	 * the transport can see to it; if link->failed, packets that have not left never do.
	 */
	void (*close)(struct link *link);
};

/* Sending from memory that stays as it is until the packet is out. Used from link->zcopy_min bytes on. */
struct link_zcopy_ops {
	/*
	 * As link_ops.sendv, but a packet that the transport cannot send at once, or sends together with later
	 * ones, goes out by later progress calls straight from `iov`: it has number link->zcopy_posted.
	 */
	int (*sendv)(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count);
	/* Copies what is posted: the memory is its owners' again. 0 or -FI_ENOMEM: the link has failed. */
	int (*copy_out)(struct link *link);
};

/* Memory that the peer reads by itself: that of long messages. */
struct link_rndv_ops {
	/*
	 * Lets the peer read these segments by link_rdma_ops.post (PROTO_RDMA) or by link_local_ops.fetch
	 * (PROTO_BOUNCE, PROTO_PIPE) until `dereg` is called with *registered, or longer where registrations are kept; writes the keys to `at` with addresses
	 * and lengths. `batch` names the work the segments are for: within one batch the same memory holds the same
	 * bytes. 0, or negative: not these.
	 */
	int (*reg)(struct link *link, enum proto proto, const struct iovec *iov, size_t count,
		   const void *batch, struct fi_rma_iov *at, void **registered);
	void (*dereg)(struct link *link, void *registered);
};

/* RDMA operations of a device, which need nothing of the peer. Used while link->rdma_usable. */
struct link_rdma_ops {
	/*
	 * Begins an operation. Operations are performed in the order in which they began, and rx_rdma_done tells of
	 * their ends in that order. When one fails rx_rdma_failed tells that it and all that began after it are not
	 * done, and link->rdma_usable is false for ever. The device may read or write our memory until then, or
	 * until `abort` returns. 0; or negative: not this one, nothing has begun.
	 */
	int (*post)(struct link *link, const struct link_rdma *op);
	/* What has begun stays undone as it is, untold; the device leaves our memory alone from now on. */
	void (*abort)(struct link *link);
};

/* Access to the memory of a peer on this host, see link_has_local. */
struct link_local_ops {
	/*
	 * Copies from the peer's memory, without the peer, until the shorter side is full. `key`: of the first
	 * segment, as link_rndv_ops.reg of the peer wrote it; 0: it did not, or this begins further on. The bytes copied, or
	 * negative: impossible from here (and stays so), the engine then asks the peer to send.
	 */
	ssize_t (*fetch)(struct link *link, const struct iovec *local, size_t local_count,
			 const struct iovec *remote, size_t remote_count, uint64_t key);
	/*
	 * In one copy: bytes between our segments and ranges of the peer's regions, both of the same length in all.
	 * Key, rights and bounds of every range are looked up in the peer's own table before the first byte moves,
	 * and a region is not closed meanwhile. The engine sees to the order: no operation that this one must not
	 * overtake is under way.
	 *   0              done
	 *   1              done, and the peer counts such accesses: tell it (WIRE_NOTIFY)
	 *   -FI_EFAULT     the memory behind the region, or ours, is not there; some may have moved
	 *   other negative not this way, nothing has moved: ask the peer by packets, which will know
	 *                  why; -FI_EAGAIN: too many others access it, or its worker is closing
	 */
	int (*put)(struct link *link, const struct iovec *local, size_t local_count,
		   const struct fi_rma_iov *remote, size_t remote_count);
	int (*get)(struct link *link, const struct iovec *local, size_t local_count,
		   const struct fi_rma_iov *remote, size_t remote_count);
	/* Would put (write) or get have a way to all these ranges right now? Moves nothing. */
	bool (*reach)(struct link *link, const struct fi_rma_iov *remote, size_t remote_count,
		      bool write);
	/*
	 * Takes back a WIRE_PUT packet (link->last after it was sent) that the peer has not begun to process: the
	 * peer processes neither it nor anything behind it until `release` is called for it, which must be soon.
	 * Returns the packet's payload, as it was sent, readable until the next call on the link, its length in
	 * *len; NULL: the peer has it. `release` with `done`: what the packet asks for is done, the peer passes
	 * over it; else it is the peer's again.
	 */
	const void *(*cancel_posted)(struct link *link, uint64_t place, size_t *len);
	void (*release)(struct link *link, uint64_t place, bool done);
	/*
	 * Takes back a WIRE_GET packet that the peer has not begun with, for good: the peer passes over it. True:
	 * nothing behind the packet had been done, either, when all that we have read by now was as we read it.
	 */
	bool (*recall_posted)(struct link *link, uint64_t place);
};

extern const struct link_zcopy_ops link_no_zcopy;
extern const struct link_rndv_ops link_no_rndv;
extern const struct link_rdma_ops link_no_rdma;
extern const struct link_local_ops link_no_local;

/* Embedded at the start of a transport's own link. */
struct link {
	const struct link_ops *ops;
	const struct link_zcopy_ops *zcopy;
	const struct link_rndv_ops *rndv;
	const struct link_rdma_ops *rdma;
	const struct link_local_ops *local;
	size_t eager_max;  /* longest message worth copying; longer ones go by rendezvous, or put */
	bool fetches;      /* link_local_ops.fetch is thought to work both ways */
	size_t bounce_max; /* bytes of a message up to which PROTO_BOUNCE is used; 0: never */
	size_t pipe_min; /* bytes of a message from which on PROTO_PIPE is used; SIZE_MAX: never */
	size_t spec_max; /* bytes of a message that follow its RTS speculatively; 0: none */
	size_t packet_max; /* longest payload of one packet, at least WIRE_PACKET_MIN */
	size_t zcopy_min; /* payloads from here on are better sent by link_zcopy_ops; SIZE_MAX: none */
	/* Packets that a call of link_zcopy_ops did not send completely; counted for ever. */
	uint64_t zcopy_posted;
	uint64_t zcopy_done; /* of them: sent completely, or copied */
	bool failed;         /* the engine's: what was under way was reported as failed */
	bool rdma_usable;    /* link_rdma_ops.post works */
	bool reaches;        /* by keys of the peer's library that say so, too: mr_key_in_nic */
	bool counted;        /* the peer counts such accesses: tell it (WIRE_NOTIFY) */
	bool silent; /* accepted, and nothing has come by it yet: its peer may have given up before */
	int reason; /* prov_errno of what ends with it; 0: the error itself */
	uint64_t
		last; /* where the last packet of sendv, or with WIRE_DATA, went: for cancel_posted */
};

/* A link that lacks all but packets. */
#define LINK_BARE                                                                                  \
	.zcopy = &link_no_zcopy, .rndv = &link_no_rndv, .rdma = &link_no_rdma,                     \
	.local = &link_no_local, .zcopy_min = SIZE_MAX, .pipe_min = SIZE_MAX

/* Does the link reach the peer's memory by link_local_ops? */
static inline bool link_has_local(const struct link *link)
{
	return link->local != &link_no_local;
}

/* Is a zero-copy send not out yet? */
static inline bool link_holds(const struct link *link)
{
	return link->zcopy_posted != link->zcopy_done;
}

/* What the engine learned about the other side before it asks for a link. */
struct link_peer {
	const struct wire_hello *hello; /* checked */
	uint32_t id; /* how our packets name us to the peer; of a LINK_SOCKET the peer itself, as
			`src` of rx_deliver */
	int fds[WIRE_FDS]; /* the descriptors that came with the hello, or -1; the callee takes them */
	int sock; /* bootstrap socket, open as long as the link: one byte on it wakes the peer; of a
		      LINK_SOCKET the link's from now on, unless connect fails */
	pid_t pid;     /* as the kernel tells; 0 when it is not visible from here */
	void *pending; /* of `prepare`: the link's if connect succeeds, else still the engine's */
};

/* Memory that a device gets to know. */
struct device_region {
	struct iovec memory;
	uint64_t access;                   /* as in fi_mr(3) */
	bool bare;                         /* some of it may be without pages, now or later */
	const struct fi_mr_dmabuf *dmabuf; /* it is of that buffer; NULL: of this process */
};

/* Memory as a device knows it. */
struct device_memory {
	void *handle; /* the device's */
	uint32_t lkey, rkey;
};

/*
 * A device that the application registers its memory with, and whose operations reach that memory by
 * themselves. Opened once for a domain, whose lock is not held.
 */
struct device_ops {
	/* The one that has this address. 0 or a negative error. */
	int (*open)(const struct addr *at, void **device);
	void (*close)(void *device);
	/* 0 or a negative error, -FI_EOPNOTSUPP if the device has no way to such memory. */
	int (*add)(void *device, const struct device_region *region, struct device_memory *mem);
	/* Nobody gets at the memory any more when it returns. */
	int (*remove)(void *device, struct device_memory *mem);
	/* Narrows what an entry promises to what the device at this address can do. 0 or an error. */
	int (*limit)(const struct addr *at, struct fi_info *info);
	/*
	 * What one atomic may carry: 0, with the number of elements and their size, -FI_EINVAL or
	 * -FI_EOPNOTSUPP. `form` is enum atomic_form of atomic/atomic.h, the others enums of the interface.
	 */
	int (*atomic)(int form, int datatype, int op, size_t *count, size_t *size);
	/*
	 * A queue of receives that endpoints of the domain share: -FI_EOPNOTSUPP where the device has none.
	 * The receive half of the table posts to it, the context's `device_srx`. Domain locked, but for
	 * opening. For `srx_cancel` see offload_ops.cancel.
	 */
	int (*srx_open)(void *device, size_t size, void **srx);
	void (*srx_close)(void *srx);
	int (*srx_cancel)(void *srx, void *context);
	const struct fi_ops_msg *srx_msg;
	/* What a prov_errno of a failed operation means. */
	const char *(*error_text)(int prov_errno);
};

/* Whom a transport connects, and how its links come about. A worker opens one transport of a kind. */
enum link_kind {
	LINK_HOST, /* peers on this host: the descriptors of both hellos lead to shared memory */
	LINK_DEVICE, /* peers whose device is on the same network: `prepare` describes our end of a link */
	LINK_SOCKET, /* peers across the network: the packets travel on the bootstrap socket */
	LINK_NONE, /* no links: datagrams, or a device that performs the endpoint's operations itself */
	LINK_KINDS
};

struct transport {
	const char *name;
	unsigned int bit; /* PROVIDER_ bit of info/providers.h */
	/*
	 * Of LINK_SOCKET: the link owns the bootstrap socket, which is non-blocking, in no epoll instance, and
	 * noted with forked_guard; the link reads all of it and tells rx_ended of its end.
	 */
	enum link_kind kind;
	/* The transport's state for one worker; NULL where its address has no such way out. 0 or a
	 * negative error. */
	int (*open)(struct worker *worker, void **state);
	/* May wait, a bounded time, until peers have what was sent last. */
	void (*close)(void *state);
	/* Delivers what has come, a bounded number of packets. true when there was anything. */
	bool (*progress)(void *state);
	/*
	 * After true, the next packet, or room for what is pending, makes the worker's descriptor
	 * readable: by the bootstrap socket, or by `fd`; false: there is one already.
	 */
	bool (*arm)(void *state);
	/* A descriptor, the state's, that the worker watches; -1: none. NULL: likewise. */
	int (*fd)(void *state);
	/* The descriptors that go out with our hello, then -1; they stay ours. NULL: none. */
	void (*hello_fds)(void *state, int fds[WIRE_FDS]);
	/*
	 * Of transports whose both ends must know of each other before there is a link: makes our half
	 * of one and fills in what our hello says of it. `theirs` is what the peer's hello said, NULL when
	 * ours is the first. connect takes the half, or abandon ends it. 0 or a negative error. NULL: a
	 * hello is all that is needed.
	 */
	int (*prepare)(void *state, const struct wire_nic *theirs, struct wire_nic *ours,
		       void **pending);
	void (*abandon)(void *state, void *pending);
	/* Makes the link. 0 or a negative error. */
	int (*connect)(void *state, const struct link_peer *peer, struct link **link);
	/*
	 * Waits, a bounded time, until what was sent has arrived: the bootstrap sockets are closed
	 * next, and nothing that comes in is for anybody. What is fetched from our memory from now on
	 * is nobody's message. NULL: a peer that reads a socket's end has all, and fetches nothing.
	 */
	void (*drain)(void *state);
	/*
	 * The peer of this id has died: what it left half done must not stop others. true: whole
	 * messages of it stand behind others' and will be delivered later, under its id.
	 */
	bool (*reap)(void *state, uint32_t id);
	/*
	 * `quiesce` notes the direct accesses (put, get) by peers that are under way; with `last`
	 * none may begin after it. `quiesced`: all that were noted have ended; while not, *id is a
	 * peer whose has not. Only the peer itself, or reap, ends one. NULL: there are no such
	 * accesses; reap may be NULL, too, and is then false.
	 */
	void (*quiesce)(void *state, bool last);
	bool (*quiesced)(void *state, uint32_t *id);
	/* Of transports by link/offload.h; else NULL. */
	const struct device_ops *device;
	const struct offload_cm *cm;
};

extern const struct transport shm_transport;
extern const struct transport tcp_transport;
extern const struct transport verbs_transport;
extern const struct transport udp_transport; /* datagrams, by xfer/dgram/dgram.h */
extern const struct transport ud_transport;  /* the same over a device's queue pair */
extern const struct transport rc_transport;  /* bare queue pairs, by link/offload.h */

/* All of them in the order in which a worker opens them, then NULL. */
extern const struct transport *const transports[];

#endif
