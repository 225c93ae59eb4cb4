/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues, poll sets and fi_trywait. fi_eq(3), fi_poll(3). */
#include <pthread.h>

#include "obj.h"

static struct fid_eq *open_eq(struct obj *o, enum fi_wait_obj wait, struct fid_wait *set)
{
	struct fi_eq_attr attr = {.wait_obj = wait, .wait_set = set, .flags = FI_WRITE};
	struct fid_eq *eq;

	OK(fi_eq_open(o->fabric, &attr, &eq, NULL));
	return eq;
}

static void write_event(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_entry entry = {.fid = &eq->fid, .data = data};

	CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
}

/* Written events are read in order; FI_PEEK leaves an event in the queue. */
static void eq_events(struct api *a)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	struct obj o = {0};
	struct fid_eq *eq;
	uint32_t event = 0;

	(void)a;
	obj_domain(&o);
	eq = open_eq(&o, FI_WAIT_UNSPEC, NULL);
	CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	CHECK_EQ(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	for (uint64_t n = 0; n < 5; n++)
		write_event(eq, n);
	CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
	CHECK_EQ(entry.data, 0);
	for (uint64_t n = 0; n < 5; n++) {
		CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), n % 2 ? 0 : 1000, 0),
			 sizeof(entry));
		CHECK_EQ(event, FI_NOTIFY);
		CHECK_EQ(entry.data, n);
		CHECK(entry.fid == &eq->fid);
	}
	CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), 20, 0), -FI_EAGAIN);
	CLOSE(eq);
	obj_close(&o);
}

static void *write_later(void *eq)
{
	obj_sleep_us(50000);
	write_event(eq, 77);
	return NULL;
}

static void eq_wakes(struct api *a)
{
	static const enum fi_wait_obj kinds[] = {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND,
						 FI_WAIT_YIELD};
	struct fi_eq_entry entry;
	struct obj o = {0};
	pthread_t thread;
	uint32_t event;

	(void)a;
	obj_domain(&o);
	for (size_t i = 0; i < API_COUNT(kinds); i++) {
		struct fi_eq_attr attr = {.wait_obj = kinds[i], .flags = FI_WRITE};
		struct fid_eq *eq;

		if (fi_eq_open(o.fabric, &attr, &eq, NULL) && api_other())
			continue;
		CHECK(pthread_create(&thread, NULL, write_later, eq) == 0);
		CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
		CHECK_EQ(entry.data, 77);
		pthread_join(thread, NULL);
		CLOSE(eq);
	}
	obj_close(&o);
}

/* A queue of a wait set can be waited for by itself, too. */
static void eq_in_set(struct api *a)
{
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_entry entry;
	struct fid_wait *set;
	struct obj o = {0};
	struct fid_eq *eq;
	pthread_t thread;
	uint32_t event;

	(void)a;
	if (api_other())
		api_skip("what the manual forbids works in ours");
	obj_domain(&o);
	OK(fi_wait_open(o.fabric, &attr, &set));
	eq = open_eq(&o, FI_WAIT_SET, set);
	CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), 10, 0), -FI_EAGAIN);
	CHECK(pthread_create(&thread, NULL, write_later, eq) == 0);
	CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	CHECK_EQ(entry.data, 77);
	pthread_join(thread, NULL);
	CLOSE(eq);
	CLOSE(set);
	obj_close(&o);
}

static void trywait_codes(struct api *a)
{
	struct obj o = {0};
	struct fid *fids[2];
	struct pollfd p = {.events = POLLIN};
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	uint32_t event;
	fi_addr_t self;
	int got, word = 1;

	(void)a;
	obj_domain(&o);
	o.cq = obj_cq(&o, FI_WAIT_FD);
	obj_open(&o);
	eq = open_eq(&o, FI_WAIT_FD, NULL);
	fids[0] = &o.cq->fid;
	fids[1] = &eq->fid;
	self = obj_insert_ep(o.av, o.ep);
	OBJ_UNTIL(fi_trywait(o.fabric, fids, 2) == 0, fi_cq_read(o.cq, NULL, 0));
	/* fi_trywait refuses a sleep if one of the queues has an entry. */
	write_event(eq, 1);
	CHECK_EQ(fi_trywait(o.fabric, fids, 2), -FI_EAGAIN);
	CHECK_EQ(fi_trywait(o.fabric, fids + 1, 1), -FI_EAGAIN);
	CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	OK(fi_trywait(o.fabric, fids + 1, 1));
	OK(fi_control(fids[1], FI_GETWAIT, &p.fd));
	write_event(eq, 2);
	CHECK_EQ(poll(&p, 1, 1000), 1);
	OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	POST(o.cq, fi_inject(o.ep, &word, sizeof(word), self));
	OBJ_UNTIL(fi_trywait(o.fabric, fids, 1) == -FI_EAGAIN && fi_cq_read(o.cq, &e, 1) == 1, );
	OBJ_UNTIL(fi_trywait(o.fabric, fids, 1) == 0, );
	CLOSE(eq);
	obj_close(&o);
}

