/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=180 */
/*
 * Proves that plans cost what the textbooks say, in groups of up to 65,536 members: the longest
 * chain of messages, the elements that a member sends, its scratch. All members run; of algorithms
 * in which all members exchange messages, all members of small groups and some of large ones.
 */
#include "coll/plan/plan_own.h"
#include "plan_cells.h"
#include "suite.h"

static const uint32_t sizes[] = {2, 3, 5, 8, 100, 1000, 1024, 4095, 20000, 65536};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), MOST = 65536, QUADRATIC = 256 };

/* The greatest cost of any member. */
struct cost {
	size_t chain, rounds, sends, sent, received, scratch;
	size_t all_sent, all_sends; /* sums over all members */
};

static void raise(size_t *most, size_t x)
{
	*most = x > *most ? x : *most;
}

static void add_member(struct cost *cost, const struct sim_member *m)
{
	raise(&cost->chain, m->clock);
	raise(&cost->rounds, m->rounds);
	raise(&cost->sends, m->sends);
	raise(&cost->sent, m->sent);
	raise(&cost->received, m->received);
	raise(&cost->scratch, m->plan.scratch);
	cost->all_sent += m->sent;
	cost->all_sends += m->sends;
}

static void set_limits(struct sim_member *m, const struct plan_shape *s)
{
	m->limit[PLAN_IN] = cells_in(s);
	m->limit[PLAN_OUT] = cells_out(s);
	m->limit[PLAN_TMP] = m->plan.scratch;
}

/* Runs all members. `layout`: one for each member, or NULL. */
static struct cost run(struct plan_shape shape, const struct layout *layout)
{
	struct cost cost = {0};
	struct sim sim;

	sim_open(&sim, shape.size);
	for (shape.rank = 0; shape.rank < shape.size; shape.rank++) {
		shape.layout = layout ? &layout[shape.rank] : NULL;
		plan_make(&sim.member[shape.rank].plan, &shape);
		set_limits(&sim.member[shape.rank], &shape);
	}
	sim_run(&sim);
	for (uint32_t i = 0; i < shape.size; i++)
		add_member(&cost, &sim.member[i]);
	sim_close(&sim);
	return cost;
}

/* Runs one member's plan alone; counts all but the chain. */
static void run_alone(struct cost *cost, const struct plan_shape *shape)
{
	struct sim_member m = {.next = 0};
	struct plan_round r;

	plan_make(&m.plan, shape);
	set_limits(&m, shape);
	for (; plan_round(&m.plan, m.rounds, &r); m.rounds++) {
		sim_check_locals(&m, &r);
		for (unsigned int i = 0; i < r.messages; i++) {
			sim_check_place(&m, r.message[i].place, r.message[i].count);
			*(r.message[i].send ? &m.sent : &m.received) += r.message[i].count;
			m.sends += r.message[i].send;
		}
	}
	add_member(cost, &m);
}

/* Runs all members of groups up to QUADRATIC, else a few. */
static struct cost run_some(struct plan_shape shape)
{
	uint32_t some[] = {0, 1, shape.size / 2, shape.size - 1};
	struct cost cost = {0};

	if (shape.size <= QUADRATIC)
		return run(shape, NULL);
	for (int i = 0; i < 4; i++) {
		shape.rank = some[i];
		run_alone(&cost, &shape);
	}
	return cost;
}

static size_t log_up(uint64_t n, uint64_t radix)
{
	size_t log = 0;

	for (uint64_t power = 1; power < n; power *= radix)
		log++;
	return log;
}

static size_t log_down(uint32_t n)
{
	return n & (n - 1) ? log_up(n, 2) - 1 : log_up(n, 2);
}

static bool power_of_two(uint32_t n)
{
	return !(n & (n - 1));
}

static bool uses(const struct plan_shape *shape, const struct plan_algorithm *algorithm)
{
	struct plan plan;

	plan_make(&plan, shape);
	for (unsigned int i = 0; i < plan.phases; i++)
		if (plan.phase[i].algorithm == algorithm)
			return true;
	return false;
}

