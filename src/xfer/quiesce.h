/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for peers that are at work in our memory without us. Domain locked. */
#ifndef WEFT_XFER_QUIESCE_H
#define WEFT_XFER_QUIESCE_H

struct worker;

/* The worker is being closed: what peers have begun through it ends, and nothing begins any more. */
void quiesce_close(struct worker *worker);

#endif
