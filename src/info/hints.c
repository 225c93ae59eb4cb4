/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "info/hints.h"
#include "info/rules.h"

bool hints_refuse(struct refusal *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, args);
	va_end(args);
	return false;
}

/* Writes the name of a value. Passes 32-bit types as uint32_t, whatever the byte order. */
static void name_value(char *buf, size_t len, uint64_t value, enum fi_type type)
{
	uint32_t narrow = (uint32_t)value;

	switch (type) {
	case FI_TYPE_CAPS:
	case FI_TYPE_OP_FLAGS:
	case FI_TYPE_MSG_ORDER:
	case FI_TYPE_MODE:
		fi_tostr_r(buf, len, &value, type);
		break;
	default:
		fi_tostr_r(buf, len, &narrow, type);
		break;
	}
}

bool hints_refuse_value(struct refusal *why, const char *hint, enum fi_type type, uint64_t asked,
			uint64_t offered)
{
	char theirs[512], ours[512];

	name_value(theirs, sizeof(theirs), asked, type);
	name_value(ours, sizeof(ours), offered, type);
	return hints_refuse(why, "%s: [%s] asked, [%s] offered", hint, theirs, ours);
}

/* Capabilities that hints ask of endpoint, contexts and domain; 0: no particular ones. */
struct asked_caps {
	uint64_t ep, tx, rx, domain;
};

static struct asked_caps caps_asked(uint32_t api, const struct fi_info *hints)
{
	struct asked_caps a = {0};

	if (!hints)
		return a;
	a.ep = hints->caps;
	a.tx = hints->tx_attr ? hints->tx_attr->caps : 0;
	a.rx = hints->rx_attr ? hints->rx_attr->caps : 0;
	if (hints->domain_attr && FI_VERSION_GE(api, FI_VERSION(1, 5)))
		a.domain = hints->domain_attr->caps;
	return a;
}

static bool caps_within(struct refusal *why, const char *hint, uint64_t asked, uint64_t offered)
{
	return !(asked & ~offered) ||
	       hints_refuse_value(why, hint, FI_TYPE_CAPS, asked & ~offered, offered);
}

#define COMM (FI_LOCAL_COMM | FI_REMOTE_COMM)

/* Returns FI_REMOTE_COMM, to be withheld, if only FI_LOCAL_COMM is asked for; else 0. */
static uint64_t without_network(uint64_t asked)
{
	return (asked & COMM) == FI_LOCAL_COMM ? FI_REMOTE_COMM : 0;
}

static bool hints_several(size_t contexts)
{
	return contexts > 1 && contexts != FI_SHARED_CONTEXT;
}

/* Withholds FI_COLLECTIVE for several contexts: scalable endpoints have no collective groups. */
static uint64_t without_groups(const struct fi_info *hints)
{
	const struct fi_ep_attr *ep = hints ? hints->ep_attr : NULL;

	return ep && (hints_several(ep->tx_ctx_cnt) || hints_several(ep->rx_ctx_cnt))
		       ? FI_COLLECTIVE
		       : 0;
}

static bool match_caps(const struct provider *v, uint32_t api, const struct fi_info *hints,
		       struct fi_info *info, struct refusal *why)
{
	uint64_t offered = caps_offered(v, api) & ~without_groups(hints);
	uint64_t of_domain = offered & (COMM | FI_SHARED_AV | FI_AV_USER_ID);
	struct asked_caps a = caps_asked(api, hints);

	if (!caps_within(why, "caps", a.ep, offered) ||
	    !caps_within(why, "tx_attr->caps", a.tx, offered) ||
	    !caps_within(why, "rx_attr->caps", a.rx, offered) ||
	    !caps_within(why, "domain_attr->caps", a.domain, of_domain))
		return false;
	/* The endpoint's hints decide, or without any the domain's. */
	offered &= ~without_network(a.ep & COMM ? a.ep : a.domain);
	/* Capabilities asked of a context are asked of the endpoint, too. */
	info->caps = caps_grant(offered, a.ep ? a.ep | a.tx | a.rx : 0);
	info->tx_attr->caps = caps_tx(info->caps, a.tx);
	info->rx_attr->caps = caps_rx(info->caps, a.rx);
	info->domain_attr->caps = of_domain & ~without_network(a.domain);
	return true;
}

static bool order_within(const struct provider *v, const struct fi_info *hints, struct refusal *why)
{
	uint64_t tx = hints && hints->tx_attr ? hints->tx_attr->msg_order : 0;
	uint64_t rx = hints && hints->rx_attr ? hints->rx_attr->msg_order : 0;

	if (tx & ~v->msg_order)
		return hints_refuse_value(why, "tx_attr->msg_order", FI_TYPE_MSG_ORDER, tx,
					  v->msg_order);
	if (rx & ~v->msg_order)
		return hints_refuse_value(why, "rx_attr->msg_order", FI_TYPE_MSG_ORDER, rx,
					  v->msg_order);
	return true;
}

static bool match_order(const struct provider *v, const struct fi_info *hints, struct fi_info *info,
			struct refusal *why)
{
	info->tx_attr->msg_order = v->msg_order;
	info->rx_attr->msg_order = v->msg_order;
	return order_within(v, hints, why);
}

