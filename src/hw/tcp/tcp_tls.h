/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS on sockets of links. But for tcp_tls_start and tcp_tls_end, all of this only where there is `tls`. */
#ifndef WEFT_HW_TCP_TLS_H
#define WEFT_HW_TCP_TLS_H

#include "base/tls.h"
#include "hw/tcp/tcp_output.h"

/*
 * Begins TLS on the socket peer->sock, by peer->key; `out` is where it puts what has to be sent. Until tcp_tls_shake is done,
 * nothing else may be sent. 0 or a negative error: there is no TLS.
 */
int tcp_tls_start(struct tcp_link *l, struct tcp_tls *s, const struct link_peer *peer,
		  struct tls_out *out);
void tcp_tls_end(struct tcp_tls *s);
/*
 * Continues the handshake. 1: it is done, and without `tls` from now on the kernel does the rest; else as recv fails; EAGAIN: it
 * goes on.
 */
ssize_t tcp_tls_shake(struct tcp_link *l, struct tcp_tls *s);
/*
 * Why recv has failed: errno. Of a kernel that encrypts FI_EPROTO, logged, for other bytes than the peer's, and FI_ECONNRESET if
 * it could not send.
 */
int tcp_tls_fault(const struct tcp_link *l);
/*
 * As recvmsg, by way of the buffer `cipher`: decrypts. Reads the socket only when tcp_tls_unused is false. EPROTO, logged, for
 * other bytes than the peer's, and for those that TLS would have to answer; the connection must be failed at once then.
 */
ssize_t tcp_tls_read(struct tcp_link *l, struct tcp_tls *s, const struct iovec *cipher,
		     const struct iovec *iov, size_t count);
/*
 * Encrypts and sends segments, of which the first is a head. *left is what the kernel does not take now, and has to be
 * sent next; valid until the next call with this `out`. 0 or a positive error: the connection must be failed.
 */
int tcp_tls_send(struct tcp_tls *s, const struct iovec *iov, size_t count, struct iovec *left);

/* Where the ciphertext of the worker's open links goes. */
static inline struct iovec tcp_tls_room(const struct tcp *t)
{
	return (struct iovec){t->cipher, TCP_READ};
}

/* Has the reader to go on, since no event will announce what was read off the socket already? */
static inline bool tcp_tls_unused(const struct tcp_tls *s)
{
	return __builtin_expect(s->tls != NULL, 0) && tls_unused(s->tls);
}

/* Makes the link, which has one socket, an encrypted one, TCP_SECURING. 0 or a negative error. */
int tcp_tls_open(struct tcp_link *l, const struct link_peer *peer);

#endif
