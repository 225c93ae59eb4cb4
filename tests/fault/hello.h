/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol on an endpoint's sockets, for tests that speak it themselves, with and without
 * errors.
 */
#ifndef FAULT_HELLO_H
#define FAULT_HELLO_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include "node.h"

/* The first message of a connection: struct wire_hello of link/wire.h. */
struct hello {
	uint32_t magic;
	uint16_t version, size;
	uint16_t kind, flags;
	uint32_t your_id;
	uint64_t incarnation, serial, cma_addr, cma_value;
	uint32_t name_format, name_len;
	char name[96];
	uint8_t nic[40];
	uint32_t error, data_len;
	uint8_t data[512];
	uint8_t nonce[32], mac[32];
};

#define MAGIC           0x54464557u
#define VERSION         16
#define HELLO_CONNECT   1u
#define HELLO_ACCEPT    2u
#define HELLO_CROSSED   3u
#define HELLO_REJECT    5u
#define HELLO_GREETING  6u
#define HELLO_CHALLENGE 7u

/* The head of every packet over TCP: hw/tcp/tcp.h. */
struct frame {
	uint64_t head, tag, data;
	uint32_t len, zero;
};

/*
 * Kinds of packets (link/wire.h): the first byte of `head`. Flags are the second, an id the last
 * four.
 */
#define WIRE_MSG        1u
#define WIRE_RTS        2u
#define WIRE_FRAG       5u
#define WIRE_DISCONNECT 15u
#define WIRE_GROUP      16u
#define WIRE_JOINT      17u
#define WIRE_RETIRE     18u
#define WIRE_INTRODUCE  19u
#define PACKET_MAX      ((1u << 20) + 4096) /* bytes of a payload */

#define WIRE_HELLO_ALL 0x10u

/* A further address of a hello's sender, and where they stand: struct wire_addresses. */
struct further_address {
	uint8_t ip[16];
	uint16_t port, in6;
};

static inline struct further_address *further_addresses(struct hello *h, uint32_t count)
{
	memcpy(h->data + 104, &count, sizeof(count));
	return (struct further_address *)(h->data + 108);
}

static inline struct hello good_hello(unsigned int n)
{
	struct hello h = {.magic = MAGIC,
			  .version = VERSION,
			  .size = sizeof(h),
			  .kind = HELLO_CONNECT,
			  .your_id = 1u << 20};
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)(1 + n % 10000))};

	h.incarnation = n;
	if (strcmp(provider(), "shm")) {
		h.name_format = FI_SOCKADDR_IN;
		h.name_len = sizeof(in);
		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		memcpy(h.name, &in, sizeof(in));
	} else {
		h.name_format = FI_ADDR_STR;
		h.name_len = (uint32_t)snprintf(h.name, sizeof(h.name), "raw-%u", n) + 1;
	}
	return h;
}

/* Ends the test where endpoints have no TCP listener. */
static inline void need_network(void)
{
	need_provider();
	if (strcmp(provider(), "shm"))
		return;
	printf("nothing of %s crosses a network\n", provider());
	exit(77);
}

static inline int tcp_socket(void)
{
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (sock < 0)
		fail("socket: %s", strerror(errno));
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return sock;
}

/* Connects to the TCP listener of the endpoint of this name. */
static inline int raw_connect_tcp(const struct name *name)
{
	int sock = tcp_socket();

	if (connect(sock, (const struct sockaddr *)(const void *)name->bytes,
		    sizeof(struct sockaddr_in)))
		fail("cannot connect to the endpoint: %s", strerror(errno));
	return sock;
}

/* Closes the socket with a reset. */
static inline void slam(int sock)
{
	struct linger now = {1, 0};

	setsockopt(sock, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(sock);
}

#endif
