/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connected endpoints beside the reliable datagram endpoint of clients.h, with a key: a listener of
 * theirs, and one endpoint at a time that connects to a client or accepts a request.
 */
#ifndef FUZZ_CONNECTED_H
#define FUZZ_CONNECTED_H

#include "clients.h"
#include "core/eq.h"

static struct fid_eq *eq;
static struct fid_pep *pep;
static struct addr pep_name;
static struct {
	struct fi_info *info, *request; /* `request`: one that waits for its answer, or NULL */
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep; /* or NULL */
} single;

/* The fuzzer's: a request has come, with this application data; an endpoint is connected. */
static void requested(const void *data, size_t len);
static void connected(void);

static void pep_open(void)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct sockaddr_in in;
	size_t len = sizeof(in);

	MUST(!fi_eq_open(fabric, &attr, &eq, NULL));
	eq_tick(eq_of(eq), 1000); /* the queue makes its timer once: that is no leak of an input */
	MUST(!fi_passive_ep(fabric, single.info, &pep, NULL));
	MUST(!fi_pep_bind(pep, &eq->fid, 0));
	MUST(!fi_listen(pep));
	MUST(!fi_getname(&pep->fid, &in, &len));
	MUST(!addr_from_user(&pep_name, FI_SOCKADDR_IN, &in, len));
}

/* After endpoint_open. */
static void connected_open(const uint8_t *key, size_t len)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};

	single.info = find_info(FI_EP_MSG, FI_MSG, key, len);
	MUST(!fi_domain(fabric, single.info, &single.domain, NULL));
	MUST(!fi_cq_open(single.domain, &attr, &single.cq, NULL));
	pep_open();
}

/* Before endpoint_close, when all connections have ended. */
static void connected_close(void)
{
	CLOSE(pep);
	CLOSE(eq);
	CLOSE(single.cq);
	CLOSE(single.domain);
	fi_freeinfo(single.info);
	single.info = NULL;
}

/* Opens an endpoint with a key, for a request or to connect. */
static void single_open(struct fi_info *for_it, const uint8_t *key)
{
	memcpy(for_it->ep_attr->auth_key, key, for_it->ep_attr->auth_key_size);
	MUST(!fi_endpoint(single.domain, for_it, &single.ep, NULL));
	MUST(!fi_ep_bind(single.ep, &eq->fid, 0));
	MUST(!fi_ep_bind(single.ep, &single.cq->fid, FI_TRANSMIT | FI_RECV));
}

static void single_close(void)
{
	if (single.ep)
		MUST(!fi_close(&single.ep->fid));
	single.ep = NULL;
}

static void single_call(int way, const uint8_t *key)
{
	struct sockaddr_in in;
	size_t len = sizeof(in);

	single_close();
	single_open(single.info, key);
	MUST(!addr_to_user(&names[way], &in, &len));
	MUST(!fi_enable(single.ep));
	fi_connect(single.ep, &in, NULL, 0);
}

static void request_reject(void)
{
	if (single.request)
		fi_reject(pep, single.request->handle, NULL, 0);
	fi_freeinfo(single.request);
	single.request = NULL;
}

/* Accepts the request that waits with an endpoint that has this key. */
static void request_accept(const uint8_t *key)
{
	single_close();
	single_open(single.request, key);
	fi_accept(single.ep, NULL, 0);
	fi_freeinfo(single.request);
	single.request = NULL;
}

/* Handles one event. False: there was none. */
static bool connected_event(void)
{
	union {
		struct fi_eq_cm_entry entry;
		char bytes[sizeof(struct fi_eq_cm_entry) + WIRE_CM_DATA_MAX];
	} e;
	struct fi_eq_err_entry err = {0};
	uint32_t event;
	ssize_t ret = fi_eq_read(eq, &event, &e, sizeof(e), 0);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		MUST(fi_eq_readerr(eq, &err, 0) == (ssize_t)sizeof(err) && err.err > 0);
		return true;
	}
	MUST(ret >= (ssize_t)sizeof(e.entry));
	if (event == FI_CONNREQ) {
		request_reject(); /* an older one */
		single.request = e.entry.info;
		requested(e.bytes + sizeof(e.entry), (size_t)ret - sizeof(e.entry));
	} else if (event == FI_CONNECTED) {
		connected();
	} else {
		MUST(event == FI_SHUTDOWN);
	}
	return true;
}

static void connected_progress(void)
{
	if (single.ep)
		ep_of(single.ep)->worker->conn.opener.armed =
			true; /* makes the call poll the sockets, too */
	while (connected_event())
		;
}

/* Is the endpoint linked to a client? */
static bool single_linked(void)
{
	return single.ep && contact_linked(conn_peer(&ep_of(single.ep)->worker->conn));
}

/* Ends all connections. */
static void connected_end(void)
{
	request_reject();
	single_close();
}

#endif
