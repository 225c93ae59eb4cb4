/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hmac.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include "base/log.h"

#define LIBRARY "libcrypto.so.3"

/* The calls as HMAC(3) and EVP_sha256(3) of OpenSSL document them. */
static struct {
	unsigned char *(*hmac)(const void *md, const void *key, int key_len,
			       const unsigned char *bytes, size_t len, unsigned char *code,
			       unsigned int *code_len);
	const void *(*sha256)(void);
} lib;

static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool hmac_find(void *handle, const char *name, void *call)
{
	void *at = dlsym(handle, name);

	if (!at)
		LOG_WARN(LOG_CORE, "%s has no %s: keys cannot be used", LIBRARY, name);
	*(void **)call = at;
	return at;
}

/*
 * Makes a code. The first one lets the library load its algorithms, thousands of allocations: not while a peer waits, for where memory
 * is short then, OpenSSL 3.0 crashes.
 */
static bool hmac_works(void)
{
	uint8_t code[HMAC_LEN];
	unsigned int len;

	return lib.hmac(lib.sha256(), "", 0, (const unsigned char *)"", 0, code, &len);
}

static void hmac_load_once(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		LOG_WARN(LOG_CORE,
			 "keys need OpenSSL 3 (package libssl3 or openssl-libs): %s cannot be "
			 "loaded: %s",
			 LIBRARY, dlerror());
		return;
	}
	loaded = hmac_find(handle, "HMAC", &lib.hmac) &&
		 hmac_find(handle, "EVP_sha256", &lib.sha256) && hmac_works();
	if (!loaded)
		dlclose(handle);
}

bool hmac_load(void)
{
	pthread_once(&once, hmac_load_once);
	return loaded;
}

bool hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t len,
		 uint8_t code[HMAC_LEN])
{
	unsigned int code_len = HMAC_LEN;

	return hmac_load() && key_len <= INT_MAX &&
	       lib.hmac(lib.sha256(), key, (int)key_len, bytes, len, code, &code_len) &&
	       code_len == HMAC_LEN;
}

bool hmac_equal(const void *a, const void *b, size_t len)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t differ = 0;

	for (size_t i = 0; i < len; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}
