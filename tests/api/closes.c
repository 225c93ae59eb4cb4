/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every object that can be opened, bound or imported can be closed by its fid, as libraries above
 * this one do.
 */
#include <rdma/fi_collective.h>
#include <rdma/fi_ext.h>

#include "obj.h"

#define MOST 24

/* Open objects, in the order of opening. */
struct opened {
	struct fid *fid[MOST];
	unsigned int count;
};

/* Notes `fid` after checking its class and its close function. */
static void note(struct opened *all, struct fid *fid, size_t fclass)
{
	CHECK_EQ(fid->fclass, fclass);
	CHECK(fid->ops && fid->ops->close);
	CHECK(fid->ops->size >= offsetof(struct fi_ops, close) + sizeof(fid->ops->close));
	CHECK(all->count < MOST);
	all->fid[all->count++] = fid;
}

#define NOTE(thing, fclass) (api_at(__FILE__, __LINE__), note(all, &(thing)->fid, fclass))

static void close_all(struct opened *all)
{
	while (all->count)
		OK(fi_close(all->fid[--all->count]));
}

static void domain_open(struct obj *o, struct opened *all)
{
	obj_domain(o);
	NOTE(o->fabric, FI_CLASS_FABRIC);
	NOTE(o->domain, FI_CLASS_DOMAIN);
}

static void queues(struct api *a)
{
	struct fi_wait_attr wait_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct opened opened = {.count = 0}, *all = &opened;
	struct fi_poll_attr poll_attr = {0};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct obj o = {0};
	struct fid_poll *poll;
	struct fid_wait *set;
	struct fid_eq *eq;

	(void)a;
	domain_open(&o, all);
	OK(fi_eq_open(o.fabric, &eq_attr, &eq, NULL));
	NOTE(eq, FI_CLASS_EQ);
	OK(fi_wait_open(o.fabric, &wait_attr, &set));
	NOTE(set, FI_CLASS_WAIT);
	OK(fi_poll_open(o.domain, &poll_attr, &poll));
	NOTE(poll, FI_CLASS_POLL);
	NOTE(obj_cq(&o, FI_WAIT_NONE), FI_CLASS_CQ);
	NOTE(obj_cntr(&o, FI_WAIT_NONE), FI_CLASS_CNTR);
	NOTE(obj_av(&o, FI_AV_UNSPEC, 0), FI_CLASS_AV);
	close_all(all);
	fi_freeinfo(o.info);
	fi_freeinfo(o.hints);
}

static void endpoints(struct api *a)
{
	struct opened opened = {.count = 0}, *all = &opened;
	static char memory[64];
	struct obj o = {0};
	struct fid_ep *alias;
	struct fid_mr *mr;

	(void)a;
	domain_open(&o, all);
	NOTE(o.av = obj_av(&o, FI_AV_UNSPEC, 0), FI_CLASS_AV);
	NOTE(o.cq = obj_cq(&o, FI_WAIT_NONE), FI_CLASS_CQ);
	OK(fi_mr_reg(o.domain, memory, sizeof(memory), FI_SEND, 0, 1, 0, &mr, NULL));
	NOTE(mr, FI_CLASS_MR);
	NOTE(o.ep = obj_ready_ep(&o, o.cq), FI_CLASS_EP);
	if (!api_other()) { /* providers tcp and shm of 1.17 have no aliases */
		OK(fi_ep_alias(o.ep, &alias, FI_TRANSMIT));
		NOTE(alias, FI_CLASS_EP);
	}
	close_all(all);
	fi_freeinfo(o.info);
	fi_freeinfo(o.hints);
}

