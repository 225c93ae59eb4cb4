/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of transports, by which rooms below and above src/hw find them. */
#ifndef WEFT_LINK_TRANSPORTS_H
#define WEFT_LINK_TRANSPORTS_H

#include "link/link.h"

/* All transports in the order in which a worker opens them, then NULL. */
extern const struct transport *const transports[];

/* Returns the transport of a PROVIDER_ bit; NULL: there is none in this build. */
static inline const struct transport *transport_of(unsigned int bit)
{
	for (const struct transport *const *t = transports; *t; t++)
		if ((*t)->bit == bit)
			return *t;
	return NULL;
}

#endif
