/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which capabilities fi_getinfo grants. */
#include "getinfo.h"

START_TEST(sparse_hints)
{
	struct fi_info bare = {.caps = FI_MSG};

	ck_assert_int_eq(fi_getinfo(NOW, NULL, NULL, 0, &bare, &list), 0);
	ck_assert_uint_eq(list->tx_attr->caps & (FI_MSG | FI_SEND | FI_RECV), FI_MSG | FI_SEND);
}
END_TEST

START_TEST(caps_primary_only_as_asked)
{
	hints->caps = FI_TAGGED;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->caps & (FI_MSG | FI_DIRECTED_RECV | FI_NAMED_RX_CTX | FI_SOURCE),
			  0);
	ck_assert_uint_eq(list->caps & (FI_TAGGED | FI_SEND | FI_RECV),
			  FI_TAGGED | FI_SEND | FI_RECV);
	ck_assert_uint_eq(list->tx_attr->caps, FI_TAGGED | FI_SEND);
	ck_assert_uint_eq(list->rx_attr->caps & ~FI_MULTI_RECV, FI_TAGGED | FI_RECV);
}
END_TEST

START_TEST(caps_one_way)
{
	hints->caps = FI_MSG | FI_SEND;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->caps & (FI_SEND | FI_RECV), FI_SEND);
	ck_assert_uint_eq(list->rx_attr->caps & FI_RECV, 0);
}
END_TEST

START_TEST(caps_of_contexts)
{
	hints->caps = FI_MSG;
	hints->tx_attr->caps = FI_TAGGED;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->caps & (FI_MSG | FI_TAGGED), FI_MSG | FI_TAGGED);
	ck_assert_uint_eq(list->tx_attr->caps & (FI_MSG | FI_TAGGED | FI_SEND),
			  FI_TAGGED | FI_SEND);
	hints->tx_attr->caps = FI_TAGGED | FI_MULTICAST;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

START_TEST(caps_not_there)
{
	const uint64_t absent[] = {FI_MULTICAST | FI_TAGGED, FI_HMEM, 1ULL << 40};

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		hints->caps = FI_MSG | absent[i];
		ck_assert_int_eq(ask(NOW), -FI_ENODATA);
	}
}
END_TEST

/* Scalable endpoints have no collectives; others do, also with shared contexts. */
static const struct {
	size_t tx, rx;
	bool offered;
} contexts[] = {{0, 0, true},  {1, 1, true},  {FI_SHARED_CONTEXT, FI_SHARED_CONTEXT, true},
		{2, 1, false}, {1, 2, false}, {4, 4, false}};

START_TEST(caps_of_groups)
{
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->tx_ctx_cnt = contexts[_i].tx;
	hints->ep_attr->rx_ctx_cnt = contexts[_i].rx;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_int_eq((list->caps & FI_COLLECTIVE) != 0, contexts[_i].offered);
	ck_assert_int_eq((list->tx_attr->caps & FI_COLLECTIVE) != 0, contexts[_i].offered);
	hints->caps = FI_MSG | FI_COLLECTIVE;
	ck_assert_int_eq(ask(NOW), contexts[_i].offered ? 0 : -FI_ENODATA);
}
END_TEST

#define COMM (FI_LOCAL_COMM | FI_REMOTE_COMM)

