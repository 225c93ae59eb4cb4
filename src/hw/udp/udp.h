/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams over UDP sockets: one bound to the endpoint's address, and one for each multicast group
 * that the endpoint receives from, since the kernel delivers to a socket only what is sent to its
 * bound address.
 */
#ifndef WEFT_HW_UDP_H
#define WEFT_HW_UDP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "link/dgram.h"
#include "link/link.h"
#include "link/upcall.h"

struct udp {
	struct dgram dgram;
	int fd;             /* non-blocking, like the sockets of groups */
	int epfd;           /* the worker watches it; holds the sockets once a waiter has slept */
	uint32_t watched;   /* events for which `fd` is in epfd; 0: not in it */
	unsigned int spell; /* consecutive progress calls that received datagrams */
	bool groups_first;  /* groups were read first by the last progress call */
	unsigned int iface; /* interface of IPv6 groups without a scope; 0: not looked up */
};

union udp_name {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/*
 * Returns a socket bound to `at`, noted with forked_guard, or a negative error. `group`: other
 * sockets may be bound to the same address.
 */
int udp_bind(const struct addr *at, bool group);

socklen_t udp_name(const struct addr *a, union udp_name *name);

int udp_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
int udp_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count);
int udp_join(struct dgram *d, struct dgram_group *g);
void udp_leave(struct dgram *d, struct dgram_group *g);
bool udp_progress(void *state);

#endif
