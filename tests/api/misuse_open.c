/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_getinfo(3), fi_fabric(3), fi_domain(3), fi_endpoint(3) and fi_control(3) forbid. */
#include "obj.h"
#include "lib/rig.h"
#include "lib/misuse.h"

/* ---- fi_getinfo ---- */

#define GETINFO(...) fi_getinfo(FI_VERSION(1, 17), __VA_ARGS__)

MISUSE(getinfo_no_result, REFUSED, GETINFO(NULL, NULL, 0, NULL, NULL));
MISUSE(getinfo_source_of_nothing, ANY, GETINFO(NULL, NULL, FI_SOURCE, NULL, &b->out.info));
MISUSE(getinfo_flags, ANY, GETINFO(NULL, NULL, UINT64_C(1) << 50, NULL, &b->out.info));
MISUSE(getinfo_version, REFUSED, fi_getinfo(FI_VERSION(99, 0), NULL, NULL, 0, NULL, &b->out.info));
MISUSE(getinfo_version_0, ANY, fi_getinfo(0, NULL, NULL, 0, NULL, &b->out.info));

static ssize_t getinfo_with(struct bench *b, struct fi_info *hints)
{
	ssize_t ret = GETINFO(NULL, NULL, 0, hints, &b->out.info);

	if (!ret)
		fi_freeinfo(b->out.info);
	return ret;
}

MISUSE(getinfo_bare_hints, FINE, getinfo_with(b, &(struct fi_info){0}));
MISUSE(getinfo_address_without_length, ANY,
       getinfo_with(b, &(struct fi_info){.src_addr = b->bytes, .addr_format = FI_SOCKADDR_IN}));
MISUSE(getinfo_length_without_address, ANY,
       getinfo_with(b, &(struct fi_info){.src_addrlen = 16, .dest_addrlen = 16}));
MISUSE(getinfo_short_address, ANY,
       getinfo_with(b, &(struct fi_info){.dest_addr = b->bytes, .dest_addrlen = 3}));
MISUSE(getinfo_address_of_no_format, ANY,
       getinfo_with(b, &(struct fi_info){
			       .dest_addr = b->bytes, .dest_addrlen = 64, .addr_format = 12345}));
MISUSE(getinfo_string_without_end, ANY,
       getinfo_with(b, &(struct fi_info){.dest_addr = memset(b->bytes, 'x', 64),
					 .dest_addrlen = 64,
					 .addr_format = FI_ADDR_STR}));
MISUSE(getinfo_handle_of_no_class, ANY,
       getinfo_with(b, &(struct fi_info){.handle = (void *)b->bytes}));
MISUSE(getinfo_handle_of_a_queue, ANY,
       getinfo_with(b, &(struct fi_info){.handle = &b->r.o.cq->fid}));
MISUSE(getinfo_auth_key_without_key, ANY,
       getinfo_with(b, &(struct fi_info){.ep_attr = &(struct fi_ep_attr){.auth_key_size = 16}}));
MISUSE(getinfo_domain_key_without_key, ANY,
       getinfo_with(b, &(struct fi_info){
			       .domain_attr = &(struct fi_domain_attr){.auth_key_size = 16}}));
MISUSE(freeinfo_nothing, FINE, (fi_freeinfo(NULL), 0));
MISUSE(dupinfo_nothing, FINE, (fi_freeinfo(fi_dupinfo(NULL)), 0));
MISUSE(dupinfo_bare, FINE, (fi_freeinfo(fi_dupinfo(&(struct fi_info){0})), 0));
MISUSE(tostr_nothing, FINE, (fi_tostr(NULL, FI_TYPE_INFO), 0));
MISUSE(tostr_bare, FINE, (fi_tostr(&(struct fi_info){0}, FI_TYPE_INFO), 0));
MISUSE(tostr_no_type, FINE, (fi_tostr(b->bytes, (enum fi_type)999), 0));
MISUSE(tostr_no_space, FINE, (fi_tostr_r(NULL, 0, b->info, FI_TYPE_INFO), 0));
MISUSE(strerror_unknown, FINE, !fi_strerror(123456) - 0);
MISUSE(strerror_negative, FINE, !fi_strerror(-22));

