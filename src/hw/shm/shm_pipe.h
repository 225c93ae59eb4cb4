/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipes of a worker. The sender of a long message puts the pages that hold it into a pipe (vmsplice); the
 * receiver copies them out, once. Finding the pages of another process, as process_vm_readv does, takes the kernel
 * about as long as copying them; finding a process's own pages takes a third of that. A pipe holds one message at
 * a time, or the first part of a longer one; the rest, or all of it without a pipe, is read by CMA. The kernel
 * limits what a user's pipes may hold in all: the workers of a host use half of it together.
 */
#ifndef WEFT_HW_SHM_PIPE_H
#define WEFT_HW_SHM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SHM_PIPES 8u /* of a worker, at most */
/* Capacity of each: whole pages, the first and the last one included. */
#define SHM_PIPE_BYTES (1u << 20)

struct shm_pipe {
	int ends[2];  /* to read, to write; while `open` */
	uint64_t key; /* by which peers find it; not 0 */
	bool open;
	bool busy; /* a message is in it */
};

/* All zero but for `links`: no pipe is open. */
struct shm_pipes {
	struct shm_pipe pipe[SHM_PIPES];
	unsigned int open;
	unsigned int links; /* of the worker */
	unsigned int forks; /* forked_count of the process that made them */
	size_t allowed;     /* bytes that the user's pipes may hold; 0: not read yet */
};

/* A link's use of pipes; all zero: none. */
struct shm_pipe_user {
	unsigned int last;   /* our pipe it used last: the peer has that one open */
	unsigned int misses; /* messages in a row that the peer did not read out */
	int fd;              /* reading end of the peer's pipe that we used last, */
	uint64_t key;        /* while this is not 0 */
};

/* Puts the begin of a message into a pipe. NULL: none is free, or can be made. */
struct shm_pipe *shm_pipe_put(struct shm_pipes *all, struct shm_pipe_user *u,
			      const struct iovec *iov, size_t count);
/* The message has ended: drops what the peer left in the pipe. */
void shm_pipe_end(struct shm_pipes *all, struct shm_pipe *p, struct shm_pipe_user *u);
void shm_pipe_close_all(struct shm_pipes *all);

/*
 * Receiver: reads the begin of a message out of the pipe `key` of process `pid`, at most until the local side is
 * full. The bytes; 0: the pipe cannot be used; -FI_ECONNRESET: the message was recalled.
 */
ssize_t shm_pipe_take(struct shm_pipe_user *u, pid_t pid, uint64_t key, const struct iovec *local,
		      size_t count);
void shm_pipe_forget(struct shm_pipe_user *u);

#endif
