/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/tls.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool works;

/* One end goes on with what the other has said. As tls_handshake. */
static int tls_try_hear(struct tls *tls, struct tls_out *said)
{
	int ret;

	tls_input(tls, said->bytes, said->len);
	ret = tls_handshake(tls);
	said->len = 0;
	return ret;
}

static bool tls_try_sends(struct tls *from, struct tls_out *out, struct tls *to)
{
	char byte;

	if (!tls_write(from, "", 1))
		return false;
	tls_input(to, out->bytes, out->len);
	return tls_read(to, &byte, 1) == 1;
}

/* Makes a connection to itself. */
static void tls_try_meet(void)
{
	uint8_t key[TLS_KEY] = {0};
	bool derived = tls_derive(key, sizeof(key), "weft", 4, key);
	struct tls_out out[2] = {{.len = 0}, {.len = 0}};
	struct tls *tls[2] = {tls_new(key, true, false, &out[0]),
			      tls_new(key, false, false, &out[1])};

	works = derived && tls[0] && tls[1] && tls_handshake(tls[0]) == 0 &&
		tls_try_hear(tls[1], &out[0]) == 0 && tls_try_hear(tls[0], &out[1]) == 1 &&
		tls_try_hear(tls[1], &out[0]) == 1 && tls_try_sends(tls[0], &out[0], tls[1]);
	for (int i = 0; i < 2; i++) {
		tls_free(tls[i]);
		free(out[i].bytes);
	}
	if (!works)
		LOG_WARN(LOG_CORE, "libssl encrypts nothing: is it whole, and does its "
				   "configuration permit TLS 1.3?");
}

bool tls_try(void)
{
	if (tls_load())
		pthread_once(&once, tls_try_meet);
	return works;
}
