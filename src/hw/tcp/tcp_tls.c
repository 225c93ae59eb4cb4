/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encrypted links: the stream of frames goes through TLS 1.3. The initiator of the connection begins the handshake when
 * the link is made; until it is done the link is TCP_SECURING and takes no packet. Where both kernels have TLS, ours then
 * goes on alone, and the link is one like others.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/copy.h"
#include "base/ktls.h"
#include "base/log.h"
#include "hw/tcp/tcp_tls.h"
#include "link/upcall.h"

#define CIPHER_LEN 65536u /* bytes read from the socket at once */
/* Bytes to encrypt before they are sent: the peer decrypts them while we encrypt the next. */
#define CHUNK ((size_t)4 * TLS_RECORD)

/* Sends what the handshake has to say. The buffer of a new connection holds it. */
static int say(struct tcp_link *l)
{
	const struct tls_out *out = &l->own->tls_out;
	size_t len = out->len;

	if (!len || send(l->sock, out->bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return -FI_EIO;
}

/* 1: done; 0: it goes on; else a negative error: the peer does not know the key, or the stream was changed. */
static int shake(struct tcp_link *l)
{
	int ret;

	l->own->tls_out.len = 0;
	ret = tls_handshake(l->tls);
	if (ret < 0) {
		LOG_WARN(LOG_EP_CTRL, "tcp: no encryption with peer %#x: %s", l->id,
			 tls_error(l->tls));
		say(l);
		return -FI_EACCES;
	}
	return say(l) ? -FI_EIO : ret;
}

/*
 * The kernel encrypts what comes next, if it can: the peer sees no difference. Our side is not shut down then: the end
 * would pass records that the kernel still keeps back. Closing sends them first. 0 or a negative error.
 */
static int hand_over(struct tcp_link *l)
{
	struct tls_way out, in;
	int ret = tls_kernel_keys(l->tls, &out, &in) ? ktls_start(l->sock, &out, &in) : -FI_EIO;

	explicit_bzero(&out, sizeof(out));
	explicit_bzero(&in, sizeof(in));
	if (ret)
		return ret < 0 ? ret : 0;
	tls_free(l->tls);
	l->tls = NULL;
	l->indirect = false;
	l->shut = true;
	tcp_bare(l);
	LOG_INFO(LOG_EP_CTRL, "tcp: the kernel encrypts for peer %#x", l->id);
	return 0;
}

/* The handshake is done. 0 or a negative error. */
static int secured(struct tcp_link *l)
{
	int err = l->kernel ? hand_over(l) : 0;

	if (err)
		return err;
	tcp_reopen(l);
	rx_ready(l->own->worker, l->id);
	return 0;
}

int tcp_tls_start(struct tcp_link *l, const uint8_t key[TLS_KEY], bool initiator)
{
	l->tls = tls_new(key, initiator, l->kernel, &l->own->tls_out);
	l->indirect = l->tls;
	if (!l->tls)
		return -FI_ENOMEM;
	l->tx = TCP_SECURING;
	l->link.securing = true;
	return initiator ? shake(l) : 0;
}

static ssize_t broken(int err)
{
	errno = err;
	return -1;
}

/*
 * Continues the handshake. Takes from the socket only what belongs to it: the kernel may be who decrypts what is behind.
 * Returns -1 with errno set: EAGAIN: all is well.
 */
static ssize_t secure(struct tcp_link *l)
{
	unsigned char *buf = l->own->buf;
	ssize_t len = recv(l->sock, buf, TCP_READ, MSG_DONTWAIT | MSG_PEEK);
	int ret;

	if (len <= 0)
		return len;
	tls_input(l->tls, buf, (size_t)len);
	ret = shake(l);
	len -= (ssize_t)tls_left(l->tls);
	tls_input(l->tls, NULL, 0);
	l->heard += (size_t)len;
	if (recv(l->sock, buf, (size_t)len, MSG_DONTWAIT) != len)
		return broken(EIO);
	if (ret > 0)
		ret = secured(l);
	return broken(ret < 0 ? -ret : EAGAIN);
}

/* Decrypts into the segments. Returns the bytes, or -1 with errno set: EAGAIN: no more input. */
static ssize_t decrypt(struct tcp_link *l, const struct iovec *iov, size_t count)
{
	size_t have = 0;
	ssize_t len;

	for (size_t i = 0; i < count; i++) {
		len = tls_read(l->tls, iov[i].iov_base, iov[i].iov_len);
		if (len > 0)
			have += (size_t)len;
		if (len < 0 && !have) {
			LOG_WARN(LOG_EP_DATA,
				 "tcp: peer %#x: what came is not what it encrypted: %s", l->id,
				 tls_error(l->tls));
			return broken(EPROTO);
		}
		if (len < (ssize_t)iov[i].iov_len)
			break;
	}
	return have ? (ssize_t)have : broken(EAGAIN);
}

ssize_t tcp_tls_recv(struct tcp_link *l, const struct iovec *iov, size_t count)
{
	struct tcp *t = l->own;
	ssize_t len;

	if (l->tx == TCP_SECURING)
		return secure(l);
	if (!t->cipher && !(t->cipher = malloc(CIPHER_LEN)))
		return broken(ENOMEM);
	if (!tls_unused(l->tls)) {
		len = recv(l->sock, t->cipher, CIPHER_LEN, MSG_DONTWAIT);
		if (len <= 0)
			return len;
		l->heard += (size_t)len;
		tls_input(l->tls, t->cipher, (size_t)len);
	}
	return decrypt(l, iov, count);
}

/* Bytes that are being encrypted and sent. */
struct outgoing {
	struct tcp_link *l;
	size_t sent;  /* of the output */
	bool blocked; /* the kernel has no space: the rest is only encrypted */
	int err;      /* positive */
};

/* Encrypts, and sends as long as the kernel has space. */
static void put(struct outgoing *o, const void *bytes, size_t len)
{
	struct tls_out *out = &o->l->own->tls_out;
	ssize_t sent;

	if (!o->err && !tls_write(o->l->tls, bytes, len))
		o->err = FI_ENOMEM;
	if (o->err || o->blocked)
		return;
	sent = send(o->l->sock, out->bytes, out->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent == (ssize_t)out->len) {
		out->len = 0;
		return;
	}
	o->blocked = true;
	o->sent = sent > 0 ? (size_t)sent : 0;
	if (sent < 0 && !tcp_passing(errno))
		o->err = errno;
}

/* The frame and what fits a record with it need not be records of their own. */
static void put_first(struct outgoing *o, const struct iovec *iov, size_t count, size_t *used)
{
	unsigned char first[TLS_RECORD];
	size_t len = iov[0].iov_len, n;

	memcpy(first, iov[0].iov_base, len);
	for (size_t i = 1; i < count && len < sizeof(first); i++, len += n) {
		n = iov[i].iov_len < sizeof(first) - len ? iov[i].iov_len : sizeof(first) - len;
		if (n)
			copy_bytes(first + len, iov[i].iov_base, n);
	}
	put(o, first, len);
	*used = len;
}

int tcp_tls_send(struct tcp_link *l, const struct iovec *iov, size_t count, struct iovec *left)
{
	struct tls_out *out = &l->own->tls_out;
	struct outgoing o = {.l = l};
	size_t skip, n;

	out->len = 0;
	put_first(&o, iov, count, &skip);
	for (size_t i = 0; i < count; i++) {
		size_t at = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		skip -= at;
		for (; at < iov[i].iov_len; at += n) {
			n = iov[i].iov_len - at < CHUNK ? iov[i].iov_len - at : CHUNK;
			put(&o, (const char *)iov[i].iov_base + at, n);
		}
	}
	*left = (struct iovec){out->bytes + o.sent, out->len - o.sent};
	return o.err;
}

bool tcp_tls_encrypt(struct tcp_link *l, struct iovec *bytes)
{
	struct tls_out *out = &l->own->tls_out;

	out->len = 0;
	if (!tls_write(l->tls, bytes->iov_base, bytes->iov_len))
		return false;
	*bytes = (struct iovec){out->bytes, out->len};
	return true;
}
