/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients' ends of encrypted links. */
#ifndef FUZZ_SECURE_H
#define FUZZ_SECURE_H

#include "base/tls.h"
#include "clients.h"
#include "talk.h"

static struct secure {
	struct tls *tls; /* NULL: the slot's link is not made yet */
	struct tls_out out;
	bool done;      /* the handshake is */
	bool wrong_key; /* the client's */
	bool spoilt;    /* the client does not do as it should: the link may break */
} secures[SLOTS];

static void secure_end(unsigned int i)
{
	tls_free(secures[i].tls);
	free(secures[i].out.bytes);
	secures[i] = (struct secure){0};
}

/* The key of the link: of the job's key, and of all that was said up to the third hello. */
static void secure_begin(unsigned int i, const struct talk *t, const uint8_t key[KEY_LEN],
			 bool wrong_key)
{
	struct secure *s = &secures[i];
	uint8_t link_key[TLS_KEY];
	struct {
		char label[16];
		uint8_t asked[WIRE_PROOF];
	} info = {.label = "weft link"};

	memcpy(info.asked, wrong_key ? t->chain : t->asked, WIRE_PROOF);
	MUST(tls_derive(key, KEY_LEN, &info, sizeof(info), link_key));
	s->wrong_key = s->spoilt = wrong_key;
	s->tls = tls_new(link_key, t->came, &s->out);
	MUST(s->tls);
}

/* Sends the output, with byte `spoil` of it changed unless that is 0. */
static void secure_flush(unsigned int i, size_t spoil)
{
	struct secure *s = &secures[i];

	if (spoil && s->out.len)
		s->out.bytes[spoil % s->out.len] ^= 1;
	if (s->out.len)
		send(slots[i].sock, s->out.bytes, s->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	s->out.len = 0;
}

/* A client with another key than the endpoint's gets nowhere, and hears nothing in the clear. */
static void secure_go_on(unsigned int i)
{
	static unsigned char bytes[65536], plain[65536];
	struct secure *s = &secures[i];
	ssize_t len = recv(slots[i].sock, bytes, sizeof(bytes), MSG_DONTWAIT);
	int ret = 1;

	if (len > 0)
		tls_input(s->tls, bytes, (size_t)len);
	if (!s->done)
		ret = tls_handshake(s->tls);
	MUST(ret <= 0 || !s->wrong_key);
	MUST(ret >= 0 || s->spoilt);
	secure_flush(i, 0);
	s->done = ret > 0;
	while (s->done && (len = tls_read(s->tls, plain, sizeof(plain))) > 0)
		;
	MUST(!s->done || len >= 0 || s->spoilt);
	if (ret < 0)
		slot_close(i, false);
}

static void secure_send(unsigned int i, const void *bytes, size_t len, size_t spoil)
{
	struct secure *s = &secures[i];

	if (!s->done || s->spoilt)
		return;
	MUST(tls_write(s->tls, bytes, len));
	s->spoilt = spoil;
	secure_flush(i, spoil);
}

#endif
