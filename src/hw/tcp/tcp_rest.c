/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/tcp/tcp_output.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/copy.h"
#include "base/iov.h"

#define BATCH_PACKETS ((size_t)64)
#define BATCH_IOV     (2 * BATCH_PACKETS)

_Static_assert(BATCH_PACKETS *TCP_ZCOPY_MIN >= TCP_BATCH_MAX, "as many are enough");

static struct tcp_rest *rest_new(size_t count, size_t bytes)
{
	struct tcp_rest *r = malloc(sizeof(*r) + count * sizeof(r->iov[0]) + bytes);

	if (r) {
		r->err = 0;
		r->packets = 0;
		r->first = 0;
		r->count = r->each = count;
	}
	return r;
}

/* Returns a copy of the packet from `skip` on, with space for `more` bytes; NULL: no memory. */
static struct tcp_rest *rest_copied(const struct tcp_outgoing *o, size_t skip, size_t more)
{
	size_t len = o->len - skip;
	struct tcp_rest *r = rest_new(1, len + more);
	unsigned char *to;

	if (!r)
		return NULL;
	to = (unsigned char *)&r->iov[1];
	r->left = len;
	r->iov[0] = (struct iovec){to, len};
	for (size_t i = 0; i < o->count; i++) {
		size_t n = o->iov[i].iov_len;

		if (skip < n) {
			copy_bytes(to, (const char *)o->iov[i].iov_base + skip, n - skip);
			to += n - skip;
			skip = n;
		}
		skip -= n;
	}
	return r;
}

/* Returns a rest that refers to the owner's memory; only the frame is copied. NULL: no memory. */
static struct tcp_rest *rest_zcopy(const struct tcp_outgoing *o, size_t skip)
{
	struct tcp_rest *r = rest_new(o->count, sizeof(struct tcp_frame));

	if (!r)
		return NULL;
	r->left = o->len - skip;
	r->count = r->each = iov_slice(r->iov, o->iov, o->count, skip, &r->left);
	if (skip < o->iov[0].iov_len) {
		memcpy(&r->iov[o->count], r->iov[0].iov_base, r->iov[0].iov_len);
		r->iov[0].iov_base = &r->iov[o->count];
	}
	return r;
}

/* Makes `r` the link's rest. */
static void tcp_rest_put(struct tcp_link *l, struct tcp_rest *r)
{
	r->before = l->link.zcopy_done;
	l->rest = r;
	tcp_block(l, TCP_REST);
}

int tcp_rest_keep(struct tcp_link *l, const struct tcp_outgoing *o, size_t sent)
{
	struct tcp_rest *r = o->zcopy ? rest_zcopy(o, sent) : rest_copied(o, sent, 0);

	if (!r) {
		tcp_fail(l, FI_ENOMEM);
		return -FI_EAGAIN;
	}
	TCP_OUTPUT_LOCKED(l);
	tcp_rest_put(l, r);
	l->link.zcopy_posted += o->zcopy;
	return 0;
}

/* Returns a copy of all unsent bytes, with space for `more`; NULL: no memory. */
static struct tcp_rest *copy_left(const struct tcp_rest *r, size_t more)
{
	struct tcp_outgoing o = {r->iov + r->first, r->count - r->first, r->left, 0, false};

	return rest_copied(&o, 0, more);
}

static void tcp_rest_replace(struct tcp_link *l, struct tcp_rest *r)
{
	if (r)
		r->err = l->rest->err;
	free(l->rest);
	l->rest = r;
	l->link.zcopy_done = l->link.zcopy_posted;
}

void tcp_rest_drop(struct tcp_link *l)
{
	free(l->rest);
	l->rest = NULL;
}

