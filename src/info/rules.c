/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/text.h"
#include "info/job_key.h"
#include "info/rules.h"
#include "link/wire.h"

/* Alternating bits: each tag bit may be masked on its own. fi_endpoint(3) */
#define TAG_GENERIC 0xaaaaaaaaaaaaaaaaULL

#define TX_OP_FLAGS                                                                                \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                   \
	 FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE)
#define RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)
/* Without levels that need an acknowledgement: datagrams are not acknowledged. */
#define DGRAM_TX_OP_FLAGS                                                                          \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MULTICAST)

#define BIT(value) (1ULL << (value))

#define THREADING                                                                                  \
	(BIT(FI_THREAD_SAFE) | BIT(FI_THREAD_FID) | BIT(FI_THREAD_DOMAIN) |                        \
	 BIT(FI_THREAD_COMPLETION) | BIT(FI_THREAD_ENDPOINT))
/* FI_PROGRESS_CONTROL_UNIFIED: manual progress of both kinds by one thread. fi_domain(3) */
#define PROGRESS                                                                                   \
	(BIT(FI_PROGRESS_AUTO) | BIT(FI_PROGRESS_MANUAL) | BIT(FI_PROGRESS_CONTROL_UNIFIED))

/* When a hint is met. A hint of 0 is always met. */
enum test {
	ANY,
	UP_TO,  /* value at most `offered` */
	WITHIN, /* only bits of `offered` */
	ONE_OF, /* the value's bit is in `offered` */
	/* Opening checks these with errors of its own: see rules_allow. */
	KEY,      /* a valid length of a job key */
	KEYS,     /* the same, or FI_AV_AUTH_KEY */
	NO_KEY,   /* there are no keys */
	CONTEXTS, /* at most `offered`, or FI_SHARED_CONTEXT */
};

/* Value in the entry. */
enum grant {
	OURS,   /* `usual` */
	THEIRS, /* the hint; `usual` if it is 0 */
	LARGER, /* the larger of both */
};

/* Endpoint types that a row applies to. */
#define RDM     BIT(FI_EP_RDM)
#define MSG     BIT(FI_EP_MSG)
#define DGRAM   BIT(FI_EP_DGRAM)
#define STREAMS (RDM | MSG) /* reliable and ordered */
#define RC      BIT(6)      /* MSG endpoints that are queue pairs of a device */
#define ENGINE  (STREAMS | DGRAM)
#define ALL     (ENGINE | RC)

enum part { PART_tx, PART_rx, PART_ep, PART_domain };

static const size_t parts[] = {
	[PART_tx] = offsetof(struct fi_info, tx_attr),
	[PART_rx] = offsetof(struct fi_info, rx_attr),
	[PART_ep] = offsetof(struct fi_info, ep_attr),
	[PART_domain] = offsetof(struct fi_info, domain_attr),
};

struct rule {
	const char *hint;
	uint8_t part;   /* enum part */
	uint8_t test;   /* enum test */
	uint8_t grant;  /* enum grant */
	uint8_t size;   /* bytes of the member, 4 or 8 */
	uint8_t types;  /* endpoint types, a BIT each */
	uint16_t at;    /* offset of the member in its struct */
	int16_t type;   /* enum fi_type for printing, or NUMBER */
	uint32_t since; /* first version of the interface with the member */
	uint64_t offered, usual;
};

#define NUMBER (-1)

