/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected endpoints: one side listens, the other connects. Both may be in one process. Needs
 * obj.h; the domain is in its struct obj.
 */
#ifndef API_CM_H
#define API_CM_H

#include <netinet/in.h>

#include "local.h"

#define CM_DATA  512   /* maximum bytes of user data with a connection request or answer */
#define CM_MS    10000 /* limit for an awaited event */
#define CM_QUIET 50    /* ms without an event */

#define CM_PROGRESS_MAX 32 /* maximum number of event queues driven while waiting */

/* One end of a connection. */
struct cm_end {
	struct fid_domain *domain;
	const struct fi_info *info; /* of the domain */
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

struct cm {
	struct obj o;
	struct fid_pep *pep;
	struct fid_eq *eq; /* event queue of pep */
	struct fid_eq *turned[CM_PROGRESS_MAX];
	unsigned int driven_count;
};

/* An event and its user data. */
struct cm_event {
	unsigned char data[CM_DATA + 16];
	size_t len; /* bytes in data */
	struct fi_eq_cm_entry entry;
};

/*
 * User data (bytes) of the RDMA connection manager's request and reject; an accept may carry more.
 */
#define CM_BARE_DATA   56
#define CM_BARE_REJECT 148

/* The registration mode that bare queue pairs require. */
#define CM_BARE_MR (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* Returns whether endpoints are bare queue pairs of a device. */
static inline bool cm_bare(void)
{
	return !strcmp(api_provider(), "verbs");
}

/*
 * Returns whether endpoints use shared memory alone: their addresses hold ports, but no TCP socket.
 */
static inline bool cm_inside(void)
{
	return !strcmp(api_provider(), "shm");
}

/* ---- Opening --------------------------------------------------------------------------------- */

static inline void cm_domain(struct cm *c, uint64_t caps, void (*tune)(struct fi_info *hints))
{
	struct fi_info *hints = obj_hints(caps ? caps : cm_bare() ? FI_MSG : FI_MSG | FI_TAGGED);

	memset(c, 0, sizeof(*c));
	hints->ep_attr->type = FI_EP_MSG;
	if (cm_bare())
		hints->domain_attr->mr_mode = CM_BARE_MR;
	if (tune)
		tune(hints);
	c->o.hints = hints;
	if (!obj_find(&c->o, FI_VERSION(1, 17)))
		api_skip("no connected endpoints");
	obj_domain(&c->o);
}

/*
 * Returns an IPv4 address of this host that an endpoint of the domain can have, with port `number`.
 */
static inline struct sockaddr_in cm_here(const struct cm *c, uint16_t number)
{
	struct sockaddr_in in = {.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	if (cm_bare()) { /* no device has 127.0.0.1 */
		CHECK_EQ(c->o.info->src_addrlen, sizeof(in));
		memcpy(&in, c->o.info->src_addr, sizeof(in));
	}
	in.sin_family = AF_INET;
	in.sin_port = htons(number);
	return in;
}

static inline struct fid_eq *cm_eq(struct cm *c, enum fi_wait_obj wait)
{
	struct fi_eq_attr attr = {.wait_obj = wait};
	struct fid_eq *eq;

	OK(fi_eq_open(c->o.fabric, &attr, &eq, NULL));
	CHECK(c->driven_count < CM_PROGRESS_MAX);
	c->turned[c->driven_count++] = eq;
	return eq;
}

static inline void cm_close_eq(struct cm *c, struct fid_eq *eq)
{
	for (unsigned int i = 0; i < c->driven_count; i++)
		if (c->turned[i] == eq)
			c->turned[i--] = c->turned[--c->driven_count];
	CLOSE(eq);
}

/* Returns a passive endpoint bound to `eq`, not listening. */
static inline struct fid_pep *cm_pep(struct cm *c, struct fid_eq *eq)
{
	struct fid_pep *pep;

	OK(fi_passive_ep(c->o.fabric, c->o.info, &pep, NULL));
	OK(fi_pep_bind(pep, &eq->fid, 0));
	return pep;
}

static inline void cm_listen(struct cm *c)
{
	c->eq = cm_eq(c, FI_WAIT_UNSPEC);
	c->pep = cm_pep(c, c->eq);
	OK(fi_listen(c->pep));
}

/* Opens an endpoint for `info` with queues of its own. Does not enable the endpoint. */
static inline void cm_end(struct cm *c, struct cm_end *e, struct fi_info *info)
{
	e->domain = c->o.domain;
	e->info = c->o.info;
	e->eq = cm_eq(c, FI_WAIT_UNSPEC);
	e->cq = obj_cq(&c->o, FI_WAIT_NONE);
	OK(fi_endpoint(c->o.domain, info, &e->ep, e));
	OK(fi_ep_bind(e->ep, &e->eq->fid, 0));
	OK(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
}

static inline void cm_enable(struct cm_end *e)
{
	OK(fi_enable(e->ep));
	local_wrap(e->domain, e->info, e->ep);
}

static inline void cm_close_end(struct cm *c, struct cm_end *e)
{
	if (e->ep)
		CLOSE(e->ep);
	CLOSE(e->cq);
	cm_close_eq(c, e->eq);
}

static inline void cm_close(struct cm *c)
{
	if (c->pep)
		CLOSE(c->pep);
	if (c->eq)
		cm_close_eq(c, c->eq);
	CHECK_EQ(c->driven_count, 0);
	obj_close(&c->o);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Drives all event queues and consumes no event. */
static inline void cm_progress(struct cm *c)
{
	struct cm_event scratch;
	uint32_t event;

	for (unsigned int i = 0; i < c->driven_count; i++)
		fi_eq_read(c->turned[i], &event, &scratch, sizeof(scratch), FI_PEEK);
	sched_yield(); /* there may be fewer cores than processes */
}

static inline ssize_t cm_read(struct cm *c, struct fid_eq *eq, uint32_t *event,
			      struct cm_event *got)
{
	unsigned char bytes[sizeof(got->entry) + sizeof(got->data)];
	ssize_t ret;

	OBJ_UNTIL((ret = fi_eq_read(eq, event, bytes, sizeof(bytes), 0)) != -FI_EAGAIN,
		  cm_progress(c));
	if (ret < (ssize_t)sizeof(got->entry))
		return ret;
	memcpy(&got->entry, bytes, sizeof(got->entry));
	got->len = (size_t)ret - sizeof(got->entry);
	memcpy(got->data, bytes + sizeof(got->entry), got->len);
	return ret;
}

/* Waits for the next event, which must be `wanted` with `about` as fid. */
static inline struct cm_event cm_event(struct cm *c, struct fid_eq *eq, uint32_t wanted,
				       const struct fid *about)
{
	struct fi_eq_err_entry err = {0};
	struct cm_event got = {0};
	uint32_t event = 0;
	ssize_t ret = cm_read(c, eq, &event, &got);

	if (ret == -FI_EAVAIL && fi_eq_readerr(eq, &err, 0) > 0)
		ret = -err.err;
	api_check_eq(ret < 0 ? ret : 0, 0, "fi_eq_read");
	api_check_eq(event, wanted, "the event");
	api_check_eq((intptr_t)got.entry.fid, (intptr_t)about, "its object");
	return got;
}

/* Waits for the next event, which must be a failure of e->ep with error `wanted`. */
static inline struct cm_event cm_failure(struct cm *c, struct cm_end *e, int wanted)
{
	struct fi_eq_err_entry err = {0};
	struct cm_event got = {0};
	uint32_t event = 0;

	err.err_data = got.data;
	err.err_data_size = sizeof(got.data);
	api_check_eq(cm_read(c, e->eq, &event, &got), -FI_EAVAIL, "fi_eq_read");
	api_check_eq(fi_eq_readerr(e->eq, &err, 0), sizeof(err), "fi_eq_readerr");
	api_check_eq(err.err, wanted, "the reason");
	api_check_eq((intptr_t)err.fid, (intptr_t)&e->ep->fid, "its object");
	api_check_eq((intptr_t)err.context, (intptr_t)e, "its context");
	got.len = err.err_data_size;
	return got;
}

/* Checks that no event arrives within CM_QUIET. */
static inline void cm_silence(struct cm *c, struct fid_eq *eq)
{
	uint64_t end = obj_now_us() + CM_QUIET * 1000;
	struct cm_event scratch;
	uint32_t event;

	while (obj_now_us() < end) {
		api_check_eq(fi_eq_read(eq, &event, &scratch, sizeof(scratch), 0), -FI_EAGAIN,
			     "an event too many");
		cm_progress(c);
	}
}

#define EVENT(...)   (api_at(__FILE__, __LINE__), cm_event(__VA_ARGS__))
#define FAILURE(...) (api_at(__FILE__, __LINE__), cm_failure(__VA_ARGS__))
#define SILENCE(...) (api_at(__FILE__, __LINE__), cm_silence(__VA_ARGS__))

/* ---- Connecting ------------------------------------------------------------------------------ */

static inline struct obj_name cm_peer(struct fid_ep *ep)
{
	struct obj_name name = {.len = sizeof(name.bytes)};

	OK(fi_getpeer(ep, name.bytes, &name.len));
	return name;
}

/* Waits for the next connection request to c->pep. */
static inline struct fi_info *cm_request(struct cm *c)
{
	struct cm_event got = EVENT(c, c->eq, FI_CONNREQ, &c->pep->fid);

	CHECK(got.entry.info && got.entry.info->handle);
	return got.entry.info;
}

static inline void cm_connect(struct cm *c, struct cm_end *e, const struct obj_name *to)
{
	cm_end(c, e, c->o.info);
	cm_enable(e);
	OK(fi_connect(e->ep, to->bytes, NULL, 0));
}

static inline void cm_accept(struct cm *c, struct cm_end *e, struct fi_info *request)
{
	cm_end(c, e, request);
	cm_enable(e);
	OK(fi_accept(e->ep, NULL, 0));
	fi_freeinfo(request);
	EVENT(c, e->eq, FI_CONNECTED, &e->ep->fid);
}

/* Connects two endpoints of this process. */
static inline void cm_both(struct cm *c, struct cm_end *active, struct cm_end *passive)
{
	struct obj_name name;

	if (!c->pep)
		cm_listen(c);
	name = obj_name(&c->pep->fid);
	cm_connect(c, active, &name);
	cm_accept(c, passive, cm_request(c));
	EVENT(c, active->eq, FI_CONNECTED, &active->ep->fid);
}

/* Closes both ends and `c`. */
static inline void cm_close_both(struct cm *c, struct cm_end *one, struct cm_end *other)
{
	cm_close_end(c, one);
	cm_close_end(c, other);
	cm_close(c);
}

/* Connects `active` to a listener of this process. Returns the request; `to` gets the address. */
static inline struct fi_info *cm_ask(struct cm *c, struct cm_end *active, struct obj_name *to)
{
	cm_domain(c, 0, NULL);
	cm_listen(c);
	*to = obj_name(&c->pep->fid);
	cm_connect(c, active, to);
	return cm_request(c);
}

/* Rank 0 listens. Returns the address of the listener in all processes. */
static inline struct obj_name cm_meet(struct cm *c, struct api *a)
{
	struct obj_name mine = {0}, all[2];

	if (a->rank == 0) {
		cm_listen(c);
		mine = obj_name(&c->pep->fid);
	}
	api_swap(a, &mine, all, sizeof(mine));
	return all[0];
}

/* Connects rank 1 to rank 0; `e` is the end of this process. */
static inline void cm_pair(struct cm *c, struct api *a, struct cm_end *e)
{
	struct obj_name to = cm_meet(c, a);

	if (a->rank) {
		cm_connect(c, e, &to);
		EVENT(c, e->eq, FI_CONNECTED, &e->ep->fid);
	} else {
		cm_accept(c, e, cm_request(c));
	}
}

/* Sends `word` from one end to the other and checks that word. */
static inline void cm_say(struct cm_end *from, struct cm_end *to, uint64_t word)
{
	uint64_t heard = ~word;

	local_wrap(from->domain, from->info, from->ep);
	local_wrap(to->domain, to->info, to->ep);
	POST(to->cq, fi_recv(to->ep, &heard, sizeof(heard), NULL, FI_ADDR_UNSPEC, &heard));
	POST(from->cq, fi_send(from->ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
	obj_done(from->cq, &word);
	obj_done(to->cq, &heard);
	CHECK_EQ(heard, word);
}

static inline void cm_talk(struct cm_end *a, struct cm_end *b)
{
	cm_say(a, b, 0x1234);
	cm_say(b, a, 0x4321);
}

#endif
