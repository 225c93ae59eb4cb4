/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers for tests of objects (endpoints, queues, address vectors, regions, wait objects). Each
 * object can be opened and closed separately, in any combination.
 */
#ifndef API_OBJ_H
#define API_OBJ_H

#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <sys/resource.h>

#include "api.h"
#include "lib/data.h"

#define OBJ_PATIENCE_MS 8000 /* limit for any awaited event, times SLOWER */

#define FAILS(call)  CHECK((call) < 0)
#define CLOSE(thing) OK(fi_close(&(thing)->fid))

/* The usual objects. A member that a test does not open stays NULL and is not closed. */
struct obj {
	struct fi_info *hints, *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

struct obj_name {
	size_t len;
	char bytes[256];
};

static inline uint64_t obj_now_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000 + (uint64_t)at.tv_nsec / 1000;
}

/* CPU time (us) that all threads of this process have used. */
static inline uint64_t obj_cpu_us(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static inline void obj_sleep_us(uint64_t us)
{
	usleep((useconds_t)us);
}

/* Sets the time limit of a case that needs more than API_LIMIT. */
static inline void obj_time_limit(unsigned int seconds)
{
	alarm(seconds * (api_limit() / API_LIMIT));
}

/* Returns SLOWER. All limits, and sleeps that give another thread time, grow by this factor. */
static inline unsigned int obj_slower(void)
{
	return api_limit() / API_LIMIT;
}

static inline uint64_t obj_late_us(void)
{
	return OBJ_PATIENCE_MS * 1000ULL * obj_slower();
}

/* Repeats `work` until `cond` holds. Fails after OBJ_PATIENCE_MS times SLOWER. */
#define OBJ_UNTIL(cond, work)                                                                      \
	do {                                                                                       \
		uint64_t end_ = obj_now_us() + obj_late_us();                                      \
                                                                                                   \
		while (!(cond)) {                                                                  \
			if (obj_now_us() >= end_)                                                  \
				api_fail("waited in vain for: " #cond);                            \
			work;                                                                      \
		}                                                                                  \
	} while (0)

static inline struct fi_info *obj_hints(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();

	CHECK(hints != NULL);
	hints->fabric_attr->prov_name = strdup(api_provider());
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = caps;
	return hints;
}

/* Calls fi_getinfo for o->hints (default hints if NULL). Returns false for -FI_ENODATA. */
static inline bool obj_find(struct obj *o, uint32_t version)
{
	int ret;

	if (!o->hints)
		o->hints = obj_hints(FI_MSG | FI_TAGGED);
	ret = fi_getinfo(version, NULL, NULL, 0, o->hints, &o->info);
	if (ret != -FI_ENODATA)
		OK(ret);
	return ret == 0;
}

/* Opens fabric and domain. If fi_getinfo offers nothing, fails; with OTHER=1, skips the case. */
static inline void obj_domain(struct obj *o)
{
	if (!o->info && !obj_find(o, FI_VERSION(1, 17))) {
		if (api_other())
			api_skip("not offered by this library");
		api_fail("fi_getinfo offers nothing for the hints");
	}
	OK(fi_fabric(o->info->fabric_attr, &o->fabric, NULL));
	OK(fi_domain(o->fabric, o->info, &o->domain, NULL));
}

static inline struct fid_cq *obj_cq(struct obj *o, enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait};
	struct fid_cq *cq;

	OK(fi_cq_open(o->domain, &attr, &cq, NULL));
	return cq;
}

static inline struct fid_cntr *obj_cntr(struct obj *o, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = wait};
	struct fid_cntr *cntr;

	OK(fi_cntr_open(o->domain, &attr, &cntr, NULL));
	return cntr;
}

static inline struct fid_av *obj_av(struct obj *o, enum fi_av_type type, int rx_ctx_bits)
{
	struct fi_av_attr attr = {.type = type, .rx_ctx_bits = rx_ctx_bits};
	struct fid_av *av;

	OK(fi_av_open(o->domain, &attr, &av, NULL));
	return av;
}

/* Do endpoints connect across a network? */
static inline bool obj_connects(void)
{
	return strcmp(api_provider(), "shm") != 0;
}

static inline struct fid_ep *obj_ep(struct obj *o)
{
	struct fid_ep *ep;

	OK(fi_endpoint(o->domain, o->info, &ep, NULL));
	return ep;
}

