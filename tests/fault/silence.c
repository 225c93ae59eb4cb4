/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a silent network is noticed. The network loses all packets ("dark"): operations of
 * one endpoint end with an error soon after FI_WEFT_PEER_TIMEOUT. When the network is back, both
 * endpoints exchange messages as before, whether or not the other one noticed. A stopped peer is
 * waited for.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC)
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "hello.h"
#include "lab.h"
#include "talk.h"

#define TIMEOUT_MS 2000
#define SLACK_MS   4000 /* all operations end within the timeout and this */
#define STILL_MS   6000 /* the peer is stopped for this long */
#define ROUNDS     3    /* of messages */
#define OPS        64
#define LONG       1000000

static struct lab lab;
static struct node n;
static fi_addr_t peer;
static struct fid_mr *region;
static uint64_t memory[64];
static unsigned char buf[LONG];
static struct fi_context ops[OPS]; /* contexts of operations, by number */
static unsigned int posted, ended, failed;

static void meet_up(void)
{
	node_open(&n, NULL);
	must(fi_mr_reg(n.domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
		       &region, NULL),
	     "fi_mr_reg");
	peer = node_meet(&n, lab.end);
}

static void part(void)
{
	must(fi_close(&region->fid), "fi_close");
	node_close(&n);
}

/* Exchanges messages; both sides call it. */
static void talk_some(void)
{
	for (unsigned int i = 0; i < ROUNDS; i++)
		talk(&n, peer, i, lab.which);
}

/* Makes progress until the other side sends a byte. No operation may succeed. */
static void stand_by(void)
{
	struct event e;
	char word;

	while (recv(lab.end, &word, 1, MSG_DONTWAIT) != 1) {
		while (node_poll(&n, &e))
			if (!e.err)
				fail("something came through the dark");
		usleep(1000);
	}
}

/* Sends the first message after the dark, from the side whose operations have failed. */
static void break_silence(void)
{
	struct event e;

	if (lab.which == 0)
		MUST(n.cq, fi_tsend(n.ep, memory, 8, NULL, peer, 99, NULL));
	else
		must(fi_trecv(n.ep, memory, 8, NULL, FI_ADDR_UNSPEC, 99, 0, NULL), "fi_trecv");
	e = node_wait(&n, TALK_MS, "the first word");
	if (e.err)
		fail("the first word ended with %s", fi_strerror(e.err));
	/* The message has arrived before the other side sends. */
	if (lab.which == 0)
		hear(lab.end, &(char){0}, 1);
	else
		tell(lab.end, "", 1);
}

/* ---- Operations under way in the dark ---- */

static void count(ssize_t ret, const char *what)
{
	must(ret, what);
	posted++;
}

/* Posts long sends, all with delivery complete. */
static void send_much(void)
{
	for (int i = 0; i < 8; i++) {
		struct iovec iov = {buf, i % 2 ? LONG : 50000};
		struct fi_msg_tagged m = {
			.msg_iov = &iov, .iov_count = 1, .addr = peer, .context = &ops[posted]};
		ssize_t ret = fi_tsendmsg(n.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE);

		if (ret != -FI_EAGAIN)
			count(ret, "fi_tsendmsg");
	}
}

static void only_wait(void)
{
	count(fi_trecv(n.ep, buf, LONG, NULL, peer, 1, 0, &ops[posted]), "fi_trecv");
	count(fi_recv(n.ep, buf, LONG, NULL, peer, &ops[posted]), "fi_recv");
}

static void ask(void)
{
	count(fi_read(n.ep, buf, 64, NULL, peer, 0, 1, &ops[posted]), "fi_read");
	count(fi_write(n.ep, buf, 64, NULL, peer, 0, 1, &ops[posted]), "fi_write");
	count(fi_fetch_atomic(n.ep, buf, 1, NULL, buf + 8, NULL, peer, 0, 1, FI_UINT64, FI_SUM,
			      &ops[posted]),
	      "fi_fetch_atomic");
}

