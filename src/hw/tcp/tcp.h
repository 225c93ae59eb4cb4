/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP transport: framed packets on the socket that carried the hellos. One read buffer per worker, one link
 * per peer; an idle link holds no buffer.
 */
#ifndef WEFT_HW_TCP_H
#define WEFT_HW_TCP_H

#include "base/list.h"
#include "link/link.h"
#include "link/wire.h"

/*
 * Frame header before every payload, in host byte order: the hello refuses hosts of another order. It has 32 bytes
 * because copies of long payloads are a fifth slower behind shorter ones: the processor confuses addresses that
 * are so close to each other within their pages.
 */
struct tcp_frame {
	uint64_t head;
	uint64_t tag;
	uint64_t data; /* meaningful with WIRE_DATA */
	uint32_t len;  /* of the payload */
	uint32_t zero; /* must be */
};

_Static_assert(offsetof(struct tcp_frame, data) == 16, "layout of a frame");
_Static_assert(offsetof(struct tcp_frame, len) == 24, "layout of a frame");
_Static_assert(sizeof(struct tcp_frame) == 32, "layout of a frame");

/*
 * The end of a packet may go out as a short TCP segment of its own, so long packets are better. One has space for
 * 1 MiB and the header of a one-sided request.
 */
#define TCP_PACKET_MAX ((1u << 20) + 4096) /* longest payload */
#define TCP_ZCOPY_MIN  16384u              /* least value of FI_WEFT_TCP_ZCOPY_MIN */
#define TCP_ROW        262144u /* bytes of long packets that go at once with no progress call between them */
#define TCP_BATCH_MAX  1048576u /* bytes: what follows waits until it is as much as has gone, or this much */
#define TCP_READ       65536u   /* bytes of the read buffer */
#define TCP_AHEAD      4096u    /* bytes of it used while long packets follow each other */
#define TCP_DIRECT_MAX 2        /* links read without epoll: an empty recv costs as much as three epoll_wait calls */
#define TCP_UNREAD_MAX (1u << 20) /* bytes sent after which received data must be read first */
#define TCP_LINGER_MS  1000 /* a worker waits so long at most, in all, for its last bytes to be acknowledged */

_Static_assert(TCP_PACKET_MAX >= WIRE_PACKET_MIN, "every request fits a packet");

/* May packets be sent? In the first two states a send is tried. */
enum tcp_tx {
	TCP_READY,
	TCP_FULL,   /* the kernel took nothing the last time */
	TCP_REST,   /* part of a packet is not sent yet: it goes first */
	TCP_FAILED, /* the connection is broken: `err` */
};

struct tcp_rest;

/* The state of a worker. */
struct tcp {
	struct worker *worker;
	unsigned int count;          /* links, those that linger included */
	unsigned int live;           /* of them: not closed */
	unsigned int idle;           /* progress calls since something came */
	unsigned int progress_calls; /* that looked */
	unsigned int packets;        /* delivered in this progress call from this link */
	bool watching;               /* epfd knows all links */
	bool due;                    /* the timer went off */
	bool in_progress;            /* links closed now are freed at the end of the call */
	struct list links;           /* struct tcp_link.in_state, live */
	struct list closed;          /* the same, closed during the progress call */
	struct list lingering;       /* the same, closed: their last bytes are on their way */
	struct list attend;          /* struct tcp_link.in_attend: not TCP_READY */
	uint64_t looked;             /* ms: at those that linger */
	uint64_t next_poll;          /* ms: for peers that do not answer */
	int epfd;
	int timer;          /* in epfd, with no link; -1 until somebody sleeps */
	unsigned char *buf; /* TCP_READ bytes; what they hold is used up before the next read */
};

struct tcp_link {
	struct link link;
	struct tcp *own;
	uint32_t id; /* how the engine names the peer */
	int sock;
	enum tcp_tx tx;
	int err; /* of TCP_FAILED, positive */
	struct tcp_rest *rest;
	unsigned int row_call; /* own->progress_calls when `row` began */
	size_t row;            /* bytes of long messages since then, up to TCP_BATCH_MAX */
	size_t room;    /* bytes that the kernel takes for sure, by its word and what went since */
	size_t said;    /* bytes of messages sent since the peer was heard */
	uint64_t heard; /* bytes received */
	uint64_t hear;  /* up to there, before more messages go out; or 0 */
	/* What is being received: the frame, then its payload. */
	struct tcp_frame frame;
	uint32_t have;       /* bytes of the frame that have come */
	uint32_t got;        /* of the payload, once it has begun */
	uint32_t placing;    /* its id at the engine, which names places for it, or 0 */
	unsigned char *kept; /* else where it is put together */
	bool begun;          /* the payload did not come with its frame */
	bool bulk;           /* the last packet was long: others like it follow */
	/* Its life. */
	bool ended;        /* the engine was told */
	bool closed;       /* by the engine */
	bool doubt;        /* it did not answer when tcp_alive_poll came by */
	bool shut;         /* our side of the connection */
	uint32_t events;   /* that epfd looks for */
	uint64_t deadline; /* ms: no longer worth lingering */
	struct list in_state;
	struct list in_attend;
};

/* tcp_tx.c */
int tcp_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
	     uint64_t tag);
int tcp_sendv(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);
int tcp_zcopy(struct link *link, const struct packet *p, const struct iovec *iov, size_t count);
/* Progress calls see to the link from now on. */
void tcp_block(struct tcp_link *l, enum tcp_tx why);
/* May it be tried again after this errno? */
bool tcp_passing(int err);

/* So many more bytes of long messages went since the last progress call. */
void tcp_row_add(struct tcp_link *l, size_t bytes);

/* The connection is broken: `err` is positive. The engine hears of it in the next progress call. */
void tcp_fail(struct tcp_link *l, int err);
/* There is room again, as far as we know. */
void tcp_reopen(struct tcp_link *l);

/* tcp_rest.c */
int tcp_zcopy_copy_out(struct link *link);
/* Goes on with the rest; true when something went. */
bool tcp_flush(struct tcp_link *l);

/* tcp_rx.c */
/* Delivers what has come, a bounded part of it; true when there was anything. */
bool tcp_read(struct tcp_link *l);
/* The same for a link that awaits a frame, after recv put `len` bytes into the buffer, or failed. */
bool tcp_take(struct tcp_link *l, ssize_t len);

/* Bytes that such a recv asks for. */
static inline size_t tcp_ahead(const struct tcp_link *l)
{
	return l->bulk ? TCP_AHEAD : TCP_READ;
}

/* Tells the engine that the connection is over. */
void tcp_end(struct tcp_link *l, int err);

/* tcp_progress.c */
bool tcp_progress(void *state);
bool tcp_arm(void *state);
/* Lets epfd look for these events of the link. 0 or a negative error. */
int tcp_watch(struct tcp_link *l, uint32_t events);
int tcp_watch_all(struct tcp *t);

/* tcp_alive.c */
/* Breaks connections to peers that do not answer; looks at them now and then. */
void tcp_alive_poll(struct tcp *t);
/* Sees to it that sleep ends for that. */
void tcp_alive_timer(struct tcp *t);

/* tcp_linger.c */
void tcp_close_link(struct link *link);
/* Sees to those that linger, now and then. */
void tcp_linger(struct tcp *t);
/* The worker is closed: leaves them to another of the domain, or waits for them, a bounded time. */
void tcp_linger_out(struct tcp *t);
/* Sees to it that sleep ends when such a link can go on. */
void tcp_linger_watch(struct tcp_link *l);
void tcp_free(struct tcp_link *l);

#endif
