/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits that fi_getinfo names for transfers, by use: as much is taken and arrives, more is refused. For each
 * endpoint type. fi_endpoint(3), fi_msg(3), fi_rma(3), fi_atomic(3).
 */
#include "obj.h"
#include "lib/cm.h"
#include "lib/dgram.h"
#include "lib/ways.h"

#define KEY UINT64_C(7)
#define TAG UINT64_C(0x5eed)

/* ---- Injected -------------------------------------------------------------------------------- */

static struct iovec whole(size_t len)
{
	return (struct iovec){ways_local, len};
}

static ssize_t injects_message(struct ways *w, size_t len)
{
	return fi_inject(w->tx, ways_local, len, w->peer);
}

static ssize_t injects_by_flag(struct ways *w, size_t len)
{
	struct iovec iov = whole(len);
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = w->peer};

	return fi_sendmsg(w->tx, &m, FI_INJECT);
}

static ssize_t injects_with_data(struct ways *w, size_t len)
{
	return fi_injectdata(w->tx, ways_local, len, 1, w->peer);
}

static ssize_t injects_tagged(struct ways *w, size_t len)
{
	return fi_tinject(w->tx, ways_local, len, w->peer, TAG);
}

static ssize_t injects_tagged_by_flag(struct ways *w, size_t len)
{
	struct iovec iov = whole(len);
	struct fi_msg_tagged m = {.msg_iov = &iov, .iov_count = 1, .addr = w->peer, .tag = TAG};

	return fi_tsendmsg(w->tx, &m, FI_INJECT);
}

static ssize_t injects_tagged_with_data(struct ways *w, size_t len)
{
	return fi_tinjectdata(w->tx, ways_local, len, 1, w->peer, TAG);
}

static ssize_t injects_write(struct ways *w, size_t len)
{
	return fi_inject_write(w->tx, ways_local, len, w->peer, 0, KEY);
}

static ssize_t injects_write_by_flag(struct ways *w, size_t len)
{
	struct iovec iov = whole(len);
	struct fi_rma_iov to = {0, len, KEY};
	struct fi_msg_rma m = {.msg_iov = &iov,
			       .iov_count = 1,
			       .addr = w->peer,
			       .rma_iov = &to,
			       .rma_iov_count = 1};

	return fi_writemsg(w->tx, &m, FI_INJECT);
}

static ssize_t injects_atomic(struct ways *w, size_t len)
{
	return fi_inject_atomic(w->tx, ways_local, len, w->peer, 0, KEY, FI_UINT8, FI_SUM);
}

static ssize_t injects_atomic_by_flag(struct ways *w, size_t len)
{
	struct fi_ioc ioc = {ways_local, len};
	struct fi_rma_ioc to = {0, len, KEY};
	struct fi_msg_atomic m = {.msg_iov = &ioc,
				  .iov_count = 1,
				  .addr = w->peer,
				  .rma_iov = &to,
				  .rma_iov_count = 1,
				  .datatype = FI_UINT8,
				  .op = FI_SUM};

	return fi_atomicmsg(w->tx, &m, FI_INJECT);
}

static const struct {
	uint64_t kind;
	bool data;      /* needs remote CQ data */
	bool completes; /* at the sender */
	ssize_t (*call)(struct ways *w, size_t len);
} injects[] = {
	{FI_MSG, false, false, injects_message},
	{FI_MSG, false, true, injects_by_flag},
	{FI_MSG, true, false, injects_with_data},
	{FI_TAGGED, false, false, injects_tagged},
	{FI_TAGGED, false, true, injects_tagged_by_flag},
	{FI_TAGGED, true, false, injects_tagged_with_data},
	{FI_RMA, false, false, injects_write},
	{FI_RMA, false, true, injects_write_by_flag},
	{FI_ATOMIC, false, false, injects_atomic},
	{FI_ATOMIC, false, true, injects_atomic_by_flag},
};

static bool arrived(size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (*(volatile unsigned char *)&ways_target[i] != (unsigned char)(i % 251 + 1))
			return false;
	return true;
}

