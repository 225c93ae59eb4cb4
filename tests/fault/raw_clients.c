/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that an endpoint withstands 1000 raw clients of its Unix socket: silent ones, garbage,
 * wrong hellos. Real peers are served meanwhile, no descriptor leaks, and silent clients are
 * disconnected.
 */
#include <poll.h>

#include "echo.h"
#include "raw_client.h"

#define RAW_CLIENTS 1000
#define SILENT      200
#define DOOR_MS     12000 /* silent clients are disconnected by then */

/* Returns whether the endpoint closes the connection by `end` (ms). */
static bool shown_the_door(int sock, uint64_t end)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint64_t now = now_ms();

	return poll(&p, 1, now < end ? (int)(end - now) : 0) == 1;
}

static void storm(struct node *n, fi_addr_t to)
{
	int silent[SILENT];
	unsigned int quiet = 0;
	uint64_t end;

	for (unsigned int i = 0; i < RAW_CLIENTS; i++) {
		int sock = raw_connect(&server_name);

		if (i % (RAW_CLIENTS / SILENT) == 0) {
			silent[quiet++] = sock;
		} else {
			misbehave(sock, i % MANNERS, i);
			close(sock);
		}
		if (i % 50 == 0)
			ping(n, to, i);
	}
	end = now_ms() + DOOR_MS;
	for (unsigned int i = 0; i < SILENT; i++) {
		if (!shown_the_door(silent[i], end))
			fail("silent raw client %u of %d is still there", i, SILENT);
		close(silent[i]);
	}
}

/* Checks that a real peer can connect while SILENT silent clients are connected. */
static void come_in_late(void)
{
	int silent[SILENT];
	struct node late;
	uint64_t end;
	ssize_t ret;

	for (unsigned int i = 0; i < SILENT; i++)
		silent[i] = raw_connect(&server_name);
	node_open(&late, NULL);
	end = now_ms() + PING_MS;
	ret = fi_send(late.ep, "L", 1, NULL, node_insert(&late, &server_name), NULL);
	while (ret == -FI_EAGAIN && now_ms() < end)
		ret = fi_send(late.ep, "L", 1, NULL, 0, NULL);
	must(ret, "fi_send");
	if (node_wait(&late, PING_MS, "a real peer behind silent raw clients").err)
		fail("a real peer behind silent raw clients was refused");
	node_close(&late);
	for (unsigned int i = 0; i < SILENT; i++)
		close(silent[i]);
}

int main(void)
{
	fi_addr_t to;
	struct node n;
	pid_t pid;
	int fds;

	alarm(LIMIT);
	need_provider();
	if (!strcmp(provider(), "tcp")) {
		printf("endpoints of tcp have no socket inside the host\n");
		return 77;
	}
	pid = start_server(&n, &to);
	fds = count_fds(pid);
	storm(&n, to);
	ping(&n, to, 2);
	same_fds(pid, fds, "after the storm");
	come_in_late();
	ping(&n, to, 3);
	same_fds(pid, fds, "after the late one");
	if (!logged("hello of") || !logged("said nothing for"))
		fail("the server does not say what they did");
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
