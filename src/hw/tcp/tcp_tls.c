/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 on sockets of links. The initiator of the link begins the handshake on each. Where both kernels have TLS, ours then goes
 * on alone, and the socket is one like others.
 *
 * A link of one socket is TCP_SECURING until the handshake is done, and takes no packet. One with rails: tcp_rails.h.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/copy.h"
#include "base/tls.h"
#include "base/log.h"
#include "hw/tcp/tcp_tls.h"

/* Bytes to encrypt before they are sent: the peer decrypts them while we encrypt the next. */
#define CHUNK ((size_t)4 * TLS_RECORD)

/* Sends what the handshake has to say. The buffer of a new connection holds it. */
static int tcp_tls_say(const struct tcp_tls *s)
{
	size_t len = s->out->len;

	if (!len || send(s->sock, s->out->bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
		return 0;
	return -FI_EIO;
}

/* 1: done; 0: it goes on; else a negative error: the peer does not know the key, the stream was changed, or there is no memory. */
static int tcp_tls_shake_hands(const struct tcp_link *l, const struct tcp_tls *s)
{
	int ret;

	s->out->len = 0;
	ret = tls_handshake(s->tls);
	if (ret < 0) {
		LOG_PEER(LOG_EP_CTRL, "tcp: no encryption with peer %#x: %s", l->id,
			 tls_error(s->tls));
		tcp_tls_say(s);
		/* What the initiator has sent behind its last word is lost. */
		return tls_starved(s->tls) && !s->initiator ? -FI_ENOMEM : -FI_EACCES;
	}
	return tcp_tls_say(s) ? -FI_EIO : ret;
}

/* The kernel encrypts what comes next, if it can: the peer sees no difference. 0 or a negative error. */
static int tcp_tls_hand_over(const struct tcp_link *l, struct tcp_tls *s)
{
	struct tls_way out, in;
	int ret = tls_kernel_keys(s->tls, &out, &in) ? ktls_start(s->sock, &out, &in) : -FI_EIO;

	explicit_bzero(&out, sizeof(out));
	explicit_bzero(&in, sizeof(in));
	if (ret)
		return ret < 0 ? ret : 0;
	tcp_tls_end(s);
	LOG_INFO(LOG_EP_CTRL, "tcp: the kernel encrypts for peer %#x", l->id);
	return 0;
}

int tcp_tls_start(struct tcp_link *l, struct tcp_tls *s, const struct link_peer *peer,
		  struct tls_out *out)
{
	struct tcp *t = l->own;
	int ret = 0;

	if (!t->cipher)
		t->cipher = malloc(TCP_READ);
	*s = (struct tcp_tls){.out = out,
			      .sock = peer->sock,
			      .initiator = peer->initiator,
			      .kernel = ktls_available() &&
					peer->hello->flags & WIRE_HELLO_KERNEL_TLS};
	s->tls = t->cipher ? tls_new(peer->key, peer->initiator, s->kernel, out) : NULL;
	if (!s->tls)
		return -FI_ENOMEM;
	if (peer->initiator)
		ret = tcp_tls_shake_hands(l, s);
	if (ret < 0)
		tcp_tls_end(s);
	return ret < 0 ? ret : 0;
}

void tcp_tls_end(struct tcp_tls *s)
{
	tls_free(s->tls);
	s->tls = NULL;
}

/* Takes from the socket only what belongs to the handshake: the kernel may be who decrypts what is behind. */
ssize_t tcp_tls_shake(struct tcp_link *l, struct tcp_tls *s)
{
	unsigned char *buf = l->own->buf;
	ssize_t len = recv(s->sock, buf, TCP_READ, MSG_DONTWAIT | MSG_PEEK);
	int ret, err = 0;

	if (len <= 0)
		return len;
	tls_input(s->tls, buf, (size_t)len);
	ret = tcp_tls_shake_hands(l, s);
	len -= (ssize_t)tls_left(s->tls);
	tls_input(s->tls, NULL, 0);
	l->heard += (size_t)len;
	if (recv(s->sock, buf, (size_t)len, MSG_DONTWAIT) != len)
		return tcp_fails(EIO);
	if (ret > 0 && s->kernel)
		err = tcp_tls_hand_over(l, s);
	if (ret > 0 && !err)
		return 1;
	return tcp_fails(err ? -err : ret ? -ret : EAGAIN);
}

int tcp_tls_fault(const struct tcp_link *l)
{
	if (errno != EBADMSG)
		return errno == EPIPE ? FI_ECONNRESET : errno;
	LOG_PEER(LOG_EP_DATA, "tcp: peer %#x: what came is not what it encrypted", l->id);
	return FI_EPROTO;
}

/* Decrypts into the segments. Returns the bytes, or -1 with errno set: EAGAIN: no more input. */
static ssize_t tcp_tls_decrypt(const struct tcp_link *l, struct tls *tls, const struct iovec *iov,
			       size_t count)
{
	size_t have = 0;
	ssize_t len;

	for (size_t i = 0; i < count; i++) {
		len = tls_read(tls, iov[i].iov_base, iov[i].iov_len);
		if (len > 0)
			have += (size_t)len;
		if (len < 0 && !have) {
			LOG_PEER(LOG_EP_DATA,
				 "tcp: peer %#x: what came is not what it encrypted: %s", l->id,
				 tls_error(tls));
			return tcp_fails(tls_starved(tls) ? ENOMEM : EPROTO);
		}
		if (len < (ssize_t)iov[i].iov_len)
			break;
	}
	return have ? (ssize_t)have : tcp_fails(EAGAIN);
}

ssize_t tcp_tls_read(struct tcp_link *l, struct tcp_tls *s, const struct iovec *cipher,
		     const struct iovec *iov, size_t count)
{
	const size_t output = s->out->len;
	ssize_t len;

	if (!tls_unused(s->tls)) {
		len = recv(s->sock, cipher->iov_base, cipher->iov_len, MSG_DONTWAIT);
		if (len <= 0)
			return len;
		l->heard += (size_t)len;
		tls_input(s->tls, cipher->iov_base, (size_t)len);
	}
	len = tcp_tls_decrypt(l, s->tls, iov, count);
	if (s->out->len == output || tls_starved(s->tls) || (len < 0 && errno != EAGAIN))
		return len;
	LOG_PEER(
		LOG_EP_DATA,
		"tcp: peer %#x: what came makes TLS answer with %zu bytes, as by a request for new "
		"keys: no peer of ours asks for an answer",
		l->id, s->out->len - output);
	return tcp_fails(EPROTO);
}

/* Bytes that are being encrypted and sent. */
struct outgoing {
	const struct tcp_tls *tls;
	size_t sent;  /* of the output */
	bool blocked; /* the kernel has no space: the rest is only encrypted */
	int err;      /* positive */
};

/* Encrypts, and sends as long as the kernel has space. */
static void tcp_tls_put(struct outgoing *o, const void *bytes, size_t len)
{
	struct tls_out *out = o->tls->out;
	ssize_t sent;

	if (!o->err && !tls_write(o->tls->tls, bytes, len))
		o->err = FI_ENOMEM;
	if (o->err || o->blocked)
		return;
	sent = send(o->tls->sock, out->bytes, out->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent == (ssize_t)out->len) {
		out->len = 0;
		return;
	}
	o->blocked = true;
	o->sent = sent > 0 ? (size_t)sent : 0;
	if (sent < 0 && !tcp_passing(errno))
		o->err = errno;
}

/* The head and what fits a record with it need not be records of their own. */
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
	tcp_tls_put(o, first, len);
	*used = len;
}

int tcp_tls_send(struct tcp_tls *s, const struct iovec *iov, size_t count, struct iovec *left)
{
	struct tls_out *out = s->out;
	struct outgoing o = {.tls = s};
	size_t skip, n;

	out->len = 0;
	put_first(&o, iov, count, &skip);
	for (size_t i = 0; i < count; i++) {
		size_t at = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		skip -= at;
		for (; at < iov[i].iov_len; at += n) {
			n = iov[i].iov_len - at < CHUNK ? iov[i].iov_len - at : CHUNK;
			tcp_tls_put(&o, (const char *)iov[i].iov_base + at, n);
		}
	}
	*left = (struct iovec){out->bytes + o.sent, out->len - o.sent};
	return o.err;
}

/* ---- Links of one socket ---- */

/* An answer may not wait in the kernel for what is sent next: that would keep a record open. */
static const struct link_ops kernel_link_ops = {
	.send = tcp_send,
	.sendv = tcp_sendv_prompt,
	.close = tcp_close_link,
};

/*
 * The handshake is done. Our side is not shut down where the kernel encrypts: the end would pass records that the kernel still
 * keeps back. Closing sends them first.
 */
static void tcp_tls_secured(struct tcp_link *l)
{
	if (!l->secure.tls) {
		l->indirect = false;
		l->shut = true;
		tcp_bare(l);
		l->link.ops = &kernel_link_ops;
	}
	tcp_reopen(l);
	l->own->opener->events->ready(l->own->opener, l->id);
}

/* Continues the handshake of a link that is TCP_SECURING. */
static ssize_t tcp_tls_receive(struct tcp_link *l, const struct iovec *iov, size_t count)
{
	const struct iovec cipher = tcp_tls_room(l->own);
	ssize_t ret;

	if (l->tx != TCP_SECURING)
		return tcp_tls_read(l, &l->secure, &cipher, iov, count);
	ret = tcp_tls_shake(l, &l->secure);
	if (ret <= 0)
		return ret;
	tcp_tls_secured(l);
	return tcp_fails(EAGAIN);
}

static bool tcp_tls_unread(const struct tcp_link *l)
{
	return tcp_tls_unused(&l->secure);
}

/* What is encrypted counts as sent: what the kernel does not take is kept. */
static int send_encrypted(struct tcp_link *l, const struct tcp_outgoing *o)
{
	struct iovec left;
	int err = tcp_tls_send(&l->secure, o->iov, o->count, &left);

	if (err) {
		tcp_fail(l, err);
		return -FI_EAGAIN;
	}
	if (left.iov_len)
		return tcp_rest_keep(
			l, &(struct tcp_outgoing){&left, 1, left.iov_len, o->head, false}, 0);
	if (l->tx != TCP_READY)
		tcp_reopen(l);
	return 0;
}

static int tcp_tls_end_with(struct tcp_link *l, const struct tcp_frame *f)
{
	struct tls_out *out = l->secure.out;

	out->len = 0;
	if (tls_write(l->secure.tls, f, sizeof(*f)) && !tcp_rest_end(l, out->bytes, out->len))
		return 0;
	tcp_fail(l, FI_ENOMEM);
	return -FI_EAGAIN;
}

static void tcp_tls_finish(struct tcp_link *l, bool abort)
{
	tcp_socket_close(l, abort);
	tcp_tls_end(&l->secure);
}

static const struct tcp_stream_ops encrypted_ops = {
	.recv = tcp_tls_receive,
	.unread = tcp_tls_unread,
	.send = send_encrypted,
	.end = tcp_tls_end_with,
	.flush = tcp_flush,
	.push = tcp_push,
	.watch = tcp_socket_watch,
	.arrived = tcp_socket_arrived,
	.is_dead = tcp_socket_is_dead,
	.linger = tcp_socket_linger,
	.close = tcp_tls_finish,
};

static const struct link_ops encrypted_link_ops = {
	.send = tcp_send_whole,
	.sendv = tcp_sendv_whole,
	.close = tcp_close_link,
};

/* Zero-copy sends have no use where encryption makes a copy, and what is gathered the flusher would have to encrypt. */
int tcp_tls_open(struct tcp_link *l, const struct link_peer *peer)
{
	int err = tcp_tls_start(l, &l->secure, peer, &l->own->tls_out);

	if (err)
		return err;
	l->stream = &encrypted_ops;
	l->indirect = true;
	l->tx = TCP_SECURING;
	l->link.ops = &encrypted_link_ops;
	l->link.zcopy = &link_no_zcopy;
	l->link.zcopy_min = SIZE_MAX;
	l->link.securing = true;
	return 0;
}
