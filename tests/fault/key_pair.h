/* SPDX-License-Identifier: BSD-2-Clause */
/* Two endpoints of one process with a key, given by a file or by the application, that talk to each other. */
#ifndef FAULT_KEY_PAIR_H
#define FAULT_KEY_PAIR_H

#include <stddef.h>

static size_t pair_vectors; /* FI_AV_AUTH_KEY: the address vectors hold the key */
#define NODE_KEYS pair_vectors

#include "key_file.h"
#include "node.h"

#define LEN     48u
#define WAIT_MS 5000

/* The byte of the key, which lies nowhere as it is. */
static inline unsigned char byte_of(size_t i)
{
	static volatile unsigned char factor = 37;

	return (unsigned char)(i * factor + i / 3 + 11);
}

static inline void make_key(unsigned char key[LEN])
{
	for (size_t i = 0; i < LEN; i++)
		key[i] = byte_of(i);
}

/* The endpoint gets the key by its attributes. */
static inline void give_key(struct node *n)
{
	must(fi_close(&n->ep->fid), "fi_close");
	n->info->ep_attr->auth_key = malloc(LEN);
	n->info->ep_attr->auth_key_size = LEN;
	make_key(n->info->ep_attr->auth_key);
	must(fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
}

/* Inserts the name of the other one. `handle`: of the key that the vector holds, if it does. */
static inline fi_addr_t pair_insert(struct node *n, struct node *other, fi_addr_t handle)
{
	struct name name = node_name(other);
	fi_addr_t addr = handle;

	if (fi_av_insert(n->av, name.bytes, 1, &addr, pair_vectors ? FI_AUTH_KEY : 0, NULL) != 1)
		fail("fi_av_insert refuses an address");
	return addr;
}

static inline void talk(struct node n[2], fi_addr_t handle)
{
	fi_addr_t to = pair_insert(&n[0], &n[1], handle);
	uint64_t end = now_ms() + WAIT_MS;
	unsigned int left = 2;
	struct event e;
	char got;

	pair_insert(&n[1], &n[0], handle);
	must(fi_recv(n[1].ep, &got, 1, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while (fi_send(n[0].ep, "x", 1, NULL, to, NULL))
		if (node_poll(&n[1], &e) || now_ms() > end)
			fail("no connection");
	while (left) {
		for (int i = 0; i < 2; i++)
			if (node_poll(&n[i], &e)) {
				if (e.err)
					fail("an operation ends with %s", fi_strerror(e.err));
				left--;
			}
		if (now_ms() > end)
			fail("no message");
	}
}

/* `auth`: the key is in a file, and FI_WEFT_AUTH is that; NULL: it is the endpoints' own. */
static inline void pair_open(struct node n[2], const char *auth)
{
	unsigned char key[LEN];

	make_key(key);
	if (auth)
		use_key(auth, key, LEN);
	for (int i = 0; i < 2; i++) {
		node_create(&n[i], NULL);
		if (!auth)
			give_key(&n[i]);
		node_bind(&n[i]);
	}
	explicit_bzero(key, sizeof(key));
}

#endif