#define USES(shape, algorithm) SIM_CHECK(uses(&(shape), &(algorithm)))

START_TEST(barrier)
{
	uint32_t n = sizes[_i];
	struct cost c = run((struct plan_shape){.kind = FI_BARRIER, .size = n}, NULL);

	ck_assert_uint_eq(c.chain, log_up(n, 2));
	ck_assert_uint_eq(c.sends, log_up(n, 2));
	ck_assert_uint_eq(c.scratch, 0);
}
END_TEST

START_TEST(short_vectors)
{
	uint32_t n = sizes[_i];
	struct plan_shape s = {.size = n, .root = n / 3, .count = 8, .width = 8};
	struct cost c;

	s.kind = FI_BROADCAST;
	c = run(s, NULL);
	USES(s, plan_tree_broadcast);
	ck_assert_uint_le(c.chain, log_up(n, 4));
	ck_assert_uint_eq(c.all_sends, n - 1);
	ck_assert_uint_eq(c.scratch, 0);

	s.kind = FI_REDUCE;
	c = run(s, NULL);
	USES(s, plan_tree_reduce);
	ck_assert_uint_le(c.chain, log_up(n, 2));
	ck_assert_uint_eq(c.all_sends, n - 1);
	ck_assert_uint_le(c.scratch, 8 * s.count);

	s.kind = FI_ALLREDUCE;
	c = run(s, NULL);
	USES(s, plan_doubling);
	ck_assert_uint_ge(c.chain, log_up(n, 2));
	ck_assert_uint_le(c.chain, log_down(n) + 2 * !power_of_two(n));
	ck_assert_uint_le(c.sent, (log_down(n) + !power_of_two(n)) * s.count);
	ck_assert_uint_le(c.scratch, s.count);
}
END_TEST

/*
 * Rabenseifner's: a member sends a vector at most twice, once more if it also acts for another
 * member.
 */
START_TEST(halved_vectors)
{
	uint32_t n = sizes[_i];
	bool twos = power_of_two(n);
	size_t log = log_down(n), core = (size_t)1 << log, count = 100003;
	size_t once = (core - 1) * (count / core + 1);
	struct plan_shape s = {.size = n, .root = n - 1, .count = count, .width = 1};
	struct cost c;

	if (n < 3 || (!twos && n < 100))
		return; /* the ring is used */
	s.kind = FI_ALLREDUCE;
	c = run(s, NULL);
	USES(s, plan_rabenseifner);
	ck_assert_uint_le(c.chain, 2 * log + 2 * !twos);
	ck_assert_uint_le(c.sent, 2 * once + !twos * count);
	ck_assert_uint_le(c.received, 2 * once + !twos * count);
	ck_assert_uint_le(c.scratch, twos ? core / 2 * (count / core + 1) : count);

	s.kind = FI_REDUCE;
	c = run(s, NULL);
	USES(s, plan_rabenseifner_reduce);
	ck_assert_uint_le(c.chain, 2 * log + !twos);
	ck_assert_uint_le(c.sent, once + count);
	ck_assert_uint_le(c.received, 2 * once + !twos * count);
	ck_assert_uint_le(c.scratch, 2 * count);
}
END_TEST

/* Rings: the least possible number of elements sent, and no scratch for a vector. */
START_TEST(ring_vectors)
{
	uint32_t n = sizes[_i];
	size_t piece = 20001, vector = n * piece - 5;
	struct plan_shape s = {.size = n, .root = n / 2, .count = vector, .width = 1};
	struct cost c;

	s.kind = FI_ALLREDUCE;
	if (!power_of_two(n)) {
		c = run_some(s);
		USES(s, plan_ring_reduce_scatter);
		ck_assert_uint_eq(c.rounds, 2 * ((size_t)n - 1));
		ck_assert_uint_le(c.sent, 2 * (n - 1) * piece);
		ck_assert_uint_eq(c.scratch, 0);
		s.overlap = PLAN_SAME;
		c = run_some(s);
		ck_assert_uint_le(c.scratch, piece);
	}
	s.overlap = PLAN_APART;
	s.kind = FI_BROADCAST;
	if (n > 3) {
		c = run_some(s);
		USES(s, plan_spread);
		ck_assert_uint_le(c.rounds, n + 1 + log_up(n, 2));
		ck_assert_uint_le(c.sent, 2 * (n - 1) * piece);
		ck_assert_uint_eq(c.scratch, 0);
	}
}
END_TEST

