/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that raw clients who report in joins that nobody begins keep no member's join out. They
 * come in numbers, fill what is kept of them, leave and come again, under the same name or a new one;
 * a member's report that came among them is there when its join begins, so nothing asks for it.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_COLLECTIVE)
#include "joiner.h"

#define MAX_JOINS "65536" /* bytes of FI_WEFT_UNEXPECTED_MAX: for 64 */
#define CROWD     24u     /* raw clients at a time */
#define REPORTS   200u    /* of one of them */
#define ROUNDS    4u

static unsigned int port = 2001;

/* One client reports in many joins. Returns its socket. */
static int flood(const struct name *to, unsigned int from, unsigned int kind)
{
	struct control c = {.kind = kind, .rank = 1, .size = 2, .attempt = 1};
	int sock = raw_enter(to, hello_of_port(from));

	for (c.key = 1; c.key <= REPORTS; c.key++)
		raw_control(sock, c);
	joiner_mark(sock);
	return sock;
}

static void flood_in_numbers(const struct name *to, int socks[CROWD], unsigned int kind)
{
	for (unsigned int i = 0; i < CROWD; i++)
		socks[i] = flood(to, port++, kind);
}

static void leave(int socks[CROWD])
{
	for (unsigned int i = 0; i < CROWD; i++)
		slam(socks[i]);
}

/* The member reports before the endpoint joins. */
static void report(int member, uint64_t key)
{
	raw_control(member,
		    (struct control){.kind = UP, .rank = 1, .size = 2, .attempt = 1, .key = key});
	joiner_mark(member);
}

/* The first packet for the member says that the group stands: no question came before. */
static void expect_group(int member)
{
	struct control c = {0};

	if (joiner_make(JOIN, 0) || joiner_make(AWAIT_JOIN, 0))
		fail("the join failed");
	while (raw_read_control(member, &c) && c.kind == LEAVE)
		;
	if (c.kind != DOWN)
		fail("the member's report was dropped: it hears %u", c.kind);
	if (joiner_make(CLOSE, 0))
		fail("the group cannot be closed");
}

int main(void)
{
	int log = memfd_create("log", MFD_CLOEXEC), member, again, socks[CROWD];
	struct name name;
	uint64_t key;
	pid_t pid;

	alarm(LIMIT);
	need_network();
	setenv("FI_WEFT_UNEXPECTED_MAX", MAX_JOINS, 1);
	pid = joiner_start(&name, log);
	member = raw_enter(&name, hello_of_port(MEMBER_PORT));
	if (joiner_make(SET, 1))
		fail("no set");
	key = joiner_first_join(member);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		flood_in_numbers(&name, socks, round % 2 ? FAILED : UP);
		report(member, key);
		for (unsigned int i = 0; i < CROWD; i++) {
			again = flood(&name, round % 2 ? 2000u : port++, UP);
			slam(again);
		}
		expect_group(member);
		leave(socks);
	}
	if (!joiner_logged(log, "FI_WEFT_UNEXPECTED_MAX=" MAX_JOINS ", 4 of this peer)"))
		fail("the log does not tell of dropped joins");
	slay(pid);
	close(member);
	return EXIT_SUCCESS;
}
