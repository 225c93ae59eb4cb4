/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/tls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/tls_calls.h"

#define LIBRARY "libssl.so.3"

/* TLS_AES_128_GCM_SHA256, as everybody has it; by number, as SSL_CIPHER_find(3) takes it. */
#define CIPHER "TLS_AES_128_GCM_SHA256"

/*
 * Bytes after which our side changes its key: a sixth of what RFC 8446, section 5.5, allows. Kernels before Linux 6.14
 * cannot follow.
 */
#define KEY_BYTES ((uint64_t)1 << 36)

static struct {
#define CALL(name)                                                                                 \
	__typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses): is declared here */
	TLS_CALLS(CALL)
#undef CALL
	SSL_CTX *ctx;
	BIO_METHOD *bio;
	EVP_KDF *hkdf, *tls13;
} lib;

static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct tls {
	SSL *ssl;
	struct tls_out *out;
	const unsigned char *in;
	size_t in_len;
	bool broken;
	bool starved; /* by a fault of the library's own, not by what the peer has sent: nothing else than memory is missing */
	unsigned long reason;
	bool initiator, kernels;
	uint64_t written; /* bytes since our side's key is in use */
	uint8_t key[TLS_KEY];
	uint8_t secrets[2][TLS_KEY]; /* with `kernels`: traffic secrets of target and initiator */
};

/* ---- What the library calls ---- */

static int take_input(BIO *bio, char *to, int room)
{
	struct tls *tls = lib.BIO_get_data(bio);
	size_t len = tls->in_len < (size_t)room ? tls->in_len : (size_t)room;

	lib.BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
	if (!len) {
		lib.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
		return -1;
	}
	memcpy(to, tls->in, len);
	tls->in += len;
	tls->in_len -= len;
	return (int)len;
}

static int append_output(BIO *bio, const char *bytes, int len)
{
	struct tls_out *out = ((struct tls *)lib.BIO_get_data(bio))->out;
	size_t needs = out->len + (size_t)len;
	unsigned char *more;

	if (needs > out->room) {
		size_t room = out->room ? out->room : (size_t)2 * TLS_RECORD;

		while (room < needs)
			room *= 2;
		more = realloc(out->bytes, room);
		if (!more)
			return -1;
		out->bytes = more;
		out->room = room;
	}
	memcpy(out->bytes + out->len, bytes, (size_t)len);
	out->len = needs;
	return len;
}

static long tls_control(BIO *bio, int what, long number, void *at)
{
	(void)bio, (void)number, (void)at;
	return what == BIO_CTRL_FLUSH;
}

/* The key as the library wants it: the session of a connection that there was before. NULL: no memory. */
static SSL_SESSION *session_of(SSL *ssl)
{
	static const unsigned char code[] = {0x13, 0x01}; /* of CIPHER */
	const struct tls *tls = lib.SSL_get_ex_data(ssl, 0);
	const SSL_CIPHER *cipher = lib.SSL_CIPHER_find(ssl, code);
	SSL_SESSION *session = lib.SSL_SESSION_new();

	if (session && cipher &&
	    lib.SSL_SESSION_set1_master_key(session, tls->key, sizeof(tls->key)) &&
	    lib.SSL_SESSION_set_cipher(session, cipher) &&
	    lib.SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
		return session;
	lib.SSL_SESSION_free(session);
	return NULL;
}

/* There is one key: its identity says nothing. */
static int use_key(SSL *ssl, const EVP_MD *hash, const unsigned char **id, size_t *id_len,
		   SSL_SESSION **session)
{
	(void)hash;
	*id = (const unsigned char *)"weft";
	*id_len = 4;
	*session = session_of(ssl);
	return *session != NULL;
}

static int tls_find_key(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	(void)id, (void)id_len;
	*session = session_of(ssl);
	return *session != NULL;
}

static uint8_t tls_digit(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* A line is a name, the initiator's random number and the secret, the last two in hexadecimal digits. */
static void take_secret(const SSL *ssl, const char *line)
{
	struct tls *tls = lib.SSL_get_ex_data(ssl, 0);
	bool by_initiator = !strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24);
	const char *hex = strrchr(line, ' ');

	if (!tls->kernels || !hex || strlen(++hex) != (size_t)2 * TLS_KEY ||
	    (!by_initiator && strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) != 0))
		return;
	for (size_t i = 0; i < TLS_KEY; i++)
		tls->secrets[by_initiator][i] =
			(uint8_t)(tls_digit(hex[2 * i]) << 4 | tls_digit(hex[2 * i + 1]));
}

