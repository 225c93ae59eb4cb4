/* SPDX-License-Identifier: BSD-2-Clause */
/* A message each way between two sides. Needs api.h. */
#ifndef API_EXCHANGE_H
#define API_EXCHANGE_H

#include "data.h"
#include "side.h"

/* Both send, both receive: a tagged message each. */
static inline void exchange(struct side *s, size_t len)
{
	int me = s->a->rank;
	struct data out = data_full(len, 1, (unsigned int)me), in = data_new(len, 1);

	POST(s, fi_trecv(s->ep, in.iov[0].iov_base, len, NULL, FI_ADDR_UNSPEC, 7, 0, &in));
	POST(s, fi_tsend(s->ep, out.iov[0].iov_base, len, NULL, s->addr[!me], 7, &out));
	GOT(s, &in, FI_TAGGED, len);
	SENT(s, &out, FI_TAGGED);
	DATA_EXPECT(&in, len, (unsigned int)!me);
	data_free(&out);
	data_free(&in);
}

#endif
