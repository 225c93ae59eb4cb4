/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A publisher: each turn of its event loop sends one small message and reads one entry, and there always is one. A
 * message for its posted receive has to be heard within a bounded number of calls after it was sent.
 */
#include "order.h"

#define HEARD 100   /* messages, after which the subscriber asks for an end */
#define CALLS 20000 /* of the publisher, until it hears that */

static void open_side(struct side *s, char *buf, struct fi_context2 *context)
{
	side_domain(s, side_hints(s, FI_MSG));
	side_endpoint(s, FI_CQ_FORMAT_DATA);
	OK(fi_recv(s->ep, buf, 1, NULL, FI_ADDR_UNSPEC, context));
	s->peer = side_introduce(s, s->ep, s->av);
}

static void first(struct side *s)
{
	struct fi_context2 contexts[2];
	char in, sign, news = 'n';
	int calls = 0;
	bool sent = false;

	open_side(s, &in, &contexts[0]);
	while (!s->received) {
		ssize_t ret = fi_send(s->ep, &news, 1, NULL, s->peer, &contexts[1]);

		CHECK(ret == 0 || ret == -FI_EAGAIN);
		side_read(s);
		sent = sent || recv(s->wire, &sign, 1, MSG_DONTWAIT) == 1;
		calls += sent;
		CHECK(calls <= CALLS);
	}
	tell(s, "", 1);
	if (!sent)
		hear(s, &sign, 1);
	side_close(s);
}

static void tell_once(struct side *s, bool *known)
{
	if (!*known)
		tell(s, "", 1);
	*known = true;
}

static void second(struct side *s)
{
	struct fi_context2 context[2];
	char in, sign, end = 'e';
	bool asked = false, known = false;

	open_side(s, &in, &context[0]);
	while (recv(s->wire, &sign, 1, MSG_DONTWAIT) != 1) {
		if (!side_read(s))
			continue;
		if (s->entry.flags & FI_RECV)
			OK(fi_recv(s->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &context[0]));
		else
			tell_once(s, &known);
		if (s->received >= HEARD && !asked)
			asked = !fi_send(s->ep, &end, 1, NULL, s->peer, &context[1]);
	}
	tell_once(s, &known);
	side_close(s);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], first, second);
}