START_TEST(caps_remote)
{
	hints->caps = FI_MSG | FI_REMOTE_COMM;
	ck_assert_int_eq(found("weft"), 0);
	ck_assert_uint_eq(list->domain_attr->caps, COMM | FI_SHARED_AV | FI_AV_USER_ID);
	ck_assert_int_eq(found("tcp"), 0);
	ck_assert_int_eq(found("udp"), 0);
	ck_assert_int_eq(found("shm"), -FI_ENODATA);
	hints->caps = FI_MSG | FI_LOCAL_COMM;
	ck_assert_int_eq(ask(NOW), 0);
	hints->domain_attr->caps = FI_REMOTE_COMM;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

static const struct {
	uint64_t asked, of_domain;    /* hints */
	uint64_t granted, its_domain; /* among FI_LOCAL_COMM and FI_REMOTE_COMM */
} places[] = {
	{0, 0, COMM, COMM},
	{FI_MSG, 0, COMM, COMM},
	{FI_MSG | COMM, 0, COMM, COMM},
	{FI_MSG | FI_REMOTE_COMM, 0, COMM, COMM},
	{FI_MSG | FI_LOCAL_COMM, 0, FI_LOCAL_COMM, COMM},
	{FI_MSG | FI_LOCAL_COMM, COMM, FI_LOCAL_COMM, COMM},
	{FI_MSG, FI_LOCAL_COMM, FI_LOCAL_COMM, FI_LOCAL_COMM},
	{FI_MSG | COMM, FI_LOCAL_COMM, COMM, FI_LOCAL_COMM},
	{0, FI_LOCAL_COMM, FI_LOCAL_COMM, FI_LOCAL_COMM},
};

/* FI_LOCAL_COMM alone yields no entry that reaches other hosts. */
START_TEST(caps_local)
{
	const char *const names[] = {"weft", "tcp"};

	for (int n = 0; n < COUNT(names); n++) {
		hints->caps = places[_i].asked;
		hints->domain_attr->caps = places[_i].of_domain;
		ck_assert_int_eq(found(names[n]), 0);
		ck_assert_uint_eq(list->caps & COMM, places[_i].granted);
		ck_assert_uint_eq(list->domain_attr->caps & COMM, places[_i].its_domain);
	}
}
END_TEST

/* Connected endpoints lack the capabilities that need an address vector. */
START_TEST(caps_of_connected_endpoints)
{
	const uint64_t of_addresses[] = {FI_SOURCE,       FI_SOURCE_ERR, FI_DIRECTED_RECV,
					 FI_NAMED_RX_CTX, FI_SHARED_AV,  FI_AV_USER_ID};

	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_RMA_EVENT;
	ck_assert_int_eq(found("weft"), 0);
	ck_assert_int_eq(found("tcp"), 0);
	ck_assert_int_eq(found("shm"), 0);
	ask_for(NULL);
	for (int n = 0; n < COUNT(of_addresses); n++) {
		hints->caps = FI_MSG | of_addresses[n];
		ck_assert_int_eq(ask(NOW), -FI_ENODATA);
	}
}
END_TEST

START_TEST(caps_of_datagrams)
{
	hints->caps = FI_MULTICAST;
	ck_assert_int_eq(found("udp"), 0);
	ck_assert_int_eq(found("weft"), 0);
	ask_for(NULL);
	ck_assert_uint_eq(list->caps & (FI_MSG | FI_SEND | FI_RECV | FI_MULTICAST),
			  FI_MSG | FI_SEND | FI_RECV | FI_MULTICAST);
	ck_assert_uint_eq(list->tx_attr->caps & FI_MULTICAST, FI_MULTICAST);
	hints->caps = FI_MSG | FI_SOURCE;
	hints->ep_attr->type = FI_EP_DGRAM;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_uint_eq(list->caps & (FI_MULTICAST | FI_SOURCE), FI_SOURCE);
	hints->caps = FI_TAGGED;
	ck_assert_int_eq(ask(NOW), -FI_ENODATA);
}
END_TEST

START_TEST(caps_shared_vectors)
{
	hints->caps = FI_MSG | FI_SHARED_AV;
	hints->domain_attr->caps = FI_SHARED_AV;
	ck_assert_int_eq(found("weft"), 0);
	ck_assert_uint_ne(list->caps & FI_SHARED_AV, 0);
	ck_assert_uint_eq((list->tx_attr->caps | list->rx_attr->caps) & FI_SHARED_AV, 0);
	ck_assert_int_eq(found("shm"), 0);
	ck_assert_int_eq(ask(FI_VERSION(1, 4)), -FI_ENODATA);
}
END_TEST

/* Every provider with address vectors grants FI_AV_USER_ID. */
START_TEST(caps_user_ids)
{
	const char *const names[] = {"weft", "tcp", "shm", "udp"};

	for (int n = 0; n < COUNT(names); n++) {
		hints->caps = FI_MSG | FI_SOURCE;
		hints->domain_attr->caps = 0;
		ck_assert_int_eq(found(names[n]), 0);
		ck_assert_uint_eq(list->caps & FI_AV_USER_ID, 0);
		ck_assert_uint_ne(list->domain_attr->caps & FI_AV_USER_ID, 0);
		hints->caps |= FI_AV_USER_ID;
		hints->domain_attr->caps = FI_AV_USER_ID;
		ck_assert_int_eq(found(names[n]), 0);
		ck_assert_uint_ne(list->caps & FI_AV_USER_ID, 0);
		ck_assert_int_eq(ask(FI_VERSION(1, 16)), 0);
		ck_assert_int_eq(ask(FI_VERSION(1, 15)), -FI_ENODATA);
	}
}
END_TEST

/* Bit 48 was FI_VARIABLE_MSG (unsupported) and is FI_EXACT_DIRECTED_RECV from 2.0 on. */
START_TEST(caps_by_version)
{
	hints->caps = FI_MSG | FI_EXACT_DIRECTED_RECV;
	ck_assert_int_eq(ask(NOW), 0);
	ck_assert_int_eq(ask(FI_VERSION(1, 17)), -FI_ENODATA);
	hints->caps = 0;
	ck_assert_int_eq(ask(FI_VERSION(1, 4)), 0);
	ck_assert_uint_eq(list->caps & (FI_LOCAL_COMM | FI_TAGGED_MULTI_RECV), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("info_caps");
	TCase *tc = new_case("caps");

	tcase_add_test(tc, sparse_hints);
	tcase_add_test(tc, caps_primary_only_as_asked);
	tcase_add_test(tc, caps_one_way);
	tcase_add_test(tc, caps_of_contexts);
	tcase_add_test(tc, caps_not_there);
	tcase_add_loop_test(tc, caps_of_groups, 0, COUNT(contexts));
	tcase_add_test(tc, caps_remote);
	tcase_add_loop_test(tc, caps_local, 0, COUNT(places));
	tcase_add_test(tc, caps_of_connected_endpoints);
	tcase_add_test(tc, caps_of_datagrams);
	tcase_add_test(tc, caps_shared_vectors);
	tcase_add_test(tc, caps_user_ids);
	tcase_add_test(tc, caps_by_version);
	suite_add_tcase(suite, tc);
	return run(suite);
}
