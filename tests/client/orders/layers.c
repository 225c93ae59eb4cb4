/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two layers of one MPI: messages open a domain with FI_THREAD_DOMAIN; the one-sided layer asks for an endpoint in that
 * very domain. What it is told of threads must be true of the domain. Where threads run in parallel and the answer does
 * not permit that, it opens a domain of its own, and both work at once.
 */
#include <pthread.h>

#include "order.h"

#define ROUNDS 300

/* What fi_getinfo says of the open domain to one who asks for this level; FI_THREAD_UNSPEC: nothing. */
static enum fi_threading level_of(const struct side *s, enum fi_threading asked)
{
	struct fi_info *hints = side_hints(s, FI_RMA | FI_ATOMIC), *found;
	enum fi_threading level = FI_THREAD_UNSPEC;
	int ret;

	hints->domain_attr->threading = asked;
	hints->domain_attr->mr_mode =
		FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT;
	hints->domain_attr->domain = s->domain;
	ret = fi_getinfo(VERSION, NULL, NULL, 0, hints, &found);
	CHECK(ret == 0 || ret == -FI_ENODATA);
	if (!ret) {
		level = found->domain_attr->threading;
		fi_freeinfo(found);
	}
	hints->domain_attr->domain = NULL;
	fi_freeinfo(hints);
	return level;
}

static void open_messages(struct side *s)
{
	struct fi_info *hints = side_hints(s, FI_TAGGED);

	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	side_domain(s, hints);
	side_endpoint(s, FI_CQ_FORMAT_TAGGED);
	CHECK(level_of(s, FI_THREAD_DOMAIN) == FI_THREAD_DOMAIN);
	CHECK(level_of(s, FI_THREAD_SAFE) != FI_THREAD_SAFE);
	s->peer = side_introduce(s, s->ep, s->av);
}

static void open_rma(struct side *s)
{
	struct fi_info *hints = side_hints(s, FI_RMA | FI_ATOMIC);

	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode =
		FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	side_domain(s, hints);
	side_endpoint(s, FI_CQ_FORMAT_DATA);
	s->peer = side_introduce(s, s->ep, s->av);
}

struct rma {
	struct side side;
	struct region region;
	uint64_t heap[ROUNDS];
	int stop; /* atomic */
};

static void *write_all(void *arg)
{
	struct fi_context2 context;
	struct rma *r = arg;
	uint64_t word;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		word = i + 1;
		POST(&r->side,
		     fi_write(r->side.ep, &word, sizeof(word), NULL, r->side.peer,
			      r->region.base + i * sizeof(word), r->region.key, &context));
		while (!side_read(&r->side))
			;
	}
	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		CHECK(!side_read(&r->side));
	return NULL;
}

static void exchange(struct side *s)
{
	struct fi_context2 contexts[2];
	uint64_t in, out;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		out = i;
		s->received = 0;
		POST(s, fi_trecv(s->ep, &in, sizeof(in), NULL, s->peer, i, 0, &contexts[0]));
		POST(s, fi_tsend(s->ep, &out, sizeof(out), NULL, s->peer, i, &contexts[1]));
		for (int ends = 0; ends < 2;)
			ends += side_read(s);
		CHECK(in == i);
	}
}

static void both(struct side *s)
{
	struct rma *r = calloc(1, sizeof(*r));
	pthread_t thread;

	CHECK(r);
	r->side.provider = s->provider;
	r->side.wire = s->wire;
	open_messages(s);
	open_rma(&r->side);
	r->region = region_open(&r->side, r->heap, sizeof(r->heap));
	OK(pthread_create(&thread, NULL, write_all, r));
	exchange(s);
	while (__atomic_load_n(&r->heap[ROUNDS - 1], __ATOMIC_ACQUIRE) != ROUNDS)
		side_read(s);
	meet(s);
	__atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
	OK(pthread_join(thread, NULL));
	meet(s);
	for (uint64_t i = 0; i < ROUNDS; i++)
		CHECK(r->heap[i] == i + 1);
	side_close(&r->side);
	side_close(s);
	free(r);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], both, both);
}
