/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/pep.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/refused.h"
#include "base/fid.h"
#include "base/forked.h"
#include "base/log.h"
#include "info/job_key.h"
#include "info/providers.h"

/* Binds the endpoint to its name, if it is not bound. `pep` locked. 0 or a negative error. */
static int pep_bound(struct pep *pep)
{
	int err = pep->bound ? 0 : cm_open(&pep->listener, pep->info, &pep->name);

	pep->bound = !err;
	return err;
}

/* Stops listening; pending requests are rejected. No lock held. */
static void pep_quit(struct pep *pep)
{
	if (pep->listening)
		eq_del_driver(pep->eq, &pep->driver);
	pep->listening = false;
	if (pep->bound)
		cm_close(&pep->listener);
	pep->bound = false;
}

static int set_address(void **to, size_t *to_len, const struct addr *name, uint32_t format)
{
	size_t len = addr_format_len(name, format);

	free(*to);
	*to = malloc(len);
	*to_len = *to ? len : 0;
	return *to ? addr_to_format(name, format, *to, &len) : -FI_ENOMEM;
}

int pep_give_name(struct fid_pep *fid, struct fi_info *info)
{
	struct pep *pep = pep_of(fid);
	int err;

	lock_take(&pep->lock);
	err = pep->spent ? -FI_EINVAL : pep_bound(pep);
	if (!err)
		pep->spent = true;
	lock_give(&pep->lock);
	if (err)
		return err;
	pep_quit(pep);
	return set_address(&info->src_addr, &info->src_addrlen, &pep->name, provider_format(info));
}

static int pep_close(struct fid *fid)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);

	if (pep->forks != forked_count())
		return 0;
	pep_quit(pep);
	if (pep->eq) {
		eq_forget(pep->eq, fid);
		ref_put(&pep->eq->ref);
	}
	ref_put(&pep->fabric->ref);
	addr_free(&pep->name);
	fi_freeinfo(pep->info);
	fid_free(fid);
	return 0;
}

static int pep_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);
	struct eq *eq = (struct eq *)other;
	int ret = -FI_EINVAL;

	if (!other || other->fclass != FI_CLASS_EQ || flags || eq->fabric != pep->fabric)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "a passive endpoint is bound to an event queue of its fabric, "
				  "without flags (class %zu, flags %#llx)",
				  other ? other->fclass : 0, (unsigned long long)flags);
	lock_take(&pep->lock);
	if (!pep->eq) {
		pep->eq = eq;
		ref_get(&eq->ref);
		ret = 0;
	}
	lock_give(&pep->lock);
	if (ret)
		LOG_WARN(LOG_EP_CTRL,
			 "the passive endpoint has an event queue already: bind one only");
	return ret;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	struct pep *pep = pep_of((struct fid_pep *)fid);

	if (command != FI_BACKLOG)
		return fid_no_control(fid, command, arg);
	if (!arg || *(int *)arg < 0)
		return -FI_EINVAL;
	lock_take(&pep->lock);
	pep->backlog = *(int *)arg;
	lock_give(&pep->lock);
	return 0;
}

static struct fi_ops fid_ops = FID_OPS(pep_close, pep_bind, pep_control);

static int pep_getopt(fid_t fid, int level, int name, void *value, size_t *len)
{
	size_t room;

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	if (!value || !len)
		return -FI_EINVAL;
	room = *len;
	*len = sizeof(size_t);
	if (room < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)value = cm_data_most(pep_of((struct fid_pep *)fid)->info);
	return 0;
}

static int pep_setopt(fid_t fid, int level, int name, const void *value, size_t len)
{
	(void)fid;
	(void)value;
	return LOG_REFUSE(-FI_ENOPROTOOPT, LOG_EP_CTRL,
			  "a passive endpoint has no option %d of level %d to set (%zu bytes)",
			  name, level, len);
}

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = refused_cancel,
	.getopt = pep_getopt,
	.setopt = pep_setopt,
	.tx_ctx = refused_tx_ctx,
	.rx_ctx = refused_rx_ctx,
	.rx_size_left = refused_rx_size_left,
	.tx_size_left = refused_tx_size_left,
	.export_xpu = fid_no_call_2_7,
};

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

