/* SPDX-License-Identifier: BSD-2-Clause TIMEOUT=90 */
/*
 * A thousand endpoints of another process connect to one, within a second of their start, and exchange messages with it:
 * over the loopback, or (weft) as another host, in a network namespace. Each idle peer costs the hub little memory, one
 * descriptor and no work of progress; what an active one costs does not grow with their number. fault_scale asks the
 * same of sockets that speak the protocol.
 */
#define LIMIT 85
#include "crowd.h"
#include "hello.h"
#include "lab.h"
#include "meter.h"

#define PEERS       1000
#define FEW         10
#define SERVED_MS   5000 /* all peers of a storm have their answers */
#define PEER_MOST   4096 /* bytes of a peer that is connected and idle */
#define IDLE_MOST   1.5  /* instructions beside a thousand idle peers, to those beside a few */
#define BUSY_MOST   1.5  /* the same of active ones */
#define BURSTS      50   /* of a few active peers */
#define COUNT_EVERY 10

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
	crowd_send_all(&crowd, first, count, 0, round);
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
	crowd_send_all(&crowd, 0, count, 0, round);
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

static void take_few(void *round)
{
	serve(FEW, *(unsigned int *)round, false);
}

struct sample {
	double instructions[PEERS / FEW];
	size_t count;
};

/* Takes the messages that so many peers have sent, a few at a time; counts the instructions of some, as that is slow. */
static void drain(unsigned int count, unsigned int round, struct sample *sample)
{
	static unsigned int times;

	crowd_receive(&hub, 0, count);
	meet();
	for (unsigned int i = 0; i < count / FEW; i++)
		if (times++ % COUNT_EVERY)
			take_few(&round);
		else
			sample->instructions[sample->count++] =
				(double)meter_instructions(take_few, &round) / FEW;
	meet();
}

static void check_idle(double few, double many)
{
	printf("an empty read: %.1f instructions with %d peers, %.1f with %d\n", few, FEW, many,
	       PEERS);
	if (many > IDLE_MOST * few)
		fail("an empty read costs more with %d peers than with %d", PEERS, FEW);
}

static void check_active(void)
{
	struct sample some = {0}, all = {0};
	double few, many;

	for (unsigned int i = 0; i < BURSTS; i++)
		drain(FEW, 3 + i, &some);
	drain(PEERS, 3 + BURSTS, &all);
	few = meter_median(some.instructions, some.count);
	many = meter_median(all.instructions, all.count);
	printf("a message taken: %.0f instructions while %d peers send, %.0f while %d do\n", few,
	       FEW, many, PEERS);
	if (many > BUSY_MOST * few)
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
	size_t before;
	double few;
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
	few = meter_empty_read(hub.n.cq);
	before = meter_heap();
	files = count_fds(getpid());
	meet();
	serve(PEERS - FEW, 1, true);
	meet();
	check_cost(meter_heap() - before, count_fds(getpid()) - files);
	check_idle(few, meter_empty_read(hub.n.cq));
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
