/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two ends of a way, in this process: one endpoint that sends to itself, or two that are connected. Runs a proof
 * for each endpoint type that the provider offers. Needs obj.h, cm.h.
 */
#ifndef API_WAYS_H
#define API_WAYS_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define WAYS_ROOM  (1 << 17) /* bytes of a region */
#define WAYS_KINDS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

struct ways {
	struct cm c; /* c.o has the objects of both */
	struct cm_end ends[2];
	const struct fi_info *info;
	struct fid_ep *tx, *rx;
	struct fid_cq *tx_cq, *rx_cq;
	fi_addr_t peer; /* of rx, for tx */
};

static unsigned char ways_local[WAYS_ROOM] __attribute__((unused));
static unsigned char ways_target[WAYS_ROOM] __attribute__((unused));

static inline bool ways_can(const struct ways *w, uint64_t caps)
{
	return (w->info->caps & caps) == caps;
}

static inline void ways_drive(struct ways *w)
{
	fi_cq_read(w->tx_cq, NULL, 0);
	fi_cq_read(w->rx_cq, NULL, 0);
}

/* Repeats `call` while it answers -FI_EAGAIN; both ends make progress. */
#define WAYS_POST(w, call)                                                                         \
	do {                                                                                       \
		ssize_t ret_;                                                                      \
		api_at(__FILE__, __LINE__);                                                        \
		OBJ_UNTIL((ret_ = (call)) != -FI_EAGAIN, ways_drive(w));                           \
		api_check_eq(ret_, 0, #call);                                                      \
	} while (0)

/* Takes the next completion of `cq`; both ends make progress. */
static inline struct fi_cq_tagged_entry ways_next(struct ways *w, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry = {0};
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN, ways_drive(w));
	if (ret != 1)
		obj_cq_failed(cq, ret);
	return entry;
}

static inline struct fi_info *ways_hints(enum fi_ep_type type)
{
	struct fi_info *hints = obj_hints(type == FI_EP_DGRAM ? FI_MSG : WAYS_KINDS);

	hints->ep_attr->type = type;
	if (type == FI_EP_DGRAM)
		hints->addr_format = FI_SOCKADDR_IN;
	return hints;
}

/* Opens what hints for `type`, changed by `tune` (may be NULL), get; false: nothing. */
static inline bool ways_open(struct ways *w, enum fi_ep_type type,
			     void (*tune)(struct fi_info *hints))
{
	struct obj *o = &w->c.o;

	memset(w, 0, sizeof(*w));
	o->hints = ways_hints(type);
	if (tune)
		tune(o->hints);
	if (!obj_find(o, FI_VERSION(1, 20))) {
		fi_freeinfo(o->hints);
		return false;
	}
	w->info = o->info;
	if (type == FI_EP_MSG) {
		obj_domain(o);
		cm_both(&w->c, &w->ends[0], &w->ends[1]);
		w->tx = w->ends[0].ep;
		w->rx = w->ends[1].ep;
		w->tx_cq = w->ends[0].cq;
		w->rx_cq = w->ends[1].cq;
		return true;
	}
	obj_domain(o);
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->cq = w->tx_cq = obj_cq(o, FI_WAIT_NONE);
	w->rx_cq = obj_cq(o, FI_WAIT_NONE);
	o->ep = w->tx = w->rx = obj_ep(o);
	OK(fi_ep_bind(o->ep, &o->av->fid, 0));
	OK(fi_ep_bind(o->ep, &w->tx_cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(o->ep, &w->rx_cq->fid, FI_RECV));
	OK(fi_enable(o->ep));
	w->peer = obj_insert_ep(o->av, o->ep);
	return true;
}

/* Closes the endpoints and leaves what was posted; the rest is for ways_close. */
static inline void ways_drop(struct ways *w)
{
	struct fid_ep **ep = w->ends[0].cq ? &w->ends[0].ep : &w->c.o.ep;

	CLOSE(*ep);
	*ep = NULL;
	if (w->ends[1].ep)
		CLOSE(w->ends[1].ep);
	w->ends[1].ep = NULL;
}

static inline void ways_close(struct ways *w)
{
	if (w->ends[0].cq) {
		cm_close_both(&w->c, &w->ends[0], &w->ends[1]);
		return;
	}
	if (w->c.o.ep)
		CLOSE(w->c.o.ep);
	w->c.o.ep = NULL;
	CLOSE(w->rx_cq);
	obj_close(&w->c.o);
}

/* Runs `prove` over each type at hand. A failure names the type. */
static inline void ways_each(void (*prove)(struct ways *w))
{
	static const enum fi_ep_type types[] = {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM};
	static char name[32];
	unsigned int count = 0;
	struct ways w;

	if (cm_bare())
		api_skip("devices are for tests/lab");
	for (size_t i = 0; i < API_COUNT(types); i++) {
		api_name = fi_tostr_r(name, sizeof(name), &types[i], FI_TYPE_EP_TYPE);
		if (!ways_open(&w, types[i], NULL))
			continue;
		prove(&w);
		ways_close(&w);
		count++;
	}
	CHECK(count);
}

#endif
