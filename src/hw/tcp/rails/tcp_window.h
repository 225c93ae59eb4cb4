/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two windows of a link with rails (tcp_rails.h). The sender keeps each byte of the stream until the peer has
 * acknowledged it, and notes on which rail it went last. The receiver puts together what comes out of order. Both keep the
 * byte at position P of the stream at P % TCP_WINDOW of their memory.
 */
#ifndef WEFT_HW_TCP_WINDOW_H
#define WEFT_HW_TCP_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define TCP_WINDOW ((size_t)8 << 20) /* bytes that may be under way in one direction */
#define TCP_CHUNK  65536u            /* most bytes that go over one rail as a unit */
#define TCP_SPANS  512u              /* parts of the window, each with one fate, at most */
/* New bytes make no more parts than this: the others are for what is sent again, chunk by chunk. */
#define TCP_SPANS_NEW 256u
#define TCP_NO_RAIL   UINT32_MAX

/* Bytes `from` to `to`, exclusive, of the stream. */
struct tcp_span {
	uint64_t from, to;
	uint32_t
		rail; /* the sender's: where they went last; TCP_NO_RAIL: they have to be sent again */
};

struct tcp_window {
	unsigned char *bytes; /* TCP_WINDOW bytes; NULL: nothing is under way */
	struct tcp_span *
		span; /* TCP_SPANS, behind the bytes; ascending; the sender's cover `begin` to `next` */
	/*
	 * Sender: up to `begin` acknowledged, up to `next` sent at least once, up to `end` there.
	 * Receiver: up to `begin` read, up to `next` complete; `end` is not used.
	 */
	uint64_t begin, next, end;
	uint32_t count; /* of `span` */
	bool again;     /* the sender's: some parts have to be sent again */
	bool used;      /* since tcp_window_trim */
};

/* Gives a window memory, unless it has some. Called before bytes enter it. False: there is none. */
bool tcp_window_open(struct tcp_window *w);
void tcp_window_close(struct tcp_window *w);
/* Gives the memory of the bytes back, which are lost: parts are noted as before. */
void tcp_window_forget(struct tcp_window *w);
/* Closes an empty window that was not used since the last call. */
void tcp_window_trim(struct tcp_window *w);
/* Fills in where the bytes are: one or two segments, whose number it returns. */
size_t tcp_window_iov(const struct tcp_window *w, uint64_t at, size_t len, struct iovec iov[2]);

/* ---- The sender's ---- */

/* How many bytes tcp_window_put takes now. */
static inline size_t tcp_window_space(const struct tcp_window *w)
{
	return TCP_WINDOW - (size_t)(w->end - w->begin);
}
/* Is there something to send? */
static inline bool tcp_window_unsent(const struct tcp_window *w)
{
	return w->again || w->next != w->end;
}
/* Appends bytes, at most tcp_window_space. */
void tcp_window_put(struct tcp_window *w, const void *bytes, size_t len);
/* The next chunk to send, which is noted as sent on `rail`. False: there is none now. */
bool tcp_window_take(struct tcp_window *w, uint32_t rail, struct tcp_span *chunk);
/* What went on this rail last may not arrive: it has to be sent again. Returns the bytes. */
uint64_t tcp_window_lost(struct tcp_window *w, uint32_t rail);
/* How far has all been taken, and has not to be sent again? */
uint64_t tcp_window_taken(const struct tcp_window *w);
/* The peer has read all up to `to`. False: that was never sent. */
bool tcp_window_acked(struct tcp_window *w, uint64_t to);

/* ---- The receiver's ---- */

/* May a peer that keeps to the window send these bytes? */
static inline bool tcp_window_fits(const struct tcp_window *w, uint64_t at, size_t len)
{
	return at <= w->begin + TCP_WINDOW && len <= w->begin + TCP_WINDOW - at;
}
/* The bytes are in their place. False: there are more parts than a peer makes. */
bool tcp_window_came(struct tcp_window *w, uint64_t at, size_t len);
/* Has none of these bytes come? */
bool tcp_window_lacks(const struct tcp_window *w, uint64_t at, size_t len);
/* Copies what is complete and not read yet to the segments. Returns the bytes. */
size_t tcp_window_read(struct tcp_window *w, const struct iovec *iov, size_t count);

#endif
