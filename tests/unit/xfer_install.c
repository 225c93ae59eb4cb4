/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that an endpoint's tables, filled again, refuse no call of another thread meanwhile. */
#include <pthread.h>
#include <stdbool.h>

#include "core/domain.h"
#include "core/ep.h"
#include "xfer/engine.h"
#include "suite.h"
#include "xfer/entry/entry_tables.h"

#define TIMES 3000000

static struct fi_ep_attr ep_attr = {.type = FI_EP_RDM};
static struct fi_info info = {.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV |
				      FI_READ | FI_WRITE,
			      .ep_attr = &ep_attr};
static struct domain dom;
static struct ep ep;
static const struct xfer_roles all = {.sends = true, .receives = true, .initiates = true};

static void setup(void)
{
	ep.dom = &dom;
	ep.info = &info;
	ep.base = &ep;
	ck_assert_int_eq(xfer_tables(&ep), 0);
}

START_TEST(by_role)
{
	ck_assert_ptr_eq(ep.fid.msg->send, refuse_state.msg.send);
	xfer_install(&ep, &(struct xfer_roles){.receives = true});
	ck_assert_ptr_eq(ep.fid.msg->send, refuse_support.msg.send);
	ck_assert_ptr_eq(ep.fid.msg->recv, entry_mt.msg->recv);
	ck_assert_ptr_eq(ep.fid.rma->read, refuse_support.rma.read);
	xfer_install(&ep, &all);
	ck_assert_ptr_eq(ep.fid.msg->send, entry_mt.msg->send);
	ck_assert_ptr_eq(ep.fid.rma->read, entry_rma_mt.read);
	ck_assert_uint_eq(ep.fid.atomic->size, sizeof(struct fi_ops_atomic));
}
END_TEST

static bool done;

static void *install(void *unused)
{
	(void)unused;
	for (int i = 0; i < TIMES; i++)
		xfer_install(&ep, &all);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE); /* pairs with again */
	return NULL;
}

START_TEST(again)
{
	size_t others = 0;
	pthread_t thread;

	xfer_install(&ep, &all);
	ck_assert_int_eq(pthread_create(&thread, NULL, install, NULL), 0);
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) { /* pairs with install */
		others +=
			__atomic_load_n(&ep.fid.msg->send, __ATOMIC_RELAXED) != entry_mt.msg->send;
		others += __atomic_load_n(&ep.fid.rma->read, __ATOMIC_RELAXED) != entry_rma_mt.read;
	}
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(others, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_install");
	TCase *tcase = tcase_create("tables");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, by_role);
	tcase_add_test(tcase, again);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
