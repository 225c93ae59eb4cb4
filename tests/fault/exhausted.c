/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unknown processes try to use up the descriptors of an endpoint that may have few: by silent connections, good hellos under as many
 * names as they like, and hellos that bring ten descriptors each; inside the host and across the network. A peer of its address
 * vector that comes afterwards is served all the same, and when they have gone nothing is left of them.
 */
#define PING_MS 5000 /* a SYN may meet a full backlog */
#include "echo.h"
#include "raw_link.h"

#define FILES   64 /* descriptors of the endpoint */
#define COMERS  200
#define AT_ONCE 10

enum manner { SILENT, HELLO, HELLO_WITH_MANY, MANNERS_COUNT };

struct crowd {
	enum manner how;
	bool inside;
	int end; /* is told when all have come */
};

static void ask(int sock, enum manner how, bool inside, unsigned int number)
{
	const struct page page = {RING_MAGIC, RING_SLOTS, 1};
	struct hello h = good_hello(number);
	int fds[AT_ONCE];

	if (how == SILENT)
		return;
	if (!inside) {
		send(sock, &h, sizeof(h), MSG_NOSIGNAL);
		return;
	}
	for (unsigned int i = 0; i < AT_ONCE; i++)
		fds[i] = ring_file(RING_LEN, SEALS, page);
	say(sock, &h, sizeof(h), fds, how == HELLO ? 1 : AT_ONCE);
	for (unsigned int i = 0; i < AT_ONCE; i++)
		close(fds[i]);
}

/* A connection that waits in the listener's queue is one, too. */
static int come(bool inside)
{
	struct timeval soon = {.tv_usec = 100000};
	struct sockaddr_un un;
	socklen_t len = raw_address(&server_name, &un);
	int sock;

	if (!inside)
		return raw_link_tcp(&server_name, INADDR_LOOPBACK + 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
	if (connect(sock, (struct sockaddr *)&un, len) && errno != EAGAIN)
		fail("cannot connect to the endpoint: %s", strerror(errno));
	return sock;
}

static void come_all(void *arg)
{
	const struct crowd *s = arg;

	for (unsigned int i = 0; i < COMERS; i++)
		ask(come(s->inside), s->how, s->inside, i);
	tell(s->end, "", 1);
	pause();
}

static void one(enum manner how, bool inside)
{
	struct rlimit many, few = {FILES, FILES};
	struct crowd crowd_way = {how, inside, -1};
	pid_t pid, crowd_pid;
	fi_addr_t to;
	struct node n;
	int fds, come[2];

	getrlimit(RLIMIT_NOFILE, &many);
	few.rlim_max = many.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	pid = prepare_server(&n, &to);
	setrlimit(RLIMIT_NOFILE, &many);
	fds = count_fds(pid);
	wire(come);
	crowd_way.end = come[1];
	crowd_pid = start("crowd", come_all, &crowd_way);
	hear(come[0], &(char){0}, 1);
	for (unsigned int i = 0; i < 20; i++)
		ping(&n, to, i);
	slay(crowd_pid);
	node_close(&n);
	same_fds(pid, fds, "when all have gone");
	slay(pid);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(come[i]);
	}
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	for (enum manner how = 0; how < MANNERS_COUNT; how++) {
		if (strcmp(provider(), "shm") && how != HELLO_WITH_MANY)
			one(how, false);
		if (strcmp(provider(), "tcp"))
			one(how, true);
	}
	return EXIT_SUCCESS;
}
