/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getopt and fi_setopt of endpoints and contexts. fi_endpoint(3). */
#include <rdma/fi_errno.h>
#include <string.h>

#include "api/cm.h"
#include "api/ep.h"
#include "info/providers.h"
#include "xfer/engine.h"

static int ep_option_give(void *to, size_t *len, const void *from, size_t from_len)
{
	if (*len < from_len) {
		*len = from_len;
		return -FI_ETOOSMALL;
	}
	memcpy(to, from, from_len);
	*len = from_len;
	return 0;
}

/* Returns the bytes of an option's value; 0: unknown option. The length is checked only for known options. */
static size_t option_len(int level, int optname)
{
	if (level != FI_OPT_ENDPOINT)
		return 0;
	switch (optname) {
	case FI_OPT_MIN_MULTI_RECV:
	case FI_OPT_CM_DATA_SIZE:
	case FI_OPT_TX_SIZE:
	case FI_OPT_RX_SIZE:
	case FI_OPT_MAX_MSG_SIZE:
	case FI_OPT_MAX_TAGGED_SIZE:
	case FI_OPT_MAX_RMA_SIZE:
	case FI_OPT_MAX_ATOMIC_SIZE:
	case FI_OPT_INJECT_MSG_SIZE:
	case FI_OPT_INJECT_TAGGED_SIZE:
	case FI_OPT_INJECT_RMA_SIZE:
	case FI_OPT_INJECT_ATOMIC_SIZE:
		return sizeof(size_t);
	case FI_OPT_FI_HMEM_P2P:
		return sizeof(int);
	case FI_OPT_CUDA_API_PERMITTED:
	case FI_OPT_SHARED_MEMORY_PERMITTED:
	case FI_OPT_FIREWALL_ADDR:
		return sizeof(bool);
	default:
		return 0;
	}
}

/* Returns the kind of operation that a size limit is about. */
static uint64_t ep_option_kind_of(int optname)
{
	switch (optname) {
	case FI_OPT_MAX_TAGGED_SIZE:
	case FI_OPT_INJECT_TAGGED_SIZE:
		return FI_TAGGED;
	case FI_OPT_MAX_RMA_SIZE:
	case FI_OPT_INJECT_RMA_SIZE:
		return FI_RMA;
	case FI_OPT_MAX_ATOMIC_SIZE:
	case FI_OPT_INJECT_ATOMIC_SIZE:
		return FI_ATOMIC;
	default:
		return FI_MSG;
	}
}

/* Returns the limit (bytes) of an operation of this kind; 0: the endpoint lacks the capability. */
static size_t ep_option_longest(const struct ep *ep, uint64_t kind)
{
	struct fi_atomic_attr bytes;

	if (!(ep->info->caps & kind))
		return 0;
	if (kind != FI_ATOMIC)
		return ep->info->ep_attr->max_msg_size;
	if (ep->dom->device_ops)
		return sizeof(uint64_t);
	return xfer_atomic_valid(ATOMIC_BASE, FI_UINT8, FI_SUM, &bytes) ? 0 : bytes.count;
}

static size_t size_option(const struct ep *ep, int optname)
{
	uint64_t kind = ep_option_kind_of(optname);

	switch (optname) {
	case FI_OPT_MIN_MULTI_RECV:
		return ep->min_multi_recv;
	case FI_OPT_CM_DATA_SIZE:
		return ep->cm ? cm_data_most(ep->info) : 0;
	case FI_OPT_TX_SIZE:
		return ep->tx_size;
	case FI_OPT_RX_SIZE:
		return ep->info->rx_attr->size;
	case FI_OPT_MAX_MSG_SIZE:
	case FI_OPT_MAX_TAGGED_SIZE:
	case FI_OPT_MAX_RMA_SIZE:
	case FI_OPT_MAX_ATOMIC_SIZE:
		return ep_option_longest(ep, kind);
	default:
		return ep->info->caps & kind ? ep_inject_max(ep, kind) : 0;
	}
}

static bool bool_option(const struct ep *ep, int optname)
{
	if (optname == FI_OPT_SHARED_MEMORY_PERMITTED)
		return !(ep->base->barred & PROVIDER_SHM);
	return optname != FI_OPT_FIREWALL_ADDR || ep->base->firewalled;
}

