/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams between two processes: every form and size, messages that are too long, sources, and
 * refused calls. HW=udp
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/forms.h"
#include "lib/dgram_side.h"

static bool has_pieces(enum form form)
{
	return form == FORM_VECTOR || form == FORM_MSG;
}

/* Rank 1 sends by form `send`, rank 0 receives by form `recv`. */
static void pass(struct side *s, enum form send, enum form recv, size_t len, size_t pieces)
{
	unsigned int seed = (unsigned int)(len + send * 7 + recv);
	enum form form = s->a->rank ? send : recv;
	size_t count = has_pieces(form) ? pieces : 1;
	struct form_args f = dgram_args(s, form, NULL, NULL);
	struct data d;

	len = dgram_fit(s->info, len);
	if (form_injects(send) && len > s->info->tx_attr->inject_size)
		len = s->info->tx_attr->inject_size;
	d = s->a->rank ? data_full(len, count, seed) : data_new(len, count);
	f.d = f.context = &d;
	if (s->a->rank) {
		api_meet_still(s->a);
		FORM_SEND(s, &f);
	} else {
		POST(s, form_recv(s, &f));
		api_meet_still(s->a);
		GOT(s, &d, FI_MSG, len);
		DATA_EXPECT(&d, len, seed);
	}
	api_meet(s->a);
	data_free(&d);
}

static void all_forms(struct api *a, bool in6)
{
	static const enum form sends[] = {FORM_PLAIN, FORM_VECTOR, FORM_MSG, FORM_INJECT};
	static const enum form recvs[] = {FORM_PLAIN, FORM_VECTOR, FORM_MSG};
	static const size_t lens[] = {0, 1, 1473, 4096};
	struct side_opts o = dgram_opts(FI_MSG, in6);
	struct side s;

	side_open(&s, a, &o);
	s.yields = true;
	for (size_t i = 0; i < API_COUNT(sends); i++)
		for (size_t j = 0; j < API_COUNT(recvs); j++)
			for (size_t k = 0; k < API_COUNT(lens); k++)
				pass(&s, sends[i], recvs[j], lens[k], k % 4 + 1);
	side_close(&s);
}

static void forms(struct api *a)
{
	all_forms(a, false);
}

static void forms6(struct api *a)
{
	all_forms(a, true);
}

/* The kernel keeps a datagram that arrives before its receive. */
static void late(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct side s;

	side_open(&s, a, &o);
	s.yields = true;
	for (unsigned int i = 0; i < 20; i++)
		dgram_pass(&s, i * 50, i, true);
	side_close(&s);
}

/* All forms refuse a message one byte longer than max_msg_size, without side effects. */
static void refuse_longer(struct side *s, size_t most)
{
	size_t inject = s->info->tx_attr->inject_size;
	struct data d = data_full(most + 1, 1, 3);
	struct fi_msg m = {.msg_iov = d.iov, .iov_count = 1, .addr = s->addr[0]};

	CHECK_EQ(fi_send(s->ep, data_at(&d), most + 1, NULL, s->addr[0], NULL), -FI_EMSGSIZE);
	CHECK_EQ(fi_sendv(s->ep, d.iov, NULL, 1, s->addr[0], NULL), -FI_EMSGSIZE);
	CHECK_EQ(fi_sendmsg(s->ep, &m, 0), -FI_EMSGSIZE);
	if (inject < most)
		CHECK_EQ(fi_inject(s->ep, data_at(&d), inject + 1, s->addr[0]), -FI_EMSGSIZE);
	CHECK_EQ(fi_inject(s->ep, data_at(&d), most + 1, s->addr[0]), -FI_EMSGSIZE);
	QUIET(s, s->tx, 2);
	data_free(&d);
}

