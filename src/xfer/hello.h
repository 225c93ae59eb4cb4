/* SPDX-License-Identifier: BSD-2-Clause */
/* Hellos: made, sent, received and checked. */
#ifndef WEFT_XFER_HELLO_H
#define WEFT_XFER_HELLO_H

#include "hw/link.h"
#include "hw/wire.h"
#include "xfer/port.h"

/* Sends one on `sock`, our transport's descriptors with it; `id` is how the receiver is to be named. */
int hello_send(struct port *port, int sock, enum hello_kind kind, uint32_t id);

/*
 * Receives one from `sock`. 1: *hello is valid and `fds` are the descriptors that came, then -1, the
 * caller's; 0: nothing there yet; negative: -FI_ECONNRESET at the end, -FI_EPROTO for anything that
 * is not a hello of ours (logged with both sides' figures).
 */
int hello_recv(int sock, struct wire_hello *hello, int fds[WIRE_FDS]);

/* Copies of the descriptors our own hello brings, the caller's. 0 or a negative error. */
int hello_own_fds(struct port *port, int fds[WIRE_FDS]);

/* Closes those that are there; all are -1 then. */
void hello_close_fds(int fds[WIRE_FDS]);

/* The name inside. 0 or -FI_EPROTO, -FI_ENOMEM. addr_free what it gives. */
int hello_name(const struct wire_hello *hello, struct addr *name);

#endif
