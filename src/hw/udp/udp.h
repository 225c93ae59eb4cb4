/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams over UDP sockets: one bound to the endpoint's address, and one for each multicast group that the endpoint
 * receives from, since the kernel delivers to a socket only what is sent to its bound address.
 */
#ifndef WEFT_HW_UDP_H
#define WEFT_HW_UDP_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "link/dgram.h"
#include "link/opener.h"

struct udp {
	struct dgram dgram;
	int fd;              /* non-blocking, like the sockets of groups */
	int epfd;            /* the worker watches it; holds the sockets once a waiter has slept */
	uint32_t watched;    /* events for which `fd` is in epfd; 0: not in it */
	unsigned int spell;  /* datagrams received since a progress call received none */
	struct udp_gro *gro; /* the slots of udp_gro.c; NULL: datagrams come one by one */
	bool gro_tried;
	bool groups_first;  /* groups were read first by the last progress call */
	size_t segment_max; /* longest datagrams to send together by UDP_SEGMENT; 0: none */
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

/* Finds out whether the kernel can send datagrams together. */
void udp_batch_init(struct udp *u);

/* Logs why nothing could be received from a socket, see errno. Returns 0. */
unsigned int udp_received_nothing(void);

/* Receives several datagrams at once from now on, if the kernel can. */
void udp_gro_start(struct udp *u);
/* Delivers datagrams; `stream`: they keep coming. Returns their number. A receive is posted. */
unsigned int udp_gro_take(struct udp *u, bool stream);
/* Was a datagram received that is not delivered yet? */
bool udp_gro_waits(const struct udp *u);

int udp_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count);
int udp_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count);
int udp_join(struct dgram *d, struct dgram_group *g);
void udp_leave(struct dgram *d, struct dgram_group *g);
bool udp_progress(void *state);

#endif
