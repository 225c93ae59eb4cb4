/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_getinfo says of endpoints and domains beside the limits of transfers (limits.c), by use. For each endpoint
 * type. fi_domain(3), fi_endpoint(3).
 */
#include "obj.h"
#include "lib/cm.h"
#include "lib/ways.h"

#define ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

static uint64_t low_bytes(size_t size)
{
	return size >= sizeof(uint64_t) ? UINT64_MAX : (UINT64_C(1) << (8 * size)) - 1;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void data_travels(struct ways *w, uint64_t data)
{
	struct fi_cq_tagged_entry e;

	OK(fi_recv(w->rx, ways_target, 8, NULL, FI_ADDR_UNSPEC, NULL));
	WAYS_POST(w, fi_senddata(w->tx, ways_local, 8, NULL, data, w->peer, NULL));
	e = ways_next(w, w->rx_cq);
	CHECK(e.flags & FI_REMOTE_CQ_DATA);
	CHECK_EQ(e.data, data);
	ways_next(w, w->tx_cq);
}

/* All bytes of cq_data_size travel; where there are none, calls with data are refused. */
static void data_each(struct ways *w)
{
	uint64_t all = low_bytes(w->info->domain_attr->cq_data_size);

	if (!w->info->domain_attr->cq_data_size) {
		CHECK_EQ(fi_senddata(w->tx, ways_local, 8, NULL, 1, w->peer, NULL), -FI_EOPNOTSUPP);
		CHECK_EQ(fi_injectdata(w->tx, ways_local, 8, 1, w->peer), -FI_EOPNOTSUPP);
		return;
	}
	CHECK(w->info->domain_attr->cq_data_size >= 4);
	data_travels(w, all);
	data_travels(w, 0xfedcba9876543210 & all);
}

static void cq_data_size(struct api *a)
{
	(void)a;
	ways_each(data_each);
}

static void tag_reaches(struct ways *w, uint64_t tag, const void *receive)
{
	WAYS_POST(w, fi_tinject(w->tx, ways_local, 1, w->peer, tag));
	CHECK(ways_next(w, w->rx_cq).op_context == receive);
}

/* Each bit after the leading zeros of mem_tag_format tells messages apart; each may be ignored. */
static void tag_each(struct ways *w)
{
	static int with, without;
	uint64_t format = w->info->ep_attr->mem_tag_format, bit = UINT64_C(1) << 63;

	if (!ways_can(w, FI_TAGGED)) {
		CHECK_EQ(format, 0);
		return;
	}
	while (!(format & bit))
		bit >>= 1;
	for (; bit; bit >>= 1) {
		OK(fi_trecv(w->rx, ways_target, 1, NULL, FI_ADDR_UNSPEC, bit, ~bit, &with));
		OK(fi_trecv(w->rx, ways_target, 1, NULL, FI_ADDR_UNSPEC, 0, ~bit, &without));
		tag_reaches(w, 0, &without);
		tag_reaches(w, UINT64_MAX, &with);
	}
}

static void mem_tag_format(struct api *a)
{
	(void)a;
	ways_each(tag_each);
}

/* With FI_RM_ENABLED a queue that is too small for what completes loses nothing. */
static void resources_each(struct ways *w)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 2};
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct obj *o = &w->c.o;
	uint64_t got[100];
	fi_addr_t to;

	CHECK_EQ(w->info->domain_attr->resource_mgmt, FI_RM_ENABLED);
	if (w->info->ep_attr->type != FI_EP_RDM)
		return;
	OK(fi_cq_open(o->domain, &attr, &cq, NULL));
	ep = obj_ready_ep(o, cq);
	to = obj_insert_ep(o->av, ep);
	for (size_t i = 0; i < API_COUNT(got); i++) {
		WAYS_POST(w, fi_recv(ep, &got[i], 8, NULL, FI_ADDR_UNSPEC, NULL));
		POST(cq, fi_inject(ep, &i, 8, to));
	}
	for (size_t i = 0; i < API_COUNT(got); i++) {
		obj_next(cq, NULL);
		CHECK_EQ(got[i], i);
	}
	CLOSE(ep);
	CLOSE(cq);
}

static void resource_mgmt(struct api *a)
{
	(void)a;
	ways_each(resources_each);
}

/* ---- Regions --------------------------------------------------------------------------------- */

static void write_to(struct ways *w, uint64_t key, size_t len)
{
	memset(ways_local, 7, len);
	memset(ways_target, 0, sizeof(ways_target));
	WAYS_POST(w, fi_write(w->tx, ways_local, len, NULL, w->peer, 0, key, NULL));
	ways_next(w, w->tx_cq);
}

