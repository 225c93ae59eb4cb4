/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hints for datagram endpoints on the loopback interface, or with HW=verbs on a device. The kernel
 * drops datagrams when its socket buffer is full, so the tests keep few in flight. Needs api.h.
 */
#ifndef API_DGRAM_H
#define API_DGRAM_H

#include <netinet/in.h>

/* Returns whether the endpoint is a device's: no IP address, and max_msg_size is one packet. */
static inline bool dgram_device(void)
{
	return !strcmp(api_provider(), "verbs");
}

static inline size_t dgram_fit(const struct fi_info *info, size_t len)
{
	return len < info->ep_attr->max_msg_size ? len : info->ep_attr->max_msg_size;
}

static inline void dgram_hint(struct fi_info *hints)
{
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(dgram_device() ? "verbs" : "udp");
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = 0;
}

/* For side_opts.tune: an endpoint at 127.0.0.1 with a port chosen by the system. */
static inline void dgram_in(struct fi_info *hints)
{
	struct sockaddr_in *in = calloc(1, sizeof(*in));

	CHECK(in);
	dgram_hint(hints);
	if (dgram_device()) {
		free(in);
		return;
	}
	*in = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = in;
	hints->src_addrlen = sizeof(*in);
}

/* For side_opts.tune: an endpoint at ::1. */
static inline void dgram_in6(struct fi_info *hints)
{
	struct sockaddr_in6 *in6 = calloc(1, sizeof(*in6));

	CHECK(in6);
	dgram_hint(hints);
	*in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	hints->addr_format = FI_SOCKADDR_IN6;
	hints->src_addr = in6;
	hints->src_addrlen = sizeof(*in6);
}

static inline void dgram_need_in6(void)
{
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool good = !dgram_device() && fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	if (fd >= 0)
		close(fd);
	if (!good)
		api_skip("no IPv6 here");
}

#endif
