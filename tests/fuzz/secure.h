/* SPDX-License-Identifier: BSD-2-Clause */
/* The other ends of encrypted links. */
#ifndef FUZZ_SECURE_H
#define FUZZ_SECURE_H

#include <sys/socket.h>

#include "base/tls.h"
#include "input.h"
#include "link/wire.h"

struct secure {
	struct tls *tls; /* NULL: there is no such link */
	struct tls_out out;
	bool done;      /* the handshake is */
	bool wrong_key; /* of this end */
	bool spoilt;    /* this end does not do as it should: the link may break */
};

static inline void secure_end(struct secure *s)
{
	tls_free(s->tls);
	free(s->out.bytes);
	*s = (struct secure){0};
}

/* Begins with the key that both ends make of the job's key and the code of the third hello. */
static inline void secure_begin(struct secure *s, bool initiator, const uint8_t *key,
				size_t key_len, const uint8_t asked[WIRE_PROOF])
{
	uint8_t link_key[TLS_KEY];
	struct {
		char label[16];
		uint8_t asked[WIRE_PROOF];
	} info = {.label = "weft link"};

	memcpy(info.asked, asked, WIRE_PROOF);
	MUST(tls_derive(key, key_len, &info, sizeof(info), link_key));
	s->tls = tls_new(link_key, initiator, false, &s->out);
	MUST(s->tls);
}

/* Sends the output, with byte `spoil` of it changed unless that is 0. */
static inline void secure_flush(struct secure *s, int sock, size_t spoil)
{
	if (spoil && s->out.len)
		s->out.bytes[spoil % s->out.len] ^= 1;
	if (s->out.len)
		send(sock, s->out.bytes, s->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	s->out.len = 0;
}

/* Is the handshake done? An end with another key gets nowhere, and hears nothing in the clear. */
static inline bool secure_ready(struct secure *s, int sock)
{
	int ret = s->done ? 1 : tls_handshake(s->tls);

	MUST(ret <= 0 || !s->wrong_key);
	MUST(ret >= 0 || s->spoilt || s->wrong_key);
	secure_flush(s, sock, 0);
	s->done = ret > 0;
	return s->done;
}

/* Continues the handshake, or reads. Returns the number of bytes; 0: none. */
static inline size_t secure_read(struct secure *s, int sock, void *to, size_t room)
{
	static unsigned char bytes[65536];
	ssize_t len = 0;

	if (!tls_unused(s->tls) && (len = recv(sock, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		tls_input(s->tls, bytes, (size_t)len);
	if (!secure_ready(s, sock))
		return 0;
	len = tls_read(s->tls, to, room);
	MUST(len >= 0 || s->spoilt);
	return len > 0 ? (size_t)len : 0;
}

#endif
