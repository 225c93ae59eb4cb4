/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address that peers use for an endpoint instead of the one that it is bound to: FI_WEFT_ADVERTISE, for containers
 * with published ports and hosts behind a translator of addresses.
 */
#ifndef WEFT_CONN_ADVERTISE_H
#define WEFT_CONN_ADVERTISE_H

#include "base/addr.h"
#include "base/ports.h"

/*
 * Sets *name to what peers use for an endpoint bound to *bound, which may be the same object; without the setting that
 * is *bound, with its string. 0, or -FI_EINVAL: the setting is wrong or does not fit the port number; logged.
 */
int advertise_name(const struct addr *bound, struct addr *name);
/* Does the name have the IP address that endpoints of this process advertise? They may be on this host. */
bool advertise_is_own(const struct addr *name);
/* Sets *bound to the port number of the endpoint of this host that would advertise `name`. False: none would. */
bool advertise_port(const struct addr *name, uint16_t *bound);
/* Leaves only port numbers that the setting has one for, of those that an endpoint bound to this IP address may take. */
void advertise_cut(const struct addr *name, struct ports *ports);

#endif