/*
 * In a chain every member sends the vector once, in chunks; the chain has size - 2 + chunks
 * messages.
 */
START_TEST(chain)
{
	uint32_t n = sizes[_i] <= QUADRATIC ? sizes[_i] : QUADRATIC;
	struct plan_shape s = {.kind = FI_BROADCAST, .size = n, .width = 1 << 20};
	struct cost c;

	if (n <= 3)
		return;
	s.count = 3 * (size_t)n;
	c = run(s, NULL);
	USES(s, plan_chain);
	ck_assert_uint_eq(c.chain, n - 2 + s.count);
	ck_assert_uint_eq(c.sent, s.count);
	ck_assert_uint_eq(c.scratch, 0);
}
END_TEST

START_TEST(allgather)
{
	uint32_t n = sizes[_i];
	struct plan_shape s = {.kind = FI_ALLGATHER, .size = n, .count = 3, .width = 8};
	struct cost c = run(s, NULL);

	USES(s, plan_bruck_allgather);
	ck_assert_uint_eq(c.chain, log_up(n, 2));
	ck_assert_uint_eq(c.sent, (n - 1) * s.count);
	ck_assert_uint_eq(c.received, (n - 1) * s.count);
	ck_assert_uint_le(c.sends, 2 * log_up(n, 2));
	ck_assert_uint_eq(c.scratch, 0);
	if (n == 2)
		return;
	s.width = 100000;
	c = run_some(s);
	USES(s, plan_ring_allgather);
	ck_assert_uint_eq(c.rounds, n - 1);
	ck_assert_uint_eq(c.sent, (n - 1) * s.count);
	ck_assert_uint_eq(c.scratch, 0);
}
END_TEST

START_TEST(reduce_scatter)
{
	uint32_t n = sizes[_i];
	bool twos = power_of_two(n);
	struct plan_shape s = {.kind = FI_REDUCE_SCATTER, .size = n, .count = 3, .width = 8};
	size_t vector = s.count * n;
	struct cost c;

	if (n > 2) {
		c = run(s, NULL);
		USES(s, plan_halving);
		ck_assert_uint_le(c.chain, log_down(n) + 2 * !twos);
		if (twos)
			ck_assert_uint_eq(c.sent, vector - s.count);
		ck_assert_uint_le(c.sent, vector);
		ck_assert_uint_le(c.scratch, twos ? vector : 2 * vector);
	}
	s.width = 100000;
	c = run_some(s);
	USES(s, plan_pairwise_reduce_scatter);
	ck_assert_uint_le(c.rounds, (n - 1 + 3) / 4);
	ck_assert_uint_eq(c.sent, vector - s.count);
	ck_assert_uint_eq(c.received, vector - s.count);
	ck_assert_uint_le(c.scratch, 4 * s.count);
}
END_TEST

START_TEST(alltoall)
{
	uint32_t n = sizes[_i];
	struct plan_shape s = {.kind = FI_ALLTOALL, .size = n, .count = 3, .width = 8};
	struct cost c;

	if (n > 9) {
		c = run(s, NULL);
		USES(s, plan_bruck_alltoall);
		ck_assert_uint_eq(c.chain, log_up(n, 2));
		ck_assert_uint_le(c.sent, ((size_t)n + 1) / 2 * log_up(n, 2) * s.count);
		ck_assert_uint_le(c.scratch, 3 * (size_t)n * s.count);
	}
	s.width = 100000;
	c = run_some(s);
	USES(s, plan_pairwise_alltoall);
	ck_assert_uint_le(c.rounds, (n - 1 + 7) / 8);
	ck_assert_uint_eq(c.sent, (n - 1) * s.count);
	ck_assert_uint_eq(c.received, (n - 1) * s.count);
	ck_assert_uint_eq(c.scratch, 0);
}
END_TEST

