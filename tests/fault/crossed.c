/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attempts to connect cross, and the peer answers that its own wins; but that one has ended. The peer may have died: the
 * next call says so, in time. Or it lives, and gave up its attempt for another reason: the endpoint connects again.
 */
#include "attempt.h"

#define CALLS 20 /* a ms apart: by then the endpoint has looked at all that its sockets hold */

static void calls(void)
{
	for (int i = 0; i < CALLS; i++) {
		progress();
		usleep(1000);
	}
}

/* Returns the listener in whose name the attempt was that won. */
static int cross(struct name *name)
{
	struct name mine = node_name(&n);
	int listener = listen_here(name), ours, theirs;
	struct hello won = hello_named(name, 0, 1), h;

	send_to(name);
	ours = take_call(listener, &h);
	theirs = connect_from(&mine, 0);
	say_tcp(theirs, &won);
	calls();
	close(theirs);
	calls();
	won.kind = HELLO_CROSSED;
	won.serial = 2;
	say_tcp(ours, &won);
	close(ours);
	return listener;
}

static void dead(void)
{
	struct name name;
	uint64_t end = now_ms() + REACH_MS;

	close(cross(&name));
	while (waiting != FI_ADDR_NOTAVAIL) {
		progress();
		if (now_ms() > end)
			fail("a dead peer is waited for whose attempt has won");
	}
	if (refused_with != FI_ECONNREFUSED)
		fail("the call says %s", fi_strerror(refused_with));
	posted--;
}

static void alive(void)
{
	struct name name;
	int listener = cross(&name), again;
	struct hello h;

	again = take_call(listener, &h);
	h = hello_named(&name, 0, 3);
	h.kind = HELLO_ACCEPT;
	say_tcp(again, &h);
	hear_message(again, "an attempt after one that crossed");
	slam(again);
	close(listener);
}

int main(void)
{
	alarm(LIMIT);
	need_network();
	node_open(&n, NULL);
	dead();
	alive();
	node_close(&n);
	return EXIT_SUCCESS;
}
