/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint that may have few descriptors exchanges messages with many more peers than that: idle connections are closed
 * and made again. No operation fails; messages come once, whole and in order, in both directions, those included whose
 * sender waits for nothing. So it is with encrypted connections, which take longer to make: there are fewer of them.
 */
#define CROWD_MOST 128
#define CROWD_LEN  300000 /* such messages go by rendezvous */
#include "crowd.h"
#include "hello.h"
#include "key_file.h"
#include "lab.h"

#define PEERS 120
#define FILES 48 /* descriptors of the hub */

static struct job {
	unsigned int rounds;
	unsigned int stream; /* messages of each peer, and to it, in a row */
} clear = {6, 12}, encrypted = {3, 3}, *job;

static struct lab lab = {.end = -1};
static struct shared {
	struct name hub, peer[PEERS];
} * shared;
static struct crowd crowd;

static void meet(void)
{
	char word = 0;

	tell(lab.end, &word, 1);
	hear(lab.end, &word, 1);
}

/* Makes progress until the other process comes as far. */
static void meet_awake(void)
{
	struct event e;
	char word = 0;

	tell(lab.end, &word, 1);
	while (recv(lab.end, &word, 1, MSG_DONTWAIT) != 1)
		if (crowd_poll(&crowd, &e))
			fail("an event too many");
}

static void enter(int which, int end, rlim_t files)
{
	lab.which = which;
	lab.end = end;
	allow_files(files);
	if (!strcmp(provider(), "weft"))
		lab_enter(&lab);
}

/* In odd rounds the peers begin, in even ones the hub, in each third both. */
static bool begins(bool hub, unsigned int round)
{
	return round % 3 == 2 || (round % 2 == 0) == hub;
}

/* ---- Both send to all others without waiting for anything: order ---- */

static struct word {
	uint32_t peer, number;
} words[PEERS];
static unsigned int sent[PEERS], came[PEERS];

static void receive_word(unsigned int i)
{
	must(fi_recv(crowd.ep[i % crowd.count], &words[i], sizeof(words[i]), NULL, FI_ADDR_UNSPEC,
		     &words[i]),
	     "fi_recv");
}

/* The next word from peer `i`, or to it. False: not now. */
static bool send_word(bool hub, unsigned int i)
{
	struct word w = {i, sent[i]};
	ssize_t ret = fi_inject(crowd.ep[i % crowd.count], &w, sizeof(w), crowd.peer[hub ? i : 0]);

	if (ret == -FI_EAGAIN)
		return false;
	must(ret, "fi_inject");
	sent[i]++;
	return true;
}

static void take_word(const struct event *e)
{
	const struct word *w = e->context;

	if (e->err)
		fail("a receive ended with %s", fi_strerror(e->err));
	if (w->peer >= PEERS || w->number != came[w->peer]++)
		fail("word %u of peer %u comes after %u", w->number, w->peer, came[w->peer] - 1);
	receive_word((unsigned int)(w - words));
}

static void stream(bool hub)
{
	unsigned int unsent = PEERS * job->stream, missing = PEERS * job->stream, seed = hub;
	uint64_t end = now_ms() + CROWD_MS;
	struct event e;

	for (unsigned int i = 0; i < PEERS; i++)
		receive_word(i);
	while (unsent || missing) {
		unsigned int i = (unsigned int)rand_r(&seed) % PEERS;

		if (now_ms() > end)
			fail("%u words are not sent, %u have not come", unsent, missing);
		if (sent[i] < job->stream && send_word(hub, i))
			unsent--;
		for (; node_poll(&crowd.n, &e); missing--)
			take_word(&e);
	}
	meet_awake();
}

/* ---- The peers: each answers, or is answered ---- */

static void peers_round(unsigned int round)
{
	crowd_receive(&crowd, 0, PEERS);
	if (begins(false, round))
		crowd_send_all(&crowd, 0, PEERS, 0, round);
	crowd_await(&crowd, begins(false, round) ? 2 * PEERS : PEERS, round);
	if (!begins(false, round)) {
		crowd_send_all(&crowd, 0, PEERS, 0, round);
		crowd_await(&crowd, PEERS, round);
	}
	meet_awake();
}

static void peers(void *arg)
{
	enter(1, *(int *)arg, 8 * PEERS);
	crowd_open(&crowd, PEERS);
	for (unsigned int i = 0; i < PEERS; i++)
		shared->peer[i] = crowd_name(&crowd, i);
	meet();
	crowd_insert(&crowd, &shared->hub);
	for (unsigned int round = 0; round < job->rounds; round++)
		peers_round(round);
	stream(false);
	crowd_close(&crowd);
}

/* ---- The hub ---- */

static void hub_round(unsigned int round)
{
	unsigned int sends = PEERS;

	crowd_receive(&crowd, 0, PEERS);
	if (begins(true, round)) {
		crowd_send_all(&crowd, 0, PEERS, CROWD_OWN, round);
		crowd_await(&crowd, 2 * PEERS, round);
	} else {
		crowd_take(&crowd, sends, round, true);
	}
	printf("round %u: %d descriptors\n", round, count_fds(getpid()) - 3);
	meet_awake();
}

static void run_hub(int end)
{
	enter(0, end, FILES);
	crowd_open(&crowd, 1);
	shared->hub = crowd_name(&crowd, 0);
	meet();
	for (unsigned int i = 0; i < PEERS; i++)
		crowd_insert(&crowd, &shared->peer[i]);
	for (unsigned int round = 0; round < job->rounds; round++)
		hub_round(round);
	stream(true);
	printf("%d descriptors after the stream\n", count_fds(getpid()) - 3);
	crowd_close(&crowd);
}

static void run_job(void *arg)
{
	int ends[2];

	job = arg;
	wire(ends);
	lab.peer = start("peers", peers, &ends[1]);
	run_hub(ends[0]);
	finish(lab.peer, "peers");
}

int main(void)
{
	alarm(LIMIT);
	need_network();
	if (!strcmp(provider(), "weft"))
		need_lab();
	setenv("FI_TCP_IFACE", strcmp(provider(), "weft") ? "lo" : "eth0", 1);
	shared = crowd_share(sizeof(*shared));
	finish(start("clear", run_job, &clear), "clear");
	use_key("encrypt", "a key of a good length", 22);
	run_job(&encrypted);
	return EXIT_SUCCESS;
}
