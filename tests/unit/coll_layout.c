/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that layouts tell right which members share a host. */
#include "coll/plan/plan.h"
#include "suite.h"

#include <string.h>

static uint64_t named(void *arg, uint32_t rank)
{
	return ((const unsigned char *)arg)[rank];
}

/* `hosts` has a letter for each rank's host. */
static const struct {
	const char *hosts;
	uint32_t count, each;
	const char *in_order; /* ranks sorted by host; NULL: already sorted */
} layouts[] = {
	{"z", 1, 1, NULL},          {"zzz", 1, 3, NULL},   {"cba", 3, 1, NULL},
	{"ccaabb", 3, 2, NULL},     {"ccaab", 3, 0, NULL}, {"cabcab", 3, 2, "031425"},
	{"xaaxxb", 3, 0, "034125"}, {"aba", 2, 0, "021"},
};

START_TEST(layout)
{
	const char *hosts = layouts[_i].hosts, *order = layouts[_i].in_order;
	uint32_t size = (uint32_t)strlen(hosts);

	for (uint32_t rank = 0; rank < size; rank++) {
		struct layout *l = layout_make(rank, size, named, (void *)(uintptr_t)hosts);
		uint32_t place = 0;

		ck_assert_ptr_nonnull(l);
		ck_assert_uint_eq(l->hosts, layouts[_i].count);
		ck_assert_uint_eq(l->each, layouts[_i].each);
		ck_assert_int_eq(l->order == NULL, order == NULL);
		ck_assert_int_eq(hosts[layout_rank(l, l->first[l->mine])], hosts[rank]);
		for (uint32_t h = 0; h < l->hosts; h++)
			for (uint32_t i = 0; i < layout_here(l, h); i++, place++) {
				uint32_t there = layout_rank(l, place);

				ck_assert_uint_eq(there,
						  order ? (uint32_t)(order[place] - '0') : place);
				ck_assert_uint_eq(layout_place(l, there), place);
				ck_assert_uint_eq(layout_host_at(l, place), h);
				ck_assert_int_eq(hosts[there], hosts[layout_rank(l, l->first[h])]);
			}
		ck_assert_uint_eq(place, size);
		layout_free(l);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_layout");
	TCase *tcase = tcase_create("layout");

	tcase_add_loop_test(tcase, layout, 0, sizeof(layouts) / sizeof(layouts[0]));
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
