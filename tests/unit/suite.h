/* SPDX-License-Identifier: BSD-2-Clause */
/* What every suite has: the end of main, where it is run and what came of it is the status; is this valgrind? */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline int suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

static inline bool suite_in_valgrind(void)
{
	const char *loaded = getenv("LD_PRELOAD");

	return loaded && strstr(loaded, "vgpreload");
}

#endif
