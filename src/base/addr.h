/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of an endpoint, independent of the application's format: an IPv4 or IPv6 socket
 * address, a string (FI_ADDR_STR, at most ADDR_STR_MAX bytes with its terminator), or the address
 * of an RDMA queue pair for datagrams (FI_ADDR_IB_UD: ADDR_IB_LEN bytes).
 */
#ifndef WEFT_BASE_ADDR_H
#define WEFT_BASE_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDR_STR_MAX 96
#define ADDR_IB_LEN  32

/*
 * Internal format number: IP addresses as strings, as addr_print writes them. For providers with IP
 * addresses it stands for the application's FI_ADDR_STR; here FI_ADDR_STR means endpoint names.
 */
#define ADDR_IP_STR 0x80000009u

/* Fields of `scope` for ADDR_IB. */
#define ADDR_IB_QP       0xffffffu
#define ADDR_IB_SL_SHIFT 24

enum addr_kind { ADDR_NONE, ADDR_IN, ADDR_IN6, ADDR_STR, ADDR_IB };

struct addr {
	uint8_t kind;  /* enum addr_kind */
	uint8_t uses;  /* for the owner of the struct; not part of the address */
	uint16_t port; /* host byte order; ADDR_IB: the LID, 0 on Ethernet */
	/* IPv6 scope id; ADDR_IB: queue pair in the lower 24 bits, service level above */
	uint32_t scope;
	union {
		/* Network byte order; IPv4 in the first four bytes, the rest zero; ADDR_IB: GID */
		uint8_t ip[16];
		char *str; /* ADDR_STR; freed by addr_free */
	};
};

/*
 * Reads an address in the application's format (FI_SOCKADDR, FI_SOCKADDR_IP, FI_SOCKADDR_IN,
 * FI_SOCKADDR_IN6, FI_ADDR_STR, ADDR_IP_STR or FI_ADDR_IB_UD). `len` limits the bytes read; 0 if
 * the format implies the length. Copies a string. Returns 0, -FI_EINVAL or -FI_ENOMEM.
 */
int addr_from_user(struct addr *a, uint32_t format, const void *buf, size_t len);

/*
 * Reads the output of addr_print. fi_sockaddr://, fi_sockaddr_in:// and fi_sockaddr_in6:// with a
 * numeric address and an optional port become IP kinds; text from '/' or '?' on is ignored. Any
 * other string becomes ADDR_STR, unchanged. Returns 0, -FI_EINVAL or -FI_ENOMEM.
 */
int addr_parse(struct addr *a, const char *str);

/* Returns the length (bytes) that addr_to_user needs. */
size_t addr_user_len(const struct addr *a);

/*
 * Writes the address in the application's format, at most *len bytes; sets *len to the full length.
 * Returns 0, or -FI_ETOOSMALL if the address was truncated.
 */
int addr_to_user(const struct addr *a, void *buf, size_t *len);

/* The same for an application with addresses in `format`, which only affects IP addresses. */
size_t addr_format_len(const struct addr *a, uint32_t format);
int addr_to_format(const struct addr *a, uint32_t format, void *buf, size_t *len);

/* Prints "fi_sockaddr_in://1.2.3.4:5", "fi_sockaddr_in6://[::1]:5" or the string, cut to fit. */
void addr_print(const struct addr *a, char *buf, size_t len);

/* Copies the address and its string. Returns 0 or -FI_ENOMEM. */
int addr_dup(struct addr *to, const struct addr *from);
/* Frees the string; sets kind ADDR_NONE. */
void addr_free(struct addr *a);
/* Scope ids differ between hosts: compared only if both addresses have one. */
bool addr_equal(const struct addr *a, const struct addr *b);
/* A total order, the same in every process: decides crossing connects. */
int addr_compare(const struct addr *a, const struct addr *b);
uint64_t addr_hash(const struct addr *a);
/* Sets "fi_shm://PID": the default name of an endpoint named by a string. 0 or -FI_ENOMEM. */
int addr_of_process(struct addr *a);
/* Converts an IPv4-mapped IPv6 address to IPv4; copies others. A string is shared, not copied. */
struct addr addr_unmapped(const struct addr *a);
/* Converts an IPv4 address to an IPv4-mapped IPv6 one if `kind` is ADDR_IN6; leaves others. */
void addr_map(struct addr *a, uint8_t kind);
/* Is it the wildcard, 0.0.0.0 or ::, with any port number? */
bool addr_is_any(const struct addr *a);
/* Returns 127.0.0.1 or ::1, by `kind`. */
struct addr addr_loopback(uint8_t kind, uint16_t port);
/* Is the address 127.0.0.0/8 or ::1? */
bool addr_is_loopback(const struct addr *a);
/* Is it an IPv6 address of a link, fe80::/10? Its scope tells which link, by a number of each host's own. */
bool addr_is_link_local(const struct addr *a);
/*
 * True for loopback, the unspecified address, strings (names of endpoints on this host) and the
 * addresses of this host's interfaces. The list of interfaces is at most a second old.
 */
bool addr_is_local(const struct addr *a);

#endif
