/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What API 2.7 adds for accelerators that post operations by themselves: no provider has them, so
 * asking for one is refused, and callers of an older interface, whose structures end earlier, are
 * served as before. HW=tcp. fi_domain(3), fi_getinfo(3).
 */
#define WEFT_API_2_7
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "obj.h"

#define OLD FI_VERSION(2, 6)
#define NEW FI_VERSION(2, 7)

/* fi_getinfo as programs of the development line are linked to it. */
static int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		      struct fi_info **);

/* The reference of the distribution knows nothing of it. */
static void ours_only(struct api *a)
{
	(void)a;
	if (api_other())
		api_skip("of API 2.7");
	*(void **)&getinfo = dlvsym(RTLD_DEFAULT, "fi_getinfo", "FABRIC_1.10");
	CHECK(getinfo);
}

static char context; /* stands for that of an accelerator */

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

static void world_open(struct world *w, uint32_t api)
{
	struct fi_info *hints = obj_hints(FI_MSG);

	OK((api == NEW ? getinfo : fi_getinfo)(api, NULL, NULL, 0, hints, &w->info));
	OK(fi_fabric(w->info->fabric_attr, &w->fabric, NULL));
	OK(fi_domain(w->fabric, w->info, &w->domain, NULL));
	fi_freeinfo(hints);
}

static void world_close(struct world *w)
{
	CLOSE(w->domain);
	CLOSE(w->fabric);
	fi_freeinfo(w->info);
}

/* Returns a copy of the first `size` bytes, in front of memory that cannot be read. Never freed. */
static void *at_edge(const void *from, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *area =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(area != MAP_FAILED && mprotect(area + page, page, PROT_NONE) == 0);
	return memcpy(area + page - size, from, size);
}

/* Attributes of an older interface are not read behind their end. */
static void older_attributes(struct api *a)
{
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_cq_attr cq_attr = {.size = 8};
	struct fid_cntr *cntr;
	struct world w;
	struct fid_cq *cq;

	ours_only(a);
	world_open(&w, fi_version());
	OK(fi_cq_open(w.domain, at_edge(&cq_attr, offsetof(struct fi_cq_attr, xpu_ctx)), &cq,
		      NULL));
	OK(fi_cntr_open(w.domain, at_edge(&cntr_attr, offsetof(struct fi_cntr_attr, xpu_ctx)),
			&cntr, NULL));
	CLOSE(cq);
	CLOSE(cntr);
	world_close(&w);
}

static void refused(struct api *a)
{
	struct fi_cntr_attr cntr_attr = {.xpu_ctx = &context};
	struct fi_cq_attr cq_attr = {.xpu_ctx = &context};
	struct fid_cntr *cntr;
	struct world w;
	struct fid_cq *cq;
	struct fid_ep *ep;

	ours_only(a);
	world_open(&w, NEW);
	CHECK(!w.info->ep_attr->xpu_ctx && !w.info->domain_attr->max_xpu_ctx_cnt);
	CHECK_EQ(fi_cq_open(w.domain, &cq_attr, &cq, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_cntr_open(w.domain, &cntr_attr, &cntr, NULL), -FI_ENOSYS);
	w.info->ep_attr->xpu_ctx = &context;
	CHECK_EQ(fi_endpoint(w.domain, w.info, &ep, NULL), -FI_ENOSYS);
	w.info->ep_attr->xpu_ctx = NULL;
	OK(fi_endpoint(w.domain, w.info, &ep, NULL));
	CLOSE(ep);
	world_close(&w);
}

/* Each hint alone finds nothing; in an older interface the members are not there. */
static void hints_of_accelerators(struct api *a)
{
	struct fi_info *hints = obj_hints(FI_MSG), *info = NULL;

	ours_only(a);
	hints->ep_attr->xpu_ctx = &context;
	CHECK_EQ(getinfo(NEW, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	OK(getinfo(OLD, NULL, NULL, 0, hints, &info));
	fi_freeinfo(info);
	hints->ep_attr->xpu_ctx = NULL;
	hints->domain_attr->max_xpu_ctx_cnt = 1;
	CHECK_EQ(getinfo(NEW, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->max_xpu_ctx_cnt = 0;
	hints->caps |= FI_XPU;
	CHECK_EQ(getinfo(NEW, NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->caps &= ~FI_XPU;
	hints->domain_attr->mr_mode |= FI_MR_XPU_DESC; /* a duty that nobody needs */
	OK(getinfo(NEW, NULL, NULL, 0, hints, &info));
	CHECK(!(info->domain_attr->mr_mode & FI_MR_XPU_DESC));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* The tables have the new members, which refuse. */
static void members_of_tables(struct api *a)
{
	struct fi_mr_xpu_desc desc;
	struct obj o = {0};
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	ours_only(a);
	obj_open(&o);
	cntr = obj_cntr(&o, FI_WAIT_NONE);
	OK(fi_mr_reg(o.domain, &context, 1, FI_SEND, 0, 1, 0, &mr, NULL));
	CHECK(FI_CHECK_OP(o.av->ops, struct fi_ops_av, lookup2));
	CHECK(FI_CHECK_OP(o.domain->ops, struct fi_ops_domain, xpu_ctx));
	CHECK(FI_CHECK_OP(o.ep->ops, struct fi_ops_ep, export_xpu));
	CHECK(FI_CHECK_OP(o.cq->ops, struct fi_ops_cq, export_xpu));
	CHECK(FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, export_xpu));
	CHECK_EQ(o.av->ops->lookup2(), -FI_ENOSYS);
	CHECK_EQ(o.domain->ops->xpu_ctx(), -FI_ENOSYS);
	CHECK_EQ(o.ep->ops->export_xpu(), -FI_ENOSYS);
	CHECK_EQ(o.cq->ops->export_xpu(), -FI_ENOSYS);
	CHECK_EQ(cntr->ops->export_xpu(), -FI_ENOSYS);
	CHECK_EQ(fi_control(&mr->fid, FI_GET_MR_XPU_DESC, &desc), -FI_ENOSYS);
	CLOSE(mr);
	CLOSE(cntr);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"older_attributes", older_attributes, 1, {0}},
		{"refused", refused, 1, {0}},
		{"hints_of_accelerators", hints_of_accelerators, 1, {0}},
		{"members_of_tables", members_of_tables, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