int tcp_rest_end(struct tcp_link *l, const void *bytes, size_t len)
{
	struct tcp_rest *r;

	TCP_OUTPUT_LOCKED(l);
	r = copy_left(l->rest, len);
	if (!r)
		return -FI_EAGAIN;
	memcpy((unsigned char *)&r->iov[1] + r->left, bytes, len);
	r->left = r->iov[0].iov_len = r->left + len;
	tcp_rest_replace(l, r);
	return 0;
}

int tcp_zcopy_copy_out(struct link *link)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct tcp_rest *r;

	tcp_gather_end(l);
	if (!link_holds(link) || !l->rest)
		return 0;
	TCP_OUTPUT_LOCKED(l);
	r = copy_left(l->rest, 0);
	if (r)
		tcp_rest_replace(l, r);
	else
		tcp_fail(l, FI_ENOMEM);
	return r ? 0 : -FI_ENOMEM;
}

static struct tcp_rest *batch_of(struct tcp_link *l)
{
	struct tcp_rest *r = l->rest;

	if (r)
		return r;
	r = rest_new(BATCH_IOV, BATCH_PACKETS * sizeof(struct tcp_frame));
	if (!r)
		return NULL;
	r->left = r->count = 0;
	r->each = 2;
	tcp_rest_put(l, r);
	return r;
}

int tcp_rest_batch(struct tcp_link *l, const struct tcp_frame *f, const struct iovec *payload)
{
	struct tcp_frame *frame;
	struct tcp_rest *r;

	TCP_OUTPUT_LOCKED(l);
	r = l->rest && !l->rest->packets ? NULL : batch_of(l);
	if (!r)
		return -FI_EAGAIN;
	frame = (struct tcp_frame *)&r->iov[BATCH_IOV] + r->packets++;
	*frame = *f;
	r->iov[r->count++] = (struct iovec){frame, sizeof(*frame)};
	r->iov[r->count++] = *payload;
	r->left += sizeof(*frame) + payload->iov_len;
	l->link.zcopy_posted++;
	/* The batch goes out by one call; at the latest when it is as long as what went before: longer rows need fewer calls. */
	if (r->left >= l->row) {
		tcp_row_add(l, r->left);
		tcp_flush(l);
	}
	return 0;
}

static void tcp_rest_advance(struct tcp_rest *r, size_t len)
{
	r->left -= len;
	while (len) {
		struct iovec *iov = &r->iov[r->first];
		size_t n = len < iov->iov_len ? len : iov->iov_len;

		iov->iov_base = (char *)iov->iov_base + n;
		iov->iov_len -= n;
		len -= n;
		if (!iov->iov_len)
			r->first++;
	}
}

/* Sends as much of the rest as the kernel takes. Locked. */
static void tcp_rest_send(struct tcp_link *l)
{
	struct tcp_rest *r = l->rest;
	struct msghdr m = {.msg_iov = r->iov + r->first, .msg_iovlen = r->count - r->first};
	ssize_t sent;

	if (r->err || !r->left)
		return;
	r->packets = 0;
	sent = sendmsg(l->sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		tcp_rest_advance(r, (size_t)sent);
	else if (sent < 0 && !tcp_passing(errno))
		r->err = errno;
}

void tcp_push(struct tcp_link *l)
{
	if (l->gather)
		tcp_gather_send(l);
	else
		tcp_rest_send(l);
}

bool tcp_flush(struct tcp_link *l)
{
	struct tcp_rest *r;
	size_t left;

	TCP_OUTPUT_LOCKED(l);
	r = l->rest;
	l->room = 0; /* the next send asks the kernel */
	/* The kernel had no space for this rest: later packets may as well be batched. */
	if (!r->packets)
		tcp_row_add(l, TCP_ROW);
	left = r->left;
	tcp_rest_send(l);
	if (r->err) {
		tcp_fail(l, r->err);
		return false;
	}
	if (link_holds(&l->link))
		l->link.zcopy_done = r->before + r->first / r->each;
	if (!r->left) {
		tcp_rest_replace(l, NULL);
		tcp_reopen(l);
		return true;
	}
	return r->left != left;
}
