/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract between the engine (src/xfer) and a transport (src/hw/NAME). Each transport defines
 * one `struct transport`. The engine opens one state of the transport per worker, and one link per
 * connected peer: a reliable, ordered path.
 *
 * The engine calls every function here with the domain's lock held (or from the only thread), and no function may block.
 * A transport tells it by link/opener.h what has come and ended, only from `progress` (shm also from `reap`).
 */
#ifndef WEFT_LINK_LINK_H
#define WEFT_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define WIRE_FDS 2 /* descriptors that travel with a hello */

#define LINK_INJECT_MAX      4096     /* bytes; fits one packet of every transport */
#define TRANSPORT_OWNER_MASK 0xfffffu /* bits of an id that `blocked` of a transport knows */

struct addr;
struct entry_tables;
struct fi_info;
struct fi_mr_dmabuf;
struct fi_rma_iov;
struct link;
struct link_cursor;
struct offload_cm;
struct opener;
struct wire_hello;
struct wire_nic;

/* A packet as a link sends and delivers it. wire.h defines the words. */
struct packet {
	uint64_t head;
	uint64_t tag;
	uint64_t data; /* meaningful with WIRE_DATA */
	const void *payload;
	size_t len;
};

/*
 * A copy between our segments (`local`) and ranges of the peer's memory (`remote`). Both lists have the same total length,
 * for devices not 0. They belong to the caller and need to be valid only during the call.
 */
struct link_copy {
	uint64_t id;  /* chosen by the engine; link_events.copied reports it */
	bool write;   /* from us to the peer; false: from the peer to us */
	bool message; /* `remote` is a message's memory, as the sender named it; false: regions */
	bool at_once; /* ends within the call, or is refused */
	bool look;    /* moves nothing: could it be done right now, in regions, at once? */
	bool now;     /* a device gets all of it within the call, or it fails with -FI_EAGAIN */
	/* Of a message it may be longer than `remote`, all of which is copied. */
	const struct iovec *local;
	size_t local_count; /* at most WIRE_IOV_MAX; the same limit holds for remote_count */
	const struct fi_rma_iov *remote; /* key: of the region; from `reg`, of a message; or 0 */
	size_t remote_count;
};

/* How a copy went; else a negative error. */
enum link_copied {
	LINK_DONE,
	LINK_COUNTED,  /* done; the peer counts such accesses to its regions: send it WIRE_NOTIFY */
	LINK_TOGETHER, /* done, of a message: its sender was asked to copy a part */
	LINK_UNDER_WAY /* link_events.copied tells the end, with one of the above or an error of `copy` */
};

/* The functions of a link, one complete table per capability. link.c has the tables that refuse. */

/* Sending packets. Every link can. */
struct link_ops {
	/*
	 * Sends one packet. Copies the payload before it returns. Returns 0: a message has left the process, another
	 * packet does so soon; -FI_EAGAIN if there is no space now (there will be later), or if zcopy->sendv suits
	 * the packet better; -FI_EMSGSIZE if the payload is longer than link->eager_max bytes. The arguments have
	 * fi_tsend's order, so that they stay in their registers.
	 */
	int (*send)(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		    uint64_t tag);
	/*
	 * Like `send`, with the payload in segments of at most packet_max bytes in all. Ignores p->payload; p->len is
	 * the sum of the segment lengths. While zcopy_min is 0, a message, too, only leaves soon.
	 */
	int (*sendv)(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count);
	/*
	 * Frees the link and, for LINK_SOCKET, its socket. Packets already sent stay readable for the peer as far as
	 * the transport can arrange. If link->failed, unsent packets are discarded.
	 */
	void (*close)(struct link *link);
};

/* Sending later, from memory that stays unchanged. Used from link->zcopy_min bytes on. */
struct link_zcopy_ops {
	/*
	 * Like link_ops.sendv, but the transport may delay the packet, or batch it with later ones. Later progress
	 * calls then send it straight from `iov`, and the packet's number is link->zcopy_posted.
	 */
	int (*sendv)(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count);
	/* Copies posted payloads: their memory is free. Returns 0 or -FI_ENOMEM: link failed. */
	int (*copy_out)(struct link *link);
	/*
	 * With `more`, more packets will be sent right after the next one (FI_MORE), which may wait for them. Without, sends
	 * packets that wait for others, as far as there is space.
	 */
	void (*cork)(struct link *link, bool more);
};

