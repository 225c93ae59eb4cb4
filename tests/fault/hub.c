/* SPDX-License-Identifier: BSD-2-Clause TIMEOUT=90 */
/*
 * A thousand endpoints of another process connect to one, within a second of their start, and exchange messages with it:
 * over the loopback, or (weft) as another host, in a network namespace. Each idle peer costs the hub little memory, one
 * descriptor and no time of progress; what an active one costs does not grow with their number. fault_scale asks the
 * same of sockets that speak the protocol.
 */
#define LIMIT 85
#include "crowd.h"
#include "hello.h"
#include "lab.h"
#include "meter.h"

#define PEERS     1000
#define FEW       10
#define SERVED_MS 5000 /* all peers of a storm have their answers */
#define PEER_MOST 4096 /* bytes of a peer that is connected and idle */
#define BATCH     2000 /* empty reads */
#define BATCHES   100
#define STEPPED                                                                                    \
	64 /* reads in a row whose instructions are counted: one of them polls the sockets */
#define STEPS       3
#define SLOWER_MOST 1.5 /* idle peers: a thousand to a few */
#define BUSIER_MOST 2.0 /* active ones */
#define BURSTS      50  /* of a few active peers */

static struct lab lab = {.end = -1};
static struct shared {
	struct name hub, peer[PEERS];
} * shared;

static void meet(void)
{
	char word = 0;

	tell(lab.end, &word, 1);
	hear(lab.end, &word, 1);
}

static void enter(int which, int end)
{
	lab.which = which;
	lab.end = end;
	allow_files(8 * PEERS);
	if (!strcmp(provider(), "weft"))
		lab_enter(&lab);
}

/* ---- The peers ---- */

static struct crowd crowd;

/* So many peers from `first` on send their message of the round, and have an answer each. */
static void exchange(unsigned int first, unsigned int count, unsigned int round)
{
	crowd_receive(&crowd, first, count);
	for (unsigned int i = first; i < first + count; i++)
		crowd_send(&crowd, i, 0, round);
	crowd_await(&crowd, 2 * count, round);
}

static void storm(void)
{
	uint64_t begin = now_ms();

	exchange(FEW, PEERS - FEW, 1);
	begin = now_ms() - begin;
	printf("%d peers have connected and have their answers after %llu ms\n", PEERS - FEW,
	       (unsigned long long)begin);
	if (begin > SERVED_MS)
		fail("%d peers have their answers after %llu ms", PEERS - FEW,
		     (unsigned long long)begin);
}

/* Sends a message of each of `count` peers; they are in the hub's sockets when it is told. */
static void burst(unsigned int count, unsigned int round)
{
	for (unsigned int i = 0; i < count; i++)
		crowd_send(&crowd, i, 0, round);
	crowd_await(&crowd, count, round);
	meet();
	meet();
}

static void peers(void *arg)
{
	enter(1, *(int *)arg);
	crowd_open(&crowd, PEERS);
	for (unsigned int i = 0; i < PEERS; i++)
		shared->peer[i] = crowd_name(&crowd, i);
	meet();
	crowd_insert(&crowd, &shared->hub);
	exchange(0, FEW, 0);
	meet();
	meet();
	storm();
	meet();
	meet();
	exchange(0, PEERS, 2);
	meet();
	for (unsigned int i = 0; i < BURSTS; i++)
		burst(FEW, 3 + i);
	burst(PEERS, 3 + BURSTS);
	crowd_close(&crowd);
}

/* ---- The hub ---- */

static struct crowd hub;

/* Takes a message of so many peers; answers each if `answers`. */
static void serve(unsigned int count, unsigned int round, bool answers)
{
	crowd_take(&hub, count, round, answers);
}

/* Costs of a read of the empty queue, or of a message taken. */
struct cost {
	double ns, instructions;
};

static void read_some(void)
{
	for (int i = 0; i < STEPPED; i++)
		fi_cq_read(hub.n.cq, NULL, 0);
}

