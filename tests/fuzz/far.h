/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other ends of tcp links: one socket, or several rails, each in the clear or encrypted. What the endpoint sends is
 * checked to be valid packets, and valid chunks of rails.
 */
#ifndef FUZZ_FAR_H
#define FUZZ_FAR_H

#include "hw/tcp/rails/tcp_rails.h"
#include "secure.h"

#define SENT_MAX 8

/* A socket. Without rails a link has the first one. */
struct rail {
	int sock; /* -1: closed */
	struct secure secure;
	struct tcp_chunk
		chunk; /* of the endpoint's output: `have` bytes of it are read, `left` behind it are to come */
	size_t have, left;
};

struct far {
	struct rail rail[WIRE_RAILS_MAX];
	bool rails;
	unsigned int use;   /* the rail that packets go over */
	uint64_t out, next; /* places: of the next byte that goes out, and that comes in */
	/* Of the endpoint's output: bytes of `frame` read, of payload to come. */
	struct tcp_frame frame;
	size_t have, left;
};

/* The last heads that the endpoint sent, to any peer. */
static struct tcp_frame sent[SENT_MAX];
static unsigned int sent_count;

/* The fuzzer's. */
static void make_progress(void);

/* Moves up to `want` bytes of the input at *at to `to`, or drops them (NULL). */
static inline size_t part(const unsigned char **at, size_t *len, void *to, size_t want)
{
	size_t n = *len < want ? *len : want;

	if (to)
		memcpy(to, *at, n);
	*at += n;
	*len -= n;
	return n;
}

/* Checks that the endpoint's output is a sequence of valid packets. */
static inline void parse(struct far *f, const unsigned char *at, size_t len)
{
	while (len) {
		f->left -= part(&at, &len, NULL, f->left);
		f->have += part(&at, &len, (char *)&f->frame + f->have, sizeof(f->frame) - f->have);
		if (f->have < sizeof(f->frame))
			continue;
		MUST(wire_op(f->frame.head) >= WIRE_MSG && wire_op(f->frame.head) < WIRE_OPS);
		MUST(f->frame.len <= TCP_PACKET_MAX && !f->frame.zero);
		sent[sent_count++ % SENT_MAX] = f->frame;
		f->left = f->frame.len;
		f->have = 0;
	}
}

/* The same of chunks. Those that do not come in order are left out, so the endpoint sends them again if their rail ends. */
static inline void parse_chunks(struct far *f, struct rail *r, const unsigned char *at, size_t len)
{
	while (len) {
		size_t n = len < r->left ? len : r->left;

		if (n && r->chunk.at + (r->chunk.len - r->left) == f->next) {
			parse(f, at, n);
			f->next += n;
		}
		r->left -= part(&at, &len, NULL, n);
		r->have += part(&at, &len, (char *)&r->chunk + r->have, sizeof(r->chunk) - r->have);
		if (r->have < sizeof(r->chunk) || r->left)
			continue;
		MUST(r->chunk.len <= TCP_CHUNK && r->chunk.asks <= 1 &&
		     !(r->chunk.asks && r->chunk.len));
		r->left = r->chunk.len;
		r->have = 0;
	}
}

static inline bool read_rail(struct far *f, struct rail *r)
{
	static unsigned char buf[65536];
	ssize_t len = 0;

	if (r->secure.tls)
		len = (ssize_t)secure_read(&r->secure, r->sock, buf, sizeof(buf));
	else if (r->sock >= 0)
		len = recv(r->sock, buf, sizeof(buf), MSG_DONTWAIT);
	if (len > 0 && f->rails)
		parse_chunks(f, r, buf, (size_t)len);
	else if (len > 0)
		parse(f, buf, (size_t)len);
	return len > 0;
}

static inline bool read_far(struct far *f)
{
	bool some = false;

	for (unsigned int i = 0; i < WIRE_RAILS_MAX; i++)
		some |= read_rail(f, &f->rail[i]);
	return some;
}

/* Writes bytes to the endpoint, unless the connection has ended. */
static inline void write_rail(struct rail *r, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	if (r->secure.tls && !r->secure.done)
		return;
	if (r->secure.tls) {
		r->secure.out.len = 0;
		MUST(tls_write(r->secure.tls, bytes, len));
		at = r->secure.out.bytes;
		len = r->secure.out.len;
	}
	for (int i = 0; len && i < 100 && r->sock >= 0; i++) {
		ssize_t n = send(r->sock, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
		if (len)
			make_progress();
	}
}

/* The same at their place in the stream. */
static inline void write_far(struct far *f, const void *bytes, size_t len)
{
	struct {
		struct tcp_chunk head;
		unsigned char bytes[TCP_CHUNK];
	} static whole;
	const unsigned char *at = bytes;

	while (f->rails && len) {
		size_t n = part(&at, &len, whole.bytes, sizeof(whole.bytes));

		whole.head = (struct tcp_chunk){.at = f->out, .ack = f->next, .len = (uint32_t)n};
		write_rail(&f->rail[f->use], &whole, sizeof(whole.head) + n);
		f->out += n;
	}
	if (len)
		write_rail(&f->rail[0], bytes, len);
}

static inline void close_rail(struct rail *r)
{
	secure_end(&r->secure);
	if (r->sock >= 0)
		close(r->sock);
	*r = (struct rail){.sock = -1};
}

static inline void close_far(struct far *f)
{
	for (unsigned int i = 0; i < WIRE_RAILS_MAX; i++)
		close_rail(&f->rail[i]);
}

#endif
