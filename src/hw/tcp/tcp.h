/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP transport: framed packets on the bootstrap socket, which carried the hellos. One read
 * buffer per worker, one link per peer; an idle link holds no buffer.
 */
#ifndef WEFT_HW_TCP_H
#define WEFT_HW_TCP_H

#include <errno.h>

#include "base/list.h"
#include "base/lock.h"
#include "base/tls.h"
#include "link/link.h"
#include "link/opener.h"
#include "link/wire.h"

/*
 * Frame header before every payload, in host byte order: a hello from a host of another order is
 * refused. Shorter headers would make copies of long payloads a fifth slower: the processor
 * mistakes addresses that are so close within their pages for each other.
 */
struct tcp_frame {
	uint64_t head;
	uint64_t tag;
	uint64_t data; /* meaningful with WIRE_DATA */
	uint32_t len;  /* bytes of payload */
	uint32_t zero; /* must be 0 */
};

_Static_assert(offsetof(struct tcp_frame, data) == 16, "layout of a frame");
_Static_assert(offsetof(struct tcp_frame, len) == 24, "layout of a frame");
_Static_assert(sizeof(struct tcp_frame) == 32, "layout of a frame");

/*
 * Long packets are better: the end of a packet may go out as a short TCP segment of its own. A
 * packet has space for 1 MiB and the header of a one-sided request.
 */
#define TCP_PACKET_MAX ((1u << 20) + 4096) /* longest payload, in bytes */
#define TCP_ZCOPY_MIN  16384u  /* bytes; shorter payloads are copied, and go with others */
#define TCP_ROW        262144u /* bytes of long packets; more before the next progress call batch */
#define TCP_BATCH_MAX  1048576u /* bytes after which a batch goes out at the latest */
#define TCP_READ       65536u   /* bytes of the read buffer */
#define TCP_AHEAD      4096u    /* bytes of it to read ahead between long packets */
#define TCP_DIRECT_MAX 2        /* links polled without epoll; an empty recv costs 3 epoll_waits */
#define TCP_UNREAD_MAX (1u << 20) /* bytes sent after which received data must be read first */
#define TCP_LINGER_MS  1000       /* longest linger of a closed link, in ms */

_Static_assert(TCP_PACKET_MAX >= WIRE_PACKET_MIN, "every request fits a packet");

/* May packets be sent? TCP_READY and TCP_FULL: a send tries. */
enum tcp_tx {
	TCP_READY,
	TCP_FULL,     /* the kernel's send buffer was full at the last try */
	TCP_REST,     /* `rest` is not sent yet and goes first */
	TCP_SECURING, /* the TLS handshake is not done: no packet may be sent */
	TCP_FAILED,   /* the connection is broken: see `err` */
};

/* Do short packets wait for others? */
enum tcp_waits {
	TCP_AT_ONCE, /* no */
	TCP_MORE,    /* until one comes without FI_MORE */
	TCP_STREAM,  /* yes: they are many */
};

/* TLS on a socket: tcp_tls.h. Zeroed: the socket carries bytes as they are. */
struct tcp_tls {
	struct tls *tls;     /* NULL: the kernel does it, or nobody */
	struct tls_out *out; /* of `tls` */
	int sock;
	bool kernel;    /* both kernels have TLS: ours takes over from `tls` */
	bool initiator; /* of the link */
};

/* How soon the flusher sends for a link, if the link's owner does not. */
enum tcp_pace {
	TCP_NEVER, /* there is nothing to send */
	TCP_LOOKS, /* what the kernel did not take: when the owner has not called for a while */
	TCP_TICKS, /* what is gathered: at the next tick */
	TCP_PACES
};

/* Guards what a link has to send, which its owner sends, or else the flusher: tcp_output.h. */
struct tcp_output {
	struct lock lock;   /* the flusher only tries it */
	unsigned int depth; /* calls of the owner that hold it, one within the other */
	enum tcp_pace pace; /* the list of the flusher that the link is in */
	struct list in_flusher;
	uint64_t since_ms; /* coarse ms: when the owner last left something */
};

