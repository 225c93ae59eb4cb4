/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/port.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/av.h"
#include "core/ifaces.h"
#include "core/providers.h"
#include "core/wait.h"
#include "xfer/rxreq.h"
#include "xfer/conn.h"
#include "xfer/group.h"
#include "xfer/move.h"
#include "xfer/rma.h"
#include "xfer/settle.h"
#include "xfer/tx.h"
#include "xfer/spec.h"

/* Turns between two looks at the sockets, a power of two less one: during a handshake, and else. */
#define POLL_TURNS_BUSY 7u
#define POLL_TURNS_IDLE 63u
#define POLL_MS         1
/* Turns between two looks at one-sided operations without an answer, likewise. */
#define HELP_TURNS 63u

const struct transport *const port_transports[PORT_TRANSPORTS] = {
	[PORT_SHM] = &shm_transport, [PORT_VERBS] = &verbs_transport, [PORT_TCP] = &tcp_transport,
	[PORT_UDP] = &udp_transport, [PORT_RC] = &rc_transport,       [PORT_UD] = &ud_transport,
};

static void init_fields(struct port *port, struct domain *dom)
{
	port->dom = dom;
	list_init(&port->busy);
	list_init(&port->awaiting);
	list_init(&port->acks_pending);
	list_init(&port->spec);
	list_init(&port->spec_only);
	list_init(&port->peers_list);
	list_init(&port->in_domain);
	list_init(&port->in_av);
	pool_init(&port->peer_pool, sizeof(struct peer));
	pool_init(&port->tx_pool, sizeof(struct txreq));
	pool_init(&port->rxreq_pool, sizeof(struct rxreq));
}

static void fini_fields(struct port *port)
{
	pool_fini(&port->peer_pool);
	pool_fini(&port->tx_pool);
	pool_fini(&port->rxreq_pool);
	addr_free(&port->name);
	free(port->waiters);
	free(port->peers);
	free(port);
}

/* What the endpoint is to be called; a wildcard becomes an address peers can use. */
static int choose_name(struct port *port, const struct fi_info *info)
{
	static const unsigned char any[16];
	uint16_t number;
	int err;

	if (!info->src_addr && provider_format(info) == FI_ADDR_STR)
		return addr_of_process(&port->name);
	if (!info->src_addr)
		return ifaces_default(info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET,
				      &port->name);
	err = addr_from_user(&port->name, provider_format(info), info->src_addr, info->src_addrlen);
	if (err || port->name.kind == ADDR_STR || memcmp(port->name.ip, any, sizeof(any)) != 0)
		return err;
	number = port->name.port;
	err = ifaces_default(port->name.kind == ADDR_IN6 ? AF_INET6 : AF_INET, &port->name);
	port->name.port = number;
	return err;
}

/* Whoever asks for peers of this host alone gets nothing of the network. fi_getinfo(3) FI_LOCAL_COMM */
unsigned int port_wanted(const struct fi_info *info)
{
	const struct provider *provider = provider_of(info);
	unsigned int wanted = provider ? provider->transports : PROVIDER_SHM;

	if (info->caps & FI_LOCAL_COMM && !(info->caps & FI_REMOTE_COMM) && wanted & PROVIDER_SHM)
		return PROVIDER_SHM;
	return wanted;
}

static void close_hw(struct port *port)
{
	for (unsigned int i = 0; i < PORT_TRANSPORTS; i++)
		if (port->hw[i])
			port_transports[i]->close(port->hw[i]);
}

static int open_transport(struct port *port, unsigned int i)
{
	const struct transport *t = port_transports[i];
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)PORT_HW << 32};
	int err = t->open(port, &port->hw[i]), fd = -1;

	if (err || !port->hw[i])
		return err;
	port->open[port->open_count].progress = t->progress;
	port->open[port->open_count++].state = port->hw[i];
	if (t->fd)
		fd = t->fd(port->hw[i]);
	if (fd >= 0 && epoll_ctl(port->epfd, EPOLL_CTL_ADD, fd, &ev))
		err = -errno;
	return err;
}

static int open_hw(struct port *port, unsigned int wanted)
{
	int err = 0;

	for (unsigned int i = 0; i < PORT_TRANSPORTS && !err; i++)
		if (port_transports[i]->bit & wanted)
			err = open_transport(port, i);
	if (!err && !port->open_count)
		err = -FI_ENODEV;
	if (err)
		close_hw(port);
	return err;
}

