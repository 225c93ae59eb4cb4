/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks whether the application may sleep on wait objects. fi_poll(3), fi_trywait. */
#ifndef WEFT_CORE_TRYWAIT_H
#define WEFT_CORE_TRYWAIT_H

#include <rdma/fabric.h>

/* fi_ops_fabric.trywait, for event and completion queues, counters, wait sets and poll sets. */
int trywait_all(struct fid_fabric *fabric, struct fid **fids, int count);

#endif
