/* SPDX-License-Identifier: BSD-2-Clause */
/* OpenSSL's headers, and the calls of its that tls.c finds in the library when that is loaded. */
#ifndef WEFT_BASE_TLS_CALLS_H
#define WEFT_BASE_TLS_CALLS_H

#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>

/* The calls we use; those of libcrypto are found through libssl, which needs it. */
#define TLS_CALLS(CALL)                                                                            \
	CALL(BIO_clear_flags)                                                                      \
	CALL(BIO_free)                                                                             \
	CALL(BIO_get_data)                                                                         \
	CALL(BIO_meth_new)                                                                         \
	CALL(BIO_meth_set_ctrl)                                                                    \
	CALL(BIO_meth_set_read)                                                                    \
	CALL(BIO_meth_set_write)                                                                   \
	CALL(BIO_new)                                                                              \
	CALL(BIO_set_data)                                                                         \
	CALL(BIO_set_flags)                                                                        \
	CALL(BIO_set_init)                                                                         \
	CALL(ERR_clear_error)                                                                      \
	CALL(ERR_peek_error)                                                                       \
	CALL(ERR_peek_last_error)                                                                  \
	CALL(ERR_reason_error_string)                                                              \
	CALL(EVP_KDF_CTX_free)                                                                     \
	CALL(EVP_KDF_CTX_new)                                                                      \
	CALL(EVP_KDF_derive)                                                                       \
	CALL(EVP_KDF_fetch)                                                                        \
	CALL(OSSL_PARAM_construct_end)                                                             \
	CALL(OSSL_PARAM_construct_octet_string)                                                    \
	CALL(OSSL_PARAM_construct_utf8_string)                                                     \
	CALL(SSL_CIPHER_find)                                                                      \
	CALL(SSL_CTX_ctrl)                                                                         \
	CALL(SSL_CTX_new)                                                                          \
	CALL(SSL_CTX_set_ciphersuites)                                                             \
	CALL(SSL_CTX_set_info_callback)                                                            \
	CALL(SSL_CTX_set_keylog_callback)                                                          \
	CALL(SSL_CTX_set_num_tickets)                                                              \
	CALL(SSL_CTX_set_psk_find_session_callback)                                                \
	CALL(SSL_CTX_set_psk_use_session_callback)                                                 \
	CALL(SSL_SESSION_free)                                                                     \
	CALL(SSL_SESSION_new)                                                                      \
	CALL(SSL_SESSION_set1_master_key)                                                          \
	CALL(SSL_SESSION_set_cipher)                                                               \
	CALL(SSL_SESSION_set_protocol_version)                                                     \
	CALL(SSL_do_handshake)                                                                     \
	CALL(SSL_free)                                                                             \
	CALL(SSL_get_error)                                                                        \
	CALL(SSL_get_ex_data)                                                                      \
	CALL(SSL_key_update)                                                                       \
	CALL(SSL_new)                                                                              \
	CALL(SSL_pending)                                                                          \
	CALL(SSL_read)                                                                             \
	CALL(SSL_session_reused)                                                                   \
	CALL(SSL_set_accept_state)                                                                 \
	CALL(SSL_set_bio)                                                                          \
	CALL(SSL_set_connect_state)                                                                \
	CALL(SSL_set_ex_data)                                                                      \
	CALL(SSL_set_verify)                                                                       \
	CALL(SSL_write)                                                                            \
	CALL(TLS_method)

#endif