/* ---- fi_fabric, fi_domain ---- */

MISUSE(fabric_no_attr, REFUSED, fi_fabric(NULL, &b->out.fabric, NULL));
MISUSE(fabric_no_result, REFUSED, fi_fabric(b->info->fabric_attr, NULL, NULL));
MISUSE(fabric_no_names, ANY, fi_fabric(&(struct fi_fabric_attr){0}, &b->out.fabric, NULL));
MISUSE(fabric_no_provider, ANY,
       fi_fabric(&(struct fi_fabric_attr){.name = (char *)"x"}, &b->out.fabric, NULL));
MISUSE(fabric_unknown_provider, REFUSED,
       fi_fabric(&(struct fi_fabric_attr){.prov_name = (char *)"x"}, &b->out.fabric, NULL));
MISUSE(fabric2_no_info, REFUSED, fi_fabric2(NULL, &b->out.fabric, 0, NULL));
MISUSE(fabric2_no_attr, REFUSED, fi_fabric2(&(struct fi_info){0}, &b->out.fabric, 0, NULL));
MISUSE(domain_no_info, REFUSED, fi_domain(b->r.o.fabric, NULL, &b->out.domain, NULL));
MISUSE(domain_no_result, REFUSED, fi_domain(b->r.o.fabric, b->info, NULL, NULL));
MISUSE(domain_bare_info, REFUSED,
       fi_domain(b->r.o.fabric, &(struct fi_info){0}, &b->out.domain, NULL));

static ssize_t domain_with(struct bench *b, struct fi_info *info)
{
	ssize_t ret = fi_domain(b->r.o.fabric, info, &b->out.domain, NULL);

	if (!ret)
		CLOSE(b->out.domain);
	return ret;
}

static struct fi_info *changed(struct bench *b, size_t at)
{
	static struct fi_info copy;

	copy = *b->info;
	*(void **)((char *)&copy + at) = NULL;
	return &copy;
}

MISUSE(domain_no_domain_attr, REFUSED,
       domain_with(b, changed(b, offsetof(struct fi_info, domain_attr))));
MISUSE(domain_no_fabric_attr, ANY,
       domain_with(b, changed(b, offsetof(struct fi_info, fabric_attr))));
MISUSE(domain_no_ep_attr, ANY, domain_with(b, changed(b, offsetof(struct fi_info, ep_attr))));
MISUSE(domain_no_tx_attr, ANY, domain_with(b, changed(b, offsetof(struct fi_info, tx_attr))));
MISUSE(domain2_flags, REFUSED,
       fi_domain2(b->r.o.fabric, b->info, &b->out.domain, UINT64_C(1) << 50, NULL));
MISUSE(domain_bind_nothing, REFUSED, fi_domain_bind(DOMAIN(b), NULL, 0));
MISUSE(domain_bind_queue, REFUSED, fi_domain_bind(DOMAIN(b), &b->r.o.cq->fid, 0));
MISUSE(domain_bind_flags, REFUSED, fi_domain_bind(DOMAIN(b), &b->eq->fid, UINT64_C(1) << 50));

/* ---- fi_endpoint ---- */

MISUSE(endpoint_no_info, REFUSED, fi_endpoint(DOMAIN(b), NULL, &b->out.ep, NULL));
MISUSE(endpoint_no_result, REFUSED, fi_endpoint(DOMAIN(b), b->info, NULL, NULL));
MISUSE(endpoint_bare_info, REFUSED, fi_endpoint(DOMAIN(b), &(struct fi_info){0}, &b->out.ep, NULL));

