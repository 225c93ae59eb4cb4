/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which entries fi_getinfo returns: order, provider names, addresses. */
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "info/providers.h"
#include "getinfo.h"

/* ---- The call ---- */

static const struct {
	const char *name;
	enum fi_ep_type type;
} in_order[] = {
	{"weft", FI_EP_RDM},    {"weft", FI_EP_MSG},    {"weft", FI_EP_DGRAM},
	{"tcp", FI_EP_RDM},     {"tcp", FI_EP_MSG},     {"shm", FI_EP_RDM},
	{"shm", FI_EP_MSG},     {"udp", FI_EP_DGRAM},   {"tcp;ofi_rxm", FI_EP_RDM},
	{"sockets", FI_EP_RDM}, {"sockets", FI_EP_MSG}, {"sockets", FI_EP_DGRAM},
	{"net", FI_EP_RDM},     {"net", FI_EP_MSG},
};

static bool is_a(const struct fi_info *i, int row)
{
	return strcmp(i->fabric_attr->prov_name, in_order[row].name) == 0 &&
	       i->ep_attr->type == in_order[row].type;
}

static bool always(const char *prov, int level, int subsys)
{
	(void)prov, (void)level, (void)subsys;
	return true;
}

static bool at_once(const char *prov, int level, int subsys, uint64_t *showtime)
{
	(void)showtime;
	return always(prov, level, subsys);
}

static char logged[256]; /* the first message since it was emptied */

static void keep_first(const struct log_place *place, const char *msg)
{
	(void)place;
	if (!*logged)
		snprintf(logged, sizeof(logged), "%s", msg);
}

/* Flags that fi_getinfo does not know change nothing, and are logged. */
START_TEST(unknown_flags)
{
	static const struct log_sink sink = {always, at_once, keep_first};
	uint64_t known = FI_NUMERICHOST | FI_SOURCE | FI_PROV_ATTR_ONLY | FI_RESCAN;
	char value[32];

	log_redirect(&sink);
	for (int bit = 0; bit < 64; bit++) {
		uint64_t flag = 1ULL << bit;

		if (flag & FI_SOURCE) /* needs an address */
			continue;
		logged[0] = '\0';
		snprintf(value, sizeof(value), "%#llx", (unsigned long long)flag);
		ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, flag, NULL, &list), 0);
		first_is(in_order[0].name);
		ck_assert_int_eq(!!strstr(logged, value), !(flag & known));
		fi_freeinfo(list);
		list = NULL;
	}
	log_redirect(NULL);
}
END_TEST

/* Entries come in the order of the table; a row may have entries for several addresses. */
START_TEST(order)
{
	int row = 0;

	ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, 0, NULL, &list), 0);
	ck_assert(is_a(list, 0));
	for (const struct fi_info *i = list; i; i = i->next) {
		if (row + 1 < COUNT(in_order) && is_a(i, row + 1))
			row++;
		ck_assert_msg(is_a(i, row), "%s, type %d, after row %d", i->fabric_attr->prov_name,
			      i->ep_attr->type, row);
		ck_assert_ptr_eq(provider_of(i)->name,
				 provider_find(i->fabric_attr->prov_name)->name);
		ck_assert_int_eq(provider_of(i)->type, i->ep_attr->type);
	}
	ck_assert_int_eq(row, COUNT(in_order) - 1);
}
END_TEST

static void check_stream(const struct fi_info *i)
{
	ck_assert_uint_eq(i->domain_attr->cq_data_size, 8);
	ck_assert_uint_eq(i->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS);
}