/* A key may use all bytes of mr_key_size. */
static void key_each(struct ways *w)
{
	uint64_t key = 0xfedcba9876543210 & low_bytes(w->info->domain_attr->mr_key_size);
	struct fid_mr *mr;

	if (!ways_can(w, FI_RMA))
		return;
	OK(fi_mr_reg(w->c.o.domain, ways_target, 64, ACCESS, 0, key, 0, &mr, NULL));
	CHECK_EQ(fi_mr_key(mr), key);
	write_to(w, key, 64);
	OBJ_UNTIL(!memcmp(ways_target, ways_local, 64), ways_drive(w));
	CLOSE(mr);
}

static void mr_key_size(struct api *a)
{
	(void)a;
	ways_each(key_each);
}

/* A region of mr_iov_limit pieces is one range for peers; one piece more is refused. */
static void pieces_each(struct ways *w)
{
	size_t most = w->info->domain_attr->mr_iov_limit;
	struct iovec iov[64];
	struct fid_mr *mr;

	CHECK(most < API_COUNT(iov));
	for (size_t i = 0; i <= most; i++)
		iov[i] = (struct iovec){ways_target + 2 * i * 8, 8};
	CHECK_EQ(fi_mr_regv(w->c.o.domain, iov, most + 1, ACCESS, 0, 5, 0, &mr, NULL), -FI_EINVAL);
	OK(fi_mr_regv(w->c.o.domain, iov, most, ACCESS, 0, 5, 0, &mr, NULL));
	if (ways_can(w, FI_RMA)) {
		write_to(w, fi_mr_key(mr), most * 8);
		for (size_t i = 0; i < most; i++)
			OBJ_UNTIL(!memcmp(iov[i].iov_base, ways_local, 8), ways_drive(w));
		CHECK_EQ(ways_target[8], 0);
	}
	CLOSE(mr);
}

static void mr_iov_limit(struct api *a)
{
	(void)a;
	ways_each(pieces_each);
}

/* ---- Objects --------------------------------------------------------------------------------- */

/* A counter holds max_cntr_value and max_err_cntr_value. */
static void counters_each(struct ways *w)
{
	struct fid_cntr *cntr = obj_cntr(&w->c.o, FI_WAIT_NONE);
	uint64_t most = w->info->domain_attr->max_cntr_value;

	OK(fi_cntr_set(cntr, most - 1));
	OK(fi_cntr_add(cntr, 1));
	CHECK_EQ(fi_cntr_read(cntr), most);
	most = w->info->domain_attr->max_err_cntr_value;
	OK(fi_cntr_seterr(cntr, most - 1));
	OK(fi_cntr_adderr(cntr, 1));
	CHECK_EQ(fi_cntr_readerr(cntr), most);
	CLOSE(cntr);
}

static void max_cntr_value(struct api *a)
{
	(void)a;
	ways_each(counters_each);
}

/* Address vectors of the type that is named, or of both. */
static void vectors_each(struct ways *w)
{
	static const enum fi_av_type types[] = {FI_AV_MAP, FI_AV_TABLE};
	enum fi_av_type said = w->info->domain_attr->av_type;

	for (size_t i = 0; i < API_COUNT(types); i++)
		if (said == FI_AV_UNSPEC || said == types[i])
			CLOSE(obj_av(&w->c.o, types[i], 0));
}

static void av_type(struct api *a)
{
	(void)a;
	ways_each(vectors_each);
}

/* A buffer of max_err_data bytes takes all data of an error, here of a rejected connection. */
static void max_err_data(struct api *a)
{
	struct fi_eq_err_entry err = {0};
	unsigned char why[CM_DATA], room[CM_DATA];
	struct cm_event got = {0};
	struct cm_end active;
	struct obj_name to;
	struct fi_info *request;
	uint32_t event;
	struct cm c;

	(void)a;
	if (cm_bare())
		api_skip("devices are for tests/lab");
	memset(why, 9, sizeof(why));
	request = cm_ask(&c, &active, &to);
	OK(fi_reject(c.pep, request->handle, why, sizeof(why)));
	fi_freeinfo(request);
	CHECK_EQ(cm_read(&c, active.eq, &event, &got), -FI_EAVAIL);
	CHECK(c.o.info->domain_attr->max_err_data <= sizeof(room));
	err.err_data = room;
	err.err_data_size = c.o.info->domain_attr->max_err_data;
	CHECK_EQ(fi_eq_readerr(active.eq, &err, 0), sizeof(err));
	CHECK_EQ(err.err_data_size, sizeof(why));
	CHECK(!memcmp(room, why, sizeof(why)));
	cm_close_end(&c, &active);
	cm_close(&c);
}

