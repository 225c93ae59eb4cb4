/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which protocol a message gets, by its length and its link's capabilities. */
#include "suite.h"
#include "xfer/rndv/proto.h"

#define EAGER 4096
#define ZCOPY 1000

static struct link link;

static void open_link(void)
{
	link = (struct link){LINK_BARE, .eager_max = EAGER};
}

START_TEST(one_packet_up_to_eager_max)
{
	ck_assert(!proto_is_long(&link, EAGER));
	ck_assert(proto_is_long(&link, EAGER + 1));
	ck_assert(proto_copies(&link, EAGER));
	ck_assert(!proto_copies(&link, EAGER + 1));
	ck_assert_int_eq(proto_of_packet(&link, EAGER), PROTO_COPY);
}
END_TEST

START_TEST(zero_copy_from_zcopy_min_on)
{
	link.zcopy_min = ZCOPY;
	ck_assert_int_eq(proto_of_packet(&link, ZCOPY - 1), PROTO_COPY);
	ck_assert_int_eq(proto_of_packet(&link, ZCOPY), PROTO_ZCOPY);
	ck_assert(proto_copies(&link, ZCOPY - 1));
	ck_assert(!proto_copies(&link, ZCOPY));
}
END_TEST

START_TEST(a_link_that_lacks_all_fetches)
{
	ck_assert_int_eq(proto_select(&link, PROTO_COPY), PROTO_FETCH);
}
END_TEST

START_TEST(a_device_comes_first)
{
	link.rdma_usable = true;
	ck_assert_int_eq(proto_select(&link, PROTO_COPY), PROTO_RDMA);
	ck_assert_int_eq(proto_select(&link, PROTO_RDMA), PROTO_FETCH);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_proto");
	TCase *tcase = tcase_create("select");

	tcase_add_checked_fixture(tcase, open_link, NULL);
	tcase_add_test(tcase, one_packet_up_to_eager_max);
	tcase_add_test(tcase, zero_copy_from_zcopy_min_on);
	tcase_add_test(tcase, a_link_that_lacks_all_fetches);
	tcase_add_test(tcase, a_device_comes_first);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
