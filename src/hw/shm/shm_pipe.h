/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipes of a worker. The sender of a long message puts the pages that hold it into a pipe
 * (vmsplice); the receiver copies them out of the pipe. Looking up the pages of another process
 * (process_vm_readv) takes the kernel about as long as copying them; looking up a process's own
 * pages takes a third of that. A pipe holds one message at a time, or the first part of a longer
 * one. The receiver reads the rest by CMA, and the whole message if no pipe is free. The kernel
 * limits the bytes in all pipes of one user; the workers of a host together use at most half of
 * that limit.
 */
#ifndef WEFT_HW_SHM_PIPE_H
#define WEFT_HW_SHM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/trial.h"

#define SHM_PIPES 8u /* at most, per worker */
/* Capacity of a pipe in bytes. A partly used first or last page counts as a whole one. */
#define SHM_PIPE_BYTES (1u << 20)

struct shm_pipe {
	int ends[2];  /* [0] to read, [1] to write; valid if `open` */
	uint64_t key; /* peers find the pipe by this key; not 0 */
	bool open;
	bool busy; /* holds a message that has not ended */
};

/* All zero except `links`: no pipe is open. */
struct shm_pipes {
	struct shm_pipe pipe[SHM_PIPES];
	unsigned int open;
	unsigned int links; /* open shm links of the worker */
	unsigned int forks; /* forked_count() when the last pipe was made */
	size_t allowed; /* kernel's limit for all pipes of the user, in bytes; 0: not read yet */
	struct trial making; /* of another pipe */
};

/* A link's use of pipes. All zero: none so far. */
struct shm_pipe_user {
	unsigned int last;   /* index of our last pipe for this peer, which the peer has open */
	unsigned int misses; /* consecutive messages that the peer did not read completely */
	int fd;       /* read end of the peer's pipe that we used last; valid if `key` is not 0 */
	uint64_t key; /* key of that pipe; 0: none is open */
};

/* Puts the start of a message into a pipe. Returns NULL if no pipe is free and none can be made. */
struct shm_pipe *shm_pipe_put(struct shm_pipes *all, struct shm_pipe_user *u,
			      const struct iovec *iov, size_t count);
/* The message has ended. If the peer left bytes in the pipe, closes the pipe. */
void shm_pipe_end(struct shm_pipes *all, struct shm_pipe *p, struct shm_pipe_user *u);
void shm_pipe_close_all(struct shm_pipes *all);

/*
 * Receiver: reads the start of a message out of the pipe `key` of process `pid`, at most until the
 * local side is full. Returns the bytes read; 0: the pipe cannot be used; -FI_ECONNRESET: the
 * sender recalled the message.
 */
ssize_t shm_pipe_take(struct shm_pipe_user *u, pid_t pid, uint64_t key, const struct iovec *local,
		      size_t count);
void shm_pipe_forget(struct shm_pipe_user *u);

#endif
