/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipes of a worker: who offers a long message puts the pages that hold it into one (vmsplice), from where the peer
 * copies them, once. To find the pages of another process, as process_vm_readv does, takes the kernel about as long
 * as to copy them; a process's own are found in a third of that time, wherever both run. A message at a time, and of
 * one longer than a pipe the first part; the rest is fetched, and all of it where there is no pipe.
 *
 * What a user's pipes may hold in all is limited, and other programs need some, too: the workers of a host take half
 * of it together at most.
 */
#ifndef WEFT_HW_SHM_PIPE_H
#define WEFT_HW_SHM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SHM_PIPES 8u /* of a worker, at most */
/* Which hold so much each: whole pages, the first and the last one, too. */
#define SHM_PIPE_BYTES (1u << 20)

struct shm_pipe {
	int ends[2];  /* to read, to write; while `open` */
	uint64_t key; /* what peers find it by; not 0 */
	bool open;
	bool busy; /* a message is in it */
};

/* All zero but for `links`: none made yet. */
struct shm_pipes {
	struct shm_pipe pipe[SHM_PIPES];
	unsigned int open;
	unsigned int links; /* of the worker */
	unsigned int forks; /* forked_count of the process that made them */
	size_t allowed;     /* bytes that the user's pipes may hold; 0: not asked yet */
};

/* What a link knows of them; all zero: nothing. */
struct shm_pipe_user {
	unsigned int last;   /* ours that it used last: the peer knows that one */
	unsigned int misses; /* messages in a row that the peer did not take out */
	int fd;              /* the end to read of the one of the peer's that we used last, */
	uint64_t key;        /* while this is not 0 */
};

/* Puts the begin of a message into one of the worker's. NULL: none is free, or to be had; then it is fetched. */
struct shm_pipe *shm_pipe_put(struct shm_pipes *all, struct shm_pipe_user *u,
			      const struct iovec *iov, size_t count);
/* The peer needs it no more: what it left there is dropped. */
void shm_pipe_end(struct shm_pipes *all, struct shm_pipe *p, struct shm_pipe_user *u);
void shm_pipe_close_all(struct shm_pipes *all);

/*
 * Peer: the begin of a message out of the pipe `key` of process `pid`, at most until the local side is full. The
 * bytes; 0: fetch it all; -FI_ECONNRESET: it was recalled.
 */
ssize_t shm_pipe_take(struct shm_pipe_user *u, pid_t pid, uint64_t key, const struct iovec *local,
		      size_t count);
void shm_pipe_forget(struct shm_pipe_user *u);

#endif
