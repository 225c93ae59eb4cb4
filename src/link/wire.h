/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All byte layouts and limits that two processes must agree on, for every transport. Fields are in
 * host byte order; a hello from a peer of another byte order or version is refused.
 */
#ifndef WEFT_LINK_WIRE_H
#define WEFT_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_MAGIC         0x54464557u /* "WEFT"; reads differently in the other byte order */
#define WIRE_VERSION       16
#define WIRE_NAME_MAX      96 /* bytes of an address string, with its terminator */
#define WIRE_IOV_MAX       16 /* segments per RTS */
#define WIRE_RAILS_MAX     4  /* interfaces that one link uses */
#define WIRE_ADDRESSES_MAX 16 /* that a hello tells */
#define WIRE_TOKEN         16 /* bytes of each half of a link's token */
#define WIRE_PROOF         32 /* bytes of a nonce, and of an HMAC-SHA-256 */

/* Packet types. */
enum wire_op {
	WIRE_MSG = 1, /* a complete message: payload */
	WIRE_RTS,     /* announces a long message: payload is struct wire_rts */
	/*
	 * Receiver to sender: request `id` ended. tag: 0 or an error (positive); above 16 bits the
	 * nanoseconds (32 bits) from the match to the end, or 0. Payload: an atomic's result.
	 */
	WIRE_ATS,
	WIRE_CTS, /* receiver cannot fetch: stream request `id`; tag is the receiver's id */
	/* fragment of a long message: `id` is the receiver's, tag the byte offset */
	WIRE_FRAG,
	/*
	 * Until WIRE_XON of longer messages only the RTS; each asks to be answered when it is matched, and
	 * not too many may be unanswered. Older versions send none.
	 */
	WIRE_XOFF,
	WIRE_XON,
	/*
	 * One-sided requests. `id` is a sequence number per pair of endpoints; the target performs
	 * the requests in that order. See struct wire_ranges for the payload.
	 */
	WIRE_PUT, /* payload: the data */
	WIRE_GET, /* payload in the short form: a uint64_t, the number of bytes wanted; else none */
	WIRE_AMO, /* payload: struct wire_amo, operands, values to compare with */
	/*
	 * The sender has accessed memory of the receiver directly: the receiver checks the ranges
	 * and counts the access. WIRE_LONG: a read. WIRE_DATA: with remote CQ data. Payload: 1 to
	 * WIRE_IOV_MAX of struct wire_range. No sequence number, no answer.
	 */
	WIRE_NOTIFY,
	/* Answers to one-sided requests. An answer implies that all earlier requests are done. */
	WIRE_DONE,   /* all requests up to `id` are done */
	WIRE_RESULT, /* part of the result of `id`, at byte offset `tag`; the last part ends it */
	WIRE_FAILED, /* `id` failed: tag is the positive error, above 16 bits the device's reason */
	WIRE_DISCONNECT, /* the endpoint is closing in good order; no packet follows */
	WIRE_GROUP,      /* control message of a collective group: payload is struct wire_group */
	/*
	 * The sender copies between its memory and the receiver's, which may copy a part (shm_joint.h). tag: the
	 * receiver's memory. WIRE_DATA: always; the key with WIRE_REGION. Payload: struct wire_joint. No answer.
	 */
	WIRE_JOINT,
	WIRE_RETIRE, /* about closing an idle connection: tag is enum wire_retire; not in a host */
	/* One endpoint is to connect to another: tag is enum wire_introduce, payload struct wire_address. */
	WIRE_INTRODUCE,
	WIRE_OPS
};

/* See conn_retire.c. */
enum wire_retire {
	WIRE_RETIRE_ASK = 1, /* may we close the connection? */
	WIRE_RETIRE_AGREE, /* yes; the sender sends no message or request until it has an answer */
	WIRE_RETIRE_DONE,  /* the sender closes it; no packet follows */
	WIRE_RETIRE_STAY,  /* it is in use again */
};

/* See conn_introduce.c. */
enum wire_introduce {
	WIRE_INTRODUCE_ASK = 1, /* tell the endpoint of this address to connect to the sender */
	WIRE_INTRODUCE_TELL,    /* the endpoint of this address waits for you to connect to it */
};

/* The address of an endpoint across the network. */
struct wire_address {
	uint8_t ip[16]; /* network byte order; IPv4 in the first four bytes, the rest zero */
	uint16_t port;
	uint16_t in6; /* 1: an IPv6 address; 0: IPv4 */
};

/* Flags of a packet. */
#define WIRE_TAGGED      0x01u
#define WIRE_DATA        0x02u /* remote CQ data present */
#define WIRE_ACK_MATCH   0x04u /* answer with WIRE_ATS when matched */
#define WIRE_ACK_DELIVER 0x08u /* answer with WIRE_ATS when placed */