int ep_option_get(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	const int p2p = FI_HMEM_P2P_ENABLED;
	struct ep *ep = (struct ep *)fid;
	size_t len = option_len(level, optname), value;
	bool yes_or_no;

	if (!len || fid->fclass == FI_CLASS_STX_CTX)
		return -FI_ENOPROTOOPT;
	if (!optval || !optlen)
		return -FI_EINVAL;
	yes_or_no = bool_option(ep, optname);
	if (len == sizeof(yes_or_no))
		return ep_option_give(optval, optlen, &yes_or_no, sizeof(yes_or_no));
	if (len == sizeof(p2p))
		return ep_option_give(optval, optlen, &p2p, sizeof(p2p));
	value = size_option(ep, optname);
	return ep_option_give(optval, optlen, &value, sizeof(value));
}

static int set_min_multi_recv(struct ep *ep, size_t value)
{
	domain_lock(ep->dom);
	ep->min_multi_recv = value;
	if (ep->own_rx)
		rx_context_min_multi_recv(ep->own_rx, value);
	domain_unlock(ep->dom);
	return 0;
}

/* Accepts any limit up to that of fi_info and of the transports' packets. */
static int set_inject(struct ep *ep, uint64_t kind, size_t value)
{
	if (ep->dom->device_ops) /* the device alone limits its operations */
		return -FI_EOPNOTSUPP;
	if (value > ep->inject_limit)
		return -FI_EINVAL;
	ep_set_inject(ep, kind, value);
	return 0;
}

static int set_size(struct ep *ep, int optname, size_t value)
{
	switch (optname) {
	case FI_OPT_MIN_MULTI_RECV:
		return set_min_multi_recv(ep, value);
	case FI_OPT_TX_SIZE:
		ep->tx_size = value;
		return 0;
	case FI_OPT_INJECT_MSG_SIZE:
	case FI_OPT_INJECT_TAGGED_SIZE:
	case FI_OPT_INJECT_RMA_SIZE:
	case FI_OPT_INJECT_ATOMIC_SIZE:
		return set_inject(ep, ep_option_kind_of(optname), value);
	default:
		return -FI_ENOPROTOOPT; /* read only */
	}
}

/* FI_OPT_SHARED_MEMORY_PERMITTED. Once a worker may use shm, peers may have found it by shm, so a change is refused. */
static int permit_shared_memory(struct ep *ep, bool permitted)
{
	unsigned int wanted = provider_wanted(ep->info), barred = permitted ? 0 : PROVIDER_SHM;
	int err = 0;

	if (!permitted && wanted == PROVIDER_SHM)
		return -FI_EOPNOTSUPP;
	domain_lock(ep->dom);
	if (ep->worker && wanted & PROVIDER_SHM && ep->barred != barred)
		err = -FI_EOPBADSTATE;
	else
		ep->barred = barred;
	domain_unlock(ep->dom);
	return err;
}

/* FI_OPT_FIREWALL_ADDR, which has to be known when the endpoint begins to connect. */
static int set_firewalled(struct ep *ep, bool value)
{
	int err = 0;

	if (value && !provider_connects(ep->info))
		return -FI_EOPNOTSUPP;
	domain_lock(ep->dom);
	if (ep->enabled && ep->firewalled != value)
		err = -FI_EOPBADSTATE;
	else
		ep->firewalled = value;
	domain_unlock(ep->dom);
	return err;
}

static int set_bool(struct ep *ep, int optname, bool value)
{
	if (optname == FI_OPT_SHARED_MEMORY_PERMITTED)
		return permit_shared_memory(ep->base, value);
	return optname == FI_OPT_FIREWALL_ADDR ? set_firewalled(ep->base, value) : 0;
}

/* There is no device memory here, so p2p cannot be required. */
static int set_p2p(int value)
{
	if (value < FI_HMEM_P2P_ENABLED || value > FI_HMEM_P2P_DISABLED)
		return -FI_EINVAL;
	return value == FI_HMEM_P2P_REQUIRED ? -FI_EOPNOTSUPP : 0;
}

int ep_option_set(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	size_t len = option_len(level, optname), value = 0;
	bool yes_or_no;
	int p2p;

	if (!len || fid->fclass == FI_CLASS_STX_CTX)
		return -FI_ENOPROTOOPT;
	if (!optval || optlen != len)
		return -FI_EINVAL;
	if (len == sizeof(yes_or_no)) {
		memcpy(&yes_or_no, optval, sizeof(yes_or_no));
		return set_bool((struct ep *)fid, optname, yes_or_no);
	}
	if (len == sizeof(p2p)) {
		memcpy(&p2p, optval, sizeof(p2p));
		return set_p2p(p2p);
	}
	memcpy(&value, optval, sizeof(value));
	return set_size((struct ep *)fid, optname, value);
}
