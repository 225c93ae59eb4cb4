/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "core/ports.h"
#include "xfer/xfer.h"

int ports_add(struct ports *p, struct port *port, struct waiter *w)
{
	struct ports_use *list;
	int ret;

	for (unsigned int i = 0; i < p->count; i++) {
		if (p->list[i].port == port) {
			p->list[i].uses++;
			return 0;
		}
	}
	list = realloc(p->list, (p->count + 1) * sizeof(*list));
	if (!list)
		return -FI_ENOMEM;
	p->list = list;
	ret = wait_add_fd(w, port_fd(port));
	if (!ret)
		ret = port_add_waiter(port, w);
	if (ret)
		return ret;
	list[p->count] = (struct ports_use){port, 1};
	__atomic_store_n(&p->count, p->count + 1, __ATOMIC_RELAXED);
	wait_notify(w); /* who sleeps already has not armed it */
	return 0;
}

static void drop(struct ports *p, unsigned int i, struct waiter *w)
{
	wait_del_fd(w, port_fd(p->list[i].port));
	port_del_waiter(p->list[i].port, w);
	p->list[i] = p->list[p->count - 1];
	__atomic_store_n(&p->count, p->count - 1, __ATOMIC_RELAXED);
}

void ports_del(struct ports *p, struct port *port, struct waiter *w)
{
	for (unsigned int i = 0; i < p->count; i++) {
		if (p->list[i].port != port)
			continue;
		if (--p->list[i].uses == 0)
			drop(p, i, w);
		return;
	}
}

void ports_leave(struct ports *p, struct waiter *w)
{
	while (p->count)
		drop(p, 0, w);
}

void ports_fini(struct ports *p)
{
	free(p->list);
	p->list = NULL;
	p->count = 0;
}

static void progress_own(struct ports *p)
{
	for (unsigned int i = 1; i < p->count; i++)
		port_progress(p->list[i].port);
	if (p->count)
		port_progress(p->list[0].port); /* last, so that it returns to our caller */
}

static __attribute__((noinline)) void progress_others(struct domain *dom, struct ports *p)
{
	if (!(dom->progress_calls & PORTS_RARELY) || domain_defers(dom)) {
		xfer_progress(dom);
		return;
	}
	xfer_progress_other(dom, p->count ? p->list[0].port : NULL);
	progress_own(p);
}

void ports_progress_locked(struct domain *dom, struct ports *p)
{
	if (__builtin_expect(!(++dom->progress_calls & dom->rarely) || domain_defers(dom), 0))
		progress_others(dom, p);
	else
		progress_own(p);
}

unsigned int ports_served(const struct ports *p)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < p->count; i++)
		sum += port_served(p->list[i].port);
	return sum;
}

void ports_progress_waiting(struct domain *dom, struct ports *p, const struct waiter *w)
{
	if (!dom->thread) {
		ports_progress_locked(dom, p);
		return;
	}
	dom->progress_calls++;
	if (dom->cover == w)
		xfer_progress(dom);
	else /* before the next look the core may be another's for long */
		progress_others(dom, p);
}

unsigned int ports_progress(struct domain *dom, struct ports *p)
{
	bool locked = !dom->unlocked;
	unsigned int parts;

	if (locked)
		lock_take(&dom->lock);
	parts = dom->parts;
	ports_progress_locked(dom, p);
	parts = dom->parts - parts;
	if (locked)
		lock_give(&dom->lock);
	return parts;
}

void ports_run_due(struct domain *dom)
{
	bool locked = !dom->unlocked;

	if (locked)
		lock_take(&dom->lock);
	defer_run(dom);
	if (locked)
		lock_give(&dom->lock);
}

/* Deferred work can hang on a port whose descriptor does not wake who sleeps on these. */
static bool must_poll_others(const struct domain *dom, const struct ports *p)
{
	unsigned int count = 0;

	if (!domain_defers(dom) || dom->thread)
		return false;
	LIST_EACH (node, &dom->ports)
		count++;
	return count > p->count;
}

/* Does `w` cover all ports, now if nobody did? Domain locked. */
static bool covers(struct domain *dom, struct waiter *w)
{
	if (!w || !dom->thread || (dom->cover && dom->cover != w))
		return false;
	dom->cover = w;
	__atomic_store_n(&w->also, progress_fd(dom), __ATOMIC_RELAXED);
	return true;
}

void ports_uncover(struct domain *dom, struct waiter *w)
{
	if (__atomic_load_n(&w->also, __ATOMIC_RELAXED) < 0)
		return;
	lock_take(&dom->lock);
	__atomic_store_n(&w->also, -1, __ATOMIC_RELAXED);
	if (dom->cover == w)
		dom->cover = NULL;
	lock_give(&dom->lock);
}

/* Arms its own. Domain locked. *nap as of ports_arm. */
static bool arm_own(struct ports *p, int *nap)
{
	bool quiet = true;

	for (unsigned int i = 0; i < p->count; i++) {
		quiet &= port_arm(p->list[i].port);
		if (port_waits_for_room(p->list[i].port))
			*nap = PORTS_NAP_MS;
	}
	return quiet;
}

static bool arm_all(struct domain *dom, int *nap)
{
	bool quiet = xfer_arm(dom);

	if (xfer_waits_for_room(dom))
		*nap = PORTS_NAP_MS;
	return quiet;
}

bool ports_arm(struct domain *dom, struct ports *p, struct waiter *w, int *nap)
{
	bool quiet;

	*nap = 0;
	lock_take(&dom->lock);
	quiet = covers(dom, w) ? arm_all(dom, nap) : arm_own(p, nap);
	if (domain_due(dom) || must_poll_others(dom, p))
		*nap = PORTS_NAP_MS;
	lock_give(&dom->lock);
	return quiet;
}
