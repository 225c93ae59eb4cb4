/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint takes from the struct fi_info that it is opened with. */
#include <rdma/fi_errno.h>

#include "api/ep.h"
#include "base/env.h"
#include "base/log.h"
#include "info/hints.h"
#include "info/providers.h"

/*
 * Defaults (bytes) of FI_OPT_MIN_MULTI_RECV, equal to libfabric's. A multi-receive buffer is
 * released while it has space for usual messages, so that none is truncated.
 */
#define MIN_MULTI_RECV     16384
#define MIN_MULTI_RECV_SHM 4096

static size_t default_min_multi_recv(const struct fi_info *info)
{
	const struct provider *provider = provider_of(info);
	size_t least = provider && provider->transports == PROVIDER_SHM ? MIN_MULTI_RECV_SHM
									: MIN_MULTI_RECV;

	return info->ep_attr->max_msg_size < least ? info->ep_attr->max_msg_size : least;
}

/* Does `info` say no more than fi_getinfo would grant? 0 or -FI_ENODATA. */
static int ep_info_check(const struct ep *ep, const struct fi_info *info)
{
	struct refusal why;

	if (hints_allow(provider_of(info), domain_api(ep->dom), info, &why))
		return 0;
	return LOG_REFUSE(-FI_ENODATA, LOG_EP_CTRL,
			  "an endpoint with more than fi_getinfo grants: %s", why.text);
}

/* Copies what the application asked for, and adds defaults. 0 or a negative error. */
int ep_own_info(struct ep *ep, const struct fi_info *info)
{
	int err;

	if (!info->tx_attr || !info->rx_attr || !info->ep_attr)
		return -FI_EINVAL;
	err = domain_refuse_xpu(ep->dom, &info->ep_attr->xpu_ctx, "fi_endpoint");
	if (!err)
		err = ep_info_check(ep, info);
	if (err)
		return err;
	ep->info = fi_dupinfo(info);
	if (!ep->info)
		return -FI_ENOMEM;
	ep->info->caps = caps_complete(info->caps); /* the application may have taken bits out */
	err = ep_flags_check(ep, FI_TRANSMIT, ep->info->tx_attr->op_flags);
	if (!err)
		err = ep_flags_check(ep, FI_RECV, ep->info->rx_attr->op_flags);
	if (err)
		return err;
	ep->tx_size = ep->info->tx_attr->size ? ep->info->tx_attr->size : 1024;
	if (ep->info->tx_attr->inject_size)
		ep_limit_inject(ep, ep->info->tx_attr->inject_size);
	ep->min_multi_recv = default_min_multi_recv(ep->info);
	ep->tx_op_flags = ep->info->tx_attr->op_flags;
	ep->rx_op_flags = ep->info->rx_attr->op_flags;
	ep->firewalled = env_get()->tcp_firewall_addr && provider_connects(ep->info);
	if (ep->info->ep_attr->type == FI_EP_DGRAM)
		ep->info->caps &= ~(FI_TAGGED | FI_RMA | FI_ATOMIC);
	return 0;
}
