/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thousand peers of one endpoint, over connections of the loopback. They come within a second, and are all served
 * soon; idle ones cost little memory, as malloc counts it, and no work of progress; neither do addresses that are never
 * used. Where descriptors run out, an operation says so before the application has none. The peers are sockets of another
 * process that speak the protocol.
 */
#include <fcntl.h>
#include <poll.h>

#include "hello.h"
#include "meter.h"
#include "talk.h"

#define PEERS        1000
#define ADDRESSES    4000
#define STORM_MS     1000 /* the peers connect within this time */
#define SERVED_MS    5000
#define ADDRESS_MOST 64   /* bytes of an address that is not used */
#define PEER_MOST    4096 /* bytes of a peer that is connected and idle */
#define FEW          10
#define IDLE_MOST    1.5    /* instructions beside a thousand idle peers, to those beside a few */
#define FILES        128    /* limit of descriptors */
#define SHORT_TEXT   "1000" /* ms that an attempt has then */
#define SHORT_MS     1000
#define FEW_FILES    28 /* limit that suffices for two endpoints */
#define FEW_MS       5000
#define SPARE        8 /* that the library leaves to the application then: a sixteenth */

static int ends[2];

/* The name of peer `i`: an address of the loopback that nobody listens at. */
static struct sockaddr_in name_of(unsigned int i)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)(1 + i % 60000)),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i / 60000)};
}

/* ---- The peers ---- */

static struct hello hello_of(unsigned int i)
{
	struct hello h = good_hello(i + 1);
	struct sockaddr_in in = name_of(i);

	h.serial = 1;
	h.name_format = FI_SOCKADDR_IN;
	h.name_len = sizeof(in);
	memcpy(h.name, &in, sizeof(in));
	return h;
}

