/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of endpoints that talked to each other is nowhere in the memory of their process when all is closed: given by a file or
 * by the application, for proofs or for encryption.
 */
#include "key_pair.h"

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

static void look(void *arg)
{
	struct node n[2];
	unsigned int count;

	pair_open(n, arg);
	talk(n);
	if (!copies(false))
		fail("the search finds no key while there are some");
	for (int i = 0; i < 2; i++)
		node_close(&n[i]);
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