/* Returns the fi_info for an endpoint that accepts the request; NULL: out of memory. */
static struct fi_info *request_info(const struct pep *pep, const struct cm_request *req)
{
	const struct addr *own = cm_request_own_name(req);
	struct fi_info *info = fi_dupinfo(pep->info);
	uint32_t format = provider_format(pep->info);

	own = own ? own : &pep->name;
	if (info && !set_address(&info->src_addr, &info->src_addrlen, own, format) &&
	    !set_address(&info->dest_addr, &info->dest_addrlen, cm_request_name(req), format))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* Posts FI_CONNREQ for the request, and takes it over. */
static void pep_cm_announce(struct pep *pep, struct cm_request *req)
{
	union {
		struct fi_eq_cm_entry entry;
		unsigned char bytes[sizeof(struct fi_eq_cm_entry) + XFER_CM_DATA];
	} event;
	struct fi_info *info = request_info(pep, req);
	const void *data;
	size_t len;

	if (info) {
		data = cm_request_data(req, &len);
		info->handle = &req->fid;
		event.entry = (struct fi_eq_cm_entry){.fid = &pep->fid.fid, .info = info};
		memcpy(event.bytes + sizeof(event.entry), data, len);
		if (!eq_post(pep->eq, FI_CONNREQ, &event, sizeof(event.entry) + len))
			return;
	}
	LOG_PEER(LOG_EP_CTRL,
		 "out of memory: a connection request is rejected, the other side may ask again");
	cm_request_free(req);
	fi_freeinfo(info);
}

/* Returns how many more requests may wait unread. All others stay in the listener, whose socket wakes sleepers. */
static size_t pep_cm_room(const struct pep *pep)
{
	size_t waiting = eq_waiting(pep->eq, &pep->fid.fid);
	size_t most = pep->backlog > 1 ? (size_t)pep->backlog : 1;

	if (most > REQUESTS_PER_CALL)
		most = REQUESTS_PER_CALL;
	return most > waiting ? most - waiting : 0;
}

/* struct pep.driver: posts an FI_CONNREQ event for each connection request. */
static void pep_cm_progress(struct eq_driver *driver)
{
	struct pep *pep = LIST_ENTRY(driver, struct pep, driver);
	struct cm_request *req;
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
	struct cm_request *c = cm_request_of(handle);

	(void)fid; /* a request is independent of the endpoint that received it */
	if (!c || (paramlen && !param))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL, "fi_reject: %s",
				  c ? "no data" : "the handle is no request");
	return cm_request_reject(c, param, paramlen);
}

static struct fi_ops_cm pep_cm_ops = {
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

static int pep_check_info(const struct fi_info *info)
{
	if (!info || !info->ep_attr)
		return -FI_EINVAL;
	if (info->ep_attr->type == FI_EP_MSG)
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
			  "a passive endpoint is of type FI_EP_MSG, not %d",
			  (int)info->ep_attr->type);
}

int pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **fid, void *context)
{
	struct pep *pep;
	int ret = fid ? pep_check_info(info) : -FI_EINVAL;

	if (ret)
		return ret;
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pep->info = fi_dupinfo(info);
	if (!pep->info)
		ret = -FI_ENOMEM;
	else if (info->src_addr)
		ret = addr_from_user(&pep->name, provider_format(info), info->src_addr,
				     info->src_addrlen);
	if (!ret)
		ret = job_key_resolve(pep->info, NULL, fabric_of(fabric)->fid.api_version);
	if (ret)
		goto free_pep;
	lock_init(&pep->lock);
	list_init(&pep->driver.link);
	pep->driver.progress = pep_cm_progress;
	pep->backlog = SOMAXCONN;
	pep->forks = forked_count();
	pep->fabric = fabric_of(fabric);
	ref_get(&pep->fabric->ref);
	pep->fid.fid = (struct fid){FI_CLASS_PEP, context, &fid_ops};
	pep->fid.ops = &ep_ops;
	pep->fid.cm = &pep_cm_ops;
	*fid = &pep->fid;
	return 0;
free_pep:
	addr_free(&pep->name);
	fi_freeinfo(pep->info);
	free(pep);
	return ret;
}