static void all_sizes(struct api *a, bool in6)
{
	static const size_t lens[] = {1471, 1472, 9000, 30000, 65000, 65506};
	struct side_opts o = dgram_opts(FI_MSG, in6);
	size_t most = in6 ? 65527 : 65507, reported, len = sizeof(reported);
	struct side s;

	side_open(&s, a, &o);
	s.yields = true;
	if (dgram_device())
		most = s.info->ep_attr->max_msg_size;
	CHECK_EQ(s.info->ep_attr->max_msg_size, most);
	OK(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MAX_MSG_SIZE, &reported, &len));
	CHECK_EQ(reported, s.info->ep_attr->max_msg_size);
	for (unsigned int i = 0; i < API_COUNT(lens); i++) {
		dgram_pass(&s, dgram_fit(s.info, lens[i]), i, i & 1);
		pass(&s, FORM_VECTOR, FORM_MSG, lens[i], i % 4 + 1);
	}
	dgram_pass(&s, s.info->ep_attr->max_msg_size, 40, false);
	if (a->rank)
		refuse_longer(&s, most);
	dgram_pass(&s, s.info->ep_attr->max_msg_size, 41, true);
	side_close(&s);
}

/* Hints may ask for exactly the maximum length; one byte more finds no provider. */
static void asked_size(struct api *a)
{
	static void (*const at[])(struct fi_info * hints) = {dgram_in, dgram_in6};

	(void)a;
	dgram_need_in6();
	for (size_t i = 0; i < 2; i++) {
		struct fi_info *hints = fi_allocinfo(), *info = NULL;
		size_t most = i ? 65527 : 65507;

		CHECK(hints);
		at[i](hints);
		hints->ep_attr->max_msg_size = most;
		OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
		CHECK_EQ(info->ep_attr->max_msg_size, most);
		fi_freeinfo(info);
		hints->ep_attr->max_msg_size = most + 1;
		CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
		fi_freeinfo(hints);
	}
}

static void sizes(struct api *a)
{
	all_sizes(a, false);
}

static void sizes6(struct api *a)
{
	all_sizes(a, true);
}

static const struct {
	size_t len, room, pieces;
} cuts[] = {{1, 0, 1},    {8, 7, 1},       {64, 33, 3},    {1000, 999, 2},
	    {1400, 1, 1}, {1400, 1399, 4}, {1472, 100, 1}, {1000, 1000, 1}};

static void cut(struct side *s, size_t i)
{
	size_t len = cuts[i].len, room = cuts[i].room;
	struct data d =
		s->a->rank ? data_full(len, 1, (unsigned int)i) : data_new(room, cuts[i].pieces);
	struct form_args f = dgram_args(s, s->a->rank ? FORM_PLAIN : FORM_VECTOR, &d, &d);
	struct fi_cq_err_entry err;

	if (s->a->rank) {
		api_meet_still(s->a);
		FORM_SEND(s, &f); /* the sender gets no error */
	} else {
		POST(s, form_recv(s, &f));
		api_meet_still(s->a);
		if (len > room) {
			err = TAKE_ERR(s, s->rx, FI_ETRUNC);
			CHECK(err.op_context == &d);
			CHECK_EQ(err.len, room);
			CHECK_EQ(err.olen, len - room);
			CHECK_EQ(err.flags & (FI_RECV | FI_MSG), FI_RECV | FI_MSG);
		} else {
			GOT(s, &d, FI_MSG, len);
		}
		DATA_EXPECT(&d, room, (unsigned int)i);
	}
	api_meet(s->a);
	data_free(&d);
}

/* A datagram longer than its receive is truncated with an error; the next one is complete. */
static void truncate_all(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct side s;

	side_open(&s, a, &o);
	s.yields = true;
	for (size_t i = 0; i < API_COUNT(cuts); i++) {
		if (cuts[i].len > s.info->ep_attr->max_msg_size)
			continue;
		cut(&s, i);
		dgram_pass(&s, 500, (unsigned int)i, false);
	}
	side_close(&s);
}

static void word_to(struct side *s, int rank, uint64_t value)
{
	POST(s, fi_inject(s->ep, &value, sizeof(value), s->addr[rank]));
}

/* Each message contains its sender's rank, which must match the source of the completion. */
static void all_sources(struct api *a, enum fi_av_type type, bool in6)
{
	struct side_opts o = dgram_opts(FI_MSG | FI_SOURCE, in6);
	struct side s;

	o.av_type = type;
	side_open(&s, a, &o);
	s.yields = true;
	for (int i = 0; i < 20; i++) {
		if (a->rank)
			word_to(&s, 0, (uint64_t)a->rank);
		for (int n = 1; n < a->ranks && !a->rank; n++) {
			fi_addr_t src = FI_ADDR_NOTAVAIL;
			uint64_t rank = 0;

			POST(&s, fi_recv(s.ep, &rank, sizeof(rank), NULL, FI_ADDR_UNSPEC, &rank));
			TAKE_FROM(&s, s.rx, &src);
			CHECK(rank >= 1 && rank < (uint64_t)a->ranks);
			CHECK_EQ(src, s.addr[rank]);
		}
		api_meet(a);
	}
	side_close(&s);
}

