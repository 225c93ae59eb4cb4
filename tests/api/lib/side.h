/* SPDX-License-Identifier: BSD-2-Clause */
/* One process's endpoint with its objects, and helpers that wait for completions. Needs api.h. */
#ifndef API_SIDE_H
#define API_SIDE_H

#include "pair.h"

#define SIDE_NAME 128 /* maximum bytes of an address */

struct side_opts {
	uint64_t caps;               /* 0: FI_MSG | FI_TAGGED; bare queue pairs: FI_MSG */
	uint64_t tx_flags, rx_flags; /* op_flags */
	uint64_t tx_bind, rx_bind;   /* flags for binding, beside FI_TRANSMIT and FI_RECV */
	enum fi_threading threading;
	enum fi_cq_format format; /* of both queues; 0: FI_CQ_FORMAT_TAGGED */
	enum fi_av_type av_type;
	size_t cq_size, min_multi_recv;
	bool one_cq;                         /* s->tx and s->rx are the same queue */
	bool knows_nobody;                   /* no address is inserted */
	bool not_enabled;                    /* opened and bound only */
	void (*tune)(struct fi_info *hints); /* called last, may be NULL: changes the hints */
};

struct side {
	struct api *a;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *tx, *rx;
	struct fid_ep *ep;
	fi_addr_t addr[API_RANKS]; /* of all processes, this one included */
	unsigned char names[API_RANKS][SIDE_NAME];
	size_t name_len;
	struct pair pair;
	bool yields; /* yields while waiting: for tests that wait for many answers */
};

static inline void side_progress(void *arg)
{
	struct side *s = arg;

	fi_cq_read(s->tx, NULL, 0);
	if (s->rx != s->tx)
		fi_cq_read(s->rx, NULL, 0);
	if (s->a->ranks > 2 || s->yields)
		sched_yield(); /* there may be fewer cores than processes */
}

static inline void side_info(struct side *s, const struct side_opts *o)
{
	uint32_t version = FI_VERSION(2, 6);
	struct fi_info *hints = fi_allocinfo();
	int ret;

	CHECK(hints);
	if (FI_VERSION_LT(fi_version(), version))
		version = fi_version();
	hints->caps = o->caps ? o->caps : pair_bare() ? FI_MSG : FI_MSG | FI_TAGGED;
	hints->mode = 0;
	hints->ep_attr->type = pair_type();
	hints->tx_attr->op_flags = o->tx_flags;
	hints->rx_attr->op_flags = o->rx_flags;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = o->threading;
	hints->domain_attr->av_type = o->av_type;
	hints->domain_attr->mr_mode =
		pair_mr_mode(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	hints->fabric_attr->prov_name = strdup(api_provider());
	if (o->tune)
		o->tune(hints);
	ret = fi_getinfo(version, NULL, NULL, 0, hints, &s->info);
	if (ret == -FI_ENODATA && api_other())
		api_skip("not offered by this library");
	if (ret == -FI_ENODATA && pair_bare() && hints->caps & ~PAIR_BARE_CAPS)
		api_skip("not what a bare queue pair does");
	fi_freeinfo(hints);
	OK(ret);
}

static inline void side_queues(struct side *s, const struct side_opts *o)
{
	struct fi_cq_attr attr = {.format = o->format ? o->format : FI_CQ_FORMAT_TAGGED,
				  .size = o->cq_size,
				  .wait_obj = FI_WAIT_NONE};
	struct fi_cq_attr again = attr;

	OK(fi_cq_open(s->domain, &attr, &s->tx, NULL));
	s->rx = s->tx;
	if (!o->one_cq)
		OK(fi_cq_open(s->domain, &again, &s->rx, NULL));
	OK(fi_ep_bind(s->ep, &s->tx->fid, FI_TRANSMIT | o->tx_bind));
	OK(fi_ep_bind(s->ep, &s->rx->fid, FI_RECV | o->rx_bind));
}

/* Exchanges addresses and inserts them. Entries may have different numbers in each process. */
static inline void side_exchange(struct side *s, const struct side_opts *o)
{
	unsigned char name[SIDE_NAME] = {0};

	if (pair_wanted()) {
		pair_meet(&s->pair, s->a, s->ep);
		for (int i = 0; i < s->a->ranks; i++)
			s->addr[i] = pair_addr(i);
		return;
	}
	s->name_len = sizeof(name);
	OK(fi_getname(&s->ep->fid, name, &s->name_len));
	api_swap(s->a, name, s->names, sizeof(name));
	for (int i = 0; i < s->a->ranks; i++) {
		s->addr[i] = FI_ADDR_NOTAVAIL;
		if (!o->knows_nobody)
			CHECK_EQ(fi_av_insert(s->av, s->names[i], 1, &s->addr[i], 0, NULL), 1);
	}
}

static inline void side_open(struct side *s, struct api *a, const struct side_opts *o)
{
	struct fi_av_attr av = {.type = o->av_type};

	*s = (struct side){.a = a};
	side_info(s, o);
	OK(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	OK(fi_domain(s->fabric, s->info, &s->domain, NULL));
	OK(fi_av_open(s->domain, &av, &s->av, NULL));
	s->ep = pair_endpoint(&s->pair, a, s->fabric, s->domain, s->info);
	OK(fi_ep_bind(s->ep, &s->av->fid, 0));
	side_queues(s, o);
	if (o->min_multi_recv)
		OK(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			     &o->min_multi_recv, sizeof(o->min_multi_recv)));
	if (o->not_enabled)
		return;
	OK(fi_enable(s->ep));
	side_exchange(s, o);
	a->progress = side_progress;
	a->progress_arg = s;
}

/* Closes without waiting for the other processes, which may be gone. s->ep: NULL if it is closed. */
static inline void side_close_alone(struct side *s)
{
	s->a->progress = NULL;
	if (s->ep)
		OK(fi_close(&s->ep->fid));
	pair_close(&s->pair);
	OK(fi_close(&s->tx->fid));
	if (s->rx != s->tx)
		OK(fi_close(&s->rx->fid));
	OK(fi_close(&s->av->fid));
	OK(fi_close(&s->domain->fid));
	OK(fi_close(&s->fabric->fid));
	fi_freeinfo(s->info);
}

/* Waits for all processes first: closing an endpoint ends the operations with its peers. */
static inline void side_close(struct side *s)
{
	api_meet(s->a);
	side_close_alone(s);
}

/* ---- Completions, of queues of FI_CQ_FORMAT_TAGGED ------------------------------------------- */

static inline __attribute__((noreturn)) void side_unwanted(struct fid_cq *cq)
{
	struct fi_cq_err_entry e = {0};
	char line[160];

	fi_cq_readerr(cq, &e, 0);
	snprintf(line, sizeof(line), "operation failed: %d %s, olen %zu, tag %#" PRIx64, e.err,
		 fi_strerror(e.err), e.olen, e.tag);
	api_fail(line);
}

static inline struct fi_cq_tagged_entry side_take_from(struct side *s, struct fid_cq *cq,
						       fi_addr_t *src)
{
	struct fi_cq_tagged_entry e = {0};
	ssize_t ret;

	while ((ret = fi_cq_readfrom(cq, &e, 1, src)) == -FI_EAGAIN)
		side_progress(s);
	if (ret == -FI_EAVAIL)
		side_unwanted(cq);
	api_check_eq(ret, 1, "fi_cq_readfrom");
	return e;
}

static inline struct fi_cq_tagged_entry side_take(struct side *s, struct fid_cq *cq)
{
	fi_addr_t src;

	return side_take_from(s, cq, &src);
}

static inline struct fi_cq_err_entry side_take_err(struct side *s, struct fid_cq *cq, int err)
{
	struct fi_cq_err_entry e = {0};
	struct fi_cq_tagged_entry unused;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &unused, 1)) == -FI_EAGAIN)
		side_progress(s);
	api_check_eq(ret, -FI_EAVAIL, "fi_cq_read");
	api_check_eq(fi_cq_readerr(cq, &e, 0), 1, "fi_cq_readerr");
	api_check_eq(e.err, err, "err of the completion");
	return e;
}

