/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys cannot be found by trying: after 64 wrong ones from one network address within a second the
 * connections that used some end, and new ones are refused, whatever name they give. A connection
 * from there that used none goes on until it does. Other addresses are served.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#include "raw_rma.h"

#define TRIES 64

static unsigned int number;

static void server(void *arg)
{
	struct event e;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	raw_rma_ready(&n);
	for (;;)
		if (node_poll(&n, &e))
			fail("an operation ended");
}

static int enter(unsigned int last)
{
	return raw_rma_join(last, ++number);
}

/* Writes nothing with a wrong key. False: the connection has ended. */
static bool try_key(int sock)
{
	struct frame frame = {.head = HEAD(PUT, DATA, 1), .data = 12345 + number};

	if (send(sock, &frame, sizeof(frame), MSG_NOSIGNAL) != sizeof(frame) ||
	    recv(sock, &frame, sizeof(frame), MSG_WAITALL) != sizeof(frame))
		return false;
	if ((frame.head & 0xff) != FAILED)
		fail("a wrong key is answered by a packet of type %u",
		     (unsigned int)(frame.head & 0xff));
	return true;
}

int main(void)
{
	unsigned int tries = 0;
	char byte;
	int sock, other;
	pid_t pid = raw_rma_begin(server);

	other = enter(1);
	/* A connection for each try. */
	while (tries < 2 * TRIES && (sock = enter(1)) >= 0) {
		try_key(sock);
		close(sock);
		tries++;
	}
	if (tries != TRIES)
		fail("%u keys could be tried, not %u", tries, TRIES);
	if (recv(other, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		fail("a connection that tried no key has ended");
	try_key(other);
	if (try_key(other) && try_key(other))
		fail("a connection tries keys on while its address is refused");
	sock = enter(2);
	if (sock < 0 || !try_key(sock))
		fail("another address is refused, too");
	slay(pid);
	return EXIT_SUCCESS;
}
