/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More sockets for a link of several rails (docs/NETWORKS.md). The initiator of the link connects each pair of interfaces
 * in one network, and asks by HELLO_JOIN that the socket becomes a rail of the link; the target answers HELLO_JOINED. Each
 * shows the other a half of the token that came with the link's HELLO_ACCEPT.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "link/upcall.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

/* What both sides know of a link with rails. */
struct peer_rails {
	uint8_t token[WIRE_PROOF];
	uint32_t number; /* the initiator: the target's number of it */
	uint32_t count;  /* of pairs */
	struct rails_pair pair[WIRE_RAILS_MAX];
};

/* A socket of ours that may become a rail. Owned by the worker's pool. */
struct attempt {
	struct list in_worker;
	uint32_t peer; /* pool_id */
	uint32_t rail;
	int sock;
	bool asked; /* HELLO_JOIN is sent */
	uint64_t deadline;
};

static void end(struct worker *worker, struct attempt *a)
{
	if (a->sock >= 0)
		forked_close(a->sock);
	list_remove(&a->in_worker);
	pool_put(&worker->rails->pool, a);
}

void conn_rails_close(struct worker *worker)
{
	if (!worker->rails)
		return;
	LIST_EACH_SAFE (node, &worker->rails->joining)
		end(worker, LIST_ENTRY(node, struct attempt, in_worker));
	pool_fini(&worker->rails->pool);
	free(worker->rails);
	worker->rails = NULL;
}

/* Finds the worker's interfaces when they are asked for first. NULL: no memory. */
static struct rails *rails_of(struct worker *worker)
{
	if (worker->rails)
		return worker->rails;
	worker->rails = calloc(1, sizeof(*worker->rails));
	if (!worker->rails)
		return NULL;
	list_init(&worker->rails->joining);
	pool_init(&worker->rails->pool, sizeof(struct attempt));
	rails_find(worker->rails, &worker->name);
	return worker->rails;
}

const struct rails *conn_rails_own(struct peer *peer)
{
	struct worker *worker = peer->worker;
	const struct rails *rails;

	if (worker->cm || worker->auth.keyed || peer->conn.inside ||
	    !worker->via[LINK_SOCKET].state || !worker->via[LINK_SOCKET].transport->join ||
	    addr_is_local(&peer->name))
		return NULL;
	rails = rails_of(worker);
	return rails && rails->count > 1 ? rails : NULL;
}

void conn_rails_forget(struct peer *peer)
{
	free(peer->conn.rails);
	peer->conn.rails = NULL;
}

void conn_rails_agree(struct peer *peer, const struct accepted *conn)
{
	bool initiator = conn->hello.kind == HELLO_ACCEPT;
	struct worker *worker = peer->worker;
	struct peer_rails *rails;

	conn_rails_forget(peer);
	if (!conn->hello.rail_count || !conn_rails_own(peer))
		return;
	if (!initiator)
		rails_listen(worker->rails, &worker->acceptor);
	rails = calloc(1, sizeof(*rails));
	if (!rails)
		return;
	rails->number = conn->hello.your_id;
	rails->count = rails_match(worker->rails, &conn->hello, conn->sock, rails->pair);
	memcpy(rails->token, conn->hello.nonce, sizeof(rails->token));
	if ((!initiator && (!rails->count || getrandom(rails->token, sizeof(rails->token), 0) !=
						     sizeof(rails->token)))) {
		free(rails);
		return;
	}
	peer->conn.rails = rails;
}

const uint8_t *conn_rails_token(const struct peer *peer)
{
	return peer->conn.rails ? peer->conn.rails->token : NULL;
}

/* Is an attempt for this rail under way, or was one a moment ago? Ends those that are overdue. */
static bool attempted(struct worker *worker, uint32_t peer, uint32_t rail, uint64_t now)
{
	bool found = false;

	LIST_EACH_SAFE (node, &worker->rails->joining) {
		struct attempt *a = LIST_ENTRY(node, struct attempt, in_worker);

		if (now >= a->deadline)
			end(worker, a);
		else
			found |= a->peer == peer && a->rail == rail;
	}
	return found;
}

static int watch(struct worker *worker, struct attempt *a, int op, uint32_t events)
{
	struct epoll_event ev = {.events = events,
				 .data.u64 = (uint64_t)WORKER_RAIL << 32 | pool_id(a)};

	return epoll_ctl(worker->epfd, op, a->sock, &ev);
}

static void log_failure(const struct peer *peer, uint32_t rail, int err)
{
	const struct rails_pair *pair = &peer->conn.rails->pair[rail];
	char from[ADDR_STR_MAX + 32], to[ADDR_STR_MAX + 32];

	addr_print(&pair->from, from, sizeof(from));
	addr_print(&pair->to, to, sizeof(to));
	LOG_INFO(LOG_EP_CTRL, "rail %u cannot be made from %s to %s: %s", rail, from, to,
		 fi_strerror(err));
}

