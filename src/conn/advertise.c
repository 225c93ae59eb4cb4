/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/advertise.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/ports.h"

/* Reads the setting. 1; 0: there is none; -FI_EINVAL: it is wrong, which is logged. */
static int advertise_given(struct addr *shown)
{
	const char *text = env_get()->advertise;
	char uri[ADDR_STR_MAX + 32];

	if (!text)
		return 0;
	snprintf(uri, sizeof(uri), "fi_sockaddr://%s", text);
	if (!addr_parse(shown, uri) && !addr_is_any(shown))
		return 1;
	return LOG_REFUSE(
		-FI_EINVAL, LOG_EP_CTRL,
		"FI_WEFT_ADVERTISE=%s: an IP address is wanted, with or without a port number, "
		"like 10.0.0.7, 10.0.0.7:4711 or [fd00::7]:4711",
		text);
}

/* The port number that stands for `bound` if `shown` stands for the first of the range; 0: none. */
static uint16_t port_for(uint16_t bound, uint16_t shown)
{
	struct ports ports = ports_to_use();
	unsigned int nth = bound - ports.low;

	if (ports.given && bound >= ports.low && nth < ports.count && shown + nth <= UINT16_MAX)
		return (uint16_t)(shown + nth);
	LOG_WARN(LOG_EP_CTRL,
		 "FI_WEFT_ADVERTISE=%s: port %u stands for FI_TCP_PORT_LOW_RANGE=%d; there is no "
		 "port that stands for %u, which the endpoint has",
		 env_get()->advertise, shown, env_get()->port_low, bound);
	return 0;
}

int advertise_name(const struct addr *bound, struct addr *name)
{
	struct addr shown = {.kind = ADDR_NONE};
	uint16_t port = bound->port;
	int ret;

	*name = *bound;
	if (bound->kind == ADDR_STR || addr_is_loopback(bound))
		return 0;
	ret = advertise_given(&shown);
	if (ret <= 0 || shown.kind != bound->kind)
		return ret < 0 ? ret : 0;
	if (shown.port)
		port = port_for(port, shown.port);
	if (!port)
		return -FI_EINVAL;
	shown.port = port;
	*name = shown;
	return 0;
}

/* Does the name have the advertised IP address? *shown is the setting. */
static bool has_shown_ip(const struct addr *name, struct addr *shown)
{
	return name->kind != ADDR_STR && advertise_given(shown) > 0 && shown->kind == name->kind &&
	       memcmp(shown->ip, name->ip, sizeof(shown->ip)) == 0;
}

bool advertise_is_own(const struct addr *name)
{
	struct addr shown;

	return has_shown_ip(name, &shown);
}

bool advertise_port(const struct addr *name, uint16_t *bound)
{
	struct addr shown;
	struct ports ports = ports_to_use();
	unsigned int nth;

	if (!has_shown_ip(name, &shown))
		return false;
	nth = (unsigned int)name->port - shown.port; /* huge, if it is less */
	if (shown.port && (!ports.given || nth >= ports.count))
		return false;
	*bound = shown.port ? (uint16_t)(ports.low + nth) : name->port;
	return true;
}

void advertise_cut(const struct addr *name, struct ports *ports)
{
	struct addr shown;
	unsigned int most;

	if (addr_is_loopback(name) || advertise_given(&shown) <= 0 || shown.kind != name->kind ||
	    !shown.port)
		return;
	most = UINT16_MAX - shown.port + 1;
	if (ports->count > most)
		ports->count = most;
}
