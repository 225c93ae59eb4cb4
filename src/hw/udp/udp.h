/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams over UDP sockets: one bound to the endpoint's address, and one for each multicast group
 * it receives from, since the kernel gives a socket only what is sent to the address it is bound to.
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
	int fd;             /* non-blocking, like those of the groups */
	int epfd;           /* what the worker watches; sockets are in it once somebody has slept */
	uint32_t watched;   /* events `fd` is in it for */
	unsigned int spell; /* progress calls in a row that brought something */
	bool groups_first;  /* they fill the oldest receives next */
	unsigned int iface; /* kernel index, of IPv6 groups that name none; 0: not looked up */
};

union udp_name {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* A socket bound to `at`, guarded against forks; shared with others that do so, too, if it is a
 * group's. Its number or a negative error. */
int udp_bind(const struct addr *at, bool group);

socklen_t udp_name(const struct addr *a, union udp_name *name);

int udp_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
int udp_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count);
int udp_join(struct dgram *d, struct dgram_group *g);
void udp_leave(struct dgram *d, struct dgram_group *g);
bool udp_progress(void *state);

#endif
