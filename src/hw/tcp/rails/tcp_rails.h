/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links with several rails: sockets over different interfaces (docs/NETWORKS.md). The stream of frames is cut into chunks,
 * which say their place in it. Each goes over the first rail whose kernel takes more: so a small packet keeps to one rail,
 * and many bytes divide by what each rail carries. The sender keeps all until the peer says that it has read it; what went
 * over a rail that ends or stalls goes again over another one. The receiver drops what it has, and reads the stream in
 * order. Links with one rail have none of this.
 *
 * Of an encrypted link each rail is encrypted by itself, with keys of its own: a chunk is encrypted when it is given to a rail, and
 * what goes again over another one is encrypted anew there. A rail whose handshake fails, or that brings other bytes than the
 * peer's, ends as one that is reset. The link is TCP_SECURING until its first rail is ready.
 *
 * The receiver acknowledges along with what it sends. By itself it does so only where the sender has asked for it: when it
 * has read as far as it was asked, and on the way there at each multiple of TCP_ASK. The sender reports no packet behind
 * the next such place before that answer has come. So a process that ends without closing its endpoint gets no
 * acknowledgement too late, at which its kernel would drop what is still to go out.
 */
#ifndef WEFT_HW_TCP_RAILS_H
#define WEFT_HW_TCP_RAILS_H

#include "hw/tcp/tcp.h"
#include "hw/tcp/rails/tcp_window.h"

#define TCP_ASK   (TCP_WINDOW / 8) /* bytes after which the sender asks for an acknowledgement */
#define TCP_MARKS 32u /* packets, or rows of them, whose ends are noted to report them */
/* Announced messages while packets wait, enough for the rails to have work; further RTS get -FI_EAGAIN. */
#define TCP_ANNOUNCED_MAX 64u
/* Longest fragment, unless whole messages are longer: packets behind it wait until the rails have taken it. */
#define TCP_FRAGMENT (4 * TCP_CHUNK)

/* Head of a chunk on a rail, in host byte order. */
struct tcp_chunk {
	uint64_t at;   /* place in the stream */
	uint64_t ack;  /* the sender has read the other direction's stream up to here */
	uint32_t len;  /* bytes that follow, at most TCP_CHUNK; 0: none, it acknowledges or asks */
	uint32_t asks; /* 1: acknowledge when all up to `at` is read */
};

_Static_assert(sizeof(struct tcp_chunk) == 24, "layout of the head of a chunk");

struct tcp_rail {
	int sock;        /* -1: there is none now */
	uint32_t events; /* as those of the link */
	bool securing;   /* its handshake is not done: nothing goes over it */
	bool silent;     /* leaves packets unanswered: likewise */
	bool broken;     /* cannot send; what it has received may be read still */
	uint64_t rate;   /* bytes a second at the last check */
	uint64_t most; /* bytes that may be on their way; UINT64_MAX: as many as the kernel takes */
	uint64_t silence; /* ms in which checks, one after the other, found packets unanswered */
	/* What goes out, as far as `sent` says, head included; with `secure`, that is encrypted, and the last `left` bytes have to go out. */
	bool busy;
	size_t sent;
	struct tcp_chunk out;
	struct tcp_tls secure;
	struct tls_out encrypted;
	size_t left; /* bytes at the end of `encrypted` */
	/* What comes in. */
	size_t have; /* bytes of `in` */
	size_t got;  /* bytes behind it */
	struct tcp_chunk in;
};

/* Packets up to number `posted` of link.zcopy_posted end at `end` of the stream, or before it. */
struct tcp_mark {
	uint64_t end, posted;
};

struct tcp_rails {
	uint32_t
		wanted; /* the first so many rails are made anew by us when they end; 0: by the peer */
	bool ack_due;    /* an acknowledgement must go out */
	bool ask_due;    /* the question for one must go out */
	bool end_due;    /* the last rail has ended, and nobody has read that yet */
	int err;         /* why the last rail ended; 0: in good order */
	uint32_t latest; /* the rail of the last chunk that came: acknowledgements return there */
	uint32_t marks;
	/* Long messages that have not begun: requests whose RTS has no answer, and those that have a CTS. */
	uint32_t announced[TCP_ANNOUNCED_MAX], allowed[TCP_ANNOUNCED_MAX];
	uint32_t unanswered, granted;
	uint64_t acked;   /* the last acknowledgement to the peer */
	uint64_t asked;   /* by the peer: it wants to know when all up to here is read */
	uint64_t ask;     /* likewise by us; the answer has come when out.begin is as far */
	uint64_t bulk;    /* the last fragment that is sent or waits ends here */
	uint64_t quiet;   /* out.next at the last check */
	uint64_t silence; /* ms in which checks, one after the other, found all rails silent */
	struct tcp_window in, out;
	struct tcp_rail rail[WIRE_RAILS_MAX];
	struct tcp_mark mark[TCP_MARKS]; /* ascending */
};

/* tcp_rails.c */
/* Continues the handshake of a rail that is `securing`. */
void tcp_rails_shake(struct tcp_link *l, uint32_t rail);
/* A rail's socket has ended with `err` (positive; 0: in good order): closes it. */
void tcp_rails_end(struct tcp_link *l, uint32_t rail, int err);
/* Chooses the socket that stands for the link in questions to the kernel: one that answers, if there is any. */
void tcp_rails_name(struct tcp_link *l);

/* tcp_rails_check.c */
/* Implement struct tcp_rails_ops. */
void tcp_rails_poll(struct tcp *t, uint64_t now);
uint32_t tcp_rails_period(void);
/* Makes the kernel keep little unsent for a rail's socket of this rate, in bytes a second. */
void tcp_rails_limit(int sock, uint64_t rate);

/* tcp_rails_tx.c */
/* May something go over the rail? */
bool tcp_rails_usable(const struct tcp_rail *r);
/* What went over the rail last goes again over others. Returns the bytes. */
uint64_t tcp_rails_again(struct tcp_link *l, uint32_t rail);
int tcp_rails_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		   uint64_t tag);
int tcp_rails_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		    size_t count);
/* Implement struct link_zcopy_ops: packets are copied, and counted as done when the kernels have them. */
int tcp_rails_post(struct link *link, const struct packet *p, const struct iovec *iov,
		   size_t count);
int tcp_rails_copy_out(struct link *link);
void tcp_rails_cork(struct link *link, bool more);
/* Implements tcp_stream_ops.push: gives the rails what they take. */
void tcp_rails_fill(struct tcp_link *l);
/* The same for the owner: asks and answers, too, and finds out what is out. True: something went. */
bool tcp_rails_flush(struct tcp_link *l);
/* Looks at a packet that has come: the answer to an RTS, CTS or ATS, makes place for another one. */
void tcp_rails_hear(struct tcp_link *l, const struct packet *p);

/* tcp_rails_rx.c */
/* Implements tcp_stream_ops.recv. Reads the rails only when all that has come is read. */
ssize_t tcp_rails_recv(struct tcp_link *l, const struct iovec *iov, size_t count);
/* The link is closed: what comes is dropped, and what has come is. */
void tcp_rails_forget(struct tcp_link *l);
/* Reads and drops what comes. False: the link ends. */
bool tcp_rails_drop(struct tcp_link *l);
/* Closes the window of what comes if it is empty and was not used since the last call. */
void tcp_rails_trim_in(struct tcp_link *l);

#endif
