/* SPDX-License-Identifier: BSD-2-Clause */
/* What two network interfaces carry together, each with a limit, from one process to another:
 *
 *     rails MBIT MBIT RAILS BYTES     Mbit/s of each interface, FI_WEFT_RAILS, bytes of a message
 *     rails MBIT MBIT sockets BYTES   a plain socket over each instead: what the wires carry at most
 *
 * Each process enters a network namespace of its own; veth pairs with token buckets (tbf) join them. A
 * window of messages is under way for some seconds, of which the first is not counted. Prints "BYTES VALUE"
 * in GB/s. Status 77: not root, or no such networks here. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include "fabric.h"

#define WIRES     2
#define WINDOW    8
#define BYTES_MAX 4194304
#define PORT      4711 /* of the plain sockets, in a network of their own */
#define WARM_US   1e6
#define US        4e6 /* that are counted */

static unsigned int mbit[WIRES];
static bool plain; /* sockets instead of endpoints */
static size_t bytes;
static char *buffer[WINDOW];
static struct fi_context2 contexts[WINDOW];

static int command(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int command(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return system(text); /* NOLINT(cert-env33-c): ip has no other interface for programs */
}

/* Both sides end with NOT_OFFERED unless it works on both. */
static void offered(bool works, const char *what)
{
	bool theirs;

	pair_swap(&works, &theirs, sizeof works);
	if (works && theirs)
		return;
	if (side == 0)
		fprintf(stderr, "bench: %s: needs root, and ip and tc\n", what);
	pair_sync();
	exit(NOT_OFFERED);
}

static bool make_wires(pid_t other)
{
	for (unsigned int i = 0; i < WIRES; i++)
		if (command("ip link add eth%u type veth peer name eth%u netns %d 2>/dev/null", i,
			    i, (int)other))
			return false;
	return true;
}

static bool set_up_wires(void)
{
	for (unsigned int i = 0; i < WIRES; i++)
		if (command("ip addr add 10.99.%u.%d/24 dev eth%u && ip link set eth%u up && "
			    "tc qdisc add dev eth%u root tbf rate %umbit burst 128kb limit 1mb",
			    i, side + 1, i, i, i, mbit[i]))
			return false;
	return true;
}

static void enter_network(void)
{
	pid_t mine = getpid(), theirs;

	offered(!unshare(CLONE_NEWNET) && !command("ip link set lo up"), "a network of its own");
	pair_swap(&mine, &theirs, sizeof mine);
	offered(side || make_wires(theirs), "veth");
	offered(set_up_wires(), "tbf");
	usleep(100000); /* until the wires carry something */
}

/* ---- Messages ---- */

/* Posts a send or receive. False: not now. */
static bool post(unsigned int slot)
{
	void *at = buffer[slot], *context = &contexts[slot];
	ssize_t ret = side == 0 ? fi_send(ep, at, bytes, NULL, peer, context)
				: fi_recv(ep, at, bytes, NULL, FI_ADDR_UNSPEC, context);

	if (ret != -FI_EAGAIN)
		must(ret, "fi_send or fi_recv");
	return !ret;
}

/* Posts what can be posted. Returns the bytes of the messages that have ended. */
static size_t move_messages(void)
{
	static bool busy[WINDOW];
	struct fi_cq_tagged_entry entry[WINDOW];
	ssize_t count;

	for (unsigned int i = 0; i < WINDOW; i++)
		busy[i] = busy[i] || post(i);
	count = fabric_read(entry, WINDOW);
	for (ssize_t i = 0; i < count; i++)
		busy[(struct fi_context2 *)entry[i].op_context - contexts] = false;
	return count > 0 ? (size_t)count * bytes : 0;
}

static void open_endpoint(void)
{
	fabric_offered(fabric_find(fabric_hints("tcp", FI_MSG, false)), "fi_getinfo");
	fabric_open();
	fabric_meet();
}

/* ---- Plain sockets ---- */

static int socks[WIRES];

static int open_socket(unsigned int number)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int sock = socket(AF_INET, SOCK_STREAM, 0), accepted;

	in.sin_addr.s_addr = htonl(0x0a630002u + (number << 8)); /* side 1 of the wire */
	if (side == 1 && (bind(sock, (struct sockaddr *)&in, sizeof in) || listen(sock, 1)))
		pair_fail("no listener");
	pair_sync();
	if (side == 0) {
		if (connect(sock, (struct sockaddr *)&in, sizeof in))
			pair_fail("connect");
		return sock;
	}
	accepted = accept(sock, NULL, NULL);
	if (accepted < 0)
		pair_fail("accept");
	close(sock);
	return accepted;
}

static void open_sockets(void)
{
	for (unsigned int i = 0; i < WIRES; i++)
		socks[i] = open_socket(i);
}

/* Sends or receives what each socket takes. Returns the bytes. */
static size_t move_bytes(void)
{
	size_t moved = 0;

	for (unsigned int i = 0; i < WIRES; i++) {
		ssize_t n = side == 0
				    ? send(socks[i], buffer[0], bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
				    : recv(socks[i], buffer[0], bytes, MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			pair_fail(side == 0 ? "send" : "recv");
		moved += n > 0 ? (size_t)n : 0;
	}
	return moved;
}

/* Returns GB/s. */
static double stream(size_t (*move)(void))
{
	double begin = microseconds(), now = begin, counted = 0, since = 0;

	while (now - begin < WARM_US + US) {
		size_t moved = move();

		counted += now - begin < WARM_US ? 0 : (double)moved;
		now = microseconds();
		if (now - begin < WARM_US)
			since = now;
	}
	return counted / (now - since) / 1000;
}

static void run(void)
{
	double value;

	enter_network();
	for (unsigned int i = 0; i < WINDOW; i++)
		buffer[i] = calloc(1, bytes);
	if (plain)
		open_sockets();
	else
		open_endpoint();
	pair_sync();
	value = stream(plain ? move_bytes : move_messages);
	if (side == 1)
		printf("%zu %.4f\n", bytes, value);
	pair_sync();
}

int main(int argc, char **argv)
{
	if (argc == 5) {
		mbit[0] = (unsigned int)strtoul(argv[1], NULL, 0);
		mbit[1] = (unsigned int)strtoul(argv[2], NULL, 0);
		bytes = strtoul(argv[4], NULL, 0);
	}
	if (!mbit[0] || !mbit[1] || !bytes || bytes > BYTES_MAX) {
		fputs("Usage: rails MBIT MBIT RAILS|sockets BYTES\n", stderr);
		return EXIT_FAILURE;
	}
	plain = strcmp(argv[3], "sockets") == 0;
	if (!plain)
		setenv("FI_WEFT_RAILS", argv[3], 1);
	return pair_run(run);
}