/* Calls a peer that is not connected, until the call fails. */
static void call(void)
{
	uint64_t end = now_ms() + TIMEOUT_MS + SLACK_MS;
	ssize_t ret;

	while ((ret = fi_send(n.ep, buf, 100, NULL, peer, &ops[0])) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("a call has not failed within %d ms", TIMEOUT_MS + SLACK_MS);
	if (ret != -FI_ETIMEDOUT && ret != -FI_EHOSTUNREACH)
		fail("a call fails with %s", fi_strerror((int)-ret));
}

static const struct silence {
	const char *name;
	void (*begin)(void);
	bool strange; /* the peer is not connected before */
	bool late;    /* begins after the network went dark */
	bool asleep;  /* the peer has a far longer timeout */
} silences[] = {
	{"sending", send_much, false, true, false},
	{"waiting", only_wait, false, false, false},
	{"asking", ask, false, true, true},
	{"calling", call, true, true, false},
};

#define SILENCES (sizeof(silences) / sizeof(silences[0]))

/* Checks that all operations end in time, with a fitting error. */
static void endure(const struct silence *s)
{
	uint64_t end = now_ms() + TIMEOUT_MS + SLACK_MS;
	struct event e;

	while (ended < posted) {
		if (now_ms() > end)
			fail("%s: after %d ms %u operations of %u have not ended", s->name,
			     TIMEOUT_MS + SLACK_MS, posted - ended, posted);
		if (!node_poll(&n, &e)) {
			usleep(1000);
			continue;
		}
		ended++;
		failed += e.err != 0;
		if (e.err && e.err != FI_ETIMEDOUT && e.err != FI_EHOSTUNREACH)
			fail("%s: an operation ended with %s", s->name, fi_strerror(e.err));
	}
	if (failed < posted)
		fail("%s: %u operations of %u were done in the dark", s->name, posted - failed,
		     posted);
}

/* ---- The two sides: `near` (lab.which 0) has operations under way, `far` none ---- */

static void near(const struct silence *s)
{
	char word = 0;

	meet_up();
	if (!s->strange)
		talk_some();
	tell(lab.end, &word, 1);
	hear(lab.end, &word, 1); /* the other side is dark */
	if (!s->late)
		s->begin();
	lab_dark(&lab);
	if (s->late)
		s->begin();
	endure(s);
	lab_light(&lab);
	tell(lab.end, &word, 1);
	hear(lab.end, &word, 1);
	break_silence();
	talk_some();
	tell(lab.end, &word, 1);
	hear(lab.end, &word, 1);
	part();
}

static void far(const struct silence *s)
{
	char word = 0;

	meet_up();
	if (!s->strange)
		talk_some();
	hear(lab.end, &word, 1);
	lab_dark(&lab);
	tell(lab.end, &word, 1);
	stand_by();
	lab_light(&lab);
	tell(lab.end, &word, 1);
	break_silence();
	talk_some();
	stand_by();
	tell(lab.end, &word, 1);
	part();
}

/* ---- A peer that is stopped for long, with a working network ---- */

static void poll_good(void)
{
	struct event e;

	if (!node_poll(&n, &e)) {
		usleep(1000);
		return;
	}
	if (e.err)
		fail("of a peer that stands still: %s", fi_strerror(e.err));
	ended++;
}

static void near_still(const struct silence *s)
{
	uint64_t end = now_ms() + STILL_MS;

	(void)s;
	meet_up();
	talk_some();
	hear(lab.end, &(char){0}, 1);
	kill(lab.peer, SIGSTOP);
	only_wait();
	send_much();
	ask();
	while (now_ms() < end)
		poll_good();
	kill(lab.peer, SIGCONT);
	tell(lab.end, &posted, sizeof(posted));
	for (end += SLACK_MS; ended < posted && now_ms() < end;)
		poll_good();
	if (ended < posted)
		fail("%u operations have not ended, though the peer goes on", posted - ended);
	tell(lab.end, "", 1);
	talk_some();
	part();
}

/* The stopped peer: later completes all operations of `near_still`. */
static void far_still(const struct silence *s)
{
	unsigned int left;

	(void)s;
	meet_up();
	talk_some();
	tell(lab.end, "", 1);
	hear(lab.end, &left, sizeof(left));
	left -= 5; /* two receives and three one-sided operations need no receive here */
	for (posted = 0; posted < left; posted++)
		must(fi_trecv(n.ep, buf, LONG, NULL, peer, 0, 0, &ops[posted]), "fi_trecv");
	MUST(n.cq, fi_tsend(n.ep, buf, 8, NULL, peer, 1, NULL));
	MUST(n.cq, fi_send(n.ep, buf, 8, NULL, peer, NULL));
	for (uint64_t end = now_ms() + SLACK_MS; ended < posted + 2 && now_ms() < end;)
		poll_good();
	while (recv(lab.end, &left, 1, MSG_DONTWAIT) != 1)
		fi_cq_read(n.cq, NULL, 0);
	talk_some();
	part();
}

struct life {
	struct lab lab;
	const struct silence *silence; /* NULL: the stopped peer */
};

static void live(void *arg)
{
	const struct life *life = arg;
	const struct silence *s = life->silence;
	bool long_timeout = s && s->asleep && life->lab.which == 1;
	char text[16];

	lab = life->lab;
	snprintf(text, sizeof(text), "%d", long_timeout ? 15 * TIMEOUT_MS : TIMEOUT_MS);
	setenv("FI_WEFT_PEER_TIMEOUT", text, 1);
	setenv("FI_TCP_IFACE", "eth0", 1); /* named, for it is not up yet */
	lab_enter(&lab);
	if (lab.which == 0)
		(s ? near : near_still)(s);
	else
		(s ? far : far_still)(s);
}

/* Runs all cases at once: they mostly wait. */
int main(void)
{
	pid_t pids[SILENCES + 1][2];

	alarm(LIMIT);
	need_lab();
	need_network();
	for (size_t i = 0; i <= SILENCES; i++) {
		struct life life = {.silence = i < SILENCES ? &silences[i] : NULL};
		int ends[2];

		wire(ends);
		life.lab = (struct lab){.end = ends[1], .which = 1};
		pids[i][1] = start("far", live, &life);
		life.lab = (struct lab){.end = ends[0], .which = 0, .peer = pids[i][1]};
		pids[i][0] = start("near", live, &life);
		close(ends[0]);
		close(ends[1]);
	}
	for (size_t i = 0; i <= SILENCES; i++) {
		const char *name = i < SILENCES ? silences[i].name : "standing still";

		finish(pids[i][0], name);
		finish(pids[i][1], name);
	}
	return EXIT_SUCCESS;
}
