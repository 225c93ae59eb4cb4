/* SPDX-License-Identifier: BSD-2-Clause */
/* Life of links over two devices: the worker's devices, their rails, what happens when one breaks. */
#include "hw/verbs/rails/verbs_rails.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "info/ifaces.h"
#include "info/rails_setting.h"

#define GID_IPV4    96u   /* bits of a GID before those of an IPv4 address */
#define PING_MS     10000 /* until an idle rail is pinged, without FI_WEFT_PEER_TIMEOUT */
#define ACK_UNIT_NS 4096u
#define ACK_MOST    31u /* largest exponent of a device */

static const struct link_ops rails_ops;

static const struct link_memory_ops rails_memory_ops = {
	.reg = verbs_rails_register,
	.dereg = verbs_rails_deregister,
	.copy = verbs_rails_rdma,
	.abort = verbs_rails_abort,
	.perform = link_performs_nothing,
};

/* All tries of a packet take half of the limit; until a packet goes out takes the other one. */
static uint8_t rails_ack_timeout(void)
{
	uint64_t tries_ns = rails_time_limit() / 2 * UINT64_C(1000000) / (VERBS_RETRIES + 1);
	uint8_t exponent = 1;

	while (exponent < ACK_MOST && (uint64_t)ACK_UNIT_NS << (exponent + 1) <= tries_ns)
		exponent++;
	return exponent;
}

/* ---- Devices of a worker --------------------------------------------------------------------- */

static bool verbs_rails_is_known(const struct verbs *v, const struct rdma_port *port)
{
	struct rdma_port known;

	if (rdma_ports_find(v->at, &known) && !strcmp(known.device, port->device) &&
	    known.port == port->port)
		return true;
	for (unsigned int i = 0; v->multi && i < v->multi->count; i++)
		if (verbs_rails_is_known(&v->multi->further[i], port))
			return true;
	return false;
}

static bool verbs_rails_suits(const struct rails_setting *s, const struct iface *i,
			      const struct iface *own)
{
	if (s->names)
		return ifaces_named(s->names, i->name);
	return i->speed >= own->speed / RAILS_SLOWEST;
}

static void add_device(struct verbs *v, const struct iface_addr *a)
{
	struct verbs_multi *m = v->multi;
	unsigned int i = m->count++;
	char text[ADDR_STR_MAX + 32];

	m->at[i] = a->addr;
	m->prefix[i] = a->prefix + (a->addr.kind == ADDR_IN ? GID_IPV4 : 0);
	verbs_state_init(&m->further[i], v->opener, &m->at[i]);
	m->further[i].epfd = v->epfd;
	addr_print(&a->addr, text, sizeof(text));
	LOG_INFO(LOG_EP_CTRL, "the endpoint may use the device at %s, too", text);
}

static void add_devices(struct verbs *v, const struct rails_setting *s, const struct ifaces *all)
{
	int family = v->at->kind == ADDR_IN6 ? AF_INET6 : AF_INET;
	const struct iface *own = ifaces_holding(all, v->at, NULL);
	const struct iface_addr *a;
	struct rdma_port port;
	size_t at = 0;

	while (own && v->multi->count + 1 < s->most && (a = ifaces_next(all, family, NULL, &at)))
		if (!addr_is_link_local(&a->addr) && verbs_rails_suits(s, ifaces_of(all, a), own) &&
		    rdma_ports_find(&a->addr, &port) && !verbs_rails_is_known(v, &port))
			add_device(v, a);
}

static void rails_find(struct verbs *v)
{
	struct rails_setting s = rails_setting();
	struct ifaces all;

	if (v->searched || v->at != v->opener->name || s.most < 2)
		return;
	v->searched = true;
	v->multi = calloc(1, sizeof(*v->multi));
	if (!v->multi || ifaces_read(&all))
		goto none;
	list_init(&v->multi->links);
	add_devices(v, &s, &all);
	ifaces_free(&all);
	if (v->multi->count) {
		verbs_transfer_pool(&v->multi->pieces);
		return;
	}
	LOG_INFO(LOG_EP_CTRL,
		 "FI_WEFT_RAILS=%s: the endpoint uses its own device alone: no other one is at an "
		 "address of its kind",
		 env_get()->rails);
none:
	free(v->multi);
	v->multi = NULL;
}

static void rails_close_all(struct verbs *v)
{
	for (unsigned int i = 0; i < v->multi->count; i++)
		verbs_state_fini(&v->multi->further[i]);
	pool_fini(&v->multi->pieces);
	free(v->multi);
	v->multi = NULL;
}