START_TEST(no_hints)
{
	ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, 0, NULL, &list), 0);
	for (const struct fi_info *i = list; i; i = i->next) {
		ck_assert_ptr_nonnull(i->fabric_attr->name);
		ck_assert_ptr_nonnull(i->domain_attr->name);
		ck_assert_ptr_nonnull(i->src_addr);
		ck_assert_ptr_null(i->dest_addr);
		ck_assert_uint_eq(i->fabric_attr->api_version, NOW);
		ck_assert_str_ne(fi_tostr(&i->ep_attr->protocol, FI_TYPE_PROTOCOL), "Unknown");
		ck_assert_uint_eq(i->mode, 0);
		ck_assert_int_eq(i->domain_attr->mr_mode, 0);
		ck_assert_int_eq(i->domain_attr->threading, FI_THREAD_SAFE);
		ck_assert_int_eq(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
		ck_assert_int_eq(i->domain_attr->av_type, FI_AV_UNSPEC);
		ck_assert_int_eq(i->domain_attr->resource_mgmt, FI_RM_ENABLED);
		ck_assert_uint_ge(i->tx_attr->inject_size, 16);
		ck_assert_uint_eq(i->domain_attr->max_cntr_value, UINT64_MAX);
		ck_assert_uint_eq(i->domain_attr->max_err_cntr_value, UINT64_MAX);
		if (i->ep_attr->type != FI_EP_DGRAM)
			check_stream(i);
	}
	ck_assert_uint_eq(list->ep_attr->protocol & 0x80000000u, 0x80000000u);
	ck_assert_int_eq(found("shm"), 0);
	ck_assert_uint_eq(list->addr_format, FI_ADDR_STR);
	ck_assert_uint_eq(list->src_addrlen, strlen(list->src_addr) + 1);
	ck_assert_uint_eq(list->ep_attr->protocol, FI_PROTO_SHM);
}
END_TEST

START_TEST(bad_calls)
{
	struct fi_info *kept = hints;

	ck_assert_int_eq(fi_getinfo(FI_VERSION(9, 0), NULL, NULL, 0, NULL, &kept), -FI_ENOSYS);
	ck_assert_ptr_eq(kept, hints);
	ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, 0, NULL, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, FI_SOURCE, NULL, &kept), -FI_ENODATA);
	ck_assert_ptr_null(kept);
}
END_TEST

START_TEST(names_only)
{
	const char *const every[] = {"weft", "tcp", "shm", "udp", "tcp;ofi_rxm", "sockets", "net"};
	const struct fi_info *i;

	hints->ep_attr->type = FI_EP_MSG; /* ignored */
	ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, FI_PROV_ATTR_ONLY, hints, &list), 0);
	i = list;
	for (int n = 0; n < COUNT(every); n++, i = i->next) {
		ck_assert_str_eq(i->fabric_attr->prov_name, every[n]);
		ck_assert_uint_eq(i->caps, 0);
		ck_assert_uint_ne(i->fabric_attr->prov_version, 0);
	}
	ck_assert_ptr_null(i);
}
END_TEST

/* ---- Names ---- */

static const struct {
	const char *prov_name, *first;
} names[] = {
	{"weft", "weft"},
	{"SHM", "shm"},
	{"shm,weft", "weft"},
	{"shm,udp", "shm"},
	{"^weft", "tcp"},
	{"^shm,tcp", "weft"},
	{"^weft,tcp", "shm"},
	{"^ weft , shm, tcp,udp", "sockets"},
	{"^ weft , shm, tcp,udp,net, sockets", NULL},
	{"tcp", "tcp"},
	{"tcp;ofi_rxm", "tcp;ofi_rxm"},
	{"ofi_rxm", "tcp;ofi_rxm"},
	{"sockets", "sockets"},
	{"net", "net"},
	{"verbs", NULL},
	{"shm;ofi_rxm", NULL},
	{"we", NULL},
	{"^we", "weft"},
	{"", "weft"},
};

START_TEST(prov_name)
{
	ck_assert_int_eq(found(names[_i].prov_name), names[_i].first ? 0 : -FI_ENODATA);
	if (names[_i].first)
		first_is(names[_i].first);
}
END_TEST

static const struct {
	const char *env, *hint, *first;
} environments[] = {
	{"shm", NULL, "shm"},  {"^weft,tcp", NULL, "shm"}, {"SHM,udp", NULL, "shm"},
	{"verbs", NULL, NULL}, {"shm", "weft", NULL},      {"^shm", "weft", "weft"},
	{"", NULL, "weft"},    {"tcp", NULL, "tcp"},       {"sockets", NULL, "sockets"},
};

