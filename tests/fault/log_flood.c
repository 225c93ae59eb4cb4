/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that nobody fills the log of an endpoint: each line of the sources that tells of what others do writes one message in
 * FI_LOG_INTERVAL, here an hour, however often they do it. Many raw clients misbehave in every way, connect as another user,
 * send junk across the network, and junk as a connected peer.
 */
#include "echo.h"
#include "raw_client.h"

#define NOBODY 65534
#define ROUNDS 20

static void misbehave_often(void)
{
	for (unsigned int i = 0; i < ROUNDS * MANNERS; i++) {
		int sock = raw_connect(&server_name);

		misbehave(sock, i % MANNERS, i);
		close(sock);
	}
}

/* Waits for the end of each connection, so that the endpoint has seen it. */
static void connect_as_other(void *arg)
{
	(void)arg;
	if (setgid(NOBODY) || setuid(NOBODY))
		fail("cannot become user %d: %s", NOBODY, strerror(errno));
	for (unsigned int i = 0; i < ROUNDS * MANNERS; i++) {
		int sock = raw_connect(&server_name);
		char byte;

		if (recv(sock, &byte, 1, 0) > 0)
			fail("another user gets an answer");
		close(sock);
	}
}

static void junk_by_network(void)
{
	struct frame junk = {.head = 99, .len = 7};

	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct hello h = good_hello(i), answer;
		int sock = raw_connect_tcp(&server_name);

		h.magic += i % 2; /* one is refused, one let in */
		send(sock, &h, sizeof(h), MSG_NOSIGNAL);
		if (i % 2 == 0 && recv(sock, &answer, sizeof(answer), MSG_WAITALL) > 0)
			send(sock, &junk, sizeof(junk), MSG_NOSIGNAL);
		recv(sock, &answer, sizeof(answer), MSG_WAITALL);
		close(sock);
	}
}

/* Where a line of the log comes from: "FUNCTION():LINE<warn>". Empty: no warning. */
static void place_of(const char *line, char *place, size_t len)
{
	const char *end = strstr(line, "<warn>"), *at = end;

	while (at && at > line && at[-1] != ':')
		at--;
	for (at = at && at > line ? at - 1 : NULL; at && at > line && at[-1] != ':';)
		at--;
	snprintf(place, len, "%.*s", at ? (int)(end - at) : 0, at ? at : "");
}

/* No two warnings come from one place. Returns their number. */
static unsigned int check_log(void)
{
	static char places[256][96];
	char line[8192];
	unsigned int count = 0;
	FILE *log = fdopen(dup(log_fd), "r");

	rewind(log);
	while (fgets(line, sizeof(line), log)) {
		place_of(line, places[count], sizeof(places[0]));
		if (!*places[count])
			continue;
		for (unsigned int i = 0; i < count; i++)
			if (!strcmp(places[i], places[count]))
				fail("the second time, within an hour: %s", line);
		count += count < 255;
	}
	fclose(log);
	return count;
}

int main(void)
{
	bool network;
	fi_addr_t to;
	struct node n;
	pid_t pid;

	alarm(LIMIT);
	setenv("FI_LOG_INTERVAL", "3600000", 1);
	need_provider();
	network = strcmp(provider(), "shm");
	pid = start_server(&n, &to);
	if (strcmp(provider(), "tcp")) {
		misbehave_often();
		if (geteuid() == 0)
			finish(start("other", connect_as_other, NULL), "another user");
	}
	if (network)
		junk_by_network();
	ping(&n, to, 2);
	if (check_log() < 2)
		fail("the log does not tell of them");
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
