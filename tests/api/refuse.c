/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors of message calls that are refused: nothing is sent, nothing completes. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"

static const enum form receives[] = {FORM_PLAIN, FORM_VECTOR, FORM_MSG};

/* Makes every send call with these arguments; each must return `want`. */
static void all_sends(struct side *s, const struct data *d, fi_addr_t to, ssize_t want)
{
	for (int tagged = 0; tagged < 2; tagged++)
		for (enum form form = 0; form < FORM_COUNT; form++)
			CHECK_EQ(form_send(s, &(struct form_args){.form = form,
								  .tagged = tagged,
								  .d = d,
								  .peer = to}),
				 want);
}

static void all_receives(struct side *s, const struct data *d, ssize_t want)
{
	for (int tagged = 0; tagged < 2; tagged++)
		for (size_t i = 0; i < API_COUNT(receives); i++)
			CHECK_EQ(form_recv(s, &(struct form_args){.form = receives[i],
								  .tagged = tagged,
								  .d = d,
								  .peer = FI_ADDR_UNSPEC}),
				 want);
}

static void nothing_happened(struct side *s)
{
	QUIET(s, s->tx, 2);
	QUIET(s, s->rx, 2);
}

static void not_enabled(struct api *a)
{
	struct data d = data_new(8, 1);
	struct side s;

	side_open(&s, a, &(struct side_opts){.not_enabled = true});
	all_sends(&s, &d, 0, -FI_EOPBADSTATE);
	all_receives(&s, &d, -FI_EOPBADSTATE);
	OK(fi_enable(s.ep));
	all_receives(&s, &d, 0);
	side_close(&s);
	data_free(&d);
}

/* fi_enable without a queue, and without an address vector. */
static void not_bound(struct api *a)
{
	struct fid_ep *ep;
	struct side s;

	side_open(&s, a, &(struct side_opts){.not_enabled = true});
	OK(fi_endpoint(s.domain, s.info, &ep, NULL));
	OK(fi_ep_bind(ep, &s.tx->fid, FI_TRANSMIT | FI_RECV));
	CHECK_EQ(fi_enable(ep), -FI_ENOAV);
	OK(fi_close(&ep->fid));
	OK(fi_endpoint(s.domain, s.info, &ep, NULL));
	OK(fi_ep_bind(ep, &s.av->fid, 0));
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &s.tx->fid, FI_TRANSMIT));
	CHECK_EQ(fi_enable(ep), -FI_ENOCQ);
	OK(fi_ep_bind(ep, &s.tx->fid, FI_RECV));
	CHECK(fi_ep_bind(ep, &s.tx->fid, FI_RECV) < 0);
	OK(fi_enable(ep));
	OK(fi_close(&ep->fid));
	side_close(&s);
}

/* Addresses that were never in the vector, or were removed. */
static void unknown_address(struct api *a)
{
	struct data d = data_new(8, 1);
	struct side s;

	side_open(&s, a, &(struct side_opts){.av_type = FI_AV_TABLE});
	all_sends(&s, &d, 1, -FI_EINVAL);
	all_sends(&s, &d, 1000000, -FI_EINVAL);
	all_sends(&s, &d, FI_ADDR_UNSPEC, -FI_EINVAL);
	all_sends(&s, &d, FI_ADDR_NOTAVAIL, -FI_EINVAL);
	OK(fi_av_remove(s.av, &s.addr[0], 1, 0));
	all_sends(&s, &d, s.addr[0], -FI_EINVAL);
	nothing_happened(&s);
	side_close(&s);
	data_free(&d);
}

