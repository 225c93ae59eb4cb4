/* SPDX-License-Identifier: BSD-2-Clause */
/* Hellos and connections of a hostile peer. */
#ifndef FAULT_HOSTILE_HELLOS_H
#define FAULT_HOSTILE_HELLOS_H

#include "hostile_acts.h"

static void first_words(struct run *r, struct raw_link *unused)
{
	struct raw_link *l = run_connect(r);
	struct hello h = foe_hello(r, rng_below(&r->rng, NAMES));

	(void)unused;
	if (!l)
		return;
	h.kind = rng_below(&r->rng, 7);
	h.error = (uint32_t)rng_bits(&r->rng, 32);
	h.data_len = (uint32_t)rng_bits(&r->rng, 10);
	for (size_t i = 0; rng_one_in(&r->rng, 2) && i < sizeof(h.nic); i++)
		h.nic[i] = (uint8_t)rng_next(&r->rng);
	raw_link_join(l, &h, 2);
}

/* A hello with a flaw, or a file that is no ring. */
static void flawed_words(struct run *r, struct raw_link *unused)
{
	struct raw_link *l = run_connect(r);
	char bytes[sizeof(struct hello)] = {0};

	(void)unused;
	if (!l)
		return;
	if (l->inside) {
		misbehave(l->sock, rng_below(&r->rng, MANNERS), 1 + rng_below(&r->rng, NAMES));
		return;
	}
	memcpy(bytes, &(struct hello){.magic = MAGIC, .version = VERSION}, 8);
	for (uint32_t n = rng_below(&r->rng, 6); n; n--)
		bytes[rng_below(&r->rng, sizeof(bytes))] = (char)rng_next(&r->rng);
	raw_link_bytes(l, bytes, rng_below(&r->rng, sizeof(bytes)) + 1);
}

static void many_connections(struct run *r, struct raw_link *unused)
{
	(void)unused;
	for (uint32_t n = rng_below(&r->rng, rng_one_in(&r->rng, 20) ? LINKS_MAX : 16); n; n--)
		if (rng_one_in(&r->rng, 5) ? !run_join(r, 5) : !run_connect(r))
			return;
}

static void hello_by_name(struct run *r, const struct name *name)
{
	struct raw_link *l = run_connect(r);
	struct hello h = foe_hello(r, 1);

	if (!l)
		return;
	memset(h.name, 0, sizeof(h.name));
	memcpy(h.name, name->bytes, h.name_len = (uint32_t)name->len);
	raw_link_join(l, &h, STEP_MS);
}

static void name_of_an_honest_peer(struct run *r, struct raw_link *unused)
{
	(void)unused;
	hello_by_name(r, &scene->peer[rng_below(&r->rng, PEERS)]);
}

static void name_of_the_endpoint(struct run *r, struct raw_link *unused)
{
	(void)unused;
	hello_by_name(r, &scene->endpoint);
}

/* Many wrong keys, from the address that honest peers have, too. */
static void keys_tried_beside_others(struct run *r, struct raw_link *unused)
{
	struct sockaddr_in in;
	uint32_t from = r->from;
	struct raw_link *l;

	(void)unused;
	memcpy(&in, scene->peer[0].bytes, sizeof(in));
	r->from = ntohl(in.sin_addr.s_addr);
	l = run_join(r, STEP_MS);
	r->from = from;
	for (uint64_t key = 1; l && key < 200; key++)
		put(l, WIRE_PUT, DATA, (uint32_t)key, 0, key, 8);
}

/* The endpoint connects to the hostile peer, which answers with a hello of any kind. */
static void answers_an_attempt(struct run *r, struct raw_link *unused)
{
	struct pollfd p = {.fd = r->listener, .events = POLLIN};
	struct hello h, mine = foe_hello(r, 0);
	struct raw_link *l;
	int fds[4], fd;

	(void)unused;
	add(&scene->kicks);
	if (r->count == LINKS_MAX || poll(&p, 1, 5) != 1)
		return;
	l = r->link[r->count++] = calloc(1, sizeof(*l));
	l->inside = !strcmp(provider(), "shm");
	l->sock = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
	if (l->sock < 0 || !raw_link_answer(l, &h, fds, STEP_MS))
		return;
	mine.kind = rng_one_in(&r->rng, 2) ? HELLO_ACCEPT : rng_below(&r->rng, 7);
	mine.error = (uint32_t)rng_bits(&r->rng, 20);
	if (mine.kind == HELLO_ACCEPT || (l->inside && fds[0] >= 0))
		raw_link_opened(l, &h, fds);
	fd = l->inside ? raw_ring_make(&l->own, 1) : -1;
	raw_link_hello(l, &mine, fd);
	if (fd >= 0)
		close(fd);
	l->open = l->open && mine.kind == HELLO_ACCEPT;
	for (uint32_t n = rng_below(&r->rng, 10); n; n--)
		answers_to_nothing(r, l);
	obey_answers(l);
}

#endif
