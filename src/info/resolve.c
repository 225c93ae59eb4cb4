/* SPDX-License-Identifier: BSD-2-Clause */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "info/info.h"
#include "info/ifaces.h"
#include "info/opened.h"
#include "info/providers.h"
#include "info/rdma_ports.h"
#include "info/resolve.h"
#include "info/rules.h"
#include "link/link.h"

/* Copies an address into an entry. */
static int resolve_keep(void **member, size_t *member_len, const void *addr, size_t len)
{
	void *copy = malloc(len);

	if (!copy)
		return -FI_ENOMEM;
	memcpy(copy, addr, len);
	*member = copy;
	*member_len = len;
	return 0;
}

static int keep_domain(struct fi_info *info, const char *name)
{
	info->domain_attr->name = strdup(name);
	return info->domain_attr->name ? 0 : -FI_ENOMEM;
}

/* Returns the domain that hints ask for, by name or by an open domain; NULL: any. */
static const char *resolve_domain_asked(const struct query *q)
{
	const struct fi_domain_attr *attr = q->hints ? q->hints->domain_attr : NULL;
	const struct opened_domain *dom;

	if (!attr || attr->name)
		return attr ? attr->name : NULL;
	dom = opened_domain_of(attr->domain);
	return dom ? dom->info->domain_attr->name : NULL;
}

/* Stores an IP address, as a string if the entry's format is FI_ADDR_STR. */
static int keep_ip(const struct fi_info *info, void **member, size_t *member_len,
		   const struct addr *a)
{
	char name[ADDR_STR_MAX];
	size_t len = sizeof(name);
	int err = addr_to_format(a, info->addr_format == FI_ADDR_STR ? ADDR_IP_STR : 0, name, &len);

	return err || !len ? err : resolve_keep(member, member_len, name, len);
}

/* Do the hints need longer datagrams than this source can send? */
static bool too_long(const struct provider *v, const struct query *q, const struct ip_source *s)
{
	const struct fi_ep_attr *asked = q->hints ? q->hints->ep_attr : NULL;

	return v->transports == PROVIDER_UDP && asked &&
	       asked->max_msg_size > rules_dgram_max(&s->addr);
}

static int keep_iface(const struct provider *v, struct fi_info *info, const struct ip_source *s)
{
	if (provider_stays_inside(v))
		return keep_domain(info, v->domain);
	if (s->iface && s->iface->kind != IFACE_LOOPBACK) {
		info->nic = nic_of(s->iface);
		if (!info->nic)
			return -FI_ENOMEM;
	}
	return keep_domain(info, s->iface ? s->iface->name : v->domain);
}

/* Applies the device's limits, if one has the endpoints. -FI_ENODATA: it, or its library, cannot be used. */
static int resolve_narrow(const struct provider *v, const struct ip_source *s, struct fi_info *info)
{
	const struct transport *t = transport_of(v->transports);
	int err = t && t->device ? t->device->limit(&s->addr, info) : 0;

	return err && err != -FI_ENOMEM ? -FI_ENODATA : err;
}

/* The source is the port's address: the queue pair is not known before it exists. */
static int keep_port(const struct provider *v, struct fi_info *info, const struct ip_source *s)
{
	struct addr name = {.kind = ADDR_IB};
	struct rdma_port port;
	char text[ADDR_IB_LEN];
	size_t len = sizeof(text);
	int err = -FI_ENODATA;

	if (!rdma_ports_find(&s->addr, &port))
		return err;
	memcpy(name.ip, port.gid, sizeof(name.ip));
	addr_to_user(&name, text, &len);
	info->addr_format = v->format;
	err = resolve_keep(&info->src_addr, &info->src_addrlen, text, len);
	if (!err)
		err = resolve_narrow(v, s, info);
	return err ? err : keep_iface(v, info, s);
}

/* Fills in what differs between entries for different source addresses. */
static int keep_source(const struct provider *v, struct fi_info *info, const struct ip_source *s)
{
	int err;

	if (v->format == FI_ADDR_IB_UD)
		return keep_port(v, info, s);
	if (info->addr_format != FI_ADDR_STR)
		info->addr_format = s->addr.kind == ADDR_IN6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	if (v->type == FI_EP_DGRAM)
		info->ep_attr->max_msg_size = rules_dgram_max(&s->addr);
	err = keep_ip(info, &info->src_addr, &info->src_addrlen, &s->addr);
	if (!err)
		err = resolve_narrow(v, s, info);
	return err ? err : keep_iface(v, info, s);
}

