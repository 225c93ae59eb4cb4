/* SPDX-License-Identifier: BSD-2-Clause */
/* struct side with a datagram endpoint. Needs api.h, data.h, side.h, forms.h. */
#ifndef API_DGRAM_SIDE_H
#define API_DGRAM_SIDE_H

#include "dgram.h"

static inline struct side_opts dgram_opts(uint64_t caps, bool in6)
{
	if (in6)
		dgram_need_in6();
	return (struct side_opts){.caps = caps, .tune = in6 ? dgram_in6 : dgram_in};
}

static inline struct form_args dgram_args(struct side *s, enum form form, const struct data *d,
					  void *context)
{
	return (struct form_args){.form = form,
				  .d = d,
				  .flags = FI_COMPLETION,
				  .peer = s->a->rank ? s->addr[0] : FI_ADDR_UNSPEC,
				  .context = context};
}

/* Sends one message from rank 1 to rank 0. Rank 0 posts its receive before, or if `late` after. */
static inline void dgram_pass(struct side *s, size_t len, unsigned int seed, bool late)
{
	struct data d = s->a->rank ? data_full(len, 1, seed) : data_new(len, 1);
	struct form_args f = dgram_args(s, FORM_PLAIN, &d, &d);

	if (s->a->rank) {
		if (!late)
			api_meet_still(s->a);
		FORM_SEND(s, &f);
		if (late)
			api_meet_still(s->a);
	} else {
		if (late)
			api_meet_still(s->a);
		POST(s, form_recv(s, &f));
		if (!late)
			api_meet_still(s->a);
		GOT(s, &d, FI_MSG, len);
		DATA_EXPECT(&d, len, seed);
	}
	api_meet(s->a);
	data_free(&d);
}

#endif
