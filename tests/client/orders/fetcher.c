/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A GPU's OpenSHMEM: memory of devices is asked for first, then done without; capabilities are narrowed to FI_RMA |
 * FI_ATOMIC after fi_getinfo; atomics that fetch are injected; counters tell what is done.
 */
#include <rdma/fi_atomic.h>

#include "order.h"

#define ADDS 100

struct heap {
	uint64_t count, word;
};

static void open_pe(struct side *s, struct heap *heap, struct region *r, struct fid_cntr **done)
{
	struct fi_info *hints = side_hints(s, FI_RMA | FI_ATOMIC | FI_HMEM), *found;
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};

	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode =
		FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_HMEM;
	if (fi_getinfo(VERSION, NULL, NULL, 0, hints, &found))
		hints->caps = FI_RMA | FI_ATOMIC;
	else
		fi_freeinfo(found);
	OK(fi_getinfo(VERSION, NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	s->info->caps = FI_RMA | FI_ATOMIC;
	OK(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	OK(fi_domain(s->fabric, s->info, &s->domain, NULL));
	s->av = side_av(s);
	s->cq = side_cq(s, FI_CQ_FORMAT_DATA);
	OK(fi_endpoint(s->domain, s->info, &s->ep, NULL));
	OK(fi_cntr_open(s->domain, &attr, done, NULL));
	OK(fi_ep_bind(s->ep, &s->av->fid, 0));
	OK(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(s->ep, &(*done)->fid, FI_READ | FI_WRITE));
	OK(fi_enable(s->ep));
	s->peer = side_introduce(s, s->ep, s->av);
	*r = region_open(s, heap, sizeof(*heap));
}

/* Waits as the runtime does: by looks at the counter. */
static void quiet(struct fid_cntr *done, uint64_t count)
{
	while (fi_cntr_read(done) < count)
		CHECK(fi_cntr_readerr(done) == 0);
}

static void fetch_add(struct side *s, const struct region *r, uint64_t add, uint64_t *old,
		      struct fi_context2 *context)
{
	struct fi_ioc operand = {&add, 1}, result = {old, 1};
	struct fi_rma_ioc target = {r->base + offsetof(struct heap, count), 1, r->key};
	struct fi_msg_atomic msg = {.msg_iov = &operand,
				    .iov_count = 1,
				    .addr = s->peer,
				    .rma_iov = &target,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = context};

	POST(s, fi_fetch_atomicmsg(s->ep, &msg, &result, NULL, 1, FI_INJECT));
}

static void first(struct side *s)
{
	struct fi_context2 context;
	struct fid_cntr *done;
	struct heap heap = {0};
	struct region r;
	uint64_t old, word = 42, back = 0;

	open_pe(s, &heap, &r, &done);
	for (uint64_t i = 0; i < ADDS; i++) {
		fetch_add(s, &r, 3, &old, &context);
		quiet(done, i + 1);
		CHECK(old == 3 * i);
	}
	POST(s, fi_write(s->ep, &word, sizeof(word), NULL, s->peer,
			 r.base + offsetof(struct heap, word), r.key, &context));
	quiet(done, ADDS + 1);
	POST(s, fi_read(s->ep, &back, sizeof(back), NULL, s->peer,
			r.base + offsetof(struct heap, word), r.key, &context));
	quiet(done, ADDS + 2);
	CHECK(back == word);
	meet(s);
}

static void second(struct side *s)
{
	struct fid_cntr *done;
	struct heap heap = {0};
	struct region r;
	char sign = 0;

	open_pe(s, &heap, &r, &done);
	while (recv(s->wire, &sign, 1, MSG_DONTWAIT) != 1)
		CHECK(!side_read(s));
	CHECK(heap.count == 3 * ADDS && heap.word == 42);
	tell(s, &sign, 1);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], first, second);
}