/* Flags of a one-sided request. The short form always has WIRE_DATA. */
#define WIRE_LATER                                                                                 \
	0x04u /* PUT, AMO: nobody waits for DONE. DONE: it may go with what is sent next */
#define WIRE_LONG   0x10u /* struct wire_ranges leads the payload; else tag: address, data: key */
#define WIRE_CQ     0x20u /* eight bytes of remote CQ data come next */
#define WIRE_COMMIT 0x40u /* make the data durable before reporting it done */
/*
 * AMO: the target is a tagged receive, the key is its tag, addresses are offsets into it. The
 * request is matched and answered like a message: `id` is the request, WIRE_ATS brings the result.
 */
#define WIRE_MATCH 0x80u
/*
 * PUT, AMO: the initiator has disconnected; the request is performed but not answered. Only the
 * receiver sets this flag; a peer that sends it loses its own answers and harms nobody else.
 */
#define WIRE_ORPHAN 0x08u

/* Flags of WIRE_JOINT. */
#define WIRE_REGION                                                                                \
	0x10u /* tag and data name a range of a region; else it is in a message under way */
#define WIRE_READ 0x20u /* from the receiver's memory to the sender's */

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

/* Stands for all collective groups: tagged messages whose data is the number of a group. */
#define WIRE_RX_GROUP 0xffffu

/* Is the packet a message to a collective group? */
static inline bool wire_of_group(uint64_t head)
{
	const unsigned int needed = WIRE_TAGGED | WIRE_DATA;

	return wire_rx(head) == WIRE_RX_GROUP && (wire_flags(head) & needed) == needed;
}

/*
 * The tag of a message to a group: the sequence number of the collective, a hash of the sender's
 * call (for comparison), and the sender's rank.
 */
#define WIRE_GROUP_RANK_BITS 24
#define WIRE_GROUP_RANK_MASK ((UINT64_C(1) << WIRE_GROUP_RANK_BITS) - 1)
#define WIRE_GROUP_WHAT_MASK (UINT64_C(0xffff) << WIRE_GROUP_RANK_BITS)
#define WIRE_GROUP_TAG(seq, what, rank)                                                            \
	((uint64_t)(seq) << (WIRE_GROUP_RANK_BITS + 16) |                                          \
	 ((uint64_t)(what) << WIRE_GROUP_RANK_BITS & WIRE_GROUP_WHAT_MASK) | (rank))

/* Control messages about a group. I: the sender; you: the receiver. */
enum wire_group_kind {
	WIRE_GROUP_UP = 1, /* join, to the parent: the sender and all below it have joined */
	WIRE_GROUP_DOWN,   /* join, to a child: the group is formed, `id` is its number */
	WIRE_GROUP_FAIL,   /* the join of `key` has failed with `error` */
	WIRE_GROUP_PROBE,  /* I wait for you in the join of `key`; `id`: serial of that join */
	/* Answer to PROBE: I know no join of `key`, and wait for you in that of key `id`. */
	WIRE_GROUP_ASK,
	WIRE_GROUP_ABORT, /* group `id` has ended with `error` */
	WIRE_GROUP_LEAVE, /* the sender has done its part in group `id` and is no longer a member */
	WIRE_GROUP_HERE,  /* question: are you, of that rank, still a member of group `id`? */
};

struct wire_group {
	uint32_t kind;
	uint32_t error;   /* positive */
	uint32_t rank;    /* of the sender; of HERE: of the receiver */
	uint32_t size;    /* number of members */
	uint32_t attempt; /* 1 + the number of failed joins of that key; DOWN: copied from UP */
	/* UP: the fewest processors of the sender and all members below it; DOWN: of all members */
	uint16_t cpus;
	/* UP: do the sender and all below it share memory on their hosts? DOWN: do all? */
	uint16_t shares;
	uint64_t key; /* joins: identifies the members and their order */
	/* The group's number; PROBE: serial of the sender's join; UP: that of the PROBE it answers, or 0. */
	uint64_t id;
};

