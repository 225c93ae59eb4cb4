/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps through calls of the data path one instruction at a time, for hotpath.py:
 *
 *     hotpath safe|domain        threading level FI_THREAD_SAFE or FI_THREAD_DOMAIN
 *
 * Opens and warms up two endpoints; steps.h describes the output. Uses only the public interface,
 * so the counted code is the code that applications run.
 */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "steps.h"

#define WARM_UP 100
#define TAG     42

struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	fi_addr_t peer;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct side a, b;
static struct side unknown; /* which b does not have in its address vector */
static char out[4096], in[4096];
static struct fi_context2 context[2];
static uint64_t word, operand = 1, result; /* b's memory; the value that a adds; a's result */
static struct fid_mr *mr;
static uint64_t addr, key; /* of `word` */
static struct fi_cq_tagged_entry entry;

static void find_fabric(bool safe)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = safe ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("shm");
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
}

static void open_side(struct side *s)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 1};

	must(fi_cq_open(domain, &cq_attr, &s->cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &s->av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &s->av->fid, 0), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
}

static void insert(struct side *s, const struct side *other)
{
	char name[256];
	size_t len = sizeof(name);

	must(fi_getname(&other->ep->fid, name, &len), "fi_getname");
	if (fi_av_insert(s->av, name, 1, &s->peer, 0, NULL) != 1)
		must(-FI_EINVAL, "fi_av_insert");
}

/* Reads one completion; the other side makes progress as well. */
static void wait_for(struct side *s, uint64_t flag)
{
	struct side *other = s == &a ? &b : &a;
	ssize_t ret;

	do {
		fi_cq_read(other->cq, &entry, 0);
		ret = fi_cq_read(s->cq, &entry, 1);
	} while (ret == -FI_EAGAIN);
	must(ret, "fi_cq_read");
	if (!(entry.flags & flag))
		must(-FI_EOTHER, "the completion is another");
}

static void receive_tagged(void)
{
	must(fi_trecv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, TAG, 0, &context[1]), "fi_trecv");
}

static void receive(void)
{
	must(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &context[1]), "fi_recv");
}

static void warm_up(void)
{
	for (int i = 0; i < WARM_UP; i++) {
		ssize_t ret;

		receive_tagged();
		do {
			ret = fi_tsend(a.ep, out, 8, NULL, a.peer, TAG, &context[0]);
			fi_cq_read(b.cq, &entry, 0);
		} while (ret == -FI_EAGAIN);
		must(ret, "fi_tsend");
		wait_for(&a, FI_SEND);
		wait_for(&b, FI_RECV);
	}
}

static void count_tagged(void)
{
	COUNT("trecv", fi_trecv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, TAG, 0, &context[1]));
	COUNT("tsend", fi_tsend(a.ep, out, 8, NULL, a.peer, TAG, &context[0]));
	COUNT("cq_read", fi_cq_read(a.cq, &entry, 1));
	COUNT("cq_read+receive", fi_cq_read(b.cq, &entry, 1));
	receive_tagged();
	COUNT("tinject", fi_tinject(a.ep, out, 8, a.peer, TAG));
	wait_for(&b, FI_RECV);
	receive_tagged();
	COUNT("tinjectdata", fi_tinjectdata(a.ep, out, 8, 1, a.peer, TAG));
	wait_for(&b, FI_RECV);
	receive_tagged();
	COUNT("tsenddata", fi_tsenddata(a.ep, out, 8, NULL, 1, a.peer, TAG, &context[0]));
	wait_for(&a, FI_SEND);
	wait_for(&b, FI_RECV);
	receive_tagged();
	COUNT("tsend-64", fi_tsend(a.ep, out, 64, NULL, a.peer, TAG, &context[0]));
	wait_for(&a, FI_SEND);
	wait_for(&b, FI_RECV);
}

/* As MPIs do: they post many receives, and read many completions at once. */
static void count_eight(void)
{
	struct fi_cq_tagged_entry entries[16];

	for (int i = 0; i < 8; i++)
		receive_tagged();
	for (int i = 0; i < 8; i++)
		must(fi_tinjectdata(a.ep, out, 8, 1, a.peer, TAG), "fi_tinjectdata");
	COUNT("cq_read+eight", fi_cq_read(b.cq, entries, 16) == 8 ? 0 : -FI_EOTHER);
}

