/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a suite; the rate of messages has no limit but one that the test has set. Returns main's exit status: 0 if all tests passed. */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	setenv("FI_LOG_INTERVAL", "0", 0);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
