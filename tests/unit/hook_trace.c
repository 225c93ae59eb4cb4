/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which calls a trace shows, and when: in the log, as the layer that FI_HOOK names. */
#include "hook/layers.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hook/hook.h"
#include "suite.h"

/* ---- The log ---------------------------------------------------------------------------------- */

#define LINES 16

static char lines[LINES][512];
static int count;                /* of lines */
static struct fid_cntr *reading; /* the log reads this counter, or NULL */

static bool always(const char *prov, int level, int subsys)
{
	(void)subsys;
	return strcmp(prov, "ofi_hook_trace") == 0 && level == FI_LOG_TRACE;
}

static bool never_ready(const char *prov, int level, int subsys, uint64_t *showtime)
{
	(void)prov;
	(void)level;
	(void)subsys;
	(void)showtime;
	return false;
}

static void keep(const struct log_place *place, const char *msg)
{
	ck_assert_int_lt(count, LINES);
	snprintf(lines[count++], sizeof(lines[0]), "%s: %s", place->func, msg);
	if (reading)
		reading->ops->read(reading);
}

static const struct log_sink sink = {always, never_ready, keep};

/* ---- Objects of a provider that does nothing -------------------------------------------------- */

static ssize_t answer; /* of the next calls */
static uint64_t counted;

static int no_close(struct fid *fid)
{
	(void)fid;
	return 0;
}

/* The message belongs to another thread as soon as it is sent. */
static ssize_t sendmsg_spoils(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct fi_msg *gone = (struct fi_msg *)msg;

	(void)ep;
	(void)flags;
	gone->addr = 99;
	gone->iov_count = 0;
	return answer;
}

static ssize_t send_nothing(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    fi_addr_t dest_addr, void *context)
{
	(void)ep;
	(void)buf;
	(void)len;
	(void)desc;
	(void)dest_addr;
	(void)context;
	return answer;
}

static ssize_t recvmsg_nothing(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	(void)ep;
	(void)msg;
	(void)flags;
	return answer;
}

static ssize_t fetch_nothing(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     struct fi_ioc *resultv, void **result_desc, size_t result_count,
			     fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void)ep;
	(void)iov;
	(void)desc;
	(void)count;
	(void)resultv;
	(void)result_desc;
	(void)result_count;
	(void)dest_addr;
	(void)addr;
	(void)key;
	(void)datatype;
	(void)op;
	(void)context;
	return answer;
}

static ssize_t fetchmsg_nothing(struct fid_ep *ep, const struct fi_msg_atomic *msg,
				struct fi_ioc *resultv, void **result_desc, size_t result_count,
				uint64_t flags)
{
	(void)ep;
	(void)msg;
	(void)resultv;
	(void)result_desc;
	(void)result_count;
	(void)flags;
	return answer;
}

static uint64_t read_counter(struct fid_cntr *cntr)
{
	(void)cntr;
	return counted;
}

static ssize_t write_nothing(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			     uint64_t flags)
{
	(void)eq;
	(void)event;
	(void)buf;
	(void)len;
	(void)flags;
	return answer;
}

static struct fi_ops fid_ops = {.size = sizeof(struct fi_ops), .close = no_close};
static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg), .send = send_nothing, .sendmsg = sendmsg_spoils};
static struct fi_ops_tagged tagged_ops = {.size = sizeof(struct fi_ops_tagged),
					  .recvmsg = recvmsg_nothing};
static struct fi_ops_atomic atomic_ops = {.size = sizeof(struct fi_ops_atomic),
					  .readwritev = fetch_nothing,
					  .readwritemsg = fetchmsg_nothing};
static struct fi_ops_cntr cntr_ops = {.size = sizeof(struct fi_ops_cntr), .read = read_counter};
static struct fi_ops_eq eq_ops = {.size = sizeof(struct fi_ops_eq), .write = write_nothing};

static struct fid_fabric fabric = {.fid = {FI_CLASS_FABRIC, NULL, &fid_ops}};
static struct fid_ep ep;
static struct fid_eq eq;
static struct fid_cntr cntr, other;

static void setup(void)
{
	setenv("FI_HOOK", "trace;trace", 1);
	unsetenv("FI_WEFT_TRACE_FILE");
	log_redirect(&sink);
	hook_fabric(&fabric);
	ep = (struct fid_ep){.fid = {FI_CLASS_EP, NULL, &fid_ops},
			     .msg = &msg_ops,
			     .tagged = &tagged_ops,
			     .atomic = &atomic_ops};
	cntr = (struct fid_cntr){.fid = {FI_CLASS_CNTR, NULL, &fid_ops}, .ops = &cntr_ops};
	other = cntr;
	eq = (struct fid_eq){.fid = {FI_CLASS_EQ, NULL, &fid_ops}, .ops = &eq_ops};
	hook_object(&ep.fid);
	hook_object(&eq.fid);
	hook_object(&cntr.fid);
	hook_object(&other.fid);
}

static void send_one(ssize_t result)
{
	answer = result;
	ck_assert_int_eq(ep.msg->send(&ep, "x", 1, NULL, 7, NULL), result);
}

