/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPI's flood of messages that nobody waits for: hundreds of tagged sends of 250 kB, then a short one, which is
 * received first. All have to come.
 */
#include "order.h"

#define FLOOD 400
#define LEN   250000

static void open_rank(struct side *s)
{
	struct fi_info *hints = side_hints(s, FI_TAGGED | FI_DIRECTED_RECV);

	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	side_domain(s, hints);
	side_endpoint(s, FI_CQ_FORMAT_TAGGED);
	s->peer = side_introduce(s, s->ep, s->av);
}

static void first(struct side *s)
{
	static struct fi_context2 contexts[FLOOD + 1];
	static char bytes[LEN];
	int ends = 0;

	open_rank(s);
	memset(bytes, 'f', sizeof(bytes));
	for (uint64_t i = 0; i <= FLOOD; i++) {
		ssize_t ret;

		while ((ret = fi_tsend(s->ep, bytes, i < FLOOD ? LEN : 8, NULL, s->peer, i,
				       &contexts[i])) == -FI_EAGAIN)
			ends += side_read(s);
		OK(ret);
	}
	while (ends <= FLOOD)
		ends += side_read(s);
	side_close(s);
}

static void receive(struct side *s, uint64_t tag, size_t len)
{
	static char bytes[LEN];
	struct fi_context2 context;
	unsigned int before = s->received;

	memset(bytes, 0, len);
	OK(fi_trecv(s->ep, bytes, sizeof(bytes), NULL, s->peer, tag, 0, &context));
	while (s->received == before)
		side_read(s);
	CHECK(s->entry.len == len && bytes[0] == 'f' && bytes[len - 1] == 'f');
}

static void second(struct side *s)
{
	open_rank(s);
	receive(s, FLOOD, 8);
	for (uint64_t i = 0; i < FLOOD; i++)
		receive(s, i, LEN);
	side_close(s);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], first, second);
}
