/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_cq(3), fi_cntr(3), fi_eq(3) and fi_poll(3) forbid. */
#include "obj.h"
#include "lib/rig.h"
#include "lib/misuse.h"

#define CQ(b)   ((b)->r.o.cq)
#define CNTR(b) ((b)->r.sent)

/* ---- fi_cq ---- */

static ssize_t cq_with(struct bench *b, struct fi_cq_attr attr)
{
	ssize_t ret = fi_cq_open(DOMAIN(b), &attr, &b->out.cq, NULL);

	if (!ret)
		CLOSE(b->out.cq);
	return ret;
}

static ssize_t cq_no_attr(struct bench *b)
{
	ssize_t ret = fi_cq_open(DOMAIN(b), NULL, &b->out.cq, NULL);

	if (!ret)
		CLOSE(b->out.cq);
	return ret;
}

MISUSE(cq_without_attr, ANY, cq_no_attr(b));
MISUSE(cq_no_result, REFUSED, fi_cq_open(DOMAIN(b), &(struct fi_cq_attr){0}, NULL, NULL));
MISUSE(cq_format, REFUSED, cq_with(b, (struct fi_cq_attr){.format = 99}));
MISUSE(cq_negative_format, REFUSED, cq_with(b, (struct fi_cq_attr){.format = -1}));
MISUSE(cq_wait_object, REFUSED, cq_with(b, (struct fi_cq_attr){.wait_obj = 99}));
MISUSE(cq_no_wait_set, REFUSED, cq_with(b, (struct fi_cq_attr){.wait_obj = FI_WAIT_SET}));
MISUSE(cq_wait_set_of_class, REFUSED,
       cq_with(b, (struct fi_cq_attr){.wait_obj = FI_WAIT_SET, .wait_set = (void *)b->eq}));
MISUSE(cq_wait_condition, ANY, cq_with(b, (struct fi_cq_attr){.wait_cond = 99}));
MISUSE(cq_flags, ANY, cq_with(b, (struct fi_cq_attr){.flags = UINT64_C(1) << 50}));
MISUSE(cq_size, ANY, cq_with(b, (struct fi_cq_attr){.size = SIZE_MAX}));
MISUSE(cq_vector, ANY,
       cq_with(b, (struct fi_cq_attr){.flags = FI_AFFINITY, .signaling_vector = -5}));
MISUSE(cq_read_nowhere, CHECKED(-FI_EINVAL), fi_cq_read(CQ(b), NULL, 1));
MISUSE(cq_readfrom_nowhere, CHECKED(-FI_EINVAL), fi_cq_readfrom(CQ(b), NULL, 1, &b->out.addr));
MISUSE(cq_read_nothing, -FI_EAGAIN, fi_cq_read(CQ(b), b->bytes, 0));
MISUSE(cq_readerr_nowhere, REFUSED, fi_cq_readerr(CQ(b), NULL, 0));
MISUSE(cq_readerr_none, -FI_EAGAIN, fi_cq_readerr(CQ(b), &(struct fi_cq_err_entry){0}, 0));
MISUSE(cq_readerr_flags, ANY, fi_cq_readerr(CQ(b), &(struct fi_cq_err_entry){0}, ~UINT64_C(0)));
MISUSE(cq_sread_without_wait, REFUSED, fi_cq_sread(CQ(b), b->bytes, 1, NULL, 0));
MISUSE(cq_sreadfrom_without_wait, REFUSED,
       fi_cq_sreadfrom(CQ(b), b->bytes, 1, &b->out.addr, NULL, 0));
MISUSE(cq_signal_without_wait, ANY, fi_cq_signal(CQ(b)));
MISUSE(cq_strerror_nowhere, FINE, (fi_cq_strerror(CQ(b), -99999, NULL, NULL, 0), 0));
MISUSE(cq_strerror_no_space, FINE, (fi_cq_strerror(CQ(b), 5, NULL, b->bytes, 0), 0));
MISUSE(cq_strerror_no_buffer, FINE, (fi_cq_strerror(CQ(b), 5, NULL, NULL, 9), 0));

