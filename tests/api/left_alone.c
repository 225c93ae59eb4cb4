/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that sleeps after its last peer has left uses no CPU time, neither in a blocking read
 * nor in the library's thread. The test measures CPU time, so a busy machine does no harm.
 */
#include "obj.h"

#define ALONE_MS  1500  /* many times the peer timeout */
#define MOST_US   60000 /* limit of CPU time; a busy loop uses all of ALONE_MS */
#define PATIENCE  "FI_WEFT_PEER_TIMEOUT=400"
#define LEAVES_US 300000

static void open_side(struct obj *o, enum fi_progress progress)
{
	o->hints = obj_hints(FI_MSG | FI_TAGGED);
	o->hints->domain_attr->data_progress = progress;
	o->hints->domain_attr->control_progress = progress;
	obj_domain(o);
	o->cq = obj_cq(o, FI_WAIT_UNSPEC);
	obj_open(o);
}

/* Sleeps until the last message of the peer. */
static void hear_last_message(struct obj *o)
{
	struct fi_cq_tagged_entry entry;
	uint64_t heard = 0;

	OK(fi_recv(o->ep, &heard, sizeof(heard), NULL, FI_ADDR_UNSPEC, &heard));
	CHECK_EQ(fi_cq_sread(o->cq, &entry, 1, NULL, (int)(obj_late_us() / 1000)), 1);
	CHECK_EQ(heard, 42);
}

static void say_last_message(struct obj *o, fi_addr_t to)
{
	uint64_t word = 42;

	obj_sleep_us(LEAVES_US); /* time for the other side to fall asleep */
	POST(o->cq, fi_send(o->ep, &word, sizeof(word), NULL, to, &word));
	obj_done(o->cq, &word);
	obj_sleep_us(LEAVES_US); /* the other side sleeps again */
}

/* Sleeps in a blocking read until its timeout; with automatic progress outside the library. */
static void stay(struct obj *o, bool reads)
{
	struct fi_cq_tagged_entry entry;
	uint64_t start = obj_cpu_us();

	if (reads)
		CHECK_EQ(fi_cq_sread(o->cq, &entry, 1, NULL, ALONE_MS), -FI_EAGAIN);
	else
		obj_sleep_us(ALONE_MS * 1000);
	if (obj_cpu_us() - start > MOST_US) {
		fprintf(stderr, "%" PRIu64 " us of processor time in %d ms\n", obj_cpu_us() - start,
			ALONE_MS);
		api_fail("a sleeper without peers is busy");
	}
}

static void alone(struct api *a, enum fi_progress progress, bool reads)
{
	struct fi_cq_tagged_entry unused;
	struct obj o = {0};
	fi_addr_t other;

	open_side(&o, progress);
	other = obj_swap(a, o.ep, o.av);
	if (a->rank == 0) {
		hear_last_message(&o);
		/* The reader also sleeps while the peer leaves. */
		CHECK_EQ(fi_cq_sread(o.cq, &unused, 1, NULL, 3 * LEAVES_US / 1000), -FI_EAGAIN);
		stay(&o, reads);
	} else {
		say_last_message(&o, other);
	}
	obj_close(&o);
}

static void manual(struct api *a)
{
	alone(a, FI_PROGRESS_MANUAL, true);
}

static void automatic(struct api *a)
{
	alone(a, FI_PROGRESS_AUTO, false);
}

static void automatic_reads(struct api *a)
{
	alone(a, FI_PROGRESS_AUTO, true);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"manual", manual, 2, {PATIENCE}},
		{"automatic", automatic, 2, {PATIENCE}},
		{"automatic-reads", automatic_reads, 2, {PATIENCE}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
