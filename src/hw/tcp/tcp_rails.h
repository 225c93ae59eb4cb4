/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links with several rails: sockets over different interfaces (docs/NETWORKS.md). The stream of frames is cut into chunks,
 * which say their place in it. Each goes over the first rail whose kernel takes more: so a small packet keeps to one rail,
 * and many bytes divide by what each rail carries. The sender keeps all until the peer says that it has read it; what went
 * over a rail that ends or stalls goes again over another one. The receiver drops what it has, and reads the stream in
 * order. Encrypted links, and those with one rail, have none of this.
 */
#ifndef WEFT_HW_TCP_RAILS_H
#define WEFT_HW_TCP_RAILS_H

#include "hw/tcp/tcp.h"
#include "hw/tcp/tcp_window.h"

/* Head of a chunk on a rail, in host byte order. Without bytes it only acknowledges. */
struct tcp_chunk {
	uint64_t at;  /* place in the stream */
	uint64_t ack; /* the sender has read the other direction's stream up to here */
	uint32_t len; /* bytes that follow, at most TCP_CHUNK */
	uint32_t zero;
};

_Static_assert(sizeof(struct tcp_chunk) == 24, "layout of the head of a chunk");

struct tcp_rail {
	int sock;        /* -1: there is none now */
	uint32_t events; /* as those of the link */
	bool silent;     /* leaves packets unanswered: nothing goes over it */
	bool broken;     /* cannot send; what it has received may be read still */
	uint64_t heard;  /* ms: the last check that found no packet unanswered */
	/* What goes out, as far as `sent` says, head included. */
	bool busy;
	size_t sent;
	struct tcp_chunk out;
	/* What comes in. */
	size_t have; /* bytes of `in` */
	size_t got;  /* bytes behind it */
	struct tcp_chunk in;
};

struct tcp_rails {
	bool initiator;  /* we make new sockets in place of those that ended */
	bool due;        /* an acknowledgement must go out */
	int err;         /* why the last rail ended; 0: in good order */
	uint32_t latest; /* the rail of the last chunk that came: acknowledgements return there */
	uint32_t chunks; /* that came since the last acknowledgement */
	uint64_t acked;  /* the last acknowledgement */
	struct tcp_window in, out;
	struct tcp_rail rail[WIRE_RAILS_MAX];
};

/* tcp_rails.c */
/* Makes the new link one with rails, whose first is its socket. 0 or -FI_ENOMEM. */
int tcp_rails_open(struct tcp_link *l, bool initiator);
/* Undoes tcp_rails_open; the socket stays open. */
void tcp_rails_abandon(struct tcp_link *l);
/* Closes all sockets; `abort`: the peers' kernels drop what is under way. */
void tcp_rails_close(struct tcp_link *l, bool abort);
/* Implements transport.join. */
int tcp_rails_join(struct link *link, uint32_t rail, int sock);
/* A rail's socket has ended with `err` (positive; 0: in good order): closes it. */
void tcp_rails_end(struct tcp_link *l, uint32_t rail, int err);
/* Looks after all links with rails: finds stalled ones, asks for new sockets. Most calls do nothing. */
void tcp_rails_poll(struct tcp *t, uint64_t now);
/* Ms between two such looks. */
uint32_t tcp_rails_period(void);
/* As tcp_watch, for all rails; 0: for none. */
int tcp_rails_watch(struct tcp_link *l, uint32_t events);
/* Continues a closed link: true if nothing is left to wait for. */
bool tcp_rails_linger(struct tcp_link *l);

/* tcp_rails_tx.c */
int tcp_rails_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		   uint64_t tag);
int tcp_rails_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		    size_t count);
/* Sends what the rails take. True: something went. */
bool tcp_rails_flush(struct tcp_link *l);

/* tcp_rails_rx.c */
/* As recvmsg. Reads the rails only when all that has come is read. */
ssize_t tcp_rails_recv(struct tcp_link *l, const struct iovec *iov, size_t count);

/* Is something complete that is not read yet? No event announces it. */
static inline bool tcp_rails_unread(const struct tcp_link *l)
{
	return __builtin_expect(l->rails != NULL, 0) && l->rails->in.begin != l->rails->in.next;
}

#endif
