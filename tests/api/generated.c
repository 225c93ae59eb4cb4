/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=300 */
/*
 * Programs that nobody thought of, made from seeds, and an oracle that knows only what the interface
 * promises. What failed once is in generated/corpus, and runs first.
 *
 *	generated                      the corpus, then new seeds for SECONDS
 *	generated seed N               one seed
 *	generated seeds FROM COUNT
 *	generated show N               prints the program of a seed
 *	generated FILE...              programs in files
 *
 * A program that fails is printed with the fewest lines that fail, too: put it into the corpus.
 *
 * The properties, by the first word of a failure:
 *	progress   what must come comes within a number of rounds, whatever else goes on
 *	accepted   -FI_EAGAIN ends, unless as many operations as the queue holds are under way
 *	delivered  what was accepted ends, also if its sender has left
 *	once       each operation ends once; injected ones have no entry, nor those that ask for none;
 *	           no message is received twice
 *	ends       in success, unless cancelled, cut off, or the peer has left; connections only then
 *	fits       a receive takes a message that was accepted and has its kind, tag and source
 *	order      of one sender's messages, writes and reads, and of receives that fit
 *	length     of what is received; FI_ETRUNC exactly if it is longer than the buffer
 *	entry      context, flags, tag, data and source of a completion
 *	bytes      of messages, reads and writes, nothing beside them, before the entry that tells
 *	saw        what was written before a message was sent is there when that is received
 *	atomics    sums, and what fetching ones saw
 *	counters   each has its value, and each error an entry
 *	trigger    what is to begin later does not begin before
 *	wakes      who sleeps is woken by what must come, not by the end of its time
 */
#include "api.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>
#include "generated/keys.h"
#include "generated/line.h"
#include "generated/program.h"
#include "generated/draw.h"
#include "generated/world.h"
#include "generated/lives.h"
#include "generated/judge.h"
#include "generated/over.h"
#include "generated/atomics.h"
#include "generated/history.h"
#include "generated/proc.h"
#include "generated/open.h"
#include "generated/took.h"
#include "generated/connect.h"
#include "generated/round.h"
#include "generated/block.h"
#include "generated/wait.h"
#include "generated/doze.h"
#include "generated/fate.h"
#include "generated/final.h"
#include "generated/call.h"
#include "generated/play.h"
#include "generated/trial.h"
#include "generated/shrink.h"
#include <glob.h>

#define SECONDS 60

static bool file(const char *path)
{
	struct program p;
	char why[512];

	if (!program_read(&p, path))
		return false;
	switch (trial(&p, why, sizeof(why))) {
	case TRIAL_GOOD:
		return true;
	case TRIAL_BAD:
		printf("FAIL %s: %s\n", path, why);
		return false;
	default:
		printf("FAIL %s: too large\n", path);
		return false;
	}
}

static bool corpus(void)
{
	bool good = true;
	glob_t g = {0};

	if (!glob("tests/api/generated/corpus/*.txt", 0, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc; i++)
			good &= file(g.gl_pathv[i]);
	printf("%zu programs of the corpus\n", g.gl_pathc);
	globfree(&g);
	return good;
}

/* Of more failures only the first is made shorter: that takes a while. */
static bool seed(uint64_t number, bool first)
{
	struct program p;
	char why[512];

	draw(&p, number);
	if (trial(&p, why, sizeof(why)) == TRIAL_GOOD)
		return true;
	printf("FAIL seed %" PRIu64 ": %s\n", number, why);
	fflush(stdout);
	if (first)
		shrink(&p);
	fflush(stdout);
	return false;
}

/* `seconds`: 0: no limit */
static bool seeds(uint64_t from, uint64_t count, double seconds)
{
	double end = api_seconds() + seconds;
	uint64_t i = 0, bad = 0;

	printf("seeds from %" PRIu64 ", over %s\n", from, api_provider());
	fflush(stdout);
	for (; i < count && (!seconds || api_seconds() < end); i++)
		bad += !seed(from + i, !bad);
	printf("%" PRIu64 " of %" PRIu64 " seeds failed\n", bad, i);
	return !bad;
}

static uint64_t new_seed(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t number(const char *word)
{
	return word ? strtoull(word, NULL, 0) : 0;
}

static bool run(int argc, char **argv)
{
	bool good = true;

	if (argc < 2)
		return corpus() & seeds(new_seed(), UINT64_MAX, SECONDS);
	if (argc > 2 && !strcmp(argv[1], "seed"))
		return seed(number(argv[2]), true);
	if (argc > 3 && !strcmp(argv[1], "seeds"))
		return seeds(number(argv[2]), number(argv[3]), 0);
	if (argc > 2 && !strcmp(argv[1], "show")) {
		struct program p;

		draw(&p, number(argv[2]));
		program_print(&p, stdout);
		return true;
	}
	for (int i = 1; i < argc; i++)
		good &= file(argv[i]);
	return good;
}

int main(int argc, char **argv)
{
	bool good = run(argc, argv);

	fflush(stdout);
	return good ? 0 : 1;
}
