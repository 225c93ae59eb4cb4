/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_WEFT_CLOSED: who is in the address vector may connect, all others end with FI_EACCES. No key is needed. */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"

static void send_to(struct side *s, int rank, int want)
{
	if (want) {
		REFUSED(s, want, fi_tsend(s->ep, "word", 5, NULL, s->addr[rank], 1, s));
		return;
	}
	POST(s, fi_tsend(s->ep, "word", 5, NULL, s->addr[rank], 1, s));
	SENT(s, s, FI_TAGGED);
}

/* Rank 1 does not know rank 0, then does. */
static void known_later(struct api *a)
{
	static char in[8];
	struct side s;

	if (pair_wanted())
		api_skip("connected endpoints have no address vector");
	side_open(&s, a,
		  &(struct side_opts){.tx_flags = FI_DELIVERY_COMPLETE,
				      .knows_nobody = a->rank == 1});
	s.yields = true;
	POST(&s, fi_trecv(s.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, &s));
	for (int i = 0; !a->rank && i < 3; i++)
		send_to(&s, 1, FI_EACCES);
	api_meet(a);
	QUIET(&s, s.rx, 10);
	if (a->rank)
		CHECK_EQ(fi_av_insert(s.av, s.names[0], 1, &s.addr[0], 0, NULL), 1);
	api_meet(a);
	if (a->rank)
		GOT(&s, &s, FI_TAGGED, 5);
	else
		send_to(&s, 1, 0);
	api_meet(a);
	side_close(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"known-later", known_later, 2, {"FI_WEFT_CLOSED=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
