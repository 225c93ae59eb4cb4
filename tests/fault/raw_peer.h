/* SPDX-License-Identifier: BSD-2-Clause */
/* A raw peer in shared memory with an endpoint, for tests of what it can do there; each is a process. */
#ifndef FAULT_RAW_PEER_H
#define FAULT_RAW_PEER_H

#include "raw_link.h"

static int ends[2]; /* of a socket pair: the test's end, the other processes' end */
static struct name server_name;

/* Ends the test where endpoints share no memory. */
static inline void need_memory(void)
{
	need_provider();
	if (strcmp(provider(), "tcp"))
		return;
	printf("nothing of tcp is in shared memory\n");
	exit(77);
}

static inline void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		fail("a process does not stop");
}

#endif
