/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports when memory of this process is unmapped, moved or discarded, by any means. The kernel
 * reports each change to a userfaultfd and blocks the changing thread until the watch has read it.
 * Accesses never fault. A thread listens and holds the lock meanwhile. So no holder of the lock may
 * free or unmap memory, wait for a thread that may, or take a lock under which a thread does.
 *
 * If the application has imported a memory monitor, that one tells of changes instead: monitor.c.
 */
#ifndef WEFT_BASE_WATCH_H
#define WEFT_BASE_WATCH_H

#include <pthread.h>
#include <rdma/fi_ext.h>
#include <stdbool.h>
#include <stdint.h>

struct watch {
	struct fid_mem_monitor *monitor; /* imported; NULL: the kernel reports */
	int fd;                          /* the userfaultfd */
	int stop;                        /* eventfd; once readable, the thread closes fd and ends */
	pthread_t thread;
	pthread_mutex_t *lock;
	/*
	 * The contents of these addresses are gone, or will be soon. Called with `lock` held. The
	 * changing thread may continue a moment before, but no thread gets the lock in between.
	 */
	void (*changed)(void *arg, uintptr_t from, uintptr_t to);
	void *arg;
};

/* Set `lock`, `changed`, `arg` before. 0 or a negative error; -FI_EPERM: the kernel forbids it. */
int watch_open(struct watch *w);
void watch_close(struct watch *w);
/* Starts watching the pages of these bytes. Returns false if they cannot be watched. Not locked. */
bool watch_arm(const struct watch *w, uintptr_t from, uintptr_t to);
/* Ends one watch_arm of the same bytes, in a monitor, which counts them. Not locked. */
void watch_leave(const struct watch *w, uintptr_t from, uintptr_t to);
/* Stops watching the pages of these bytes, in the kernel. Locked. */
void watch_disarm(const struct watch *w, uintptr_t from, uintptr_t to);
/* Have all changes of watched memory been reported? If not, an address may already refer to other memory. Locked. */
bool watch_quiet(const struct watch *w);
/* Is the memory that it was when it was armed, as far as a monitor knows? Not locked. */
bool watch_valid(const struct watch *w, uintptr_t from, uintptr_t to);
/* A monitor tells of a change: calls `changed` for the pages of these bytes. Not locked. */
void watch_report(struct watch *w, uintptr_t from, uintptr_t to);

/* Round an address down and up to a page boundary; in the last page, up is its beginning. */
uintptr_t watch_floor(uintptr_t at);
uintptr_t watch_ceil(uintptr_t at);

/*
 * ---- Monitors ----
 *
 * A memory monitor that the application has imported into "mr_cache": it, not the kernel, tells
 * which memory is unmapped. One at a time, for one watch. Its functions may call `notify`, and no
 * other call of the library: they are called without monitor.c's lock and the watch's, but a domain
 * may be locked, and `opening` of verbs_cache.c is at start and stop. fi_mr(3)
 */
/*
 * Takes over the application's monitor until it is closed. 0; -FI_EINVAL: it lacks functions;
 * -FI_EBUSY: there is one, or a watch is open.
 */
int monitor_import(struct fid_mem_monitor *monitor);
bool monitor_imported(void);

/*
 * Notes the watch as open, and starts the imported monitor for it: *monitor, or NULL if there is
 * none. 0, or the error of its start; the watch is not noted then.
 */
int monitor_open(struct watch *watch, struct fid_mem_monitor **monitor);
/* Ends that. No notification reaches the watch afterwards. Its lock is not held. */
void monitor_close(struct watch *watch, struct fid_mem_monitor *monitor);

/* ---- The address space of this process, from the kernel: maps.c ---- */

/*
 * Is all of the range mapped as private anonymous memory, so that only this process can change its
 * contents? Returns false also if the kernel does not say. Allocates nothing.
 */
bool maps_private(uintptr_t from, uintptr_t to);

#endif
