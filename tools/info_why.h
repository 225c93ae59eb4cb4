/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_info --why: opens an endpoint, and asks it which way reaches an address and why. fi_weft(7) */
#ifndef INFO_WHY_H
#define INFO_WHY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>

#define WHY_SECONDS 5 /* to connect */

struct why {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_weft_ops_peers *ops;
	fi_addr_t peer;
};

/* The question is one of reliable datagrams: others have no way to choose, or are asked to connect. */
static inline void why_type(enum fi_ep_type *type)
{
	if (*type != FI_EP_UNSPEC && *type != FI_EP_RDM) {
		fprintf(stderr, "fi_info: --why asks endpoints of FI_EP_RDM, not of %s\n",
			fi_tostr(type, FI_TYPE_EP_TYPE));
		exit(EXIT_FAILURE);
	}
	*type = FI_EP_RDM;
}

static inline _Noreturn void why_refuse(const char *address, const char *reason)
{
	fprintf(stderr, "fi_info: --why=%s: %s\n", address, reason);
	exit(EXIT_FAILURE);
}

/*
 * Divides HOST, HOST:PORT and [HOST]:PORT; what has more colons without brackets is an IPv6 address.
 * False: it is none of these. *port stays as it is if there is none.
 */
static inline bool why_divide(char *address, const char **node, const char **port)
{
	bool bracket = address[0] == '[';
	char *end = bracket ? strchr(address, ']') : strchr(address, ':');

	*node = address + bracket;
	if (!end || (!bracket && strchr(end + 1, ':')))
		return !bracket;
	if (bracket)
		*end++ = '\0';
	if (*end == ':') {
		*end = '\0';
		*port = end + 1;
		return **port;
	}
	return !*end;
}

/* Sets what fi_getinfo is asked. A host has to have an address: else it might be shm's name. */
static inline void why_address(char *address, const char **node, const char **port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	char whole[256];
	int err;

	*node = address;
	if (strstr(address, "://"))
		return;
	snprintf(whole, sizeof(whole), "%s", address);
	if (!why_divide(address, node, port))
		why_refuse(whole, "neither HOST:PORT, [IPV6]:PORT nor fi_..://ADDRESS");
	err = getaddrinfo(*node, *port, &hints, &found);
	if (err)
		why_refuse(whole, gai_strerror(err));
	freeaddrinfo(found);
}

/* Is this a host's address, without a port? Gives it one, for address vectors take no other. */
static inline bool why_names_host(struct fi_info *info)
{
	struct sockaddr_in *in = info->dest_addr;

	if (info->addr_format == FI_ADDR_STR || in->sin_port ||
	    (in->sin_family != AF_INET && in->sin_family != AF_INET6))
		return false;
	in->sin_port = htons(1); /* sockaddr_in6 has its port in the same place */
	return true;
}