static int call(const struct name *hub, unsigned int i)
{
	int sock = raw_connect_tcp(hub);
	struct hello h = hello_of(i);

	if (send(sock, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		fail("peer %u: no hello: %s", i, strerror(errno));
	return sock;
}

static void await_answer(int sock, unsigned int i)
{
	struct hello h;

	if (recv(sock, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.kind != HELLO_ACCEPT)
		fail("peer %u is not accepted", i);
}

/* A few peers first, then the others in a storm; all stay connected until the end. */
static void peers(void *arg)
{
	static int socks[PEERS];
	struct name hub;
	uint64_t begin;

	(void)arg;
	allow_files(PEERS + 64);
	hear(ends[1], &hub, sizeof(hub));
	for (unsigned int i = 0; i < FEW; i++) {
		socks[i] = call(&hub, i);
		await_answer(socks[i], i);
	}
	tell(ends[1], "", 1);
	hear(ends[1], &(char){0}, 1);
	begin = now_ms();
	for (unsigned int i = FEW; i < PEERS; i++)
		socks[i] = call(&hub, i);
	printf("%d peers have called within %llu ms\n", PEERS - FEW,
	       (unsigned long long)(now_ms() - begin));
	if (now_ms() - begin > STORM_MS)
		printf("which is slower than a storm\n");
	for (unsigned int i = FEW; i < PEERS; i++)
		await_answer(socks[i], i);
	begin = now_ms() - begin;
	printf("all are served after %llu ms\n", (unsigned long long)begin);
	if (begin > SERVED_MS)
		fail("%d peers are served after %llu ms", PEERS, (unsigned long long)begin);
	tell(ends[1], "", 1);
	hear(ends[1], &(char){0}, 1);
}

/* ---- The hub ---- */

static void insert(struct node *n, unsigned int first, unsigned int count)
{
	for (unsigned int i = first; i < first + count; i++) {
		struct sockaddr_in in = name_of(i);

		if (fi_av_insert(n->av, &in, 1, NULL, 0, NULL) != 1)
			fail("fi_av_insert refuses address %u", i);
	}
}

/* Makes progress until the peers say that they are done. */
static void serve(struct node *n)
{
	struct event e;

	while (recv(ends[0], &(char){0}, 1, MSG_DONTWAIT) != 1) {
		if (node_poll(n, &e))
			fail("an event of silent peers");
		sched_yield();
	}
}

static void check_addresses(struct node *n)
{
	size_t before = meter_heap(), each;

	insert(n, PEERS, ADDRESSES);
	each = (meter_heap() - before) / ADDRESSES;
	printf("%zu bytes for an address that is not used\n", each);
	if (each > ADDRESS_MOST)
		fail("%zu bytes for an address, more than %d", each, ADDRESS_MOST);
}

static void hub(void)
{
	struct name name;
	size_t before, each;
	double few, many;
	struct node n;

	allow_files(PEERS + 256);
	node_open(&n, NULL);
	insert(&n, 0, PEERS);
	check_addresses(&n);
	name = node_name(&n);
	tell(ends[0], &name, sizeof(name));
	serve(&n);
	few = meter_empty_read(n.cq);
	before = meter_heap();
	tell(ends[0], "", 1);
	serve(&n);
	each = (meter_heap() - before) / (PEERS - FEW);
	many = meter_empty_read(n.cq);
	printf("%zu bytes for a peer that is connected and idle\n", each);
	printf("an empty read: %.1f instructions beside %d peers, %.1f beside %d\n", few, FEW, many,
	       PEERS);
	if (each > PEER_MOST)
		fail("%zu bytes for a peer, more than %d", each, PEER_MOST);
	if (many > IDLE_MOST * few)
		fail("an empty read costs more beside %d peers than beside %d", PEERS, FEW);
	tell(ends[0], "", 1);
	node_close(&n);
}

/* ---- Descriptors ---- */

/* A listener that never answers, at each address of the loopback. */
static struct sockaddr_in open_silent(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
	socklen_t len = sizeof(in);
	int listener = tcp_socket();

	if (bind(listener, (struct sockaddr *)&in, sizeof(in)) || listen(listener, FILES) ||
	    getsockname(listener, (struct sockaddr *)&in, &len))
		fail("no listener: %s", strerror(errno));
	return in;
}

/*
 * Connects to peers that do not answer until descriptors are short: operations for which none becomes free within the
 * time of an attempt fail, and some descriptors are left.
 */
static void run_short(void *arg)
{
	int log = open("/tmp", O_TMPFILE | O_RDWR, 0600), left = 0;
	struct sockaddr_in in = open_silent();
	char text[8192] = "";
	uint64_t end = now_ms() + 2 * SHORT_MS;
	fi_addr_t peers[FILES];
	struct node n;
	ssize_t ret;

	(void)arg;
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_WEFT_PEER_TIMEOUT", SHORT_TEXT, 1);
	if (log < 0 || dup2(log, STDERR_FILENO) < 0)
		fail("no file for the log");
	node_open(&n, NULL);
	allow_files(FILES);
	for (uint32_t i = 1; i <= FILES; i++) {
		fi_addr_t peer;

		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
		if (fi_av_insert(n.av, &in, 1, &peer, 0, NULL) != 1)
			fail("fi_av_insert refuses an address");
		peers[i - 1] = peer;
	}
	for (uint32_t i = 0; (ret = fi_send(n.ep, text, 8, NULL, peers[i], NULL)) != -FI_EMFILE;
	     i = (i + 1) % FILES)
		if (now_ms() > end)
			fail("no send fails for want of a descriptor: %s", fi_strerror((int)-ret));
	while (dup(log) >= 0)
		left++;
	if (pread(log, text, sizeof(text) - 1, 0) < 0)
		fail("no log");
	printf("with %d descriptors: %s, %d left\n", FILES, fi_strerror((int)-ret), left);
	if (left < SPARE - 1)
		fail("%d descriptors were left", left);
	if (!strstr(text, "ulimit -n") || !strstr(text, " of 128 "))
		fail("the log tells \"%s\"", text);
	node_close(&n);
}

/* Two endpoints of one process open, and reach each other, with as few as this. */
static void run_few(void *arg)
{
	uint64_t end;
	struct node a, b;
	struct name name;
	struct event e;
	int left = 2;
	fi_addr_t to;
	ssize_t ret;
	char in[8];

	(void)arg;
	allow_files(FEW_FILES);
	node_open(&a, NULL);
	node_open(&b, NULL);
	name = node_name(&b);
	must(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	to = node_insert(&a, &name);
	while ((ret = fi_send(a.ep, "few", 4, NULL, to, NULL)) == -FI_EAGAIN)
		fi_cq_read(b.cq, NULL, 0);
	must(ret, "fi_send");
	for (end = now_ms() + FEW_MS; left && now_ms() < end;)
		for (int i = 0; i < 2; i++)
			if (node_poll(i ? &b : &a, &e))
				left = e.err ? 99 : left - 1;
	if (left)
		fail("no message arrived with %d descriptors", FEW_FILES);
	node_close(&b);
	node_close(&a);
}

int main(void)
{
	pid_t child;

	alarm(LIMIT);
	need_network();
	setenv("FI_TCP_IFACE", "lo", 1);
	finish(start("few descriptors", run_few, NULL), "few descriptors");
	finish(start("short of descriptors", run_short, NULL), "short of descriptors");
	wire(ends);
	child = start("peers", peers, NULL);
	hub();
	finish(child, "peers");
	return EXIT_SUCCESS;
}
