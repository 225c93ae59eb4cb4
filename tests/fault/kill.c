/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=90
 *
 * Two hundred times two peers of a survivor are killed in the middle of a transfer, one after the other
 * or at once, while a third one goes on. Whatever was under way with the dead ends with an error within a
 * second; the third loses nothing; nothing is left behind.
 */
#define LIMIT 85
#include <sys/mount.h>

#include "kill.h"

#define ROUNDS  200
#define WITHOUT 60 /* the last of them: long messages are streamed through the ring */
#define SETTLED 20 /* rounds after which the survivor has all the memory it needs */

static bool private_places;

/* ---- A victim sends, or receives, until it is killed ---- */

struct victim_life {
	struct round round;
	struct name survivor;
	int end;
};

static void victim_send(struct node *n, fi_addr_t to, const struct round *r)
{
	static unsigned char bufs[DEEP][LONG];
	static uint64_t busy[DEEP];
	struct event e;

	for (uint64_t number = 0;; number++) {
		size_t len = message_len(r, number);
		unsigned int i = number % DEEP;

		while (busy[i])
			if (node_poll(n, &e))
				*(uint64_t *)e.context = 0;
		message_fill(bufs[i], len, number);
		busy[i] = 1;
		while (fi_send(n->ep, bufs[i], len, NULL, to, &busy[i]) == -FI_EAGAIN)
			if (node_poll(n, &e))
				*(uint64_t *)e.context = 0;
	}
}

static void victim_receive(struct node *n, const struct round *r)
{
	static unsigned char bufs[DEEP][LONG];
	uint64_t got = 0;

	for (int i = 0; i < DEEP; i++)
		must(fi_recv(n->ep, bufs[i], LONG, NULL, FI_ADDR_UNSPEC, bufs[i]), "fi_recv");
	for (;;) {
		struct event e;

		if (!node_poll(n, &e))
			continue;
		if (e.err)
			fail("a receive ended with %s", fi_strerror(e.err));
		if (e.len != message_len(r, got))
			fail("message %llu has %zu bytes", (unsigned long long)got, e.len);
		message_check(e.context, e.len, got++, "the survivor");
		must(fi_recv(n->ep, e.context, LONG, NULL, FI_ADDR_UNSPEC, e.context), "fi_recv");
	}
}

static void victim(void *arg)
{
	struct victim_life *life = arg;
	struct name name;
	fi_addr_t to;
	struct node n;

	node_open(&n, NULL);
	name = node_name(&n);
	tell(life->end, &name, sizeof(name));
	to = node_insert(&n, &life->survivor);
	hear(life->end, &(char){0}, 1);
	if (life->round.victims_send)
		victim_send(&n, to, &life->round);
	victim_receive(&n, &life->round);
}

/* ---- The third one sends to the survivor all the time, and waits for its answers ---- */

static void steady(void *arg)
{
	static unsigned char buf[LONG];
	uint64_t sent = 0, done = 0, answered = 0, answer = 0, end = now_ms() + 10 * DEAD_MS;
	struct name name;
	struct event e;
	fi_addr_t to;
	struct node n;
	int wire_end = *(int *)arg;

	node_open(&n, NULL);
	name = node_name(&n);
	tell(wire_end, &name, sizeof(name));
	hear(wire_end, &name, sizeof(name));
	to = node_insert(&n, &name);
	must(fi_recv(n.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, &answer), "fi_recv");
	while (answered != OVER) {
		size_t len = sent % 50 == 49 ? LONG : 16 + sent * 31 % 3000;

		/* One buffer: one message at a time. */
		if (sent == done && sent - answered < WINDOW) {
			message_fill(buf, len, sent);
			if (!fi_send(n.ep, buf, len, NULL, to, NULL))
				sent++;
		}
		if (node_poll(&n, &e)) {
			if (e.err)
				fail("its %s ended with %s", e.context ? "receive" : "send",
				     fi_strerror(e.err));
			end = now_ms() + 10 * DEAD_MS;
			done += !e.context;
			if (!e.context)
				continue;
			answered = answer;
			must(fi_recv(n.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, &answer),
			     "fi_recv");
		} else {
			usleep(50);
		}
		if (now_ms() > end)
			fail("has no answer: %llu sent, %llu answered", (unsigned long long)sent,
			     (unsigned long long)answered);
	}
	node_close(&n);
}

/* ---- The survivor ---- */

