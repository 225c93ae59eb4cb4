/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces src/hw/verbs where configure found no libibverbs. No provider entry uses these
 * transports.
 */
#include "link/link.h"

const struct transport verbs_transport = {.name = "verbs"};
const struct transport rc_transport = {.name = "rc"};
const struct transport ud_transport = {.name = "ud"};
