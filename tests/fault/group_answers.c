/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HW=weft A raw client in shared memory sends a message to a group that nobody knows, and is gone before the endpoint
 * reads it: the packet of another peer is in front. The answer must not make the endpoint connect to the address that the
 * client has chosen for its name.
 */
#include "attempt.h"
#include "echo.h"
#include "raw_link.h"

#define RX_GROUP 0xffff

int main(void)
{
	const struct frame message = {.head = HEAD(WIRE_MSG, TAGGED | DATA, RX_GROUP, 0),
				      .data = 4711};
	struct raw_link gone, slow;
	struct raw_claim claim;
	struct pollfd victim = {.events = POLLIN};
	struct name name;
	fi_addr_t to;
	pid_t pid;
	int fds;

	alarm(LIMIT);
	pid = start_server(&n, &to);
	victim.fd = listen_here(&name);
	raw_link_enter(&slow, &server_name, 1);
	fds = count_fds(pid);
	raw_link_enter_by(&gone, &server_name, true, hello_named(&name, 2, 1));
	if (!raw_ring_claim(&slow.ring, slow.sock, slow.id, 1, &claim))
		fail("a ring without room");
	raw_link_put(&gone, message, "");
	raw_link_close(&gone, false);
	same_fds(pid, fds, "after the end of a raw client");
	raw_ring_publish(&slow.ring, &claim, RING_CANCELLED);
	for (unsigned int i = 0; i < 10; i++)
		ping(&n, to, i);
	if (poll(&victim, 1, 0))
		fail("the endpoint connects to an address of a raw client's choice");
	raw_link_close(&slow, false);
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
