/* SPDX-License-Identifier: BSD-2-Clause */
/* Encrypted links. All of this only for links with `tls`. */
#ifndef WEFT_HW_TCP_TLS_H
#define WEFT_HW_TCP_TLS_H

#include "base/tls.h"
#include "hw/tcp/tcp_rest.h"

/* Makes the link an encrypted one, TCP_SECURING. 0 or a negative error. */
int tcp_tls_start(struct tcp_link *l, const uint8_t key[TLS_KEY], bool initiator);
/* As recvmsg: decrypts. Reads the socket only when tls_unused is false. */
ssize_t tcp_tls_recv(struct tcp_link *l, const struct iovec *iov, size_t count);
/*
 * Encrypts and sends segments, of which the first is a frame. *left is what the kernel does not take now, and has to be
 * sent next; valid until the next call for a link of the worker. 0 or a positive error: the connection must be failed.
 */
int tcp_tls_send(struct tcp_link *l, const struct iovec *iov, size_t count, struct iovec *left);
/* Replaces bytes by what has to be sent for them, valid likewise. False: the connection must be failed. */
bool tcp_tls_encrypt(struct tcp_link *l, struct iovec *bytes);

/* Does tcp_read have to go on, since no event will announce what the link has read already? */
static inline bool tcp_tls_unused(const struct tcp_link *l)
{
	return __builtin_expect(l->tls != NULL, 0) && tls_unused(l->tls);
}

#endif
