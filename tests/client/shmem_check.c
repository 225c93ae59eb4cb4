/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs for the runtime of shmem_node.h; each checks its results:
 *	shmem_check [-n pes] [-e endpoints] [-p provider] [-w loops of work] [-r rounds] [-q] PROGRAM
 * -q: the heap has no counter, so waits poll. `pace` prints the wall time and CPU time of computing
 * with calls between.
 */
#include "shmem_node.h"

/* Returns a number that depends on both. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t x =
		(a + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (b + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);

	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 32;
}

/* Computes; the compiler cannot remove the loop. */
static void work(long loops)
{
	uint64_t x = 1;

	for (long i = 0; i < loops; i++)
		__asm__ volatile("" : "+r"(x) : : "memory");
}

/* ---- Locks ----------------------------------------------------------------------------------- */

/*
 * A queue lock. Masked swaps by others change the two halves of each process's word: the upper half
 * names the next in the queue, the lower half says that this process has the lock. `last`, of
 * process 0, is the end of the queue.
 */
#define ROUND UINT64_C(0xffffffff)
#define NEXT  (ROUND << 32)

struct lock {
	uint64_t *last, *word;
};

static void lock_take(struct lock *l)
{
	uint64_t before, mine = (uint64_t)node.me + 1;

	__atomic_store_n(l->word, 0, __ATOMIC_SEQ_CST);
	before = compare(FI_MSWAP, l->last, mine, UINT64_MAX, 0);
	if (!before)
		return;
	compare(FI_MSWAP, l->word, mine << 32, NEXT, (int)before - 1);
	wait_while(l->word, ROUND, 0);
}

static void lock_give(struct lock *l)
{
	uint64_t next = word_now(l->word) >> 32, mine = (uint64_t)node.me + 1;

	if (!next) {
		if (compare(FI_CSWAP, l->last, 0, mine, 0) == mine)
			return;
		next = wait_while(l->word, NEXT, 0) >> 32;
	}
	compare(FI_MSWAP, l->word, 1, ROUND, (int)next - 1);
}

