/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipe of a link: who offers a long message puts the pages that hold it into a pipe (vmsplice), from where the
 * peer copies them, once. To find the pages of another process, as process_vm_readv does, takes the kernel longer
 * than to copy them; a process's own are found in a tenth of that time, wherever both run. One message at a time, and
 * of a message longer than the pipe the first part; the rest is fetched, and all of it where there is no pipe.
 */
#ifndef WEFT_HW_SHM_SHM_PIPE_H
#define WEFT_HW_SHM_SHM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SHM_PIPES_MAX 16u /* of a port */

/* Ours to the peer; zero but for `count`: none yet. */
struct shm_pipe {
	unsigned int *count; /* of the port's that are open */
	int ends[2];         /* to read, to write; while `open` */
	uint64_t key;        /* what the peer finds it by; not 0 */
	bool open;
	bool busy;           /* a message is in it */
	unsigned int misses; /* messages in a row that the peer did not take out */
};

/* The peer's to us, as we found it last; all zero: none. */
struct shm_pipe_end {
	int fd; /* while key is not 0 */
	uint64_t key;
};

/* Puts the begin of a message into the pipe: its key, or 0. */
uint64_t shm_pipe_put(struct shm_pipe *p, const struct iovec *iov, size_t count);
/* The peer needs it no more: what it left there is dropped. */
void shm_pipe_end(struct shm_pipe *p);
void shm_pipe_close(struct shm_pipe *p);

/*
 * Peer: the begin of a message out of the pipe `key` of process `pid`, at most until the local side is full. The
 * bytes; 0: fetch it all; -FI_ECONNRESET: it was withdrawn meanwhile.
 */
ssize_t shm_pipe_take(struct shm_pipe_end *e, pid_t pid, uint64_t key, const struct iovec *local,
		      size_t count);
void shm_pipe_forget(struct shm_pipe_end *e);

#endif
