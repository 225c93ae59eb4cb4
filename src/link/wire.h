/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every byte layout and limit that two processes must agree on, whatever transport carries it. All
 * fields are in host byte order; the hello refuses a peer of another order or version.
 */
#ifndef WEFT_LINK_WIRE_H
#define WEFT_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC    0x54464557u /* "WEFT"; reads differently in the other byte order */
#define WIRE_VERSION  9
#define WIRE_NAME_MAX 96 /* bytes of an address string, with its terminator */
#define WIRE_IOV_MAX  16 /* segments an RTS may name */

/* What a packet is. */
enum wire_op {
	WIRE_MSG = 1, /* a whole message: payload */
	WIRE_RTS,     /* a long message: payload is struct wire_rts */
	WIRE_ATS,     /* receiver to sender: request `id` ended, tag is a positive error or 0; the
	                 payload is the result of an atomic */
	WIRE_CTS,     /* receiver cannot fetch: stream request `id`, tag is the receiver's id */
	WIRE_FRAG, /* fragment of a long message: `id` is the receiver's, tag the byte offset */
	WIRE_XOFF, /* send no more messages until WIRE_XON */
	WIRE_XON,
	/*
	 * One-sided requests. `id` counts them for each pair of endpoints (their sequence number),
	 * and they are performed in that order. See struct wire_ranges for what they carry.
	 */
	WIRE_PUT, /* data follow */
	WIRE_GET, /* nothing follows but, in the short form, a uint64_t: the bytes wanted */
	WIRE_AMO, /* struct wire_amo follows, then operands, then values to compare with */
	/*
	 * We have accessed your region directly: count it. tag: its key; WIRE_LONG: it was a read;
	 * WIRE_DATA: with remote CQ data; a uint64_t follows, the bytes. No number, no answer.
	 */
	WIRE_NOTIFY,
	/* Answers to them. An answer to one says that all before it are done. */
	WIRE_DONE,       /* all up to `id` are done */
	WIRE_RESULT,     /* bytes for `id` at offset `tag` of its result; the last ones end it */
	WIRE_FAILED,     /* `id` failed: tag is the positive error, above 16 bits the reason's */
	WIRE_DISCONNECT, /* the endpoint is being closed in good order; nothing follows */
	WIRE_GROUP,      /* about a collective group: struct wire_group follows */
	WIRE_OPS
};

/* Flags of a packet. */
#define WIRE_TAGGED      0x01u
#define WIRE_DATA        0x02u /* remote CQ data present */
#define WIRE_ACK_MATCH   0x04u /* answer with WIRE_ATS when matched */
#define WIRE_ACK_DELIVER 0x08u /* answer with WIRE_ATS when placed */
/*
 * Of an RTS: its first fragments follow, speculatively. Of a fragment: it is one of those, `id` is the RTS's. Of
 * WIRE_CTS: go on behind them. Of WIRE_ATS: all of it came in fragments.
 */
#define WIRE_SPEC     0x10u
#define WIRE_SPEC_MAX 131072u /* bytes of such fragments of an RTS */

/* Flags of a one-sided request, which has WIRE_DATA in the short form. */
#define WIRE_LONG   0x10u /* struct wire_ranges leads the payload; else tag: address, data: key */
#define WIRE_CQ     0x20u /* then eight bytes of remote CQ data */
#define WIRE_COMMIT 0x40u /* make it durable before it counts as done */
/*
 * Of WIRE_AMO: the target is a tagged receive, the key its tag, addresses are offsets into it. It is
 * matched like a message and answered like one: `id` is the request, WIRE_ATS brings the result.
 */
#define WIRE_MATCH 0x80u
/*
 * WIRE_PUT, WIRE_AMO: the initiator is gone, the request is performed and not answered. The receiver sets it itself; a
 * peer that sends it goes without its own answers and harms nobody else.
 */
#define WIRE_ORPHAN 0x08u

/* The first word of a packet: op, flags, receive context, request id. */
#define WIRE_HEAD(op, flags, rx, id)                                                               \
	((uint64_t)(op) | (uint64_t)(flags) << 8 | (uint64_t)(rx) << 16 | (uint64_t)(id) << 32)

static inline unsigned int wire_op(uint64_t head)
{
	return head & 0xff;
}

static inline unsigned int wire_flags(uint64_t head)
{
	return head >> 8 & 0xff;
}

static inline unsigned int wire_rx(uint64_t head)
{
	return head >> 16 & 0xffff;
}

