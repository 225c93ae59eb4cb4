/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of passive endpoints; listening. */
#ifndef WEFT_API_PEP_CM_H
#define WEFT_API_PEP_CM_H

#include <rdma/fi_cm.h>

struct eq_driver;

/* struct pep.driver: posts an FI_CONNREQ event for each connection request. */
void pep_cm_progress(struct eq_driver *driver);

extern struct fi_ops_cm pep_cm_ops;

#endif
