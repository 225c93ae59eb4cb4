/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/addr.h"
#include "base/env.h"
#include "info/providers.h"

/* Capabilities of the engine over every transport, also for connected endpoints. */
#define PAIR_CAPS                                                                                  \
	(FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_TAGGED_MULTI_RECV |           \
	 FI_FENCE | FI_LOCAL_COMM | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ |     \
	 FI_REMOTE_WRITE | FI_RMA_EVENT | FI_RMA_PMEM | FI_TRIGGER)

/* Capabilities that need addressed peers. */
#define ENGINE_CAPS                                                                                \
	(PAIR_CAPS | FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV | FI_EXACT_DIRECTED_RECV |         \
	 FI_SOURCE | FI_SOURCE_ERR | FI_AV_USER_ID | FI_NAMED_RX_CTX | FI_SHARED_AV |              \
	 FI_COLLECTIVE)

#define UD_CAPS (DGRAM_CAPS & ~FI_MULTICAST)
#define DGRAM_CAPS                                                                                 \
	(FI_MSG | FI_MULTICAST | FI_SEND | FI_RECV | FI_SOURCE | FI_SOURCE_ERR | FI_AV_USER_ID |   \
	 FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM)

/*
 * All sends between two contexts, tagged or not, match in posting order, and one-sided operations
 * are performed in posting order, whatever their size. Messages sent after one-sided operations are
 * delivered after them. Only one-sided operations may overtake earlier messages.
 */
#define ENGINE_ORDER                                                                               \
	(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_SAR | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | \
	 FI_ORDER_WAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |                   \
	 FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |      \
	 FI_ORDER_ATOMIC_WAW)

/*
 * With these modes RDMA devices access the memory directly. They are granted whether this host has a device or not:
 * peers may have one, and all processes of a job have to name memory in one way.
 */
#define RDMA_MR (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/*
 * What a device's queue pair does by itself, and its ordering: later operations may overtake only
 * operations that read, or change and read, unless fenced.
 */