struct tcp_gather;
struct tcp_link;
struct tcp_outgoing;
struct tcp_rails;
struct tcp_rest;

/* How a link's stream of packets goes: over a socket, encrypted over one, or over rails. */
struct tcp_stream_ops {
	/* As recvmsg. Of an `indirect` link, counts in `heard` what comes. */
	ssize_t (*recv)(struct tcp_link *l, const struct iovec *iov, size_t count);
	/* Is there something to read that no event tells of? */
	bool (*unread)(const struct tcp_link *l);
	bool keeps; /* that may wait for the next progress call */
	/* Looks at each packet that has come as a whole; NULL: at none. */
	void (*hear)(struct tcp_link *l, const struct packet *p);
	/* Sends a packet, or keeps what the kernel does not take as the rest. 0 or -FI_EAGAIN. NULL: link_ops do it all. */
	int (*send)(struct tcp_link *l, const struct tcp_outgoing *o);
	/* Appends a packet without payload to the rest. Likewise. */
	int (*end)(struct tcp_link *l, const struct tcp_frame *f);
	/* Of a link that is TCP_REST: sends more of what is left. True: some bytes went. */
	bool (*flush)(struct tcp_link *l);
	/* As flush, by the flusher. Locked. */
	void (*push)(struct tcp_link *l);
	/* Makes epfd watch `events`; 0: nothing. 0 or a negative error. */
	int (*watch)(struct tcp_link *l, uint32_t events);
	/* Has the peer all that was sent? */
	bool (*arrived)(const struct tcp_link *l);
	/* Has the peer not answered for `timeout` ms? */
	bool (*is_dead)(struct tcp_link *l, uint32_t timeout);
	/* Of a closed link: what has come is not needed any more. NULL: it has nothing. */
	void (*forget)(struct tcp_link *l);
	/* Continues a closed link: true if nothing is left to wait for. */
	bool (*linger)(struct tcp_link *l);
	/* The end; `abort`: the peers' kernels drop what is under way. Locked. */
	void (*close)(struct tcp_link *l, bool abort);
};

/* Transport state of a worker. */
struct tcp {
	struct opener *opener;
	unsigned int count;          /* links, lingering ones included */
	unsigned int live;           /* links that the engine has not closed */
	unsigned int idle;           /* progress calls since something was received */
	unsigned int progress_calls; /* progress calls that were not skipped */
	unsigned int packets;        /* packets delivered from one link in this progress call */
	bool watching;               /* all links are registered with epfd */
	bool due;                    /* the timer has expired */
	bool in_progress;            /* in a progress call: links closed now are freed at its end */
	struct list links;           /* struct tcp_link.in_state: open links */
	struct list closed;          /* in_state: links closed during the progress call */
	struct list lingering;       /* in_state: closed links with unacknowledged bytes */
	/* struct tcp_link.in_attend: links that are not TCP_READY, or hold what is not read yet */
	struct list attend;
	struct list answers;   /* in_answers: links whose kernels keep one for what is sent next */
	struct list gathering; /* struct tcp_link.in_gathering: links with `gather` */
	bool flusher;          /* tcp_flusher_open was called */
	bool no_flusher;       /* and has failed */
	uint64_t looked;       /* when lingering links were last processed (coarse ms) */
	uint64_t next_poll;    /* when to look for silent peers next (coarse ms) */
	unsigned int railed;   /* links with rails that the engine has not closed */
	uint64_t next_rails;   /* when to look after those next (coarse ms) */
	uint64_t looked_rails; /* when that was done last, or the first of them came */
	int epfd;
	int timer;          /* timerfd in epfd with a NULL link; -1 until a waiter sleeps */
	unsigned char *buf; /* TCP_READ bytes, processed before the next read */
	/* Of encrypted links: received bytes, NULL before the first such link; bytes to send, but for rails. */
	unsigned char *cipher;
	struct tls_out tls_out;
};