static void source(struct api *a)
{
	all_sources(a, FI_AV_TABLE, false);
}

static void source_map(struct api *a)
{
	all_sources(a, FI_AV_MAP, false);
}

static void source6(struct api *a)
{
	all_sources(a, FI_AV_TABLE, true);
}

/* A sender that is not in the vector: the message arrives. */
static void unknown(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG | FI_SOURCE, false);
	fi_addr_t src = 0;
	uint64_t value = 0;
	struct side s;

	o.knows_nobody = !a->rank;
	side_open(&s, a, &o);
	s.yields = true;
	if (a->rank) {
		word_to(&s, 0, 5);
	} else {
		POST(&s, fi_recv(s.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
		TAKE_FROM(&s, s.rx, &src);
		CHECK_EQ(src, FI_ADDR_NOTAVAIL);
		CHECK_EQ(value, 5);
	}
	side_close(&s);
}

/* With FI_SOURCE_ERR such a message is an error, whose err_data suits fi_av_insert. */
static void unknown_reported(struct api *a, bool in6)
{
	struct side_opts o = dgram_opts(FI_MSG | FI_SOURCE | FI_SOURCE_ERR, in6);
	unsigned char name[SIDE_NAME] = {0};
	struct fi_cq_err_entry e = {.err_data = name, .err_data_size = sizeof(name)};
	struct fi_cq_tagged_entry entry;
	fi_addr_t addr, src = 0;
	uint64_t value = 0;
	struct side s;
	ssize_t ret;

	o.knows_nobody = !a->rank;
	side_open(&s, a, &o);
	s.yields = true;
	for (int i = 0; i < 2 && a->rank; i++) {
		word_to(&s, 0, 5);
		api_meet(a);
	}
	if (!a->rank) {
		POST(&s, fi_recv(s.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
		while ((ret = fi_cq_read(s.rx, &entry, 1)) == -FI_EAGAIN)
			;
		CHECK_EQ(ret, -FI_EAVAIL);
		CHECK_EQ(fi_cq_readerr(s.rx, &e, 0), 1);
		CHECK_EQ(e.err, FI_EADDRNOTAVAIL);
		CHECK_EQ(e.err_data_size, s.name_len);
		CHECK(!memcmp(name, s.names[1], s.name_len));
		CHECK(e.op_context == &value && e.len == sizeof(value) && value == 5);
		CHECK_EQ(fi_av_insert(s.av, name, 1, &addr, 0, NULL), 1);
		api_meet(a);
		POST(&s, fi_recv(s.ep, &value, sizeof(value), NULL, FI_ADDR_UNSPEC, &value));
		TAKE_FROM(&s, s.rx, &src);
		CHECK_EQ(src, addr);
		api_meet(a);
	}
	side_close(&s);
}

static void unknown_error(struct api *a)
{
	unknown_reported(a, false);
}

static void unknown_error6(struct api *a)
{
	unknown_reported(a, true);
}

/* Operations that datagram endpoints lack, and invalid destinations. */
static void refuse(struct api *a)
{
	static const uint64_t never[] = {FI_REMOTE_CQ_DATA, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE,
					 FI_TRIGGER};
	static const uint64_t no_recv[] = {FI_PEEK, FI_CLAIM, FI_PEEK | FI_DISCARD, FI_TRIGGER};
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct fi_context2 context;
	char buf[8] = {0};
	struct iovec iov = {buf, sizeof(buf)};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .context = &context};
	struct side s;

	side_open(&s, a, &o);
	s.yields = true;
	m.addr = s.addr[0];
	CHECK_EQ(fi_senddata(s.ep, buf, 8, NULL, 1, s.addr[0], NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_injectdata(s.ep, buf, 8, 1, s.addr[0]), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_tsend(s.ep, buf, 8, NULL, s.addr[0], 1, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_tinject(s.ep, buf, 8, s.addr[0], 1), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_trecv(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_write(s.ep, buf, 8, NULL, s.addr[0], 0, 1, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_read(s.ep, buf, 8, NULL, s.addr[0], 0, 1, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_atomic(s.ep, buf, 1, NULL, s.addr[0], 0, 1, FI_UINT64, FI_SUM, NULL),
		 -FI_EOPNOTSUPP);
	for (size_t i = 0; i < API_COUNT(never); i++)
		CHECK_EQ(fi_sendmsg(s.ep, &m, never[i]), -FI_EOPNOTSUPP);
	for (size_t i = 0; i < API_COUNT(no_recv); i++)
		CHECK_EQ(fi_recvmsg(s.ep, &m, no_recv[i]), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_sendmsg(s.ep, &m, FI_MULTICAST), -FI_EINVAL);
	CHECK_EQ(fi_send(s.ep, buf, 8, NULL, s.addr[0] + 1, NULL), -FI_EINVAL);
	CHECK_EQ(fi_send(s.ep, buf, 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	CHECK_EQ(fi_send(s.ep, buf, 8, NULL, UINT64_C(1) << 47, NULL), -FI_EINVAL);
	m.iov_count = 17;
	CHECK_EQ(fi_sendmsg(s.ep, &m, 0), -FI_EINVAL);
	CHECK_EQ(fi_recvmsg(s.ep, &m, 0), -FI_EINVAL);
	QUIET(&s, s.tx, 2);
	QUIET(&s, s.rx, 2);
	side_close(&s);
}

/* Triggered and deferred work and shared receive contexts need reliable endpoints. */
static void refuse_objects(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	struct fi_rx_attr attr = {0};
	char buf[8] = {0};
	struct iovec iov = {buf, sizeof(buf)};
	struct fi_op_msg op = {.msg = {.msg_iov = &iov, .iov_count = 1}};
	struct fi_deferred_work work = {.threshold = 1, .op_type = FI_OP_SEND, .op.msg = &op};
	struct fid_ep *srx, *ep;
	struct side s;

	side_open(&s, a, &o);
	op.ep = s.ep;
	op.msg.addr = s.addr[0];
	OK(fi_cntr_open(s.domain, NULL, &work.triggering_cntr, NULL));
	CHECK_EQ(fi_control(&s.domain->fid, FI_QUEUE_WORK, &work), -FI_ENOSYS);
	OK(fi_close(&work.triggering_cntr->fid));
	OK(fi_srx_context(s.domain, &attr, &srx, NULL));
	OK(fi_endpoint(s.domain, s.info, &ep, NULL));
	CHECK_EQ(fi_ep_bind(ep, &srx->fid, 0), -FI_EINVAL);
	OK(fi_close(&ep->fid));
	OK(fi_close(&srx->fid));
	side_close(&s);
}

/* A datagram domain registers memory like others; closing a region waits for no peer. */
static void region(struct api *a)
{
	struct side_opts o = dgram_opts(FI_MSG, false);
	char buf[64] = {0};
	struct fid_mr *mr;
	struct side s;

	side_open(&s, a, &o);
	s.yields = true;
	OK(fi_mr_reg(s.domain, buf, sizeof(buf), FI_SEND | FI_RECV, 0, 1, 0, &mr, NULL));
	OK(fi_recv(s.ep, buf + 8, 8, fi_mr_desc(mr), FI_ADDR_UNSPEC, buf));
	OK(fi_send(s.ep, "12345678", 8, NULL, s.addr[0], buf));
	SENT(&s, buf, FI_MSG);
	GOT(&s, buf, FI_MSG, 8);
	CHECK(!memcmp(buf + 8, "12345678", 8));
	OK(fi_close(&mr->fid));
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"forms", forms, 2, {0}},
		{"forms6", forms6, 2, {0}},
		{"late", late, 2, {0}},
		{"sizes", sizes, 2, {0}},
		{"sizes6", sizes6, 2, {0}},
		{"asked-size", asked_size, 1, {0}},
		{"truncate", truncate_all, 2, {0}},
		{"source", source, 4, {0}},
		{"source-map", source_map, 4, {0}},
		{"source6", source6, 3, {0}},
		{"unknown", unknown, 2, {0}},
		{"unknown-error", unknown_error, 2, {0}},
		{"unknown-error6", unknown_error6, 2, {0}},
		{"refuse", refuse, 1, {0}},
		{"refuse-objects", refuse_objects, 1, {0}},
		{"region", region, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