static bool type_is(const struct provider *v, const struct fi_ep_attr *asked, struct refusal *why)
{
	char name[64];

	if (asked && asked->type != FI_EP_UNSPEC && asked->type != v->type)
		return hints_refuse_value(why, "ep_attr->type", FI_TYPE_EP_TYPE, asked->type,
					  v->type);
	if (asked && asked->protocol != FI_PROTO_UNSPEC && asked->protocol != v->protocol)
		return hints_refuse(
			why, "ep_attr->protocol: %s (%#x) asked, %#x offered",
			fi_tostr_r(name, sizeof(name), &asked->protocol, FI_TYPE_PROTOCOL),
			asked->protocol, v->protocol);
	return true;
}

static bool match_type(const struct provider *v, const struct fi_info *hints, struct fi_info *info,
		       struct refusal *why)
{
	info->ep_attr->type = v->type;
	info->ep_attr->protocol = v->protocol;
	return type_is(v, hints ? hints->ep_attr : NULL, why);
}

static void add_mode(struct fi_info *info, uint64_t bits)
{
	info->mode |= bits;
	info->tx_attr->mode |= bits;
	info->rx_attr->mode |= bits;
}

#define MR_BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

int hints_mr_bits(int mr_mode)
{
	if (mr_mode == FI_MR_BASIC)
		return MR_BASIC;
	return mr_mode == FI_MR_SCALABLE ? 0 : mr_mode;
}

/*
 * Handles the registration modes that the provider requires. Without hints the application is told
 * them. With the old name FI_MR_BASIC, local registration is the separate mode FI_LOCAL_MR.
 */
static bool match_needed(const struct provider *v, uint32_t api, const struct fi_info *hints,
			 struct fi_info *info, struct refusal *why)
{
	int granted = info->domain_attr->mr_mode, needed = v->mr_needed;
	bool named = granted == FI_MR_BASIC, has_hints = hints && hints->domain_attr;

	if (!has_hints && FI_VERSION_GE(api, FI_VERSION(1, 5))) {
		info->domain_attr->mr_mode = needed;
		return true;
	}
	if (named)
		granted = MR_BASIC | (!hints || hints->mode & FI_LOCAL_MR ? FI_MR_LOCAL : 0);
	if (needed & ~granted)
		return hints_refuse_value(why, "domain_attr->mr_mode", FI_TYPE_MR_MODE,
					  (uint64_t)granted, (uint64_t)needed);
	if (named && needed & FI_MR_LOCAL)
		add_mode(info, FI_LOCAL_MR);
	return true;
}

/* Devices take the region's keys and addresses for their own both, or neither. */
static int of_use(const struct provider *v, int asked)
{
	int both = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;

	return v->mr_needed || (asked & both) == both ? asked & v->mr_mode : 0;
}

/*
 * Grants the two old names alone and as asked. Of mode bits (since 1.5) clears those that are of no use.
 * Without hints, an old interface gets its usual default.
 */
static bool match_mr_mode(const struct provider *v, uint32_t api, const struct fi_info *hints,
			  struct fi_info *info, struct refusal *why)
{
	int asked = hints && hints->domain_attr ? hints->domain_attr->mr_mode : FI_MR_UNSPEC;
	bool bits = FI_VERSION_GE(api, FI_VERSION(1, 5));
	int granted = of_use(v, asked);

	if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE)
		granted = asked;
	else if (asked & (bits ? FI_MR_BASIC | FI_MR_SCALABLE : ~0))
		return hints_refuse_value(why, "domain_attr->mr_mode", FI_TYPE_MR_MODE,
					  (uint64_t)asked, FI_MR_BASIC);
	else if (!bits)
		granted = FI_MR_BASIC;
	info->domain_attr->mr_mode = granted;
	return !v->mr_needed || match_needed(v, api, hints, info, why);
}

bool hints_match(const struct provider *v, uint32_t api, const struct fi_info *hints,
		 struct fi_info *info, struct refusal *why)
{
	/* Only match_needed requires modes of the application. */
	add_mode(info, hints ? v->mode & hints->mode : v->mode);
	return match_type(v, hints, info, why) && match_caps(v, api, hints, info, why) &&
	       match_order(v, hints, info, why) && match_mr_mode(v, api, hints, info, why) &&
	       rules_match(api, hints, info, why);
}

/* Datagrams of IPv4 are shorter than the longest that rules_allow lets pass. */
static bool source_carries(const struct fi_info *info, struct refusal *why)
{
	struct addr source = {.kind = info->addr_format == FI_SOCKADDR_IN6 ? ADDR_IN6 : ADDR_IN};
	size_t asked = info->ep_attr->max_msg_size, offered;

	if (info->ep_attr->type != FI_EP_DGRAM)
		return true;
	if (info->src_addr &&
	    addr_from_user(&source, provider_format(info), info->src_addr, info->src_addrlen))
		return true; /* the endpoint refuses the address */
	offered = rules_dgram_max(&source);
	addr_free(&source);
	return asked <= offered ||
	       hints_refuse(why, "ep_attr->max_msg_size: %zu asked, %zu offered", asked, offered);
}

bool hints_allow(const struct provider *v, uint32_t api, const struct fi_info *info,
		 struct refusal *why)
{
	return (!v || (type_is(v, info->ep_attr, why) && order_within(v, info, why) &&
		       caps_within(why, "caps", info->caps, v->caps) &&
		       caps_within(why, "tx_attr->caps", info->tx_attr->caps, v->caps) &&
		       caps_within(why, "rx_attr->caps", info->rx_attr->caps, v->caps))) &&
	       rules_allow(api, info, why) && source_carries(info, why);
}