struct tcp_link {
	struct link link;
	struct tcp *own;
	uint32_t id; /* the engine's number of the peer */
	int sock;    /* with rails: one of them */
	enum tcp_tx tx;
	int err;               /* error of TCP_FAILED, positive */
	unsigned int row_call; /* own->progress_calls when `row` began */
	uint32_t events;       /* events that epfd watches; 0: not in epfd */
	const struct tcp_stream_ops *stream;
	struct tcp_tls secure;   /* of a link whose socket is encrypted */
	struct tcp_rails *rails; /* of one with rails: tcp_rails.h */
	struct tcp_rest *rest;
	struct tcp_output output;
	size_t row;       /* bytes of long messages sent since, up to TCP_BATCH_MAX */
	size_t zcopy_min; /* link.zcopy_min, unless the link gathers */
	/* Packets that wait to go out together; NULL: none. See tcp_output.h. */
	struct tcp_gather *gather;
	unsigned int burst_call; /* own->progress_calls when `burst` began */
	unsigned int burst;      /* short packets sent since */
	enum tcp_waits waits;
	bool more;     /* the next packet is not the last one that FI_MORE announces */
	bool indirect; /* the stream of packets is not what the socket brings: only `stream` reads it */
	size_t room;    /* bytes that the kernel's send buffer still takes */
	size_t said;    /* bytes of messages sent since has_unread last found nothing */
	uint64_t heard; /* bytes received */
	uint64_t hear;  /* messages wait until `heard` reaches this count; 0: no wait */
	/* Packet that is being received. */
	struct tcp_frame frame;
	uint32_t have;       /* bytes of the frame received */
	uint32_t got;        /* bytes of the payload received, if `begun` */
	uint32_t placing;    /* id of direct placement at the engine, or 0 */
	unsigned char *kept; /* without direct placement: buffer that collects the payload */
	bool begun;          /* the frame came without the whole payload */
	bool bulk;           /* the last packet was long: read little ahead */
	/* Life of the link. */
	bool ended;        /* the engine was told */
	bool closed;       /* closed by the engine */
	bool doubt;        /* the peer was silent at the last tcp_alive_poll */
	bool shut;         /* our side is shut down, or must not be */
	uint64_t deadline; /* end of lingering (coarse ms) */
	struct list in_state;
	struct list in_attend;
	struct list in_gathering;
	struct list in_answers;
};

/*
 * Rails, by the folder rails/. In a build without it this is NULL, so peers agree on none (opener.rails): then nothing of the
 * table is called.
 */
struct tcp_rails_ops {
	/* Makes the new link one with up to peer->rails rails, whose first is its socket. 0 or a negative error. */
	int (*open)(struct tcp_link *l, const struct link_peer *peer);
	/* Implements transport.join. */
	int (*join)(struct link *link, uint32_t rail, const struct link_peer *peer);
	/* Looks after all links with rails: finds stalled ones, asks for new sockets. Most calls do nothing. */
	void (*poll)(struct tcp *t, uint64_t now);
	/* Ms between two such looks: several fit into FI_WEFT_RAIL_TIMEOUT, and into FI_WEFT_PEER_TIMEOUT. */
	uint32_t (*period)(void);
};
extern const struct tcp_rails_ops tcp_rails_here, *const tcp_rails_ops;

/* tcp_cm.c */
/* Gives the link the operations and thresholds of one whose bytes go to the socket as they are. */
void tcp_bare(struct tcp_link *l);

/* tcp_socket.c */
extern const struct tcp_stream_ops tcp_socket_ops;
int tcp_socket_watch(struct tcp_link *l, uint32_t events);
bool tcp_socket_arrived(const struct tcp_link *l);
bool tcp_socket_is_dead(struct tcp_link *l, uint32_t timeout);
bool tcp_socket_linger(struct tcp_link *l);
void tcp_socket_close(struct tcp_link *l, bool abort);
/* Has the peer's kernel all that was sent, as far as can be known? */
bool tcp_acknowledged(int sock);