/* The environment is read once, so each case needs a process of its own. */
START_TEST(fi_provider)
{
	setenv("FI_PROVIDER", environments[_i].env, 1);
	ck_assert_int_eq(found(environments[_i].hint), environments[_i].first ? 0 : -FI_ENODATA);
	if (environments[_i].first)
		first_is(environments[_i].first);
}
END_TEST

START_TEST(layered_names)
{
	const struct provider rxm = {.name = "tcp;ofi_rxm"};
	const struct provider ib = {.name = "verbs;ofi_rxm"};

	ck_assert(provider_offered(&rxm, "tcp;ofi_rxm"));
	ck_assert(provider_offered(&rxm, "OFI_rxm;TCP"));
	ck_assert(provider_offered(&rxm, "ofi_rxm"));
	ck_assert(provider_offered(&rxm, "tcp"));
	ck_assert(provider_offered(&rxm, NULL));
	ck_assert(provider_offered(&rxm, "^shm"));
	ck_assert(!provider_offered(&rxm, "^tcp"));
	ck_assert(!provider_offered(&rxm, "tcp;ofi_rxd"));
	ck_assert(provider_offered(&ib, NULL));
	ck_assert(provider_offered(&ib, "verbs"));
	ck_assert(!provider_offered(&ib, "^verbs"));
	ck_assert(!provider_offered(&ib, "^tcp,ofi_rxm"));
	ck_assert_ptr_null(provider_find("ofi_rxm"));
	ck_assert_ptr_null(provider_find(NULL));
	ck_assert_str_eq(provider_find("Shm")->name, "shm");
}
END_TEST

START_TEST(fabric_and_domain)
{
	ck_assert_int_eq(found("weft"), 0);
	hints->fabric_attr->name = strdup(list->fabric_attr->name);
	hints->domain_attr->name = strdup(list->domain_attr->name);
	ck_assert_int_eq(ask(NOW), 0);
	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup("lo");
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_str_eq(list->domain_attr->name, "lo");
	ck_assert_uint_eq(((struct sockaddr_in *)list->src_addr)->sin_addr.s_addr,
			  htonl(INADDR_LOOPBACK));
	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup("nosuch0");
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

/* A provider's name selects all its endpoint types. */
START_TEST(types_of_names)
{
	static const struct {
		const char *name;
		enum fi_ep_type types[3];
	} rts_count[] = {
		{"weft", {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM}},
		{"sockets", {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM}},
		{"shm", {FI_EP_RDM, FI_EP_MSG}},
		{"tcp", {FI_EP_RDM, FI_EP_MSG}},
	};

	for (int n = 0; n < COUNT(rts_count); n++)
		for (int t = 0; t < 3 && rts_count[n].types[t]; t++) {
			hints->ep_attr->type = rts_count[n].types[t];
			ck_assert_int_eq(found(rts_count[n].name), 0);
			first_is(rts_count[n].name);
			ck_assert_int_eq(list->ep_attr->type, rts_count[n].types[t]);
		}
}
END_TEST

/* Connected shm endpoints have IP addresses of this host as names, but reach only this host. */
START_TEST(inside)
{
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a090807)};

	hints->ep_attr->type = FI_EP_MSG;
	ck_assert_int_eq(found("shm"), 0);
	ck_assert_ptr_null(list->next);
	ck_assert_str_eq(list->domain_attr->name, "shm");
	ck_assert_uint_eq(list->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM), FI_LOCAL_COMM);
	ck_assert_ptr_null(list->nic);
	hints->domain_attr->name = strdup("shm");
	ck_assert_int_eq(ask(NOW), 0);
	free(hints->domain_attr->name);
	hints->domain_attr->name = strdup("lo");
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
	free(hints->domain_attr->name);
	hints->domain_attr->name = NULL;
	ck_assert_int_eq(fi_getinfo(NOW, "127.0.0.1", "7", 0, hints, &list), 0);
	hints->dest_addr = malloc(sizeof(far));
	memcpy(hints->dest_addr, &far, sizeof(far));
	hints->dest_addrlen = sizeof(far);
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

/* ---- Addresses ---- */

