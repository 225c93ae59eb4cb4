/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/hash.h"

_Static_assert(sizeof(struct addr) == 24, "an address vector keeps millions of them");

static void from_in(struct addr *a, const struct sockaddr_in *in)
{
	a->kind = ADDR_IN;
	a->port = ntohs(in->sin_port);
	memcpy(a->ip, &in->sin_addr, sizeof(in->sin_addr));
}

static void from_in6(struct addr *a, const struct sockaddr_in6 *in6)
{
	a->kind = ADDR_IN6;
	a->port = ntohs(in6->sin6_port);
	a->scope = in6->sin6_scope_id;
	memcpy(a->ip, &in6->sin6_addr, sizeof(in6->sin6_addr));
}

/* `family`: AF_INET, AF_INET6, or AF_UNSPEC for either. */
static int from_sockaddr(struct addr *a, int family, const void *buf, size_t len)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
	size_t need;

	if (len && len < sizeof(u.sa.sa_family))
		return -FI_EINVAL;
	memcpy(&u.sa.sa_family, buf, sizeof(u.sa.sa_family));
	if (u.sa.sa_family != AF_INET && u.sa.sa_family != AF_INET6)
		return -FI_EINVAL;
	if (family != AF_UNSPEC && family != u.sa.sa_family)
		return -FI_EINVAL;
	need = u.sa.sa_family == AF_INET ? sizeof(u.in) : sizeof(u.in6);
	if (len && len < need)
		return -FI_EINVAL;
	memset(a, 0, sizeof(*a));
	if (u.sa.sa_family == AF_INET)
		from_in(a, memcpy(&u.in, buf, need)); /* buf may be unaligned */
	else
		from_in6(a, memcpy(&u.in6, buf, need));
	return 0;
}

/* Layout of an FI_ADDR_IB_UD address; host byte order except for the GID. */
struct ib_name {
	uint8_t gid[16];
	uint32_t qp;
	uint16_t lid;
	uint16_t pkey;
	uint16_t service;
	uint8_t sl;
	uint8_t rest[5];
};
_Static_assert(sizeof(struct ib_name) == ADDR_IB_LEN, "as applications have it");

#define DEFAULT_PKEY 0xffff

static int from_ib(struct addr *a, const void *buf, size_t len)
{
	struct ib_name name;

	if (len && len < sizeof(name))
		return -FI_EINVAL;
	memcpy(&name, buf, sizeof(name));
	if (name.qp & ~ADDR_IB_QP)
		return -FI_EINVAL;
	*a = (struct addr){.kind = ADDR_IB,
			   .port = name.lid,
			   .scope = name.qp | (uint32_t)name.sl << ADDR_IB_SL_SHIFT};
	memcpy(a->ip, name.gid, sizeof(a->ip));
	return 0;
}

static struct ib_name to_ib(const struct addr *a)
{
	struct ib_name name = {.qp = a->scope & ADDR_IB_QP,
			       .lid = a->port,
			       .pkey = DEFAULT_PKEY,
			       .sl = (uint8_t)(a->scope >> ADDR_IB_SL_SHIFT)};

	memcpy(name.gid, a->ip, sizeof(name.gid));
	return name;
}

static int from_string(struct addr *a, const char *str, size_t len)
{
	size_t n = strnlen(str, len && len < ADDR_STR_MAX ? len : ADDR_STR_MAX);
	char *copy;

	if (n == 0 || n >= ADDR_STR_MAX)
		return -FI_EINVAL;
	copy = strndup(str, n);
	if (!copy)
		return -FI_ENOMEM;
	memset(a, 0, sizeof(*a));
	a->kind = ADDR_STR;
	a->str = copy;
	return 0;
}

static int from_ip_string(struct addr *a, const char *str, size_t len)
{
	size_t n = strnlen(str, len && len < ADDR_STR_MAX ? len : ADDR_STR_MAX);
	char text[ADDR_STR_MAX];
	int err;

	if (n == 0 || n >= sizeof(text))
		return -FI_EINVAL;
	memcpy(text, str, n);
	text[n] = '\0';
	err = addr_parse(a, text);
	if (err || a->kind != ADDR_STR)
		return err;
	addr_free(a);
	return -FI_EINVAL;
}

