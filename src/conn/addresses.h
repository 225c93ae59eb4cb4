/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint that is reached by all addresses of its host tells peers about these in its hellos. */
#ifndef WEFT_CONN_ADDRESSES_H
#define WEFT_CONN_ADDRESSES_H

#include "base/addr.h"
#include "link/wire.h"

struct station;

/* Reads an address that came from another process. False: it is none of an endpoint. */
bool addresses_read(const struct wire_address *w, struct addr *a);
/* Writes an IP address. */
struct wire_address addresses_write(const struct addr *a);
/* Adds to a hello that is sent on `sock`, across the network, by which addresses the station is reached. */
void addresses_tell(struct station *station, int sock, struct wire_hello *hello);
/* Reads those that a hello tells. Returns how many. */
unsigned int addresses_heard(const struct wire_hello *hello, struct addr at[WIRE_ADDRESSES_MAX]);

#endif
