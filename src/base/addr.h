/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of an endpoint, whatever format the application uses for it: an IPv4 or IPv6 socket
 * address, a string (FI_ADDR_STR, at most ADDR_STR_MAX bytes with its terminator), or that of an RDMA
 * queue pair for datagrams (FI_ADDR_IB_UD: ADDR_IB_LEN bytes).
 */
#ifndef WEFT_BASE_ADDR_H
#define WEFT_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDR_STR_MAX 96
#define ADDR_IB_LEN  32

/*
 * FI_ADDR_STR of a provider whose endpoints have IP addresses: these, as addr_print writes them. FI_ADDR_STR itself
 * is for names that are strings.
 */
#define ADDR_IP_STR 0x80000009u

/* Of `scope`. */
#define ADDR_IB_QP       0xffffffu
#define ADDR_IB_SL_SHIFT 24

enum addr_kind { ADDR_NONE, ADDR_IN, ADDR_IN6, ADDR_STR, ADDR_IB };

struct addr {
	uint8_t kind;  /* enum addr_kind */
	uint8_t uses;  /* for the keeper's use; no part of the address */
	uint16_t port; /* host byte order; of kind ADDR_IB its LID, which Ethernet has none of */
	uint32_t
		scope; /* IPv6 scope id; ADDR_IB: queue pair in the lower 24 bits, service level above */
	union {
		uint8_t ip
			[16]; /* network byte order, IPv4 in the first four, the rest zero; or a GID */
		char *str;    /* owned by the caller of addr_dup or addr_parse */
	};
};

/*
 * Reads an address in the application's format (FI_SOCKADDR, FI_SOCKADDR_IP, FI_SOCKADDR_IN,
 * FI_SOCKADDR_IN6, FI_ADDR_STR, ADDR_IP_STR or FI_ADDR_IB_UD). `len` is what may be read, 0 when the format tells. A string is
 * copied. 0, -FI_EINVAL, -FI_ENOMEM.
 */
int addr_from_user(struct addr *a, uint32_t format, const void *buf, size_t len);

/*
 * Reads what addr_print writes: fi_sockaddr://, fi_sockaddr_in:// and fi_sockaddr_in6:// followed
 * by a numeric address, and a port if there is one, become IP kinds (what follows from '/' or '?'
 * on is not looked at); any other string is kept as it is. 0, -FI_EINVAL, -FI_ENOMEM.
 */
int addr_parse(struct addr *a, const char *str);

/* Bytes addr_to_user writes in full. */
size_t addr_user_len(const struct addr *a);

/*
 * Writes at most *len bytes in the application's format and sets *len to what the whole takes.
 * 0, or -FI_ETOOSMALL when it did not fit.
 */
int addr_to_user(const struct addr *a, void *buf, size_t *len);

/* The same for an application that wants addresses in `format`; what is no IP address is not touched by it. */
size_t addr_format_len(const struct addr *a, uint32_t format);
int addr_to_format(const struct addr *a, uint32_t format, void *buf, size_t *len);

/* "fi_sockaddr_in://1.2.3.4:5", "fi_sockaddr_in6://[::1]:5" or the string itself, cut to fit. */
void addr_print(const struct addr *a, char *buf, size_t len);

/* A copy with a string of its own. 0 or -FI_ENOMEM. */
int addr_dup(struct addr *to, const struct addr *from);
/* Leaves kind ADDR_NONE. */
void addr_free(struct addr *a);
/* Scope ids differ from host to host: they count only where both addresses have one. */
bool addr_equal(const struct addr *a, const struct addr *b);
/* A total order, the same in every process: settles crossing connects. */
int addr_compare(const struct addr *a, const struct addr *b);
uint64_t addr_hash(const struct addr *a);
/* "fi_shm://PID": where an endpoint whose name is a string is called nothing. 0 or -FI_ENOMEM. */
int addr_of_process(struct addr *a);
/* An IPv4 address in the clothes of an IPv6 one becomes the former; a string is shared. */
struct addr addr_unmapped(const struct addr *a);
/* An address every host has, for itself. */
bool addr_is_loopback(const struct addr *a);
/*
 * True for loopback, the unspecified address, strings (they name endpoints of this host) and the
 * addresses of this host's interfaces, as they were at most a second ago.
 */
bool addr_is_local(const struct addr *a);

#endif