/* fi_poll drives the members of a poll set and returns those with news. */
static void poll_set(struct api *a)
{
	struct fi_poll_attr attr = {0};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct obj o = {0};
	struct fid_cq *other;
	struct fid_cntr *cntr;
	struct fid_poll *set;
	bool cq_seen = false, cntr_seen = false;
	void *found[4] = {0};
	fi_addr_t self;
	int got, word = 5, n;

	(void)a;
	obj_domain(&o);
	OK(fi_cq_open(o.domain, &cq_attr, &o.cq, &o));
	OK(fi_cq_open(o.domain, &cq_attr, &other, &other));
	OK(fi_cntr_open(o.domain, &(struct fi_cntr_attr){0}, &cntr, &cntr));
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.ep = obj_ep(&o);
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(o.ep, &cntr->fid, FI_RECV));
	OK(fi_enable(o.ep));
	OK(fi_poll_open(o.domain, &attr, &set));
	OK(fi_poll_add(set, &o.cq->fid, 0));
	OK(fi_poll_add(set, &other->fid, 0));
	OK(fi_poll_add(set, &cntr->fid, 0));
	CHECK_EQ(fi_poll(set, found, 4), 0);
	self = obj_insert_ep(o.av, o.ep);
	OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	while (fi_inject(o.ep, &word, sizeof(word), self) == -FI_EAGAIN)
		fi_poll(set, found, 4);
	/* Both have news, reported together or one after the other. */
	OBJ_UNTIL(
		cq_seen && cntr_seen, n = fi_poll(set, found, 4); for (int i = 0; i < n; i++) {
			CHECK(found[i] == &o || found[i] == &cntr);
			*(found[i] == &o ? &cq_seen : &cntr_seen) = true;
		});
	/* The queue was not read; the counter did not change. */
	CHECK_EQ(fi_poll(set, found, 4), 1);
	CHECK(found[0] == &o);
	obj_done(o.cq, &got);
	OBJ_UNTIL(fi_poll(set, found, 4) == 0, );
	/* A change by the application itself is not reported. */
	OK(fi_cntr_add(cntr, 3));
	CHECK_EQ(fi_poll(set, found, 4), 0);
	OK(fi_poll_del(set, &o.cq->fid, 0));
	OK(fi_poll_del(set, &other->fid, 0));
	OK(fi_poll_del(set, &cntr->fid, 0));
	CLOSE(set);
	CLOSE(other);
	CLOSE(o.ep);
	CLOSE(cntr);
	o.ep = NULL;
	obj_close(&o);
}

/* A changed error value is reported once, whatever changed it. */
static void counter_errors(struct api *a)
{
	struct fi_poll_attr attr = {0};
	struct obj o = {0};
	struct fid_cntr *cntr;
	struct fid_poll *set;
	void *found = NULL;

	(void)a;
	obj_domain(&o);
	OK(fi_cntr_open(o.domain, &(struct fi_cntr_attr){0}, &cntr, &cntr));
	OK(fi_poll_open(o.domain, &attr, &set));
	OK(fi_poll_add(set, &cntr->fid, 0));
	CHECK_EQ(fi_poll(set, &found, 1), 0);
	OK(fi_cntr_adderr(cntr, 1));
	CHECK_EQ(fi_poll(set, &found, 1), 1);
	CHECK(found == &cntr);
	CHECK_EQ(fi_poll(set, &found, 1), 0);
	OK(fi_cntr_seterr(cntr, 5));
	CHECK_EQ(fi_poll(set, &found, 1), 1);
	OK(fi_cntr_seterr(cntr, 5));
	CHECK_EQ(fi_poll(set, &found, 1), 0);
	CHECK_EQ(fi_cntr_readerr(cntr), 5);
	OK(fi_poll_del(set, &cntr->fid, 0));
	CLOSE(set);
	CLOSE(cntr);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"eq_events", eq_events, 1, {0}}, {"eq_wakes", eq_wakes, 1, {0}},
		{"eq_in_set", eq_in_set, 1, {0}}, {"trywait_codes", trywait_codes, 1, {0}},
		{"poll_set", poll_set, 1, {0}},   {"counter_errors", counter_errors, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
