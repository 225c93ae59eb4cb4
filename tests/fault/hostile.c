/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a hostile peer cannot exhaust an endpoint's memory. Peers send valid packets without
 * an end: requests whose answers they do not read, or messages in spite of XOFF. The endpoint
 * disconnects each at a limit and logs why. Clients that connect and leave cost no memory.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#include <poll.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#include "hello.h"

#define REGION         (1u << 20)
#define KEY            1
#define SPARE_KB       (800 * 1024) /* far above each limit, far below the bytes sent */
#define RAW_CLIENTS    1200         /* clients that connect and leave */
#define RAW_CLIENTS_KB 512
#define WAIT_MS        2000
#define END_MS         10000 /* the endpoint has processed everything by then */

#define HEAD(op, flags, rx, id)                                                                    \
	((uint64_t)(op) | (uint64_t)(flags) << 8 | (uint64_t)(rx) << 16 | (uint64_t)(id) << 32)
/* Kinds of requests, flags of packets. */
enum { PUT = 8, GET };
#define TAGGED 0x01u
#define DATA   0x02u
#define LONG   0x10u

static int log_fd, ends[2];
static struct name server_name;
static unsigned int number;

/* ---- The endpoint, which posts no receive ---- */

static void server(void *arg)
{
	static unsigned char region[REGION];
	struct fid_mr *mr;
	struct event e;
	struct node n;

	(void)arg;
	dup2(log_fd, STDERR_FILENO);
	node_open(&n, NULL);
	must(fi_mr_reg(n.domain, region, sizeof(region), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY,
		       0, &mr, NULL),
	     "fi_mr_reg");
	server_name = node_name(&n);
	tell(ends[1], &server_name, sizeof(server_name));
	for (;;)
		if (node_poll(&n, &e))
			fail("an operation ended");
}

static bool logged(const char *text)
{
	off_t len = lseek(log_fd, 0, SEEK_END);
	char *log = len > 0 ? mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, log_fd, 0) : NULL;
	bool found = log && log != MAP_FAILED && memmem(log, (size_t)len, text, strlen(text));

	if (log && log != MAP_FAILED)
		munmap(log, (size_t)len);
	return found;
}

/* Prints the begin of the server's log if the test fails. */
static void show_log(int status, void *arg)
{
	char text[4096];
	ssize_t len = pread(log_fd, text, sizeof(text), 0);

	(void)arg;
	if (status && len > 0)
		fprintf(stderr, "the server's log begins:\n%.*s\n", (int)len, text);
}

/* ---- The hostile peers ---- */

/*
 * Connects with a good hello. `room`: bytes of the receive buffer, 0: default. Returns the socket.
 */
static int join(int room)
{
	struct hello h = good_hello(++number);
	int sock = tcp_socket();

	if (room)
		setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (connect(sock, (const struct sockaddr *)(const void *)server_name.bytes,
		    sizeof(struct sockaddr_in)) ||
	    send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h) ||
	    recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("a good hello is not accepted");
	return sock;
}

/* One way to ask for too much: a packet, sent `count` times, and the log line it causes. */
static const struct greed {
	const char *name;
	struct frame frame;
	const void *payload;
	unsigned int count;
	const char *log;
} greeds[] = {
	{"short reads",
	 {.head = HEAD(GET, DATA, 0, 1), .data = KEY, .len = 8},
	 &(const uint64_t){REGION},
	 2000,
	 "bytes of answers"},
	{"long reads",
	 {.head = HEAD(GET, LONG, 0, 1), .len = 64},
	 &(const uint64_t[8]){0, 2, 0, REGION, KEY, 0, REGION, KEY},
	 700000,
	 "bytes of answers"},
	{"writes that are refused",
	 {.head = HEAD(PUT, DATA, 0, 1), .data = 77},
	 NULL,
	 5000000,
	 "bytes of answers"},
	{"messages",
	 {.head = HEAD(WIRE_MSG, TAGGED, 0, 0), .tag = 5, .len = REGION},
	 NULL,
	 2000,
	 "since it was asked to pause"},
};

