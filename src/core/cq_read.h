/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading completion queues. */
#ifndef WEFT_CORE_CQ_READ_H
#define WEFT_CORE_CQ_READ_H

#include "core/cq.h"

/* Sets the queue's operations to those with the lock of its domain, or without. */
void cq_install(struct cq *cq);
/* For fi_trywait, wait sets and poll sets. */
extern const struct waitable_ops cq_waitable_ops;

#endif
