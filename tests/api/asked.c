/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is asked by hints is granted or refused (-FI_ENODATA), what fi_getinfo offers is granted to who asks for that
 * or for less, and an endpoint is opened with no more than that. For each endpoint type. fi_getinfo(3).
 */
#include <stddef.h>

#include "obj.h"
#include "lib/cm.h"
#include "lib/ways.h"

/* Capabilities of one direction; others have no effect in a context's caps. fi_endpoint(3) */
#define BOTH                                                                                       \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_HMEM | FI_TRIGGER |          \
	 FI_RMA_PMEM)
#define OF_TX (BOTH | FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_MULTICAST | FI_NAMED_RX_CTX)
#define OF_RX                                                                                      \
	(BOTH | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_DIRECTED_RECV | FI_MULTI_RECV |    \
	 FI_SOURCE | FI_SOURCE_ERR | FI_RMA_EVENT)
#define OF_ALL UINT64_MAX

enum kind {
	LIMIT, /* more includes less */
	BITS,
};

struct member {
	const char *name;
	enum kind kind;
	bool opens; /* of the endpoint: see opened_each */
	size_t part, at, size;
	uint64_t bits; /* that are asked one by one */
};

#define PART(kind_, opens_, part_, member_, ...)                                                   \
	{                                                                                          \
		.name = #part_ "_attr->" #member_, .kind = (kind_), .opens = (opens_),             \
		.part = offsetof(struct fi_info, part_##_attr),                                    \
		.at = offsetof(struct fi_##part_##_attr, member_),                                 \
		.size = sizeof(((struct fi_##part_##_attr *)0)->member_), __VA_ARGS__              \
	}

static const struct member members[] = {
	PART(LIMIT, true, tx, inject_size),
	PART(LIMIT, true, tx, size),
	PART(LIMIT, true, tx, iov_limit),
	PART(LIMIT, true, tx, rma_iov_limit),
	PART(BITS, true, tx, caps, .bits = OF_TX),
	PART(BITS, false, tx, op_flags, .bits = OF_ALL), /* opening: flags.c */
	PART(BITS, true, tx, msg_order, .bits = OF_ALL),
	PART(BITS, true, tx, comp_order, .bits = OF_ALL),
	PART(LIMIT, true, rx, size),
	PART(LIMIT, true, rx, iov_limit),
	PART(BITS, true, rx, caps, .bits = OF_RX),
	PART(BITS, false, rx, op_flags, .bits = OF_ALL),
	PART(BITS, true, rx, msg_order, .bits = OF_ALL),
	PART(BITS, true, rx, comp_order, .bits = OF_ALL),
	PART(LIMIT, true, ep, protocol_version),
	PART(LIMIT, true, ep, max_msg_size),
	PART(LIMIT, true, ep, max_order_raw_size),
	PART(LIMIT, true, ep, max_order_war_size),
	PART(LIMIT, true, ep, max_order_waw_size),
	PART(LIMIT, false, domain, mr_key_size),
	PART(LIMIT, false, domain, cq_data_size),
	PART(LIMIT, false, domain, cq_cnt),
	PART(LIMIT, false, domain, ep_cnt),
	PART(LIMIT, false, domain, tx_ctx_cnt),
	PART(LIMIT, false, domain, rx_ctx_cnt),
	PART(LIMIT, false, domain, max_ep_tx_ctx),
	PART(LIMIT, false, domain, max_ep_rx_ctx),
	PART(LIMIT, false, domain, max_ep_stx_ctx),
	PART(LIMIT, false, domain, max_ep_srx_ctx),
	PART(LIMIT, false, domain, cntr_cnt),
	PART(LIMIT, false, domain, mr_iov_limit),
	PART(LIMIT, false, domain, max_err_data),
	PART(LIMIT, false, domain, mr_cnt),
	PART(BITS, false, domain, caps, .bits = OF_ALL),
};

static void *place(const struct fi_info *info, const struct member *m)
{
	return *(char *const *)((const char *)info + m->part) + m->at;
}

static uint64_t value(const struct fi_info *info, const struct member *m)
{
	uint32_t narrow;
	uint64_t wide;

	if (m->size == sizeof(narrow)) {
		memcpy(&narrow, place(info, m), sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, place(info, m), sizeof(wide));
	return wide;
}

static void put(struct fi_info *info, const struct member *m, uint64_t wide)
{
	uint32_t narrow = (uint32_t)wide;

	if (m->size == sizeof(narrow))
		memcpy(place(info, m), &narrow, sizeof(narrow));
	else
		memcpy(place(info, m), &wide, sizeof(wide));
}

static bool includes(const struct member *m, uint64_t has, uint64_t asked)
{
	return m->kind == LIMIT ? asked <= has : !(asked & ~has);
}

static struct fi_info *ask(const struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info);

	if (ret != -FI_ENODATA)
		OK(ret);
	return info;
}

/* An entry for a hint includes what it asks for. Returns whether there is one. */
static bool granted(enum fi_ep_type type, const struct member *m, uint64_t asked)
{
	struct fi_info *hints = ways_hints(type), *list;

	if (type != FI_EP_DGRAM && m->kind == BITS)
		hints->caps = 0;
	put(hints, m, asked);
	list = ask(hints);
	for (struct fi_info *info = list; info; info = info->next) {
		if (!includes(m, value(info, m), asked)) {
			fprintf(stderr, "%s: %#" PRIx64 " asked, %#" PRIx64 " granted\n", m->name,
				asked, value(info, m));
			api_fail("an entry has less than asked");
		}
	}
	fi_freeinfo(hints);
	fi_freeinfo(list);
	return list;
}

static void must(bool good, const struct member *m, uint64_t asked)
{
	if (good)
		return;
	fprintf(stderr, "%s: %#" PRIx64 "\n", m->name, asked);
	api_fail("what is offered is not granted");
}

static void hints_each(struct ways *w)
{
	for (const struct member *m = members; m < members + API_COUNT(members); m++) {
		uint64_t has = value(w->info, m), most = m->size == 4 ? UINT32_MAX : UINT64_MAX;
		enum fi_ep_type type = w->info->ep_attr->type;

		must(granted(type, m, has), m, has);
		if (m->kind == LIMIT) {
			must(!has || granted(type, m, 1), m, 1);
			granted(type, m, has < most ? has + 1 : most);
			granted(type, m, most);
			continue;
		}
		for (int i = 0; i < 64; i++) {
			uint64_t bit = UINT64_C(1) << i;

			if (m->bits & bit)
				must(granted(type, m, bit) || !(has & bit), m, bit);
		}
	}
}

static void hints(struct api *a)
{
	(void)a;
	ways_each(hints_each);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* An endpoint whose entry the application has changed exists only if hints would have got it. */
static void opens_as_granted(struct ways *w, const struct member *m, uint64_t asked)
{
	struct fi_info *info = fi_dupinfo(w->info);
	struct fid_ep *ep;
	int ret;

	put(info, m, asked);
	ret = fi_endpoint(w->c.o.domain, info, &ep, NULL);
	if (ret != -FI_ENODATA)
		OK(ret);
	if (!ret)
		CLOSE(ep);
	if (!ret != granted(w->info->ep_attr->type, m, asked)) {
		fprintf(stderr, "%s: %#" PRIx64 "\n", m->name, asked);
		api_fail(ret ? "refused, though granted by hints"
			     : "opened with more than is granted");
	}
	fi_freeinfo(info);
}

static void opened_each(struct ways *w)
{
	for (const struct member *m = members; m < members + API_COUNT(members); m++) {
		uint64_t has = value(w->info, m), most = m->size == 4 ? UINT32_MAX : UINT64_MAX;

		if (!m->opens)
			continue;
		opens_as_granted(w, m, has);
		if (m->kind == LIMIT) {
			opens_as_granted(w, m, has < most / 2 ? 2 * has + 1 : most);
			opens_as_granted(w, m, most);
			continue;
		}
		for (int i = 0; i < 64; i++)
			if (m->bits & UINT64_C(1) << i)
				opens_as_granted(w, m, UINT64_C(1) << i);
	}
}

static void opened(struct api *a)
{
	(void)a;
	ways_each(opened_each);
}

/* Contexts, too, say no more than their endpoint. */
static void contexts(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fid_ep *ep;

	(void)a;
	obj_domain(&o);
	OK(fi_scalable_ep(o.domain, o.info, &o.ep, NULL));
	tx = *o.info->tx_attr;
	tx.inject_size++;
	CHECK_EQ(fi_tx_context(o.ep, 0, &tx, &ep, NULL), -FI_ENODATA);
	tx.inject_size--;
	tx.comp_order = FI_ORDER_STRICT;
	CHECK_EQ(fi_tx_context(o.ep, 0, &tx, &ep, NULL), -FI_ENODATA);
	rx = *o.info->rx_attr;
	rx.iov_limit++;
	CHECK_EQ(fi_rx_context(o.ep, 0, &rx, &ep, NULL), -FI_ENODATA);
	CHECK_EQ(fi_srx_context(o.domain, &rx, &ep, NULL), -FI_ENODATA);
	rx.iov_limit--;
	OK(fi_srx_context(o.domain, &rx, &ep, NULL));
	CLOSE(ep);
	OK(fi_rx_context(o.ep, 0, &rx, &ep, NULL));
	CLOSE(ep);
	OK(fi_tx_context(o.ep, 0, o.info->tx_attr, &ep, NULL));
	CLOSE(ep);
	obj_close(&o);
}

/* ---- One with the other ---------------------------------------------------------------------- */

static void agree_each(struct ways *w)
{
	const struct fi_info *info = w->info;
	struct fi_info *again = ask(info);

	/* Contexts and domain have no capability or mode that the endpoint has not. */
	CHECK_EQ(info->tx_attr->caps & ~info->caps, 0);
	CHECK_EQ(info->rx_attr->caps & ~info->caps, 0);
	CHECK_EQ(info->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM) & ~info->domain_attr->caps, 0);
	CHECK_EQ((info->tx_attr->mode | info->rx_attr->mode) & ~info->mode, 0);
	CHECK_EQ(info->mode | info->domain_attr->mode, 0); /* none was offered */
	CHECK_EQ(info->ep_attr->msg_prefix_size, 0);
	CHECK_EQ(info->domain_attr->auth_key_size, 0);
	CHECK(!info->domain_attr->auth_key && !info->ep_attr->auth_key);
	CHECK(!strcmp(info->fabric_attr->prov_name, api_provider()));
	CHECK_EQ(info->fabric_attr->api_version, FI_VERSION(1, 20));
	CHECK_EQ(info->fabric_attr->prov_version, fi_version());
	/* An entry asks for itself, and names the open objects. */
	CHECK(again);
	for (const struct member *m = members; m < members + API_COUNT(members); m++)
		must(value(again, m) == value(info, m), m, value(again, m));
	CHECK(again->fabric_attr->fabric == w->c.o.fabric);
	CHECK(again->domain_attr->domain == w->c.o.domain);
	fi_freeinfo(again);
}

static void agree(struct api *a)
{
	(void)a;
	ways_each(agree_each);
}

/* The answer to a choice is the choice; traffic classes, which do nothing, are not claimed. */
static void choices_each(struct ways *w)
{
	static const enum fi_threading threading[] = {FI_THREAD_SAFE, FI_THREAD_FID,
						      FI_THREAD_DOMAIN, FI_THREAD_COMPLETION};
	static const enum fi_progress progress[] = {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL};
	static const enum fi_av_type vectors[] = {FI_AV_MAP, FI_AV_TABLE};

	for (size_t i = 0; i < 16; i++) {
		struct fi_info *hints = ways_hints(w->info->ep_attr->type), *info;
		struct fi_domain_attr *asked = hints->domain_attr;

		asked->threading = threading[i % 4];
		asked->control_progress = progress[i / 4 % 2];
		asked->data_progress = progress[i / 4 % 2];
		asked->av_type = vectors[i / 8];
		asked->resource_mgmt = FI_RM_ENABLED;
		hints->tx_attr->tclass = asked->tclass = FI_TC_LOW_LATENCY;
		info = ask(hints);
		CHECK(info);
		CHECK_EQ(info->domain_attr->threading, asked->threading);
		CHECK_EQ(info->domain_attr->control_progress, asked->control_progress);
		CHECK_EQ(info->domain_attr->data_progress, asked->data_progress);
		CHECK_EQ(info->domain_attr->av_type, asked->av_type);
		CHECK_EQ(info->domain_attr->resource_mgmt, FI_RM_ENABLED);
		CHECK_EQ(info->tx_attr->tclass, FI_TC_UNSPEC);
		CHECK_EQ(info->domain_attr->tclass, FI_TC_UNSPEC);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

static void choices(struct api *a)
{
	(void)a;
	ways_each(choices_each);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"hints", hints, 1, {0}},       {"opened", opened, 1, {0}},
		{"contexts", contexts, 1, {0}}, {"agree", agree, 1, {0}},
		{"choices", choices, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