/* Checks that nothing completes within `ms`, with progress. */
static inline void side_quiet(struct side *s, struct fid_cq *cq, int ms)
{
	double end = api_seconds() + ms * 1e-3;
	struct fi_cq_tagged_entry e;

	while (api_seconds() < end) {
		api_check_eq(fi_cq_read(cq, &e, 1), -FI_EAGAIN, "a completion before its time");
		side_progress(s);
	}
}

#define SIDE_FLAGS (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_REMOTE_CQ_DATA | FI_MULTI_RECV)

static inline struct fi_cq_tagged_entry side_got(struct side *s, const void *context,
						 uint64_t flags, size_t len)
{
	struct fi_cq_tagged_entry e = side_take(s, s->rx);

	api_check_eq((intptr_t)e.op_context, (intptr_t)context, "context of the receive");
	api_check_eq((int64_t)(e.flags & SIDE_FLAGS), (int64_t)(flags | FI_RECV),
		     "flags of the receive");
	api_check_eq((int64_t)e.len, (int64_t)len, "length of the receive");
	return e;
}

static inline void side_sent(struct side *s, const void *context, uint64_t flags)
{
	struct fi_cq_tagged_entry e = side_take(s, s->tx);

	api_check_eq((intptr_t)e.op_context, (intptr_t)context, "context of the send");
	api_check_eq((int64_t)(e.flags & (SIDE_FLAGS & ~FI_REMOTE_CQ_DATA)),
		     (int64_t)(flags | FI_SEND), "flags of the send");
}

#define TAKE(...)      (api_at(__FILE__, __LINE__), side_take(__VA_ARGS__))
#define TAKE_FROM(...) (api_at(__FILE__, __LINE__), side_take_from(__VA_ARGS__))
#define TAKE_ERR(...)  (api_at(__FILE__, __LINE__), side_take_err(__VA_ARGS__))
#define QUIET(...)     (api_at(__FILE__, __LINE__), side_quiet(__VA_ARGS__))
#define GOT(...)       (api_at(__FILE__, __LINE__), side_got(__VA_ARGS__))
#define SENT(...)      (api_at(__FILE__, __LINE__), side_sent(__VA_ARGS__))

/* Repeats `call` while it returns -FI_EAGAIN, with progress. */
#define POST(s, call)                                                                              \
	do {                                                                                       \
		ssize_t post_ret;                                                                  \
                                                                                                   \
		api_at(__FILE__, __LINE__);                                                        \
		while ((post_ret = (call)) == -FI_EAGAIN)                                          \
			side_progress(s);                                                          \
		api_check_eq(post_ret, 0, #call);                                                  \
	} while (0)

/* The same for a call to a peer that cannot be reached: it fails with `err` (positive). */
#define REFUSED(s, err, call)                                                                      \
	do {                                                                                       \
		ssize_t post_ret;                                                                  \
                                                                                                   \
		api_at(__FILE__, __LINE__);                                                        \
		while ((post_ret = (call)) == -FI_EAGAIN)                                          \
			side_progress(s);                                                          \
		api_check_eq(post_ret, -(err), #call);                                             \
	} while (0)

#endif
