/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/worker.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/av.h"
#include "info/ifaces.h"
#include "info/providers.h"
#include "link/link.h"
#include "conn/conn.h"
#include "conn/conn_options.h"
#include "xfer/dgram/dgram.h"
#include "xfer/events.h"
#include "conn/listen.h"
#include "xfer/group.h"
#include "xfer/stats.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/msg/tx.h"

static bool worker_progress_driven(struct driven *d)
{
	return worker_progress(worker_of(d));
}

static bool worker_arm_driven(struct driven *d)
{
	return worker_arm(worker_of(d));
}

static bool must_nap(const struct driven *d)
{
	return worker_must_nap(worker_of((struct driven *)d));
}

static void worker_starve(struct driven *d)
{
	contact_starve_all(&worker_of(d)->conn);
}

const struct driven_ops worker_driven_ops = {
	.progress = worker_progress_driven,
	.near = worker_near,
	.read = rx_read,
	.readfrom = rx_readfrom,
	.arm = worker_arm_driven,
	.must_nap = must_nap,
	.quiesce_begin = quiesce_begin,
	.quiesce = quiesce_end,
	.starve = worker_starve,
};

static void init_fields(struct worker *worker, struct domain *dom)
{
	driven_init(&worker->conn.driven, dom, &worker_driven_ops);
	worker->conn.driven.idle.cursor = &link_cursor_never;
	worker->conn.opener = (struct opener){.events = &worker_events,
					      .dom = dom,
					      .name = &worker->conn.name,
					      .idle = &worker->conn.driven.idle};
	worker->groups = dom->calls->groups;
	worker->conn.up = &peer_upcalls;
	worker->conn.nobody = &peer_nobody.conn;
	worker->conn.options = conn_options;
	worker->conn.cm_sock = worker->conn.timer = worker->conn.stall.timer = -1;
	list_init(&worker->busy);
	list_init(&worker->awaiting);
	list_init(&worker->acks_pending);
	list_init(&worker->conn.peers_list);
	list_init(&worker->in_av);
	list_init(&worker->in_stats);
	budget_init(&worker->budget, worker);
	pool_init(&worker->conn.peer_pool, sizeof(struct peer));
	pool_init(&worker->tx_pool, sizeof(struct txreq));
	pool_init(&worker->rxreq_pool, sizeof(struct rxreq));
}

static void fini_fields(struct worker *worker)
{
	pool_fini(&worker->conn.peer_pool);
	pool_fini(&worker->tx_pool);
	pool_fini(&worker->rxreq_pool);
	spare_fini(&worker->spare);
	addr_free(&worker->conn.name);
	free(worker->conn.addresses);
	auth_close(&worker->conn.auth);
	free(worker->conn.peers);
	free(worker);
}

/* Sets worker->conn.name from info->src_addr; a wildcard becomes an address that peers can use. */
static int choose_name(struct worker *worker, const struct fi_info *info)
{
	int err;

	if (!info->src_addr && provider_format(info) == FI_ADDR_STR)
		return addr_of_process(&worker->conn.name);
	if (!info->src_addr)
		return ifaces_default(info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET,
				      &worker->conn.name);
	err = addr_from_user(&worker->conn.name, provider_format(info), info->src_addr,
			     info->src_addrlen);
	worker->conn.opener.all = !err && addr_is_any(&worker->conn.name);
	return err ? err : listen_usable(&worker->conn.name);
}

/* What transports without links embed, once `open` has filled in their part. */
static void own_state(struct worker *worker, enum link_kind kind, void *state)
{
	if (kind == LINK_DGRAM) {
		worker->dgram = state;
		dgram_init(worker->dgram, &worker->conn.opener);
	} else if (kind == LINK_OFFLOAD) {
		worker->offload = state;
		worker->offload->events = &worker_offload_events;
		worker->offload->opener = &worker->conn.opener;
	}
}