/* Short pieces travel on binomial trees, long ones go directly to their member. */
START_TEST(trees_of_pieces)
{
	static const enum fi_collective_op kinds[] = {FI_SCATTER, FI_GATHER};
	uint32_t n = sizes[_i];

	for (int i = 0; i < 2; i++) {
		struct plan_shape s = {
			.kind = kinds[i], .size = n, .root = n / 3, .count = 3, .width = 8};
		struct cost c = run(s, NULL);

		ck_assert_uint_le(c.chain, log_up(n, 2));
		ck_assert_uint_eq(i ? c.received : c.sent, (n - 1) * s.count);
		ck_assert_uint_le(c.scratch, (n + 1) / 2 * s.count);
		s.width = 100000;
		c = run(s, NULL);
		ck_assert_uint_le(c.rounds, (n - 1 + 14) / 15);
		ck_assert_uint_eq(c.all_sent, (n - 1) * s.count);
		ck_assert_uint_eq(c.scratch, 0);
	}
}
END_TEST

enum { HERE = 64, HOSTS = MOST / HERE };

static uint64_t together(void *arg, uint32_t rank)
{
	(void)arg;
	return rank / HERE;
}

static uint64_t in_progress(void *arg, uint32_t rank)
{
	(void)arg;
	return rank % HOSTS;
}

/* Makes a layout for each member; they differ in `mine` only. The caller frees all and *first. */
static struct layout *all_layouts(layout_host *host, struct layout **first)
{
	struct layout *all = calloc(MOST, sizeof(*all));

	*first = layout_make(0, MOST, host, NULL);
	SIM_CHECK(*first);
	for (uint32_t i = 0; i < MOST; i++) {
		all[i] = **first;
		all[i].mine = layout_host_at(&all[i], layout_place(&all[i], i));
	}
	return all;
}

/* Counts the messages and elements that cross between hosts. */
static void between_hosts(struct plan_shape s, const struct layout *layout, size_t *sends,
			  size_t *sent)
{
	*sends = *sent = 0;
	for (s.rank = 0; s.rank < s.size; s.rank++) {
		struct plan plan;
		struct plan_round r;

		s.layout = &layout[s.rank];
		plan_make(&plan, &s);
		for (size_t n = 0; plan_round(&plan, n, &r); n++)
			for (unsigned int i = 0; i < r.messages; i++) {
				const struct plan_message *m = &r.message[i];
				bool far = layout[m->peer].mine != layout[s.rank].mine;

				*sends += far && m->send;
				*sent += far && m->send ? m->count : 0;
			}
	}
}

/* 1024 hosts of 64 members: a host sends as much as one member of a group of 1024. */
START_TEST(hosts)
{
	struct layout *first, *all = all_layouts(_i ? in_progress : together, &first);
	struct plan_shape s = {.size = MOST, .root = 777, .count = 3, .width = 8};
	struct plan plan;
	size_t sends, sent;
	struct cost c;

	SIM_CHECK(first->hosts == HOSTS && first->each == HERE && !first->order == !_i);
	s.kind = FI_BARRIER;
	c = run(s, all);
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_le(c.chain, log_up(HOSTS, 2) + 2 * log_up(HERE, 8));
	ck_assert_uint_eq(sends, HOSTS * log_up(HOSTS, 2));

	s.kind = FI_ALLREDUCE;
	c = run(s, all);
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_le(c.chain, log_up(HOSTS, 2) + log_up(HERE, 4) + log_up(HERE, 8));
	ck_assert_uint_eq(sent, HOSTS * log_up(HOSTS, 2) * s.count);

	s.kind = FI_BROADCAST;
	c = run(s, all);
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_le(c.chain, log_up(HOSTS, 4) + log_up(HERE, 8));
	ck_assert_uint_eq(sends, HOSTS - 1);

	s.kind = FI_REDUCE;
	c = run(s, all);
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_le(c.chain, log_up(HOSTS, 2) + log_up(HERE, 4));
	ck_assert_uint_eq(sends, HOSTS - 1);
	ck_assert_uint_le(c.scratch, 9 * s.count);

	/* A long reduce ignores hosts if neighbouring ranks share a host, and only then. */
	s.kind = FI_REDUCE;
	s.count = 1 << 20;
	s.rank = s.root = 0;
	s.layout = all;
	plan_make(&plan, &s);
	ck_assert_uint_eq(plan.phases, first->order ? 2 : 1);
	free(all);
	layout_free(first);
}
END_TEST

