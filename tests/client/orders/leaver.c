/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parallel language's runtime that ends: a barrier by messages, last writes that are waited for only after all of
 * them were posted, and injected messages. The other process leaves as soon as it sees the last in its memory, or as
 * soon as it is told that all were posted: it cancels its multi-receive buffer and closes everything. No write may fail
 * for that.
 */
#include "order.h"

#define LAST   4096
#define WRITES 8
#define ROUNDS 10

struct heap {
	char last[WRITES][LAST];
	uint64_t flag; /* atomic */
};

static void open_node(struct side *s, struct heap *heap, struct region *r, char *buffer,
		      struct fi_context2 *context)
{
	struct fi_info *hints = side_hints(s, FI_RMA | FI_MSG | FI_MULTI_RECV);
	struct iovec iov = {buffer, 8 * LAST};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = context};

	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode =
		FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_RMA_WAW | FI_ORDER_WAW;
	side_domain(s, hints);
	s->received = 0;
	s->ended = 0;
	CHECK(s->info->ep_attr->max_order_waw_size >= sizeof(*heap));
	side_endpoint(s, FI_CQ_FORMAT_DATA);
	POST(s, fi_recvmsg(s->ep, &msg, FI_MULTI_RECV));
	s->peer = side_introduce(s, s->ep, s->av);
	*r = region_open(s, heap, sizeof(*heap));
}

/* A message each way. */
static void barrier(struct side *s)
{
	POST(s, fi_inject(s->ep, "b", 1, s->peer));
	while (!s->received)
		side_read(s);
}

static void write_last(struct side *s, const struct region *r, struct fi_context2 *contexts)
{
	static char text[LAST];
	static uint64_t flag = 1;

	memset(text, 'w', sizeof(text));
	for (size_t i = 0; i < WRITES; i++)
		POST(s, fi_write(s->ep, text, LAST, NULL, s->peer, r->base + i * LAST, r->key,
				 &contexts[i]));
	for (int i = 0; i < 3; i++)
		POST(s, fi_inject(s->ep, "x", 1, s->peer));
	POST(s, fi_write(s->ep, &flag, sizeof(flag), NULL, s->peer,
			 r->base + offsetof(struct heap, flag), r->key, &contexts[WRITES]));
	side_read(s);
	tell(s, "", 1);
	while (s->ended <= WRITES)
		side_read(s);
}

static void first(struct side *s)
{
	struct fi_context2 contexts[WRITES + 2];
	struct heap *heap = calloc(1, sizeof(*heap));
	char *buffer = malloc(8 * LAST);
	struct region r;

	for (int i = 0; i < ROUNDS; i++) {
		open_node(s, heap, &r, buffer, &contexts[WRITES + 1]);
		barrier(s);
		write_last(s, &r, contexts);
		side_close(s);
	}
	free(heap);
	free(buffer);
}

static void leave(struct side *s, const struct heap *heap, bool posted, struct fi_context2 *context)
{
	char sign;

	while (!posted && !__atomic_load_n(&heap->flag, __ATOMIC_ACQUIRE))
		side_read(s);
	hear(s, &sign, 1);
	fi_cancel(&s->ep->fid, context);
}

static void second(struct side *s)
{
	struct fi_context2 context;
	struct heap *heap = calloc(1, sizeof(*heap));
	char *buffer = malloc(8 * LAST);
	struct region r;

	for (int i = 0; i < ROUNDS; i++) {
		memset(heap, 0, sizeof(*heap));
		open_node(s, heap, &r, buffer, &context);
		barrier(s);
		leave(s, heap, i % 2, &context);
		side_close(s);
		for (int w = 0; w < WRITES; w++)
			CHECK(heap->last[w][0] == 'w' && heap->last[w][LAST - 1] == 'w');
	}
	free(heap);
	free(buffer);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], first, second);
}