static void close_hw(struct worker *worker)
{
	if (worker->dgram)
		dgram_fini(worker->dgram);
	worker->dgram = NULL;
	worker->offload = NULL;
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->conn.via[i].state)
			worker->conn.via[i].transport->close(worker->conn.via[i].state);
}

static int open_transport(struct worker *worker, const struct transport *t)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)STATION_HW << 32};
	void *state = NULL;
	int err = t->open(&worker->conn.opener, &state), fd = -1;

	if (err || !state)
		return err;
	worker->conn.via[t->kind].transport = t;
	worker->conn.via[t->kind].state = state;
	worker->open[worker->conn.opener.opened] =
		(struct worker_transport){t->progress, state, t->idle};
	if (t->cursor) {
		worker->near = worker->open[worker->conn.opener.opened];
		worker->conn.driven.idle.cursor = t->cursor(state);
	}
	worker->conn.opener.opened++;
	own_state(worker, t->kind, state);
	if (t->fd)
		fd = t->fd(state);
	if (fd >= 0 && epoll_ctl(worker->conn.driven.fd, EPOLL_CTL_ADD, fd, &ev))
		err = -errno;
	return err;
}

static int open_hw(struct worker *worker, unsigned int wanted)
{
	int err = 0;

	for (const struct transport *const *t = transports; *t && !err; t++)
		if ((*t)->bit & wanted && !worker->conn.via[(*t)->kind].transport)
			err = open_transport(worker, *t);
	if (!err && !worker->conn.opener.opened)
		err = -FI_ENODEV;
	if (err)
		close_hw(worker);
	return err;
}

/* Sets up everything but the listeners. 0 or a negative error. */
static int worker_prepare(struct worker *worker, const struct fi_info *info, unsigned int barred)
{
	int err;

	if (getrandom(&worker->conn.incarnation, sizeof(worker->conn.incarnation), 0) < 0 ||
	    getrandom(&worker->conn.cma_word, sizeof(worker->conn.cma_word), 0) < 0)
		return -errno;
	err = choose_name(worker, info);
	if (err)
		return err;
	worker->conn.driven.fd = epoll_create1(EPOLL_CLOEXEC);
	if (worker->conn.driven.fd < 0)
		return -errno;
	acceptor_init(&worker->conn.acceptor, worker->conn.driven.fd);
	auth_open(&worker->conn.auth, info, &worker->conn);
	worker->conn.acceptor.auth = &worker->conn.auth;
	if (worker->conn.auth.encrypts)
		barred |= PROVIDER_VERBS; /* devices do not encrypt */
	worker->wanted = provider_wanted(info) & ~barred;
	err = open_hw(worker, worker->wanted);
	if (err)
		close(worker->conn.driven.fd);
	return err;
}

int worker_open(struct domain *dom, const struct fi_info *info, unsigned int barred,
		struct worker **out)
{
	struct worker *worker = apart_alloc(sizeof(*worker));
	int err;

	if (!worker)
		return -FI_ENOMEM;
	init_fields(worker, dom);
	err = worker_prepare(worker, info, barred);
	if (err)
		goto free_worker;
	if (info->ep_attr->type == FI_EP_RDM) {
		err = conn_options_open(&worker->conn);
		if (!err)
			err = conn_listen(&worker->conn);
	} else if (info->ep_attr->type == FI_EP_MSG && !worker->offload) {
		worker->conn.key = addr_unmapped(&worker->conn.name);
		err = conn_single(&worker->conn);
	}
	if (err)
		goto close_hw;
	driven_enter(&worker->conn.driven);
	stats_opened(worker);
	*out = worker;
	return 0;
close_hw:
	close_hw(worker);
	close(worker->conn.driven.fd);
free_worker:
	fini_fields(worker);
	return err;
}

