/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The providers that fi_getinfo offers: all use the one engine, a row each. Provider names appear
 * nowhere else in the library; a new transport or name is a new row.
 */
#ifndef WEFT_INFO_PROVIDERS_H
#define WEFT_INFO_PROVIDERS_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>

/* Bits of transports; the engine takes the best one that both ends have. */
#define PROVIDER_SHM   0x1u
#define PROVIDER_TCP   0x2u
#define PROVIDER_UDP   0x4u
#define PROVIDER_VERBS 0x8u
#define PROVIDER_RC    0x10u /* plain queue pairs of a device; peers may run any program */
#define PROVIDER_UD    0x20u /* plain queue pairs for datagrams */

#define PROVIDER_MAX 20 /* limit of rows */

/* The upper bit separates this number from FI_PROTO_ numbers. The rest is "wft". */
#define PROVIDER_PROTO_WEFT 0x80776674u

struct provider {
	const char *name;   /* prov_name; layers separated by ';', the top one last */
	const char *fabric; /* name of the fabric */
	const char *domain; /* name of the domain if no network interface gives one */
	enum fi_ep_type type;
	/* FI_ADDR_STR, FI_ADDR_IB_UD, or FI_SOCKADDR_IN, which includes FI_SOCKADDR_IN6 */
	uint32_t format;
	uint32_t protocol; /* FI_PROTO_ number, or our own */
	unsigned int transports;
	uint64_t caps;
	uint64_t msg_order; /* for transmit and receive contexts */
	int mr_mode;        /* FI_MR_ bits that are of use if the application offers them */
	int mr_needed;      /* FI_MR_ bits that the provider requires */
	uint64_t mode; /* FI_RX_CQ_DATA if it applies; reported to applications that support it */
};

/* Do all its transports need an RDMA device? */
static inline bool provider_needs_rdma(const struct provider *v)
{
	return v->transports == PROVIDER_VERBS || v->transports == PROVIDER_RC ||
	       v->transports == PROVIDER_UD;
}

/* Does it only reach peers on this host? */
static inline bool provider_stays_inside(const struct provider *v)
{
	return v->transports == PROVIDER_SHM;
}

extern const struct provider providers[];
extern const size_t provider_count;

/* Returns the first row with this name or alias, or NULL. Rows may share a name. */
const struct provider *provider_find(const char *prov_name);

/* Returns the row of an entry from fi_getinfo, by name and endpoint type; NULL: none. */
const struct provider *provider_of(const struct fi_info *info);
/* Returns PROVIDER_ bits of the transports that an endpoint of this entry may use. */
unsigned int provider_wanted(const struct fi_info *info);
/* Do endpoints of this entry connect to their peers, across a network? */
bool provider_connects(const struct fi_info *info);

/*
 * Returns the format of the application's addresses for src/base/addr.h: the entry's, but
 * ADDR_IP_STR for strings if the row's endpoints have IP addresses.
 */
uint32_t provider_format(const struct fi_info *info);

/*
 * Is the row offered to hints with `prov_name` (or NULL) in this environment? `prov_name` and
 * FI_PROVIDER are lists: "a,b", or "^a,b" for all others. A name stands for each row whose layers
 * include its layers: "ofi_rxm" for "tcp;ofi_rxm". Ignores case.
 */
bool provider_offered(const struct provider *v, const char *prov_name);

/* The same for the name of an external provider, which a name stands for whose top layer it is. */
bool provider_name_offered(const char *name, const char *prov_name);

/* Is `name` one of a row's layers? Ignores case. */
bool provider_is_layer(const char *name);

#endif
