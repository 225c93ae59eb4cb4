/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: a port whose one peer is asked for, or comes with a request. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "xfer/conn_own.h"

int conn_single(struct port *port)
{
	static const struct addr nobody = {.kind = ADDR_NONE};
	struct peer *peer;

	if (port_reserve(port, 0))
		return -FI_ENOMEM;
	peer = peer_new(port, &nobody);
	if (!peer)
		return -FI_ENOMEM;
	port->peers[0] = peer;
	return 0;
}

struct peer *conn_peer(const struct port *port)
{
	return port->peers[0];
}

/* 0 or -FI_ENOMEM. */
static int call_it(struct peer *peer, const struct addr *name)
{
	struct addr copy;

	if (addr_dup(&copy, name))
		return -FI_ENOMEM;
	addr_free(&peer->name);
	peer->name = copy;
	peer->key = addr_unmapped(&copy);
	return 0;
}

int conn_request(struct port *port, const struct addr *to, const void *data, size_t len)
{
	struct peer *peer = conn_peer(port);
	char text[ADDR_STR_MAX + 32];
	int err = call_it(peer, to);

	if (!err && len && !(port->cm_data = malloc(len)))
		err = -FI_ENOMEM;
	if (err)
		return err;
	if (len)
		memcpy(port->cm_data, data, len);
	port->cm_len = len;
	err = conn_dial(peer);
	if (!err)
		return 0;
	addr_print(to, text, sizeof(text));
	LOG_WARN(LOG_EP_CTRL, "cannot connect to %s: %s", text, fi_strerror(-err));
	free(port->cm_data);
	port->cm_data = NULL;
	port->cm_len = 0;
	return err;
}

int conn_adopt(struct port *port, struct guest *guest, const void *data, size_t len)
{
	struct peer *peer = conn_peer(port);
	struct hello_words words = {
		.kind = HELLO_ACCEPT, .id = pool_id(peer), .data = data, .data_len = len};
	struct addr name;
	int err = hello_name(&guest->hello, &name);

	if (!err) {
		err = call_it(peer, &name);
		addr_free(&name);
	}
	if (err) {
		lobby_dismiss(guest);
		return err;
	}
	return conn_take(peer, guest, &words);
}

void conn_shutdown(struct port *port)
{
	struct peer *peer = conn_peer(port);

	conn_goodbye(peer);
	peer_lost(peer, FI_ESHUTDOWN);
}