static const struct {
	const char *node, *service;
	uint64_t flags;
	const char *prov;
	int ret;
	const char *src, *dest; /* in fi_tostr's format */
} addresses[] = {
	{"127.0.0.1", "5000", 0, "weft", 0, "fi_sockaddr_in://127.0.0.1:0",
	 "fi_sockaddr_in://127.0.0.1:5000"},
	{"127.0.0.1", "5000", FI_SOURCE, "weft", 0, "fi_sockaddr_in://127.0.0.1:5000", "(null)"},
	{NULL, "5000", 0, "weft", 0, "fi_sockaddr_in://127.0.0.1:0",
	 "fi_sockaddr_in://127.0.0.1:5000"},
	{"::1", "5000", FI_SOURCE, "weft", 0, "fi_sockaddr_in6://[::1]:5000", "(null)"},
	{"::1", NULL, 0, "weft", 0, "fi_sockaddr_in6://[::1]:0", "fi_sockaddr_in6://[::1]:0"},
	{"fi_sockaddr_in://127.0.0.1:77", NULL, FI_SOURCE, "weft", 0,
	 "fi_sockaddr_in://127.0.0.1:77", "(null)"},
	{"fi_sockaddr_in6://[::1]:77", NULL, FI_SOURCE, "weft", 0, "fi_sockaddr_in6://[::1]:77",
	 "(null)"},
	{"fi_sockaddr_in://127.0.0.1:77", "1", 0, "weft", -FI_ENODATA, NULL, NULL},
	{"fi_shm://x", NULL, 0, "weft", -FI_ENODATA, NULL, NULL},
	{"127.0.0.1", NULL, FI_NUMERICHOST, "weft", 0, "fi_sockaddr_in://127.0.0.1:0",
	 "fi_sockaddr_in://127.0.0.1:0"},
	{"localhost", NULL, FI_NUMERICHOST, "weft", -FI_ENODATA, NULL, NULL},
	{"10.9.8.7", "1", FI_SOURCE, "weft", 0, "fi_sockaddr_in://10.9.8.7:1", "(null)"},
	{"n", "s", 0, "shm", 0, NULL, "fi_ns://n:s"},
	{"n", "s", FI_SOURCE, "shm", 0, "fi_ns://n:s", "(null)"},
	{"n", NULL, FI_SOURCE, "shm", 0, "fi_shm://n", "(null)"},
	{NULL, "s", FI_SOURCE, "shm", 0, "fi_ns://s", "(null)"},
	{"x://y:z", NULL, 0, "shm", 0, NULL, "x://y:z"},
	{"x://y:z", "1", 0, "shm", -FI_ENODATA, NULL, NULL},
};

static void line_is(const struct fi_info *info, const char *key, const char *value)
{
	char text[8192], want[256];

	snprintf(want, sizeof(want), "    %s: %s\n", key, value);
	fi_tostr_r(text, sizeof(text), info, FI_TYPE_INFO);
	ck_assert_msg(strstr(text, want), "no \"%s\" in %s", want, text);
}

START_TEST(address)
{
	int ret;

	ask_for(addresses[_i].prov);
	ret = fi_getinfo(NOW, addresses[_i].node, addresses[_i].service, addresses[_i].flags, hints,
			 &list);
	ck_assert_int_eq(ret, addresses[_i].ret);
	if (addresses[_i].src)
		line_is(list, "src_addr", addresses[_i].src);
	if (addresses[_i].dest)
		line_is(list, "dest_addr", addresses[_i].dest);
}
END_TEST

START_TEST(source_of_process)
{
	char want[32];

	ck_assert_int_eq(found("shm"), 0);
	snprintf(want, sizeof(want), "fi_shm://%d", (int)getpid());
	ck_assert_str_eq(list->src_addr, want);
}
END_TEST

START_TEST(string_too_long)
{
	char node[200];

	memset(node, 'n', sizeof(node));
	node[sizeof(node) - 1] = '\0';
	ask_for("shm");
	ck_assert_int_eq(fi_getinfo(NOW, node, NULL, 0, hints, &list), -FI_ENODATA);
}
END_TEST

