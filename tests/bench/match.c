/* SPDX-License-Identifier: BSD-2-Clause */
/* What a message, a receive or its cancelling costs while many others wait (see cost.h):
 *
 *     match [-n] PROVIDER posted NUMBER       messages into so many posted receives, each with its
 *                                             own tag and the source
 *     match [-n] PROVIDER any NUMBER          the same from any source
 *     match [-n] PROVIDER masks NUMBER        the same with ignored bits, of four masks by turns
 *     match [-n] PROVIDER unexpected NUMBER   receives for so many messages that are there
 *     match [-n] PROVIDER cancel NUMBER       cancelling one of so many posted receives
 *     match PROVIDER entries NUMBER           fi_cq_read of up to so many entries
 *
 * Up to eight are taken from those that wait, then as many put at their end. Which ones: the first
 * ("order"), the last ("reverse"), or any ("random").
 *
 * -n: over a network. Prints lines "WHAT NUMBER VALUE", nanoseconds of a message sent, received and its receive
 * posted, of a receive cancelled and posted, or of an entry; "bytes" are those
 * of a posted receive, or of a message that is there.
 * Status 77: the provider is not available. The same file runs on any libfabric.so.1 in
 * LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <rdma/fi_tagged.h>
#include "cost.h"
#include "memory.h"

#define BATCH    8
#define BATCHES  8 /* batches of a repeat, more if they are smaller */
#define ENTRIES  256
#define MASKS    4
#define STUCK_US 2000000

/* A receive, or the message for it: its place in the table is the tag. */
struct receive {
	struct fi_context2 context;
	uint64_t ignore;
	bool awaited; /* its completion is to come */
};

static struct receive *receives;
static fi_addr_t source;
static char message[8] = "message", room[8];
static size_t completed, operations;
static size_t batch, batches; /* of a repeat */
static size_t first;          /* of those that wait, if they are taken in their order */

/* Tags of the batches, as they are taken and put back. */
static size_t taken[BATCH * BATCHES][BATCH], back[BATCH * BATCHES][BATCH];

static void completion(void *context)
{
	struct receive *of = context;

	if (!of->awaited)
		pair_fail("another receive was completed than the message was for");
	of->awaited = false;
	completed++;
}

static void progress(void)
{
	struct fi_cq_tagged_entry entry[16];
	struct fi_cq_err_entry error = {0};
	ssize_t count = fi_cq_read(cq, entry, 16);

	for (ssize_t i = 0; i < count; i++)
		completion(entry[i].op_context);
	if (count != -FI_EAVAIL) {
		must(count == -FI_EAGAIN ? 0 : count, "fi_cq_read");
		return;
	}
	must(fi_cq_readerr(cq, &error, 0), "fi_cq_readerr");
	must(error.err == FI_ECANCELED ? 0 : -error.err, "an operation");
	completion(error.op_context);
}

static void await(size_t count)
{
	while (completed < count)
		progress();
	completed -= count;
}

/* Called when a provider refuses for now. Where it does for long, it does not take so many. */
static void again(void)
{
	static size_t last;
	static double since;

	if (last != operations) {
		last = operations;
		since = microseconds();
	}
	if (microseconds() - since > STUCK_US)
		fabric_offered(-FI_EOPNOTSUPP, "so many");
	progress();
}

static void post(size_t tag)
{
	uint64_t ignore = receives[tag].ignore;
	ssize_t ret;

	for (operations++; (ret = fi_trecv(ep, room, sizeof room, NULL, source,
					   tag | (0x5a5a5a5a00000000ULL & ignore), ignore,
					   &receives[tag].context)) == -FI_EAGAIN;)
		again();
	fabric_offered(ret == -FI_ENOMEM ? -FI_EOPNOTSUPP : ret, "so many");
}

static void transmit(size_t tag)
{
	ssize_t ret;

	for (operations++;
	     (ret = fi_tinject(tx, message, sizeof message, peer, tag)) == -FI_EAGAIN;)
		again();
	must(ret, "fi_tinject");
}

/* Without a look now and then what was sent would wait in the provider's own buffers. */
static void leave(size_t tag)
{
	transmit(tag);
	progress();
}

static void cancel(size_t tag)
{
	must(fi_cancel(&ep->fid, &receives[tag].context), "fi_cancel");
}

static void (*choose)(size_t *tags); /* fills in those of a batch */

/* ---- What is taken --------------------------------------------------------------------------- */

static bool is_among(const size_t *tags, size_t count, size_t tag)
{
	for (size_t i = 0; i < count; i++)
		if (tags[i] == tag)
			return true;
	return false;
}

static void take_order(size_t *tags)
{
	for (size_t i = 0; i < batch; i++)
		tags[i] = (first + i) % number;
	first = (first + batch) % number;
}