static uint64_t by_sixteens(void *arg, uint32_t rank)
{
	(void)arg;
	return rank / 16;
}

static uint64_t one_host(void *arg, uint32_t rank)
{
	(void)arg;
	(void)rank;
	return 1;
}

/*
 * Oversubscribed: a small group waits once, for all members; in a large group a member waits for
 * its children, then for its parent.
 */
START_TEST(crowd)
{
	static const uint32_t crowds[] = {2, 3, 4, 5, 8, 9, 64, 200};
	enum fi_collective_op kinds[] = {FI_BARRIER, FI_ALLREDUCE};
	uint32_t n = crowds[_i];
	bool few = n <= 4;
	const struct plan_algorithm *crowded = few ? &plan_direct : &plan_tree_reduce;
	struct layout *base = layout_make(0, n, one_host, NULL), all[200];
	struct plan_shape s = {.size = n, .layout = base, .count = 1, .width = 8};
	struct cost c;

	for (uint32_t i = 0; i < n; i++)
		all[i] = *base;
	for (int i = 0; i < 2; i++) {
		s.kind = kinds[i];
		s.cpus = n;
		SIM_CHECK(!uses(&s, crowded));
		s.cpus = 0; /* unknown */
		SIM_CHECK(!uses(&s, crowded));
		s.cpus = n - 1;
		USES(s, *crowded);
		c = run(s, all);
		ck_assert_uint_le(c.chain, few ? 1 : 2 * log_up(n, 8));
		ck_assert_uint_le(c.rounds, few ? 1 : 2 * log_up(n, 8));
		ck_assert_uint_eq(c.all_sends, few ? n * (n - 1) : 2 * (n - 1));
	}
	/* Long vectors: a ring, with pieces that fit a cache. */
	s.count = n * (64 << 10) / 8;
	USES(s, plan_ring_reduce_scatter);
	s.ordered = true;
	SIM_CHECK(!uses(&s, &plan_ring_reduce_scatter));
	s.ordered = false;
	s.count--;
	SIM_CHECK(uses(&s, &plan_ring_reduce_scatter) == !!(n & (n - 1)));
	s.count++;
	s.cpus = n;
	SIM_CHECK(uses(&s, &plan_ring_reduce_scatter) == !!(n & (n - 1)));
	layout_free(base);
}
END_TEST

/* Oversubscribed: a broadcast goes from the root directly to each member, chunk by chunk. */
START_TEST(crowd_broadcast)
{
	static const uint32_t crowds[] = {2, 5, 17, 18, 64};
	enum { CHUNK = (256 << 10) / 8, CHUNKS = 4 };
	uint32_t n = crowds[_i];
	size_t windows = (n - 1 + PLAN_MESSAGES - 1) / PLAN_MESSAGES;
	struct layout *base = layout_make(0, n, one_host, NULL), all[64];
	struct plan_shape s = {.kind = FI_BROADCAST,
			       .size = n,
			       .layout = base,
			       .width = 8,
			       .cpus = n - 1,
			       .shares = true};
	struct cost c;

	for (uint32_t i = 0; i < n; i++)
		all[i] = *base;
	for (uint32_t root = 0; root < n; root += n - 1) {
		s.root = root;
		s.count = (CHUNKS - 1) * CHUNK + 1;
		USES(s, plan_fan);
		c = run(s, all);
		ck_assert_uint_eq(c.rounds, CHUNKS * windows);
		ck_assert_uint_eq(c.all_sends, (n - 1) * (size_t)CHUNKS);
		ck_assert_uint_eq(c.scratch, 0);
	}
	s.cpus = n;
	SIM_CHECK(!uses(&s, &plan_fan));
	s.cpus = n - 1;
	s.shares = false; /* the root would have to send the data to each member */
	SIM_CHECK(!uses(&s, &plan_fan));
	layout_free(base);
}
END_TEST