/* A queue that has something to tell, with nowhere to put it. */
static ssize_t with_entries(struct bench *b, int what)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = {.err_data_size = 64};
	ssize_t ret = 0;

	OK(fi_trecv(EP(b), b->bytes, 8, NULL, FI_ADDR_UNSPEC, 3, 0, b));
	if (what == 2) {
		OK(fi_cancel(&EP(b)->fid, b));
		OBJ_UNTIL(fi_cq_read(CQ(b), &entry, 1) == -FI_EAVAIL, );
		ret = fi_cq_readerr(CQ(b), NULL, 0);
		CHECK_EQ(fi_cq_readerr(CQ(b), &err, 0), 1);
		return ret;
	}
	POST(CQ(b), fi_tinject(EP(b), "xxxxxxx", 8, b->r.self, 3));
	rig_counts(b->r.received, 1, 0);
	ret = what ? fi_cq_readfrom(CQ(b), NULL, 1, NULL) : fi_cq_read(CQ(b), NULL, 1);
	CHECK_EQ(fi_cq_readfrom(CQ(b), &entry, 1, NULL), 1);
	return ret;
}

MISUSE(cq_read_entry_nowhere, CHECKED(-FI_EINVAL), with_entries(b, 0));
MISUSE(cq_readfrom_entry_nowhere, CHECKED(-FI_EINVAL), with_entries(b, 1));
MISUSE(cq_readerr_entry_nowhere, REFUSED, with_entries(b, 2));

/* ---- fi_cntr ---- */

static ssize_t cntr_with(struct bench *b, struct fi_cntr_attr *attr)
{
	ssize_t ret = fi_cntr_open(DOMAIN(b), attr, &b->out.cntr, NULL);

	if (!ret)
		CLOSE(b->out.cntr);
	return ret;
}

MISUSE(cntr_without_attr, ANY, cntr_with(b, NULL));
MISUSE(cntr_no_result, REFUSED, fi_cntr_open(DOMAIN(b), NULL, NULL, NULL));
MISUSE(cntr_events, REFUSED, cntr_with(b, &(struct fi_cntr_attr){.events = 99}));
MISUSE(cntr_wait_object, REFUSED, cntr_with(b, &(struct fi_cntr_attr){.wait_obj = 99}));
MISUSE(cntr_no_wait_set, REFUSED, cntr_with(b, &(struct fi_cntr_attr){.wait_obj = FI_WAIT_SET}));
MISUSE(cntr_wait_set_of_class, REFUSED,
       cntr_with(b, &(struct fi_cntr_attr){.wait_obj = FI_WAIT_SET, .wait_set = (void *)b->eq}));
MISUSE(cntr_flags, ANY, cntr_with(b, &(struct fi_cntr_attr){.flags = UINT64_C(1) << 50}));
MISUSE(cntr_wait_without_wait, REFUSED, fi_cntr_wait(CNTR(b), 5, 0));

/* ---- fi_eq ---- */

static ssize_t eq_with(struct bench *b, struct fi_eq_attr *attr)
{
	ssize_t ret = fi_eq_open(b->r.o.fabric, attr, &b->out.eq, NULL);

	if (!ret)
		CLOSE(b->out.eq);
	return ret;
}

MISUSE(eq_without_attr, ANY, eq_with(b, NULL));
MISUSE(eq_no_result, REFUSED, fi_eq_open(b->r.o.fabric, &(struct fi_eq_attr){0}, NULL, NULL));
MISUSE(eq_wait_object, REFUSED, eq_with(b, &(struct fi_eq_attr){.wait_obj = 99}));
MISUSE(eq_no_wait_set, REFUSED, eq_with(b, &(struct fi_eq_attr){.wait_obj = FI_WAIT_SET}));
MISUSE(eq_wait_set_of_class, REFUSED,
       eq_with(b, &(struct fi_eq_attr){.wait_obj = FI_WAIT_SET, .wait_set = (void *)b->eq}));
