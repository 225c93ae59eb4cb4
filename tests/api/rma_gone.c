/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions and targets that are closed while others access them. Operations in flight end with
 * success or an error, no process hangs, and a closed region is not accessed.
 */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define LEN    (256u << 10)
#define WINDOW 32 /* operations in flight */

/* Operations of an attacking rank, each with its own buffer. */
struct attack {
	struct rma *r;
	struct rma_key key;
	int peer;
	unsigned int posted, ended, failed;
	int err;     /* of the last failed operation */
	ssize_t ret; /* of the last refused call */
	bool busy[WINDOW];
};

static unsigned char buffers[WINDOW][70000];

static void attack_reap(struct attack *k)
{
	struct fi_cq_tagged_entry e = {0};
	struct fi_cq_err_entry err = {0};
	ssize_t ret = fi_cq_read(k->r->o.cq, &e, 1);
	bool *busy;

	if (ret == -FI_EAGAIN) {
		sched_yield();
		return;
	}
	if (ret == -FI_EAVAIL) {
		CHECK_EQ(fi_cq_readerr(k->r->o.cq, &err, 0), 1);
		CHECK(err.err != 0);
		k->err = err.err;
		k->failed++;
	} else {
		CHECK_EQ(ret, 1);
	}
	busy = ret == 1 ? e.op_context : err.op_context;
	CHECK(busy >= k->busy && busy < k->busy + WINDOW && *busy);
	*busy = false;
	k->ended++;
}

/* Posts another operation, small or large, read or write. Returns false if the call is refused. */
static bool attack_one(struct attack *k)
{
	static const size_t lens[] = {8, 70000, 64, 4096, 20000, 1};
	unsigned int n = k->posted;
	size_t len = lens[n % API_COUNT(lens)];
	struct iovec iov = {buffers[n % WINDOW], len};
	struct fi_rma_iov to = {k->key.base + n * 997 % (LEN - len), len, k->key.key};

	OBJ_UNTIL(!k->busy[n % WINDOW], attack_reap(k));
	OBJ_UNTIL((k->ret = rma_post(k->r->o.ep,
				     &(struct rma_op){
					     .form = n % 5 == 4 ? RMA_READ : RMA_WRITE,
					     .iov = &iov,
					     .count = 1,
					     .to = &to,
					     .to_count = 1,
					     .peer = k->r->addr[k->peer],
					     .context = &k->busy[n % WINDOW],
				     })) != -FI_EAGAIN,
		  attack_reap(k));
	if (k->ret)
		return false;
	k->busy[n % WINDOW] = true;
	k->posted++;
	return true;
}

/* Waits until all operations have ended. */
static void attack_end(struct attack *k)
{
	OBJ_UNTIL(k->ended == k->posted, attack_reap(k));
}

/* ---- Regions --------------------------------------------------------------------------------- */

/* Rank 1: closes the region after a while, and checks that nothing writes to its memory then. */
static void live_and_close(struct rma *r, unsigned int round)
{
	unsigned char *map =
		mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fid_mr *mr;
	struct rma_key key;
	uint64_t end;

	CHECK(map != MAP_FAILED);
	mr = rma_reg(r, map, LEN, RMA_REMOTE);
	key = rma_key(r, mr, map, LEN);
	api_tell(r->a, 0, &key, sizeof(key));
	end = obj_now_us() + 3000 + round * 700 % 5000;
	while (obj_now_us() < end)
		rma_progress(r);
	CLOSE(mr);
	memset(map, 0x3c, LEN);
	end = obj_now_us() + 3000;
	while (obj_now_us() < end)
		rma_progress(r);
	CHECK(data_all(map, LEN, 0x3c));
	if (round % 2)
		OK(munmap(map, LEN)); /* the next round may map the same address */
	else
		OK(mprotect(map, LEN, PROT_NONE));
}

/* Rank 0: writes until the target denies access. */
static void until_refused(struct rma *r)
{
	struct attack k = {.r = r, .peer = 1};

	api_hear(r->a, 1, &k.key, sizeof(k.key));
	while (k.failed == 0)
		CHECK(attack_one(&k));
	CHECK_EQ(k.err, FI_EACCES);
	for (unsigned int n = 0; n < WINDOW; n++) /* later operations must fail too */
		CHECK(attack_one(&k));
	k.failed = 0;
	for (unsigned int n = 0; n < WINDOW; n++)
		CHECK(attack_one(&k));
	attack_end(&k);
	CHECK(k.failed >= WINDOW);
	CHECK_EQ(k.err, FI_EACCES);
}

static void region_closes(struct api *a, int mr_mode)
{
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = mr_mode});
	for (unsigned int round = 0; round < 25; round++) {
		if (a->rank == 1)
			live_and_close(&r, round);
		else
			until_refused(&r);
		api_meet(a);
	}
	rma_close(&r);
}

static void region(struct api *a)
{
	region_closes(a, RMA_PROVIDED);
}

static void region_own_key(struct api *a)
{
	region_closes(a, 0);
}