static int count_maps(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	int c, lines = 0;

	while (file && (c = fgetc(file)) != EOF)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

/* Connections that died half made are noticed within the time, too. */
static void leaks(struct survivor *s, uint64_t end)
{
	while (count_fds(getpid()) != s->fds && now_ms() < end)
		survivor_step(s);
	if (count_fds(getpid()) != s->fds)
		fail("round %u: %d descriptors have become %d", s->round.number, s->fds,
		     count_fds(getpid()));
	if (s->round.number == SETTLED)
		s->maps = count_maps();
	else if (s->round.number > SETTLED && count_maps() > s->maps + 4)
		fail("round %u: %d mappings have become %d", s->round.number, s->maps,
		     count_maps());
}

static void survivor_dead(struct survivor *s)
{
	uint64_t end = now_ms() + DEAD_MS, steady_got;

	for (int i = 0; i < VICTIMS; i++)
		survivor_mourn(s, &s->victims[i], end);
	steady_got = s->steady_got;
	while (s->steady_got < steady_got + 3 && now_ms() < end)
		survivor_step(s);
	if (s->steady_got < steady_got + 3)
		fail("the third one is not heard any more");
	leaks(s, end);
}

static void survivor_start(struct survivor *s, int end)
{
	struct name name;

	s->end = end;
	node_open(&s->n, NULL);
	for (int i = 0; i < VICTIMS; i++) {
		s->victims[i].sentinel.whose = s->victims[i].probe.whose = i;
		for (int k = 0; k < DEEP; k++)
			s->victims[i].ops[k].whose = i;
	}
	name = node_name(&s->n);
	tell(end, &name, sizeof(name));
	hear(end, &name, sizeof(name));
	s->steady_addr = node_insert(&s->n, &name);
	for (int k = 0; k < DEEP; k++) {
		s->steady[k].whose = -1;
		survivor_receive(s, &s->steady[k]);
	}
	while (s->steady_got == 0)
		survivor_step(s);
	s->fds = count_fds(getpid());
}

static void survivor(void *arg)
{
	static struct survivor s;
	struct word w = {.order = ORDER_DEAD};
	uint64_t over = OVER;

	survivor_start(&s, *(int *)arg);
	while (w.order != ORDER_END) {
		if (recv(s.end, &w, sizeof(w), MSG_DONTWAIT) > 0) {
			s.round = w.round;
			if (w.order == ORDER_MEET)
				survivor_meet(&s);
			else if (w.order == ORDER_DEAD)
				survivor_dead(&s);
			tell(s.end, "", 1);
		}
		if (w.order == ORDER_MEET)
			survivor_feed(&s);
		survivor_step(&s);
	}
	while (fi_inject(s.n.ep, &over, sizeof(over), s.steady_addr) == -FI_EAGAIN)
		survivor_step(&s);
	node_close(&s.n);
}

/* ---- Life and death ---- */

static void order(int end, enum order what, const struct round *r)
{
	struct word w = {what, *r};

	tell(end, &w, sizeof(w));
	hear(end, &(char){0}, 1);
}

static void one_round(struct round r, const struct name *name, int survivor_end, unsigned int *seed)
{
	struct victim_life lives[VICTIMS];
	int ends[VICTIMS][2];
	pid_t pids[VICTIMS];

	for (int i = 0; i < VICTIMS; i++) {
		wire(ends[i]);
		lives[i] = (struct victim_life){r, *name, ends[i][1]};
		pids[i] = start("victim", victim, &lives[i]);
		close(ends[i][1]);
	}
	for (int i = 0; i < VICTIMS; i++)
		hear(ends[i][0], &r.names[i], sizeof(r.names[i]));
	order(survivor_end, ORDER_MEET, &r);
	for (int i = 0; i < VICTIMS; i++)
		tell(ends[i][0], "", 1);
	usleep((unsigned int)rand_r(seed) % (r.number % 4 ? 10000 : 500));
	for (int i = 0; i < VICTIMS; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < VICTIMS; i++) {
		slay(pids[i]);
		close(ends[i][0]);
	}
	order(survivor_end, ORDER_DEAD, &r);
}

static void all_rounds(unsigned int first, unsigned int last)
{
	struct name survivor_name, steady_name;
	struct round r = {.number = 0};
	int to_survivor[2], to_steady[2];
	unsigned int seed = first + 1;
	pid_t pids[2];

	wire(to_survivor);
	wire(to_steady);
	pids[0] = start("survivor", survivor, &to_survivor[1]);
	pids[1] = start("steady", steady, &to_steady[1]);
	close(to_survivor[1]);
	close(to_steady[1]);
	hear(to_survivor[0], &survivor_name, sizeof(survivor_name));
	hear(to_steady[0], &steady_name, sizeof(steady_name));
	tell(to_survivor[0], &steady_name, sizeof(steady_name));
	tell(to_steady[0], &survivor_name, sizeof(survivor_name));
	for (r.number = 0; r.number < last - first; r.number++) {
		r.victims_send = r.number % 3 != 2;
		r.long_messages = r.number / 3 % 2;
		one_round(r, &survivor_name, to_survivor[0], &seed);
	}
	order(to_survivor[0], ORDER_END, &r);
	finish(pids[1], "steady");
	finish(pids[0], "survivor");
	close(to_survivor[0]);
	close(to_steady[0]);
}

/* Where it may, it has /dev/shm and /tmp to itself, to see that nothing is left in them. */
static void take_places(void)
{
	private_places = !unshare(CLONE_NEWNS) &&
			 !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
			 !mount("none", "/dev/shm", "tmpfs", 0, NULL) &&
			 !mount("none", "/tmp", "tmpfs", 0, NULL);
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	take_places();
	all_rounds(0, ROUNDS - WITHOUT);
	setenv("FI_SHM_DISABLE_CMA", "1", 1);
	all_rounds(ROUNDS - WITHOUT, ROUNDS);
	if (private_places && count_entries("/dev/shm") + count_entries("/tmp") != 4)
		fail("something is left in /dev/shm or /tmp");
	return EXIT_SUCCESS;
}