/* All but listeners. */
static int prepare(struct port *port, const struct fi_info *info, unsigned int barred)
{
	int err;

	if (getrandom(&port->incarnation, sizeof(port->incarnation), 0) < 0 ||
	    getrandom(&port->probe, sizeof(port->probe), 0) < 0)
		return -errno;
	err = choose_name(port, info);
	if (err)
		return err;
	port->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (port->epfd < 0)
		return -errno;
	acceptor_init(&port->acceptor, port->epfd);
	err = open_hw(port, port_wanted(info) & ~barred);
	if (err)
		close(port->epfd);
	return err;
}

int port_open(struct domain *dom, const struct fi_info *info, unsigned int barred,
	      struct port **out)
{
	struct port *port = calloc(1, sizeof(*port));
	int err;

	if (!port)
		return -FI_ENOMEM;
	init_fields(port, dom);
	err = prepare(port, info, barred);
	if (err)
		goto free_port;
	if (info->ep_attr->type == FI_EP_RDM) {
		err = conn_listen(port);
	} else if (info->ep_attr->type == FI_EP_MSG && !port->offload) {
		port->key = addr_unmapped(&port->name);
		err = conn_single(port);
	}
	if (err)
		goto close_hw;
	list_push(&dom->ports, &port->in_domain);
	progress_watch(dom, port->epfd);
	*out = port;
	return 0;
close_hw:
	close_hw(port);
	close(port->epfd);
free_port:
	fini_fields(port);
	return err;
}

void port_close(struct port *port)
{
	port->closing = true;
	memset(port->rx, 0, sizeof(port->rx));
	if (port->coll)
		coll_close(port->coll);
	port->coll = NULL;
	settle_close(port);
	conn_close(port);
	close_hw(port);
	close(port->epfd);
	list_remove(&port->in_domain);
	list_remove(&port->in_av);
	fini_fields(port);
}

void xfer_starve(struct port *port)
{
	LIST_EACH (node, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);

		if (peer->state == PEER_CONNECTED && !peer->over_budget)
			peer_starve(peer, "a completion");
	}
}

const struct addr *port_name(const struct port *port)
{
	return &port->name;
}

int port_fd(const struct port *port)
{
	return port->epfd;
}

int port_reserve(struct port *port, fi_addr_t addr)
{
	size_t count = port->peer_count ? port->peer_count : 16;
	struct peer **peers;

	if (addr < port->peer_count)
		return 0;
	while (count <= addr)
		count *= 2;
	peers = realloc(port->peers, count * sizeof(*peers));
	if (!peers)
		return -FI_ENOMEM;
	for (size_t i = port->peer_count; i < count; i++)
		peers[i] = &peer_nobody;
	port->peers = peers;
	port->peer_count = count;
	return 0;
}

/* A connected endpoint has one peer, in entry 0 of its table, whatever its address vector holds. */
void port_bind_av(struct port *port, struct av *av)
{
	if (port->av == av || port->cm)
		return;
	port->av = av;
	list_remove(&port->in_av);
	list_push(&av->ports, &port->in_av);
}

void port_tell_all(struct port *port)
{
	port->counts = true;
}

void port_bind_rx(struct port *port, unsigned int index, struct rx *rx)
{
	if (port->rx[index] && !rx) {
		move_settle_rx(port, port->rx[index]);
		rxreq_fail_context(port, port->rx[index], FI_ECANCELED);
		rx_refuse_kept(port->rx[index]);
	}
	port->rx[index] = rx;
}

static void port_forget(struct port *port, fi_addr_t fi_addr)
{
	struct peer *peer;

	for (unsigned int i = 0; i < PORT_RX_MAX; i++)
		if (port->rx[i])
			rx_forget_addr(port->rx[i], fi_addr);
	if (fi_addr >= port->peer_count || port->peers[fi_addr] == &peer_nobody)
		return;
	peer = port->peers[fi_addr];
	port->peers[fi_addr] = &peer_nobody;
	if (peer->addr == fi_addr)
		peer->addr = FI_ADDR_NOTAVAIL;
	if (--peer->named || peer->state != PEER_IDLE || peer->unread)
		return;
	tx_fail_all(peer, FI_EADDRNOTAVAIL, FI_EADDRNOTAVAIL);
	peer_free(peer);
}

void port_forget_entry(struct av *av, fi_addr_t index)
{
	LIST_EACH (node, &av->ports)
		port_forget(LIST_ENTRY(node, struct port, in_av), index);
}

static __attribute__((noinline, cold)) bool flush_busy(struct port *port)
{
	bool moved = false;

	LIST_EACH_SAFE (node, &port->busy) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_busy);

		if (peer->over_budget)
			conn_expel(peer);
		else
			moved |= tx_flush(peer);
	}
	return moved;
}

