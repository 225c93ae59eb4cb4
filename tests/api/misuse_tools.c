/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_param(3), fi_log(3), fi_profile(3) and fi_provider(3) forbid, and objects of another kind or fabric. */
#include "obj.h"
#include "lib/rig.h"
#include "lib/misuse.h"

#include <rdma/fi_profile.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

static struct fi_provider me = {.name = "me"}, nameless;

MISUSE(param_define_no_name, REFUSED, fi_param_define(&me, NULL, FI_PARAM_INT, "help"));
MISUSE(param_define_no_help, ANY, fi_param_define(&me, "x", FI_PARAM_INT, NULL));
MISUSE(param_define_type, ANY, fi_param_define(&me, "x", (enum fi_param_type)99, "help"));
MISUSE(param_define_nobody, ANY, fi_param_define(NULL, "x", FI_PARAM_INT, "help"));
MISUSE(param_define_nameless, ANY, fi_param_define(&nameless, "x", FI_PARAM_INT, "help"));
MISUSE(param_get_no_name, REFUSED, fi_param_get(&me, NULL, &b->len));
MISUSE(param_get_nowhere, REFUSED, fi_param_get(&me, "x", NULL));
MISUSE(param_get_unknown, REFUSED, fi_param_get(&me, "x", &b->len));
MISUSE(getparams_nowhere, REFUSED, fi_getparams(NULL, NULL));
MISUSE(freeparams_nothing, FINE, (fi_freeparams(NULL), 0));
MISUSE(log_level, FINE, (fi_log_enabled(&me, (enum fi_log_level)99, FI_LOG_CORE), 0));
MISUSE(log_subsystem, FINE, (fi_log_enabled(&me, FI_LOG_WARN, (enum fi_log_subsys)99), 0));
MISUSE(log_negative, FINE,
       (fi_log_enabled(&me, (enum fi_log_level) - 1, (enum fi_log_subsys) - 1), 0));

static ssize_t profiled(struct bench *b, int what)
{
	struct fid_profile *p;
	ssize_t ret = 0;

	OK(fi_profile_open(&EP(b)->fid, 0, &p, NULL));
	switch (what) {
	case 0:
		ret = fi_profile_query_vars(p, NULL, NULL);
		break;
	case 1:
		ret = fi_profile_query_events(p, NULL, NULL);
		break;
	case 2:
		ret = p->ops->read_var(p, 12345, b->bytes, &b->len);
		break;
	case 3:
		ret = p->ops->read_var(p, 0, NULL, NULL);
		break;
	case 4:
		ret = fi_profile_register_callback(p, 12345, NULL, NULL);
		break;
	case 5:
		fi_profile_end_reads(p, 0);
		fi_profile_reset(p, ~UINT64_C(0));
		break;
	}
	OK(fi_profile_close(p));
	return ret;
}

MISUSE(profile_vars_nowhere, REFUSED, profiled(b, 0));
MISUSE(profile_events_nowhere, REFUSED, profiled(b, 1));
MISUSE(profile_var_unknown, REFUSED, profiled(b, 2));
MISUSE(profile_var_nowhere, REFUSED, profiled(b, 3));
MISUSE(profile_event_unknown, REFUSED, profiled(b, 4));
MISUSE(profile_end_unbegun, FINE, profiled(b, 5));

/* ---- Objects of another kind, where the interface takes any ---- */

static ssize_t names_object(struct bench *b, struct fid_fabric *fabric, struct fid_domain *domain)
{
	struct fi_info *hints = fi_dupinfo(b->info);
	ssize_t ret;

	hints->fabric_attr->fabric = fabric;
	hints->domain_attr->domain = domain;
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &b->out.info);
	if (!ret)
		fi_freeinfo(b->out.info);
	hints->fabric_attr->fabric = NULL;
	hints->domain_attr->domain = NULL;
	fi_freeinfo(hints);
	return ret;
}

MISUSE(hints_name_a_queue_as_fabric, ANY, names_object(b, (void *)b->r.o.cq, NULL));
MISUSE(hints_name_a_queue_as_domain, ANY, names_object(b, NULL, (void *)b->r.o.cq));
MISUSE(hints_name_memory, ANY, names_object(b, NULL, (void *)b->bytes));