/* Memory of messages and regions, ours and the peer's. */
struct link_memory_ops {
	/*
	 * Makes these segments of a message readable for the peer's device, by `copy`. They
	 * stay readable until `dereg(*registered)`, or longer if registrations are cached. Writes addresses, lengths and
	 * keys to `at`. Returns 0, or a negative error if these segments cannot be registered.
	 */
	int (*reg)(struct link *link, const struct iovec *iov, size_t count, struct fi_rma_iov *at,
		   void **registered);
	void (*dereg)(struct link *link, void *registered);
	/*
	 * Copies without the peer's software; in a host the peer may be asked to copy a part. On
	 * regions, keys, rights and bounds of all ranges are looked up before the first byte moves, and no region
	 * closes during the copy. Copies on regions that a device was given are performed, and reported, in the order of the
	 * calls; in a host the engine lets none begin while an operation that must precede it is outstanding. The link may
	 * access our memory until the end is reported, or `abort` returns. Returns enum link_copied, or
	 *   -FI_EFAULT     a region's memory, or ours, is not mapped; some bytes may have moved
	 *   other negative nothing has moved: send the request in packets, the peer reports errors; or ask for the message.
	 *                  -FI_EAGAIN: later, too many accesses, or the peer's worker is closing
	 * If a device fails, rdma_failed reports that it has not done this copy and all later ones, and link->rdma_usable
	 * is false for good; a link over several devices may report less: rma_failed, copied.
	 */
	int (*copy)(struct link *link, const struct link_copy *copy);
	/* Abandons all copies under way, unreported. Nobody accesses our memory for them any more. */
	void (*abort)(struct link *link);
	/*
	 * Performs the one-sided request of packet `place`, link->last from just after it was sent, which the peer has not
	 * begun with: the peer skips the packet. A write (WIRE_PUT) takes the data from the packet, whose payload they end,
	 * and nothing else of `copy` but the ranges; nothing behind the packet takes effect meanwhile. Of a read (WIRE_GET)
	 * nothing is read if `local` is NULL, and nothing counts that later packets may have changed. Returns what `copy`
	 * returns; negative but for -FI_EFAULT: it is left to the peer.
	 */
	int (*perform)(struct link *link, uint64_t place, const struct link_copy *copy);
};

extern const struct link_zcopy_ops link_no_zcopy;
extern const struct link_memory_ops link_no_memory;

/* `reg` and `dereg` of a link whose peer reads messages without being told where, by their addresses. */
int link_registers_nothing(struct link *link, const struct iovec *iov, size_t count,
			   struct fi_rma_iov *at, void **registered);
void link_deregisters_nothing(struct link *link, void *registered);
/* `perform` of a link whose device alone accesses the peer's memory. */
int link_performs_nothing(struct link *link, uint64_t place, const struct link_copy *copy);

/* Embedded at the start of a transport's own link. */
struct link {
	const struct link_ops *ops;
	const struct link_zcopy_ops *zcopy;
	const struct link_memory_ops *memory;
	size_t eager_max; /* longest message worth copying; longer ones go by rendezvous, or put */
	bool local; /* the peer is on this host: `copy` and `perform` access its regions by themselves */
	size_t packet_max; /* longest payload of one packet, at least WIRE_PACKET_MIN */
	/* Shortest payload (bytes) for link_zcopy_ops.sendv; SIZE_MAX: none; 0 while packets wait for others: all get a number. */
	size_t zcopy_min;
	size_t gather_max; /* longest payload (bytes) that waits for others in a stream; 0: none */
	/* Number of packets that link_zcopy_ops.sendv did not send completely; never reset. */
	uint64_t zcopy_posted;
	uint64_t zcopy_done; /* how many of those are sent completely, or copied */
	bool failed;         /* set by the engine: outstanding operations were reported as failed */
	bool rdma_usable;    /* a device copies, and reports the ends */
	bool reaches;        /* RDMA reaches regions with keys that satisfy mr_key_in_nic */
	bool counted;        /* the peer counts accesses by devices: LINK_COUNTED */
	bool securing;       /* takes no packet before link_events.ready */
	bool silent;         /* accepted, no packet received yet: the peer may have given up */
	int reason; /* prov_errno for operations that fail with the link; 0: the error itself */
	/* Place of the last packet that went by sendv or had WIRE_DATA: for `perform` */
	uint64_t last;
};

/* Tables of a link that can only send packets. */
#define LINK_BARE .zcopy = &link_no_zcopy, .memory = &link_no_memory, .zcopy_min = SIZE_MAX

/* Is a zero-copy send not out yet? */
static inline bool link_holds(const struct link *link)
{
	return link->zcopy_posted != link->zcopy_done;
}

