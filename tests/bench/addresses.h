/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses at which nobody is. */
#ifndef BENCH_ADDRESSES_H
#define BENCH_ADDRESSES_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>

#define ADDRESS_HOST     0x0a000001 /* of the first one: 10.0.0.1 */
#define ADDRESS_PORT     20000
#define ADDRESS_PER_HOST 64 /* ports per host */

static void addresses_make(struct sockaddr_in *all, size_t from, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		all[i] = (struct sockaddr_in){.sin_family = AF_INET};
		all[i].sin_port = htons((uint16_t)(ADDRESS_PORT + (from + i) % ADDRESS_PER_HOST));
		all[i].sin_addr.s_addr =
			htonl(ADDRESS_HOST + (uint32_t)((from + i) / ADDRESS_PER_HOST));
	}
}

#endif /* BENCH_ADDRESSES_H */
