/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An agent with an event loop of its own: it sends one notice by fi_senddata, reading one entry for each -FI_EAGAIN,
 * and touches the library no more. The notice has to arrive. Then both agents greet each other; each reads its queue
 * only until the other's greeting has come, and waits elsewhere. Both greetings have to arrive.
 */
#include "order.h"

#define NOTICE 200
#define ROUNDS 5

static void open_agent(struct side *s, char *buf, struct fi_context2 *context)
{
	struct fi_info *hints = side_hints(s, FI_MSG | FI_RMA);

	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED;
	side_domain(s, hints);
	CHECK(!(s->info->domain_attr->mr_mode &
		FI_MR_LOCAL)); /* or it would have to register its buffers */
	side_endpoint(s, FI_CQ_FORMAT_DATA);
	OK(fi_recv(s->ep, buf, NOTICE, NULL, FI_ADDR_UNSPEC, context));
	s->peer = side_introduce(s, s->ep, s->av);
}

static void notify(struct side *s, struct fi_context2 *context)
{
	static char notice[NOTICE];

	memset(notice, 'n', sizeof(notice));
	POST(s, fi_senddata(s->ep, notice, sizeof(notice), NULL, 7, s->peer, context));
}

static void await(struct side *s, const char *buf)
{
	while (!s->received)
		side_read(s);
	CHECK(buf[0] == 'n' && buf[NOTICE - 1] == 'n');
}

/* Both: only `sends` sends, only `hears` reads. */
static void talk(struct side *s, bool sends, bool hears)
{
	struct fi_context2 contexts[2];
	char buf[NOTICE] = {0};

	s->received = 0;
	open_agent(s, buf, &contexts[0]);
	if (sends)
		notify(s, &contexts[1]);
	if (hears)
		await(s, buf);
	meet(s); /* the event loop elsewhere */
	side_close(s);
}

static void first(struct side *s)
{
	for (int i = 0; i < ROUNDS; i++) {
		talk(s, true, false);
		talk(s, true, true);
	}
}

static void second(struct side *s)
{
	for (int i = 0; i < ROUNDS; i++) {
		talk(s, false, true);
		talk(s, true, true);
	}
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], first, second);
}