/* The library tells the peer why it ends the connection. */
static void see_alert(const SSL *ssl, int where, int alert)
{
	struct tls *tls = lib.SSL_get_ex_data(ssl, 0);

	if (where == SSL_CB_WRITE_ALERT && (alert & 0xff) == SSL_AD_INTERNAL_ERROR)
		tls->starved = true;
}

/* ---- Loading ---- */

static bool tls_find(void *handle, const char *name, void *call)
{
	void *at = dlsym(handle, name);

	if (!at)
		LOG_WARN(LOG_CORE, "%s has no %s: nothing can be encrypted", LIBRARY, name);
	*(void **)call = at;
	return at;
}

/* Tickets would be of no use: each connection has a key of its own. */
static bool set_up(void)
{
	lib.ctx = lib.SSL_CTX_new(lib.TLS_method());
	lib.bio = lib.BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weft");
	lib.hkdf = lib.EVP_KDF_fetch(NULL, "HKDF", NULL);
	lib.tls13 = lib.EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
	if (!lib.ctx || !lib.bio || !lib.hkdf || !lib.tls13)
		return false;
	lib.SSL_CTX_ctrl(lib.ctx, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
	lib.SSL_CTX_ctrl(lib.ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
	lib.SSL_CTX_set_psk_use_session_callback(lib.ctx, use_key);
	lib.SSL_CTX_set_psk_find_session_callback(lib.ctx, tls_find_key);
	lib.SSL_CTX_set_keylog_callback(lib.ctx, take_secret);
	lib.SSL_CTX_set_info_callback(lib.ctx, see_alert);
	return lib.SSL_CTX_ctrl(lib.ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL) &&
	       lib.SSL_CTX_set_ciphersuites(lib.ctx, CIPHER) &&
	       lib.SSL_CTX_set_num_tickets(lib.ctx, 0) &&
	       lib.BIO_meth_set_read(lib.bio, take_input) &&
	       lib.BIO_meth_set_write(lib.bio, append_output) &&
	       lib.BIO_meth_set_ctrl(lib.bio, tls_control);
}

static void tls_load_once(void)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		LOG_WARN(
			LOG_CORE,
			"encryption needs OpenSSL 3 (package libssl3 or openssl-libs): %s cannot be "
			"loaded: %s",
			LIBRARY, dlerror());
		return;
	}
	loaded = true;
#define CALL(name) loaded = loaded && tls_find(handle, #name, &lib.name);
	TLS_CALLS(CALL)
#undef CALL
	loaded = loaded && set_up();
}

bool tls_load(void)
{
	pthread_once(&once, tls_load_once);
	return loaded;
}

/* ---- Keys made of secrets ---- */

static OSSL_PARAM tls_text(const char *name, const char *value)
{
	return lib.OSSL_PARAM_construct_utf8_string(name, (char *)value, 0);
}

static OSSL_PARAM tls_octets(const char *name, const void *bytes, size_t len)
{
	return lib.OSSL_PARAM_construct_octet_string(name, (void *)bytes, len);
}

static bool tls_derive_by(EVP_KDF *kdf, const OSSL_PARAM of[], uint8_t *key, size_t len)
{
	EVP_KDF_CTX *ctx = lib.EVP_KDF_CTX_new(kdf);
	bool good = ctx && lib.EVP_KDF_derive(ctx, key, len, of) > 0;

	if (ctx)
		lib.EVP_KDF_CTX_free(ctx);
	return good;
}

bool tls_derive(const void *secret, size_t secret_len, const void *context, size_t context_len,
		uint8_t key[TLS_KEY])
{
	if (!tls_load())
		return false;
	return tls_derive_by(lib.hkdf,
			     (OSSL_PARAM[]){tls_text("digest", "SHA256"),
					    tls_octets("key", secret, secret_len),
					    tls_octets("info", context, context_len),
					    lib.OSSL_PARAM_construct_end()},
			     key, TLS_KEY);
}

/* HKDF-Expand-Label of RFC 8446, section 7.1, without a context. */
static bool tls_expand(const uint8_t secret[TLS_KEY], const char *label, uint8_t *key, size_t len)
{
	return tls_derive_by(
		lib.tls13,
		(OSSL_PARAM[]){
			tls_text("digest", "SHA256"), tls_text("mode", "EXPAND_ONLY"),
			tls_octets("key", secret, TLS_KEY), tls_octets("prefix", "tls13 ", 6),
			tls_octets("label", label, strlen(label)), lib.OSSL_PARAM_construct_end()},
		key, len);
}