/* A segment of a long message in the sender's memory. */
struct wire_segment {
	uint64_t addr;
	uint64_t len;
	uint64_t key; /* for the receiver's device; 0: none */
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

/* A joint copy, as its owner offers it. With the packet's head it fills one slot of a ring. */
struct wire_joint {
	uint64_t at; /* the owner's memory */
	uint64_t len;
	uint32_t seq;   /* number of the copy */
	uint32_t chunk; /* bytes of each part */
};

/* Long form of a one-sided request: several ranges, or a fragment of data too long for one packet. */
struct wire_ranges {
	uint64_t offset; /* of this packet's data in the whole request */
	uint64_t count;
	struct wire_range range[WIRE_IOV_MAX];
};

/* Header of an atomic. It applies to the elements of all ranges in order. */
struct wire_amo {
	uint8_t op;   /* enum fi_op */
	uint8_t type; /* enum fi_datatype */
	uint8_t form; /* enum atomic_form */
	uint8_t unused;
	uint32_t len; /* bytes of all elements */
};

#define WIRE_AMO_MAX ((size_t)4096) /* bytes of operands in one atomic */

/*
 * Limits on what one side may make the other keep. An initiator sends no further request while more
 * than WIRE_RESULTS_MAX bytes of results are outstanding; atomics on tagged receives have the same
 * limit. A peer that exceeds one of the other limits is disconnected with FI_EPROTO. Those limits
 * are far above what these rules, 2^20 unanswered requests and full socket buffers can add up to.
 */
#define WIRE_RESULTS_MAX   ((size_t)16 << 20)
#define WIRE_RESULT_INLINE ((size_t)16) /* bytes; results up to this length are not counted */
/* Bytes of answers queued for a peer that does not read them. */
#define WIRE_ANSWERS_MAX ((size_t)128 << 20)
/* Bytes of messages that arrive after WIRE_XOFF because they were already sent: they ask for no answer. */
#define WIRE_KEPT_MAX ((size_t)256 << 20)
/* Longest message (bytes) that goes whole after WIRE_XOFF: no injected one is longer. */
#define WIRE_PAUSED_MAX ((size_t)4096)
#define WIRE_PACKET_MIN                                                                            \
	9216u /* bytes that fit a packet of any transport: an atomic's operands twice, and heads */

_Static_assert(2 * WIRE_AMO_MAX + sizeof(struct wire_ranges) + sizeof(struct wire_amo) + 8 <=
		       WIRE_PACKET_MIN,
	       "the largest atomic fits a packet");

#define WIRE_CM_DATA_MAX 512u /* bytes of application data in the hello of a connected endpoint */

/*
 * Flags of wire_nic: this end's device accesses memory by the library's keys; this end counts
 * accesses that WIRE_NOTIFY reports; this end has further devices for links over several. (0x4
 * named an earlier protocol of those: with such a peer a link has one device.)
 */
#define WIRE_NIC_KEYS   0x1u
#define WIRE_NIC_COUNTS 0x2u
#define WIRE_NIC_RAILS  0x8u

/* One end of an RDMA link; all zero: no RDMA link is possible. */
struct wire_nic {
	uint32_t qpn;    /* queue pair */
	uint32_t psn;    /* sequence number of its first packet */
	uint32_t number; /* names this end in packets to it */
	uint16_t window; /* initial credits: packets that this end can receive */
	uint16_t lid;
	uint8_t mtu;         /* enum ibv_mtu */
	uint8_t infiniband;  /* false: Ethernet */
	uint8_t flags;       /* WIRE_NIC_ */
	uint8_t reads;       /* RDMA reads that the device serves at a time */
	uint32_t direct_qpn; /* queue pair for RDMA operations; 0: none */
	uint8_t gid[16];
};

/* A listener of an endpoint on one of its interfaces. */
struct wire_rail {
	uint8_t ip[16]; /* network byte order; IPv4 in the first four bytes */
	uint16_t port;
	uint8_t in6;    /* an IPv6 address? */
	uint8_t prefix; /* bits of the network's part of it */
	uint32_t mbps;  /* the interface's speed; 0: unknown */
};

/* The `data` of hellos with WIRE_HELLO_RAILS. */
struct wire_rails {
	uint32_t count;  /* HELLO_CONNECT, HELLO_ACCEPT with rails: the sender's interfaces */
	uint32_t number; /* HELLO_JOIN: which rail of the link the socket becomes */
	struct wire_rail rail[WIRE_RAILS_MAX];
};

/* Of hellos with WIRE_HELLO_ALL. */
struct wire_addresses {
	uint32_t count;
	struct wire_address at[WIRE_ADDRESSES_MAX];
};

/*
 * The messages on the bootstrap socket; always of this length. On a Unix socket a transport's descriptors come with
 * some. Endpoints with a key exchange four: GREETING, CHALLENGE, then CONNECT or REQUEST, then an answer; without one
 * the first two are left out.
 */
struct wire_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t size;        /* of this struct */
	uint16_t kind;        /* enum hello_kind */
	uint16_t flags;       /* WIRE_HELLO_ */
	uint32_t your_id;     /* names the hello's sender in packets to it */
	uint64_t incarnation; /* random number of the sending endpoint's run */
	uint64_t serial;      /* counts the hellos of the sending endpoint, from 1 */
	uint64_t cma_addr;    /* address of a uint64_t of the sender, to test whether fetch works */
	uint64_t cma_value;   /* its value */
	uint32_t name_format; /* FI_SOCKADDR_IN, FI_SOCKADDR_IN6 or FI_ADDR_STR */
	uint32_t name_len;
	char name[WIRE_NAME_MAX]; /* the sender's address in that format */
	struct wire_nic nic;      /* of HELLO_CONNECT, HELLO_REQUEST, HELLO_ACCEPT */
	uint32_t error;           /* HELLO_REJECT: a positive error; 0: the application rejected */
	uint32_t data_len; /* HELLO_REQUEST, HELLO_ACCEPT, HELLO_REJECT; and of WIRE_HELLO_RAILS */
	uint8_t data[WIRE_CM_DATA_MAX];
	/*
	 * Random: of HELLO_GREETING, HELLO_CHALLENGE; of HELLO_ACCEPT with rails: the link's token, whose first
	 * half is in HELLO_JOIN, the second in HELLO_JOINED.
	 */
	uint8_t nonce[WIRE_PROOF];
	/* of endpoints with a key, in all but HELLO_GREETING: src/conn/auth.h */
	uint8_t mac[WIRE_PROOF];
};