/*
 * An application that gives no addresses, and names a domain or provider or asks for nothing in particular, gets an
 * entry per address. Others get only the best: they take the first entry, or spread processes over all.
 */
static bool asks_for_all(const struct query *q, const char *domain)
{
	const struct fi_info *h = q->hints;

	if (q->node || q->service)
		return false;
	if (!h)
		return true;
	if (h->src_addr || h->dest_addr)
		return false;
	return domain || !h->caps || (h->fabric_attr && h->fabric_attr->prov_name);
}

/* Adds a copy of `like` for another address behind *last; none if the address cannot be used. */
static int resolve_add_entry(const struct provider *v, const struct fi_info *like,
			     const struct ip_source *s, struct fi_info **last)
{
	struct fi_info *info = info_dup(like);
	int err;

	if (!info)
		return -FI_ENOMEM;
	free(info->src_addr);
	free(info->domain_attr->name);
	if (info->nic)
		info->nic->fid.ops->close(&info->nic->fid);
	info->src_addr = NULL;
	info->src_addrlen = 0;
	info->domain_attr->name = NULL;
	info->nic = NULL;
	err = keep_source(v, info, s);
	if (err) {
		fi_freeinfo(info);
		return err == -FI_ENODATA ? 0 : err;
	}
	(*last)->next = info;
	*last = info;
	return 0;
}

/* Can the address be reached by the provider's transport? */
static bool resolve_suits(const struct provider *v, const struct ip_source *s)
{
	struct rdma_port port;

	return !provider_needs_rdma(v) ||
	       (transport_of(v->transports) && rdma_ports_find(&s->addr, &port));
}

/* If the best address does not suit, tries others, unless the source was given. */
static bool find_suitable(const struct provider *v, const struct query *q, const char *domain,
			  struct ip_source *s, struct refusal *why)
{
	struct ip_source best = *s;
	size_t at = 0;

	while (!resolve_suits(v, s)) {
		if (!resolve_ip_is_open(q->ends) ||
		    !resolve_ip_other(q->ends, domain, &best, &at, s))
			return hints_refuse(why, "src_addr: no RDMA device has that address%s",
					    rdma_ports_choice((char[RDMA_CHOICE_MAX]){0}));
		s->addr.port = best.addr.port;
	}
	return true;
}

static bool is_loopback(const struct ip_source *s)
{
	return s->iface && s->iface->kind == IFACE_LOOPBACK;
}

/* Adds entries for further addresses behind `last`. Loopback ones are for this host only. */
static int add_others(const struct provider *v, const struct query *q, const char *domain,
		      const struct ip_source *first, const struct fi_info *like,
		      struct fi_info *last)
{
	bool far = q->hints && q->hints->caps & FI_REMOTE_COMM;
	struct ip_source s;
	size_t at = 0;
	int err = 0;

	while (!err && resolve_ip_other(q->ends, domain, first, &at, &s)) {
		bool near = is_loopback(&s) && !is_loopback(first);
		const struct fi_info *before = last;

		if ((near && far) || !resolve_suits(v, &s) || too_long(v, q, &s))
			continue;
		err = resolve_add_entry(v, like, &s, &last);
		if (near && last != before)
			last->caps &= ~FI_REMOTE_COMM;
	}
	return err;
}

/* Makes the entry of `first`, and of all other addresses if wanted, within each device's limits. */
static int make_entries(const struct provider *v, const struct query *q, const char *domain,
			const struct ip_source *first, struct fi_info *info, struct refusal *why)
{
	bool all = asks_for_all(q, domain) && !provider_stays_inside(v);
	struct fi_info *like = all ? info_dup(info) : NULL;
	int err = all && !like ? -FI_ENOMEM : keep_source(v, info, first);

	if (err == -FI_ENODATA)
		hints_refuse(why, "src_addr: the RDMA device there cannot be used");
	if (!err && all)
		err = add_others(v, q, domain, first, like, info);
	fi_freeinfo(like);
	return err;
}

