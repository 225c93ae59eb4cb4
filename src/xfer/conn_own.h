/* SPDX-License-Identifier: BSD-2-Clause */
/* What conn.c and conn_single.c share. */
#ifndef WEFT_XFER_CONN_OWN_H
#define WEFT_XFER_CONN_OWN_H

#include "xfer/conn.h"
#include "xfer/hello.h"

/* Begins to connect to peer->name by whatever way there is. 0 or a negative error. */
int conn_dial(struct peer *peer);
/* Makes the peer's link of what its hello brought; takes guest->fds. 0 or a negative error. */
int conn_link(struct peer *peer, struct guest *guest);
/* The guest is this peer from now on, and told so. Takes the guest in any case. */
int conn_take(struct peer *peer, struct guest *guest, const struct hello_words *words);
/* Tells a connected peer that nothing more will come. */
void conn_goodbye(struct peer *peer);
/* Its connection has ended by itself. */
void conn_ended(struct peer *peer, int err);

#endif
