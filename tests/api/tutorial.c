/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of the libfabric tutorial, written for API 1.1: ping-pong, and an OpenSHMEM's start and
 * put.
 */
#include <rdma/fi_rma.h>

#include "obj.h"

#define V1_1 FI_VERSION(1, 1)

/* Ping-pong: two queues with FI_CQ_FORMAT_CONTEXT, and defaults otherwise. */

static void one_completion(struct fid_cq *cq)
{
	struct fi_cq_entry entry;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(cq, &entry, 1)) > 0, CHECK_EQ(ret, -FI_EAGAIN));
}

static struct fid_cq *plain_cq(struct obj *o, size_t size)
{
	struct fi_cq_attr attr = {
		.size = size, .wait_obj = FI_WAIT_NONE, .format = FI_CQ_FORMAT_CONTEXT};
	struct fid_cq *cq;

	OK(fi_cq_open(o->domain, &attr, &cq, NULL));
	return cq;
}

static void pingpong(struct api *a)
{
	struct fi_av_attr av_attr = {.count = 1};
	struct fid_cq *tx_cq, *rx_cq;
	struct obj o = {.hints = obj_hints(FI_MSG)};
	static char out[1024], in[1024];
	fi_addr_t peer;

	CHECK(obj_find(&o, V1_1));
	obj_domain(&o);
	tx_cq = plain_cq(&o, o.info->tx_attr->size);
	rx_cq = plain_cq(&o, o.info->rx_attr->size);
	av_attr.type = o.info->domain_attr->av_type;
	OK(fi_av_open(o.domain, &av_attr, &o.av, NULL));
	OK(fi_endpoint(o.domain, o.info, &o.ep, NULL));
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &tx_cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(o.ep, &rx_cq->fid, FI_RECV));
	OK(fi_enable(o.ep));
	OK(fi_recv(o.ep, in, sizeof(in), NULL, 0,
		   NULL)); /* source ignored without FI_DIRECTED_RECV */
	peer = obj_swap(a, o.ep, o.av);
	for (int i = 0; i < 1000; i++) {
		if (a->rank == 1) {
			one_completion(rx_cq);
			OK(fi_recv(o.ep, in, sizeof(in), NULL, 0, NULL));
		}
		POST(tx_cq, fi_send(o.ep, out, sizeof(out), NULL, peer, NULL));
		one_completion(tx_cq);
		if (a->rank == 0) {
			one_completion(rx_cq);
			OK(fi_recv(o.ep, in, sizeof(in), NULL, 0, NULL));
		}
	}
	api_meet(a);
	CLOSE(o.ep);
	o.ep = NULL;
	CLOSE(tx_cq);
	CLOSE(rx_cq);
	obj_close(&o);
}

/* shmem_quiet; the counter is opened without wait attributes. */
static void quiet(struct fid_cntr *cntr, uint64_t count)
{
	int ret = fi_cntr_wait(cntr, count, -1);

	if (api_other() && ret == -FI_ENOSYS)
		api_skip("no waiting without a wait object");
	OK(ret);
}

/*
 * All memory under key 0, with addresses as offsets. Counters show that a put and a get are
 * complete.
 */
static void shmem(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_RMA | FI_MSG)};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fid_cntr *puts, *gets;
	struct fid_mr *mr;
	fi_addr_t peer;
	uint64_t value = 40 + (uint64_t)a->rank, back = 0;
	static uint64_t target; /* at the same address in both processes, forked from one */

	o.hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	o.hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	o.hints->domain_attr->mr_mode = FI_MR_SCALABLE;
	if (!obj_find(&o, FI_VERSION(1, 0)))
		api_skip("no one-sided transfers here");
	obj_domain(&o);
	OK(fi_cntr_open(o.domain, &cntr_attr, &puts, NULL));
	OK(fi_cntr_open(o.domain, &cntr_attr, &gets, NULL));
	OK(fi_av_open(o.domain, &av_attr, &o.av, NULL));
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ep(&o);
	OK(fi_ep_bind(o.ep, &puts->fid, FI_WRITE));
	OK(fi_ep_bind(o.ep, &gets->fid, FI_READ));
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_mr_reg(o.domain, NULL, UINT64_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr,
		     NULL));
	OK(fi_enable(o.ep));
	peer = obj_swap(a, o.ep, o.av);
	CHECK_EQ(peer, 0);
	POST(o.cq, fi_write(o.ep, &value, 8, NULL, peer, (uint64_t)(uintptr_t)&target, 0, NULL));
	quiet(puts, 1);
	POST(o.cq, fi_read(o.ep, &back, 8, NULL, peer, (uint64_t)(uintptr_t)&target, 0, NULL));
	quiet(gets, 1);
	CHECK_EQ(back, value);
	api_meet(a);
	fi_cq_read(o.cq, NULL, 0); /* ensures that the progress thread's write is visible */
	CHECK_EQ(*(volatile uint64_t *)&target, 40 + !a->rank);
	CLOSE(o.ep);
	CLOSE(mr);
	CLOSE(puts);
	CLOSE(gets);
	o.ep = NULL;
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"pingpong", pingpong, 2, {0}},
		{"shmem", shmem, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