void rail_wanted(struct worker *worker, uint32_t src, uint32_t rail, uint32_t ms)
{
	struct peer *peer = pool_find(&worker->peer_pool, src);
	const struct rails_pair *pair;
	uint64_t now = clock_coarse_ms();
	struct attempt *a;

	if (!peer || !peer->conn.rails || !worker->rails || rail >= peer->conn.rails->count ||
	    attempted(worker, src, rail, now))
		return;
	a = pool_get(&worker->rails->pool);
	if (!a)
		return;
	pair = &peer->conn.rails->pair[rail];
	*a = (struct attempt){.peer = src, .rail = rail, .deadline = now + ms};
	list_init(&a->in_worker);
	list_push(&worker->rails->joining, &a->in_worker);
	a->sock = connect_network(&pair->to, pair->from.kind == ADDR_NONE ? NULL : &pair->from);
	if (a->sock >= 0 && !watch(worker, a, EPOLL_CTL_ADD, EPOLLOUT))
		return;
	log_failure(peer, rail, a->sock < 0 ? -a->sock : FI_ENOMEM);
	if (a->sock >= 0)
		end(worker, a); /* else it stands for the time until the next try */
}

bool rail_coming(const struct worker *worker, uint32_t src)
{
	uint64_t now = clock_coarse_ms();

	if (!worker->rails)
		return false;
	LIST_EACH (node, &worker->rails->joining) {
		const struct attempt *a = LIST_ENTRY(node, struct attempt, in_worker);

		if (a->peer == src && a->asked && a->sock >= 0 && now < a->deadline)
			return true;
	}
	return false;
}

/* connect() has ended. 0, or a negative error. */
static int ask(struct worker *worker, struct peer *peer, struct attempt *a)
{
	uint8_t half[WIRE_PROOF] = {0};
	struct hello_fields fields = {.kind = HELLO_JOIN,
				      .id = peer->conn.rails->number,
				      .rail_number = a->rail,
				      .token = half};
	int err = connect_result(a->sock);

	memcpy(half, peer->conn.rails->token, WIRE_TOKEN);
	if (!err)
		err = hello_send(NULL, a->sock, false, &fields);
	if (!err && watch(worker, a, EPOLL_CTL_MOD, EPOLLIN))
		err = -FI_ENOMEM;
	a->asked = !err;
	return err;
}

/* Gives the socket to the link. 0 or a negative error. */
static int join(struct peer *peer, uint32_t rail, int sock)
{
	const struct transport *t = peer->worker->via[LINK_SOCKET].transport;

	if (peer->state != PEER_CONNECTED || peer->conn.kind != LINK_SOCKET)
		return -FI_ENOTCONN;
	connect_set_linked(sock);
	return t->join(peer->real, rail, sock);
}

/* Has something come? 0: not all yet; 1: the socket is a rail; else a negative error. */
static int hear(struct worker *worker, struct peer *peer, struct attempt *a)
{
	struct wire_hello hello;
	int fds[WIRE_FDS], ret = hello_recv(a->sock, false, &hello, fds);

	if (ret <= 0)
		return ret;
	if (hello.kind != HELLO_JOINED ||
	    memcmp(hello.nonce, peer->conn.rails->token + WIRE_TOKEN, WIRE_TOKEN) != 0)
		return -FI_ECONNREFUSED;
	epoll_ctl(worker->epfd, EPOLL_CTL_DEL, a->sock, NULL);
	ret = join(peer, a->rail, a->sock);
	if (ret)
		return ret;
	a->sock = -1;
	return 1;
}

void conn_rails_event(struct worker *worker, uint32_t id)
{
	struct attempt *a = worker->rails ? pool_find(&worker->rails->pool, id) : NULL;
	struct peer *peer = a ? pool_find(&worker->peer_pool, a->peer) : NULL;
	int ret;

	if (!a || a->sock < 0)
		return;
	if (!peer || !peer->conn.rails) {
		end(worker, a);
		return;
	}
	ret = a->asked ? hear(worker, peer, a) : ask(worker, peer, a);
	if (ret == 0 || ret == -FI_EAGAIN)
		return;
	if (ret > 0) {
		end(worker, a);
		return;
	}
	log_failure(peer, a->rail, -ret);
	forked_close(a->sock);
	a->sock = -1; /* the next try is at the deadline */
}

/* NULL: the socket may become a rail of the peer's link. */
static const char *fault(const struct peer *peer, const struct wire_hello *hello)
{
	uint8_t differ = 0;

	if (!peer || peer->state != PEER_CONNECTED || !peer->conn.rails)
		return "there is no such link";
	for (unsigned int i = 0; i < WIRE_TOKEN; i++)
		differ |= hello->nonce[i] ^ peer->conn.rails->token[i];
	if (differ)
		return "it does not show the token of the link";
	return hello->rail_number < WIRE_RAILS_MAX ? NULL : "there are not so many rails";
}

void conn_rails_take(struct worker *worker, struct accepted *conn)
{
	struct peer *peer = pool_find(&worker->peer_pool, conn->hello.your_id);
	const char *why =
		conn->inside ? "it comes from within the host" : fault(peer, &conn->hello);
	uint8_t half[WIRE_PROOF] = {0};
	int err;

	if (why) {
		auth_refuse(&worker->auth, conn, why);
		acceptor_dismiss(conn);
		return;
	}
	memcpy(half, peer->conn.rails->token + WIRE_TOKEN, WIRE_TOKEN);
	err = hello_send(NULL, conn->sock, false,
			 &(struct hello_fields){.kind = HELLO_JOINED, .token = half});
	if (!err)
		err = join(peer, conn->hello.rail_number, conn->sock);
	if (err)
		acceptor_dismiss(conn);
}