/* Fails as a system call does. */
static inline ssize_t tcp_fails(int err)
{
	errno = err;
	return -1;
}

/* tcp_tx.c */
int tcp_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	     uint64_t tag);
int tcp_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);
/* The same, but no answer waits in the kernel for what is sent next. */
int tcp_sendv_prompt(struct link *link, const struct packet *p, const struct iovec *iov,
		     size_t count);
/* The same for links that are encrypted: whole packets, of which none waits for others. */
int tcp_send_whole(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		   uint64_t tag);
int tcp_sendv_whole(struct link *link, const struct packet *p, const struct iovec *iov,
		    size_t count);
/* Implement those of struct tcp_stream_ops for a socket. */
int tcp_put(struct tcp_link *l, const struct tcp_outgoing *o);
int tcp_put_last(struct tcp_link *l, const struct tcp_frame *f);
int tcp_zcopy(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);
/* Enters the link in `attend`, for progress calls. */
void tcp_attend(struct tcp_link *l);
/* The same, in state `why`. */
void tcp_block(struct tcp_link *l, enum tcp_tx why);
/* Is errno `err` temporary, so that a send may be tried again? */
bool tcp_passing(int err);

/* Has the kernel space for all of a packet of `len` bytes, or of so many bytes of packets? */
bool tcp_has_space(struct tcp_link *l, size_t len);

static inline struct tcp_frame tcp_frame_of(const struct packet *p)
{
	return (struct tcp_frame){
		.head = p->head, .tag = p->tag, .len = (uint32_t)p->len, .data = p->data};
}

/* Counts `bytes` bytes of long messages sent since the last progress call. */
void tcp_row_add(struct tcp_link *l, size_t bytes);

/* Marks the connection as broken; `err` is positive. The next progress call tells the engine. */
void tcp_fail(struct tcp_link *l, int err);
/* Makes the link TCP_READY: the kernel has space again, as far as known. */
void tcp_reopen(struct tcp_link *l);

/* tcp_rest.c */
int tcp_zcopy_copy_out(struct link *link);
/* Sends more of the rest. True: some bytes went. */
bool tcp_flush(struct tcp_link *l);
/* The flusher's: sends what is gathered, or else the rest. Locked. */
void tcp_push(struct tcp_link *l);

/* tcp_rx.c */
/* Reads and delivers a bounded number of bytes. True: something was received, or the link ended. */
bool tcp_read(struct tcp_link *l);
/* As tcp_read, awaiting a frame, after recv has put `len` bytes into the buffer or failed. */
bool tcp_take(struct tcp_link *l, ssize_t len);

/* Returns the bytes that the caller of tcp_take passes to recv. */
static inline size_t tcp_ahead(const struct tcp_link *l)
{
	return l->bulk ? TCP_AHEAD : TCP_READ;
}

/* Tells the engine that the connection ended; `err` as link_events.ended takes it. The engine may close the link. */
void tcp_end(struct tcp_link *l, int err);

/* tcp_progress.c */
bool tcp_progress(void *state);
bool tcp_idle(const void *state);
bool tcp_arm(void *state);
int tcp_watch_all(struct tcp *t);

/* tcp_alive.c */
/* Breaks connections to silent peers. Checks now and then; most calls do nothing. */
void tcp_alive_poll(struct tcp *t);
/* Starts the timer that ends a sleep for tcp_alive_poll. */
void tcp_alive_timer(struct tcp *t);

/* tcp_linger.c */
void tcp_close_link(struct link *link);
/* Continues lingering links, at most once per tick of the coarse clock. */
void tcp_linger(struct tcp *t);
/* The worker closes: moves lingering links to another worker, or waits TCP_LINGER_MS. */
void tcp_linger_out(struct tcp *t);
/* Makes a sleep end when a lingering link can send. */
void tcp_linger_watch(struct tcp_link *l);
void tcp_free(struct tcp_link *l);

#endif
