/* SPDX-License-Identifier: BSD-2-Clause */
/* The transports by name: for src/hw alone, and for tests. All others have the table `transports`. */
#ifndef WEFT_HW_TRANSPORTS_H
#define WEFT_HW_TRANSPORTS_H

#include "link/link.h"

extern const struct transport shm_transport;
extern const struct transport tcp_transport;
extern const struct transport verbs_transport;
extern const struct transport udp_transport; /* datagrams, by link/dgram.h */
extern const struct transport ud_transport;  /* datagrams over a device's queue pair */
extern const struct transport rc_transport;  /* plain queue pairs of a device, by link/offload.h */

#endif
