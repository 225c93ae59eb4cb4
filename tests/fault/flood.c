/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that an endpoint withstands 2000 raw clients of its TCP listener at once: silent ones, a
 * byte now and then, garbage, a wrong version, half a hello, a good hello without packets after it.
 * Real peers are served meanwhile. The endpoint logs the faults and keeps neither descriptors nor
 * memory.
 */
#include <poll.h>
#include <sys/resource.h>

#include "echo.h"
#include "hello.h"

#define RAW_CLIENTS 2000
#define STORMS      2
#define DRIP_MS     50    /* between two bytes of a DRIP client */
#define DOOR_MS     12000 /* silent clients are disconnected by then */
#define GROWTH_KB   1024  /* growth of the server's memory from one storm to the next */

enum manner {
	SILENT,
	DRIP,
	GARBAGE,
	HALF,
	OTHER_VERSION,
	OTHER_ORDER,
	OTHER_SIZE,
	NO_NAME,
	GOOD_GARBAGE,
	GOOD_SILENT,
	GOOD_HALF_FRAME,
	GOOD_GONE,
	RESET,
	MANNERS
};

static struct raw_client {
	int sock;
	enum manner manner;
	size_t dripped;
	bool gone;
} raw_clients[RAW_CLIENTS];

static void say(const struct raw_client *s, const void *words, size_t len)
{
	/* The endpoint may have closed the connection already. */
	if (send(s->sock, words, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE &&
	    errno != ECONNRESET && errno != EAGAIN)
		fail("send: %s", strerror(errno));
}

static void say_hello(const struct raw_client *s, unsigned int n)
{
	struct hello h = good_hello(n);

	switch (s->manner) {
	case OTHER_VERSION:
		h.version += 1 + n % 3;
		break;
	case OTHER_ORDER:
		h.magic = __builtin_bswap32(h.magic);
		h.version = __builtin_bswap16(h.version);
		break;
	case OTHER_SIZE:
		h.size++;
		break;
	case NO_NAME:
		h.name_len = n % 2 ? 0 : UINT32_MAX;
		break;
	default:
		break;
	}
	say(s, &h, s->manner == HALF ? 1 + n % (sizeof(h) - 1) : sizeof(h));
}

static void say_garbage(const struct raw_client *s, unsigned int n)
{
	char words[5000];

	for (size_t i = 0; i < sizeof(words); i++)
		words[i] = (char)(n * 31 + i * 7 + 1);
	say(s, words, 1 + n * 97 % sizeof(words));
}

static void go(struct raw_client *s, bool hard)
{
	if (s->gone)
		return;
	s->gone = true;
	if (hard)
		slam(s->sock);
	else
		close(s->sock);
}

/* Connects client `n` and sends what its manner sends at once. */
static void misbehave(struct raw_client *s, unsigned int n)
{
	const struct frame half = {.head = WIRE_MSG, .len = 100};

	s->manner = n % MANNERS;
	s->sock = raw_connect_tcp(&server_name);
	s->gone = false;
	s->dripped = 0;
	if (s->manner == GARBAGE)
		say_garbage(s, n);
	else if (s->manner != SILENT && s->manner != DRIP && s->manner != RESET)
		say_hello(s, n);
	if (s->manner == GOOD_GARBAGE)
		say_garbage(s, n);
	else if (s->manner == GOOD_HALF_FRAME)
		say(s, &half, 8 + n % 24);
	/* Some clients stay connected, some leave. */
	if (s->manner == GOOD_GONE || s->manner == RESET || n % 5 == 0)
		go(s, n % 2 || s->manner == RESET);
}

static void drip(void)
{
	struct hello h = good_hello(1);

	for (unsigned int i = 0; i < RAW_CLIENTS; i++) {
		struct raw_client *s = &raw_clients[i];

		if (s->manner == DRIP && !s->gone && s->dripped < sizeof(h))
			say(s, (char *)&h + s->dripped++, 1);
	}
}

/* Returns how many clients without a good hello are still connected. Those with one must be. */
static unsigned int left_inside(void)
{
	unsigned int left = 0;
	char word;

	for (unsigned int i = 0; i < RAW_CLIENTS; i++) {
		struct raw_client *s = &raw_clients[i];
		ssize_t ret = s->gone ? 0 : recv(s->sock, &word, 1, MSG_DONTWAIT | MSG_PEEK);
		bool good = s->manner == GOOD_SILENT || s->manner == GOOD_HALF_FRAME;

		/* Reads away the answer to a good hello. */
		while (ret > 0)
			ret = recv(s->sock, &(char[1024]){0}, 1024, MSG_DONTWAIT);
		if (!s->gone && ret < 0 && (errno == EAGAIN || errno == EINTR))
			left += !good;
		else if (good && !s->gone)
			fail("a raw client whose hello was good was sent away");
	}
	return left;
}

/* Checks that a real peer can connect and send in the middle of the storm. */
static void come_in(void)
{
	uint64_t end = now_ms() + 2 * PING_MS;
	struct node late;
	fi_addr_t to;

	node_open(&late, NULL);
	to = node_insert(&late, &server_name);
	while (fi_send(late.ep, "L", 1, NULL, to, NULL) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("a real peer is kept out");
	if (node_wait(&late, 2 * PING_MS, "a real peer among raw clients").err)
		fail("a real peer among raw clients was refused");
	node_close(&late);
}

static void storm(struct node *n, fi_addr_t to)
{
	uint64_t next = 0, end;

	for (unsigned int i = 0; i < RAW_CLIENTS; i++) {
		misbehave(&raw_clients[i], i);
		if (i % 100 == 0)
			ping(n, to, i);
		if (i % 500 == 250)
			come_in();
		if (now_ms() > next) {
			drip();
			next = now_ms() + DRIP_MS;
		}
	}
	for (end = now_ms() + DOOR_MS; left_inside() && now_ms() < end; usleep(DRIP_MS * 1000)) {
		drip();
		ping(n, to, 1);
	}
	if (left_inside())
		fail("%u raw clients are still there", left_inside());
	for (unsigned int i = 0; i < RAW_CLIENTS; i++)
		go(&raw_clients[i], i % 2);
	ping(n, to, 2);
}

/* Checks that the log names the faults with their values. */
static void read_log(void)
{
	char next[64], swapped[64];
	const char *const words[] = {
		next,
		swapped,
		"hello of",
		"with a name of 0 bytes",
		"connected and said nothing for",
		"sent no packet of ours",
	};

	snprintf(next, sizeof(next), "version %u, size", VERSION + 1);
	snprintf(swapped, sizeof(swapped), "magic 0x57454654, version %u",
		 __builtin_bswap16(VERSION));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!logged(words[i]))
			fail("the log does not say \"%s\"", words[i]);
}

int main(void)
{
	struct rlimit files = {0};
	long kb = 0;
	fi_addr_t to;
	struct node n;
	pid_t pid;
	int fds;

	alarm(LIMIT);
	need_network();
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < RAW_CLIENTS + 100) {
		printf("no more than %llu files may be open\n", (unsigned long long)files.rlim_cur);
		return 77;
	}
	pid = start_server(&n, &to);
	fds = count_fds(pid);
	for (int i = 0; i < STORMS; i++) {
		if (i == STORMS - 1)
			kb = memory_of(pid);
		storm(&n, to);
		same_fds(pid, fds, "after the storm");
	}
	if (memory_of(pid) > kb + GROWTH_KB)
		fail("the server has grown from %ld to %ld kB", kb, memory_of(pid));
	read_log();
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
