/* SPDX-License-Identifier: BSD-2-Clause */
/* Two hosts, joined by two slow wires that are used together, for messages of several lengths, encrypted and not. */
#ifndef FAULT_RAILS_LENGTHS_H
#define FAULT_RAILS_LENGTHS_H

#include "hello.h"
#include "key_file.h"
#include "two_wires.h"

#define LEN_MAX  (1u << 18)
#define AWAIT_MS 20000

static struct lab lab;
static unsigned char bytes[LEN_MAX];
static size_t len_now;
static bool encrypted;

/* Short ones, and such as fill the windows, of which the kernel takes a part. */
static const size_t lengths[] = {1000, 100000, LEN_MAX};

static inline void await(struct node *n, const char *what)
{
	struct event e = node_wait(n, AWAIT_MS, what);

	if (e.err)
		fail("%s ended with %s", what, fi_strerror(e.err));
}

/* Enters the host of `l`, whose endpoints use both wires. */
static inline void enter(const struct lab *l)
{
	lab = *l;
	lab_enter(&lab);
	second_wire(&lab);
	slow_wires("rate 50mbit burst 32kb latency 100ms");
	setenv("FI_WEFT_RAILS", "2", 1);
	if (encrypted)
		use_key("encrypt", "a key of a good length", 22);
}

/* Sends a first message of `len` bytes, and waits until both wires have rails. */
static inline void begin(struct node *n, fi_addr_t peer, size_t len)
{
	struct event e;

	MUST(n->cq, fi_send(n->ep, bytes, len, NULL, peer, NULL));
	await(n, "the first message");
	for (uint64_t end = now_ms() + 500; now_ms() < end;)
		if (node_poll(n, &e))
			fail("an event of nothing");
}

/* Runs `live` on both hosts for each length, in len_now. */
static inline void each_length(void (*live)(void *lab))
{
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		len_now = lengths[i];
		encrypted = false;
		two_hosts(live);
		encrypted = has_library("encrypt");
		if (encrypted)
			two_hosts(live);
	}
}

#endif