/* ---- Links ----------------------------------------------------------------------------------- */

void verbs_rails_add(struct verbs_rails *r, unsigned int rail, struct verbs_link *l,
		     uint32_t serial)
{
	r->rail[rail] =
		(struct verbs_rail){.link = l, .device = r->rail[rail].device, .serial = serial};
	l->rails = r;
	l->unknown = (1u << VERBS_NUMBER) - 1 - VERBS_PLAIN - VERBS_RAIL -
		     (VERBS_SPARES_MASK << VERBS_SPARES);
	l->spares = VERBS_SPARE;
	verbs_rails_forget_keys(r, rail);
	r->own->multi->due = 0;
}

void verbs_rails_drop(struct verbs_rails *r, unsigned int rail)
{
	r->rail[rail].link->rails = NULL;
	r->rail[rail].link = NULL;
}

/* From now on the rail is always one of this device: registrations with it stay of use. */
static void verbs_rails_prove(struct verbs_rail *rail)
{
	rail->proven = true;
	rail->device = rail->link->own;
}

static int rails_connect(struct verbs_link *l, const struct link_peer *peer, struct link **link)
{
	struct verbs_rails *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -FI_ENOMEM;
	r->link = (struct link){LINK_BARE, .ops = &rails_ops, .eager_max = VERBS_PACKET_MAX,
				.packet_max = VERBS_PACKET_MAX};
	r->link.memory = &rails_memory_ops;
	r->own = l->own;
	r->id = peer->id;
	r->initiator = peer->initiator;
	list_init(&r->queue);
	list_init(&r->messages);
	list_init(&r->operations);
	verbs_rails_add(r, 0, l, 0);
	err = verbs_link_join(l, &peer->hello->nic, peer->id);
	if (err) {
		verbs_rails_drop(r, 0);
		free(r);
		return err;
	}
	verbs_rails_prove(&r->rail[0]); /* as far as a link of one device is */
	list_push(&r->own->multi->links, &r->in_all);
	verbs_rails_update(r);
	*link = &r->link;
	return 0;
}

static void verbs_rails_close_link(struct link *link)
{
	struct verbs_rails *r = (struct verbs_rails *)link;

	verbs_rails_abort(link);
	verbs_rails_forget(r);
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (r->rail[i].link)
			verbs_link_free(r->rail[i].link);
	if (r->pending)
		verbs_link_free(r->pending);
	list_remove(&r->in_all);
	free(r);
}

static const struct link_ops rails_ops = {
	.send = verbs_rails_send,
	.sendv = verbs_rails_sendv,
	.close = verbs_rails_close_link,
};

static bool rails_has(const struct link *link)
{
	return link->ops == &rails_ops;
}

static const struct verbs_link *rails_carrier(const struct link *link)
{
	const struct verbs_rails *r = (const struct verbs_rails *)link;

	return r->rail[r->active].link;
}

bool verbs_rails_disconnected(const struct verbs_rails *r)
{
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (r->rail[i].link && r->rail[i].link->disconnected)
			return true;
	return false;
}

/* ---- Rails that break ------------------------------------------------------------------------ */

static bool rails_spare(const struct verbs_link *l)
{
	const struct verbs_rails *r = l->rails;

	return verbs_rail_usable(&r->rail[r->rail[0].link == l ? 1 : 0]);
}

int verbs_rails_detach(struct verbs_rails *r, unsigned int rail, int err)
{
	struct opener *opener = r->own->opener;
	struct verbs_link *l = r->rail[rail].link;
	unsigned int other = (rail + 1) % VERBS_RAILS;

	if (verbs_rail_usable(&r->rail[other]))
		err = -verbs_rails_requeue(r, rail);
	if (err) {
		r->link.reason = l->link.reason;
		opener->events->ended(opener, r->id, err);
		return -err;
	}
	if (r->rail[rail].proven)
		LOG_PEER(LOG_EP_DATA, "%s: the rail to peer %#x is down; all goes over %s",
			 l->own->path.port.device, r->id,
			 r->rail[other].link->own->path.port.device);
	verbs_rails_lost(r, rail);
	verbs_rails_drop(r, rail);
	verbs_link_free(l);
	r->active = other;
	verbs_rails_next(r, rail);
	verbs_rails_update(r);
	return 0;
}