/* A service without a node is all of the host's addresses. */
START_TEST(source_with_port)
{
	static const enum fi_ep_type types[] = {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM};
	struct sockaddr_in *src;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		ask_for("weft");
		hints->ep_attr->type = types[i];
		ck_assert_int_eq(fi_getinfo(NOW, NULL, "5000", FI_SOURCE, hints, &list), 0);
		src = list->src_addr;
		ck_assert_uint_eq(src->sin_port, htons(5000));
		ck_assert_uint_eq(src->sin_addr.s_addr, htonl(INADDR_ANY));
		fi_freeinfo(list);
		list = NULL;
	}
}
END_TEST

START_TEST(addresses_of_hints)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = htons(4),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	hints->src_addr = malloc(sizeof(sin));
	hints->src_addrlen = sizeof(sin);
	memcpy(hints->src_addr, &sin, sizeof(sin));
	hints->dest_addr = malloc(sizeof(sin));
	hints->dest_addrlen = sizeof(sin);
	memcpy(hints->dest_addr, &sin, sizeof(sin));
	ck_assert_int_eq(found("weft"), 0);
	ck_assert_mem_eq(list->src_addr, &sin, sizeof(sin));
	ck_assert_mem_eq(list->dest_addr, &sin, sizeof(sin));
	hints->addr_format = FI_SOCKADDR_IN6;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
	hints->addr_format = FI_SOCKADDR;
	hints->src_addrlen = 3;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
	/* The node overrides the hints' destination. */
	hints->src_addrlen = sizeof(sin);
	fi_freeinfo(list);
	ck_assert_int_eq(fi_getinfo(NOW, "127.0.0.1", "9", 0, hints, &list), 0);
	ck_assert_uint_eq(((struct sockaddr_in *)list->dest_addr)->sin_port, htons(9));
}
END_TEST

START_TEST(format)
{
	hints->addr_format = FI_SOCKADDR_IN6;
	ck_assert_int_eq(ask(NOW), 0);
	first_is("weft");
	for (const struct fi_info *i = list; i; i = i->next) {
		ck_assert_uint_eq(i->addr_format, FI_SOCKADDR_IN6);
		ck_assert_uint_eq(i->src_addrlen, sizeof(struct sockaddr_in6));
	}
	hints->addr_format = FI_ADDR_STR;
	ck_assert_int_eq(ask(NOW), 0);
	first_is("weft");
	for (const struct fi_info *i = list; i; i = i->next) {
		ck_assert_uint_eq(i->addr_format, FI_ADDR_STR);
		ck_assert_uint_eq(i->src_addrlen, strlen(i->src_addr) + 1);
	}
	ck_assert_int_eq(found("shm"), 0);
	ck_assert_ptr_eq(strstr(list->src_addr, "fi_shm://"), list->src_addr);
	ask_for(NULL);
	hints->addr_format = FI_SOCKADDR_IB;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

static TCase *names_case(void)
{
	TCase *tc = new_case("names");

	tcase_add_test(tc, order);
	tcase_add_test(tc, unknown_flags);
	tcase_add_test(tc, no_hints);
	tcase_add_test(tc, bad_calls);
	tcase_add_test(tc, names_only);
	tcase_add_loop_test(tc, prov_name, 0, COUNT(names));
	tcase_add_loop_test(tc, fi_provider, 0, COUNT(environments));
	tcase_add_test(tc, layered_names);
	tcase_add_test(tc, fabric_and_domain);
	tcase_add_test(tc, types_of_names);
	tcase_add_test(tc, inside);
	return tc;
}

static TCase *addresses_case(void)
{
	TCase *tc = new_case("addresses");

	tcase_add_loop_test(tc, address, 0, COUNT(addresses));
	tcase_add_test(tc, source_of_process);
	tcase_add_test(tc, string_too_long);
	tcase_add_test(tc, source_with_port);
	tcase_add_test(tc, addresses_of_hints);
	tcase_add_test(tc, format);
	return tc;
}

int main(void)
{
	Suite *suite = suite_create("info_getinfo");

	suite_add_tcase(suite, names_case());
	suite_add_tcase(suite, addresses_case());
	return run(suite);
}
