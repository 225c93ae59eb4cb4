/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fork(2) does to the library.
 *
 * Descriptors that a child must not keep: peers detect a process's death by the end of its sockets, so copies in a living child
 * would hide it. The child closes them right after fork. Its copies of the library's objects are then unusable; the parent's
 * are not affected.
 *
 * The locks of the process, as opposed to those of an object: a child may use the library anew, and must find none that a
 * thread of its parent held.
 */
#ifndef WEFT_BASE_FORKED_H
#define WEFT_BASE_FORKED_H

#include "base/apart.h"
#include "base/lock.h"

/*
 * Returns the number of forks between the first process of the program and this one. An object
 * created under another count belongs to another process: do not touch it.
 */
unsigned int forked_count(void);

/* Notes a descriptor for closing in a child. From any thread. Returns 0 or -FI_ENOMEM. */
int forked_guard(int fd);
/* Closes a guarded descriptor in this process. */
void forked_close(int fd);
/* Removes the note: the caller closes the descriptor right after this. */
void forked_release(int fd);

/*
 * All locks of the process, in the order in which they are taken together. Fork takes those before FORKED_RENEWED, so the
 * child finds what they guard whole; in the child all are free. Under none of them a thread may fork.
 */
enum forked_lock {
	FORKED_AV_NAMES,        /* names of shared address vectors; before a domain's locks */
	FORKED_FLUSHER_OPENING, /* the flusher's thread and its users */
	FORKED_FLUSHER,         /* links that have something to send */
	FORKED_TRACE,           /* the file of a trace, and buffers to write it */
	FORKED_DEVICES,         /* open RDMA devices */
	FORKED_CACHE_OPENING,   /* the cache of registrations */
	FORKED_LOG,             /* the imported log */
	FORKED_PARAMS,          /* parameters defined at run time */
	FORKED_OPENED,          /* open fabrics and domains */
	FORKED_INTERFACES,      /* addresses of this host's interfaces */
	FORKED_NETLINK,         /* calls of libnl, which has locks of its own */
	FORKED_CLOSER,          /* descriptors that its thread is to close */
	FORKED_DESCRIPTORS,     /* those of forked_guard */
	/* Fork does not wait for these: what they guard is the parent's alone. */
	FORKED_RENEWED,
	FORKED_MONITOR =
		FORKED_RENEWED, /* the memory monitor; may be taken within the allocator, which fork waits for */
	FORKED_STATS, /* workers to be reported; held for long at exit */
	FORKED_ELEMENTS, /* elements of atomic operations: this lock and the next FORKED_ELEMENTS_COUNT - 1 */
	FORKED_LOCKS = FORKED_ELEMENTS + 64
};
#define FORKED_ELEMENTS_COUNT (FORKED_LOCKS - FORKED_ELEMENTS)

struct forked_line {
	struct lock lock;
} __attribute__((aligned(APART)));

extern struct forked_line forked_locks[FORKED_LOCKS];

static inline void forked_take(unsigned int which)
{
	lock_take(&forked_locks[which].lock);
}

static inline bool forked_try(unsigned int which)
{
	return lock_try(&forked_locks[which].lock);
}

static inline void forked_give(unsigned int which)
{
	lock_give(&forked_locks[which].lock);
}

#endif