static bool says(int line, const char *words)
{
	ck_assert_int_lt(line, count);
	return strstr(lines[line], words) != NULL;
}

/* ---- Tests ------------------------------------------------------------------------------------ */

START_TEST(each_call)
{
	send_one(0);
	send_one(0);
	ck_assert_int_eq(count, 2);
	ck_assert(says(1, "fi_send: ep 0x"));
	ck_assert(says(1, ", len 1, desc NULL, dest_addr 0x7, context NULL = 0, "));
	ck_assert_int_eq(ep.fid.ops->close(&ep.fid), 0);
	ck_assert(says(2, "fi_close: fid 0x"));
}
END_TEST

START_TEST(before_the_call)
{
	struct iovec iov[2] = {{NULL, 30}, {NULL, 12}};
	struct fi_msg msg = {.msg_iov = iov, .iov_count = 2, .addr = 5};

	answer = 0;
	ck_assert_int_eq(ep.msg->sendmsg(&ep, &msg, 0), 0);
	ck_assert(says(0, ", bytes 42, addr 0x5, "));
	ck_assert_uint_eq(msg.addr, 99);
}
END_TEST

#define STALE ((void *)8) /* no memory is there */

/* Segments that a call has no use for are not read. */
START_TEST(stale_buffers)
{
	struct fi_msg_tagged msg = {.msg_iov = STALE, .iov_count = 1, .tag = 6};

	answer = -FI_ENOMSG;
	ep.tagged->recvmsg(&ep, &msg, FI_PEEK);
	ck_assert(says(0, ", bytes 0, "));
	ep.tagged->recvmsg(&ep, &msg, FI_CLAIM | FI_DISCARD);
	ck_assert(says(1, ", bytes 0, "));
	msg.msg_iov = &(struct iovec){NULL, 11};
	ep.tagged->recvmsg(&ep, &msg, FI_CLAIM);
	ck_assert(says(2, ", bytes 11, "));
}
END_TEST

START_TEST(stale_operands)
{
	struct fi_ioc two[2] = {{NULL, 3}, {NULL, 4}};
	struct fi_msg_atomic msg = {
		.msg_iov = STALE, .iov_count = 2, .datatype = FI_UINT32, .op = FI_ATOMIC_READ};

	answer = 0;
	ep.atomic->readwritev(&ep, STALE, NULL, 2, two, NULL, 2, 0, 0, 0, FI_UINT32, FI_ATOMIC_READ,
			      NULL);
	ck_assert(says(0, ", bytes 28, "));
	ep.atomic->readwritemsg(&ep, &msg, two, NULL, 2, 0);
	ck_assert(says(1, ", bytes 28, "));
	msg.msg_iov = two;
	msg.op = FI_SUM;
	ep.atomic->readwritemsg(&ep, &msg, STALE, NULL, 2, 0);
	ck_assert(says(2, ", bytes 28, "));
}
END_TEST

START_TEST(polls)
{
	for (int i = 0; i < 1000; i++)
		send_one(-FI_EAGAIN);
	ck_assert_int_eq(count, 1);
	send_one(0);
	ck_assert_int_eq(count, 3);
	ck_assert(says(1, ", times 999 = -11 ("));
	ck_assert(says(2, " = 0, "));
	send_one(-FI_EAGAIN);
	send_one(-FI_EINVAL);
	send_one(-FI_EINVAL);
	ck_assert_int_eq(count, 6);
}
END_TEST

/* Of another counter, or with another value, it is not the same call again. */
START_TEST(counters)
{
	counted = 3;
	for (int i = 0; i < 10; i++)
		cntr.ops->read(&cntr);
	ck_assert_int_eq(count, 1);
	counted = 4;
	cntr.ops->read(&cntr);
	ck_assert_int_eq(count, 3);
	ck_assert(says(1, ", times 9 = 3, "));
	ck_assert(says(2, " = 4, "));
	other.ops->read(&other);
	ck_assert_int_eq(count, 4);
}
END_TEST

/* The object comes first: by it a call is known as the same call again. */
START_TEST(object_first)
{
	answer = -FI_EAGAIN;
	for (int i = 0; i < 10; i++)
		eq.ops->write(&eq, FI_NOTIFY, NULL, 0, 0);
	send_one(0);
	ck_assert_int_eq(count, 3);
	ck_assert(says(0, "fi_eq_write: eq 0x"));
	ck_assert(says(0, ", event FI_NOTIFY, buf NULL, len 0, flags 0 = -11 ("));
	ck_assert(says(1, "fi_eq_write: eq 0x"));
}
END_TEST

START_TEST(of_the_log)
{
	reading = &cntr;
	send_one(0);
	send_one(0);
	ck_assert_int_eq(count, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hook_trace");
	TCase *tcase = tcase_create("trace");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, each_call);
	tcase_add_test(tcase, before_the_call);
	tcase_add_test(tcase, stale_buffers);
	tcase_add_test(tcase, stale_operands);
	tcase_add_test(tcase, polls);
	tcase_add_test(tcase, counters);
	tcase_add_test(tcase, object_first);
	tcase_add_test(tcase, of_the_log);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
