/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/forked.h"
#include "base/log.h"
#include "api/connreq.h"
#include "api/pep.h"
#include "api/refused.h"
#include "info/providers.h"

#define REQUESTS_PER_CALL 64

/* Binds the endpoint to a new name. On error the old name stays. Locked. */
static int rename_locked(struct pep *pep, struct addr *name)
{
	int err;

	if (pep->listening || pep->spent)
		return -FI_EOPBADSTATE;
	/* Unbound first: the new name may be the old one. */
	if (pep->bound)
		cm_close(&pep->listener);
	err = cm_open(&pep->listener, pep->info, name);
	pep->bound = !err;
	if (err)
		return err;
	addr_free(&pep->name);
	pep->name = *name;
	return 0;
}

static int pep_cm_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);
	struct addr name;
	int ret;

	if (!addr || !addrlen)
		return -FI_EINVAL;
	ret = addr_from_user(&name, provider_format(pep->info), addr, addrlen);
	if (ret)
		return ret;
	lock_take(&pep->lock);
	ret = rename_locked(pep, &name);
	lock_give(&pep->lock);
	if (ret)
		addr_free(&name);
	return ret;
}

/* Binds the endpoint first, to return a complete address. */
static int pep_cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);
	int ret;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	lock_take(&pep->lock);
	ret = pep->spent ? 0 : pep_bound(pep);
	if (!ret)
		ret = addr_to_format(&pep->name, provider_format(pep->info), addr, addrlen);
	lock_give(&pep->lock);
	return ret;
}

static int listen_locked(struct pep *pep)
{
	int ret;

	if (!pep->eq)
		return LOG_REFUSE(
			-FI_ENOEQ, LOG_EP_CTRL,
			"fi_listen: the passive endpoint has no event queue: call fi_pep_bind with one first");
	if (pep->spent)
		return -FI_EOPBADSTATE;
	ret = pep_bound(pep);
	if (!ret)
		ret = cm_listen(&pep->listener, pep->backlog);
	if (ret)
		return ret;
	pep->driver.fd = cm_fd(&pep->listener);
	pep->listening = true;
	return 0;
}

static int pep_cm_listen(struct fid_pep *fid)
{
	struct pep *pep = pep_of(fid);
	int ret = 0;
	bool first;

	lock_take(&pep->lock);
	first = !pep->listening;
	if (first)
		ret = listen_locked(pep);
	lock_give(&pep->lock);
	/* Not under the lock, which drivers take. */
	if (!ret && first)
		ret = eq_add_driver(pep->eq, &pep->driver);
	if (ret && first)
		pep->listening = false;
	return ret;
}

static int set_address(void **to, size_t *to_len, const struct addr *name, uint32_t format)
{
	size_t len = addr_format_len(name, format);

	free(*to);
	*to = malloc(len);
	*to_len = *to ? len : 0;
	return *to ? addr_to_format(name, format, *to, &len) : -FI_ENOMEM;
}

/* Returns the fi_info for an endpoint that accepts the request; NULL: out of memory. */
static struct fi_info *request_info(const struct pep *pep, const struct connreq *req)
{
	const struct addr *own = connreq_own_name(req);
	struct fi_info *info = fi_dupinfo(pep->info);
	uint32_t format = provider_format(pep->info);

	own = own ? own : &pep->name;
	if (info && !set_address(&info->src_addr, &info->src_addrlen, own, format) &&
	    !set_address(&info->dest_addr, &info->dest_addrlen, connreq_name(req), format))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* Posts FI_CONNREQ for the request, and takes it over. */
static void pep_cm_announce(struct pep *pep, struct connreq *req)
{
	union {
		struct fi_eq_cm_entry entry;
		unsigned char bytes[sizeof(struct fi_eq_cm_entry) + XFER_CM_DATA];
	} event;
	struct fi_info *info = request_info(pep, req);
	const void *data;
	size_t len;

	if (info) {
		data = connreq_data(req, &len);
		info->handle = &req->fid;
		event.entry = (struct fi_eq_cm_entry){.fid = &pep->fid.fid, .info = info};
		memcpy(event.bytes + sizeof(event.entry), data, len);
		if (!eq_post(pep->eq, FI_CONNREQ, &event, sizeof(event.entry) + len))
			return;
	}
	LOG_PEER(LOG_EP_CTRL,
		 "out of memory: a connection request is rejected, the other side may ask again");
	connreq_free(req);
	fi_freeinfo(info);
}

/*
 * Returns how many more requests may wait unread. All others stay in the listener, whose socket
 * wakes sleepers.
 */
static size_t pep_cm_room(const struct pep *pep)
{
	size_t waiting = eq_waiting(pep->eq, &pep->fid.fid);
	size_t most = pep->backlog > 1 ? (size_t)pep->backlog : 1;

	if (most > REQUESTS_PER_CALL)
		most = REQUESTS_PER_CALL;
	return most > waiting ? most - waiting : 0;
}

void pep_cm_progress(struct eq_driver *driver)
{
	struct pep *pep = LIST_ENTRY(driver, struct pep, driver);
	struct connreq *req;
	size_t left;

	if (pep->forks != forked_count())
		return;
	lock_take(&pep->lock);
	for (left = pep_cm_room(pep); left && (req = cm_next(&pep->listener)); left--)
		pep_cm_announce(pep, req);
	lock_give(&pep->lock);
}

static int pep_cm_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	struct connreq *c = connreq_of(handle);

	(void)fid; /* a request is independent of the endpoint that received it */
	if (!c || (paramlen && !param))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL, "fi_reject: %s",
				  c ? "no data" : "the handle is no request");
	return connreq_reject(c, param, paramlen);
}

struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_cm_setname,
	.getname = pep_cm_getname,
	.getpeer = refused_getpeer,
	.connect = refused_connect,
	.listen = pep_cm_listen,
	.accept = refused_accept,
	.reject = pep_cm_reject,
	.shutdown = refused_shutdown,
	.join = refused_join,
};
