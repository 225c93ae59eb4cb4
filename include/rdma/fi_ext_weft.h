/* SPDX-License-Identifier: BSD-2-Clause */
/* Extensions of this library. fi_weft(7) */
#ifndef FI_EXT_WEFT_H
#define FI_EXT_WEFT_H

#include <rdma/fabric.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name for fi_open_ops on an endpoint of any type, which then returns struct fi_weft_ops_stats. */
#define FI_WEFT_STATS "weft_stats"

/*
 * What an endpoint keeps for its peers. Members are only ever added at the end; a program that was
 * compiled with an older header reads those it knows.
 */
struct fi_weft_stats {
	size_t size; /* bytes of this structure that are filled in, as the library sets it */
	/* Messages that no receive has taken yet, and the bytes that they occupy. */
	uint64_t unexpected_count;
	uint64_t unexpected_bytes;
	/*
	 * Messages that were dropped, and peers that were disconnected, since
	 * FI_WEFT_UNEXPECTED_LIMIT was reached. weft-env(7)
	 */
	uint64_t unexpected_dropped;
	uint64_t unexpected_disconnected;
	/* Accepted connections that wait for their hello or for an answer to it. */
	uint64_t pending_count;
	/* Such connections that were closed for others, or as their hello did not come in time. */
	uint64_t pending_dropped;
	/* Control messages about collective groups: beyond FI_WEFT_JOINS_MAX; not of a member. */
	uint64_t joins_refused;
	uint64_t nonmember_refused;
	/* One-sided accesses from the network with an unknown key; the same key again not counted. */
	uint64_t wrong_keys;
	/* Connections, of either direction, refused by FI_WEFT_CLOSED or for want of the job's key. */
	uint64_t unauthorized_refused;
	/* Bytes of answers that peers have not read yet. */
	uint64_t answers_bytes;
	/* Peers that were disconnected as they left too many unread. FI_WEFT_UNEXPECTED_LIMIT */
	uint64_t answers_disconnected;
	/* Peers refused, as too many are not in the address vector. FI_WEFT_UNKNOWN_MAX */
	uint64_t unknown_refused;
};

/* Static; valid as long as the library is loaded. */
struct fi_weft_ops_stats {
	size_t size; /* of this structure */
	/*
	 * Writes the figures of endpoint `fid` into *stats, `size` bytes of it at most. 0,
	 * -FI_EINVAL (`size` is too small for the first member) or -FI_EOPBADSTATE (not enabled).
	 */
	int (*read)(struct fid *fid, struct fi_weft_stats *stats, size_t size);
};

/* Name for fi_open_ops on an endpoint of any type, which then returns struct fi_weft_ops_peers. */
#define FI_WEFT_PEERS "weft_peers"

enum fi_weft_transport { FI_WEFT_SHM, FI_WEFT_VERBS, FI_WEFT_TCP, FI_WEFT_TRANSPORTS };

enum fi_weft_connection { FI_WEFT_UNCONNECTED, FI_WEFT_CONNECTING, FI_WEFT_CONNECTED };

/* Why a way to a peer is used or not. The `reason` of struct fi_weft_ops_peers puts it into words. */
enum fi_weft_reason {
	FI_WEFT_USED,
	FI_WEFT_USABLE,           /* nothing known speaks against it; not connected yet */
	FI_WEFT_NOT_NEEDED,       /* a better one is used */
	FI_WEFT_LEFT_OUT,         /* by the provider, a hint, an option or a setting */
	FI_WEFT_NO_DEVICE,        /* this endpoint's address has no RDMA device */
	FI_WEFT_NOT_ENCRYPTING,   /* RDMA devices do not encrypt */
	FI_WEFT_OTHER_HOST,       /* the peer's address is none of this host */
	FI_WEFT_NO_LISTENER,      /* none in this network namespace offers shared memory there */
	FI_WEFT_OTHER_USER,       /* the peer's process is another user's */
	FI_WEFT_FAILED,           /* it was tried, and failed */
	FI_WEFT_PEER_CHOSE,       /* the peer has connected, in another way */
	FI_WEFT_NO_COMMON_DEVICE, /* the peer has no RDMA device on our network, or leaves it out */
	FI_WEFT_NO_ADDRESS,       /* the peer's name is no address of the network */
	FI_WEFT_DISABLED,         /* by FI_SHM_DISABLE_CMA */
	FI_WEFT_NO_PTRACE,        /* the kernel does not let us read the peer's process */
	FI_WEFT_NO_PROCESS,       /* the peer's process cannot be seen from here */
	FI_WEFT_REASONS
};