static inline uint32_t wire_id(uint64_t head)
{
	return head >> 32;
}

/* The receive context that stands for all groups: tagged messages whose data are the number of the group. */
#define WIRE_RX_GROUP 0xffffu

/* Is it a message to a group? */
static inline bool wire_of_group(uint64_t head)
{
	const unsigned int needed = WIRE_TAGGED | WIRE_DATA;

	return wire_rx(head) == WIRE_RX_GROUP && (wire_flags(head) & needed) == needed;
}

/*
 * Of a message to a group: which of its collectives it is part of (they are counted), what the sender takes
 * that one for, and its rank.
 */
#define WIRE_GROUP_RANK_BITS 24
#define WIRE_GROUP_RANK_MASK ((UINT64_C(1) << WIRE_GROUP_RANK_BITS) - 1)
#define WIRE_GROUP_WHAT_MASK (UINT64_C(0xffff) << WIRE_GROUP_RANK_BITS)
#define WIRE_GROUP_TAG(seq, what, rank)                                                            \
	((uint64_t)(seq) << (WIRE_GROUP_RANK_BITS + 16) |                                          \
	 ((uint64_t)(what) << WIRE_GROUP_RANK_BITS & WIRE_GROUP_WHAT_MASK) | (rank))

/* What is said about a group. */
enum wire_group_kind {
	WIRE_GROUP_UP = 1, /* join, to the parent: all below me, and I, have joined */
	WIRE_GROUP_DOWN,   /* join, to a child: the group stands, `id` is its number */
	WIRE_GROUP_FAIL,   /* the join of `key` comes to nothing: `error` */
	WIRE_GROUP_PROBE,  /* I wait for you in the join of `key`: do you know of it? `id`: which */
	WIRE_GROUP_ASK,    /* I do not, and wait for you in that of `id`: do you? */
	WIRE_GROUP_ABORT,  /* the group `id` has come to an end: `error` */
	WIRE_GROUP_LEAVE,  /* I have done my part in the group `id`, and am no member any more */
	WIRE_GROUP_HERE,   /* do you, of that rank, still belong to the group `id`? */
};

struct wire_group {
	uint32_t kind;
	uint32_t error;   /* positive */
	uint32_t rank;    /* of the sender */
	uint32_t size;    /* members */
	uint32_t attempt; /* 1 + how many joins of that key failed before; of DOWN: as in UP */
	uint16_t cpus;    /* of UP: of the member below with the fewest, or mine; of DOWN: of all */
	uint16_t
		shares; /* of UP: do I, and all below, share memory on our hosts? of DOWN: do all? */
	uint64_t key;   /* of a join: says who the members are, in their order */
	uint64_t
		id; /* of the group; of PROBE: which join of its sender; of UP: that of the PROBE it answers, or 0 */
};

/* Where a long message lies in its sender's memory. */
struct wire_segment {
	uint64_t addr;
	uint64_t len;
	uint64_t key; /* by which the receiver's device reads it, or finds a pipe; 0: it cannot */
};

struct wire_rts {
	uint64_t len; /* of all segments */
	uint64_t count;
	struct wire_segment segment[WIRE_IOV_MAX];
};

