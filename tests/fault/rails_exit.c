/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that sends over two slow wires ends without closing its endpoint as soon as all is reported: all of it arrives, and
 * so it is if all is encrypted.
 */
#define LIMIT 55

#include "rails_lengths.h"

#define COUNT 40u

static void send_all(struct node *n, fi_addr_t peer, size_t len)
{
	unsigned int sent = 0, done = 0;
	struct event e;

	begin(n, peer, 8);
	for (uint64_t end = now_ms() + AWAIT_MS; done < COUNT;) {
		if (sent < COUNT && !fi_send(n->ep, bytes, len, NULL, peer, NULL))
			sent++;
		if (!node_poll(n, &e))
			continue;
		if (e.err || now_ms() > end)
			fail("message %u: %s", done, fi_strerror(e.err));
		done++;
	}
	_exit(EXIT_SUCCESS);
}

static void exchange(void *arg)
{
	struct node n;
	fi_addr_t peer;

	(void)arg;
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which == 0)
		send_all(&n, peer, len_now);
	for (unsigned int i = 0; i <= COUNT; i++)
		must(fi_recv(n.ep, bytes, LEN_MAX, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (unsigned int i = 0; i <= COUNT; i++)
		await(&n, "a message");
	tell(lab.end, "", 1);
	node_close(&n);
}

/* The first host outlives the process that sends. */
static void live(void *arg)
{
	enter(arg);
	if (lab.which) {
		exchange(NULL);
		return;
	}
	finish(start("sender", exchange, NULL), "sender");
	hear(lab.end, &(char){0}, 1);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_network();
	each_length(live);
	return EXIT_SUCCESS;
}
