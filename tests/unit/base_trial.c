/* SPDX-License-Identifier: BSD-2-Clause */
#include "suite.h"

#include "base/trial.h"

START_TEST(useless_ones_double_up_to_a_bound)
{
	struct trial t = {0};
	unsigned int last = 0;

	for (int i = 0; i < 5; i++) {
		trial_judge(&t, false);
		ck_assert_uint_eq(t.skip, 2 * last + 1);
		last = t.skip;
	}
	for (int i = 0; i < 40; i++)
		trial_judge(&t, false);
	ck_assert_uint_eq(t.skip, TRIAL_SKIP_MAX);
}
END_TEST

START_TEST(a_useful_one_ends_it)
{
	struct trial t = {0};

	for (int i = 0; i < 3; i++)
		trial_judge(&t, false);
	trial_judge(&t, true);
	ck_assert_uint_eq(t.skip, 0);
	trial_judge(&t, false);
	ck_assert_uint_eq(t.skip, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_trial");
	TCase *trial = tcase_create("trial");

	tcase_add_test(trial, useless_ones_double_up_to_a_bound);
	tcase_add_test(trial, a_useful_one_ends_it);
	suite_add_tcase(suite, trial);
	return suite_run(suite);
}
