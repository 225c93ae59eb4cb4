/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read and write calls that are refused at once, and their errors: nothing completes, nothing
 * counts.
 */
#include <rdma/fi_trigger.h>

#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define LEN 20000

static unsigned char memory[LEN], local[LEN];

/* A process that is its own target. */
struct own {
	struct rma r;
	struct rma_target t;
};

static void own_open(struct own *o, struct api *a, uint64_t caps)
{
	rma_open(&o->r, a, &(struct rma_opts){.caps = caps, .mr_mode = RMA_PROVIDED});
	rma_target_open(&o->r, &o->t, memory, LEN);
}

/* Checks that the refused calls had no effect and the endpoint works, then closes all. */
static void own_close(struct own *o)
{
	obj_quiet(o->r.o.cq, 2);
	obj_quiet(o->r.in, 0);
	CHECK_EQ(fi_cntr_read(o->r.writes), 0);
	CHECK_EQ(fi_cntr_read(o->r.reads), 0);
	CHECK_EQ(fi_cntr_readerr(o->r.writes), 0);
	CHECK_EQ(fi_cntr_readerr(o->r.reads), 0);
	CHECK(data_all(memory, LEN, 0));
	if (o->r.o.info->caps & FI_RMA)
		RMA_PLAIN(&o->r, RMA_READ, local, LEN, &o->t.key, 0);
	rma_target_close(&o->r, &o->t);
	rma_close(&o->r);
}

static ssize_t call(struct own *o, struct fid_ep *ep, enum rma_form form, size_t len, fi_addr_t to,
		    uint64_t flags)
{
	struct iovec iov = {local, len};
	struct fi_rma_iov there = {o->t.key.base, len, o->t.key.key};

	return rma_post(ep, &(struct rma_op){.form = form,
					     .iov = &iov,
					     .count = 1,
					     .to = &there,
					     .to_count = 1,
					     .peer = to,
					     .flags = flags,
					     .context = o});
}

/* Addresses that were never in the vector, or were removed. */
static void unknown_address(struct api *a)
{
	struct own o;
	fi_addr_t gone, unknown[] = {77, 1000000, FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL, 0};

	own_open(&o, a, 0);
	gone = obj_insert_ep(o.r.o.av, o.r.o.ep);
	if (gone != o.r.addr[0])
		OK(fi_av_remove(o.r.o.av, &gone, 1, 0));
	unknown[4] = gone != o.r.addr[0] ? gone : 78;
	for (size_t i = 0; i < API_COUNT(unknown); i++)
		for (enum rma_form form = 0; form < RMA_FORMS; form++)
			CHECK_EQ(call(&o, o.r.o.ep, form, 8, unknown[i], 0), -FI_EINVAL);
	own_close(&o);
}

static void not_enabled(struct api *a)
{
	struct fid_ep *ep;
	struct own o;

	own_open(&o, a, 0);
	ep = obj_ep(&o.r.o);
	OK(fi_ep_bind(ep, &o.r.o.av->fid, 0));
	OK(fi_ep_bind(ep, &o.r.o.cq->fid, FI_TRANSMIT | FI_RECV));
	for (enum rma_form form = 0; form < RMA_FORMS; form++)
		CHECK_EQ(call(&o, ep, form, 8, o.r.addr[0], 0), -FI_EOPBADSTATE);
	CLOSE(ep);
	own_close(&o);
}

/* Endpoints without the capability, or without one direction of it. */
static void capability(struct api *a)
{
	static const struct {
		uint64_t caps;
		bool write, read;
	} opened[] = {{FI_MSG, false, false},
		      {FI_MSG | FI_TAGGED | FI_ATOMIC, false, false},
		      {FI_MSG | FI_RMA, true, true},
		      {FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE, true, false},
		      {FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ, false, true},
		      {FI_MSG | FI_RMA | FI_REMOTE_READ | FI_REMOTE_WRITE, false, false}};

	for (size_t i = 0; i < API_COUNT(opened); i++) {
		struct own o;

		own_open(&o, a, opened[i].caps);
		for (enum rma_form form = 0; form < RMA_FORMS; form++) {
			bool may = rma_reads(form) ? opened[i].read : opened[i].write;
			ssize_t ret;

			/* An injected operation returns -FI_EAGAIN until the connection exists. */
			OBJ_UNTIL((ret = call(&o, o.r.o.ep, form, 8, o.r.addr[0], 0)) != -FI_EAGAIN,
				  fi_cq_read(o.r.o.cq, NULL, 0));
			CHECK_EQ(ret, may ? 0 : -FI_EOPNOTSUPP);
			o.r.done[rma_reads(form)] += may;
		}
		rma_counted(&o.r);
		rma_target_close(&o.r, &o.t);
		rma_close(&o.r);
	}
}

/* A scalable endpoint refuses operations; its transmit contexts accept them. */
static void wrong_context(struct api *a)
{
	struct fi_info *info;
	struct fid_ep *sep, *rx;
	struct own o;

	own_open(&o, a, 0);
	info = fi_dupinfo(o.r.o.info);
	CHECK(info != NULL);
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
	OK(fi_scalable_ep(o.r.o.domain, info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o.r.o.av->fid, 0));
	OK(fi_enable(sep));
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	OK(fi_ep_bind(rx, &o.r.in->fid, FI_RECV));
	OK(fi_enable(rx));
	for (enum rma_form form = 0; form < RMA_FORMS; form++) {
		FAILS(call(&o, sep, form, 8, o.r.addr[0], 0));
		FAILS(call(&o, rx, form, 8, o.r.addr[0], 0));
	}
	CLOSE(rx);
	CLOSE(sep);
	fi_freeinfo(info);
	own_close(&o);
}