/*
 * One peer of an endpoint. Numbers are counts since the endpoint first knew the peer, if nothing
 * else is said. Messages that go out in one packet that the link copies are not counted: that would
 * cost each of them time. Members are only ever added at the end.
 */
struct fi_weft_peer {
	size_t size;         /* bytes of this structure that are filled in */
	uint32_t connection; /* enum fi_weft_connection */
	uint32_t transport;  /* enum fi_weft_transport that is used, or else would be tried first */
	uint32_t reasons[FI_WEFT_TRANSPORTS]; /* enum fi_weft_reason of each transport */
	uint32_t direct_read; /* the same of reading long messages in the peer's memory, by shm */
	uint32_t
		last_error; /* positive FI_E* of the last connection that ended or failed; 0: none */
	uint64_t connections; /* that were made */
	/* The link now. 0 where it has no such thing, or is not there. */
	uint64_t credits;         /* shm: free slots of the peer's ring; verbs: packets */
	uint64_t unsent_bytes;    /* tcp: given to the kernel, not acknowledged */
	uint64_t retransmissions; /* tcp: segments sent again by this connection */
	/*
	 * Messages sent by each protocol; the receiver chooses how to get those of sent_rts. sent_bounce, sent_pipe
	 * and sent_speculative are 0: earlier versions had those ways.
	 */
	uint64_t sent_zcopy, sent_rdma, sent_bounce, sent_pipe, sent_speculative, sent_rts;
	uint64_t sent_streamed; /* of those, the ones that the receiver asked for: CTS */
	/* Long messages received: how the bytes came. */
	uint64_t received_read;        /* from the sender's memory */
	uint64_t received_joint;       /* copied by both processes */
	uint64_t received_rdma;        /* read by a device */
	uint64_t received_speculative; /* 0, likewise */
	uint64_t received_streamed;    /* in fragments that were asked for */
	/* Flow control: the sides that asked the other one to pause. */
	uint64_t xoff_sent, xoff_received;
	uint64_t paused_ms; /* how long we paused for the peer, in all, until now */
	/* Queues now: operations not sent, sent and not answered; bytes of answers not sent. */
	uint64_t queued, unanswered, answers_bytes;
	uint64_t unexpected_bytes; /* kept of its messages that no receive has taken */
	/* One-sided operations that went in packets, not by direct access or RDMA; modulo 2^32. */
	uint64_t sent_requests, received_requests;
};

/* Static; valid as long as the library is loaded. */
struct fi_weft_ops_peers {
	size_t size; /* of this structure */
	/*
	 * Writes what endpoint `fid` knows of the peer with this address, `size` bytes of it at
	 * most; connected endpoints have one peer, and ignore `addr`. 0, -FI_EINVAL (`size` is too
	 * small, or the address is not in the vector), -FI_EOPBADSTATE (not enabled),
	 * -FI_EOPNOTSUPP (datagrams, or a device's own endpoint: no peers are known) or
	 * -FI_ENOMEM.
	 */
	int (*read)(struct fid *fid, fi_addr_t addr, struct fi_weft_peer *peer, size_t size);
	/*
	 * Begins to connect to the peer, if there is no connection; progress calls go on. No message
	 * is sent. 0 or the errors of `read`, -FI_EAGAIN, or why no attempt can be made.
	 */
	int (*connect)(struct fid *fid, fi_addr_t addr);
	/* Writes all that is known of the endpoint and its peers, as text. 0 or a negative error. */
	int (*write)(struct fid *fid, int fd);
	/* Returns the words for an enum fi_weft_reason. */
	const char *(*reason)(uint32_t reason);
};

#ifdef __cplusplus
}
#endif

#endif