static void rails_broke(struct verbs_link *l)
{
	struct verbs_rails *r = l->rails;
	unsigned int rail = r->rail[0].link == l ? 0 : 1;
	int err;

	r->propose_due = clock_coarse_ms() + rails_time_limit();
	if (verbs_rails_detach(r, rail, l->err))
		return;
	r->rail[rail].closing = true;
	err = verbs_rails_say(r, VERBS_RAIL_BROKEN, rail, r->rail[rail].serial);
	if (err)
		r->own->opener->events->ended(r->own->opener, r->id, -err);
	else
		verbs_rails_resume(r);
}

/* ---- Progress -------------------------------------------------------------------------------- */

/*
 * Whether an idle rail still works shows before it is needed, and a peer whose host has gone is found without its
 * socket.
 */
static void verbs_rails_ping(struct verbs_rail *rail, uint64_t now)
{
	struct verbs_link *l = rail->link;
	int ms = env_get()->peer_timeout;

	if ((int32_t)(l->arrived - rail->pinged) < 0 || now < rail->ping_due)
		return;
	verbs_ping(l);
	rail->pinged = l->posted;
	rail->ping_due = now + (ms > 0 ? (uint64_t)ms / 3 : PING_MS);
}

/* A target that has not heard its peer cannot send, so it cannot tell. */
static bool rails_ping(struct link *link)
{
	struct verbs_rails *r = (struct verbs_rails *)link;
	bool can = false;

	for (unsigned int i = 0; i < VERBS_RAILS; i++) {
		r->rail[i].ping_due = 0;
		can |= verbs_rail_usable(&r->rail[i]);
	}
	r->own->multi->due = 0;
	return can;
}

static void look_at_rail(struct verbs_rails *r, struct verbs_rail *rail, uint64_t now)
{
	if (!verbs_rail_usable(rail))
		return;
	if (!rail->proven && rail->link->arrived) {
		verbs_rails_prove(rail);
		r->refusals = 0;
		LOG_INFO(LOG_EP_CTRL, "%s: a rail to peer %#x, too", rail->device->path.port.device,
			 r->id);
		verbs_rails_update(r);
	}
	verbs_rails_ping(rail, now);
}

static void verbs_rails_look(struct verbs_rails *r, uint64_t now)
{
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		look_at_rail(r, &r->rail[i], now);
	verbs_rails_return(r);
	verbs_rails_flush(r);
	verbs_rails_resume(r);
	if (r->initiator && !r->pending && now >= r->propose_due) {
		r->propose_due = now + rails_time_limit();
		verbs_rails_propose(r);
	}
}

/* Can credits go back now? Those that cannot would keep the worker awake. */
static bool may_return(const struct verbs_rail *rail)
{
	return verbs_rail_usable(rail) && rail->link->freed &&
	       verbs_in_flight(rail->link) < VERBS_FLIGHT;
}

/* The sender's slots are limited for all its peers, so a few credits go back, too. */
static void return_credits(struct verbs_rails *r)
{
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		if (may_return(&r->rail[i]))
			verbs_say(r->rail[i].link, false);
}

static void rails_sleep(struct verbs *v)
{
	LIST_EACH (node, &v->multi->links)
		return_credits(LIST_ENTRY(node, struct verbs_rails, in_all));
}

static bool rails_progress(struct verbs *v)
{
	struct verbs_multi *m = v->multi;
	uint64_t now = clock_coarse_ms();
	bool any = false;

	for (unsigned int i = 0; i < m->count; i++)
		any |= verbs_progress_device(&m->further[i]);
	if (now < m->due)
		return any;
	m->due = now + rails_time_limit() / 4;
	LIST_EACH (node, &m->links) {
		return_credits(LIST_ENTRY(node, struct verbs_rails, in_all));
		verbs_rails_look(LIST_ENTRY(node, struct verbs_rails, in_all), now);
	}
	return any;
}

const struct verbs_rails_ops verbs_rails_here = {
	.find = rails_find,
	.close = rails_close_all,
	.progress = rails_progress,
	.sleep = rails_sleep,
	.queued = verbs_rails_queued,
	.drop_regions = verbs_rails_drop_regions,
	.connect = rails_connect,
	.has = rails_has,
	.carrier = rails_carrier,
	.ping = rails_ping,
	.disconnected = verbs_rails_disconnected,
	.update = verbs_rails_update,
	.ack_timeout = rails_ack_timeout,
	.spare = rails_spare,
	.broke = rails_broke,
	.spared = verbs_rails_spared,
	.credited = verbs_rails_credited,
	.take = verbs_rails_take,
	.done = verbs_rails_done,
	.rdma_ended = verbs_rails_rdma_ended,
};