/* The median of many batches, polls of sockets included. */
static struct cost empty_read(void)
{
	double batch[BATCHES], steps[STEPS];

	for (int b = 0; b < BATCHES; b++) {
		double begin = meter_ns();

		for (int i = 0; i < BATCH; i++)
			fi_cq_read(hub.n.cq, NULL, 0);
		batch[b] = (meter_ns() - begin) / BATCH;
	}
	/* Stepping takes so long that rare checks of all peers come often: not into each. */
	for (int i = 0; i < STEPS; i++)
		steps[i] = (double)meter_instructions(read_some) / STEPPED;
	return (struct cost){meter_median(batch, BATCHES), meter_median(steps, STEPS)};
}

/* ns for each message, if so many peers send one. */
static double drain(unsigned int count, unsigned int round)
{
	double ns;

	crowd_receive(&hub, 0, count);
	meet();
	ns = meter_ns();
	serve(count, round, false);
	ns = (meter_ns() - ns) / count;
	meet();
	return ns;
}

static void check_idle(struct cost few, struct cost many)
{
	printf("an empty read: %.1f ns, %.1f instructions with %d peers, %.1f ns, %.1f with %d\n",
	       few.ns, few.instructions, FEW, many.ns, many.instructions, PEERS);
	if (many.ns > SLOWER_MOST * few.ns || many.instructions > SLOWER_MOST * few.instructions)
		fail("an empty read costs more with %d peers than with %d", PEERS, FEW);
}

static void check_active(void)
{
	double few[BURSTS], median, many;

	for (unsigned int i = 0; i < BURSTS; i++)
		few[i] = drain(FEW, 3 + i);
	median = meter_median(few, BURSTS);
	many = drain(PEERS, 3 + BURSTS);
	printf("a message taken: %.0f ns while %d peers send, %.0f ns while %d do\n", median, FEW,
	       many, PEERS);
	if (many > BUSIER_MOST * median)
		fail("a message costs more while %d peers send than while %d do", PEERS, FEW);
}

static void check_cost(size_t bytes, int files)
{
	printf("%zu bytes and %.2f descriptors for a peer that is connected and idle\n",
	       bytes / (PEERS - FEW), (double)files / (PEERS - FEW));
	if (bytes / (PEERS - FEW) > PEER_MOST)
		fail("%zu bytes for a peer, more than %d", bytes / (PEERS - FEW), PEER_MOST);
	if (files != PEERS - FEW)
		fail("%d descriptors for %d peers", files, PEERS - FEW);
}

static void run_hub(int end)
{
	struct cost few;
	size_t before;
	int files;

	enter(0, end);
	crowd_open(&hub, 1);
	shared->hub = crowd_name(&hub, 0);
	meet();
	for (unsigned int i = 0; i < PEERS; i++)
		crowd_insert(&hub, &shared->peer[i]);
	crowd_receive(&hub, 0, PEERS);
	serve(FEW, 0, true);
	meet();
	few = empty_read();
	before = meter_heap();
	files = count_fds(getpid());
	meet();
	serve(PEERS - FEW, 1, true);
	meet();
	check_cost(meter_heap() - before, count_fds(getpid()) - files);
	check_idle(few, empty_read());
	crowd_receive(&hub, 0, PEERS);
	meet();
	serve(PEERS, 2, true);
	meet();
	check_active();
	crowd_close(&hub);
}

int main(void)
{
	int ends[2];

	alarm(LIMIT);
	need_network();
	if (!strcmp(provider(), "weft"))
		need_lab();
	setenv("FI_TCP_IFACE", strcmp(provider(), "weft") ? "lo" : "eth0", 1);
	shared = crowd_share(sizeof(*shared));
	wire(ends);
	lab.peer = start("peers", peers, &ends[1]);
	run_hub(ends[0]);
	finish(lab.peer, "peers");
	return EXIT_SUCCESS;
}
