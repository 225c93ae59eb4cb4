/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_getinfo offers: providers of the one engine, a row each. Nothing else in the library knows
 * the name of a provider; a new transport or name is a new row here.
 */
#ifndef WEFT_INFO_PROVIDERS_H
#define WEFT_INFO_PROVIDERS_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>

/* Transports a provider may use, a bit each; the engine takes the best both ends have. */
#define PROVIDER_SHM   0x1u
#define PROVIDER_TCP   0x2u
#define PROVIDER_UDP   0x4u
#define PROVIDER_VERBS 0x8u
#define PROVIDER_RC    0x10u /* bare queue pairs, which talk to any program that has one */
#define PROVIDER_UD    0x20u /* the same for datagrams */

#define PROVIDER_MAX 20 /* rows */

/* The upper bit says: no FI_PROTO_ number of the interface. The rest is "wft". */
#define PROVIDER_PROTO_WEFT 0x80776674u

struct provider {
	const char *name;    /* prov_name; layers are joined by ';', the last one on top */
	const char *aliases; /* further names hints may use, joined by ',', or NULL */
	bool by_name;        /* offered only to those who name it (its top layer) */
	const char *fabric;  /* name of the fabric */
	const char *domain;  /* of the domain, where no network interface gives one */
	enum fi_ep_type type;
	uint32_t
		format; /* FI_ADDR_STR, FI_ADDR_IB_UD, or FI_SOCKADDR_IN: then also FI_SOCKADDR_IN6 */
	uint32_t protocol; /* FI_PROTO_, or one of our own */
	unsigned int transports;
	uint64_t caps;
	uint64_t msg_order; /* holds for transmit and receive contexts */
	int mr_mode;        /* FI_MR_ bits it makes use of when the application offers them */
	int mr_needed;      /* those it cannot do without */
	uint64_t mode;      /* FI_RX_CQ_DATA where that holds: told to those who can live with it */
};

/* Is there an RDMA device behind everything it does? */
static inline bool provider_needs_rdma(const struct provider *v)
{
	return v->transports == PROVIDER_VERBS || v->transports == PROVIDER_RC ||
	       v->transports == PROVIDER_UD;
}

/* Does nothing of it leave the host? */
static inline bool provider_stays_inside(const struct provider *v)
{
	return v->transports == PROVIDER_SHM;
}

extern const struct provider providers[];
extern const size_t provider_count;

/* Several rows may share a name: the first one of that name (or alias), or NULL. */
const struct provider *provider_find(const char *prov_name);

/* The row an entry of fi_getinfo came from: name and endpoint type agree. NULL: from none. */
const struct provider *provider_of(const struct fi_info *info);

/*
 * The format of the application's addresses, as src/base/addr.h reads and writes it: that of the entry, but
 * ADDR_IP_STR for strings where the row's endpoints have IP addresses.
 */
uint32_t provider_format(const struct fi_info *info);

/*
 * Is the row offered to hints that say `prov_name` (NULL: nothing) in this environment? Both that
 * and FI_PROVIDER are lists: "a,b" or, with all others, "^a,b". A name stands for every row whose
 * layers include its own: "ofi_rxm" for "tcp;ofi_rxm". Case is ignored.
 */
bool provider_offered(const struct provider *v, const char *prov_name);

#endif
