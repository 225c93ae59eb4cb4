/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/transports.h"
#include "link/link.h"

const struct transport *const transports[] = {
	&shm_transport, &verbs_transport, &tcp_transport, &udp_transport,
	&rc_transport,  &ud_transport,    NULL,
};
