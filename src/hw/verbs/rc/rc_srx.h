/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared receive queue and the requests posted to it. Domain locked. */
#ifndef WEFT_HW_RC_SRX_H
#define WEFT_HW_RC_SRX_H

#include "hw/verbs/rc/rc.h"

struct rc_srx {
	struct verbs_dev *dev;
	struct ibv_srq *srq;
	struct verbs_note note;
	struct rc_work *work; /* by slot; `len` is not 0 while posted */
	uint32_t *free;       /* stack of free slots */
	uint32_t free_count;
	uint32_t size;
};

/* Implement device_ops.srx_open and its like. */
int rc_srx_open(void *device, size_t size, void **srx);
void rc_srx_close(void *srx);
int rc_srx_cancel(void *srx, void *context);

int rc_srx_post(struct rc_srx *s, struct ibv_recv_wr *wr, const struct rc_work *work);
/* Frees the slot of a completed receive. Returns its request. */
struct rc_work rc_srx_take(struct rc_srx *s, uint64_t wr_id);

#endif