static ssize_t endpoint_with(struct bench *b, struct fi_info *info)
{
	ssize_t ret = fi_endpoint(DOMAIN(b), info, &b->out.ep, NULL);

	if (!ret)
		CLOSE(b->out.ep);
	return ret;
}

MISUSE(endpoint_no_ep_attr, REFUSED,
       endpoint_with(b, changed(b, offsetof(struct fi_info, ep_attr))));
MISUSE(endpoint_no_tx_attr, ANY, endpoint_with(b, changed(b, offsetof(struct fi_info, tx_attr))));
MISUSE(endpoint_no_rx_attr, ANY, endpoint_with(b, changed(b, offsetof(struct fi_info, rx_attr))));
MISUSE(endpoint_no_domain_attr, ANY,
       endpoint_with(b, changed(b, offsetof(struct fi_info, domain_attr))));
MISUSE(endpoint_no_fabric_attr, ANY,
       endpoint_with(b, changed(b, offsetof(struct fi_info, fabric_attr))));
MISUSE(endpoint_connected_info, ANY, b->msg_info ? endpoint_with(b, b->msg_info) : 0);
MISUSE(endpoint2_flags, REFUSED,
       fi_endpoint2(DOMAIN(b), b->info, &b->out.ep, UINT64_C(1) << 50, NULL));
MISUSE(scalable_no_info, REFUSED, fi_scalable_ep(DOMAIN(b), NULL, &b->out.ep, NULL));
MISUSE(scalable_bare_info, REFUSED,
       fi_scalable_ep(DOMAIN(b), &(struct fi_info){0}, &b->out.ep, NULL));
MISUSE(scalable_no_result, REFUSED, fi_scalable_ep(DOMAIN(b), b->info, NULL, NULL));
MISUSE(tx_context_of_endpoint, REFUSED, fi_tx_context(EP(b), 0, NULL, &b->out.ep, NULL));
MISUSE(rx_context_of_endpoint, REFUSED, fi_rx_context(EP(b), 0, NULL, &b->out.ep, NULL));

static ssize_t scalable(struct bench *b, int index, bool receives, bool result)
{
	struct fi_info *info = fi_dupinfo(b->info);
	struct fid_ep *sep, *context;
	ssize_t ret;

	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 2;
	OK(fi_scalable_ep(DOMAIN(b), info, &sep, NULL));
	OK(fi_tx_context(sep, 0, NULL, &context, NULL));
	ret = receives ? fi_rx_context(sep, index, NULL, result ? &b->out.ep : NULL, NULL)
		       : fi_tx_context(sep, index, NULL, result ? &b->out.ep : NULL, NULL);
	CHECK_EQ(fi_close(&sep->fid), -FI_EBUSY);
	CLOSE(context);
	CLOSE(sep);
	fi_freeinfo(info);
	return ret;
}

MISUSE(tx_context_taken, REFUSED, scalable(b, 0, false, true));
MISUSE(tx_context_beyond, REFUSED, scalable(b, 2, false, true));
MISUSE(tx_context_negative, REFUSED, scalable(b, -1, false, true));
MISUSE(rx_context_beyond, REFUSED, scalable(b, 2, true, true));
MISUSE(rx_context_negative, REFUSED, scalable(b, -1, true, true));
MISUSE(tx_context_no_result, REFUSED, scalable(b, 1, false, false));
MISUSE(rx_context_no_result, REFUSED, scalable(b, 1, true, false));
MISUSE(stx_no_result, REFUSED, fi_stx_context(DOMAIN(b), NULL, NULL, NULL));
MISUSE(srx_no_result, REFUSED, fi_srx_context(DOMAIN(b), NULL, NULL, NULL));
MISUSE(alias_no_result, REFUSED,
       fi_control(&EP(b)->fid, FI_ALIAS, &(struct fi_alias){.flags = FI_TRANSMIT}));