static void inject_length(struct api *a)
{
	struct own o;
	size_t max;

	own_open(&o, a, 0);
	max = o.r.o.info->tx_attr->inject_size;
	CHECK(max >= 16 && max < LEN);
	for (size_t len = max + 1; len <= LEN; len += LEN - max - 1) {
		CHECK_EQ(call(&o, o.r.o.ep, RMA_INJECT, len, o.r.addr[0], 0), -FI_EMSGSIZE);
		CHECK_EQ(call(&o, o.r.o.ep, RMA_INJECTDATA, len, o.r.addr[0], 0), -FI_EMSGSIZE);
		CHECK_EQ(call(&o, o.r.o.ep, RMA_WRITEMSG, len, o.r.addr[0], FI_INJECT),
			 -FI_EMSGSIZE);
	}
	own_close(&o);
}

/* An invalid triggered call is refused at once, not at its trigger. */
static void inject_triggered(struct api *a)
{
	struct iovec iov = {local, LEN};
	struct fi_rma_iov to = {.len = LEN};
	struct fi_triggered_context2 trigger = {.event_type = FI_TRIGGER_THRESHOLD};
	struct fid_cntr *cntr;
	struct own o;

	own_open(&o, a, FI_MSG | FI_RMA | FI_TRIGGER);
	cntr = obj_cntr(&o.r.o, FI_WAIT_NONE);
	trigger.trigger.threshold.cntr = cntr;
	trigger.trigger.threshold.threshold = 1;
	to.addr = o.t.key.base;
	to.key = o.t.key.key;
	for (size_t len = o.r.o.info->tx_attr->inject_size + 1; len <= LEN; len = len * 2 + 1) {
		iov.iov_len = to.len = len;
		CHECK_EQ(rma_post(o.r.o.ep, &(struct rma_op){.form = RMA_WRITEMSG,
							     .iov = &iov,
							     .count = 1,
							     .to = &to,
							     .to_count = 1,
							     .peer = o.r.addr[0],
							     .flags = FI_INJECT | FI_TRIGGER,
							     .context = &trigger}),
			 -FI_EMSGSIZE);
	}
	OK(fi_cntr_add(cntr, 1));
	CLOSE(cntr);
	own_close(&o);
}

static ssize_t lists(struct own *o, enum rma_form form, const struct iovec *iov, size_t count,
		     const struct fi_rma_iov *to, size_t to_count)
{
	return rma_post(o->r.o.ep, &(struct rma_op){.form = form,
						    .iov = iov,
						    .count = count,
						    .to = to,
						    .to_count = to_count,
						    .peer = o->r.addr[0],
						    .context = o});
}

/* Local and remote lists must have the same total length. */
static void lengths_differ(struct api *a)
{
	struct own o;

	own_open(&o, a, 0);
	for (int n = 0; n < 2; n++) {
		enum rma_form form = n ? RMA_READMSG : RMA_WRITEMSG;
		uint64_t base = o.t.key.base, key = o.t.key.key;
		struct iovec iov[2] = {{local, 100}, {local + 200, 60}};
		struct fi_rma_iov to[2] = {{base, 80, key}, {base + 300, 79, key}};

		CHECK_EQ(lists(&o, form, iov, 2, to, 2), -FI_EINVAL);
		to[1].len = 81;
		CHECK_EQ(lists(&o, form, iov, 2, to, 2), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, iov, 1, to, 1), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, iov, 2, to, 1), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, NULL, 0, to, 1), -FI_EINVAL);
	}
	own_close(&o);
}

/* More list entries than the limits, or a count without a list. */
static void list_limits(struct api *a)
{
	struct iovec iov[64];
	struct fi_rma_iov to[64];
	size_t max, to_max;
	struct own o;

	own_open(&o, a, 0);
	max = o.r.o.info->tx_attr->iov_limit;
	to_max = o.r.o.info->tx_attr->rma_iov_limit;
	CHECK(max < API_COUNT(iov) && to_max < API_COUNT(to));
	for (size_t i = 0; i < API_COUNT(iov); i++) {
		iov[i] = (struct iovec){local, i ? 0 : 8};
		to[i] = (struct fi_rma_iov){o.t.key.base, i ? 0 : 8, o.t.key.key};
	}
	CHECK_EQ(lists(&o, RMA_WRITEV, iov, max + 1, to, 1), -FI_EINVAL);
	CHECK_EQ(lists(&o, RMA_READV, iov, max + 1, to, 1), -FI_EINVAL);
	for (int n = 0; n < 2; n++) {
		enum rma_form form = n ? RMA_READMSG : RMA_WRITEMSG;

		CHECK_EQ(lists(&o, form, iov, max + 1, to, 1), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, iov, 1, to, to_max + 1), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, iov, max + 1, to, to_max + 1), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, NULL, 1, to, 1), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, iov, 1, NULL, 1), -FI_EINVAL);
		CHECK_EQ(lists(&o, form, iov, 1, to, 0), -FI_EINVAL);
	}
	own_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"unknown_address", unknown_address, 1, {0}},
		{"not_enabled", not_enabled, 1, {0}},
		{"capability", capability, 1, {0}},
		{"wrong_context", wrong_context, 1, {0}},
		{"inject_length", inject_length, 1, {0}},
		{"inject_triggered", inject_triggered, 1, {0}},
		{"lengths_differ", lengths_differ, 1, {0}},
		{"list_limits", list_limits, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
