/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that sends over two slow wires ends without closing its endpoint as soon as all is reported: all of it arrives, and
 * so it is if all is encrypted.
 */
#define LIMIT 55

#include "hello.h"
#include "key_file.h"
#include "two_wires.h"

#define COUNT    40u
#define LEN_MAX  (1u << 18)
#define AWAIT_MS 20000

static struct lab lab;
static unsigned char bytes[LEN_MAX];

/* Short ones, and such as fill the windows. */
static const size_t lengths[] = {1000, 100000, LEN_MAX};

static void await(struct node *n, const char *what)
{
	struct event e = node_wait(n, AWAIT_MS, what);

	if (e.err)
		fail("%s ended with %s", what, fi_strerror(e.err));
}

static void send_all(struct node *n, fi_addr_t peer, size_t len)
{
	unsigned int sent = 0, done = 0;
	struct event e;

	MUST(n->cq, fi_send(n->ep, bytes, 8, NULL, peer, NULL));
	await(n, "the first message");
	for (uint64_t end = now_ms() + 500; now_ms() < end;) /* both wires have rails by then */
		if (node_poll(n, &e))
			fail("an event of nothing");
	for (uint64_t end = now_ms() + AWAIT_MS; done < COUNT;) {
		if (sent < COUNT && !fi_send(n->ep, bytes, len, NULL, peer, NULL))
			sent++;
		if (!node_poll(n, &e))
			continue;
		if (e.err || now_ms() > end)
			fail("message %u: %s", done, fi_strerror(e.err));
		done++;
	}
	_exit(EXIT_SUCCESS);
}

static size_t len_now;
static bool encrypted;

static void exchange(void *arg)
{
	struct node n;
	fi_addr_t peer;

	(void)arg;
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which == 0)
		send_all(&n, peer, len_now);
	for (unsigned int i = 0; i <= COUNT; i++)
		must(fi_recv(n.ep, bytes, LEN_MAX, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (unsigned int i = 0; i <= COUNT; i++)
		await(&n, "a message");
	tell(lab.end, "", 1);
	node_close(&n);
}

/* The first host outlives the process that sends. */
static void live(void *arg)
{
	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	slow_wires("rate 50mbit burst 32kb latency 100ms");
	setenv("FI_WEFT_RAILS", "2", 1);
	if (encrypted)
		use_key("encrypt", "a key of a good length", 22);
	if (lab.which) {
		exchange(NULL);
		return;
	}
	finish(start("sender", exchange, NULL), "sender");
	hear(lab.end, &(char){0}, 1);
}

int main(void)
{
	alarm(LIMIT);
	need_lab();
	need_network();
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		len_now = lengths[i];
		encrypted = false;
		two_hosts(live);
		encrypted = has_library("encrypt");
		if (encrypted)
			two_hosts(live);
	}
	return EXIT_SUCCESS;
}