/* What the engine has learned about the peer before it asks for a link. */
struct link_peer {
	const struct wire_hello *hello; /* already validated */
	/* Names us to the peer in our packets; LINK_SOCKET: names the peer, `src` of link_events. */
	uint32_t id;
	/* Descriptors that came with the hello, or -1. connect takes ownership. */
	int fds[WIRE_FDS];
	/*
	 * Bootstrap socket, open as long as the link: one byte on it wakes the peer. LINK_SOCKET:
	 * connect takes ownership if it succeeds.
	 */
	int sock;
	pid_t pid; /* from the kernel; 0 if the process is not visible from here */
	/* Key of TLS_KEY bytes, by which LINK_SOCKET encrypts this socket; NULL: it does not */
	const uint8_t *key;
	bool initiator; /* we have begun the connection */
	uint32_t
		rails; /* LINK_SOCKET: so many sockets it may have, which `join` brings; 0: this one alone */
	/* From `prepare`: the link takes it if connect succeeds, else the engine keeps it */
	void *pending;
};

/* Memory to register with a device. */
struct device_region {
	struct iovec memory;
	uint64_t access; /* as in fi_mr(3) */
	bool bare; /* some pages may not be allocated, now or later (FI_MR_ALLOCATED not set) */
	/* The memory's DMA buffer; NULL: this process's memory. */
	const struct fi_mr_dmabuf *dmabuf;
};

/* A registration at a device. */
struct device_memory {
	void *handle; /* owned by the device */
	uint32_t lkey, rkey;
};

/*
 * A device that accesses registered memory of the application by itself. Opened once per domain,
 * whose lock is not held.
 */
struct device_ops {
	/* Opens the device that has this address. Returns 0 or a negative error. */
	int (*open)(const struct addr *at, void **device);
	void (*close)(void *device);
	/* Was the device taken away? Nothing of it works any more. The domain's lock may be held. */
	bool (*removed)(void *device);
	/* Registers `region`. Returns 0 or a negative error, -FI_EOPNOTSUPP: not such memory. */
	int (*add)(void *device, const struct device_region *region, struct device_memory *mem);
	/* Once `remove` returns, nothing accesses the memory through the device any more. */
	int (*remove)(void *device, struct device_memory *mem);
	/* Lowers the limits in `info` to the device's at this address. Returns 0 or an error. */
	int (*limit)(const struct addr *at, struct fi_info *info);
	/*
	 * Limits of one atomic: returns 0, the number of elements and their size; -FI_EINVAL or
	 * -FI_EOPNOTSUPP. `form` is enum atomic_form of atomic/atomic.h, the others are enums of
	 * the public interface.
	 */
	int (*atomic)(int form, int datatype, int op, size_t *count, size_t *size);
	/*
	 * A receive queue that endpoints of the domain share: `srx_open` returns -FI_EOPNOTSUPP if the device has none.
	 * The receive calls of `srx_entries` post to it; their context holds the queue in `device_srx`. Domain locked,
	 * except for `srx_open`. `srx_cancel` is like offload_ops.cancel.
	 */
	int (*srx_open)(void *device, size_t size, void **srx);
	void (*srx_close)(void *srx);
	int (*srx_cancel)(void *srx, void *context);
	const struct entry_tables *srx_entries;
	/* Returns the meaning of a prov_errno of a failed operation. */
	const char *(*error_text)(int prov_errno);
};

/* What a link knows of itself, for reports: see `describe` of struct transport. */
struct link_state {
	uint64_t credits;         /* packets, or slots of a ring, that the peer takes now */
	uint64_t unsent_bytes;    /* that the kernel has, and the peer has not acknowledged */
	uint64_t retransmissions; /* packets of the network that were sent again */
	uint32_t direct_read;     /* enum fi_weft_reason of reading the peer's memory */
};

/* Which peers a transport connects, and how. A worker opens one transport of each kind. */
enum link_kind {
	LINK_HOST, /* peers on this host: descriptors in both hellos give access to shared memory */
	/* peers whose device is on the same network: `prepare` describes our pending link */
	LINK_DEVICE,
	LINK_SOCKET, /* peers across the network: packets travel on the bootstrap socket */
	LINK_DGRAM,  /* no links: datagrams. The state begins with a struct dgram */
	/* no links: a device performs the endpoint's operations. The state begins with a struct offload */
	LINK_OFFLOAD,
	LINK_KINDS
};

