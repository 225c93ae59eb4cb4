/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that what other processes of the host pass to an endpoint's Unix socket holds up nobody. The last close of a TCP
 * socket with unsent bytes waits for as long as its owner has set by SO_LINGER. Such sockets come with hellos of another user
 * and of this one, alone and many at once, wait in the backlog of an endpoint that closes, and come from another user's process
 * that has taken the name of a peer. Meanwhile pings are answered, and closes end.
 */
#include "echo.h"
#include "raw_client.h"

#define NOBODY   65534
#define LINGER_S 600
#define TIMES    24
#define AT_ONCE  10
#define VISITS   60

/* How a process passes what it has. */
struct passer {
	bool other;     /* as another user */
	bool connected; /* with wake-ups on a connection, not with hellos */
	unsigned int times, at_once;
	int end; /* is told when all has been passed */
};

/* Returns a connected socket with bytes that nobody reads. Its last close takes LINGER_S. */
static int lingering(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger linger = {1, LINGER_S};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), small = 4096;
	static const char bytes[65536];

	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		fail("no listener: %s", strerror(errno));
	connect(sock, (struct sockaddr *)&at, sizeof(at));
	if (accept(listener, NULL, NULL) < 0) /* stays open with the process */
		fail("accept: %s", strerror(errno));
	close(listener);
	while (send(sock, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	setsockopt(sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return sock;
}

static void become_other(void)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		fail("cannot become user %d: %s", NOBODY, strerror(errno));
}

/* Sends a message with `count` lingering sockets, which the receiver is the last to have. */
static void pass(int sock, const void *message, size_t len, unsigned int count)
{
	int fds[AT_ONCE];

	for (unsigned int i = 0; i < count; i++)
		fds[i] = lingering();
	say(sock, message, len, fds, count);
	for (unsigned int i = 0; i < count; i++)
		close(fds[i]);
}

static void pass_with_hello(int sock, unsigned int count, unsigned int number)
{
	struct hello h = good_hello(number);

	pass(sock, &h, sizeof(h), count);
}

/* Gets connected, and sends one wake-up that is read, and one that may not be. */
static void pass_with_wakes(int sock, unsigned int count, unsigned int number)
{
	struct hello h = good_hello(number);
	int ring = ring_file(RING_LEN, SEALS, (struct page){RING_MAGIC, RING_SLOTS, 1});

	say(sock, &h, sizeof(h), &ring, 1);
	close(ring);
	if (recv(sock, &h, sizeof(h), 0) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("a good hello is not accepted");
	pass(sock, "w", 1, count);
	pass(sock, "w", 1, count);
}

static void run_passer(void *arg)
{
	const struct passer *p = arg;

	if (p->other)
		become_other();
	for (unsigned int i = 0; i < p->times; i++) {
		int sock = raw_connect(&server_name);

		(p->connected ? pass_with_wakes : pass_with_hello)(sock, p->at_once, i);
		close(sock);
	}
	tell(p->end, "", 1);
	pause();
}

/* Starts a passer; returns once all has been passed. */
static pid_t pass_all(struct passer *p)
{
	int wires[2];
	pid_t pid;

	wire(wires);
	p->end = wires[1];
	pid = start(p->other ? "other user" : "passer", run_passer, p);
	hear(wires[0], &(char){0}, 1);
	close(wires[0]);
	close(wires[1]);
	return pid;
}

/* The server answers while it gets them, and afterwards has no more descriptors than before. */
static void passed(struct node *n, fi_addr_t to, pid_t server_pid, struct passer p)
{
	int fds = count_fds(server_pid);
	pid_t pid = pass_all(&p);

	for (unsigned int i = 0; i < 20; i++)
		ping(n, to, i);
	same_fds(server_pid, fds, "after what was passed");
	slay(pid);
}

/* An endpoint that has not looked at its backlog closes. */
static void closing(void *arg)
{
	struct passer p = *(struct passer *)arg;
	struct node n;
	pid_t pid;

	alarm(20); /* the end of a hang */
	node_open(&n, NULL);
	server_name = node_name(&n);
	pid = pass_all(&p);
	node_close(&n);
	slay(pid);
}

/* A name that no endpoint has. */
static struct name free_name(void)
{
	struct name name = server_name;
	struct sockaddr_in in;

	if (!strcmp(provider(), "shm")) {
		name.len = (size_t)snprintf(name.bytes, sizeof(name.bytes), "fi_shm://squatted%d",
					    (int)getpid()) +
			   1;
		return name;
	}
	memcpy(&in, name.bytes, sizeof(in));
	in.sin_port = htons((uint16_t)(ntohs(in.sin_port) ^ 1));
	memcpy(name.bytes, &in, sizeof(in));
	return name;
}

/* Takes the name of a peer and passes sockets to all who call it. */
static void squat(void *arg)
{
	int listener = raw_listen(&server_name), end = *(int *)arg;

	tell(end, "", 1);
	for (unsigned int i = 0;; i++) {
		int sock = accept(listener, NULL, NULL);

		pass_with_hello(sock, 1, i);
		close(sock);
	}
}

static void squat_as_other(void *arg)
{
	become_other();
	squat(arg);
}

/* Sends to the name; each time the connection is refused, as the process there is another user's. */
static void calling(void *arg)
{
	fi_addr_t to;
	struct node n;
	int wires[2];
	pid_t pid;

	(void)arg;
	alarm(30); /* the end of a hang */
	node_open(&n, NULL);
	server_name = node_name(&n);
	server_name = free_name();
	wire(wires);
	pid = start("squatter", squat_as_other, &wires[1]);
	hear(wires[0], &(char){0}, 1);
	to = node_insert(&n, &server_name);
	for (unsigned int i = 0; i < VISITS; i++) {
		ssize_t ret = fi_send(n.ep, "x", 1, NULL, to, NULL);

		if (!ret && !node_wait(&n, PING_MS, "a send to another user's process").err)
			fail("a send to another user's process succeeds");
		fi_cq_read(n.cq, NULL, 0);
	}
	node_close(&n);
	slay(pid);
}

int main(void)
{
	bool may = geteuid() == 0;
	fi_addr_t to;
	struct node n;
	pid_t pid;

	alarm(LIMIT);
	need_provider();
	if (!strcmp(provider(), "tcp")) {
		printf("endpoints of tcp have no socket inside the host\n");
		return 77;
	}
	for (int other = 0; other <= may; other++)
		finish(start("closing", closing, &(struct passer){other, false, 1, 1, -1}),
		       "an endpoint that closes");
	if (may)
		finish(start("calling", calling, NULL), "a caller of another user's process");
	pid = start_server(&n, &to);
	for (int other = 0; other <= may; other++) {
		passed(&n, to, pid, (struct passer){other, false, TIMES, 1, -1});
		passed(&n, to, pid, (struct passer){other, false, 2, AT_ONCE, -1});
	}
	passed(&n, to, pid, (struct passer){false, true, 2, AT_ONCE, -1});
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