/* Returns layouts of 16 hosts of 16 members. */
static struct layout *sixteens(struct layout all[256])
{
	struct layout *base = layout_make(0, 256, by_sixteens, NULL);

	for (uint32_t i = 0; i < 256; i++) {
		all[i] = *base;
		all[i].mine = i / 16;
	}
	return base;
}

/*
 * A long allreduce: no host sends more than the algorithm's minimum, twice the vector but a
 * fraction, in 4 * 2 rounds, and its members send a sixteenth each.
 */
START_TEST(long_allreduce)
{
	struct layout all[256], *base = sixteens(all);
	struct plan_shape s = {.kind = FI_ALLREDUCE, .size = 256, .count = 1 << 16, .width = 8};
	size_t sends, sent;
	struct cost c = run(s, all);

	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_eq(sent, 16 * 2 * s.count / 16 * 15);
	ck_assert_uint_eq(sends, 256 * 2 * 4);
	ck_assert_uint_eq(c.sent, 2 * s.count / 16 * 15 + 2 * s.count / 256 * 15);
	ck_assert_uint_le(c.chain, 2 * 15 + 2 * 4);
	layout_free(base);
}
END_TEST

/*
 * A long broadcast: the vector reaches each host once, and the last host as many chunks later as
 * it has hosts before it. Inside a host a chunk goes down the tree while the next one comes.
 */
START_TEST(long_broadcast)
{
	enum { CHUNK = (256 << 10) / 8, CHUNKS = 20, DEPTH = 2 };
	struct layout all[256], *base = sixteens(all);
	struct plan_shape s = {.kind = FI_BROADCAST, .size = 256, .root = 37, .width = 8};
	size_t sends, sent;
	struct cost c;

	s.count = (CHUNKS - 1) * CHUNK + 1;
	c = run(s, all);
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_eq(sends, 15 * CHUNKS);
	ck_assert_uint_eq(sent, 15 * s.count);
	ck_assert_uint_eq(c.all_sent, 255 * s.count);
	ck_assert_uint_eq(c.scratch, 0);
	ck_assert_uint_le(c.chain, CHUNKS + 15 + DEPTH);
	/* A shorter vector has shorter chunks, about as many as hosts. */
	s.count = 4 * CHUNK;
	c = run(s, all);
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_eq(sends, 15 * 16);
	ck_assert_uint_eq(sent, 15 * s.count);
	ck_assert_uint_le(c.chain, 16 + 15 + DEPTH);
	/* Or it is scattered to the hosts. */
	s.count = 3 * CHUNK;
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_le(sends, 15 * 18);
	SIM_CHECK(!uses(&s, &plan_chain));
	layout_free(base);
}
END_TEST

/* 16 hosts of 16 members: the pieces of a host travel together. */
START_TEST(pieces_of_hosts)
{
	static const struct {
		enum fi_collective_op kind;
		size_t sends, pieces; /* limits of traffic between hosts */
	} calls[] = {
		{FI_ALLTOALL, 16 * 15, 16 * 15 * 16 * 16},
		{FI_ALLGATHER, 16 * 4 * 2, 16 * 15 * 16},
		{FI_REDUCE_SCATTER, 16 * 4, 16 * 15 * 16},
		{FI_SCATTER, 15, 4 * 8 * 16},
		{FI_GATHER, 15, 4 * 8 * 16},
	};
	struct layout all[256], *base = sixteens(all);
	struct plan_shape s = {.kind = calls[_i].kind, .size = 256, .count = 5, .width = 4};
	size_t sends, sent;

	run(s, all);
	between_hosts(s, all, &sends, &sent);
	ck_assert_uint_le(sends, calls[_i].sends);
	ck_assert_uint_le(sent, calls[_i].pieces * s.count);
	layout_free(base);
}
END_TEST