static ssize_t of_other_provider(struct bench *b, int what)
{
	struct fi_info *info = fi_dupinfo(b->info);
	ssize_t ret;

	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup(what & 1 ? "udp" : "no provider");
	ret = what & 2 ? fi_endpoint(DOMAIN(b), info, &b->out.ep, NULL)
		       : fi_domain(b->r.o.fabric, info, &b->out.domain, NULL);
	if (!ret)
		OK(fi_close(what & 2 ? &b->out.ep->fid : &b->out.domain->fid));
	fi_freeinfo(info);
	return ret;
}

MISUSE(domain_of_unknown_provider, ANY, of_other_provider(b, 0));
MISUSE(domain_of_other_provider, ANY, of_other_provider(b, 1));
MISUSE(endpoint_of_unknown_provider, ANY, of_other_provider(b, 2));
MISUSE(endpoint_of_other_provider, ANY, of_other_provider(b, 3));

/* A datagram's, as the endpoint that a shared context, or a scalable endpoint, is. */
static ssize_t context(struct bench *b, int what)
{
	struct fi_info *info = fi_dupinfo(b->info);
	struct fid_ep *sep, *tx, *rx;
	struct fid_stx *stx;
	ssize_t ret = 0;

	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
	OK(fi_scalable_ep(DOMAIN(b), info, &sep, NULL));
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	OK(fi_stx_context(DOMAIN(b), NULL, &stx, NULL));
	switch (what) {
	case 0:
		ret = fi_enable(tx);
		break;
	case 1:
		ret = fi_scalable_ep_bind(sep, &b->r.o.cq->fid, FI_TRANSMIT);
		break;
	case 2:
		ret = fi_ep_bind(tx, &b->r.o.cq->fid, FI_RECV);
		break;
	case 3:
		ret = fi_send(sep, b->bytes, 8, NULL, b->r.self, NULL);
		break;
	case 4:
		ret = fi_recv(tx, b->bytes, 8, NULL, b->r.self, NULL);
		break;
	case 5:
		ret = fi_send(rx, b->bytes, 8, NULL, b->r.self, NULL);
		break;
	case 6:
		ret = fi_ep_bind(tx, &stx->fid, 0);
		break;
	case 7:
		ret = fi_ep_bind(b->idle, &rx->fid, 0);
		break;
	case 8:
		ret = fi_enable(rx);
		break;
	case 9:
		ret = fi_scalable_ep_bind(sep, NULL, 0);
		break;
	case 10:
		ret = fi_ep_alias(sep, &b->out.ep, FI_TRANSMIT);
		if (!ret)
			CLOSE(b->out.ep);
		break;
	}
	CLOSE(tx);
	CLOSE(rx);
	CLOSE(sep);
	CLOSE(stx);
	fi_freeinfo(info);
	return ret;
}

MISUSE(tx_context_alone, REFUSED, context(b, 0));
MISUSE(scalable_bind_queue, ANY, context(b, 1));
MISUSE(tx_context_bind_receive, ANY, context(b, 2));
MISUSE(scalable_send, REFUSED, context(b, 3));
MISUSE(tx_context_recv, REFUSED, context(b, 4));
MISUSE(rx_context_send, REFUSED, context(b, 5));
MISUSE(tx_context_bind_shared, ANY, context(b, 6));
MISUSE(bind_rx_context, REFUSED, context(b, 7));
MISUSE(rx_context_alone, REFUSED, context(b, 8));
MISUSE(scalable_bind_nothing, REFUSED, context(b, 9));
MISUSE(scalable_alias, ANY, context(b, 10));

/* Regions that are to be enabled. fi_mr(3) of FI_MR_ENDPOINT. */
static ssize_t region_of_endpoint(int what)
{
	struct obj o = {.hints = obj_hints(FI_MSG | FI_RMA)};
	struct fid_mr *mr;
	char memory[64];
	ssize_t ret = 0;

	o.hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_RMA_EVENT;
	obj_open(&o);
	OK(fi_mr_reg(o.domain, memory, sizeof(memory), FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL));
	if (what == 0) {
		ret = fi_mr_enable(mr);
	} else {
		OK(fi_mr_bind(mr, &o.ep->fid, 0));
		ret = what == 1 ? fi_mr_bind(mr, &o.ep->fid, 0) : fi_close(&o.ep->fid);
		if (what == 2 && !ret)
			o.ep = NULL;
	}
	CLOSE(mr);
	obj_close(&o);
	return ret;
}

MISUSE(mr_enable_unbound, ANY, region_of_endpoint(0));
MISUSE(mr_bind_twice, ANY, region_of_endpoint(1));
MISUSE(mr_endpoint_closed, ANY, region_of_endpoint(2));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
