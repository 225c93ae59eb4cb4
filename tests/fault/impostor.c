/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hellos in another's name. While the link to a peer lives, no hello ends it, whatever incarnation
 * and serial it claims and by whichever socket it comes: the newcomer waits and is refused with
 * FI_EADDRINUSE, with a line in the log. While we are connecting to a peer, a hello in its name
 * does not replace our attempt; the peer's own one does, when the peer says that it won. A hello
 * with the endpoint's own incarnation in another's name is refused.
 */
#include "attempt.h"
#include "echo.h"
#include "raw_client.h"

#define REFUSE_MS      8000 /* by then a newcomer is refused */
#define HIGHEST        UINT64_MAX
#define HELLOS         3
#define PINGS          20
#define DEAD_LINK_TIME 1000 /* ms: a newcomer behind a link that ends waits less */

static fi_addr_t to;

static void say_inside(int sock, const struct hello *h)
{
	const struct page page = {RING_MAGIC, RING_SLOTS, 1};
	int fd = ring_file(RING_LEN, SEALS, page);

	say(sock, h, sizeof(*h), &fd, 1);
	close(fd);
}

/* What anybody who connects is told. */
static uint64_t incarnation_of(const struct name *name)
{
	struct hello h = good_hello(7777);
	int sock = connect_from(name, 0);

	say_tcp(sock, &h);
	h = answer_to(sock, REACH_MS, "a good hello");
	if (h.kind != HELLO_ACCEPT)
		fail("a good hello is answered with %u", h.kind);
	slam(sock);
	return h.incarnation;
}

/* ---- A live link ---- */

struct caller {
	struct hello hello;
	bool inside;
	int sock;
};

static void call(struct caller *c)
{
	c->sock = c->inside ? raw_connect(&server_name) : connect_from(&server_name, 0);
	(c->inside ? say_inside : say_tcp)(c->sock, &c->hello);
}

static void refused(const struct caller *c)
{
	struct hello answer = answer_to(c->sock, REFUSE_MS, "a hello in a live peer's name");

	if (answer.kind != HELLO_REJECT || answer.error != FI_EADDRINUSE)
		fail("a hello in the name of a live peer is answered with %u, error %u",
		     answer.kind, answer.error);
	close(c->sock);
}

/* Calls by each socket that the endpoint has. */
static void live_link(void)
{
	bool network = strcmp(provider(), "shm"), inside = strcmp(provider(), "tcp");
	struct name mine = node_name(&n);
	uint64_t own = network ? incarnation_of(&mine) : 3;
	const struct hello hellos[HELLOS] = {hello_named(&mine, 0, 0),
					     hello_named(&mine, HIGHEST, 1),
					     hello_named(&mine, own, HIGHEST)};
	struct caller callers[2 * HELLOS];
	unsigned int count = 0;

	for (unsigned int i = 0; i < 2 * HELLOS; i++)
		if (i % 2 ? inside : network)
			callers[count++] = (struct caller){.hello = hellos[i / 2], .inside = i % 2};
	for (unsigned int i = 0; i < count; i++) {
		call(&callers[i]);
		for (unsigned int k = 0; k < PINGS; k++)
			ping(&n, to, 100 * i + k);
	}
	for (unsigned int i = 0; i < count; i++) {
		refused(&callers[i]);
		ping(&n, to, 1000 + i);
	}
	if (!logged("is refused"))
		fail("the log does not say that newcomers were refused");
}

/* ---- A newcomer waits until the link ends, and is taken then. ---- */

static struct hello wait_behind(const struct hello *h, int first, int *second)
{
	*second = connect_from(&server_name, 0);
	say_tcp(*second, h);
	usleep(20000);
	slam(first);
	return answer_to(*second, DEAD_LINK_TIME, "a newcomer behind a link that has ended");
}

static void dead_link(void)
{
	struct hello h = good_hello(4242), answer;
	int first = connect_from(&server_name, 0), second;

	say_tcp(first, &h);
	if (answer_to(first, REACH_MS, "a good hello").kind != HELLO_ACCEPT)
		fail("a good hello is refused");
	h.incarnation++;
	answer = wait_behind(&h, first, &second);
	if (answer.kind != HELLO_ACCEPT)
		fail("a newcomer behind a link that has ended is answered with %u", answer.kind);
	slam(second);
}

/* ---- Our own attempt ---- */

/* The lowest incarnation, in the name of the one whom we are connecting to, from elsewhere. */
static void attempt(void)
{
	struct name name, mine = node_name(&n);
	int listener = listen_here(&name), real, impostor;
	struct hello theirs = hello_named(&name, 0, HIGHEST), h;
	struct pollfd p;

	send_to(&name);
	real = take_call(listener, &h);
	impostor = connect_from(&mine, INADDR_LOOPBACK + 1);
	say_tcp(impostor, &theirs);
	idle(100);
	h = hello_named(&name, 5, 1);
	h.kind = HELLO_ACCEPT;
	say_tcp(real, &h);
	hear_message(real, "an attempt with an impostor beside it");
	if (answer_to(impostor, REFUSE_MS, "an impostor").kind != HELLO_REJECT)
		fail("an impostor beside our attempt is accepted");
	p = (struct pollfd){.fd = real, .events = POLLIN};
	if (poll(&p, 1, 0))
		fail("our connection has ended for an impostor");
	slam(impostor);
	slam(real);
	close(listener);
	idle(10);
}

/* Attempts cross, the peer's one wins; somebody else says the same with another incarnation. */
static void crossing(void)
{
	struct name name, mine = node_name(&n);
	int listener = listen_here(&name), ours, impostor, real;
	struct hello theirs = hello_named(&name, 1, 1), h;

	send_to(&name);
	ours = take_call(listener, &h);
	h = hello_named(&name, 0, 1);
	impostor = connect_from(&mine, INADDR_LOOPBACK + 1);
	say_tcp(impostor, &h);
	real = connect_from(&mine, 0);
	say_tcp(real, &theirs);
	idle(20);
	theirs.kind = HELLO_CROSSED;
	theirs.serial = 2;
	say_tcp(ours, &theirs);
	if (answer_to(real, REACH_MS, "the attempt that won").kind != HELLO_ACCEPT)
		fail("the attempt that won is refused");
	hear_message(real, "crossing attempts");
	if (answer_to(impostor, REFUSE_MS, "an impostor").kind != HELLO_REJECT)
		fail("an impostor beside crossing attempts is accepted");
	slam(ours);
	slam(real);
	slam(impostor);
	close(listener);
	idle(10);
}

/* With our own incarnation, which everybody hears. */
static void own_incarnation(void)
{
	struct name other, mine = node_name(&n);
	int listener = listen_here(&other), sock = connect_from(&mine, 0);
	struct hello h = hello_named(&other, incarnation_of(&mine), 1);

	say_tcp(sock, &h);
	if (answer_to(sock, REACH_MS, "our own incarnation").kind != HELLO_REJECT)
		fail("another's name with our own incarnation is accepted");
	slam(sock);
	close(listener);
}

int main(void)
{
	pid_t pid;
	int fds;

	alarm(LIMIT);
	need_provider();
	pid = start_server(&n, &to);
	fds = count_fds(pid);
	live_link();
	same_fds(pid, fds, "after hellos in the name of a live peer");
	if (strcmp(provider(), "shm")) {
		dead_link();
		attempt();
		crossing();
		own_incarnation();
		ping(&n, to, 9999);
	}
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