MISUSE(alias_of_both, REFUSED, fi_ep_alias(EP(b), &b->out.ep, FI_TRANSMIT | FI_RECV));
MISUSE(alias_of_neither, REFUSED, fi_ep_alias(EP(b), &b->out.ep, 0));
MISUSE(alias_flags, REFUSED, fi_ep_alias(EP(b), &b->out.ep, FI_TRANSMIT | UINT64_C(1) << 50));

MISUSE(bind_nothing, REFUSED, fi_ep_bind(b->idle, NULL, 0));
MISUSE(bind_flags, -FI_EBADFLAGS, fi_ep_bind(b->idle, &b->r.o.cq->fid, UINT64_C(1) << 50));
MISUSE(bind_queue_to_nothing, REFUSED, fi_ep_bind(b->idle, &b->r.o.cq->fid, 0));
MISUSE(bind_counter_to_nothing, REFUSED, fi_ep_bind(b->idle, &b->r.sent->fid, 0));
MISUSE(bind_endpoint, REFUSED, fi_ep_bind(b->idle, &EP(b)->fid, 0));
MISUSE(bind_itself, REFUSED, fi_ep_bind(b->idle, &b->idle->fid, 0));
MISUSE(bind_domain, REFUSED, fi_ep_bind(b->idle, &DOMAIN(b)->fid, 0));
MISUSE(bind_fabric, REFUSED, fi_ep_bind(b->idle, &b->r.o.fabric->fid, 0));
MISUSE(bind_poll_set, REFUSED, fi_ep_bind(b->idle, &b->polls->fid, 0));
MISUSE(bind_wait_set, REFUSED, fi_ep_bind(b->idle, &b->waits->fid, 0));
MISUSE(bind_foreign_queue, REFUSED, fi_ep_bind(b->idle, &b->other.cq->fid, FI_RECV));
MISUSE(bind_foreign_vector, REFUSED, fi_ep_bind(b->idle, &b->other.av->fid, 0));
MISUSE(bind_vector_twice, REFUSED, fi_ep_bind(EP(b), &b->r.o.av->fid, 0));
MISUSE(bind_queue_twice, REFUSED, fi_ep_bind(EP(b), &b->r.o.cq->fid, FI_RECV));
MISUSE(bind_counter_twice, REFUSED, fi_ep_bind(EP(b), &b->r.sent->fid, FI_SEND));
MISUSE(enable_without_vector, -FI_ENOAV, fi_enable(b->idle));

static ssize_t enable_without_queue(struct bench *b)
{
	OK(fi_ep_bind(b->idle, &b->r.o.av->fid, 0));
	return fi_enable(b->idle);
}

MISUSE(enable_no_queue, -FI_ENOCQ, enable_without_queue(b));
MISUSE(enable_twice, ANY, fi_enable(EP(b)));
MISUSE(cancel_unknown, FINE, fi_cancel(&EP(b)->fid, b));
MISUSE(cancel_nothing, FINE, fi_cancel(&EP(b)->fid, NULL));
MISUSE(cancel_before_enable, ANY, fi_cancel(&b->idle->fid, b));
MISUSE(tx_left_before_enable, ANY, fi_tx_size_left(b->idle));
MISUSE(rx_left_before_enable, ANY, fi_rx_size_left(b->idle));
MISUSE(send_before_enable, -FI_EOPBADSTATE, fi_send(b->idle, b->bytes, 8, NULL, 0, NULL));
MISUSE(recv_before_enable, -FI_EOPBADSTATE, fi_recv(b->idle, b->bytes, 8, NULL, 0, NULL));
MISUSE(getopt_nowhere, REFUSED,
       fi_getopt(&EP(b)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, &b->len));
MISUSE(getopt_no_length, REFUSED,
       fi_getopt(&EP(b)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, b->bytes, NULL));
MISUSE(getopt_short, REFUSED,
       fi_getopt(&EP(b)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, b->bytes, &(size_t){2}));
