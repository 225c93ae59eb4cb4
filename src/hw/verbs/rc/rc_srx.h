/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared receive queue, and what is posted to it. Domain locked. */
#ifndef WEFT_HW_RC_SRX_H
#define WEFT_HW_RC_SRX_H

#include "hw/verbs/rc/rc.h"

struct rc_srx {
	struct verbs_dev *dev;
	struct ibv_srq *srq;
	struct verbs_note note;
	struct rc_work *work; /* by slot; of one that is posted `len` is not 0 */
	uint32_t *free;       /* numbers of slots */
	uint32_t free_count;
	uint32_t size;
};

/* Those of device_ops. */
int rc_srx_open(void *device, size_t size, void **srx);
void rc_srx_close(void *srx);
int rc_srx_cancel(void *srx, void *context);

int rc_srx_post(struct rc_srx *s, struct ibv_recv_wr *wr, const struct rc_work *work);
/* What was posted with this wr_id is over: what it was. */
struct rc_work rc_srx_take(struct rc_srx *s, uint64_t wr_id);

#endif
