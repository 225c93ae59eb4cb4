/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that hellos with names of any address format are handled. Names that do not fit their
 * format are refused. A message of an accepted peer is reported from the address vector entry with
 * the peer's address, or from none, and no entry changes.
 */
#include <poll.h>

#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR)
#include "node.h"

#include "hello.h"

#define KNOWN   4711 /* TCP port of the peer in the address vector */
#define WAIT_MS 3000
#define WORD    "word"

enum answer { REFUSED, LET_IN, EITHER };

static struct node n;
static struct name name;
static fi_addr_t known;

static struct sockaddr_in in_named(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Makes progress until the answer comes. Returns its kind; 0: the connection ended. */
static uint32_t answer_to(int sock, struct hello *h)
{
	uint64_t end = now_ms() + WAIT_MS;
	ssize_t len = -1;
	struct event e;

	while (now_ms() < end && len < (ssize_t)sizeof(*h)) {
		if (node_poll(&n, &e))
			fail("a completion nobody asked for");
		len = recv(sock, h, sizeof(*h), MSG_DONTWAIT | MSG_PEEK);
		if (len == 0 || (len < 0 && errno != EAGAIN))
			return 0;
	}
	if (recv(sock, h, sizeof(*h), MSG_DONTWAIT) != sizeof(*h))
		fail("a hello has no answer");
	return h->kind;
}

/* Returns the source address reported with a message; FI_ADDR_NOTAVAIL: no entry has it. */
static fi_addr_t heard_from(char *buf)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	fi_addr_t src = FI_ADDR_UNSPEC;
	uint64_t end = now_ms() + WAIT_MS;
	ssize_t ret;

	while ((ret = fi_cq_readfrom(n.cq, &entry, 1, &src)) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("a message does not come");
	if (memcmp(buf, WORD, sizeof(WORD)) != 0)
		fail("it was another one");
	if (ret == 1)
		return src;
	must(ret == -FI_EAVAIL ? fi_cq_readerr(n.cq, &error, 0) : ret, "fi_cq_readerr");
	if (error.err != FI_EADDRNOTAVAIL)
		fail("a message ends with %s", fi_strerror(error.err));
	return FI_ADDR_NOTAVAIL;
}

/* Sends a message as a connected peer. Checks that it is reported from `from`. */
static void say_control(int sock, fi_addr_t from)
{
	struct frame f = {.head = WIRE_MSG, .len = sizeof(WORD)};
	char buf[sizeof(WORD)];

	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	if (send(sock, &f, sizeof(f), 0) != sizeof(f) ||
	    send(sock, WORD, sizeof(WORD), 0) != sizeof(WORD))
		fail("send: %s", strerror(errno));
	if (heard_from(buf) != from)
		fail("a message is said to be from somebody else");
}

/*
 * Connects with this name. If accepted, sends a message, which is reported from the entry `from`.
 */
static void raw_peer(uint32_t format, const void *bytes, size_t len, enum answer wanted,
		     fi_addr_t from)
{
	static unsigned int number = 100;
	struct hello h = good_hello(number++), answer;
	int sock = raw_connect_tcp(&name);
	bool in;

	h.name_format = format;
	h.name_len = (uint32_t)len;
	memset(h.name, 0, sizeof(h.name));
	memcpy(h.name, bytes, len);
	if (send(sock, &h, sizeof(h), 0) != sizeof(h))
		fail("send: %s", strerror(errno));
	in = answer_to(sock, &answer) == HELLO_ACCEPT;
	if (wanted != EITHER && in != (wanted == LET_IN))
		fail("a name of format %u and %zu bytes is %s", format, len,
		     in ? "let in" : "refused");
	if (in)
		say_control(sock, from);
	close(sock);
}

static void raw_peers(void)
{
	struct sockaddr_in in = in_named(KNOWN), other = in_named(KNOWN + 1);
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_port = htons(KNOWN),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	static const char text[] = "fi_sockaddr_in://127.0.0.1:4711", junk[96] = {127, 1};

	raw_peer(FI_SOCKADDR_IN, &in, sizeof(in), LET_IN, known);
	raw_peer(FI_SOCKADDR_IN, &other, sizeof(other), LET_IN, FI_ADDR_NOTAVAIL);
	raw_peer(FI_SOCKADDR_IN6, &in6, sizeof(in6), EITHER, FI_ADDR_NOTAVAIL);
	/* The same IPv4 address, mapped to IPv6. */
	in6.sin6_addr =
		(struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
	raw_peer(FI_SOCKADDR_IN6, &in6, sizeof(in6), EITHER, known);
	raw_peer(FI_ADDR_STR, text, sizeof(text), REFUSED, 0);
	/* Names whose bytes do not fit the format they claim. */
	raw_peer(FI_SOCKADDR_IN6, &in, sizeof(in), REFUSED, 0);
	raw_peer(FI_SOCKADDR_IN, &in6, sizeof(in6), REFUSED, 0);
	raw_peer(FI_SOCKADDR_IN, &in, sizeof(in) - 4, REFUSED, 0);
	raw_peer(FI_ADDR_STR, junk, sizeof(junk), REFUSED, 0);
	raw_peer(FI_SOCKADDR_IB, junk, 48, REFUSED, 0);
	raw_peer(FI_ADDR_EFA, junk, 32, REFUSED, 0);
	raw_peer(FI_FORMAT_UNSPEC, &in, sizeof(in), REFUSED, 0);
	raw_peer(UINT32_MAX, junk, sizeof(junk), REFUSED, 0);
	raw_peer(FI_SOCKADDR_IN, &in, sizeof(in), LET_IN, known);
}

/* Checks that the hellos neither made nor changed an entry. */
static void check_entries(void)
{
	struct sockaddr_in in = in_named(KNOWN), got;
	size_t len = sizeof(got);

	must(fi_av_lookup(n.av, known, &got, &len), "fi_av_lookup");
	if (len != sizeof(in) || memcmp(&got, &in, sizeof(in)) != 0)
		fail("the entry has become another's");
	if (fi_av_lookup(n.av, known + 1, &got, &len) == 0)
		fail("there is an entry too many");
}

int main(void)
{
	struct name peer = {.len = sizeof(struct sockaddr_in)};
	struct sockaddr_in in = in_named(KNOWN);

	alarm(LIMIT);
	need_network();
	node_open(&n, NULL);
	name = node_name(&n);
	memcpy(peer.bytes, &in, sizeof(in));
	known = node_insert(&n, &peer);
	raw_peers();
	check_entries();
	node_close(&n);
	return EXIT_SUCCESS;
}