/* Of hellos of unconnected endpoints that use several interfaces: `data` is a struct wire_rails. */
#define WIRE_HELLO_RAILS      0x4u
#define WIRE_HELLO_INTRODUCES 0x8u /* of all hellos with a name: the sender knows WIRE_INTRODUCE */
/*
 * Likewise: all addresses of the sender's host reach it. Across the network a struct wire_addresses stands in `data`
 * behind the place of a struct wire_rails, and does not count for `data_len`.
 */
#define WIRE_HELLO_ALL 0x10u
/* Flags of all hellos of a connection of endpoints with a key: */
#define WIRE_HELLO_ENCRYPTS   0x1u /* what follows is encrypted by TLS */
#define WIRE_HELLO_KERNEL_TLS 0x2u /* the sender's kernel can do that */

enum hello_kind {
	HELLO_CONNECT = 1, /* initiator to target */
	HELLO_ACCEPT,      /* target to initiator */
	/* target to initiator: connects crossed and the target's own wins; use that one */
	HELLO_CROSSED,
	HELLO_REQUEST, /* connected endpoints: HELLO_CONNECT to a passive endpoint */
	HELLO_REJECT,  /* target to initiator: connection refused */
	/* initiator to target: I have a key; prove that you know it */
	HELLO_GREETING,
	HELLO_CHALLENGE, /* target to initiator: my proof; now prove yours */
	/* initiator to target: this socket is to be another rail of link `your_id` */
	HELLO_JOIN,
	HELLO_JOINED, /* target to initiator: it is one now */
	HELLO_KINDS
};

/* Single bytes on the bootstrap socket after the hellos, unless the link owns the socket. */
#define BOOT_WAKE       'w' /* poll your ring */
#define BOOT_DISCONNECT 'b' /* the endpoint is closing in good order */

_Static_assert(sizeof(struct wire_segment) == 24, "layout of a segment");
_Static_assert(sizeof(struct wire_group) == 40, "layout of a control message about a group");
_Static_assert(sizeof(struct wire_address) == 20, "layout of an address");
_Static_assert(sizeof(struct wire_range) == 24, "layout of a range, that of struct fi_rma_iov");
_Static_assert(offsetof(struct wire_ranges, range) == 16, "layout of ranges");
_Static_assert(sizeof(struct wire_amo) == 8, "layout of an atomic");
_Static_assert(offsetof(struct wire_rts, segment) == 16, "layout of an RTS");
_Static_assert(offsetof(struct wire_hello, name) == 56, "layout of a hello");
_Static_assert(sizeof(struct wire_nic) == 40, "layout of an end of a path");
_Static_assert(sizeof(struct wire_hello) == 64 + WIRE_NAME_MAX + sizeof(struct wire_nic) +
						    WIRE_CM_DATA_MAX + (size_t)2 * WIRE_PROOF,
	       "a hello has no padding");
_Static_assert(sizeof(struct wire_rail) == 24, "layout of an interface");
_Static_assert(sizeof(struct wire_rails) == 8 + WIRE_RAILS_MAX * sizeof(struct wire_rail),
	       "layout of a list of interfaces");
_Static_assert(sizeof(struct wire_addresses) ==
		       4 + WIRE_ADDRESSES_MAX * sizeof(struct wire_address),
	       "layout of a list of addresses");
_Static_assert(sizeof(struct wire_rails) + sizeof(struct wire_addresses) <= WIRE_CM_DATA_MAX,
	       "interfaces and addresses fit a hello");

#endif
