/* SPDX-License-Identifier: BSD-2-Clause */
/* What a link knows of itself, for reports: see `describe` of struct transport. */
#ifndef WEFT_LINK_LINK_STATE_H
#define WEFT_LINK_LINK_STATE_H

#include <stdint.h>

struct link_state {
	uint64_t credits;         /* packets, or slots of a ring, that the peer takes now */
	uint64_t unsent_bytes;    /* that the kernel has, and the peer has not acknowledged */
	uint64_t retransmissions; /* packets of the network that were sent again */
	uint32_t direct_read;     /* enum fi_weft_reason of reading the peer's memory */
};

#endif
