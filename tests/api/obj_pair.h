/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes for a case: the parent goes on, its child runs a function; a socket between them
 * swaps addresses and lets one wait for the other.
 */
#ifndef TESTS_API_OBJ_PAIR_H
#define TESTS_API_OBJ_PAIR_H

#include "obj.h"

struct obj_pair {
	pid_t pid; /* of the child; 0 in the child */
	int fd;
};

/* Before any object is opened. The child ends where `run` returns. */
static inline struct obj_pair obj_split(void (*run)(struct obj_pair *))
{
	struct obj_pair pair;
	int fds[2];

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
	fflush(NULL);
	pair.pid = fork();
	MUST(pair.pid >= 0, "fork");
	pair.fd = fds[pair.pid == 0];
	close(fds[pair.pid != 0]);
	if (pair.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(OBJ_CASE_S);
		run(&pair);
		exit(0);
	}
	return pair;
}

static inline void obj_put(struct obj_pair *pair, const void *buf, size_t len)
{
	MUST(send(pair->fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len, "the other process is gone");
}

static inline void obj_get(struct obj_pair *pair, void *buf, size_t len)
{
	struct pollfd p = {.fd = pair->fd, .events = POLLIN};
	size_t have = 0;

	while (have < len) {
		ssize_t n;

		MUST(poll(&p, 1, OBJ_PATIENCE_MS) == 1, "the other process says nothing");
		n = read(pair->fd, (char *)buf + have, len - have);
		MUST(n > 0, "the other process is gone");
		have += (size_t)n;
	}
}

static inline void obj_say(struct obj_pair *pair)
{
	obj_put(pair, "!", 1);
}

static inline void obj_hear(struct obj_pair *pair)
{
	char mark;

	obj_get(pair, &mark, 1);
}

/* Both are here; nobody makes progress meanwhile. */
static inline void obj_meet(struct obj_pair *pair)
{
	obj_say(pair);
	obj_hear(pair);
}

/* Sends the address of `fid` across and inserts the other's. */
static inline fi_addr_t obj_swap(struct obj_pair *pair, struct fid *fid, struct fid_av *av)
{
	struct obj_name name = obj_name(fid);

	obj_put(pair, &name, sizeof(name));
	obj_get(pair, &name, sizeof(name));
	return obj_insert(av, &name);
}

/* At the end of the parent: the child has to have ended well too. */
static inline void obj_join(struct obj_pair *pair)
{
	int status = obj_reap(pair->pid);

	close(pair->fd);
	if (status == OBJ_SKIP)
		_exit(OBJ_SKIP);
	MUST(status == 0, "the other process failed");
}

#endif