static inline int why_enable(struct why *w)
{
	int ret = fi_ep_bind(w->ep, &w->av->fid, 0);

	if (!ret)
		ret = fi_ep_bind(w->ep, &w->cq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(w->ep);
}

/* Opens an endpoint that knows info->dest_addr. 0 or a negative error; why_close in any case. */
static inline int why_open(struct why *w, struct fi_info *info)
{
	struct fi_cq_attr cq = {.wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av = {.type = FI_AV_UNSPEC};
	int ret = fi_fabric(info->fabric_attr, &w->fabric, NULL);

	if (!ret)
		ret = fi_domain(w->fabric, info, &w->domain, NULL);
	if (!ret)
		ret = fi_av_open(w->domain, &av, &w->av, NULL);
	if (!ret)
		ret = fi_cq_open(w->domain, &cq, &w->cq, NULL);
	if (!ret)
		ret = fi_endpoint(w->domain, info, &w->ep, NULL);
	if (!ret)
		ret = why_enable(w);
	if (!ret)
		ret = fi_open_ops(&w->ep->fid, FI_WEFT_PEERS, 0, (void **)&w->ops, NULL);
	if (!ret && fi_av_insert(w->av, info->dest_addr, 1, &w->peer, 0, NULL) != 1)
		ret = -FI_EINVAL;
	return ret;
}

static inline void why_close(struct why *w)
{
	struct fid *fids[] = {w->ep ? &w->ep->fid : NULL, w->cq ? &w->cq->fid : NULL,
			      w->av ? &w->av->fid : NULL, w->domain ? &w->domain->fid : NULL,
			      w->fabric ? &w->fabric->fid : NULL};

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		if (fids[i])
			fi_close(fids[i]);
}

/* Connects if `connects`, and reads what is known of the peer then, or why it did not connect. */
static inline int why_connect(struct why *w, bool connects, struct fi_weft_peer *peer)
{
	time_t end = time(NULL) + WHY_SECONDS;
	int err = connects ? -FI_EAGAIN : 0, ret;

	while (err == -FI_EAGAIN && time(NULL) < end) {
		err = w->ops->connect(&w->ep->fid, w->peer);
		fi_cq_read(w->cq, NULL, 0);
	}
	do {
		fi_cq_read(w->cq, NULL, 0);
		ret = w->ops->read(&w->ep->fid, w->peer, peer, sizeof(*peer));
	} while (!ret && peer->connection == FI_WEFT_CONNECTING && time(NULL) < end);
	/* The call knows more than the state, which only tells of attempts that began. */
	if (!ret && err && peer->connection == FI_WEFT_UNCONNECTED)
		peer->last_error = (uint32_t)-err;
	return ret;
}

static inline void why_print(const struct why *w, const char *to, const struct fi_weft_peer *peer)
{
	static const char *const names[] = {"shm", "verbs", "tcp"};
	bool connected = peer->connection == FI_WEFT_CONNECTED;
	const char *error = peer->connection == FI_WEFT_CONNECTING ? "no answer in time"
			    : peer->last_error ? fi_strerror((int)peer->last_error)
					       : NULL;

	printf("%s: ", to);
	if (connected)
		printf("connected by %s\n", names[peer->transport]);
	else if (error)
		printf("not connected: %s\n", error);
	else if (peer->transport < FI_WEFT_TRANSPORTS)
		printf("%s would be tried first\n", names[peer->transport]);
	else
		puts("no way is known");
	if (!connected && peer->last_error == FI_EACCES)
		puts("    refused by the endpoint: FI_WEFT_CLOSED or FI_WEFT_AUTH_KEY_FILE, or the "
		     "other side's, keep us out");
	for (unsigned int i = 0; i < FI_WEFT_TRANSPORTS; i++)
		printf("    %s: %s\n", names[i], w->ops->reason(peer->reasons[i]));
	if (connected && peer->transport == FI_WEFT_SHM)
		printf("    direct reads of its memory: %s\n", w->ops->reason(peer->direct_read));
}

/*
 * Says which way reaches info->dest_addr, which the user calls `name`. 0 or a negative error: why
 * there is no connection, or -FI_ENOSYS from another library.
 */
static inline int why_answer(struct fi_info *info, const char *name)
{
	bool is_host = info->dest_addr && why_names_host(info);
	struct fi_weft_peer peer = {0};
	struct why w = {0};
	char to[256];
	size_t len = sizeof(to);
	int ret = info->dest_addr ? why_open(&w, info) : -FI_EADDRNOTAVAIL;

	if (!ret)
		ret = why_connect(&w, !is_host, &peer);
	if (!ret) {
		fi_av_straddr(w.av, info->dest_addr, to, &len);
		why_print(&w, is_host ? name : to, &peer);
		if (peer.connection == FI_WEFT_CONNECTING)
			ret = -FI_ETIMEDOUT;
		else if (peer.connection == FI_WEFT_UNCONNECTED)
			ret = -(int)peer.last_error;
	}
	why_close(&w);
	return ret;
}

#endif