static int resolve_sockets(const struct provider *v, const struct query *q, struct fi_info *info,
			   struct refusal *why)
{
	uint32_t format = q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC;
	const char *domain = resolve_domain_asked(q);
	struct ip_source s;
	int err;

	if (!resolve_ip_format(format)) {
		hints_refuse_value(why, "addr_format", FI_TYPE_ADDR_FORMAT, format, v->format);
		return -FI_ENODATA;
	}
	/* The provider's default domain name selects no interface. */
	if (domain && strcmp(domain, v->domain) == 0)
		domain = NULL;
	err = resolve_ip_ends(q->ends, q, why);
	if (err)
		return err;
	if (provider_stays_inside(v) && !resolve_ip_inside(q, domain, why))
		return -FI_ENODATA;
	if (!resolve_ip_source(q->ends, domain, &s, why) || !find_suitable(v, q, domain, &s, why))
		return -FI_ENODATA;
	if (!provider_needs_rdma(v)) /* a device is of one interface */
		resolve_ip_all(q->ends, domain, &s);
	if (too_long(v, q, &s)) {
		hints_refuse(why, "ep_attr->max_msg_size: %zu asked, %zu offered",
			     q->hints->ep_attr->max_msg_size, rules_dgram_max(&s.addr));
		return -FI_ENODATA;
	}
	if (format == FI_ADDR_STR)
		info->addr_format = format;
	if (v->format != FI_ADDR_IB_UD)
		err = keep_ip(info, &info->dest_addr, &info->dest_addrlen, &q->ends->dest);
	return err ? err : make_entries(v, q, domain, &s, info, why);
}

/* Do the hints need longer messages than the port's MTU permits? */
static bool too_long_for_port(const struct query *q, const struct fi_info *info,
			      struct refusal *why)
{
	const struct fi_ep_attr *ep = q->hints ? q->hints->ep_attr : NULL;
	const struct fi_tx_attr *tx = q->hints ? q->hints->tx_attr : NULL;
	size_t most = info->ep_attr->max_msg_size;

	if (ep && ep->max_msg_size > most)
		return !hints_refuse(why, "ep_attr->max_msg_size: %zu asked, %zu offered",
				     ep->max_msg_size, most);
	if (tx && tx->inject_size > most)
		return !hints_refuse(why, "tx_attr->inject_size: %zu asked, %zu offered",
				     tx->inject_size, most);
	return false;
}

/* Converts a GID to an IP address, which it is on Ethernet. */
static bool name_to_ip(void **member, size_t *len, struct sockaddr_in6 *to)
{
	struct addr a;

	if (!*member)
		return true;
	if (addr_from_user(&a, FI_ADDR_IB_UD, *member, *len))
		return false;
	a.kind = ADDR_IN6;
	a.port = 0;
	a.scope = 0;
	a = addr_unmapped(&a);
	*len = sizeof(*to);
	*member = to;
	return addr_to_user(&a, to, len) == 0;
}

/*
 * FI_ADDR_IB_UD: the IP addresses of the ports determine the source. A destination given by node
 * and service stays empty, because its queue pair is unknown.
 */
static int resolve_pairs(const struct provider *v, const struct query *q, struct fi_info *info,
			 struct refusal *why)
{
	uint32_t format = q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC;
	struct sockaddr_in6 src, dest;
	struct query ip = *q;
	struct fi_info hints;
	int err;

	if (format != FI_FORMAT_UNSPEC && format != v->format) {
		hints_refuse_value(why, "addr_format", FI_TYPE_ADDR_FORMAT, format, v->format);
		return -FI_ENODATA;
	}
	if (format == v->format) {
		hints = *q->hints;
		hints.addr_format = FI_FORMAT_UNSPEC;
		ip.hints = &hints;
		if (!name_to_ip(&hints.src_addr, &hints.src_addrlen, &src) ||
		    !name_to_ip(&hints.dest_addr, &hints.dest_addrlen, &dest)) {
			hints_refuse(why, "src_addr or dest_addr: no FI_ADDR_IB_UD");
			return -FI_ENODATA;
		}
	}
	err = resolve_sockets(v, &ip, info, why);
	if (!err && too_long_for_port(q, info, why))
		err = -FI_ENODATA;
	if (!err && format == v->format && q->hints->dest_addr)
		err = resolve_keep(&info->dest_addr, &info->dest_addrlen, q->hints->dest_addr,
				   ADDR_IB_LEN);
	return err;
}

