/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network namespace for the test: loopback, and a multicast-capable interface without a peer.
 * Packets sent there are only seen by this host. Needs api.h.
 */
#ifndef API_OWN_NET_H
#define API_OWN_NET_H

#define OWN_NET_IN  "10.77.0.1"
#define OWN_NET_IN6 "fd77::1"

/* Call before the test forks. Returns false and prints the reason if it is not permitted here. */
static inline bool own_net_enter(void)
{
	static const char make[] =
		"exec 2>&1; command -v ip >/dev/null || { echo ip is not installed; exit 1; }\n"
		"ip link set lo up || exit\n"
		"ip link add weft0 type dummy 2>/dev/null || ip link add weft0 type veth peer weft1 || exit\n"
		"! [ -e /sys/class/net/weft1 ] || ip link set weft1 up\n"
		"ip addr add " OWN_NET_IN "/24 dev weft0 && ip link set weft0 up || exit\n"
		"ip addr add " OWN_NET_IN6 "/64 dev weft0 nodad || echo no IPv6\n";

	if (unshare(CLONE_NEWNET)) {
		printf("no network namespace of our own: %s\n", strerror(errno));
		return false;
	}
	fflush(stdout);
	return system(make) == 0;
}

#endif
