/* SPDX-License-Identifier: BSD-2-Clause */
/* When the data calls of a domain take its lock; what its objects cannot have. */
#include "core/domain.h"

#include "base/log.h"
#include "core/cq.h"
#include "core/ep.h"

void domain_use_locks(struct domain *dom)
{
	if (!dom->unlocked)
		return;
	dom->unlocked = false;
	LIST_EACH (node, &dom->callees)
		dom->calls->install(LIST_ENTRY(node, struct ep, in_domain));
	LIST_EACH (node, &dom->queues)
		cq_install(LIST_ENTRY(node, struct cq, in_domain));
}

void domain_admit(struct domain *dom, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	if (!(info->caps & FI_COLLECTIVE) &&
	    (!attr || attr->threading == FI_THREAD_UNSPEC || attr->threading == FI_THREAD_DOMAIN))
		return;
	domain_lock(dom);
	domain_use_locks(dom);
	domain_unlock(dom);
}

int domain_refuse_xpu(const struct domain *dom, void *const *xpu_ctx, const char *call)
{
	if (FI_VERSION_LT(domain_api(dom), FI_VERSION(2, 7)) || !*xpu_ctx)
		return 0;
	return LOG_REFUSE(-FI_ENOSYS, LOG_DOMAIN,
			  "%s: xpu_ctx %p: no accelerator posts by itself here", call, *xpu_ctx);
}