#define RC_CAPS                                                                                    \
	(FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |   \
	 FI_REMOTE_WRITE | FI_RMA_PMEM | FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define RC_ORDER                                                                                   \
	(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW | FI_ORDER_RAS | FI_ORDER_RAW | \
	 FI_ORDER_RAR | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW)
#define RC_MR (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

#define PROVIDER_ANY (PROVIDER_SHM | PROVIDER_VERBS | PROVIDER_TCP)

/* An engine endpoint with IP addresses. */
#define IP_RDM                                                                                     \
	.type = FI_EP_RDM, .format = FI_SOCKADDR_IN, .caps = ENGINE_CAPS | FI_REMOTE_COMM,         \
	.msg_order = ENGINE_ORDER
#define IP_MSG                                                                                     \
	.type = FI_EP_MSG, .format = FI_SOCKADDR_IN, .caps = PAIR_CAPS | FI_REMOTE_COMM,           \
	.msg_order = ENGINE_ORDER

/* Datagrams over UDP, under any provider name. */
#define IP_DGRAM                                                                                   \
	.type = FI_EP_DGRAM, .format = FI_SOCKADDR_IN, .transports = PROVIDER_UDP,                 \
	.protocol = FI_PROTO_UDP, .caps = DGRAM_CAPS

#define NAMES(of) .name = (of), .fabric = (of), .domain = (of)

/* clang-format off */
const struct provider providers[] = {
	{NAMES("weft"), IP_RDM, .transports = PROVIDER_ANY, .protocol = PROVIDER_PROTO_WEFT,
	 .mr_mode = RDMA_MR},
	{NAMES("weft"), IP_MSG, .transports = PROVIDER_ANY, .protocol = PROVIDER_PROTO_WEFT,
	 .mr_mode = RDMA_MR},
	{NAMES("weft"), IP_DGRAM},
	{NAMES("verbs;ofi_rxm"), IP_RDM, .transports = PROVIDER_VERBS, .protocol = FI_PROTO_RXM,
	 .mr_mode = RDMA_MR},
	{NAMES("verbs"), .type = FI_EP_MSG, .format = FI_SOCKADDR_IN, .transports = PROVIDER_RC,
	 .protocol = FI_PROTO_RDMA_CM_IB_RC, .caps = RC_CAPS, .msg_order = RC_ORDER,
	 .mr_mode = RC_MR, .mr_needed = RC_MR, .mode = FI_RX_CQ_DATA},
	{NAMES("verbs"), .type = FI_EP_DGRAM, .format = FI_ADDR_IB_UD, .transports = PROVIDER_UD,
	 .protocol = FI_PROTO_IB_UD, .caps = UD_CAPS},
	{NAMES("tcp"), IP_RDM, .transports = PROVIDER_TCP, .protocol = FI_PROTO_XNET},
	{NAMES("tcp"), IP_MSG, .transports = PROVIDER_TCP, .protocol = FI_PROTO_SOCK_TCP},
	{NAMES("shm"), .type = FI_EP_RDM, .format = FI_ADDR_STR, .transports = PROVIDER_SHM,
	 .protocol = FI_PROTO_SHM, .caps = ENGINE_CAPS, .msg_order = ENGINE_ORDER},
	/* listeners have an IP address of this host */
	{NAMES("shm"), .type = FI_EP_MSG, .format = FI_SOCKADDR_IN, .transports = PROVIDER_SHM,
	 .protocol = FI_PROTO_SHM, .caps = PAIR_CAPS, .msg_order = ENGINE_ORDER},
	{NAMES("udp"), IP_DGRAM},
	/* Names of libfabric's for what is above: clients ask for them, or look for them in the whole list. */
	{NAMES("tcp;ofi_rxm"), IP_RDM, .transports = PROVIDER_TCP, .protocol = FI_PROTO_RXM},
	{NAMES("sockets"), IP_RDM, .transports = PROVIDER_TCP, .protocol = FI_PROTO_SOCK_TCP},
	{NAMES("sockets"), IP_MSG, .transports = PROVIDER_TCP, .protocol = FI_PROTO_SOCK_TCP},
	{NAMES("sockets"), IP_DGRAM},
	{NAMES("net"), IP_RDM, .transports = PROVIDER_TCP, .protocol = FI_PROTO_XNET},
	{NAMES("net"), IP_MSG, .transports = PROVIDER_TCP, .protocol = FI_PROTO_SOCK_TCP},
};
/* clang-format on */

const size_t provider_count = sizeof(providers) / sizeof(providers[0]);
_Static_assert(sizeof(providers) / sizeof(providers[0]) <= PROVIDER_MAX,
	       "PROVIDER_MAX bounds arrays elsewhere");

/* A part of a list or of a layered name. */
struct word {
	const char *at;
	size_t len;
};

/* Removes the next word from *rest, without blanks around it; false at the end. */
static bool next_word(const char **rest, const char *end, char separator, struct word *w)
{
	const char *at = *rest, *stop;

	if (at > end)
		return false;
	stop = memchr(at, separator, (size_t)(end - at));
	if (!stop)
		stop = end;
	*rest = stop + 1;
	while (at < stop && isspace((unsigned char)*at))
		at++;
	while (stop > at && isspace((unsigned char)stop[-1]))
		stop--;
	*w = (struct word){at, (size_t)(stop - at)};
	return true;
}

static bool same_word(struct word a, struct word b)
{
	return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

static bool has_layer(struct word name, struct word layer)
{
	const char *rest = name.at;
	struct word w;

	while (next_word(&rest, name.at + name.len, ';', &w)) {
		if (same_word(w, layer))
			return true;
	}
	return false;
}

/* Are all layers of `part` layers of `name`? */
static bool has_layers(struct word name, struct word part)
{
	const char *rest = part.at;
	struct word w;

	if (part.len == 0)
		return false;
	while (next_word(&rest, part.at + part.len, ';', &w)) {
		if (!has_layer(name, w))
			return false;
	}
	return true;
}

static struct word word_of(const char *text)
{
	return (struct word){text, strlen(text)};
}

static struct word top_layer(struct word name)
{
	const char *last = memrchr(name.at, ';', name.len);

	return last ? (struct word){last + 1, (size_t)(name.at + name.len - last - 1)} : name;
}

/* Does a word of a list mean the name? */
typedef bool (*meant)(struct word name, struct word w);

/* Does a list leave the name in? */
static bool providers_list_allows(const char *list, const char *name, meant means)
{
	bool leaves_out, found = false;
	const char *end;
	struct word w;

	if (!list || !*list)
		return true;
	end = list + strlen(list);
	leaves_out = *list == '^';
	list += leaves_out;
	while (next_word(&list, end, ',', &w))
		found |= means(word_of(name), w);
	return found != leaves_out;
}

bool provider_offered(const struct provider *v, const char *prov_name)
{
	return providers_list_allows(prov_name, v->name, has_layers) &&
	       providers_list_allows(env_get()->provider, v->name, has_layers);
}

static bool is_top_layer(struct word name, struct word w)
{
	return same_word(top_layer(w), name);
}

bool provider_name_offered(const char *name, const char *prov_name)
{
	return providers_list_allows(prov_name, name, is_top_layer) &&
	       providers_list_allows(env_get()->provider, name, is_top_layer);
}

bool provider_is_layer(const char *name)
{
	for (size_t i = 0; i < provider_count; i++) {
		if (has_layer(word_of(providers[i].name), word_of(name)))
			return true;
	}
	return false;
}

const struct provider *provider_find(const char *prov_name)
{
	if (!prov_name)
		return NULL;
	for (size_t i = 0; i < provider_count; i++) {
		if (strcasecmp(providers[i].name, prov_name) == 0)
			return &providers[i];
	}
	return NULL;
}

const struct provider *provider_of(const struct fi_info *info)
{
	const char *name = info->fabric_attr ? info->fabric_attr->prov_name : NULL;
	const struct provider *first = provider_find(name);

	if (!first || !info->ep_attr)
		return first;
	for (const struct provider *v = first; v < providers + provider_count; v++) {
		if (v->type == info->ep_attr->type && strcmp(v->name, first->name) == 0)
			return v;
	}
	return info->ep_attr->type == FI_EP_UNSPEC ? first : NULL;
}

/* An info with FI_LOCAL_COMM alone uses shm alone. fi_getinfo(3) */
unsigned int provider_wanted(const struct fi_info *info)
{
	const struct provider *provider = provider_of(info);
	unsigned int wanted = provider ? provider->transports : PROVIDER_SHM;

	if (info->caps & FI_LOCAL_COMM && !(info->caps & FI_REMOTE_COMM) && wanted & PROVIDER_SHM)
		return PROVIDER_SHM;
	return wanted;
}

bool provider_connects(const struct fi_info *info)
{
	return info->ep_attr && info->ep_attr->type == FI_EP_RDM &&
	       provider_wanted(info) & ~PROVIDER_SHM;
}

uint32_t provider_format(const struct fi_info *info)
{
	const struct provider *v = info->addr_format == FI_ADDR_STR ? provider_of(info) : NULL;

	return v && v->format != FI_ADDR_STR ? ADDR_IP_STR : info->addr_format;
}
