/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/listen.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"

socklen_t listen_name(struct sockaddr_un *un, const struct addr *key)
{
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (key->kind == ADDR_STR)
		len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "weft/%s", key->str);
	else
		len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "weft/ip/%u", key->port);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static int try_bind(struct port *port)
{
	struct addr key = peer_key(&port->name);
	struct sockaddr_un un;
	socklen_t len = listen_name(&un, &key);

	return bind(port->listen, (struct sockaddr *)&un, len) ? -errno : 0;
}

/* Any free number of the dynamic range. */
static int bind_any_port(struct port *port)
{
	uint16_t start;
	int err = -FI_EADDRINUSE;

	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		return -FI_EIO;
	for (unsigned int i = 0; i < 16384 && err == -FI_EADDRINUSE; i++) {
		port->name.port = (uint16_t)(49152 + (start + i) % 16384);
		err = try_bind(port);
	}
	return err;
}

/* "fi_shm://PID" names a process; its further endpoints are told apart by a number. */
static int bind_next_name(struct port *port)
{
	char *stem = port->name.str, name[ADDR_STR_MAX];
	int err = -FI_EADDRINUSE;

	for (unsigned int i = 1; i < 65536 && err == -FI_EADDRINUSE; i++) {
		struct addr next = {.kind = ADDR_STR, .str = name};

		if (snprintf(name, sizeof(name), "%s:%u", stem, i) >= (int)sizeof(name))
			return -FI_EADDRINUSE;
		port->name = next;
		err = try_bind(port);
		port->name.str = stem;
		if (!err) {
			addr_free(&port->name);
			err = addr_dup(&port->name, &next);
		}
	}
	return err;
}

static int bind_name(struct port *port)
{
	int err;

	if (port->name.kind != ADDR_STR && port->name.port == 0)
		return bind_any_port(port);
	err = try_bind(port);
	if (err == -FI_EADDRINUSE && port->name.kind == ADDR_STR &&
	    !strncmp(port->name.str, "fi_shm://", 9))
		err = bind_next_name(port);
	return err;
}

int listen_open(struct port *port)
{
	char text[ADDR_STR_MAX + 32];
	int err;

	port->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (port->listen < 0)
		return -errno;
	err = forked_guard(port->listen);
	if (!err)
		err = bind_name(port);
	if (!err && listen(port->listen, SOMAXCONN))
		err = -errno;
	if (err) {
		addr_print(&port->name, text, sizeof(text));
		LOG_WARN(LOG_EP_CTRL, "cannot listen on %s: %s", text, fi_strerror(-err));
		forked_close(port->listen);
		port->listen = -1;
		return err;
	}
	port->key = peer_key(&port->name);
	return 0;
}
