/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting until no peer accesses our memory directly. Domain locked. */
#ifndef WEFT_XFER_QUIESCE_H
#define WEFT_XFER_QUIESCE_H

struct worker;

/*
 * Waits for direct accesses that have begun, and lets no new one begin: the worker is being closed.
 */
void quiesce_close(struct worker *worker);

#endif