/* Returns an enabled endpoint bound to o->av and to `cq` for sends and receives. */
static inline struct fid_ep *obj_ready_ep(struct obj *o, struct fid_cq *cq)
{
	struct fid_ep *ep = obj_ep(o);

	OK(fi_ep_bind(ep, &o->av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	return ep;
}

/* Opens all members of `o` that are not open yet. */
static inline void obj_open(struct obj *o)
{
	if (!o->domain)
		obj_domain(o);
	if (!o->av)
		o->av = obj_av(o, FI_AV_UNSPEC, 0);
	if (!o->cq)
		o->cq = obj_cq(o, FI_WAIT_NONE);
	if (!o->ep)
		o->ep = obj_ready_ep(o, o->cq);
}

static inline void obj_close(struct obj *o)
{
	if (o->ep)
		CLOSE(o->ep);
	if (o->cq)
		CLOSE(o->cq);
	if (o->av)
		CLOSE(o->av);
	if (o->domain)
		CLOSE(o->domain);
	if (o->fabric)
		CLOSE(o->fabric);
	fi_freeinfo(o->info);
	fi_freeinfo(o->hints);
	memset(o, 0, sizeof(*o));
}

static inline struct obj_name obj_name(struct fid *fid)
{
	struct obj_name name = {.len = sizeof(name.bytes)};

	OK(fi_getname(fid, name.bytes, &name.len));
	return name;
}

static inline fi_addr_t obj_insert(struct fid_av *av, const struct obj_name *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	CHECK_EQ(fi_av_insert(av, name->bytes, 1, &addr, 0, NULL), 1);
	return addr;
}

/* Inserts the address of `ep`, an endpoint of this process, into `av`. */
static inline fi_addr_t obj_insert_ep(struct fid_av *av, struct fid_ep *ep)
{
	struct obj_name name = obj_name(&ep->fid);

	return obj_insert(av, &name);
}

/* For two processes: exchanges addresses. Returns the other's entry in `av`. */
static inline fi_addr_t obj_swap(struct api *a, struct fid_ep *ep, struct fid_av *av)
{
	struct obj_name mine = obj_name(&ep->fid), all[2];

	api_swap(a, &mine, all, sizeof(mine));
	return obj_insert(av, &all[!a->rank]);
}

static inline void obj_drive(void *cq)
{
	fi_cq_read(cq, NULL, 0);
}

/* Reads `cq` for progress while this process waits for another one. */
static inline void obj_progress(struct api *a, struct fid_cq *cq)
{
	a->progress = obj_drive;
	a->progress_arg = cq;
}

static inline void obj_cq_failed(struct fid_cq *cq, ssize_t ret)
{
	struct fi_cq_err_entry err = {0};

	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		ret = -err.err;
	api_check_eq(ret, 1, "a good completion");
}

/* Waits for the next completion, which must be good. `src` may be NULL. */
static inline struct fi_cq_tagged_entry obj_next(struct fid_cq *cq, fi_addr_t *src)
{
	struct fi_cq_tagged_entry entry = {0};
	fi_addr_t unused;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_readfrom(cq, &entry, 1, src ? src : &unused)) != -FI_EAGAIN, );
	if (ret != 1)
		obj_cq_failed(cq, ret);
	return entry;
}

/* Waits for the next completion, whose context must be `context`. */
static inline struct fi_cq_tagged_entry obj_done(struct fid_cq *cq, const void *context)
{
	struct fi_cq_tagged_entry entry = obj_next(cq, NULL);

	CHECK_EQ((uintptr_t)entry.op_context, (uintptr_t)context);
	return entry;
}

/* Waits for the next completion, which must be an error. */
static inline struct fi_cq_err_entry obj_error(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = {0};
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN, );
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(cq, &err, 0), 1);
	return err;
}

/* Checks that no completion arrives within `ms`. */
static inline void obj_quiet(struct fid_cq *cq, unsigned int ms)
{
	uint64_t end = obj_now_us() + ms * 1000ULL;
	struct fi_cq_tagged_entry entry;

	while (obj_now_us() < end)
		CHECK_EQ(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

/* Repeats `call` while it returns -FI_EAGAIN; reads `cq` for progress. */
#define POST(cq, call)                                                                             \
	do {                                                                                       \
		ssize_t ret_;                                                                      \
		api_at(__FILE__, __LINE__);                                                        \
		OBJ_UNTIL((ret_ = (call)) != -FI_EAGAIN, fi_cq_read((cq), NULL, 0));               \
		api_check_eq(ret_, 0, #call);                                                      \
	} while (0)

#endif