MISUSE(getopt_level, REFUSED, fi_getopt(&EP(b)->fid, 77, 0, b->bytes, &b->len));
MISUSE(getopt_option, REFUSED, fi_getopt(&EP(b)->fid, FI_OPT_ENDPOINT, 999, b->bytes, &b->len));
MISUSE(setopt_nothing, REFUSED,
       fi_setopt(&EP(b)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, NULL, 8));
MISUSE(setopt_short, REFUSED,
       fi_setopt(&EP(b)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, b->bytes, 2));
MISUSE(setopt_option, REFUSED, fi_setopt(&EP(b)->fid, FI_OPT_ENDPOINT, 999, b->bytes, 8));

/* ---- fi_control: each command on each object, without an argument ---- */

static ssize_t controls(struct bench *b, int first, int last, void *arg)
{
	struct fid *all[] = {
		&b->r.o.fabric->fid, &DOMAIN(b)->fid, &EP(b)->fid,
		&b->idle->fid,       &b->r.o.cq->fid, &b->r.sent->fid,
		&b->eq->fid,         &b->r.o.av->fid, &b->r.mr->fid,
		&b->polls->fid,      &b->waits->fid,  b->pep ? &b->pep->fid : &b->eq->fid};

	for (int command = first; command <= last; command++)
		for (size_t i = 0; i < API_COUNT(all); i++)
			if (command != FI_ENABLE)
				fi_control(all[i], command, arg);
	return 0;
}

MISUSE(control_without_argument, FINE, controls(b, -3, 60, NULL));
MISUSE(control_internal_without_argument, FINE, controls(b, 1 << 30, (1 << 30) + 60, NULL));
MISUSE(open_ops_no_name, REFUSED, fi_open_ops(&EP(b)->fid, NULL, 0, &b->out.any, NULL));
MISUSE(open_ops_no_result, REFUSED, fi_open_ops(&DOMAIN(b)->fid, "x", 0, NULL, NULL));
MISUSE(open_ops_unknown, REFUSED, fi_open_ops(&b->r.o.cq->fid, "x", 0, &b->out.any, NULL));
MISUSE(open_ops_domain_no_name, REFUSED, fi_open_ops(&DOMAIN(b)->fid, NULL, 0, &b->out.any, NULL));
MISUSE(open_ops_fabric_no_name, REFUSED,
       fi_open_ops(&b->r.o.fabric->fid, NULL, 0, &b->out.any, NULL));
MISUSE(set_ops_no_name, REFUSED, fi_set_ops(&DOMAIN(b)->fid, NULL, 0, NULL, NULL));
MISUSE(set_ops_nothing, REFUSED, fi_set_ops(&DOMAIN(b)->fid, "x", 0, NULL, NULL));
MISUSE(fi_open_unknown, REFUSED,
       fi_open(FI_VERSION(1, 17), "nothing", NULL, 0, 0, (void *)&b->out.any, NULL));
MISUSE(fi_open_no_name, REFUSED,
       fi_open(FI_VERSION(1, 17), NULL, NULL, 0, 0, (void *)&b->out.any, NULL));
MISUSE(fi_open_no_result, REFUSED, fi_open(FI_VERSION(1, 17), "mr_cache", NULL, 0, 0, NULL, NULL));
MISUSE(import_no_log, REFUSED,
       fi_import(FI_VERSION(1, 17), "logging", NULL, 0, 0,
		 &(struct fid_logging){.fid.fclass = FI_CLASS_LOG}.fid, NULL));
MISUSE(import_no_class, REFUSED,
       fi_import(FI_VERSION(1, 17), "logging", NULL, 0, 0, &(struct fid_logging){.ops = NULL}.fid,
		 NULL));
MISUSE(import_no_name, REFUSED,
       fi_import(FI_VERSION(1, 17), NULL, NULL, 0, 0, &(struct fid_logging){.ops = NULL}.fid,
		 NULL));
MISUSE(import_nothing, REFUSED, fi_import(FI_VERSION(1, 17), "logging", NULL, 0, 0, NULL, NULL));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