/* Returns false if the connection has ended. */
static bool say(int sock, const char *words, size_t len)
{
	while (len) {
		ssize_t ret = send(sock, words, len, MSG_NOSIGNAL);

		if (ret < 0 && errno != EPIPE && errno != ECONNRESET)
			fail("send: %s", strerror(errno));
		if (ret < 0)
			return false;
		words += ret;
		len -= (size_t)ret;
	}
	return true;
}

/* Sends the packets and waits for the end of the connection. Returns whether it ended. */
static bool ask(const struct greed *g, int sock)
{
	static char words[sizeof(struct frame) + REGION];
	size_t each = sizeof(g->frame) + g->frame.len, at = 0;
	struct pollfd end = {.fd = sock};

	for (unsigned int i = 0; i < g->count; i++) {
		memcpy(words + at, &g->frame, sizeof(g->frame));
		if (g->payload)
			memcpy(words + at + sizeof(g->frame), g->payload, g->frame.len);
		at += each;
		if (at + each <= sizeof(words) && i + 1 < g->count)
			continue;
		if (!say(sock, words, at))
			return true;
		at = 0;
	}
	return poll(&end, 1, END_MS) == 1;
}

/* Checks that a real peer can still connect and send. */
static void come_in(const char *when)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct node n;
	fi_addr_t to;

	node_open(&n, NULL);
	to = node_insert(&n, &server_name);
	while (fi_send(n.ep, "", 1, NULL, to, NULL) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("%s a real peer is kept out", when);
	if (node_wait(&n, WAIT_MS, when).err)
		fail("%s a real peer is refused", when);
	node_close(&n);
}

static void one(const struct greed *g)
{
	pid_t pid;
	bool ended;
	long kb;
	int sock;

	wire(ends);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	pid = start(g->name, server, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	kb = peak_of(pid);
	sock = join(4096);
	ended = ask(g, sock);
	if (peak_of(pid) > kb + SPARE_KB)
		fail("%s: from %ld kB the endpoint has grown to %ld", g->name, kb, peak_of(pid));
	if (!ended)
		fail("%s: the connection stands after all that", g->name);
	if (!logged(g->log))
		fail("%s: the log does not say \"%s\"", g->name, g->log);
	come_in(g->name);
	slay(pid);
	close(sock);
	close(log_fd);
	close(ends[0]);
	close(ends[1]);
}

/* Clients say hello and leave, one after the other; half of them use the name of the one before. */
static void come_and_go(void)
{
	long kb = 0;
	pid_t pid;

	wire(ends);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	pid = start("raw_clients", server, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	for (unsigned int i = 0; i < RAW_CLIENTS; i++) {
		int sock;

		if (i % 2)
			number--;
		sock = join(0);
		if (i % 3)
			slam(sock);
		else
			close(sock);
		if (i == RAW_CLIENTS / 3)
			kb = memory_of(pid);
	}
	if (memory_of(pid) > kb + RAW_CLIENTS_KB)
		fail("raw_clients: %ld kB have become %ld", kb, memory_of(pid));
	come_in("after all raw clients");
	slay(pid);
	close(log_fd);
}

int main(void)
{
	alarm(LIMIT);
	need_network();
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_INTERVAL", "0", 1); /* all lines */
	setenv("FI_WEFT_UNEXPECTED_MAX", "65536", 1);
	setenv("FI_WEFT_UNEXPECTED_LIMIT", "1073741824",
	       1); /* so that a pause which is not heeded is what ends it */
	on_exit(show_log, NULL);
	for (size_t i = 0; i < sizeof(greeds) / sizeof(greeds[0]); i++)
		one(&greeds[i]);
	come_and_go();
	return EXIT_SUCCESS;
}