/* clang-format off */
#define RULE_FOR(ep_types, part_, member, version, check, limit, give, value, print)  \
	{                                                                \
		.hint = #part_ "_attr->" #member,                        \
		.part = PART_##part_,                                    \
		.test = (check),                                         \
		.grant = (give),                                         \
		.size = sizeof(((struct fi_##part_##_attr *)0)->member), \
		.at = offsetof(struct fi_##part_##_attr, member),        \
		.types = (ep_types),                                     \
		.type = (print),                                         \
		.since = (version),                                      \
		.offered = (limit),                                      \
		.usual = (value),                                        \
	}
#define RULE(part_, ...)                RULE_FOR(ALL, part_, __VA_ARGS__)
#define NONE(types, part_, member, version) \
	RULE_FOR(types, part_, member, version, UP_TO, 0, OURS, 0, NUMBER)
/* clang-format on */

#define V1_0  0
#define V1_5  FI_VERSION(1, 5)
#define V1_9  FI_VERSION(1, 9)
#define V1_20 FI_VERSION(1, 20)
#define V2_0  FI_VERSION(2, 0)
#define V2_5  FI_VERSION(2, 5)
#define V2_7  FI_VERSION(2, 7)

/* clang-format off */
static const struct rule rules[] = {
	RULE_FOR(STREAMS, tx, op_flags, V1_0, WITHIN, TX_OP_FLAGS, THEIRS, 0, FI_TYPE_OP_FLAGS),
	RULE_FOR(DGRAM, tx, op_flags, V1_0, WITHIN, DGRAM_TX_OP_FLAGS, THEIRS, 0, FI_TYPE_OP_FLAGS),
	RULE_FOR(RC, tx, op_flags, V1_0, WITHIN, TX_OP_FLAGS, THEIRS, 0, FI_TYPE_OP_FLAGS),
	RULE(tx, comp_order, V1_0, WITHIN, FI_ORDER_NONE, OURS, FI_ORDER_NONE, FI_TYPE_MSG_ORDER),
	RULE_FOR(ENGINE, tx, inject_size, V1_0, UP_TO, RULES_INJECT_MAX, OURS, RULES_INJECT_MAX, NUMBER),
	RULE_FOR(RC, tx, inject_size, V1_0, UP_TO, RULES_RC_INJECT, OURS, RULES_RC_INJECT, NUMBER),
	RULE_FOR(ENGINE, tx, size, V1_0, UP_TO, RULES_SIZE_MAX, THEIRS, 1024, NUMBER),
	RULE_FOR(RC, tx, size, V1_0, UP_TO, RULES_RC_SIZE_MAX, THEIRS, 256, NUMBER),
	RULE_FOR(ENGINE, tx, iov_limit, V1_0, UP_TO, RULES_IOV_MAX, OURS, RULES_IOV_MAX, NUMBER),
	RULE_FOR(RC, tx, iov_limit, V1_0, UP_TO, RULES_RC_IOV_MAX, OURS, RULES_RC_IOV_MAX, NUMBER),
	RULE_FOR(STREAMS, tx, rma_iov_limit, V1_0, UP_TO, RULES_IOV_MAX, OURS, RULES_IOV_MAX, NUMBER),
	RULE_FOR(RC, tx, rma_iov_limit, V1_0, UP_TO, 1, OURS, 1, NUMBER),
	NONE(DGRAM, tx, rma_iov_limit, V1_0),
	RULE(tx, tclass, V1_9, ANY, 0, OURS, FI_TC_UNSPEC, NUMBER),

	RULE_FOR(ENGINE, rx, op_flags, V1_0, WITHIN, RX_OP_FLAGS, THEIRS, 0, FI_TYPE_OP_FLAGS),
	RULE_FOR(RC, rx, op_flags, V1_0, WITHIN, FI_COMPLETION, THEIRS, 0, FI_TYPE_OP_FLAGS),
	RULE(rx, comp_order, V1_0, WITHIN, FI_ORDER_NONE, OURS, FI_ORDER_NONE, FI_TYPE_MSG_ORDER),
	RULE(rx, total_buffered_recv, V1_0, ANY, 0, THEIRS, 0, NUMBER),
	RULE_FOR(ENGINE, rx, size, V1_0, UP_TO, RULES_SIZE_MAX, THEIRS, 1024, NUMBER),
	RULE_FOR(RC, rx, size, V1_0, UP_TO, RULES_RC_SIZE_MAX, THEIRS, 256, NUMBER),
	RULE_FOR(ENGINE, rx, iov_limit, V1_0, UP_TO, RULES_IOV_MAX, OURS, RULES_IOV_MAX, NUMBER),
	RULE_FOR(RC, rx, iov_limit, V1_0, UP_TO, RULES_RC_IOV_MAX, OURS, RULES_RC_IOV_MAX, NUMBER),

	RULE(ep, protocol_version, V1_0, UP_TO, 1, OURS, 1, NUMBER),
	RULE_FOR(STREAMS, ep, max_msg_size, V1_0, UP_TO, SIZE_MAX, OURS, SIZE_MAX, NUMBER),
	RULE_FOR(RC, ep, max_msg_size, V1_0, UP_TO, RULES_RC_MSG_MAX, OURS, RULES_RC_MSG_MAX, NUMBER),
	RULE_FOR(DGRAM, ep, max_msg_size, V1_0, UP_TO, RULES_DGRAM_MAX6, OURS, RULES_DGRAM_MAX, NUMBER),
	RULE_FOR(STREAMS, ep, max_order_raw_size, V1_0, UP_TO, SIZE_MAX, OURS, SIZE_MAX, NUMBER),
	RULE_FOR(RC, ep, max_order_raw_size, V1_0, UP_TO, RULES_RC_MSG_MAX, OURS, RULES_RC_MSG_MAX, NUMBER),
	NONE(DGRAM, ep, max_order_raw_size, V1_0),
	RULE_FOR(STREAMS, ep, max_order_war_size, V1_0, UP_TO, SIZE_MAX, OURS, SIZE_MAX, NUMBER),
	NONE(RC, ep, max_order_war_size, V1_0),
	NONE(DGRAM, ep, max_order_war_size, V1_0),
	RULE_FOR(STREAMS, ep, max_order_waw_size, V1_0, UP_TO, SIZE_MAX, OURS, SIZE_MAX, NUMBER),
	RULE_FOR(RC, ep, max_order_waw_size, V1_0, UP_TO, RULES_RC_MSG_MAX, OURS, RULES_RC_MSG_MAX, NUMBER),
	NONE(DGRAM, ep, max_order_waw_size, V1_0),
	RULE_FOR(STREAMS, ep, mem_tag_format, V1_0, ANY, 0, THEIRS, TAG_GENERIC, NUMBER),
	RULE_FOR(RC, ep, mem_tag_format, V1_0, ANY, 0, OURS, 0, NUMBER),
	RULE_FOR(DGRAM, ep, mem_tag_format, V1_0, ANY, 0, OURS, 0, NUMBER),
	RULE_FOR(RDM, ep, tx_ctx_cnt, V1_0, CONTEXTS, RULES_CONTEXT_MAX, THEIRS, 1, NUMBER),
	RULE_FOR(MSG | RC, ep, tx_ctx_cnt, V1_0, CONTEXTS, 1, THEIRS, 1, NUMBER),
	RULE_FOR(DGRAM, ep, tx_ctx_cnt, V1_0, UP_TO, 1, OURS, 1, NUMBER),
	RULE_FOR(RDM, ep, rx_ctx_cnt, V1_0, CONTEXTS, RULES_CONTEXT_MAX, THEIRS, 1, NUMBER),
	RULE_FOR(MSG | RC, ep, rx_ctx_cnt, V1_0, CONTEXTS, 1, THEIRS, 1, NUMBER),
	RULE_FOR(DGRAM, ep, rx_ctx_cnt, V1_0, UP_TO, 1, OURS, 1, NUMBER),
	RULE_FOR(STREAMS, ep, auth_key_size, V1_5, KEY, JOB_KEY_MAX, THEIRS, 0, NUMBER),
	RULE_FOR(DGRAM | RC, ep, auth_key_size, V1_5, NO_KEY, 0, OURS, 0, NUMBER),
	NONE(ALL, ep, xpu_ctx, V2_7),

	RULE(domain, threading, V1_0, ONE_OF, THREADING, THEIRS, FI_THREAD_SAFE, FI_TYPE_THREADING),
	RULE(domain, control_progress, V1_0, ONE_OF, PROGRESS, THEIRS, FI_PROGRESS_MANUAL, FI_TYPE_PROGRESS),
	RULE(domain, data_progress, V1_0, ONE_OF, PROGRESS, THEIRS, FI_PROGRESS_MANUAL, FI_TYPE_PROGRESS),
	RULE(domain, resource_mgmt, V1_0, ONE_OF, BIT(FI_RM_DISABLED) | BIT(FI_RM_ENABLED), OURS,
	     FI_RM_ENABLED, NUMBER),
	RULE(domain, av_type, V1_0, ONE_OF, BIT(FI_AV_MAP) | BIT(FI_AV_TABLE), THEIRS, FI_AV_UNSPEC,
	     FI_TYPE_AV_TYPE),
	RULE_FOR(ENGINE, domain, mr_key_size, V1_0, UP_TO, sizeof(uint64_t), OURS, sizeof(uint64_t), NUMBER),
	RULE_FOR(RC, domain, mr_key_size, V1_0, UP_TO, sizeof(uint32_t), OURS, sizeof(uint32_t), NUMBER),
	RULE_FOR(STREAMS, domain, cq_data_size, V1_0, UP_TO, RULES_CQ_DATA, OURS, RULES_CQ_DATA, NUMBER),
	RULE_FOR(RC, domain, cq_data_size, V1_0, UP_TO, sizeof(uint32_t), OURS, sizeof(uint32_t), NUMBER),
	NONE(DGRAM, domain, cq_data_size, V1_0),
	RULE(domain, cq_cnt, V1_0, ANY, 0, LARGER, 65536, NUMBER),
	RULE(domain, ep_cnt, V1_0, ANY, 0, LARGER, 32768, NUMBER),
	RULE(domain, tx_ctx_cnt, V1_0, ANY, 0, LARGER, 32768, NUMBER),
	RULE(domain, rx_ctx_cnt, V1_0, ANY, 0, LARGER, 32768, NUMBER),
	RULE_FOR(RDM, domain, max_ep_tx_ctx, V1_0, UP_TO, RULES_CONTEXT_MAX, OURS, RULES_CONTEXT_MAX, NUMBER),
	RULE_FOR(MSG | DGRAM | RC, domain, max_ep_tx_ctx, V1_0, UP_TO, 1, OURS, 1, NUMBER),
	RULE_FOR(RDM, domain, max_ep_rx_ctx, V1_0, UP_TO, RULES_CONTEXT_MAX, OURS, RULES_CONTEXT_MAX, NUMBER),
	RULE_FOR(MSG | DGRAM | RC, domain, max_ep_rx_ctx, V1_0, UP_TO, 1, OURS, 1, NUMBER),
	RULE_FOR(STREAMS, domain, max_ep_stx_ctx, V1_0, UP_TO, RULES_CONTEXT_MAX, OURS, RULES_CONTEXT_MAX, NUMBER),
	NONE(DGRAM | RC, domain, max_ep_stx_ctx, V1_0),
	RULE_FOR(STREAMS | RC, domain, max_ep_srx_ctx, V1_0, UP_TO, RULES_CONTEXT_MAX, OURS,
		 RULES_CONTEXT_MAX, NUMBER),
	NONE(DGRAM, domain, max_ep_srx_ctx, V1_0),
	RULE(domain, cntr_cnt, V1_5, ANY, 0, LARGER, 65536, NUMBER),
	RULE_FOR(ENGINE, domain, mr_iov_limit, V1_5, UP_TO, RULES_IOV_MAX, OURS, RULES_IOV_MAX, NUMBER),
	RULE_FOR(RC, domain, mr_iov_limit, V1_5, UP_TO, 1, OURS, 1, NUMBER),
	RULE_FOR(RDM, domain, auth_key_size, V1_5, KEYS, JOB_KEY_MAX, THEIRS, 0, NUMBER),
	RULE_FOR(MSG, domain, auth_key_size, V1_5, KEY, JOB_KEY_MAX, THEIRS, 0, NUMBER),
	RULE_FOR(DGRAM | RC, domain, auth_key_size, V1_5, NO_KEY, 0, OURS, 0, NUMBER),
	/* What comes with a refused connection; else an address in FI_ADDR_STR, which is shorter. */
	RULE(domain, max_err_data, V1_5, UP_TO, WIRE_CM_DATA_MAX, OURS, WIRE_CM_DATA_MAX, NUMBER),
	RULE(domain, mr_cnt, V1_5, ANY, 0, LARGER, 65536, NUMBER),
	RULE(domain, tclass, V1_9, ANY, 0, OURS, FI_TC_UNSPEC, NUMBER),
	RULE_FOR(RDM, domain, max_ep_auth_key, V1_20, UP_TO, JOB_KEYS_MAX, THEIRS, JOB_KEYS_MAX, NUMBER),
	NONE(MSG | DGRAM | RC, domain, max_ep_auth_key, V1_20),
	RULE(domain, max_group_id, V2_0, UP_TO, 0, OURS, 0, NUMBER),
	RULE(domain, max_cntr_value, V2_5, UP_TO, UINT64_MAX, OURS, UINT64_MAX, NUMBER),
	RULE(domain, max_err_cntr_value, V2_5, UP_TO, UINT64_MAX, OURS, UINT64_MAX, NUMBER),
	NONE(ALL, domain, max_xpu_ctx_cnt, V2_7),
};
/* clang-format on */

static char *rules_part_of(const struct fi_info *info, enum part part)
{
	return *(char *const *)((const char *)info + parts[part]);
}

static uint64_t asked_by(const struct rule *r, uint32_t api, const struct fi_info *hints)
{
	const char *attr = hints ? rules_part_of(hints, r->part) : NULL;
	uint32_t narrow;
	uint64_t wide;

	if (!attr || FI_VERSION_LT(api, r->since))
		return 0;
	if (r->size == sizeof(narrow)) {
		memcpy(&narrow, attr + r->at, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, attr + r->at, sizeof(wide));
	return wide;
}

static void rules_put(const struct rule *r, struct fi_info *info, uint64_t wide)
{
	char *member = rules_part_of(info, r->part) + r->at;
	uint32_t narrow = (uint32_t)wide;

	if (r->size == sizeof(narrow))
		memcpy(member, &narrow, sizeof(narrow));
	else
		memcpy(member, &wide, sizeof(wide));
}

static bool rules_met(const struct rule *r, uint64_t asked)
{
	if (asked == 0)
		return true;
	switch ((enum test)r->test) {
	case ANY:
		return true;
	case UP_TO:
		return asked <= r->offered;
	case WITHIN:
		return (asked & ~r->offered) == 0;
	case ONE_OF:
		return asked < 64 && (r->offered & BIT(asked));
	case KEYS:
		if (asked == FI_AV_AUTH_KEY)
			return true;
		/* fall through */
	case KEY:
		return asked >= JOB_KEY_MIN && asked <= r->offered;
	case NO_KEY:
		break;
	case CONTEXTS:
		return asked <= r->offered || asked == FI_SHARED_CONTEXT;
	}
	return false;
}

static uint64_t rules_granted(const struct rule *r, uint64_t asked)
{
	switch ((enum grant)r->grant) {
	case THEIRS:
		return asked ? asked : r->usual;
	case LARGER:
		return asked > r->usual ? asked : r->usual;
	case OURS:
		break;
	}
	return r->usual;
}

/* Refuses with the names of the values that ONE_OF permits. */
static bool refuse_choice(const struct rule *r, uint64_t asked, struct refusal *why)
{
	uint32_t narrow = (uint32_t)asked;
	char name[64], all[256];
	struct text t;

	text_init(&t, all, sizeof(all));
	for (uint32_t value = 0; value < 64; value++) {
		if (r->offered & BIT(value))
			text_add(&t, "%s, ", fi_tostr_r(name, sizeof(name), &value, r->type));
	}
	text_strip(&t, ", ");
	fi_tostr_r(name, sizeof(name), &narrow, r->type);
	return hints_refuse(why, "%s: %s (%u) asked, %s offered", r->hint, name, narrow, all);
}

static bool rules_refuse(const struct rule *r, uint64_t asked, struct refusal *why)
{
	if (r->type != NUMBER && r->test == ONE_OF)
		return refuse_choice(r, asked, why);
	if (r->test == KEY || r->test == KEYS)
		return hints_refuse(why, "%s: %llu asked, %u to %llu bytes offered", r->hint,
				    (unsigned long long)asked, JOB_KEY_MIN,
				    (unsigned long long)r->offered);
	if (r->type != NUMBER)
		return hints_refuse_value(why, r->hint, (enum fi_type)r->type, asked, r->offered);
	return hints_refuse(why, "%s: %llu (%#llx) asked, %llu offered", r->hint,
			    (unsigned long long)asked, (unsigned long long)asked,
			    (unsigned long long)r->offered);
}

static unsigned int rules_kind_of(const struct fi_info *info)
{
	return info->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_RC ? RC : BIT(info->ep_attr->type);
}

bool rules_match(uint32_t api, const struct fi_info *hints, struct fi_info *info,
		 struct refusal *why)
{
	for (const struct rule *r = rules; r < rules + sizeof(rules) / sizeof(rules[0]); r++) {
		uint64_t asked = asked_by(r, api, hints);

		if (!(r->types & rules_kind_of(info)))
			continue;
		if (!rules_met(r, asked))
			return rules_refuse(r, asked, why);
		rules_put(r, info, rules_granted(r, asked));
	}
	return true;
}

bool rules_allow(uint32_t api, const struct fi_info *info, struct refusal *why)
{
	for (const struct rule *r = rules; r < rules + sizeof(rules) / sizeof(rules[0]); r++) {
		uint64_t asked = asked_by(r, api, info);

		if (r->part == PART_domain || r->type == FI_TYPE_OP_FLAGS || r->test >= KEY)
			continue;
		if (r->types & rules_kind_of(info) && !rules_met(r, asked))
			return rules_refuse(r, asked, why);
	}
	return true;
}