int addr_from_user(struct addr *a, uint32_t format, const void *buf, size_t len)
{
	if (!buf)
		return -FI_EINVAL;
	switch (format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
		return from_sockaddr(a, AF_UNSPEC, buf, len);
	case FI_SOCKADDR_IN:
		return from_sockaddr(a, AF_INET, buf, len);
	case FI_SOCKADDR_IN6:
		return from_sockaddr(a, AF_INET6, buf, len);
	case FI_ADDR_STR:
		return from_string(a, buf, len);
	case ADDR_IP_STR:
		return from_ip_string(a, buf, len);
	case FI_ADDR_IB_UD:
		return from_ib(a, buf, len);
	default:
		return -FI_EINVAL;
	}
}

size_t addr_user_len(const struct addr *a)
{
	switch (a->kind) {
	case ADDR_IN:
		return sizeof(struct sockaddr_in);
	case ADDR_IN6:
		return sizeof(struct sockaddr_in6);
	case ADDR_STR:
		return strlen(a->str) + 1;
	case ADDR_IB:
		return ADDR_IB_LEN;
	default:
		return 0;
	}
}

int addr_to_user(const struct addr *a, void *buf, size_t *len)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port)};
	struct ib_name ib;
	size_t need = addr_user_len(a), room = *len;
	const void *from = "";

	if (a->kind == ADDR_IN) {
		memcpy(&in.sin_addr, a->ip, sizeof(in.sin_addr));
		from = &in;
	} else if (a->kind == ADDR_IN6) {
		memcpy(&in6.sin6_addr, a->ip, sizeof(in6.sin6_addr));
		in6.sin6_scope_id = a->scope;
		from = &in6;
	} else if (a->kind == ADDR_STR) {
		from = a->str;
	} else if (a->kind == ADDR_IB) {
		ib = to_ib(a);
		from = &ib;
	}
	*len = need;
	if (room && need)
		memcpy(buf, from, room < need ? room : need);
	return room < need ? -FI_ETOOSMALL : 0;
}

int addr_dup(struct addr *to, const struct addr *from)
{
	if (from->kind == ADDR_STR)
		return from_string(to, from->str, 0);
	*to = *from;
	to->uses = 0;
	return 0;
}

void addr_free(struct addr *a)
{
	if (a->kind == ADDR_STR)
		free(a->str);
	memset(a, 0, sizeof(*a));
}

bool addr_equal(const struct addr *a, const struct addr *b)
{
	if (a->kind != b->kind || a->port != b->port)
		return false;
	if (a->kind == ADDR_STR)
		return strcmp(a->str, b->str) == 0;
	if (a->scope != b->scope && a->scope && b->scope)
		return false;
	return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

int addr_compare(const struct addr *a, const struct addr *b)
{
	int diff;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == ADDR_STR)
		return strcmp(a->str, b->str);
	diff = memcmp(a->ip, b->ip, sizeof(a->ip));
	if (!diff && a->port != b->port)
		diff = a->port < b->port ? -1 : 1;
	if (!diff && a->scope != b->scope)
		diff = a->scope < b->scope ? -1 : 1;
	return diff;
}

uint64_t addr_hash(const struct addr *a)
{
	uint64_t h = (uint64_t)a->kind << 16 | a->port, half[2];

	if (a->kind == ADDR_STR) {
		for (const char *c = a->str; *c; c++)
			h = hash_mix(h ^ (unsigned char)*c);
		return h;
	}
	if (a->kind == ADDR_IB)
		h |= (uint64_t)a->scope << 32;
	memcpy(half, a->ip, sizeof(half));
	return hash_mix(hash_mix(h ^ half[0]) ^ half[1]);
}