/* ---- Contexts -------------------------------------------------------------------------------- */

/* max_ep_rx_ctx receive contexts and as many transmit contexts exist, one more does not. */
static void max_ep_ctx(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	struct fid_ep *tx[256], *rx[256], *more;
	size_t out, in;
	int bits = 0;

	(void)a;
	CHECK(obj_find(&o, FI_VERSION(1, 17)));
	out = o.info->ep_attr->tx_ctx_cnt = o.info->domain_attr->max_ep_tx_ctx;
	in = o.info->ep_attr->rx_ctx_cnt = o.info->domain_attr->max_ep_rx_ctx;
	CHECK(out && in && out <= API_COUNT(tx) && in <= API_COUNT(rx));
	while ((size_t)1 << bits < in)
		bits++;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, bits);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	OK(fi_scalable_ep(o.domain, o.info, &o.ep, NULL));
	OK(fi_scalable_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_enable(o.ep));
	for (size_t i = 0; i < in; i++) {
		OK(fi_rx_context(o.ep, (int)i, NULL, &rx[i], NULL));
		OK(fi_ep_bind(rx[i], &o.cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION));
		OK(fi_enable(rx[i]));
	}
	CHECK_EQ(fi_rx_context(o.ep, (int)in, NULL, &more, NULL), -FI_EINVAL);
	for (size_t i = 0; i < out; i++) {
		OK(fi_tx_context(o.ep, (int)i, NULL, &tx[i], NULL));
		OK(fi_ep_bind(tx[i], &o.cq->fid, FI_TRANSMIT));
		OK(fi_enable(tx[i]));
	}
	CHECK_EQ(fi_tx_context(o.ep, (int)out, NULL, &more, NULL), -FI_EINVAL);
	for (size_t i = 0; i < out; i++) {
		fi_addr_t self = i ? 0 : obj_insert_ep(o.av, o.ep),
			  to = fi_rx_addr(self, (int)(i % in), bits);
		struct iovec iov = {ways_target, 8};
		struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC};

		OK(fi_recvmsg(rx[i % in], &m, 0));
		POST(o.cq, fi_send(tx[i], ways_local, 8, NULL, to, &tx[i]));
		obj_done(o.cq, &tx[i]);
	}
	for (size_t i = 0; i < in; i++)
		CLOSE(rx[i]);
	for (size_t i = 0; i < out; i++)
		CLOSE(tx[i]);
	obj_close(&o);
}

/* max_ep_srx_ctx endpoints share a receive context, and max_ep_stx_ctx a transmit context. */
static void max_ep_shared(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	struct fid_ep *ep[256], *srx;
	struct fid_stx *stx;
	size_t count;

	(void)a;
	o.hints->ep_attr->rx_ctx_cnt = o.hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	count = o.info->domain_attr->max_ep_srx_ctx;
	CHECK_EQ(o.info->domain_attr->max_ep_stx_ctx, count);
	CHECK(count && count <= API_COUNT(ep));
	OK(fi_srx_context(o.domain, o.info->rx_attr, &srx, NULL));
	OK(fi_stx_context(o.domain, o.info->tx_attr, &stx, NULL));
	for (size_t i = 0; i < count; i++) {
		ep[i] = obj_ep(&o);
		OK(fi_ep_bind(ep[i], &srx->fid, 0));
		OK(fi_ep_bind(ep[i], &stx->fid, 0));
		OK(fi_ep_bind(ep[i], &o.av->fid, 0));
		OK(fi_ep_bind(ep[i], &o.cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(ep[i]));
		OK(fi_recv(srx, ways_target, 8, NULL, FI_ADDR_UNSPEC, &ep[i]));
		POST(o.cq, fi_inject(ep[i], ways_local, 8, obj_insert_ep(o.av, ep[i])));
		obj_done(o.cq, &ep[i]);
	}
	for (size_t i = 0; i < count; i++)
		CLOSE(ep[i]);
	CLOSE(stx);
	CLOSE(srx);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"cq_data_size", cq_data_size, 1, {0}},
		{"mem_tag_format", mem_tag_format, 1, {0}},
		{"resource_mgmt", resource_mgmt, 1, {0}},
		{"mr_key_size", mr_key_size, 1, {0}},
		{"mr_iov_limit", mr_iov_limit, 1, {0}},
		{"max_cntr_value", max_cntr_value, 1, {0}},
		{"av_type", av_type, 1, {0}},
		{"max_err_data", max_err_data, 1, {0}},
		{"max_ep_ctx", max_ep_ctx, 1, {0}},
		{"max_ep_shared", max_ep_shared, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