void worker_close(struct worker *worker)
{
	struct rx *bound[WORKER_RX_MAX];

	stats_closing(worker);
	worker->conn.closing = true;
	memcpy(bound, worker->rx, sizeof(bound));
	memset(worker->rx, 0, sizeof(worker->rx));
	if (worker->coll)
		worker->groups->close(worker->coll);
	worker->coll = NULL;
	worker_quiesce(worker);
	conn_close(&worker->conn);
	stall_close(&worker->conn);
	conn_options_close(&worker->conn);
	close_hw(worker);
	budget_fini(&worker->budget);
	/* Contexts are closed after their worker, with what they keep. */
	for (unsigned int i = 0; i < WORKER_RX_MAX; i++)
		if (bound[i])
			bound[i]->budget = NULL;
	close(worker->conn.driven.fd);
	driven_leave(&worker->conn.driven);
	list_remove(&worker->in_av);
	if (worker->conn.av)
		auth_unbind(&worker->conn.auth, worker->conn.av);
	fini_fields(worker);
}

struct driven *worker_driven(struct worker *worker)
{
	return &worker->conn.driven;
}

bool worker_shares(const struct worker *worker)
{
	return worker->offload || worker->conn.via[LINK_DEVICE].state ||
	       worker->conn.driven.dom->nic;
}

const struct addr *worker_name(const struct worker *worker)
{
	return &worker->conn.name;
}

/* A connected endpoint has one peer, in entry 0 of its table, and uses no address vector. */
void worker_bind_av(struct worker *worker, struct av *av)
{
	if (worker->conn.av == av || worker->conn.cm)
		return;
	worker->conn.av = av;
	list_remove(&worker->in_av);
	list_push(&av->workers, &worker->in_av);
	auth_bind(&worker->conn.auth, av);
}

void worker_notify_all(struct worker *worker)
{
	worker->conn.opener.counts = true;
}

void worker_bind_rx(struct worker *worker, unsigned int index, struct rx *rx)
{
	if (worker->rx[index] && !rx) {
		rdma_quiesce(worker, worker->rx[index], NULL);
		rxreq_fail_context(worker, worker->rx[index], FI_ECANCELED);
		rx_refuse_kept(worker->rx[index]);
	}
	worker->rx[index] = rx;
	if (rx)
		rx->budget = &worker->budget;
}

static void worker_forget(struct worker *worker, fi_addr_t fi_addr)
{
	struct peer *peer;

	for (unsigned int i = 0; i < WORKER_RX_MAX; i++)
		if (worker->rx[i])
			rx_forget_addr(worker->rx[i], fi_addr);
	budget_forget_addr(&worker->budget, fi_addr);
	peer = worker_peer(worker, fi_addr);
	if (peer == &peer_nobody)
		return;
	worker->conn.peers[fi_addr] = worker->conn.nobody;
	if (peer->conn.addr == fi_addr) {
		peer->conn.addr = peer->conn.reported = FI_ADDR_NOTAVAIL;
		answers_forget_addr(peer);
	}
	if (--peer->conn.named || peer->conn.state != PEER_IDLE || peer->conn.unread_ms)
		return;
	tx_fail_all(peer, FI_EADDRNOTAVAIL, FI_EADDRNOTAVAIL);
	contact_free(&peer->conn);
}

void worker_reach_out(struct worker *worker)
{
	worker->conn.reaches_out = true;
	conn_options_tick(&worker->conn, clock_coarse_ms());
	for (fi_addr_t i = 0; worker->conn.av && i < av_count(worker->conn.av); i++)
		conn_reach_out(&worker->conn, i);
}

void worker_reach_entry(struct av *av, fi_addr_t index)
{
	LIST_EACH_OF (struct worker, worker, &av->workers, in_av) {
		if (worker->conn.reaches_out)
			conn_reach_out(&worker->conn, index);
	}
}

void worker_forget_id(struct av *av, fi_addr_t index)
{
	LIST_EACH (node, &av->workers) {
		struct peer *peer = worker_peer(LIST_ENTRY(node, struct worker, in_av), index);

		if (peer != &peer_nobody)
			peer->conn.reported = FI_ADDR_NOTAVAIL;
	}
}

void worker_forget_entry(struct av *av, fi_addr_t index)
{
	LIST_EACH (node, &av->workers)
		worker_forget(LIST_ENTRY(node, struct worker, in_av), index);
}
