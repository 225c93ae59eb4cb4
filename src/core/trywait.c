/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "cntr/cntr.h"
#include "core/cq.h"
#include "core/eq.h"
#include "core/poll.h"
#include "core/trywait.h"
#include "core/wait_set.h"

int trywait_arm(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return cq_arm((struct cq *)fid);
	case FI_CLASS_EQ:
		return eq_arm((struct eq *)fid);
	case FI_CLASS_CNTR:
		return cntr_arm((struct cntr *)fid);
	case FI_CLASS_WAIT:
		return wait_set_arm((struct wait_set *)fid);
	case FI_CLASS_POLL:
		return poll_arm((struct poll_set *)fid);
	default:
		LOG_WARN(LOG_FABRIC, "an object of class %zu has nothing to wait for", fid->fclass);
		return -FI_EINVAL;
	}
}

bool trywait_ready(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return cq_ready((struct cq *)fid);
	case FI_CLASS_EQ:
		return eq_ready((struct eq *)fid);
	case FI_CLASS_CNTR:
		return cntr_ready((struct cntr *)fid);
	default:
		return false;
	}
}

int trywait_all(struct fid_fabric *fabric, struct fid **fids, int count)
{
	(void)fabric;
	if (count < 0 || (count > 0 && !fids))
		return -FI_EINVAL;
	for (int i = 0; i < count; i++) {
		int ret = fids[i] ? trywait_arm(fids[i]) : -FI_EINVAL;

		if (ret)
			return ret;
	}
	return 0;
}
