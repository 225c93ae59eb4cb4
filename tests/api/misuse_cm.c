/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_cm(3) forbids. */
#include "obj.h"
#include "lib/cm.h"
#include "lib/rig.h"
#include "lib/misuse.h"

MISUSE(connect_datagram, REFUSED, fi_connect(EP(b), b->bytes, NULL, 0));
MISUSE(accept_datagram, REFUSED, fi_accept(EP(b), NULL, 0));
MISUSE(listen_unbound, REFUSED, b->pep ? fi_listen(b->pep) : -FI_ENOSYS);
MISUSE(shutdown_datagram, ANY, fi_shutdown(b->idle, 0));
MISUSE(shutdown_flags, REFUSED, fi_shutdown(EP(b), UINT64_C(1) << 62));
MISUSE(reject_nothing, REFUSED, b->pep ? fi_reject(b->pep, NULL, NULL, 0) : -FI_ENOSYS);
MISUSE(reject_no_request, REFUSED, b->pep ? fi_reject(b->pep, &EP(b)->fid, NULL, 0) : -FI_ENOSYS);
MISUSE(pep_bind_nothing, REFUSED, b->pep ? fi_pep_bind(b->pep, NULL, 0) : -FI_ENOSYS);
MISUSE(pep_bind_queue, REFUSED, b->pep ? fi_pep_bind(b->pep, &b->r.o.cq->fid, 0) : -FI_ENOSYS);
MISUSE(pep_no_info, REFUSED, fi_passive_ep(b->r.o.fabric, NULL, &b->out.pep, NULL));
MISUSE(pep_bare_info, REFUSED,
       fi_passive_ep(b->r.o.fabric, &(struct fi_info){0}, &b->out.pep, NULL));
MISUSE(pep_no_result, REFUSED,
       b->pep ? fi_passive_ep(b->r.o.fabric, b->msg_info, NULL, NULL) : -FI_ENOSYS);
MISUSE(getname_nowhere, REFUSED, fi_getname(&EP(b)->fid, NULL, &b->len));
MISUSE(getname_no_length, REFUSED, fi_getname(&EP(b)->fid, b->bytes, NULL));
MISUSE(getname_short, -FI_ETOOSMALL, fi_getname(&EP(b)->fid, b->bytes, &(size_t){1}));
MISUSE(getname_early, ANY, fi_getname(&b->idle->fid, b->bytes, &b->len));
MISUSE(getpeer_datagram, REFUSED, fi_getpeer(EP(b), b->bytes, &b->len));
MISUSE(getpeer_nowhere, REFUSED, fi_getpeer(EP(b), NULL, NULL));
MISUSE(setname_nothing, REFUSED, fi_setname(&b->idle->fid, NULL, 16));
MISUSE(setname_empty, REFUSED, fi_setname(&b->idle->fid, b->bytes, 0));
MISUSE(setname_late, REFUSED, fi_setname(&EP(b)->fid, b->bytes, 16));
MISUSE(setname_zeros, ANY, fi_setname(&b->idle->fid, b->bytes, 16));
MISUSE(join_nothing, REFUSED, fi_join(EP(b), NULL, 0, &b->out.mc, NULL));
MISUSE(join_nowhere, REFUSED, fi_join(EP(b), b->bytes, 0, NULL, NULL));
MISUSE(join_collective_nothing, REFUSED, fi_join(EP(b), NULL, FI_COLLECTIVE, &b->out.mc, NULL));
MISUSE(join_collective_no_set, REFUSED,
       fi_join_collective(EP(b), FI_ADDR_NOTAVAIL, NULL, 0, &b->out.mc, NULL));

