/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What fi_getinfo offers: views of the one engine, a row each. Nothing else in the library knows
 * the name of a provider; a new transport or name is a new row here.
 */
#ifndef WEFT_CORE_VIEWS_H
#define WEFT_CORE_VIEWS_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>

/* Transports a view may use, a bit each; the engine takes the best both ends have. */
#define VIEW_SHM   0x1u
#define VIEW_TCP   0x2u
#define VIEW_UDP   0x4u
#define VIEW_VERBS 0x8u
#define VIEW_RC    0x10u /* bare queue pairs, which talk to any program that has one */
#define VIEW_UD    0x20u /* the same for datagrams */

#define VIEW_MAX 20 /* rows */

/* The upper bit says: no FI_PROTO_ number of the interface. The rest is "wft". */
#define VIEW_PROTO_WEFT 0x80776674u

struct view {
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
static inline bool view_needs_rdma(const struct view *v)
{
	return v->transports == VIEW_VERBS || v->transports == VIEW_RC || v->transports == VIEW_UD;
}

/* Does nothing of it leave the host? */
static inline bool view_stays_inside(const struct view *v)
{
	return v->transports == VIEW_SHM;
}

extern const struct view views[];
extern const size_t view_count;

/* Several rows may share a name: the first one of that name (or alias), or NULL. */
const struct view *view_find(const char *prov_name);

/* The row an entry of fi_getinfo came from: name and endpoint type agree. NULL: from none. */
const struct view *view_of(const struct fi_info *info);

/*
 * The format of the application's addresses, as src/base/addr.h reads and writes it: that of the entry, but
 * ADDR_IP_STR for strings where the row's endpoints have IP addresses.
 */
uint32_t view_format(const struct fi_info *info);

/*
 * Is the row offered to hints that say `prov_name` (NULL: nothing) in this environment? Both that
 * and FI_PROVIDER are lists: "a,b" or, with all others, "^a,b". A name stands for every row whose
 * layers include its own: "ofi_rxm" for "tcp;ofi_rxm". Case is ignored.
 */
bool view_offered(const struct view *v, const char *prov_name);

#endif