/*
 * 1 MiB of 4-byte elements in a group of two: the algorithms' minimum of messages, elements,
 * scratch.
 */
START_TEST(two_members)
{
	struct plan_shape s = {.size = 2, .count = 1 << 18, .width = 4};
	struct cost c;

	s.kind = FI_ALLREDUCE;
	c = run(s, NULL);
	ck_assert_uint_eq(c.sent, s.count);
	ck_assert_uint_eq(c.chain, 2);
	ck_assert_uint_le(c.scratch, s.count / 2);
	s.kind = FI_BROADCAST;
	c = run(s, NULL);
	ck_assert_uint_eq(c.all_sends, 1);
	s.kind = FI_ALLTOALL;
	c = run(s, NULL);
	ck_assert_uint_eq(c.rounds, 1);
	ck_assert_uint_eq(c.all_sent, 2 * s.count);
	ck_assert_uint_eq(c.scratch, 0);
	s.kind = FI_ALLREDUCE;
	s.count = 1;
	c = run(s, NULL);
	ck_assert_uint_eq(c.rounds, 1);
	ck_assert_uint_eq(c.sends, 1);
}
END_TEST

/* Two members exchange vectors of up to 256 KiB whole, in one round, on one host, too; halves of longer ones in two. */
START_TEST(long_vectors_of_two)
{
	struct layout *base = layout_make(0, 2, one_host, NULL);
	struct layout near[2] = {*base, *base};
	struct plan_shape s = {
		.kind = FI_ALLREDUCE, .size = 2, .count = (256 << 10) / 4, .width = 4};
	struct cost c = run(s, NULL);

	ck_assert_uint_eq(c.rounds, 1);
	ck_assert_uint_eq(c.sent, s.count);
	c = run(s, near);
	ck_assert_uint_eq(c.rounds, 1);
	ck_assert_uint_eq(c.sent, s.count);
	s.count++;
	c = run(s, NULL);
	ck_assert_uint_eq(c.rounds, 2);
	ck_assert_uint_le(c.scratch, s.count / 2 + 1);
	layout_free(base);
}
END_TEST

/* A plan has this size in a group of any size. */
START_TEST(memory)
{
	ck_assert_uint_le(sizeof(struct plan), 1024);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_scale");
	TCase *tcase = tcase_create("scale");

	tcase_set_timeout(tcase, 0);
	tcase_add_loop_test(tcase, barrier, 0, SIZES);
	tcase_add_loop_test(tcase, short_vectors, 0, SIZES);
	tcase_add_loop_test(tcase, halved_vectors, 0, SIZES);
	tcase_add_loop_test(tcase, ring_vectors, 0, SIZES);
	tcase_add_loop_test(tcase, chain, 0, SIZES);
	tcase_add_loop_test(tcase, allgather, 0, SIZES);
	tcase_add_loop_test(tcase, reduce_scatter, 0, SIZES);
	tcase_add_loop_test(tcase, alltoall, 0, SIZES);
	tcase_add_loop_test(tcase, trees_of_pieces, 0, SIZES);
	tcase_add_loop_test(tcase, hosts, 0, 2);
	tcase_add_loop_test(tcase, pieces_of_hosts, 0, 5);
	tcase_add_test(tcase, long_allreduce);
	tcase_add_test(tcase, long_broadcast);
	tcase_add_loop_test(tcase, crowd, 0, 8);
	tcase_add_loop_test(tcase, crowd_broadcast, 0, 5);
	tcase_add_test(tcase, two_members);
	tcase_add_test(tcase, long_vectors_of_two);
	tcase_add_test(tcase, memory);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
