/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which way a message goes, and comes, by its length and what its link can do. */
#include "suite.h"
#include "xfer/rndv/way.h"

#define EAGER (2 * WIRE_PAUSED_MAX)
#define ZCOPY 1000

static struct link link;

static void open_link(void)
{
	link = (struct link){LINK_BARE, .eager_max = EAGER};
}

START_TEST(one_packet_up_to_eager_max)
{
	ck_assert(!way_is_long(&link, EAGER));
	ck_assert(way_is_long(&link, EAGER + 1));
	ck_assert_int_eq(way_out(&link, EAGER, false), OUT_COPY);
	ck_assert_int_eq(way_out(&link, EAGER + 1, false), OUT_RTS);
	ck_assert(way_copies(&link, EAGER, false));
	ck_assert(!way_copies(&link, EAGER + 1, true));
}
END_TEST

START_TEST(zero_copy_from_zcopy_min_on)
{
	link.zcopy_min = ZCOPY;
	ck_assert_int_eq(way_out(&link, ZCOPY - 1, false), OUT_COPY);
	ck_assert_int_eq(way_out(&link, ZCOPY, false), OUT_ZCOPY);
	ck_assert_int_eq(way_of_packet(&link, EAGER + 1), OUT_ZCOPY); /* of a fragment */
	ck_assert(way_copies(&link, ZCOPY - 1, false));
	ck_assert(!way_copies(&link, ZCOPY, true));
}
END_TEST

/* Within a stream each message gets a number, by which its end is reported, unless nobody hears of that. */
START_TEST(the_silent_are_copied_within_a_stream)
{
	link.zcopy_min = 0;
	link.gather_max = ZCOPY;
	ck_assert_int_eq(way_out(&link, 8, false), OUT_ZCOPY);
	ck_assert(!way_copies(&link, 8, false));
	ck_assert(way_copies(&link, 8, true));
	ck_assert(way_gathers(&link, ZCOPY));
	ck_assert(!way_gathers(&link, ZCOPY + 1));
	link.gather_max = 0;
	ck_assert(!way_gathers(&link, 0));
}
END_TEST

START_TEST(a_device_is_for_long_ones)
{
	link.rdma_usable = true;
	ck_assert_int_eq(way_out(&link, EAGER, false), OUT_COPY);
	ck_assert_int_eq(way_out(&link, EAGER + 1, false), OUT_RDMA);
}
END_TEST

START_TEST(less_goes_to_who_has_paused_us)
{
	ck_assert_int_eq(way_out(&link, WIRE_PAUSED_MAX, true), OUT_COPY);
	ck_assert_int_eq(way_out(&link, WIRE_PAUSED_MAX + 1, true), OUT_RTS);
	link.eager_max = WIRE_PAUSED_MAX / 2;
	ck_assert_int_eq(way_out(&link, link.eager_max + 1, true), OUT_RTS);
}
END_TEST

static const struct fi_rma_iov registered[] = {{0x1000, 8, 5}, {0x2000, 8, 6}};
static const struct fi_rma_iov addresses[] = {{0x1000, 8, 5}, {0x2000, 8, 0}};

START_TEST(read_in_a_host)
{
	link.local = true;
	ck_assert_int_eq(way_in(&link, addresses, 2), IN_READ);
	ck_assert_int_eq(way_in(&link, registered, 2), IN_READ);
	ck_assert_int_eq(way_in(&link, NULL, 0), IN_NOTHING);
}
END_TEST

START_TEST(read_by_a_device_where_all_is_registered)
{
	link.rdma_usable = true;
	ck_assert_int_eq(way_in(&link, registered, 2), IN_READ);
	ck_assert_int_eq(way_in(&link, addresses, 1), IN_READ);
	ck_assert_int_eq(way_in(&link, addresses, 2), IN_STREAM);
	link.rdma_usable = false;
	ck_assert_int_eq(way_in(&link, registered, 2), IN_STREAM);
}
END_TEST

START_TEST(asked_for_elsewhere)
{
	ck_assert_int_eq(way_in(&link, addresses, 2), IN_STREAM);
	ck_assert_int_eq(way_in(&link, NULL, 0), IN_NOTHING);
	ck_assert_int_eq(way_in(NULL, registered, 2), IN_STREAM); /* the sender has gone */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_way");
	TCase *out = tcase_create("out"), *in = tcase_create("in");

	tcase_add_checked_fixture(out, open_link, NULL);
	tcase_add_test(out, one_packet_up_to_eager_max);
	tcase_add_test(out, zero_copy_from_zcopy_min_on);
	tcase_add_test(out, the_silent_are_copied_within_a_stream);
	tcase_add_test(out, a_device_is_for_long_ones);
	tcase_add_test(out, less_goes_to_who_has_paused_us);
	tcase_add_checked_fixture(in, open_link, NULL);
	tcase_add_test(in, read_in_a_host);
	tcase_add_test(in, read_by_a_device_where_all_is_registered);
	tcase_add_test(in, asked_for_elsewhere);
	suite_add_tcase(suite, out);
	suite_add_tcase(suite, in);
	return suite_run(suite);
}
