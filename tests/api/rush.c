/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More connections arrive at once than the acceptor holds. All get in, even those that send nothing
 * for a while because their process is busy.
 */
#include <sys/resource.h>

#include "obj.h"
#include "lib/key.h"

#define EACH     50 /* maximum endpoints of a connecting process */
#define EACH_MIN 24 /* enough to exceed the acceptor's limit */
#define SECONDS  60
#define STALL_US 700000  /* time in which no connecting process sends */
#define LATE_US  5000000 /* the same, longer than the acceptor waits */

/* Raises the limit of descriptors to its maximum. */
static void raise_limit(void)
{
	struct rlimit l;

	if (!getrlimit(RLIMIT_NOFILE, &l)) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int each;   /* endpoints of a connecting process */
static bool keyed; /* all have a key, and prove it */

/* Begins all connections, one after the other, without progress. */
static void connect_all(struct obj *o, struct fid_ep *ep[EACH], const struct obj_name *hub,
			int rank)
{
	static uint64_t words[EACH];
	fi_addr_t to = obj_insert(o->av, hub);

	for (int i = 0; i < each; i++) {
		words[i] = (uint64_t)(rank * each + i);
		ep[i] = obj_ready_ep(o, o->cq);
		POST(o->cq, fi_send(ep[i], &words[i], 8, NULL, to, &words[i]));
	}
}

static void come(struct api *a, struct obj *o, const struct obj_name *hub, uint64_t stall_us)
{
	struct fid_ep *ep[EACH];

	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->cq = obj_cq(o, FI_WAIT_NONE);
	obj_progress(a, o->cq);
	connect_all(o, ep, hub, a->rank);
	obj_sleep_us(stall_us);
	for (int i = 0; i < each; i++)
		obj_next(o->cq, NULL);
	api_meet(a);
	for (int i = 0; i < each; i++)
		CLOSE(ep[i]);
	obj_close(o);
}

/* Checks that each word is received once. */
static void receive(struct obj *o, int count)
{
	static uint64_t in[API_RANKS * EACH];
	bool heard[API_RANKS * EACH] = {false};

	for (int i = 0; i < count; i++)
		OK(fi_recv(o->ep, &in[i], 8, NULL, FI_ADDR_UNSPEC, &in[i]));
	for (int i = 0; i < count; i++) {
		struct fi_cq_tagged_entry e = obj_next(o->cq, NULL);
		uint64_t word = *(uint64_t *)e.op_context;

		CHECK(word >= (uint64_t)each && word < (uint64_t)(API_RANKS * EACH) &&
		      !heard[word]);
		heard[word] = true;
	}
}

static void rush(struct api *a, uint64_t stall_us)
{
	struct obj_name mine = {0}, all[API_RANKS];
	struct obj o = {0};

	obj_time_limit(SECONDS);
	raise_limit();
	o.hints = obj_hints(FI_MSG | FI_TAGGED);
	key_set(o.hints, keyed, KEY_LEN);
	if (a->rank == 0) {
		obj_open(&o);
		mine = obj_name(&o.ep->fid);
	} else {
		obj_domain(&o);
	}
	api_swap(a, &mine, all, sizeof(mine));
	if (a->rank) {
		come(a, &o, &all[0], stall_us);
		return;
	}
	obj_progress(a, o.cq);
	receive(&o, (a->ranks - 1) * each);
	api_meet(a);
	obj_close(&o);
}

static void at_once(struct api *a)
{
	each = EACH;
	rush(a, 0);
}

static void fewer(void)
{
	each = (int)api_times(EACH);
	if (each < EACH_MIN)
		each = EACH_MIN;
}

static void with_keys(struct api *a)
{
	keyed = true;
	key_need_library();
	at_once(a);
}

static void speechless(struct api *a)
{
	fewer();
	rush(a, STALL_US);
}

static void late(struct api *a)
{
	fewer();
	rush(a, LATE_US);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"at-once", at_once, 4, {0}},
		{"with-keys", with_keys, 4, {0}},
		{"speechless", speechless, 4, {0}},
		{"late", late, 4, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
