/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/log.h"
#include "core/trywait.h"
#include "core/wait.h"

static int trywait_arm(struct fid *fid)
{
	struct waitable *what = (struct waitable *)fid;

	if (!fid)
		return -FI_EINVAL;
	switch (fid->fclass) {
	case FI_CLASS_CQ:
	case FI_CLASS_EQ:
	case FI_CLASS_CNTR:
	case FI_CLASS_WAIT:
	case FI_CLASS_POLL:
		return what->waits->arm(what);
	default:
		return LOG_REFUSE(-FI_EINVAL, LOG_FABRIC,
				  "an object of class %zu has nothing to wait for", fid->fclass);
	}
}

int trywait_all(struct fid_fabric *fabric, struct fid **fids, int count)
{
	(void)fabric;
	if (count < 0 || (count > 0 && !fids))
		return -FI_EINVAL;
	for (int i = 0; i < count; i++) {
		int ret = trywait_arm(fids[i]);

		if (ret)
			return ret;
	}
	return 0;
}
