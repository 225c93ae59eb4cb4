/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a suite. Returns main's exit status: 0 if all tests passed. */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>

static inline int suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