MISUSE(eq_flags, ANY, eq_with(b, &(struct fi_eq_attr){.flags = UINT64_C(1) << 50}));

static ssize_t eq_with_event(struct bench *b, int what)
{
	struct fi_eq_entry entry = {.fid = &EP(b)->fid}, got;
	uint32_t event = 0;
	ssize_t ret = 0;

	CHECK_EQ(fi_eq_write(b->eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	switch (what) {
	case 0:
		ret = fi_eq_read(b->eq, NULL, &got, sizeof(got), FI_PEEK);
		break;
	case 1:
		ret = fi_eq_read(b->eq, &event, NULL, sizeof(got), FI_PEEK);
		break;
	case 2:
		ret = fi_eq_read(b->eq, &event, &got, 1, 0);
		break;
	case 3:
		ret = fi_eq_sread(b->eq, NULL, &got, sizeof(got), 0, FI_PEEK);
		break;
	case 4:
		ret = fi_eq_read(b->eq, &event, NULL, 0, FI_PEEK);
		break;
	}
	return ret;
}

MISUSE(eq_read_no_event, ANY, eq_with_event(b, 0));
MISUSE(eq_read_nowhere, REFUSED, eq_with_event(b, 1));
MISUSE(eq_read_short, -FI_ETOOSMALL, eq_with_event(b, 2));
MISUSE(eq_sread_no_event, ANY, eq_with_event(b, 3));
MISUSE(eq_peek_nowhere, ANY, eq_with_event(b, 4));
MISUSE(eq_read_flags, ANY, fi_eq_read(b->eq, &b->out.event, b->bytes, 64, ~UINT64_C(0)));
MISUSE(eq_readerr_nowhere, REFUSED, fi_eq_readerr(b->eq, NULL, 0));
MISUSE(eq_write_nothing, REFUSED, fi_eq_write(b->eq, FI_NOTIFY, NULL, 16, 0));
MISUSE(eq_write_flags, REFUSED, fi_eq_write(b->eq, FI_NOTIFY, b->bytes, 16, UINT64_C(1) << 50));
MISUSE(eq_write_much, REFUSED, fi_eq_write(b->eq, FI_NOTIFY, b->bytes, SIZE_MAX, 0));
MISUSE(eq_strerror_nowhere, FINE, (fi_eq_strerror(b->eq, -99999, NULL, NULL, 0), 0));
MISUSE(eq_strerror_no_buffer, FINE, (fi_eq_strerror(b->eq, 5, NULL, NULL, 9), 0));

static ssize_t eq_kind(struct bench *b, uint64_t flags, enum fi_wait_obj wait, int what)
{
	struct fi_eq_attr attr = {.wait_obj = wait, .flags = flags};
	struct fid_eq *eq;
	ssize_t ret;

	OK(fi_eq_open(b->r.o.fabric, &attr, &eq, NULL));
	ret = what ? fi_eq_sread(eq, &b->out.event, b->bytes, 64, 0, 0)
		   : fi_eq_write(eq, FI_NOTIFY, b->bytes, 16, 0);
	CLOSE(eq);
	return ret;
}

MISUSE(eq_write_not_asked_for, ANY, eq_kind(b, 0, FI_WAIT_UNSPEC, 0));
MISUSE(eq_sread_without_wait, REFUSED, eq_kind(b, 0, FI_WAIT_NONE, 1));

/* ---- fi_poll, fi_wait, fi_trywait ---- */

MISUSE(poll_no_attr, ANY, ({
	       int ret = fi_poll_open(DOMAIN(b), NULL, &b->out.polls);
	       if (!ret)
		       CLOSE(b->out.polls);
	       ret;
       }));
MISUSE(poll_no_result, REFUSED, fi_poll_open(DOMAIN(b), &(struct fi_poll_attr){0}, NULL));
MISUSE(poll_attr_flags, REFUSED,
       fi_poll_open(DOMAIN(b), &(struct fi_poll_attr){.flags = 1}, &b->out.polls));
MISUSE(poll_add_nothing, REFUSED, fi_poll_add(b->polls, NULL, 0));
MISUSE(poll_add_endpoint, REFUSED, fi_poll_add(b->polls, &EP(b)->fid, 0));
MISUSE(poll_add_itself, REFUSED, fi_poll_add(b->polls, &b->polls->fid, 0));
MISUSE(poll_add_flags, REFUSED, fi_poll_add(b->polls, &CQ(b)->fid, 1));
MISUSE(poll_add_foreign, ANY, fi_poll_add(b->polls, &b->other.cq->fid, 0));
MISUSE(poll_del_nothing, REFUSED, fi_poll_del(b->polls, NULL, 0));
MISUSE(poll_del_unknown, REFUSED, fi_poll_del(b->polls, &CQ(b)->fid, 0));
MISUSE(poll_nowhere, REFUSED, fi_poll(b->polls, NULL, 1));
MISUSE(poll_negative, ANY, fi_poll(b->polls, (void **)(void *)b->bytes, -1));
MISUSE(poll_none, ANY, fi_poll(b->polls, NULL, 0));

static ssize_t poll_ready(struct bench *b)
{
	ssize_t ret;

	OK(fi_poll_add(b->polls, &CNTR(b)->fid, 0));
	OK(fi_cntr_add(CNTR(b), 1));
	ret = fi_poll(b->polls, NULL, 1);
	OK(fi_poll_del(b->polls, &CNTR(b)->fid, 0));
	return ret;
}

static ssize_t poll_member_twice(struct bench *b)
{
	ssize_t ret;

	OK(fi_poll_add(b->polls, &CQ(b)->fid, 0));
	ret = fi_poll_add(b->polls, &CQ(b)->fid, 0);
	OK(fi_poll_del(b->polls, &CQ(b)->fid, 0));
	fi_poll_del(b->polls, &CQ(b)->fid, 0);
	return ret;
}

MISUSE(poll_ready_nowhere, REFUSED, poll_ready(b));
MISUSE(poll_twice, ANY, poll_member_twice(b));
MISUSE(wait_no_result, REFUSED,
       fi_wait_open(b->r.o.fabric, &(struct fi_wait_attr){.wait_obj = FI_WAIT_FD}, NULL));
MISUSE(wait_no_attr, ANY, ({
	       int ret = fi_wait_open(b->r.o.fabric, NULL, &b->out.waits);
	       if (!ret)
		       CLOSE(b->out.waits);
	       ret;
       }));
MISUSE(wait_object, REFUSED,
       fi_wait_open(b->r.o.fabric, &(struct fi_wait_attr){.wait_obj = 99}, &b->out.waits));
MISUSE(wait_of_set, REFUSED,
       fi_wait_open(b->r.o.fabric, &(struct fi_wait_attr){.wait_obj = FI_WAIT_SET}, &b->out.waits));
MISUSE(trywait_nothing, REFUSED, fi_trywait(b->r.o.fabric, NULL, 1));
MISUSE(trywait_negative, ANY, fi_trywait(b->r.o.fabric, NULL, -1));
MISUSE(trywait_none, FINE, fi_trywait(b->r.o.fabric, NULL, 0));
MISUSE(trywait_no_object, REFUSED, fi_trywait(b->r.o.fabric, (struct fid *[]){NULL}, 1));
MISUSE(trywait_endpoint, REFUSED, fi_trywait(b->r.o.fabric, (struct fid *[]){&EP(b)->fid}, 1));
MISUSE(trywait_foreign, ANY, fi_trywait(b->r.o.fabric, (struct fid *[]){&b->other.cq->fid}, 1));
MISUSE(trywait_without_wait, ANY, fi_trywait(b->r.o.fabric, (struct fid *[]){&CQ(b)->fid}, 1));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
