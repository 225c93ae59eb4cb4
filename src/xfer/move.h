/* SPDX-License-Identifier: BSD-2-Clause */
/* What devices move between our memory and a peer's by themselves. Domain locked. */
#ifndef WEFT_XFER_MOVE_H
#define WEFT_XFER_MOVE_H

struct port;
struct rx;

/*
 * The receive context is being closed: waits, a bounded time, until no device writes to what it receives.
 * Peers with whom that does not come to an end are lost.
 */
void move_settle(struct port *port, const struct rx *rx);

#endif
