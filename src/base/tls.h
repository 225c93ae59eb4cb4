/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 by a key that both ends have (RFC 8446), of OpenSSL's libssl.so.3, which is loaded when first used. Works on
 * memory alone: the caller moves the bytes. Calls for one connection, or one output, are serialized by the caller.
 */
#ifndef WEFT_BASE_TLS_H
#define WEFT_BASE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TLS_KEY    32    /* bytes of a key */
#define TLS_RECORD 16384 /* most bytes of data in one record */
#define TLS_CIPHER 16    /* bytes of a key of the cipher */
#define TLS_IV     12

/* A connection. */
struct tls;

/* What encrypts one direction of a connection (RFC 8446, section 7.3), from its first record behind the handshake on. */
struct tls_way {
	uint8_t key[TLS_CIPHER], iv[TLS_IV];
};

/* What connections have to send: calls append, the caller sets `len` to 0 before. Zeroed: empty. */
struct tls_out {
	unsigned char *bytes;
	size_t len, room;
};

/* Loads the library. False: it cannot be loaded, which is logged once. From any thread. */
bool tls_load(void);
/*
 * Loads the library, and what it loads when it is first used, some thousand allocations: not while a peer waits, for where memory is
 * short then, OpenSSL 3.0 fails for ever. False: it does not work. From any thread.
 */
bool tls_try(void);
/*
 * Derives TLS_KEY bytes from a secret: HKDF-SHA-256 (RFC 5869) without salt. False: the library is not there or has
 * failed.
 */
bool tls_derive(const void *secret, size_t secret_len, const void *context, size_t context_len,
		uint8_t key[TLS_KEY]);

/*
 * A new connection. The key is copied; `out` is used by tls_handshake, tls_read and tls_write. `kernels`: the kernel of either end may go on with it after the handshake. NULL: no memory, or no library.
 */
struct tls *tls_new(const uint8_t key[TLS_KEY], bool initiator, bool kernels, struct tls_out *out);
void tls_free(struct tls *tls);

/* `bytes` were received. They stay the caller's, unchanged while tls_unused. */
void tls_input(struct tls *tls, const void *bytes, size_t len);
/*
 * Continues the handshake; the initiator begins it. 1: done, and tls_left bytes of the input are behind it; 0: more input
 * is needed; -1: broken.
 */
int tls_handshake(struct tls *tls);
/* Bytes of the input that are not used yet. */
size_t tls_left(const struct tls *tls);
/*
 * For a kernel that goes on, of a connection with `kernels`: once, after the handshake, before anything is read or
 * written. False: the library has failed.
 */
bool tls_kernel_keys(struct tls *tls, struct tls_way *out, struct tls_way *in);
/* Decrypts input. Returns the number of bytes; 0: more input is needed; -1: broken. */
ssize_t tls_read(struct tls *tls, void *to, size_t room);
/* Has tls_read more to return without new input? */
bool tls_unused(const struct tls *tls);
/* Encrypts up to INT_MAX bytes into the output. False: broken, or no memory. */
bool tls_write(struct tls *tls, const void *bytes, size_t len);
/* Why the connection is broken, in the library's words. */
const char *tls_error(const struct tls *tls);
/* Is it for want of memory? */
bool tls_starved(const struct tls *tls);

/* ---- TLS 1.3 by the kernel (its module `tls`): a socket encrypts what is sent and decrypts what is received. ---- */

/* Has the kernel it, and is it wanted (FI_WEFT_KERNEL_TLS)? Always the same answer. From any thread. */
bool ktls_available(void);
/*
 * The kernel encrypts all that a connected TCP socket sends from now on, and decrypts all that it has not handed out.
 * 0: it does; 1: it cannot, and the socket is as it was; else a negative error: nothing can be done with the socket.
 */
int ktls_start(int sock, const struct tls_way *out, const struct tls_way *in);

#endif
