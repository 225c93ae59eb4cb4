/* SPDX-License-Identifier: BSD-2-Clause */
/* May one sleep on the wait objects of these fids? fi_poll(3), fi_trywait. */
#ifndef WEFT_CORE_TRYWAIT_H
#define WEFT_CORE_TRYWAIT_H

#include <rdma/fabric.h>
#include <stdbool.h>

/* fi_ops_fabric.trywait: event and completion queues, counters, wait sets and poll sets. */
int trywait_all(struct fid_fabric *fabric, struct fid **fids, int count);

/* One of them. 0: whatever comes signals its wait object; -FI_EAGAIN; -FI_EINVAL: not such a fid. */
int trywait_arm(struct fid *fid);

/* Makes progress and says whether a queue or counter has something. */
bool trywait_ready(struct fid *fid);

#endif
