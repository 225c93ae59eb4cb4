/* SPDX-License-Identifier: BSD-2-Clause */
/* A build without OpenSSL's headers encrypts nothing. */
#include "base/tls.h"

#include <pthread.h>

#include "base/log.h"

/* The functions ignore their arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void tls_none_refuse(void)
{
	LOG_WARN(
		LOG_CORE,
		"this library was built without OpenSSL: it cannot encrypt; configure it where the headers of libssl 3 are");
}

bool tls_load(void)
{
	pthread_once(&once, tls_none_refuse);
	return false;
}

bool tls_derive(const void *secret, size_t secret_len, const void *context, size_t context_len,
		uint8_t key[TLS_KEY])
{
	return false;
}

struct tls *tls_new(const uint8_t key[TLS_KEY], bool initiator, bool kernels, struct tls_out *out)
{
	return NULL;
}

void tls_free(struct tls *tls)
{
}

/* No connection was ever made: nobody calls these. */

void tls_input(struct tls *tls, const void *bytes, size_t len)
{
}

int tls_handshake(struct tls *tls)
{
	return -1;
}

size_t tls_left(const struct tls *tls)
{
	return 0;
}

bool tls_kernel_keys(struct tls *tls, struct tls_way *out, struct tls_way *in)
{
	return false;
}

ssize_t tls_read(struct tls *tls, void *to, size_t room)
{
	return -1;
}

bool tls_unused(const struct tls *tls)
{
	return false;
}

bool tls_write(struct tls *tls, const void *bytes, size_t len)
{
	return false;
}

bool tls_starved(const struct tls *tls)
{
	return false;
}

const char *tls_error(const struct tls *tls)
{
	return "built without OpenSSL";
}
