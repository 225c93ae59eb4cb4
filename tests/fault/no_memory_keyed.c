/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=180
 * An endpoint with a key, and one that encrypts, without memory for what other processes' operations need: served.h.
 */
#define LIMIT 170

#include "served.h"

int main(void)
{
	alarm(LIMIT);
	need_provider();
	need_memory();
	if (!has_library("encrypt")) {
		puts("no library for keys and encryption here");
		return 77;
	}
	served_walk(served_here, strcmp(provider(), "tcp") ? "prove" : "encrypt", 20);
	return EXIT_SUCCESS;
}
