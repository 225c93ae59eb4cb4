/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: a station with one peer, which it connects to or accepts. */
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/log.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

#define NAME_TRIES 64 /* random port numbers to try */
#define AGAIN_MS   10 /* between two attempts while the listener's backlog is full */

int conn_single(struct station *station)
{
	static const struct addr nobody = {.kind = ADDR_NONE};
	struct contact *peer;

	if (contact_reserve(station, 0))
		return -FI_ENOMEM;
	peer = contact_new(station, &nobody);
	if (!peer)
		return -FI_ENOMEM;
	station->peers[0] = peer;
	return 0;
}

struct contact *conn_peer(const struct station *station)
{
	return station->peers[0];
}

/*
 * Gives the station a port number that no other endpoint of this host has now, by binding `sock`;
 * none if that is hard to find.
 */
static void name_inside(struct station *station, int sock)
{
	struct addr name = station->name;
	struct sockaddr_un un;
	socklen_t len;

	for (unsigned int i = 0; i < NAME_TRIES; i++) {
		if (getrandom(&name.port, sizeof(name.port), 0) != sizeof(name.port))
			return;
		name.port |= 0xc000; /* in the dynamic range, like those of the kernel */
		len = connect_unix_name(&un, &name);
		if (!bind(sock, (struct sockaddr *)&un, len)) {
			station->name.port = name.port;
			return;
		}
	}
}

/* Gives the station the address that the kernel gave to the socket. */
static void name_network(struct station *station, int sock)
{
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct addr name;

	if (!getsockname(sock, (struct sockaddr *)&own, &len) &&
	    !addr_from_user(&name, FI_SOCKADDR, &own, len))
		station->name = name;
}

/* Completes a station's name without a port number by the socket's. */
static void conn_single_complete_name(struct contact *peer)
{
	struct station *station = peer->station;

	if (station->name.kind == ADDR_STR || station->name.port)
		return;
	station->cm_named = true;
	if (contact_inside(peer))
		name_inside(station, peer->sock);
	else
		name_network(station, peer->sock);
}

void conn_single_sent(struct contact *peer)
{
	conn_timer_clear(peer->station);
	conn_single_complete_name(peer);
}

void conn_single_unname(struct station *station)
{
	if (station->cm_named)
		station->name.port = 0;
}

void conn_single_waits(struct station *station)
{
	conn_timer_set(station, AGAIN_MS);
}

/* Across the network connect() may last long: sets the timer to the peer timeout. */
void conn_single_connecting(struct contact *peer)
{
	if (peer->state == PEER_CONNECTING)
		conn_timer_set(peer->station, env_get()->peer_timeout);
	conn_single_complete_name(peer);
}

int conn_request(struct station *station, const struct addr *to, const void *data, size_t len)
{
	struct contact *peer = conn_peer(station);
	char text[ADDR_STR_MAX + 32];
	int err = contact_rename(peer, to);

	if (!err && len && !(station->cm_data = malloc(len)))
		err = -FI_ENOMEM;
	if (err)
		return err;
	if (len)
		memcpy(station->cm_data, data, len);
	station->cm_len = len;
	err = conn_event(peer, CONN_START, &(struct conn_with){.in_advance = false});
	if (!err)
		return 0;
	addr_print(to, text, sizeof(text));
	LOG_WARN(LOG_EP_CTRL, "cannot connect to %s: %s", text, fi_strerror(-err));
	return err;
}

int conn_adopt(struct station *station, struct accepted *conn, const void *data, size_t len)
{
	struct contact *peer = conn_peer(station);
	struct hello_fields words = {
		.kind = HELLO_ACCEPT, .id = pool_id(peer), .data = data, .data_len = len};
	struct addr name;
	int err = hello_name(&conn->hello, &name);

	if (!err) {
		addr_map(&name, station->name.kind);
		err = contact_rename(peer, &name);
		addr_free(&name);
	}
	if (err) {
		acceptor_dismiss(conn);
		return err;
	}
	return conn_take(peer, conn, &words);
}

void conn_shutdown(struct station *station)
{
	struct contact *peer = conn_peer(station);

	conn_event(peer, CONN_CLOSE, NULL);
	conn_drain(station);
	peer->end = END_LOCAL;
	contact_failed(peer, FI_ESHUTDOWN);
}
