/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks whether the application may sleep on wait objects. fi_poll(3), fi_trywait. */
#ifndef WEFT_CORE_TRYWAIT_H
#define WEFT_CORE_TRYWAIT_H

#include <rdma/fabric.h>
#include <stdbool.h>

/* fi_ops_fabric.trywait, for event and completion queues, counters, wait sets and poll sets. */
int trywait_all(struct fid_fabric *fabric, struct fid **fids, int count);

/*
 * Arms one object. 0: every event from now on signals its wait object; -FI_EAGAIN: read first;
 * -FI_EINVAL: not such an object.
 */
int trywait_arm(struct fid *fid);

/* Makes progress and returns whether a queue or counter has something to read. */
bool trywait_ready(struct fid *fid);

#endif
