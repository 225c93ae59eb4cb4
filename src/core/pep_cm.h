/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of passive endpoints, and listening. */
#ifndef WEFT_CORE_PEP_CM_H
#define WEFT_CORE_PEP_CM_H

#include <rdma/fi_cm.h>

struct eq_driver;

/* Posts an event for everybody who asks to be connected: struct pep.driver. */
void pep_cm_progress(struct eq_driver *driver);

extern struct fi_ops_cm pep_cm_ops;

#endif