/* Handshakes are under way. */
static inline bool expecting(const struct port *port)
{
	return port->handshakes || port->acceptor.count;
}

static __attribute__((noinline, cold)) bool look_at_sockets(struct port *port)
{
	uint64_t now = clock_coarse_ms();

	if (!port->armed && !expecting(port) && now < port->next_poll)
		return false;
	port->next_poll = now + POLL_MS;
	port->armed = false;
	return conn_poll(port);
}

int port_add_waiter(struct port *port, struct waiter *w)
{
	struct waiter **waiters;

	waiters = realloc(port->waiters, (port->waiter_count + 1) * sizeof(struct waiter *));
	if (!waiters)
		return -FI_ENOMEM;
	port->waiters = waiters;
	waiters[port->waiter_count++] = w;
	return 0;
}

void port_del_waiter(struct port *port, struct waiter *w)
{
	for (unsigned int i = 0; i < port->waiter_count; i++)
		if (port->waiters[i] == w) {
			port->waiters[i] = port->waiters[--port->waiter_count];
			return;
		}
}

/*
 * One thread has read what was to wake another: that one must arm again, or it would sleep through
 * whatever comes next.
 */
__attribute__((noinline, cold)) void port_wake(struct port *port)
{
	port->sleepers = false;
	for (unsigned int i = 0; i < port->waiter_count; i++)
		wait_notify(port->waiters[i]);
	if (port->dom->cover)
		wait_notify(port->dom->cover);
	progress_rearm(port->dom);
}

bool port_progress(struct port *port)
{
	bool moved = false, heard = false, rare = false;
	unsigned int every;

	if (__builtin_expect(port->in_progress, 0))
		return false;
	port->in_progress = true;
	if (__builtin_expect(!list_empty(&port->spec), 0))
		rare = spec_look(port);
	for (unsigned int i = 0; i < port->open_count; i++)
		moved |= port->open[i].progress(port->open[i].state);
	if (__builtin_expect(!list_empty(&port->spec), 0))
		moved |= spec_progress(port, rare);
	if (__builtin_expect(!list_empty(&port->acks_pending), 0))
		rma_acknowledge(port);
	if (__builtin_expect(!list_empty(&port->busy), 0))
		moved |= flush_busy(port);
	if (__builtin_expect(!list_empty(&port->awaiting), 0) && !(++port->waits & HELP_TURNS))
		moved |= rma_help(port, false);
	every = expecting(port) ? POLL_TURNS_BUSY : POLL_TURNS_IDLE;
	if (__builtin_expect(port->armed || !(++port->progress_calls & every), 0))
		heard = look_at_sockets(port);
	/* What was to wake a sleeper may be read away here, turns before what it told of, or after. */
	if (__builtin_expect(port->sleepers && (moved || heard), 0))
		port_wake(port);
	port->in_progress = false;
	if (__builtin_expect(port->coll != NULL, 0))
		moved |= coll_progress(port->coll);
	if (__builtin_expect(domain_due(port->dom), 0))
		defer_run(port->dom);
	return moved;
}

bool xfer_progress(struct domain *dom)
{
	bool moved = false;

	LIST_EACH (node, &dom->ports)
		moved |= port_progress(LIST_ENTRY(node, struct port, in_domain));
	return moved;
}

bool port_arm(struct port *port)
{
	bool quiet;

	port->armed = port->sleepers = true;
	quiet = !spec_settle(port);
	tx_settle(port);
	if (!list_empty(&port->awaiting))
		quiet &= !rma_help(port, true);
	for (unsigned int i = 0; i < PORT_TRANSPORTS; i++)
		if (port->hw[i])
			quiet &= port_transports[i]->arm(port->hw[i]);
	return quiet;
}

bool port_waits_for_room(const struct port *port)
{
	return !list_empty(&port->busy) || !list_empty(&port->awaiting) ||
	       (port->coll && coll_waits(port->coll));
}

bool xfer_arm(struct domain *dom)
{
	bool quiet = true;

	LIST_EACH (node, &dom->ports)
		quiet &= port_arm(LIST_ENTRY(node, struct port, in_domain));
	return quiet;
}

bool xfer_waits_for_room(struct domain *dom)
{
	LIST_EACH (node, &dom->ports)
		if (port_waits_for_room(LIST_ENTRY(node, struct port, in_domain)))
			return true;
	return false;
}

void xfer_watch_all(struct domain *dom)
{
	LIST_EACH (node, &dom->ports)
		progress_watch(dom, LIST_ENTRY(node, struct port, in_domain)->epfd);
}