/* Memory protected against access while its region exists: the initiator gets an error. */
static void untouchable(struct api *a)
{
	struct rma_target t;
	struct rma r;

	if (api_networked())
		api_skip("the target itself would touch it");
	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	for (int n = 0; n < 2; n++) {
		struct iovec iov = {buffers[0], 70000};
		struct fi_rma_iov to = {.len = 70000};
		struct rma_op op = {.form = n ? RMA_READ : RMA_WRITE,
				    .iov = &iov,
				    .count = 1,
				    .to = &to,
				    .to_count = 1,
				    .peer = r.addr[1],
				    .context = &to};
		void *map = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(map != MAP_FAILED);
		rma_target_open(&r, &t, map, LEN);
		to.addr = t.key.base;
		to.key = t.key.key;
		if (a->rank == 0)
			RMA_FAILS(&r, &op, FI_EFAULT);
		rma_target_close(&r, &t);
		OK(munmap(map, LEN));
	}
	rma_close(&r);
}

/* ---- Targets --------------------------------------------------------------------------------- */

/* Rank 0: registers memory, serves for `us`, then dies or closes its objects. */
static void serve(struct rma *r, unsigned int us, bool orderly)
{
	static unsigned char memory[LEN];
	struct fid_mr *mr = rma_reg(r, memory, LEN, RMA_REMOTE);
	struct rma_key key = rma_key(r, mr, memory, LEN);
	uint64_t end = obj_now_us() + us;

	for (int i = 1; i < r->a->ranks; i++)
		api_tell(r->a, i, &key, sizeof(key));
	while (obj_now_us() < end)
		rma_progress(r);
	if (!orderly)
		_exit(0);
	CLOSE(r->o.ep);
	CLOSE(mr);
	r->o.ep = NULL;
}

/* Runs operations until they fail. All in flight end then; later calls fail or are refused. */
static void until_gone(struct rma *r, int peer)
{
	struct attack k = {.r = r, .peer = peer};
	unsigned int more = 0;

	api_hear(r->a, peer, &k.key, sizeof(k.key));
	while (k.failed == 0 && attack_one(&k))
		;
	attack_end(&k);
	CHECK(k.failed > 0 || k.ret < 0);
	while (more < 20 && attack_one(&k))
		more++;
	attack_end(&k);
	if (k.failed)
		CHECK(k.err != FI_EACCES && k.err != FI_EINVAL);
}

/* A barrier of ranks 1 and 2 without rank 0, in shared memory. */
static void meet_others(struct rma *r, unsigned int *met)
{
	__atomic_fetch_add(met, 1, __ATOMIC_SEQ_CST);
	OBJ_UNTIL(__atomic_load_n(met, __ATOMIC_SEQ_CST) == 2, rma_progress(r));
}

/* Rank 0, the target, goes away. The others' operations end, and both can communicate then. */
static void target_goes(struct api *a, bool orderly)
{
	unsigned int *met = a->shared;
	uint64_t word = 0;
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	if (a->rank == 0) {
		serve(&r, 20000, orderly);
		rma_leave(&r);
		return;
	}
	until_gone(&r, 0);
	OK(fi_recv(r.o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
	POST(r.o.cq, fi_inject(r.o.ep, &(uint64_t){77}, 8, r.addr[3 - a->rank]));
	obj_done(r.in, &word);
	CHECK_EQ(word, 77);
	meet_others(&r, met);
	rma_leave(&r);
}

static void target_dies(struct api *a)
{
	target_goes(a, false);
}

static void target_leaves(struct api *a)
{
	target_goes(a, true);
}

/* Closing the initiator does not wait for a stopped target. */
static void closed_under_way(struct api *a)
{
	struct rma_target t;
	struct rma r;
	static unsigned char memory[LEN];

	rma_open(&r, a, &(struct rma_opts){.mr_mode = 0});
	rma_target_open(&r, &t, memory, LEN);
	if (a->rank == 0) {
		struct attack k = {.r = &r, .peer = 1, .key = t.key};

		RMA_PLAIN(&r, RMA_WRITE, buffers[0], 8, &t.key, 0);
		for (int n = 0; n < WINDOW; n++)
			CHECK(attack_one(&k));
		a->progress = NULL;
		CLOSE(r.o.ep);
		r.o.ep = NULL;
		memset(buffers, 0xff, sizeof(buffers));
	}
	api_meet(a);
	if (a->rank == 1) {
		uint64_t end = obj_now_us() + 20000;

		while (obj_now_us() < end)
			rma_progress(&r);
		CHECK(memchr(memory, 0xff, LEN) == NULL);
		CLOSE(t.mr);
	}
	api_meet(a);
	rma_leave(&r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"region", region, 2, {0}},
		{"region_own_key", region_own_key, 2, {0}},
		{"untouchable", untouchable, 2, {0}},
		{"target_dies", target_dies, 3, {0}},
		{"target_leaves", target_leaves, 3, {0}},
		{"closed_under_way", closed_under_way, 2, {0}},
		{"region_no_cma", region, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"target_dies_no_cma", target_dies, 3, {"FI_SHM_DISABLE_CMA=1"}},
		{"closed_under_way_no_cma", closed_under_way, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
