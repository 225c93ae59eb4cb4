/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two layers of one MPI: messages open a domain with FI_THREAD_DOMAIN; the one-sided layer asks for an endpoint in that
 * very domain with FI_THREAD_SAFE. If it gets one, both layers use the domain at once, from threads of their own; else
 * it opens a domain of its own.
 */
#include <pthread.h>

#include "order.h"

#define ROUNDS 3000

static void open_messages(struct side *s)
{
	struct fi_info *hints = side_hints(s, FI_TAGGED);

	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	side_domain(s, hints);
	side_endpoint(s, FI_CQ_FORMAT_TAGGED);
	s->peer = side_introduce(s, s->ep, s->av);
}

static struct fi_info *rma_hints(const struct side *s)
{
	struct fi_info *hints = side_hints(s, FI_RMA | FI_ATOMIC);

	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode =
		FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	return hints;
}

/* Returns whether the domain of messages is what one-sided operations use. */
static bool open_rma(struct side *s, const struct side *messages)
{
	struct fi_info *hints = rma_hints(s);
	int ret;

	hints->domain_attr->domain = messages->domain;
	ret = fi_getinfo(VERSION, NULL, NULL, 0, hints, &s->info);
	hints->domain_attr->domain = NULL;
	CHECK(ret == 0 || ret == -FI_ENODATA);
	if (ret) {
		side_domain(s, hints);
	} else {
		CHECK(s->info->domain_attr->threading == FI_THREAD_SAFE);
		s->domain = messages->domain;
		fi_freeinfo(hints);
	}
	side_endpoint(s, FI_CQ_FORMAT_DATA);
	s->peer = side_introduce(s, s->ep, s->av);
	return !ret;
}

static void close_rma(struct side *s, bool shares)
{
	OK(fi_close(&s->ep->fid));
	OK(fi_close(&s->cq->fid));
	OK(fi_close(&s->av->fid));
	OK(fi_close(&s->mr->fid));
	if (!shares) {
		OK(fi_close(&s->domain->fid));
		OK(fi_close(&s->fabric->fid));
	}
	fi_freeinfo(s->info);
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
		unsigned int before = s->received + s->ended;

		out = i;
		POST(s, fi_trecv(s->ep, &in, sizeof(in), NULL, s->peer, i, 0, &contexts[0]));
		POST(s, fi_tsend(s->ep, &out, sizeof(out), NULL, s->peer, i, &contexts[1]));
		while (s->received + s->ended < before + 2) /* a repeated post may have read one */
			side_read(s);
		CHECK(in == i);
	}
}

static void both(struct side *s)
{
	struct rma *r = calloc(1, sizeof(*r));
	pthread_t thread;
	bool shares;

	CHECK(r);
	r->side.provider = s->provider;
	r->side.wire = s->wire;
	open_messages(s);
	shares = open_rma(&r->side, s);
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
	close_rma(&r->side, shares);
	side_close(s);
	free(r);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], both, both);
}