/* A range of a registered region. */
struct wire_range {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

/* The long form of a one-sided request: many ranges, or a fragment of what one packet cannot hold. */
struct wire_ranges {
	uint64_t offset; /* of this packet's data among all of it */
	uint64_t count;
	struct wire_range range[WIRE_IOV_MAX];
};

/* What an atomic does: applied to elements of all ranges in turn. */
struct wire_amo {
	uint8_t op;   /* enum fi_op */
	uint8_t type; /* enum fi_datatype */
	uint8_t form; /* enum atomic_form */
	uint8_t unused;
	uint32_t len; /* bytes of all its elements */
};

#define WIRE_AMO_MAX ((size_t)4096) /* bytes of operands in one atomic */

/*
 * What one side may make the other keep. An initiator waits until no more than WIRE_RESULTS_MAX bytes are
 * on their way to it before it goes on, and asks for no more than that of tagged receives. Who goes beyond
 * one of the others, which are far from what comes of that, of 2^20 requests without an answer, or of
 * what sockets hold, is ended: FI_EPROTO.
 */
#define WIRE_RESULTS_MAX   ((size_t)16 << 20)
#define WIRE_RESULT_INLINE ((size_t)16) /* results up to this count as nothing */
/* Bytes of answers that it does not take. */
#define WIRE_ANSWERS_MAX ((size_t)128 << 20)
/* Bytes of messages that come in spite of WIRE_XOFF: they were under way. */
#define WIRE_KEPT_MAX ((size_t)256 << 20)
#define WIRE_PACKET_MIN                                                                            \
	9216u /* every transport's packets hold at least this: operands twice and heads */

_Static_assert(2 * WIRE_AMO_MAX + sizeof(struct wire_ranges) + sizeof(struct wire_amo) + 8 <=
		       WIRE_PACKET_MIN,
	       "the largest atomic fits a packet");

#define WIRE_CM_DATA_MAX 512u /* bytes of an application's data in a hello of connected endpoints */

/* Keys of the library's lead to memory by this end's device; told of each access (WIRE_NOTIFY) it counts them. */
#define WIRE_NIC_KEYS   0x1u
#define WIRE_NIC_COUNTS 0x2u

/* One end of a path between two RDMA devices; all zero: there is none to be had. */
struct wire_nic {
	uint32_t qpn;    /* queue pair */
	uint32_t psn;    /* of its first packet */
	uint32_t number; /* how packets to this end name it */
	uint16_t window; /* packets it has room for at first */
	uint16_t lid;
	uint8_t mtu;         /* enum ibv_mtu */
	uint8_t infiniband;  /* else Ethernet */
	uint8_t flags;       /* WIRE_NIC_ */
	uint8_t reads;       /* RDMA reads it serves at a time */
	uint32_t direct_qpn; /* the queue pair for what needs no packets; 0: there is none */
	uint8_t gid[16];
};

/*
 * The first messages of two processes on the bootstrap socket, always of this length. Inside a host a
 * transport's descriptors travel along.
 */
struct wire_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t size;        /* of this struct */
	uint32_t kind;        /* enum hello_kind */
	uint32_t your_id;     /* how packets to me must name you */
	uint64_t incarnation; /* of the sender's endpoint, never the same again */
	uint64_t serial;      /* of this hello among all of the sender's endpoint, from 1 */
	uint64_t probe_addr;  /* a word of the sender's memory to try a direct fetch on */
	uint64_t probe_value; /* what it holds */
	uint32_t name_format; /* FI_SOCKADDR_IN, FI_SOCKADDR_IN6 or FI_ADDR_STR */
	uint32_t name_len;
	char name[WIRE_NAME_MAX]; /* the sender's address in that format */
	struct wire_nic nic;      /* of HELLO_CONNECT, HELLO_REQUEST, HELLO_ACCEPT */
	uint32_t error;           /* of HELLO_REJECT: why, positive; 0: the application said so */
	uint32_t data_len;        /* of HELLO_REQUEST, HELLO_ACCEPT, HELLO_REJECT */
	uint8_t data[WIRE_CM_DATA_MAX];
};

enum hello_kind {
	HELLO_CONNECT = 1, /* initiator to target */
	HELLO_ACCEPT,      /* target to initiator */
	HELLO_CROSSED,     /* target to initiator: my own connect to you wins, take that one */
	HELLO_REQUEST,     /* of connected endpoints: HELLO_CONNECT to a passive one */
	HELLO_REJECT,      /* target to initiator: no connection comes of it */
	HELLO_KINDS
};

/* After the hellos the bootstrap socket carries single bytes, unless it is the transport's own. */
#define BOOT_WAKE       'w' /* look at your ring */
#define BOOT_DISCONNECT 'b' /* the endpoint is being closed in good order */

_Static_assert(sizeof(struct wire_segment) == 24, "layout of a segment");
_Static_assert(sizeof(struct wire_group) == 40, "layout of a control message about a group");
_Static_assert(sizeof(struct wire_range) == 24, "layout of a range");
_Static_assert(offsetof(struct wire_ranges, range) == 16, "layout of ranges");
_Static_assert(sizeof(struct wire_amo) == 8, "layout of an atomic");
_Static_assert(offsetof(struct wire_rts, segment) == 16, "layout of an RTS");
_Static_assert(offsetof(struct wire_hello, name) == 56, "layout of a hello");
_Static_assert(sizeof(struct wire_nic) == 40, "layout of an end of a path");
_Static_assert(sizeof(struct wire_hello) ==
		       64 + WIRE_NAME_MAX + sizeof(struct wire_nic) + WIRE_CM_DATA_MAX,
	       "a hello has no padding");

#endif