static void expect_message(struct ways *w, uint64_t kind)
{
	if (kind == FI_MSG)
		OK(fi_recv(w->rx, ways_target, WAYS_ROOM, NULL, FI_ADDR_UNSPEC, NULL));
	if (kind == FI_TAGGED)
		OK(fi_trecv(w->rx, ways_target, WAYS_ROOM, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
}

/* inject_size bytes are copied at once and arrive; one more is refused, and nothing of it arrives. */
static void inject_with(struct ways *w, size_t i, size_t most)
{
	memset(ways_target, 0, sizeof(ways_target));
	expect_message(w, injects[i].kind);
	CHECK_EQ(injects[i].call(w, most + 1), -FI_EMSGSIZE);
	for (size_t n = 0; n <= most; n++)
		ways_local[n] = (unsigned char)(n % 251 + 1);
	WAYS_POST(w, injects[i].call(w, most));
	memset(ways_local, 0, most);
	if (injects[i].kind & (FI_MSG | FI_TAGGED))
		CHECK_EQ(ways_next(w, w->rx_cq).len, most);
	OBJ_UNTIL(arrived(most), ways_drive(w));
	CHECK_EQ(ways_target[most], 0);
	if (injects[i].completes)
		ways_next(w, w->tx_cq);
}

static void inject_each(struct ways *w)
{
	struct fid_mr *mr = NULL;

	if (ways_can(w, FI_RMA))
		OK(fi_mr_reg(w->c.o.domain, ways_target, WAYS_ROOM,
			     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
	for (size_t i = 0; i < API_COUNT(injects); i++)
		if (ways_can(w, injects[i].kind) &&
		    (!injects[i].data || w->info->domain_attr->cq_data_size))
			inject_with(w, i, w->info->tx_attr->inject_size);
	if (mr)
		CLOSE(mr);
}

static void inject_size(struct api *a)
{
	(void)a;
	ways_each(inject_each);
}

/* ---- Segments -------------------------------------------------------------------------------- */

#define SEGMENT 8 /* bytes */
#define MOST    64

struct list {
	struct iovec iov[MOST];
	size_t count;
};

static struct list list_of(unsigned char *at, size_t count)
{
	struct list l = {.count = count};

	CHECK(count <= MOST);
	for (size_t i = 0; i < count; i++)
		l.iov[i] = (struct iovec){at + i * SEGMENT, SEGMENT};
	return l;
}

static ssize_t sends_list(struct ways *w, struct list l)
{
	return fi_sendv(w->tx, l.iov, NULL, l.count, w->peer, NULL);
}

static ssize_t sends_tagged_list(struct ways *w, struct list l)
{
	return fi_tsendv(w->tx, l.iov, NULL, l.count, w->peer, TAG, NULL);
}

static ssize_t receives_list(struct ways *w, struct list l)
{
	return fi_recvv(w->rx, l.iov, NULL, l.count, FI_ADDR_UNSPEC, NULL);
}

static ssize_t receives_tagged_list(struct ways *w, struct list l)
{
	return fi_trecvv(w->rx, l.iov, NULL, l.count, FI_ADDR_UNSPEC, TAG, 0, NULL);
}

static const struct {
	uint64_t kind;
	ssize_t (*send)(struct ways *w, struct list l);
	ssize_t (*receive)(struct ways *w, struct list l);
} lists[] = {
	{FI_MSG, sends_list, receives_list},
	{FI_TAGGED, sends_tagged_list, receives_tagged_list},
};

/* A write or read (`back`) of `count` ranges on each side. */
static ssize_t ranges(struct ways *w, struct list l, size_t count, bool back)
{
	struct fi_rma_iov to[MOST];
	struct fi_msg_rma m = {.msg_iov = l.iov,
			       .iov_count = l.count,
			       .addr = w->peer,
			       .rma_iov = to,
			       .rma_iov_count = count};
	size_t len = 0;

	for (size_t i = 0; i < l.count; i++)
		len += l.iov[i].iov_len;
	len /= count;
	for (size_t i = 0; i < count; i++)
		to[i] = (struct fi_rma_iov){i * len, len, KEY};
	return back ? fi_readmsg(w->tx, &m, 0) : fi_writemsg(w->tx, &m, 0);
}

static void message_lists(struct ways *w, size_t i)
{
	size_t out = w->info->tx_attr->iov_limit, in = w->info->rx_attr->iov_limit;

	CHECK_EQ(lists[i].receive(w, list_of(ways_target, in + 1)), -FI_EINVAL);
	CHECK_EQ(lists[i].send(w, list_of(ways_local, out + 1)), -FI_EINVAL);
	OK(lists[i].receive(w, list_of(ways_target, in)));
	memset(ways_target, 0, sizeof(ways_target));
	memset(ways_local, (int)i + 1, sizeof(ways_local));
	WAYS_POST(w, lists[i].send(w, list_of(ways_local, out)));
	ways_next(w, w->tx_cq);
	CHECK_EQ(in, out);
	CHECK_EQ(ways_next(w, w->rx_cq).len, out * SEGMENT);
	CHECK(!memcmp(ways_target, ways_local, out * SEGMENT));
	CHECK_EQ(ways_target[out * SEGMENT], 0);
}

static void range_lists(struct ways *w)
{
	size_t near = w->info->tx_attr->iov_limit, far = w->info->tx_attr->rma_iov_limit;

	for (int back = 0; back < 2; back++) {
		struct list l = list_of(ways_local, near);

		CHECK_EQ(ranges(w, list_of(ways_local, near + 1), 1, back), -FI_EINVAL);
		l.iov[0].iov_len = SEGMENT * (far + 1); /* the sums agree */
		l.count = 1;
		CHECK_EQ(ranges(w, l, far + 1, back), -FI_EINVAL);
		CHECK_EQ(near % far, 0);
		memset(ways_target, 1 + back, sizeof(ways_target));
		memset(ways_local, 5, sizeof(ways_local));
		WAYS_POST(w, ranges(w, list_of(ways_local, near), far, back));
		ways_next(w, w->tx_cq);
		OBJ_UNTIL(!memcmp(ways_target, ways_local, near * SEGMENT), ways_drive(w));
	}
}

static void list_each(struct ways *w)
{
	struct fid_mr *mr;

	for (size_t i = 0; i < API_COUNT(lists); i++)
		if (ways_can(w, lists[i].kind))
			message_lists(w, i);
	if (!ways_can(w, FI_RMA)) {
		CHECK_EQ(w->info->tx_attr->rma_iov_limit, 0);
		return;
	}
	OK(fi_mr_reg(w->c.o.domain, ways_target, WAYS_ROOM, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		     KEY, 0, &mr, NULL));
	range_lists(w);
	CLOSE(mr);
}

static void iov_limit(struct api *a)
{
	(void)a;
	ways_each(list_each);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* rx_attr->size receives and tx_attr->size sends are taken; reliable endpoints lose none and keep their order. */
static void size_each(struct ways *w)
{
	size_t in = w->info->rx_attr->size, out = w->info->tx_attr->size;
	uint64_t *got = calloc(in, sizeof(*got)), *sent = calloc(out, sizeof(*sent));

	CHECK(got && sent && in && out);
	for (size_t i = 0; i < in; i++)
		OK(fi_recv(w->rx, &got[i], sizeof(*got), NULL, FI_ADDR_UNSPEC, &got[i]));
	for (size_t i = 0; i < out; i++) {
		sent[i] = i + 1;
		WAYS_POST(w, fi_send(w->tx, &sent[i], sizeof(*sent), NULL, w->peer, NULL));
	}
	for (size_t i = 0; i < out; i++)
		ways_next(w, w->tx_cq);
	for (size_t i = 0; i < in && i < out && w->info->ep_attr->type != FI_EP_DGRAM; i++) {
		CHECK(ways_next(w, w->rx_cq).op_context == &got[i]);
		CHECK_EQ(got[i], i + 1);
	}
	ways_drop(w);
	free(got);
	free(sent);
}

static void size(struct api *a)
{
	(void)a;
	ways_each(size_each);
}

/* A message of max_msg_size, or one that is long if there is no limit; one byte more is refused. */
static void message_each(struct ways *w)
{
	size_t most = w->info->ep_attr->max_msg_size, len = most == SIZE_MAX ? WAYS_ROOM : most;
	struct iovec over[2] = {{ways_local, most}, {ways_local, 1}};

	if (most < SIZE_MAX) {
		CHECK_EQ(fi_send(w->tx, ways_local, most + 1, NULL, w->peer, NULL), -FI_EMSGSIZE);
		CHECK_EQ(fi_sendv(w->tx, over, NULL, 2, w->peer, NULL), -FI_EMSGSIZE);
	}
	CHECK(len <= WAYS_ROOM);
	memset(ways_local, 3, sizeof(ways_local));
	memset(ways_target, 0, sizeof(ways_target));
	OK(fi_recv(w->rx, ways_target, len, NULL, FI_ADDR_UNSPEC, NULL));
	WAYS_POST(w, fi_send(w->tx, ways_local, len, NULL, w->peer, NULL));
	CHECK_EQ(ways_next(w, w->rx_cq).len, len);
	CHECK(!memcmp(ways_target, ways_local, len));
	ways_next(w, w->tx_cq);
}

static void max_msg_size(struct api *a)
{
	(void)a;
	ways_each(message_each);
}

/* A datagram endpoint cannot be opened for longer messages than its address family carries. */
static void opens_for(void (*tune)(struct fi_info *hints), size_t most)
{
	const size_t lens[] = {1000, most, most + 1, 65528};

	for (size_t i = 0; i < API_COUNT(lens); i++) {
		struct obj o = {.hints = obj_hints(FI_MSG)};
		size_t reported = 0, len = sizeof(reported);
		struct fid_ep *ep;

		tune(o.hints);
		obj_domain(&o);
		CHECK_EQ(o.info->ep_attr->max_msg_size, most);
		o.info->ep_attr->max_msg_size = lens[i];
		CHECK_EQ(fi_endpoint(o.domain, o.info, &ep, NULL),
			 lens[i] > most ? -FI_ENODATA : 0);
		if (lens[i] <= most) {
			OK(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE, &reported,
				     &len));
			CHECK_EQ(reported, lens[i]);
			CLOSE(ep);
		}
		obj_close(&o);
	}
}

static void datagram_size(struct api *a)
{
	(void)a;
	if (dgram_device())
		api_skip("a device has one size");
	opens_for(dgram_in, 65507);
}

static void datagram_size6(struct api *a)
{
	(void)a;
	dgram_need_in6();
	opens_for(dgram_in6, 65527);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"inject_size", inject_size, 1, {0}},
		{"iov_limit", iov_limit, 1, {0}},
		{"size", size, 1, {0}},
		{"max_msg_size", max_msg_size, 1, {0}},
		{"datagram_size", datagram_size, 1, {0}},
		{"datagram_size6", datagram_size6, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
