/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of endpoints that talked to each other is nowhere in the memory of their process when all is closed: given by a file or
 * by the application, for proofs or for encryption.
 */
#include "key_file.h"
#include "node.h"

#define LEN     48u
#define WAIT_MS 5000

/* The byte of the key, which lies nowhere as it is. */
static unsigned char byte_of(size_t i)
{
	static volatile unsigned char factor = 37;

	return (unsigned char)(i * factor + i / 3 + 11);
}

static void make_key(unsigned char key[LEN])
{
	for (size_t i = 0; i < LEN; i++)
		key[i] = byte_of(i);
}

static bool is_key(const unsigned char *at)
{
	size_t i = 0;

	while (i < LEN && at[i] == byte_of(i))
		i++;
	return i == LEN;
}

/* Counts the copies in memory that the process can write, but for the stack of this function. */
static unsigned int copies(bool heap_alone)
{
	const unsigned char first = byte_of(0);
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int found = 0;
	char line[512], mode[8];
	unsigned long from, to;

	if (!maps)
		fail("no /proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || strncmp(mode, "rw", 2) ||
		    strstr(line, "[v") || (heap_alone && strstr(line, "[stack]")))
			continue;
		for (const unsigned char *at = (const unsigned char *)from;
		     at + LEN <= (const unsigned char *)to; at++)
			found += *at == first && is_key(at);
	}
	fclose(maps);
	return found;
}

/* The endpoint gets the key by its attributes. */
static void give_key(struct node *n)
{
	must(fi_close(&n->ep->fid), "fi_close");
	n->info->ep_attr->auth_key = malloc(LEN);
	n->info->ep_attr->auth_key_size = LEN;
	make_key(n->info->ep_attr->auth_key);
	must(fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
}

static void talk(struct node n[2])
{
	struct name name = node_name(&n[1]);
	fi_addr_t to = node_insert(&n[0], &name);
	uint64_t end = now_ms() + WAIT_MS;
	unsigned int left = 2;
	struct event e;
	char got;

	name = node_name(&n[0]);
	node_insert(&n[1], &name);
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

static void look(void *arg)
{
	const char *auth = arg;
	unsigned char key[LEN];
	struct node n[2];
	unsigned int count;

	make_key(key);
	if (auth)
		use_key(auth, key, LEN);
	for (int i = 0; i < 2; i++) {
		node_create(&n[i], NULL);
		if (!auth)
			give_key(&n[i]);
		node_bind(&n[i]);
	}
	talk(n);
	if (!copies(false))
		fail("the search finds no key while there are some");
	for (int i = 0; i < 2; i++)
		node_close(&n[i]);
	explicit_bzero(key, sizeof(key));
	count = copies(true);
	if (count)
		fail("%u copies of the key are left", count);
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	if (!has_library("prove")) {
		puts("no library for keys here");
		return 77;
	}
	finish(start("with a key of its own", look, NULL), "with a key of its own");
	finish(start("prove", look, (void *)"prove"), "prove");
	if (has_library("encrypt") && strcmp(provider(), "shm"))
		finish(start("encrypt", look, (void *)"encrypt"), "encrypt");
	return EXIT_SUCCESS;
}