/* "fi_ns://node:service" is unique by itself; "fi_shm://node" is not. */
static bool string_name(char *out, const struct query *q, struct refusal *why)
{
	int len;

	if (q->node && strstr(q->node, "://")) {
		if (q->service)
			return hints_refuse(why,
					    "node: \"%.100s\" is an address and takes no service",
					    q->node);
		len = snprintf(out, ADDR_STR_MAX, "%s", q->node);
	} else if (q->node && q->service) {
		len = snprintf(out, ADDR_STR_MAX, "fi_ns://%s:%s", q->node, q->service);
	} else if (q->service) {
		len = snprintf(out, ADDR_STR_MAX, "fi_ns://%s", q->service);
	} else {
		len = snprintf(out, ADDR_STR_MAX, "fi_shm://%s", q->node);
	}
	return len < ADDR_STR_MAX ||
	       hints_refuse(why, "node and service: %d characters, %d are the most", len,
			    ADDR_STR_MAX - 1);
}

/* Copies a string from hints; its length may be wrong or omit the terminator. */
static bool string_read(char *out, const char *hint, const void *addr, size_t len,
			struct refusal *why)
{
	size_t n = strnlen(addr, len && len < ADDR_STR_MAX ? len : ADDR_STR_MAX);

	if (n >= ADDR_STR_MAX)
		return hints_refuse(why, "%s: longer than %d characters", hint, ADDR_STR_MAX - 1);
	memcpy(out, addr, n);
	out[n] = '\0';
	return true;
}

static bool string_ends(const struct query *q, char *src, char *dest, struct refusal *why)
{
	const struct fi_info *h = q->hints;
	bool named = q->node || q->service, source = q->flags & FI_SOURCE;

	if (h && h->src_addr && !source &&
	    !string_read(src, "src_addr", h->src_addr, h->src_addrlen, why))
		return false;
	if (h && h->dest_addr && (source || !named) &&
	    !string_read(dest, "dest_addr", h->dest_addr, h->dest_addrlen, why))
		return false;
	return !named || string_name(source ? src : dest, q, why);
}

static int resolve_strings(const struct provider *v, const struct query *q, struct fi_info *info,
			   struct refusal *why)
{
	const char *asked = q->hints && q->hints->domain_attr ? q->hints->domain_attr->name : NULL;
	uint32_t format = q->hints ? q->hints->addr_format : FI_FORMAT_UNSPEC;
	char src[ADDR_STR_MAX] = "", dest[ADDR_STR_MAX] = "";
	int ret;

	if (format != FI_FORMAT_UNSPEC && format != v->format) {
		hints_refuse_value(why, "addr_format", FI_TYPE_ADDR_FORMAT, format, v->format);
		return -FI_ENODATA;
	}
	if (asked && strcmp(asked, v->domain) != 0) {
		hints_refuse(why, "domain_attr->name: \"%.100s\" asked, \"%s\" offered", asked,
			     v->domain);
		return -FI_ENODATA;
	}
	if (!string_ends(q, src, dest, why))
		return -FI_ENODATA;
	if (!*src)
		snprintf(src, sizeof(src), "fi_shm://%d", (int)getpid());
	info->addr_format = v->format;
	ret = resolve_keep(&info->src_addr, &info->src_addrlen, src, strlen(src) + 1);
	if (!ret && *dest)
		ret = resolve_keep(&info->dest_addr, &info->dest_addrlen, dest, strlen(dest) + 1);
	return ret ? ret : keep_domain(info, v->domain);
}

int resolve(const struct provider *v, const struct query *q, struct fi_info *info,
	    struct refusal *why)
{
	switch (v->format) {
	case FI_ADDR_STR:
		return resolve_strings(v, q, info, why);
	case FI_ADDR_IB_UD:
		return resolve_pairs(v, q, info, why);
	default:
		return resolve_sockets(v, q, info, why);
	}
}
