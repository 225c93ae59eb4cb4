/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plugin of a collectives library: it registers each buffer for local use alone, always with the requested key 0,
 * sends and receives with their descriptors, and closes them in no order.
 */
#include "order.h"

#define BUFFERS 32
#define LEN     100000

static void open_plugin(struct side *s)
{
	struct fi_info *hints = side_hints(s, FI_TAGGED | FI_MSG);

	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_ENDPOINT;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	side_domain(s, hints);
	CHECK(!(s->info->domain_attr->mr_mode & FI_MR_PROV_KEY));
	side_endpoint(s, FI_CQ_FORMAT_TAGGED);
	s->peer = side_introduce(s, s->ep, s->av);
}

static struct fid_mr *mr_of(const struct side *s, const void *buf)
{
	struct fid_mr *mr;

	OK(fi_mr_reg(s->domain, buf, LEN, FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, 0, 0, &mr,
		     NULL));
	return mr;
}

static void play(struct side *s, bool sends)
{
	static char bytes[BUFFERS][LEN];
	struct fi_context2 contexts[BUFFERS];
	struct fid_mr *mr[BUFFERS];

	open_plugin(s);
	for (int i = 0; i < BUFFERS; i++) {
		memset(bytes[i], sends ? i + 1 : 0, LEN);
		mr[i] = mr_of(s, bytes[i]);
	}
	for (uint64_t i = 0; i < BUFFERS; i++) {
		if (sends)
			POST(s, fi_tsend(s->ep, bytes[i], LEN, fi_mr_desc(mr[i]), s->peer, i,
					 &contexts[i]));
		else
			OK(fi_trecv(s->ep, bytes[i], LEN, fi_mr_desc(mr[i]), s->peer, i, 0,
				    &contexts[i]));
	}
	while (!sends && s->received < BUFFERS)
		side_read(s);
	for (int i = 0; !sends && i < BUFFERS; i++)
		CHECK(bytes[i][0] == i + 1 && bytes[i][LEN - 1] == i + 1);
	for (char sign = 0; sends && recv(s->wire, &sign, 1, MSG_DONTWAIT) != 1;)
		side_read(s);
	if (!sends)
		tell(s, "", 1);
	for (int i = 0; i < BUFFERS; i++)
		OK(fi_close(&mr[i * 7 % BUFFERS]->fid));
	side_close(s);
}

static void first(struct side *s)
{
	play(s, true);
}

static void second(struct side *s)
{
	play(s, false);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], first, second);
}
