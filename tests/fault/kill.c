/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=90
 *
 * Proves that an endpoint survives the death of peers. In each of 200 rounds two peers are killed
 * in the middle of a transfer, while a third (the steady peer) goes on. Operations with the dead
 * end with an error within DEAD_MS, the steady peer loses nothing, and no descriptor, mapping, file
 * or memory stays behind.
 */
#define LIMIT 85
#include <fcntl.h>
#include <malloc.h>
#include <sys/mount.h>

#include "kill_peers.h"

#define WITHOUT 60 /* the last rounds, without CMA: long messages are streamed through the ring */

static bool private_places;

/* ---- The survivor ---- */

/* Returns the number of mapped rings, our own and those of peers. */
static int count_rings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	char line[512];
	int rings = 0;

	while (file && fgets(line, sizeof(line), file))
		rings += strstr(line, "memfd:") != NULL;
	if (file)
		fclose(file);
	return rings;
}

/*
 * Checks that all descriptors and rings of dead peers go by `end`, those of unfinished connections
 * too.
 */
static void leaks(struct survivor *s, uint64_t end)
{
	while ((count_fds(getpid()) != s->fds || count_rings() != s->rings) && now_ms() < end)
		survivor_step(s);
	if (count_fds(getpid()) != s->fds || count_rings() != s->rings)
		fail("round %u: %d descriptors and %d mappings have become %d and %d",
		     s->round.number, s->fds, s->rings, count_fds(getpid()), count_rings());
}

/* Keeps the least heap of a spell, which is measured when nothing is under way. */
static void measure(struct survivor *s)
{
	size_t *least = &s->heap[s->round.number / SPELL], now = mallinfo2().uordblks;

	if (!*least || now < *least)
		*least = now;
}

static void compare(const struct survivor *s)
{
	size_t first = s->heap[1], last = s->heap[s->round.number / SPELL - 1];

	if (last > first + GROWTH)
		fail("in %u rounds %zu bytes of heap have become %zu", s->round.number, first,
		     last);
}

static void survivor_dead(struct survivor *s)
{
	uint64_t end = now_ms() + DEAD_MS, steady_got;

	for (int i = 0; i < VICTIMS; i++)
		survivor_expect_ends(s, &s->victims[i], end);
	steady_got = s->steady_got;
	while (s->steady_got < steady_got + 3 && now_ms() < end)
		survivor_step(s);
	if (s->steady_got < steady_got + 3)
		fail("the third one is not heard any more");
	leaks(s, end);
	measure(s);
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
	s->rings = count_rings();
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
	compare(&s);
	while (fi_inject(s.n.ep, &over, sizeof(over), s.steady_addr) == -FI_EAGAIN)
		survivor_step(&s);
	s.over = true; /* the steady peer may close: send no more answers */
	/* The steady peer closes first, or its last send would end with an error. */
	while (recv(s.end, &w, 1, MSG_DONTWAIT) < 0)
		survivor_step(&s);
	node_close(&s.n);
}

/* ---- Rounds ---- */

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
	tell(to_survivor[0], "", 1);
	finish(pids[0], "survivor");
	close(to_survivor[0]);
	close(to_steady[0]);
}

/*
 * A key file may lie below /tmp: all processes read it through a descriptor, which none of them
 * closes.
 */
static void keep_key(void)
{
	const char *file = getenv("FI_WEFT_AUTH_KEY_FILE");
	int fd = file ? open(file, O_RDONLY) : -1;
	char path[64];

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("FI_WEFT_AUTH_KEY_FILE", path, 1);
}

/* Mounts private /dev/shm and /tmp, if permitted, to check that nothing is left in them. */
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
	keep_key();
	take_places();
	all_rounds(0, ROUNDS - WITHOUT);
	setenv("FI_SHM_DISABLE_CMA", "1", 1);
	all_rounds(ROUNDS - WITHOUT, ROUNDS);
	if (private_places && count_entries("/dev/shm") + count_entries("/tmp") != 4)
		fail("something is left in /dev/shm or /tmp");
	return EXIT_SUCCESS;
}