struct transport {
	const char *name;
	unsigned int bit; /* PROVIDER_ bit of info/providers.h */
	/*
	 * For LINK_SOCKET the link owns the bootstrap socket: non-blocking, in no epoll instance, and noted with
	 * forked_guard. The link reads everything from the socket and reports its end by link_events.ended.
	 */
	enum link_kind kind;
	/*
	 * Opens the transport's state for one worker; sets NULL if the worker's address cannot use this transport.
	 * Returns 0 or a negative error.
	 */
	int (*open)(struct opener *opener, void **state);
	/* Waits, a bounded time, until peers have the last packets sent. */
	void (*close)(void *state);
	/* LINK_SOCKET: returns the socket that the link owns. NULL: the engine has it. */
	int (*sock)(const struct link *link);
	/* Links with `rails`: rail `rail` is `sock` of *peer from now on, as for connect. 0 or an error. NULL: none. */
	int (*join)(struct link *link, uint32_t rail, const struct link_peer *peer);
	/* Makes the link report a peer that is out of reach soon, by link_events.ended. False: it cannot tell. NULL: false. */
	bool (*ping)(struct link *link);
	/* LINK_SOCKET: has the other end's kernel, or its process, all that was sent, so that closing loses nothing? */
	bool (*arrived)(const struct link *link);
	/* Fills in what the link knows of itself, for reports. NULL: nothing. */
	void (*describe)(const struct link *link, struct link_state *state);
	/* Delivers arrived packets, a bounded number per call. True: there was at least one, delivered or left waiting. */
	bool (*progress)(void *state);
	/*
	 * Has `progress` nothing to do before the word of `cursor` changes, an operation is posted or a link made?
	 * Asked after a progress call. NULL: false.
	 */
	bool (*idle)(const void *state);
	/* Returns where the next packet appears, as long as the state is open. Only LINK_HOST; NULL: nowhere. */
	struct link_cursor *(*cursor)(void *state);
	/*
	 * True: the next packet, or space for a blocked packet, will make the worker's descriptor
	 * readable, by the bootstrap socket or by `fd`. False: something is there already.
	 */
	bool (*arm)(void *state);
	/* Returns a descriptor for the worker to watch, owned by the state; -1: none. NULL: -1. */
	int (*fd)(void *state);
	/* Fills in the descriptors to send with our hello (still ours), then -1. NULL: none. */
	void (*hello_fds)(void *state, int fds[WIRE_FDS]);
	/*
	 * For transports whose two ends must know each other before a link exists: makes a pending link and describes
	 * it in `ours`, for our hello. `theirs` comes from the peer's hello; NULL if our hello is the first. connect
	 * takes the pending link, or `abandon` frees it. Returns 0 or a negative error. NULL: a hello is enough.
	 */
	int (*prepare)(void *state, const struct wire_nic *theirs, struct wire_nic *ours,
		       void **pending);
	void (*abandon)(void *state, void *pending);
	/* Makes the link. Returns 0 or a negative error. */
	int (*connect)(void *state, const struct link_peer *peer, struct link **link);
	/*
	 * Waits, a bounded time, until everything sent has arrived. The engine closes the bootstrap sockets next and
	 * discards later arrivals; a copy of our memory after this call must not yield a message. NULL: not needed,
	 * because a peer that sees the socket's end already has everything and fetches nothing.
	 */
	void (*drain)(void *state);
	/*
	 * Cleans up what the dead peer `id` left half done in shared memory, so that others are not blocked. True:
	 * complete messages of the peer are queued behind others' and will be delivered later, under its id. NULL: false.
	 */
	bool (*reap)(void *state, uint32_t id);
	/*
	 * `quiesce` records the direct accesses of peers that are in progress; with `last`, no new one may begin.
	 * `quiesced` is true when all recorded accesses have ended; else *id is a peer whose access is still in
	 * progress. Only that peer, `reap` or `disown` can end its access. NULL: the transport has no direct accesses.
	 */
	void (*quiesce)(void *state, bool last);
	bool (*quiesced)(void *state, uint32_t *id);
	/* The accesses of peer `id` are none: it is not connected, or does something else. */
	void (*disown)(void *state, uint32_t id);
	/*
	 * Called again and again. Does a packet that is not there keep others from delivery, as it
	 * did at the last call? *mark names the packet, *owner the low bits of the id of the peer
	 * that is to write it, all set: nobody. `skip` lets others go on without the packet. What
	 * no peer can be about to write does not block. NULL: that cannot be.
	 */
	bool (*blocked)(void *state, uint64_t *mark, uint32_t *owner);
	void (*skip)(void *state);
	/* For transports of link/offload.h; else NULL. */
	const struct device_ops *device;
	const struct offload_cm *cm;
};

/* By this table rooms below and above src/hw find them: all transports in the order in which a worker opens them, then NULL. */
extern const struct transport *const transports[];

/* Returns the transport of a PROVIDER_ bit; NULL: there is none in this build. */
static inline const struct transport *transport_of(unsigned int bit)
{
	for (const struct transport *const *t = transports; *t; t++)
		if ((*t)->bit == bit)
			return *t;
	return NULL;
}

#endif
