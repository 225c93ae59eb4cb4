/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call has accepted for a link over two slow wires arrives though its process, which lives, never calls the library
 * again; and so it does if all is encrypted.
 */
#define LIMIT 55

#include "hello.h"
#include "key_file.h"
#include "two_wires.h"

#define MOST     2000u
#define LEN_MAX  (1u << 18)
#define AWAIT_MS 20000

static struct lab lab;
static unsigned char bytes[LEN_MAX], got[LEN_MAX];
static size_t len_now;
static bool encrypted;

/* Short ones, and such as the kernel takes a part of. */
static const size_t lengths[] = {1000, 100000, LEN_MAX};

static void await(struct node *n, const char *what)
{
	struct event e = node_wait(n, AWAIT_MS, what);

	if (e.err)
		fail("%s ended with %s", what, fi_strerror(e.err));
}

/* Sends until a call finds no space. */
static void leave(struct node *n, fi_addr_t peer)
{
	unsigned int sent = 0;
	struct event e;

	MUST(n->cq, fi_send(n->ep, bytes, len_now, NULL, peer, NULL));
	await(n, "the first message");
	for (uint64_t end = now_ms() + 500; now_ms() < end;) /* both wires have rails by then */
		if (node_poll(n, &e))
			fail("an event of nothing");
	while (sent < MOST && !fi_send(n->ep, bytes, len_now, NULL, peer, NULL))
		sent++;
	tell(lab.end, &sent, sizeof(sent));
	hear(lab.end, &(char){0}, 1); /* beside the library */
}

static void receive(struct node *n)
{
	memset(got, 0, len_now);
	must(fi_recv(n->ep, got, len_now, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	await(n, "a message whose sender does not call");
	if (memcmp(got, bytes, len_now))
		fail("other bytes than those of the message");
}

static void take(struct node *n)
{
	unsigned int sent;

	receive(n);
	while (recv(lab.end, &sent, sizeof(sent), MSG_DONTWAIT) != sizeof(sent))
		fi_cq_read(n->cq, NULL, 0);
	while (sent--)
		receive(n);
	tell(lab.end, "", 1);
}

static void live(void *arg)
{
	struct node n;
	fi_addr_t peer;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	slow_wires("rate 50mbit burst 32kb latency 100ms");
	setenv("FI_WEFT_RAILS", "2", 1);
	if (encrypted)
		use_key("encrypt", "a key of a good length", 22);
	for (size_t i = 0; i < LEN_MAX; i++)
		bytes[i] = (unsigned char)(i * 13 + i / 257);
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which)
		take(&n);
	else
		leave(&n, peer);
	node_close(&n);
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
