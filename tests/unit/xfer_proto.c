/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which protocol a message gets, by its length and its link's capabilities. */
#include <string.h>

#include "suite.h"
#include "xfer/defer/defer.h"
#include "xfer/rndv/proto.h"

#define EAGER 4096
#define ZCOPY 1000

static struct link link;
static struct peer peer;
static struct txreq req;
static struct work work;

static void open_peer(void)
{
	link = (struct link){LINK_BARE, .eager_max = EAGER};
	memset(&peer, 0, sizeof(peer));
	memset(&req, 0, sizeof(req));
	work = (struct work){.batch = &work};
	peer.real = &link;
	req.peer = &peer;
	req.len = EAGER + 1;
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
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_FETCH);
	ck_assert_uint_eq(proto_spec_bytes(&peer, &req, PROTO_FETCH), 0);
}
END_TEST

START_TEST(a_device_comes_first)
{
	link.rdma_usable = true;
	link.spec_max = EAGER;
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_RDMA);
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_RDMA), PROTO_SPEC);
}
END_TEST

START_TEST(a_batch_is_fetched_where_both_sides_can)
{
	link.spec_max = EAGER;
	link.fetches = true;
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_SPEC);
	req.work = &work;
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_FETCH);
	link.fetches = false;
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_SPEC);
}
END_TEST

START_TEST(fragments_up_to_spec_max_unless_they_were_useless)
{
	link.spec_max = EAGER;
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_SPEC);
	ck_assert_uint_eq(proto_spec_bytes(&peer, &req, PROTO_SPEC), EAGER);
	link.spec_max = 3 * EAGER;
	ck_assert_uint_eq(proto_spec_bytes(&peer, &req, PROTO_SPEC), EAGER + 1);
	peer.tx.spec[SPEC_SHORT].trial.skip = 1;
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_FETCH);
	req.len = WIRE_SPEC_MAX + 1; /* messages of this length have a counter of their own */
	ck_assert_int_eq(proto_select(&peer, &req, PROTO_COPY), PROTO_SPEC);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_proto");
	TCase *tcase = tcase_create("select");

	tcase_add_checked_fixture(tcase, open_peer, NULL);
	tcase_add_test(tcase, one_packet_up_to_eager_max);
	tcase_add_test(tcase, zero_copy_from_zcopy_min_on);
	tcase_add_test(tcase, a_link_that_lacks_all_fetches);
	tcase_add_test(tcase, a_device_comes_first);
	tcase_add_test(tcase, a_batch_is_fetched_where_both_sides_can);
	tcase_add_test(tcase, fragments_up_to_spec_max_unless_they_were_useless);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