static void count_msg(void)
{
	COUNT("recv", fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &context[1]));
	COUNT("send", fi_send(a.ep, out, 8, NULL, a.peer, &context[0]));
	wait_for(&a, FI_SEND);
	wait_for(&b, FI_RECV);
	receive();
	COUNT("inject", fi_inject(a.ep, out, 8, a.peer));
	wait_for(&b, FI_RECV);
}

/* What looks for the source of a message may not do so for each. */
static void count_unknown(void)
{
	ssize_t ret;

	for (int i = 0; i < WARM_UP; i++) {
		receive();
		while ((ret = fi_send(unknown.ep, out, 8, NULL, unknown.peer, &context[0])) ==
		       -FI_EAGAIN)
			fi_cq_read(unknown.cq, &entry, 0);
		must(ret, "fi_send");
		do {
			fi_cq_read(unknown.cq, &entry, 1);
			ret = fi_cq_read(b.cq, &entry, 1);
		} while (ret == -FI_EAGAIN);
		must(ret, "fi_cq_read");
	}
	receive();
	must(fi_inject(unknown.ep, out, 8, unknown.peer), "fi_inject");
	COUNT("cq_read+unknown", fi_cq_read(b.cq, &entry, 1));
}

static ssize_t read_nothing(struct side *s)
{
	return fi_cq_read(s->cq, &entry, 1) == -FI_EAGAIN ? 0 : -FI_EOTHER;
}

static void expose(void)
{
	must(fi_mr_reg(domain, &word, sizeof(word), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr,
		       NULL),
	     "fi_mr_reg");
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		addr = (uintptr_t)&word;
	key = fi_mr_key(mr);
}

static ssize_t inject_write(void)
{
	return fi_inject_write(a.ep, &operand, sizeof(operand), a.peer, addr, key);
}

static ssize_t post_read(void)
{
	return fi_read(a.ep, &result, sizeof(result), NULL, a.peer, addr, key, &context[0]);
}

static ssize_t fetch_add(void)
{
	return fi_fetch_atomic(a.ep, &operand, 1, NULL, &result, NULL, a.peer, addr, key, FI_UINT64,
			       FI_SUM, &context[0]);
}

/* Reads `word` and checks its value: a read completes after all earlier operations. */
static void quiesce(uint64_t expected)
{
	must(post_read(), "fi_read");
	wait_for(&a, FI_READ);
	if (result != expected)
		must(-FI_EOTHER, "the word is another");
}

/* Counts posting alone: the target makes progress only afterwards. */
static void count_onesided(void)
{
	expose();
	for (int i = 0; i < WARM_UP; i++) {
		must(inject_write(), "fi_inject_write");
		must(fetch_add(), "fi_fetch_atomic");
		wait_for(&a, FI_READ);
		quiesce(2);
	}
	COUNT("inject_write", inject_write());
	COUNT("cq_read+serve", read_nothing(&b));
	quiesce(1);
	COUNT("fetch_atomic", fetch_add());
	wait_for(&a, FI_READ);
	quiesce(2);
	COUNT("read", post_read());
	wait_for(&a, FI_READ);
}

static int child(void *arg)
{
	bool safe = *(bool *)arg;

	find_fabric(safe);
	open_side(&a);
	open_side(&b);
	open_side(&unknown);
	insert(&unknown, &b);
	insert(&a, &b);
	insert(&b, &a);
	warm_up();
	count_tagged();
	count_msg();
	count_eight();
	count_onesided();
	count_unknown();
	must((int)read_nothing(&a),
	     "fi_cq_read"); /* the first read after many progress calls reads the time */
	COUNT("cq_read-empty", read_nothing(&a));
	return 0;
}

int main(int argc, char **argv)
{
	bool safe = argc > 1 && !strcmp(argv[1], "safe");

	return steps_of(child, &safe);
}
