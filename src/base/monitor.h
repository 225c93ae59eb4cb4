/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory monitor that the application has imported into "mr_cache": it, not the kernel, tells
 * which memory is unmapped. One at a time, for one watch. Its functions may call `notify`, and no
 * other call of the library: they are called without monitor.c's lock and the watch's, but a domain
 * may be locked, and `opening` of verbs_cache.c is at start and stop. fi_mr(3)
 */
#ifndef WEFT_BASE_MONITOR_H
#define WEFT_BASE_MONITOR_H

#include <rdma/fi_ext.h>

struct watch;

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

#endif