void addr_print(const struct addr *a, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN], scope[12] = "";

	switch (a->kind) {
	case ADDR_IN:
		inet_ntop(AF_INET, a->ip, ip, sizeof(ip));
		snprintf(buf, len, "fi_sockaddr_in://%s:%u", ip, a->port);
		break;
	case ADDR_IN6:
		inet_ntop(AF_INET6, a->ip, ip, sizeof(ip));
		if (a->scope)
			snprintf(scope, sizeof(scope), "%%%u", a->scope);
		snprintf(buf, len, "fi_sockaddr_in6://[%s%s]:%u", ip, scope, a->port);
		break;
	case ADDR_IB:
		inet_ntop(AF_INET6, a->ip, ip, sizeof(ip));
		snprintf(buf, len, "fi_addr_ib_ud://%s:%x/%x/%x/%x", ip, a->scope & ADDR_IB_QP,
			 a->port, DEFAULT_PKEY, a->scope >> ADDR_IB_SL_SHIFT);
		break;
	default:
		snprintf(buf, len, "%s", a->kind == ADDR_STR ? a->str : "");
	}
}

/* Reads a decimal number that extends to the end of the string. */
static int read_number(const char *str, unsigned long max, unsigned long *value)
{
	unsigned long n = 0;

	if (!*str)
		return -FI_EINVAL;
	for (; *str; str++) {
		if (*str < '0' || *str > '9')
			return -FI_EINVAL;
		n = n * 10 + (unsigned long)(*str - '0');
		if (n > max)
			return -FI_EINVAL;
	}
	*value = n;
	return 0;
}

/* `host` is a numeric address; the function modifies it. */
static int read_host(struct addr *a, int kind, char *host)
{
	char *percent = strchr(host, '%');
	unsigned long scope = 0;

	if (percent && kind == ADDR_IN6) {
		*percent = '\0';
		if (read_number(percent + 1, UINT32_MAX, &scope))
			return -FI_EINVAL;
	}
	a->kind = (uint8_t)kind;
	a->scope = (uint32_t)scope;
	return inet_pton(kind == ADDR_IN6 ? AF_INET6 : AF_INET, host, a->ip) == 1 ? 0 : -FI_EINVAL;
}

/* "1.2.3.4:5" or "[::1]:5", the port optional. Modifies `text`. `kind` ADDR_NONE: either. */
static int read_ip(struct addr *a, int kind, char *text)
{
	bool bracket = *text == '[';
	char *host = text + bracket, *end = strpbrk(host, bracket ? "]" : ":");
	unsigned long port = 0;

	if (kind != ADDR_NONE && bracket != (kind == ADDR_IN6))
		return -FI_EINVAL;
	if (bracket) {
		if (!end)
			return -FI_EINVAL;
		*end++ = '\0';
	}
	if (end && *end) {
		if (*end != ':' || read_number(end + 1, UINT16_MAX, &port))
			return -FI_EINVAL;
		*end = '\0';
	}
	memset(a, 0, sizeof(*a));
	a->port = (uint16_t)port;
	return read_host(a, bracket ? ADDR_IN6 : ADDR_IN, host);
}

int addr_parse(struct addr *a, const char *str)
{
	static const struct {
		const char *scheme;
		int kind;
	} formats[] = {
		{"fi_sockaddr_in6://", ADDR_IN6},
		{"fi_sockaddr_in://", ADDR_IN},
		{"fi_sockaddr://", ADDR_NONE},
	};
	char text[ADDR_STR_MAX];
	struct addr read;

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		size_t skip = strlen(formats[i].scheme);

		if (strncmp(str, formats[i].scheme, skip) != 0)
			continue;
		if (snprintf(text, sizeof(text), "%s", str + skip) >= (int)sizeof(text))
			return -FI_EINVAL;
		text[strcspn(text, "/?")] = '\0';
		if (read_ip(&read, formats[i].kind, text))
			return -FI_EINVAL;
		*a = read;
		return 0;
	}
	return from_string(a, str, 0);
}