/* A connected endpoint before it is connected. */
static ssize_t unconnected(struct bench *b, int what)
{
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_eq *eq;
	struct fid_cq *cq;
	ssize_t ret = -FI_ENOSYS;

	if (!b->msg_info)
		return ret;
	OK(fi_domain(b->r.o.fabric, b->msg_info, &domain, NULL));
	OK(fi_endpoint(domain, b->msg_info, &ep, NULL));
	OK(fi_eq_open(b->r.o.fabric, &(struct fi_eq_attr){0}, &eq, NULL));
	OK(fi_cq_open(domain, &(struct fi_cq_attr){.format = FI_CQ_FORMAT_MSG}, &cq, NULL));
	if (what < 2)
		ret = what ? fi_connect(ep, b->bytes, NULL, 0) : fi_accept(ep, NULL, 0);
	OK(fi_ep_bind(ep, &eq->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	if (what >= 2)
		OK(fi_enable(ep));
	if (what == 2)
		ret = fi_send(ep, b->bytes, 8, NULL, 0, NULL);
	else if (what == 3)
		ret = fi_connect(ep, NULL, NULL, 0);
	else if (what == 4)
		ret = fi_connect(ep, "\2", NULL, 100);
	else if (what == 5)
		ret = fi_accept(ep, NULL, 0);
	else if (what == 6)
		ret = fi_getpeer(ep, b->bytes, &b->len);
	else if (what == 8)
		ret = fi_shutdown(ep, 0);
	else if (what == 9)
		ret = fi_accept(ep, NULL, 100);
	CLOSE(ep);
	CLOSE(cq);
	CLOSE(eq);
	CLOSE(domain);
	return ret;
}

MISUSE(accept_unbound, REFUSED, unconnected(b, 0));
MISUSE(connect_unbound, REFUSED, unconnected(b, 1));
MISUSE(send_unconnected, REFUSED, unconnected(b, 2));
MISUSE(connect_nowhere, REFUSED, unconnected(b, 3));
MISUSE(connect_param_nothing, REFUSED, unconnected(b, 4));
MISUSE(accept_no_request, REFUSED, unconnected(b, 5));
MISUSE(getpeer_unconnected, REFUSED, unconnected(b, 6));
MISUSE(shutdown_unconnected, ANY, unconnected(b, 8));
MISUSE(accept_param_nothing, REFUSED, unconnected(b, 9));

/* A connection request that is used in a way of its own. */
static ssize_t with_request(struct bench *b, int what)
{
	struct cm_end active, passive, again;
	struct fi_info *request;
	struct obj_name to;
	struct cm c;
	ssize_t ret = 0;

	if (!b->msg_info)
		return -FI_ENOSYS;
	request = cm_ask(&c, &active, &to);
	switch (what) {
	case 0: /* rejected twice */
		OK(fi_reject(c.pep, request->handle, NULL, 0));
		ret = fi_reject(c.pep, request->handle, NULL, 0);
		break;
	case 1: /* rejected by another listener */
		ret = fi_reject(b->pep, request->handle, NULL, 0);
		break;
	case 2: /* accepted with parameters at NULL */
		cm_end(&c, &passive, request);
		cm_enable(&passive);
		ret = fi_accept(passive.ep, NULL, 100);
		cm_close_end(&c, &passive);
		break;
	case 3: /* of two endpoints */
		cm_end(&c, &passive, request);
		ret = fi_endpoint(c.o.domain, request, &again.ep, NULL);
		if (!ret)
			CLOSE(again.ep);
		cm_close_end(&c, &passive);
		break;
	case 4: /* rejected while an endpoint has it */
		cm_end(&c, &passive, request);
		ret = fi_reject(c.pep, request->handle, NULL, 0);
		cm_close_end(&c, &passive);
		break;
	case 5: /* connected to instead of accepted */
		cm_end(&c, &passive, request);
		cm_enable(&passive);
		ret = fi_connect(passive.ep, to.bytes, NULL, 0);
		cm_close_end(&c, &passive);
		break;
	case 6: /* accepted twice */
		cm_end(&c, &passive, request);
		cm_enable(&passive);
		OK(fi_accept(passive.ep, NULL, 0));
		ret = fi_accept(passive.ep, NULL, 0);
		cm_close_end(&c, &passive);
		break;
	case 7: /* connected twice */
		ret = fi_connect(active.ep, to.bytes, NULL, 0);
		OK(fi_reject(c.pep, request->handle, NULL, 0));
		break;
	case 8: /* its listener is closed first */
		CLOSE(c.pep);
		c.pep = NULL;
		cm_end(&c, &passive, request);
		cm_enable(&passive);
		ret = fi_accept(passive.ep, NULL, 0);
		cm_close_end(&c, &passive);
		break;
	case 9: /* rejected with a parameter at NULL */
		ret = fi_reject(c.pep, request->handle, NULL, 100);
		OK(fi_reject(c.pep, request->handle, NULL, 0));
		break;
	case 10:
		ret = fi_listen(c.pep);
		OK(fi_reject(c.pep, request->handle, NULL, 0));
		break;
	}
	fi_freeinfo(request);
	cm_close_end(&c, &active);
	cm_close(&c);
	return ret;
}

MISUSE(rejected_twice, CLOSED(REFUSED), with_request(b, 0));
MISUSE(rejected_elsewhere, FINE, with_request(b, 1));
MISUSE(accept_nothing, REFUSED, with_request(b, 2));
MISUSE(request_of_two, REFUSED, with_request(b, 3));
MISUSE(rejected_in_use, ANY, with_request(b, 4));
MISUSE(connect_passive, REFUSED, with_request(b, 5));
MISUSE(accept_twice, REFUSED, with_request(b, 6));
MISUSE(connect_twice, REFUSED, with_request(b, 7));
MISUSE(accept_without_listener, ANY, with_request(b, 8));
MISUSE(reject_param_nothing, REFUSED, with_request(b, 9));
MISUSE(listen_twice, FINE, with_request(b, 10));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