/* More pieces than iov_limit, or a count without an array. */
static void pieces(struct api *a)
{
	struct iovec iov[DATA_IOV + 1] = {{0}};
	struct data many = {0};
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	many.count = s.info->tx_attr->iov_limit + 1;
	CHECK(many.count <= API_COUNT(iov));
	for (int none = 0; none < 2; none++) {
		const struct iovec *at = none ? NULL : iov;
		size_t n = none ? 1 : many.count;
		struct fi_msg m = {.msg_iov = at, .iov_count = n, .addr = s.addr[0]};
		struct fi_msg_tagged t = {.msg_iov = at, .iov_count = n, .addr = s.addr[0]};

		CHECK_EQ(fi_sendv(s.ep, at, NULL, n, s.addr[0], NULL), -FI_EINVAL);
		CHECK_EQ(fi_tsendv(s.ep, at, NULL, n, s.addr[0], 0, NULL), -FI_EINVAL);
		CHECK_EQ(fi_sendmsg(s.ep, &m, 0), -FI_EINVAL);
		CHECK_EQ(fi_tsendmsg(s.ep, &t, 0), -FI_EINVAL);
		CHECK_EQ(fi_recvv(s.ep, at, NULL, n, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
		CHECK_EQ(fi_trecvv(s.ep, at, NULL, n, FI_ADDR_UNSPEC, 0, 0, NULL), -FI_EINVAL);
		CHECK_EQ(fi_recvmsg(s.ep, &m, 0), -FI_EINVAL);
		CHECK_EQ(fi_trecvmsg(s.ep, &t, 0), -FI_EINVAL);
	}
	nothing_happened(&s);
	side_close(&s);
}

/* A multi-receive buffer must be one piece. */
static void multi_recv_pieces(struct api *a)
{
	struct data d = data_new(100, 3);
	struct side s;

	side_open(&s, a, &(struct side_opts){.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV});
	CHECK_EQ(form_recv(&s, &(struct form_args){.form = FORM_MSG,
						   .d = &d,
						   .peer = FI_ADDR_UNSPEC,
						   .flags = FI_MULTI_RECV}),
		 -FI_EINVAL);
	side_close(&s);
	data_free(&d);
}

/* The length is refused with an error other than -FI_EAGAIN. */
static void too_long(struct side *s, const struct form_args *f)
{
	ssize_t ret = form_send(s, f);

	CHECK(ret == -FI_EMSGSIZE || ret == -FI_EINVAL);
}

static void inject(struct api *a)
{
	struct side s;
	size_t max;

	side_open(&s, a, &(struct side_opts){0});
	max = s.info->tx_attr->inject_size;
	CHECK(max >= 16);
	for (size_t over = 0; over < 2; over++) {
		struct data d = data_full(max + over, 1, 1), two = data_full(max + over, 2, 1);
		struct form_args f = {.d = &d, .peer = s.addr[0], .tag = 1};

		for (int i = 0; i < 8; i++) {
			f.tagged = i & 1;
			f.form = i < 2 ? FORM_INJECT : i < 4 ? FORM_INJECTDATA : FORM_MSG;
			f.flags = f.form == FORM_MSG ? FI_INJECT : 0;
			f.d = i >= 6 ? &two : &d;
			if (over)
				too_long(&s, &f);
			else
				POST(&s, form_send(&s, &f));
		}
		data_free(&d);
		data_free(&two);
	}
	for (int i = 0; i < 4; i++)
		TAKE(&s, s.tx);
	nothing_happened(&s);
	side_close(&s);
}

/*
 * FI_INJECT as default flag: the buffer can be reused when the call returns, or the length is
 * refused.
 */
static void inject_default(struct api *a)
{
	static const size_t lens[] = {10, 0, 4097, 8193, 300001};
	struct side s;
	size_t max;

	side_open(&s, a, &(struct side_opts){.tx_flags = FI_INJECT});
	max = s.info->tx_attr->inject_size;
	for (unsigned int i = 0; i < 6 * API_COUNT(lens); i++) {
		size_t len = lens[i / 6] ? lens[i / 6] : max;
		struct data d = data_full(len, 1, i), in = data_new(len, 1);
		struct form_args f = {.tagged = i & 1, .d = &d, .peer = s.addr[0], .tag = 1};
		struct form_args r = f;
		ssize_t ret;

		f.form = i % 6 < 2 ? FORM_PLAIN : i % 6 < 4 ? FORM_VECTOR : FORM_DATA;
		api_at(__FILE__, __LINE__);
		while ((ret = form_send(&s, &f)) == -FI_EAGAIN)
			side_progress(&s);
		memset(d.memory, 0xee, d.total);
		if (len > max && ret) {
			CHECK(ret == -FI_EMSGSIZE || ret == -FI_EINVAL);
		} else {
			CHECK_EQ(ret, 0);
			r.d = &in;
			POST(&s, form_recv(&s, &r));
			TAKE(&s, s.rx);
			DATA_EXPECT(&in, len, i);
			TAKE(&s, s.tx);
		}
		data_free(&d);
		data_free(&in);
	}
	nothing_happened(&s);
	side_close(&s);
}

/* The call was refused because the endpoint lacks the capability or direction. */
static void refused(ssize_t ret)
{
	CHECK(ret == -FI_EOPNOTSUPP || ret == -FI_ENOSYS);
}

static void capability(struct api *a)
{
	static const struct {
		uint64_t caps;
		bool msg_send, msg_recv, tagged_send, tagged_recv;
	} opened[] = {{FI_MSG, 1, 1, 0, 0},
		      {FI_TAGGED, 0, 0, 1, 1},
		      {FI_MSG | FI_TAGGED | FI_SEND, 1, 0, 1, 0},
		      {FI_MSG | FI_TAGGED | FI_RECV, 0, 1, 0, 1}};
	struct data d = data_new(0, 1);

	for (size_t i = 0; i < API_COUNT(opened); i++) {
		struct side s;

		side_open(&s, a, &(struct side_opts){.caps = opened[i].caps});
		for (int tagged = 0; tagged < 2; tagged++) {
			struct form_args f = {.tagged = tagged, .d = &d, .peer = s.addr[0]};

			for (f.form = 0; f.form < FORM_COUNT; f.form++)
				if (tagged ? opened[i].tagged_send : opened[i].msg_send)
					POST(&s, form_send(&s, &f));
				else
					refused(form_send(&s, &f));
			for (size_t r = 0; r < API_COUNT(receives); r++) {
				f.form = receives[r];
				if (tagged ? opened[i].tagged_recv : opened[i].msg_recv)
					POST(&s, form_recv(&s, &f));
				else
					refused(form_recv(&s, &f));
			}
		}
		side_close(&s);
	}
	data_free(&d);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"not-enabled", not_enabled, 1, {0}},
		{"not-bound", not_bound, 1, {0}},
		{"unknown-address", unknown_address, 1, {0}},
		{"pieces", pieces, 1, {0}},
		{"multi-recv-pieces", multi_recv_pieces, 1, {0}},
		{"inject", inject, 1, {0}},
		{"inject-default", inject_default, 1, {0}},
		{"capability", capability, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
