/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Life of a link. The pending link is made when a hello is sent or answered; its queue pairs do not
 * receive yet. verbs_connect connects them to the peer's. The initiator learns from the answer that
 * the peer is ready, the target from the first packet.
 */
#include <rdma/fi_errno.h>
#include <string.h>
#include <time.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "hw/verbs/rdm/verbs.h"

#define NAP_NS 20000

static const struct link_ops verbs_link_ops;
static const struct link_memory_ops verbs_memory_ops;

static struct verbs_link *link_new(struct verbs *v)
{
	struct verbs_link *l = pool_get(&v->links);

	if (!l)
		return NULL;
	*l = (struct verbs_link){.link = {LINK_BARE, .ops = &verbs_link_ops,
					  .eager_max = VERBS_PACKET_MAX,
					  .packet_max = VERBS_PACKET_MAX},
				 .own = v,
				 .unknown = ~VERBS_PLAIN,
				 .unsignaled = v->path.dev->software ? 0 : VERBS_SIGNAL - 1,
				 .software = v->path.dev->software};
	l->link.memory = &verbs_memory_ops;
	memset(l->slots, 0xff, sizeof(l->slots));
	list_init(&l->in_attend);
	list_init(&l->in_all);
	list_init(&l->direct.rdma_posted);
	l->window = verbs_grant(v);
	if (!l->window) {
		pool_put(&v->links, l);
		return NULL;
	}
	return l;
}

void verbs_link_free(struct verbs_link *l)
{
	struct verbs *v = l->own;

	verbs_rdma_end(l, true);
	if (v->path.dev->forked == forked_count())
		v->path.dev->lib->destroy_qp(l->qp);
	verbs_sent(l, l->posted);
	verbs_revoke(v, l->window);
	list_remove(&l->in_all);
	list_remove(&l->in_attend);
	pool_put(&v->links, l);
}

int verbs_prepare(void *state, const struct wire_nic *theirs, struct wire_nic *ours, void **pending)
{
	struct verbs *v = state;
	struct verbs_link *l;
	int err = verbs_up(v);

	if (err)
		return err;
	if (verbs_rails_ops && (!theirs || theirs->flags & WIRE_NIC_RAILS))
		verbs_rails_ops->find(v);
	if (!verbs_usable(v))
		return -FI_ENODEV;
	if (theirs && theirs->infiniband != v->path.port.infiniband)
		return -FI_EHOSTUNREACH;
	l = link_new(v);
	if (!l)
		return -FI_ENOMEM;
	err = verbs_qp_make(l);
	if (err) {
		verbs_revoke(v, l->window);
		pool_put(&v->links, l);
		return err;
	}
	list_push(&v->all, &l->in_all);
	l->heard = !theirs;
	*ours = verbs_qp_tell(l);
	*pending = l;
	return 0;
}

void verbs_abandon(void *state, void *pending)
{
	(void)state;
	verbs_link_free(pending);
}

int verbs_link_join(struct verbs_link *l, const struct wire_nic *theirs, uint32_t id)
{
	int err = l->err ? -l->err : verbs_qp_join(l, theirs);

	if (err)
		return err;
	l->id = id;
	l->peer_imm = theirs->number;
	l->credit_limit = theirs->window;
	if (l->rails && l->credit_limit > VERBS_WINDOW)
		l->credit_limit = VERBS_WINDOW;
	if (l->heard) {
		l->credits = l->credit_limit;
		verbs_say(l, false);
	}
	return 0;
}

int verbs_connect(void *state, const struct link_peer *peer, struct link **link)
{
	const struct wire_nic *theirs = &peer->hello->nic;
	struct verbs *v = state;
	struct verbs_link *l = peer->pending;
	int err;

	if (v->multi && theirs->flags & WIRE_NIC_RAILS)
		return verbs_rails_ops->connect(l, peer, link);
	err = verbs_link_join(l, theirs, peer->id);
	if (!err)
		*link = &l->link;
	return err;
}

static void verbs_close_link(struct link *link)
{
	verbs_link_free((struct verbs_link *)link);
}

static const struct link_ops verbs_link_ops = {
	.send = verbs_send,
	.sendv = verbs_sendv,
	.close = verbs_close_link,
};

static const struct link_memory_ops verbs_memory_ops = {
	.reg = verbs_rndv_register,
	.dereg = verbs_rndv_deregister,
	.copy = verbs_rdma,
	.abort = verbs_rdma_abort,
	.perform = link_performs_nothing,
};

/* Is something under way on the link that will still arrive? */
static bool under_way(const struct verbs_link *l)
{
	bool read = l->rails ? !verbs_rails_ops->disconnected(l->rails) : !l->disconnected;

	return read && !l->err && l->heard && (l->arrived != l->posted || verbs_rdma_writes(l));
}

static bool device_done(const struct verbs *v)
{
	LIST_EACH (node, &v->all) {
		if (under_way(LIST_ENTRY(node, struct verbs_link, in_all)))
			return false;
	}
	return true;
}

static bool all_arrived(const struct verbs *v)
{
	bool done = device_done(v);

	for (unsigned int i = 0; v->multi && i < v->multi->count; i++)
		done &= device_done(&v->multi->further[i]);
	return done;
}

/* Handles what completes at one device. True: something has. */
static bool poll_device(struct verbs *v)
{
	int n = v->up ? verbs_read(v) : 0;

	for (int i = 0; i < n; i++)
		verbs_last_messages(v, &v->wc[i]);
	return n > 0;
}

static void poll_devices(struct verbs *v)
{
	bool any = poll_device(v);

	for (unsigned int i = 0; v->multi && i < v->multi->count; i++)
		any |= poll_device(&v->multi->further[i]);
	if (!any)
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Posts one more request: its completion shows that all sends before it have arrived. */
static void verbs_link_confirm(const struct verbs *v)
{
	LIST_EACH_OF (struct verbs_link, l, &v->all, in_all) {
		if (!under_way(l))
			continue;
		if (l->rails)
			verbs_ping(l);
		else
			verbs_say(l, true);
	}
}

void verbs_drain(void *state)
{
	struct verbs *v = state;
	uint64_t until = clock_coarse_ms() + VERBS_LINGER_MS;

	while (v->multi && verbs_rails_ops->queued(v) && clock_coarse_ms() < until)
		poll_devices(v);
	verbs_link_confirm(v);
	for (unsigned int i = 0; v->multi && i < v->multi->count; i++)
		verbs_link_confirm(&v->multi->further[i]);
	while (!all_arrived(v) && clock_coarse_ms() < until)
		poll_devices(v);
}
