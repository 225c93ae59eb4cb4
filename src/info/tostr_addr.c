/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as text. Application addresses may be unaligned, so they are copied first. */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include "info/tostr.h"

/* Layouts of address formats without a system header; host byte order unless noted. */
struct ib_addr { /* struct sockaddr_ib; big-endian except the family */
	uint16_t family;
	uint16_t pkey;
	uint32_t flowinfo;
	struct in6_addr gid;
	uint64_t sid; /* bits 16 to 27 are the port space */
	uint64_t sid_mask;
	uint64_t scope_id;
};

struct ib_ud_addr {
	struct in6_addr gid;
	uint32_t qpn;
	uint16_t lid;
	uint16_t pkey;
	uint16_t service;
	uint8_t sl;
};

struct efa_addr {
	struct in6_addr gid;
	uint16_t qpn;
	uint16_t reserved;
	uint32_t qkey;
};

static const char *ip6_text(const struct in6_addr *ip, char *buf)
{
	return inet_ntop(AF_INET6, ip, buf, INET6_ADDRSTRLEN);
}

static void add_in(struct text *t, const void *addr)
{
	char ip[INET_ADDRSTRLEN];
	struct sockaddr_in sin;

	memcpy(&sin, addr, sizeof(sin));
	text_add(t, "fi_sockaddr_in://%s:%u", inet_ntop(AF_INET, &sin.sin_addr, ip, sizeof(ip)),
		 ntohs(sin.sin_port));
}

static void add_in6(struct text *t, const void *addr)
{
	char ip[INET6_ADDRSTRLEN];
	struct sockaddr_in6 sin6;

	memcpy(&sin6, addr, sizeof(sin6));
	text_add(t, "fi_sockaddr_in6://[%s]:%u", ip6_text(&sin6.sin6_addr, ip),
		 ntohs(sin6.sin6_port));
}

static void add_ib(struct text *t, const void *addr)
{
	char gid[INET6_ADDRSTRLEN];
	struct ib_addr ib;

	memcpy(&ib, addr, sizeof(ib));
	text_add(t, "fi_sockaddr_ib://[%s]:0x%x:0x%x:0x%x", ip6_text(&ib.gid, gid), ntohs(ib.pkey),
		 (unsigned int)(be64toh(ib.sid) >> 16 & 0xfff), (uint8_t)be64toh(ib.scope_id));
}

static void add_ib_ud(struct text *t, const void *addr)
{
	char gid[INET6_ADDRSTRLEN];
	struct ib_ud_addr ud;

	memcpy(&ud, addr, offsetof(struct ib_ud_addr, sl) + sizeof(ud.sl));
	text_add(t, "fi_addr_ib_ud://%s:%x/%x/%x/%x", ip6_text(&ud.gid, gid), ud.qpn, ud.lid,
		 ud.pkey, ud.sl);
}

static void add_efa(struct text *t, const void *addr)
{
	char gid[INET6_ADDRSTRLEN];
	struct efa_addr efa;

	memcpy(&efa, addr, sizeof(efa));
	text_add(t, "fi_addr_efa://[%s]:%u:%u", ip6_text(&efa.gid, gid), efa.qpn, efa.qkey);
}

/* Writes `count` 64-bit words. */
static void add_words(struct text *t, const char *scheme, const void *addr, int count)
{
	text_add(t, "%s://", scheme);
	for (int i = 0; i < count; i++) {
		unsigned long word;

		memcpy(&word, (const char *)addr + i * sizeof(word), sizeof(word));
		text_add(t, "%s%lx", i ? ":" : "", word);
	}
}

static void add_opx(struct text *t, const void *addr)
{
	uint64_t word;

	memcpy(&word, addr, sizeof(word));
	text_add(t, "fi_addr_opx://%016llx", (unsigned long long)word);
}

static void add_cxi(struct text *t, const void *addr)
{
	uint32_t word;

	memcpy(&word, addr, sizeof(word));
	text_add(t, "fi_addr_cxi://0x%08x", word);
}

/* FI_SOCKADDR and FI_SOCKADDR_IP: the address has its family. */
static void add_any_ip(struct text *t, const void *addr, bool ib)
{
	sa_family_t family;

	memcpy(&family, addr, sizeof(family));
	if (family == AF_INET)
		add_in(t, addr);
	else if (family == AF_INET6)
		add_in6(t, addr);
	else if (family == AF_IB && ib)
		add_ib(t, addr);
}

void tostr_addr(struct text *t, uint32_t format, const void *addr)
{
	switch (format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
		add_any_ip(t, addr, format == FI_SOCKADDR);
		break;
	case FI_SOCKADDR_IN:
		add_in(t, addr);
		break;
	case FI_SOCKADDR_IN6:
		add_in6(t, addr);
		break;
	case FI_SOCKADDR_IB:
		add_ib(t, addr);
		break;
	case FI_ADDR_STR:
		text_add(t, "%s", (const char *)addr);
		break;
	case FI_ADDR_PSMX2:
		add_words(t, "fi_addr_psmx2", addr, 2);
		break;
	case FI_ADDR_PSMX3:
		add_words(t, "fi_addr_psmx3", addr, 4);
		break;
	case FI_ADDR_IB_UD:
		add_ib_ud(t, addr);
		break;
	case FI_ADDR_EFA:
		add_efa(t, addr);
		break;
	case FI_ADDR_OPX:
		add_opx(t, addr);
		break;
	case FI_ADDR_CXI:
		add_cxi(t, addr);
		break;
	case FI_ADDR_MLX:
		text_add(t, "fi_addr_mlx://%p", addr);
		break;
	case FI_ADDR_UCX:
		text_add(t, "fi_addr_ucx://%p", addr);
		break;
	default:
		break;
	}
}
