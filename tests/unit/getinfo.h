/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of fi_getinfo for the tests of src/info: every test has fresh hints and a fresh list. */
#ifndef WEFT_TESTS_GETINFO_H
#define WEFT_TESTS_GETINFO_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define NOW          FI_VERSION(2, 6)
#define BASIC        (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct fi_info *hints, *list;

static inline void setup(void)
{
	hints = fi_allocinfo();
	list = NULL;
}

static inline void teardown(void)
{
	fi_freeinfo(hints);
	fi_freeinfo(list);
}

/* Calls fi_getinfo without node and service. If it fails, checks that the list is NULL. */
static inline int ask(uint32_t version)
{
	int ret;

	fi_freeinfo(list);
	list = (struct fi_info *)(uintptr_t)1;
	ret = fi_getinfo(version, NULL, NULL, 0, hints, &list);
	if (ret)
		ck_assert_ptr_null(list);
	return ret;
}

static inline void ask_for(const char *prov_name)
{
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = prov_name ? strdup(prov_name) : NULL;
}

static inline int found(const char *prov_name)
{
	ask_for(prov_name);
	return ask(NOW);
}

static inline void first_is(const char *prov_name)
{
	ck_assert_str_eq(list->fabric_attr->prov_name, prov_name);
}

static inline TCase *new_case(const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, teardown);
	return tc;
}

/* Runs the suite without the user's settings. Returns main's exit status. */
static inline int run(Suite *suite)
{
	unsetenv("FI_PROVIDER");
	unsetenv("FI_TCP_IFACE");
	return suite_run(suite);
}

#endif