static void take_reverse(size_t *tags)
{
	for (size_t i = 0; i < batch; i++)
		tags[i] = number - 1 - i;
}

static void take_random(size_t *tags)
{
	for (size_t i = 0; i < batch; i++)
		do
			tags[i] = cost_random() % number;
		while (is_among(tags, i, tags[i]));
}

static int by_age(const void *a, const void *b)
{
	size_t x = (*(const size_t *)a + number - first) % number;
	size_t y = (*(const size_t *)b + number - first) % number;

	return x < y ? -1 : x > y;
}

/* What is taken is put back in the order in which it waited, so that the last ones remain the last. */
static void choose_all(void)
{
	for (size_t b = 0; b < batches; b++) {
		choose(taken[b]);
		memcpy(back[b], taken[b], sizeof back[b]);
		qsort(back[b], batch, sizeof back[b][0], by_age);
	}
}

/* ---- What is measured ------------------------------------------------------------------------ */

struct way {
	const char *name;
	void (*take)(size_t tag), (*put)(size_t tag);
};

static const struct way *way;

static const struct way ways[] = {
	{"posted", transmit, post},  {"any", transmit, post},  {"masks", transmit, post},
	{"unexpected", post, leave}, {"cancel", cancel, post},
};

/* Returns nanoseconds of one that is taken and put back. */
static double once(void)
{
	double start;

	choose_all();
	start = microseconds();
	for (size_t b = 0; b < batches; b++) {
		for (size_t i = 0; i < batch; i++) {
			receives[taken[b][i]].awaited = true;
			way->take(taken[b][i]);
		}
		await(batch);
		for (size_t i = 0; i < batch; i++)
			way->put(back[b][i]);
	}
	return (microseconds() - start) * 1000 / (double)(batches * batch);
}

static void measure(const char *what, void (*how)(size_t *tags))
{
	choose = how;
	cost_say(what, cost_median(once));
}

/* Memory for one is told where there are enough of them to tell it from what all share. */
static void among(void)
{
	struct use before = memory_use();
	double memory;

	for (size_t i = 0; i < number; i++)
		way->put(i);
	memory = memory_since(before);
	measure("reverse", take_reverse);
	measure("order", take_order);
	measure("random", take_random);
	if (number >= 1000)
		cost_say("bytes", memory / (double)number);
}

/* Nothing makes progress but the reads that are timed. */
static double entries(void)
{
	struct fi_cq_tagged_entry entry[ENTRIES];
	size_t got = 0, sent = 0;
	double start;

	for (size_t i = 0; i < ENTRIES; i++)
		post(i);
	while (sent < ENTRIES && !fi_tinject(tx, message, sizeof message, peer, sent))
		sent++;
	start = microseconds();
	while (got < sent) {
		ssize_t count = fabric_read(entry, number);

		got += count > 0 ? (size_t)count : 0;
	}
	start = microseconds() - start;
	for (size_t i = sent; i < ENTRIES; i++)
		transmit(i);
	while (got < ENTRIES) {
		ssize_t count = fabric_read(entry, ENTRIES);

		got += count > 0 ? (size_t)count : 0;
	}
	return start * 1000 / (double)sent;
}

static const struct way *find_way(const char *name)
{
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	return NULL;
}

/* Bits that are ignored lie above all tags, and differ from what is sent. */
static void make_receives(size_t count, bool masked)
{
	receives = calloc(count, sizeof *receives);
	if (!receives)
		pair_fail("no memory");
	memset(receives, 1, count * sizeof *receives);
	for (size_t i = 0; i < count; i++) {
		receives[i].ignore = masked ? 0xffULL << (32 + 8 * (i % MASKS)) : 0;
		receives[i].awaited = false;
	}
}

int main(int argc, char **argv)
{
	const char *what;

	if (argc > 1 && !strcmp(argv[1], "-n")) {
		pair_network = true;
		argc--;
		argv++;
	}
	what = argc == 4 ? argv[2] : "";
	number = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
	way = find_way(what);
	if (!number || (!way && (strcmp(what, "entries") != 0 || number > ENTRIES))) {
		fputs("Usage: match [-n] PROVIDER posted|any|masks|unexpected|cancel|entries NUMBER\n",
		      stderr);
		return EXIT_FAILURE;
	}
	batch = number < BATCH ? number : BATCH;
	batches = BATCH * BATCHES / batch;
	make_receives(way ? number : ENTRIES, !strcmp(what, "masks"));
	cost_open(argv[1], FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, false);
	source = strcmp(what, "any") != 0 ? tx_addr : FI_ADDR_UNSPEC;
	if (way)
		among();
	else
		cost_say("entry", cost_median(entries));
	cost_close();
	return EXIT_SUCCESS;
}
