/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that an endpoint connected to itself over TCP recovers when the connection breaks, again
 * and again, and leaks neither descriptors nor memory.
 */
#include <malloc.h>

#include "hello.h"

#define ROUNDS  600
#define WARM    100 /* round after which neither descriptors nor the heap grow */
#define WAIT_MS 3000
#define KEEP_KB 64 /* the heap may grow by this much */

static struct node n;
static fi_addr_t self;
static bool sent, came;

/*
 * Breaks all TCP connections as the network could: the kernel drops them and resets the other side.
 */
static void break_all(void)
{
	const struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	for (int fd = 3, top = count_fds(getpid()) + 50; fd < top; fd++) {
		struct sockaddr_in in;
		socklen_t len = sizeof(in);

		if (!getpeername(fd, (struct sockaddr *)&in, &len) && in.sin_family == AF_INET)
			connect(fd, &nobody, sizeof(nobody));
	}
}

static void poll_once(unsigned int round)
{
	struct event e;

	if (!node_poll(&n, &e))
		return;
	if (e.err)
		fail("round %u: an operation ended with %s", round, fi_strerror(e.err));
	*(bool *)e.context = true;
}

static void talk_to_oneself(unsigned int round)
{
	uint64_t end = now_ms() + WAIT_MS, word = 0;

	sent = came = false;
	must(fi_trecv(n.ep, &word, sizeof(word), NULL, self, 0, ~UINT64_C(0), &came), "fi_trecv");
	while (fi_tsend(n.ep, &round, sizeof(round), NULL, self, round, &sent) == -FI_EAGAIN &&
	       now_ms() < end)
		poll_once(round);
	while ((!sent || !came) && now_ms() < end)
		poll_once(round);
	if (!sent || !came || word != round)
		fail("round %u: sent %d, came %d: %u", round, sent, came, (unsigned int)word);
}

int main(void)
{
	struct name name;
	size_t heap = 0;
	int fds = 0;

	alarm(LIMIT);
	need_network();
	node_open(&n, NULL);
	name = node_name(&n);
	self = node_insert(&n, &name);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		talk_to_oneself(round);
		break_all();
		for (uint64_t end = now_ms() + 2; now_ms() < end;)
			poll_once(round);
		if (round != WARM)
			continue;
		fds = count_fds(getpid());
		heap = mallinfo2().uordblks;
	}
	if (count_fds(getpid()) > fds)
		fail("%d descriptors have become %d", fds, count_fds(getpid()));
	if (mallinfo2().uordblks > heap + KEEP_KB * 1024)
		fail("%zu bytes of heap have become %zu", heap, mallinfo2().uordblks);
	node_close(&n);
	return EXIT_SUCCESS;
}
