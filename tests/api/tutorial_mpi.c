/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MPI of the libfabric tutorial, written for API 1.1: sends, receives and probes, over a basic
 * endpoint and a scalable one.
 */
#include "obj.h"

/* Context in a request of the program; the library may write to it. */
struct request {
	struct fi_context context;
	bool done;
	size_t count;
	uint64_t tag;
};

/* Opens what MPI_Init asks for, without one-sided operations if the transport has none. */
static void mpi_open(struct obj *o, uint64_t one_sided)
{
	struct fi_info *h = obj_hints(FI_TAGGED | FI_MSG | FI_MULTI_RECV | one_sided);

	h->mode = FI_CONTEXT;
	h->domain_attr->threading = FI_THREAD_ENDPOINT;
	h->domain_attr->control_progress = FI_PROGRESS_AUTO;
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->mr_mode = FI_MR_SCALABLE;
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
	o->hints = h;
	if (!obj_find(o, FI_VERSION(1, 1))) {
		fi_freeinfo(h);
		o->hints = NULL;
		if (one_sided)
			mpi_open(o, 0);
		else if (api_other())
			api_skip("not offered by this library");
		else
			api_fail("fi_getinfo offers nothing for what MPI_Init asks");
		return;
	}
	CHECK_EQ(o->info->domain_attr->mr_mode, FI_MR_SCALABLE);
	CHECK_EQ(o->info->domain_attr->threading, FI_THREAD_ENDPOINT);
	obj_domain(o);
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->cq = obj_cq(o, FI_WAIT_NONE);
	OK(fi_endpoint(o->domain, o->info, &o->ep, NULL));
	OK(fi_ep_bind(o->ep, &o->cq->fid, FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(o->ep, &o->av->fid, 0));
	OK(fi_enable(o->ep));
}

/* MPI_Init binds its memory to the enabled endpoint; a library may require the opposite call. */
static struct fid_mr *mpi_memory(struct obj *o, void *memory, size_t len)
{
	struct fid_mr *mr;
	int ret;

	OK(fi_mr_reg(o->domain, memory, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
	ret = fi_ep_bind(o->ep, &mr->fid, FI_REMOTE_READ | FI_REMOTE_WRITE);
	if (!api_other())
		OK(ret);
	return mr;
}

/* Progress loop: takes up to 8 completions. Returns false for the error -FI_ENOMSG. */
static bool mpi_progress(struct obj *o)
{
	struct fi_cq_tagged_entry wc[8];
	struct fi_cq_err_entry err = {0};
	ssize_t ret = fi_cq_read(o->cq, wc, 8);

	if (ret == -FI_EAVAIL) {
		CHECK_EQ(fi_cq_readerr(o->cq, &err, 0), 1);
		CHECK_EQ(err.err, FI_ENOMSG);
		return false;
	}
	for (ssize_t i = 0; i < ret; i++) {
		struct request *r = (struct request *)wc[i].op_context;

		r->done = true;
		r->count = wc[i].len;
		r->tag = wc[i].tag;
	}
	return true;
}

/* MPI_Probe, or with FI_CLAIM MPI_Mprobe. Repeats until a message is found. */
static void mpi_probe(struct obj *o, fi_addr_t from, uint64_t tag, uint64_t ignore, uint64_t claim,
		      struct request *r)
{
	struct fi_msg_tagged msg = {.addr = from, .tag = tag, .ignore = ignore, .context = r};
	ssize_t ret;

	r->done = false;
	OBJ_UNTIL(r->done, {
		bool pending = true;

		ret = fi_trecvmsg(o->ep, &msg, FI_PEEK | FI_COMPLETION | claim);
		if (ret != -FI_ENOMSG)
			OK(ret);
		while (ret == 0 && pending && !r->done)
			pending = mpi_progress(o);
	});
}

static void mpi_finish(struct obj *o, struct request *r)
{
	OBJ_UNTIL(r->done, CHECK(mpi_progress(o)));
}

static void mpi_receive(struct obj *o, void *buf, size_t len, fi_addr_t from, uint64_t tag,
			struct request *r)
{
	struct iovec iov = {buf, len};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = from, .tag = tag, .context = r};

	r->done = false;
	OK(fi_trecvmsg(o->ep, &msg, FI_COMPLETION));
	mpi_finish(o, r);
}

static void mpi_sender(struct obj *o, fi_addr_t peer)
{
	static char big[500000];
	struct request r = {.done = false};

	data_fill(big, sizeof(big), 8);
	CHECK(o->info->tx_attr->inject_size >= 4);
	POST(o->cq, fi_tinject(o->ep, "eight by", 4, peer, 0x100));
	POST(o->cq, fi_tsend(o->ep, big, sizeof(big), NULL, peer, 0x200, &r.context));
	mpi_finish(o, &r);
	POST(o->cq, fi_tinject(o->ep, "claimed", 8, peer, 0x300));
	POST(o->cq, fi_tinject(o->ep, "later", 6, peer, 0x300));
}

static void mpi_receiver(struct obj *o)
{
	static char buf[500000];
	struct request r = {.done = false};
	struct iovec iov = {buf, sizeof(buf)};
	struct fi_msg_tagged claim = {.msg_iov = &iov, .iov_count = 1, .context = &r};

	/* A probe leaves the message: the length is known, then the message is received. */
	for (int again = 0; again < 2; again++) {
		mpi_probe(o, FI_ADDR_UNSPEC, 0x100, 0xff, 0, &r);
		CHECK_EQ(r.count, 4);
		CHECK_EQ(r.tag, 0x100);
	}
	mpi_receive(o, buf, r.count, FI_ADDR_UNSPEC, 0x100, &r);
	CHECK(memcmp(buf, "eight by", 4) == 0);
	mpi_probe(o, FI_ADDR_UNSPEC, 0x200, 0, 0, &r);
	CHECK_EQ(r.count, sizeof(buf));
	mpi_receive(o, buf, r.count, FI_ADDR_UNSPEC, 0x200, &r);
	data_check(buf, r.count, 8);
	/* A claimed message is hidden from other receives until its owner receives it. */
	mpi_probe(o, FI_ADDR_UNSPEC, 0x300, 0, FI_CLAIM, &r);
	CHECK_EQ(r.count, 8);
	mpi_receive(o, buf + 100, 100, FI_ADDR_UNSPEC, 0x300, &(struct request){.done = false});
	CHECK(strcmp(buf + 100, "later") == 0);
	r.done = false;
	OK(fi_trecvmsg(o->ep, &claim, FI_CLAIM | FI_COMPLETION));
	mpi_finish(o, &r);
	CHECK(strcmp(buf, "claimed") == 0);
}

static void basic(struct api *a)
{
	static char memory[100];
	struct fid_mr *mr = NULL;
	struct obj o = {0};
	fi_addr_t peer;

	mpi_open(&o, FI_RMA | FI_ATOMIC);
	if (o.info->caps & FI_RMA)
		mr = mpi_memory(&o, memory, sizeof(memory));
	obj_progress(a, o.cq);
	peer = obj_swap(a, o.ep, o.av);
	if (a->rank == 0)
		mpi_sender(&o, peer);
	else
		mpi_receiver(&o);
	api_meet(a);
	a->progress = NULL;
	if (mr)
		CLOSE(mr);
	obj_close(&o);
}

/* MPI over a scalable endpoint: one transmit context for tagged messages, receives by index. */
static void scalable(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_TAGGED | FI_MSG | FI_NAMED_RX_CTX)};
	struct fid_ep *sep, *tx, *rx[4];
	struct fi_tx_attr tx_attr;
	struct request send = {.done = false};
	uint64_t word = 5, in[4] = {0};
	fi_addr_t peer;

	o.hints->mode = FI_CONTEXT;
	o.hints->ep_attr->tx_ctx_cnt = 2;
	o.hints->ep_attr->rx_ctx_cnt = 4;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 2);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	OK(fi_scalable_ep(o.domain, o.info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o.av->fid, 0));
	tx_attr = *o.info->tx_attr;
	tx_attr.caps = FI_TAGGED | FI_SEND;
	OK(fi_tx_context(sep, 1, &tx_attr, &tx, NULL));
	OK(fi_ep_bind(tx, &o.cq->fid, FI_SEND));
	OK(fi_enable(sep));
	OK(fi_enable(tx));
	for (int i = 0; i < 4; i++) {
		OK(fi_rx_context(sep, i, NULL, &rx[i], NULL));
		OK(fi_ep_bind(rx[i], &o.cq->fid, FI_RECV));
		OK(fi_enable(rx[i]));
	}
	obj_progress(a, o.cq);
	peer = obj_swap(a, sep, o.av);
	for (int i = 0; i < 4; i++) {
		struct request r = {.done = false};

		OK(fi_trecv(rx[i], &in[i], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &r.context));
		send.done = false;
		word = (uint64_t)i + 50;
		POST(o.cq, fi_tsend(tx, &word, 8, NULL, fi_rx_addr(peer, i, 2), 7, &send.context));
		mpi_finish(&o, &send);
		mpi_finish(&o, &r);
		CHECK_EQ(in[i], word);
	}
	api_meet(a);
	CLOSE(tx);
	for (int i = 0; i < 4; i++)
		CLOSE(rx[i]);
	CLOSE(sep);
	a->progress = NULL;
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"basic", basic, 2, {0}},
		{"scalable", scalable, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