static void contexts(struct api *a)
{
	struct opened opened = {.count = 0}, *all = &opened;
	struct obj o = {0};
	struct fid_ep *sep, *tx, *rx, *srx;
	struct fid_stx *stx;

	(void)a;
	if (api_other())
		api_skip("not every library has them");
	domain_open(&o, all);
	OK(fi_stx_context(o.domain, NULL, &stx, NULL));
	NOTE(stx, FI_CLASS_STX_CTX);
	OK(fi_srx_context(o.domain, NULL, &srx, NULL));
	NOTE(srx, FI_CLASS_SRX_CTX);
	OK(fi_scalable_ep(o.domain, o.info, &sep, NULL));
	NOTE(sep, FI_CLASS_SEP);
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	NOTE(tx, FI_CLASS_TX_CTX);
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	NOTE(rx, FI_CLASS_RX_CTX);
	close_all(all);
	fi_freeinfo(o.info);
	fi_freeinfo(o.hints);
}

static void passive(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG)};
	struct opened opened = {.count = 0}, *all = &opened;
	struct fid_pep *pep;

	(void)a;
	o.hints->ep_attr->type = FI_EP_MSG;
	if (!obj_find(&o, FI_VERSION(1, 17)))
		api_skip("no connected endpoints");
	OK(fi_fabric(o.info->fabric_attr, &o.fabric, NULL));
	NOTE(o.fabric, FI_CLASS_FABRIC);
	OK(fi_passive_ep(o.fabric, o.info, &pep, NULL));
	NOTE(pep, FI_CLASS_PEP);
	close_all(all);
	fi_freeinfo(o.info);
	fi_freeinfo(o.hints);
}

/* A joined group of one member. */
static void groups(struct api *a)
{
	struct fi_av_set_attr attr = {.count = 1, .start_addr = 0, .end_addr = 0, .stride = 1};
	struct opened opened = {.count = 0}, *all = &opened;
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct obj o = {.hints = obj_hints(FI_MSG | FI_COLLECTIVE)};
	struct fi_eq_entry entry;
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct fid_eq *eq;
	uint32_t event;

	(void)a;
	if (api_other())
		api_skip("not every library has them");
	domain_open(&o, all);
	OK(fi_eq_open(o.fabric, &eq_attr, &eq, NULL));
	NOTE(eq, FI_CLASS_EQ);
	NOTE(o.av = obj_av(&o, FI_AV_UNSPEC, 0), FI_CLASS_AV);
	NOTE(o.cq = obj_cq(&o, FI_WAIT_NONE), FI_CLASS_CQ);
	NOTE(o.ep = obj_ep(&o), FI_CLASS_EP);
	OK(fi_ep_bind(o.ep, &eq->fid, 0));
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(o.ep));
	obj_insert_ep(o.av, o.ep);
	OK(fi_av_set(o.av, &attr, &set, NULL));
	NOTE(set, FI_CLASS_AV_SET);
	OK(fi_join_collective(o.ep, FI_ADDR_NOTAVAIL, set, 0, &mc, NULL));
	NOTE(mc, FI_CLASS_MC);
	OBJ_UNTIL(fi_eq_read(eq, &event, &entry, sizeof(entry), 0) == sizeof(entry),
		  obj_drive(o.cq));
	CHECK_EQ(event, FI_JOIN_COMPLETE);
	close_all(all);
	fi_freeinfo(o.info);
	fi_freeinfo(o.hints);
}

static void log_of_ours(struct api *a)
{
	static struct fi_ops_log none;
	struct opened opened = {.count = 0}, *all = &opened;
	struct fid_logging log = {.ops = &none};
	struct fid *object;

	(void)a;
	OK(fi_import_log(FI_VERSION(1, 13), 0, &log));
	note(all, &log.fid, FI_CLASS_LOG);
	close_all(all);
	OK(fi_open(FI_VERSION(1, 13), "logging", NULL, 0, 0, &object, NULL));
	CHECK(object->ops && object->ops->close);
	OK(fi_close(object));
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"queues", queues, 1, {0}},     {"endpoints", endpoints, 1, {0}},
		{"contexts", contexts, 1, {0}}, {"passive", passive, 1, {0}},
		{"groups", groups, 1, {0}},     {"log_of_ours", log_of_ours, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