/* Under the lock, each process reads, computes and writes a shared counter. */
static void locks(void)
{
	struct lock l = {.last = shared(8), .word = shared(8)};
	uint64_t *sum = shared(8), value;

	barrier();
	for (long i = 0; i < node.wanted.rounds; i++) {
		lock_take(&l);
		get(&value, sum, 8, 0);
		work(node.wanted.work);
		value++;
		put(sum, &value, 8, 0);
		quiet();
		lock_give(&l);
	}
	barrier();
	if (node.me == 0 && *sum != (uint64_t)(node.pes * node.wanted.rounds))
		die("%llu of %ld", (unsigned long long)*sum, node.pes * node.wanted.rounds);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Changes the word of `pe` from `from` to `from` + 1, each time by another operation. */
static void raise_word(uint64_t *word, uint64_t from, int pe)
{
	uint64_t to = from + 1, old = from;

	switch (from % 6) {
	case 0:
		put(word, &to, 8, pe);
		break;
	case 1:
		add(word, 1, pe);
		break;
	case 2:
		old = fetch(FI_SUM, word, 1, pe);
		break;
	case 3:
		old = fetch(FI_ATOMIC_WRITE, word, to, pe);
		break;
	case 4:
		old = compare(FI_CSWAP, word, to, from, pe);
		break;
	default:
		old = compare(FI_MSWAP, word, to, UINT64_MAX, pe);
	}
	if (old != from)
		die("the word of pe %d was %llu, not %llu", pe, (unsigned long long)old,
		    (unsigned long long)from);
}

static void await_token(const uint64_t *word, uint64_t round)
{
	uint64_t now = wait_while(word, UINT64_MAX, round);

	if (now != round + 1)
		die("the token was raised to %llu in round %llu", (unsigned long long)now,
		    (unsigned long long)round);
}

/* A token goes round; processes without the token sleep. */
static void waits(void)
{
	uint64_t *word = shared(8);
	int next = (node.me + 1) % node.pes;

	barrier();
	for (uint64_t i = 0; i < (uint64_t)node.wanted.rounds; i++) {
		if (node.me)
			await_token(word, i);
		work(node.wanted.work);
		raise_word(word, i, next);
		if (!node.me)
			await_token(word, i);
	}
}

/* ---- All to all ------------------------------------------------------------------------------ */

/* Values are swapped into slots of all processes: each value must be somewhere exactly once. */
static void swaps(void)
{
	enum { SLOTS = 4 };
	uint64_t *slot = shared(SLOTS * sizeof(*slot)), *total = shared(2 * sizeof(*total));
	uint64_t here = 0, all = 0, held = 0;

	barrier();
	for (long i = 0; i < node.wanted.rounds; i++)
		for (int k = 0; k < node.pes; k++) {
			int pe = (node.me + k) % node.pes, s = (int)(i + k) % SLOTS;

			/* `all`: sum of values put in by this process; `held`: of those got out. */
			uint64_t value = mix((uint64_t)(node.me * 1000 + k), (uint64_t)i) >> 16;

			all += value;
			held += i % 2 ? compare(FI_MSWAP, &slot[s], value, UINT64_MAX, pe)
				      : fetch(FI_ATOMIC_WRITE, &slot[s], value, pe);
			work(node.wanted.work);
		}
	barrier();
	for (int s = 0; s < SLOTS; s++)
		here += slot[s];
	add(&total[0], all, 0);
	add(&total[1], held + here, 0);
	barrier();
	if (node.me == 0 && total[0] != total[1])
		die("%llx went in, %llx is there", (unsigned long long)total[0],
		    (unsigned long long)total[1]);
}

/* Each process writes a block to each other one, and reads the blocks of others. */
static void blocks(void)
{
	static const size_t lens[] = {8, 16, 17, 1000, 12000};
	enum { MOST = 12000 };
	char *from = shared(MOST), *in = shared((size_t)node.pes * MOST), back[MOST];

	for (long i = 0; i < node.wanted.rounds; i++) {
		size_t len = lens[i % 5];

		for (size_t at = 0; at < len; at++)
			from[at] = (char)(mix((uint64_t)node.me, (uint64_t)i) + at);
		for (int k = 1; k <= node.pes; k++)
			put(in + (size_t)node.me * MOST, from, len, (node.me + k) % node.pes);
		barrier();
		for (int k = 0; k < node.pes; k++) {
			int pe = (node.me + k) % node.pes;
			char first = (char)mix((uint64_t)pe, (uint64_t)i);

			get(back, from, len, pe);
			if (memcmp(back, in + (size_t)pe * MOST, len) != 0 || back[0] != first)
				die("round %ld: the block of pe %d is not what it wrote", i, pe);
		}
		barrier();
	}
}

/* ---- Computing between calls ----------------------------------------------------------------- */

/* The other process makes calls that need this one at random times, while this one computes. */
static void pace(void)
{
	uint64_t *word = shared(8), value = 0;
	double start, cpu;

	barrier();
	meet();
	start = seconds();
	cpu = cpu_seconds();
	for (long i = 0; i < node.wanted.rounds; i++) {
		int pe = (int)(mix((uint64_t)node.me, (uint64_t)i) % (uint64_t)(node.pes - 1));

		pe += pe >= node.me;
		work(node.wanted.work / 2 +
		     (long)(mix((uint64_t)i, 7) % (uint64_t)(node.wanted.work + 1)));
		switch (i % 4) {
		case 0:
			fetch(FI_SUM, word, 1, pe);
			break;
		case 1:
			get(&value, word, 8, pe);
			break;
		case 2:
			put(word + 1, &value, 8, pe);
			quiet();
			break;
		default:
			compare(FI_MSWAP, word + 2, value, UINT64_MAX, pe);
		}
	}
	barrier();
	node.team->seconds[node.me] = seconds() - start;
	node.team->cpu[node.me] = cpu_seconds() - cpu;
	meet();
	if (node.me == 0) {
		double most = 0, sum = 0;

		for (int i = 0; i < node.pes; i++) {
			sum += node.team->cpu[i];
			if (node.team->seconds[i] > most)
				most = node.team->seconds[i];
		}
		printf("%.3f s, %.3f s of processors\n", most, sum);
		fflush(stdout);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} programs[] = {
	{"locks", locks}, {"waits", waits}, {"swaps", swaps}, {"blocks", blocks}, {"pace", pace}};

int main(int argc, char **argv)
{
	const char *slower = getenv("SLOWER");
	struct wanted w = {.pes = 2, .endpoints = 1, .rounds = 100};
	int option;

	w.slower = slower ? (unsigned int)atoi(slower) : 1;

	while ((option = getopt(argc, argv, "n:e:p:w:r:q")) != -1) {
		switch (option) {
		case 'n':
			w.pes = atoi(optarg);
			break;
		case 'e':
			w.endpoints = atoi(optarg);
			break;
		case 'p':
			w.provider = optarg;
			break;
		case 'w':
			w.work = atol(optarg);
			break;
		case 'r':
			w.rounds = atol(optarg);
			break;
		case 'q':
			w.no_event = true;
			break;
		default:
			return 2;
		}
	}
	for (size_t i = 0; optind < argc && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (strcmp(argv[optind], programs[i].name) == 0 && w.pes <= PES_MAX)
			return node_run(&w, programs[i].run);
	fprintf(stderr, "which program?\n");
	return 2;
}