static bool expand_way(const uint8_t secret[TLS_KEY], struct tls_way *way)
{
	return tls_expand(secret, "key", way->key, sizeof(way->key)) &&
	       tls_expand(secret, "iv", way->iv, sizeof(way->iv));
}

bool tls_kernel_keys(struct tls *tls, struct tls_way *out, struct tls_way *in)
{
	bool good = expand_way(tls->secrets[tls->initiator], out) &&
		    expand_way(tls->secrets[!tls->initiator], in);

	explicit_bzero(tls->secrets, sizeof(tls->secrets));
	return good;
}

/* ---- A connection ---- */

struct tls *tls_new(const uint8_t key[TLS_KEY], bool initiator, bool kernels, struct tls_out *out)
{
	struct tls *tls = tls_load() ? calloc(1, sizeof(*tls)) : NULL;
	BIO *bio = tls ? lib.BIO_new(lib.bio) : NULL;

	if (!tls)
		return NULL;
	tls->out = out;
	tls->initiator = initiator;
	tls->kernels = kernels;
	memcpy(tls->key, key, sizeof(tls->key));
	tls->ssl = bio ? lib.SSL_new(lib.ctx) : NULL;
	if (!tls->ssl || !lib.SSL_set_ex_data(tls->ssl, 0, tls)) {
		lib.BIO_free(bio);
		tls_free(tls);
		return NULL;
	}
	lib.BIO_set_data(bio, tls);
	lib.BIO_set_init(bio, 1);
	lib.SSL_set_bio(tls->ssl, bio, bio);
	/* A target without the key could show a certificate, which is not to be believed. */
	lib.SSL_set_verify(tls->ssl, initiator ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	if (initiator)
		lib.SSL_set_connect_state(tls->ssl);
	else
		lib.SSL_set_accept_state(tls->ssl);
	return tls;
}

void tls_free(struct tls *tls)
{
	if (!tls)
		return;
	lib.SSL_free(tls->ssl);
	explicit_bzero(tls, sizeof(*tls));
	free(tls);
}

void tls_input(struct tls *tls, const void *bytes, size_t len)
{
	tls->in = bytes;
	tls->in_len = len;
}

/* What a call that has returned no success means: 0: more input is needed; -1: broken. */
static int tls_outcome(struct tls *tls, int ret)
{
	tls->broken = lib.SSL_get_error(tls->ssl, ret) != SSL_ERROR_WANT_READ;
	if (tls->broken && !tls->reason) {
		tls->reason = lib.ERR_peek_error();
		tls->starved |= (ERR_GET_RFLAGS(lib.ERR_peek_last_error()) & ERR_RFLAG_COMMON) != 0;
	}
	return tls->broken ? -1 : 0;
}

int tls_handshake(struct tls *tls)
{
	int ret;

	lib.ERR_clear_error();
	ret = lib.SSL_do_handshake(tls->ssl);
	if (ret <= 0)
		return tls_outcome(tls, ret);
	explicit_bzero(tls->key, sizeof(tls->key));
	return lib.SSL_session_reused(tls->ssl) ? 1 : -1;
}

size_t tls_left(const struct tls *tls)
{
	return tls->in_len;
}

bool tls_unused(const struct tls *tls)
{
	return tls->in_len || tls->broken || lib.SSL_pending(tls->ssl);
}

ssize_t tls_read(struct tls *tls, void *to, size_t room)
{
	size_t have = 0;
	int ret;

	lib.ERR_clear_error();
	do {
		size_t left = room - have;

		ret = lib.SSL_read(tls->ssl, (char *)to + have,
				   (int)(left < TLS_RECORD ? left : TLS_RECORD));
		if (ret > 0)
			have += (size_t)ret;
		else
			tls_outcome(tls, ret);
	} while (ret > 0 && have < room && tls_unused(tls));
	return have ? (ssize_t)have : tls->broken ? -1 : 0;
}

bool tls_write(struct tls *tls, const void *bytes, size_t len)
{
	lib.ERR_clear_error();
	if (tls->written >= KEY_BYTES && !tls->kernels) {
		tls->written = 0;
		if (!lib.SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
			return false;
	}
	tls->written += len;
	return !len || lib.SSL_write(tls->ssl, bytes, (int)len) == (int)len;
}

bool tls_starved(const struct tls *tls)
{
	return tls->starved;
}

const char *tls_error(const struct tls *tls)
{
	const char *text = lib.ERR_reason_error_string(tls->reason);

	return text ? text : "no reason known";
}
