/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: a worker with one peer, which it connects to or accepts. */
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"

#define NAME_TRIES 64 /* random port numbers to try */
#define AGAIN_MS   10 /* between two attempts while the listener's backlog is full */

int conn_single(struct worker *worker)
{
	static const struct addr nobody = {.kind = ADDR_NONE};
	struct peer *peer;

	if (peer_reserve(worker, 0))
		return -FI_ENOMEM;
	peer = peer_new(worker, &nobody);
	if (!peer)
		return -FI_ENOMEM;
	worker->conn.peers[0] = peer;
	return 0;
}

struct peer *conn_peer(const struct worker *worker)
{
	return worker->conn.peers[0];
}

/*
 * Gives the worker a port number that no other endpoint of this host has now, by binding `sock`;
 * none if that is hard to find.
 */
static void name_inside(struct worker *worker, int sock)
{
	struct addr name = worker->conn.name;
	struct sockaddr_un un;
	socklen_t len;

	for (unsigned int i = 0; i < NAME_TRIES; i++) {
		if (getrandom(&name.port, sizeof(name.port), 0) != sizeof(name.port))
			return;
		name.port |= 0xc000; /* in the dynamic range, like those of the kernel */
		len = connect_unix_name(&un, &name);
		if (!bind(sock, (struct sockaddr *)&un, len)) {
			worker->conn.name.port = name.port;
			return;
		}
	}
}

/* Gives the worker the address that the kernel gave to the socket. */
static void name_network(struct worker *worker, int sock)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct addr name;

	if (!getsockname(sock, (struct sockaddr *)&own, &len) &&
	    !addr_from_user(&name, FI_SOCKADDR, &own, len))
		worker->conn.name = name;
}

/* Completes a worker's name without a port number by the socket's. */
static void conn_single_complete_name(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;

	if (worker->conn.name.kind == ADDR_STR || worker->conn.name.port)
		return;
	worker->conn.cm_named = true;
	if (peer_inside(peer))
		name_inside(worker, peer->conn.sock);
	else
		name_network(worker, peer->conn.sock);
}

void conn_single_sent(struct peer *peer)
{
	conn_timer_clear(peer->conn.worker);
	conn_single_complete_name(peer);
}

void conn_single_unname(struct worker *worker)
{
	if (worker->conn.cm_named)
		worker->conn.name.port = 0;
}

void conn_single_waits(struct worker *worker)
{
	conn_timer_set(worker, AGAIN_MS);
}

/* Across the network connect() may last long: sets the timer to the peer timeout. */
void conn_single_connecting(struct peer *peer)
{
	if (peer->conn.state == PEER_CONNECTING)
		conn_timer_set(peer->conn.worker, env_get()->peer_timeout);
	conn_single_complete_name(peer);
}

int conn_request(struct worker *worker, const struct addr *to, const void *data, size_t len)
{
	struct peer *peer = conn_peer(worker);
	char text[ADDR_STR_MAX + 32];
	int err = peer_rename(peer, to);

	if (!err && len && !(worker->conn.cm_data = malloc(len)))
		err = -FI_ENOMEM;
	if (err)
		return err;
	if (len)
		memcpy(worker->conn.cm_data, data, len);
	worker->conn.cm_len = len;
	err = conn_event(peer, CONN_START, &(struct conn_with){.early = false});
	if (!err)
		return 0;
	addr_print(to, text, sizeof(text));
	LOG_WARN(LOG_EP_CTRL, "cannot connect to %s: %s", text, fi_strerror(-err));
	return err;
}

int conn_adopt(struct worker *worker, struct accepted *conn, const void *data, size_t len)
{
	struct peer *peer = conn_peer(worker);
	struct hello_fields words = {
		.kind = HELLO_ACCEPT, .id = pool_id(peer), .data = data, .data_len = len};
	struct addr name;
	int err = hello_name(&conn->hello, &name);

	if (!err) {
		addr_map(&name, worker->conn.name.kind);
		err = peer_rename(peer, &name);
		addr_free(&name);
	}
	if (err) {
		acceptor_dismiss(conn);
		return err;
	}
	return conn_take(peer, conn, &words);
}

void conn_shutdown(struct worker *worker)
{
	struct peer *peer = conn_peer(worker);

	conn_event(peer, CONN_CLOSE, NULL);
	conn_drain(worker);
	peer->conn.end = END_LOCAL;
	peer_failed(peer, FI_ESHUTDOWN);
}
