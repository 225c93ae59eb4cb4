/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HMAC-SHA-256 (RFC 2104) of OpenSSL's libcrypto.so.3, which is loaded when the first key is used: an endpoint
 * without a key needs no library.
 */
#ifndef WEFT_BASE_HMAC_H
#define WEFT_BASE_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HMAC_LEN 32

/* Loads the library. False: it cannot be loaded, which is logged once. From any thread. */
bool hmac_load(void);
/* The code of `len` bytes under a key. False: the library is not there or has failed. */
bool hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t len,
		 uint8_t code[HMAC_LEN]);
/* Compares in a time that does not depend on the bytes. Needs no library. */
bool hmac_equal(const void *a, const void *b, size_t len);

#endif
