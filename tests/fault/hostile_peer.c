/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a hostile peer harms nobody but itself. It speaks the protocol up to a random point
 * and then does anything that its place allows: on sockets and, on the host, in the endpoint's
 * ring. Honest traffic beside it is checked byte by byte and goes on during each run; the
 * endpoint's memory stays within a bound; no event comes that nobody had a right to cause.
 *
 * SEED=n repeats a run. RUNS=n: number of runs, else as many as fit RUN_MS. ONLY, WITHOUT: names of
 * acts, with commas.
 */
static unsigned int limit = 55;
#define LIMIT     limit
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC)
#include "hostile_hellos.h"
#include "hostile_ring_acts.h"
#include "hostile_cast.h"

#define RUN_MS     20000
#define RUNS       500
#define LATE_EACH  50        /* runs between two honest peers that come later */
#define STEPS      24        /* acts of a run, at most */
#define UNEXPECTED "8000000" /* bytes of unexpected messages that it may keep */
#define ACCESS_MS  "25"      /* a claim may stand twice as long without a packet */

/*
 * ---- The acts ----
 *
 * false: left out unless ONLY names it. An address that tries keys is refused for ten seconds, and
 * so are honest processes that come from there meanwhile. A process of the same user can forge what others of the
 * ring say, and write a length or a claim that covers packets of others, or leaves its own slots to them, which are lost
 * then if theirs follow at once; fault_claim proves that the ring goes on. A close takes a second or more to see through a forged guard, while honest operations wait:
 * fault_guard proves the bound. See docs/SECURITY.md.
 */

enum place { ANYWHERE, NETWORK, INSIDE };

#define ACT(name, place, on)                                                                       \
	{                                                                                          \
#name, name, place, on                                                             \
	}

static const struct act {
	const char *name;
	void (*act)(struct run *r, struct raw_link *l);
	enum place place;
	bool on;
} acts[] = {
	ACT(any_packet, ANYWHERE, true),
	ACT(half_a_packet, NETWORK, true),
	ACT(rts_without_fragments, ANYWHERE, true),
	ACT(answers_to_nothing, ANYWHERE, true),
	ACT(fragments_out_of_order, ANYWHERE, true),
	ACT(xoff_flood, ANYWHERE, true),
	ACT(one_sided, ANYWHERE, true),
	ACT(notifications, ANYWHERE, true),
	ACT(group_control, ANYWHERE, true),
	ACT(joint_copies, ANYWHERE, true),
	ACT(idle_words, ANYWHERE, true),
	ACT(introductions, ANYWHERE, true),
	ACT(messages_to_groups, ANYWHERE, true),
	ACT(disconnect_then_more, ANYWHERE, true),
	ACT(close_and_reconnect, ANYWHERE, true),
	ACT(never_reads, ANYWHERE, true),
	ACT(unwanted_messages, ANYWHERE, true),
	ACT(announced_and_never_sent, ANYWHERE, true),
	ACT(first_words, ANYWHERE, true),
	ACT(flawed_words, ANYWHERE, true),
	ACT(many_connections, ANYWHERE, true),
	ACT(name_of_an_honest_peer, ANYWHERE, true),
	ACT(name_of_the_endpoint, ANYWHERE, true),
	ACT(keys_tried_beside_others, ANYWHERE, false),
	ACT(answers_an_attempt, ANYWHERE, true),
	ACT(bytes_on_the_socket, INSIDE, true),
	ACT(claim_never_published, INSIDE, true),
	ACT(wrong_token, INSIDE, true),
	ACT(length_beyond, INSIDE, true),
	ACT(length_below_claim, INSIDE, true),
	ACT(claim_of_more, INSIDE, true),
	ACT(claim_of_nonsense, INSIDE, true),
	ACT(length_of_others, INSIDE, false),
	ACT(claim_below_length, INSIDE, false),
	ACT(source_nobody_has, INSIDE, true),
	ACT(source_of_another, INSIDE, false),
	ACT(words_changed_later, INSIDE, true),
	ACT(forged_guards, INSIDE, false),
};

#define ACTS (sizeof(acts) / sizeof(acts[0]))

static bool enabled[ACTS];

/* Is the name in the list of this variable? `unset`: what holds without the variable. */
static bool listed(const char *variable, const char *name, bool unset)
{
	const char *list = getenv(variable), *at = list ? strstr(list, name) : NULL;
	size_t len = strlen(name);

	if (!list)
		return unset;
	for (; at; at = strstr(at + 1, name))
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

static void choose_acts(void)
{
	for (size_t i = 0; i < ACTS; i++)
		enabled[i] = listed("ONLY", acts[i].name, acts[i].on) &&
			     !listed("WITHOUT", acts[i].name, false);
}

/* ---- Runs ---- */

static bool fits(const struct act *a, const struct raw_link *l)
{
	if (!enabled[a - acts])
		return false;
	return a->place == ANYWHERE || (l->open && (a->place == INSIDE) == l->inside);
}

static void act_once(struct run *r)
{
	const struct act *a = &acts[rng_below(&r->rng, ACTS)];
	size_t len = strlen(done);

	if (!fits(a, run_link(r)))
		return;
	snprintf(done + len, sizeof(done) - len, " %s", a->name);
	a->act(r, run_link(r));
	if (rng_one_in(&r->rng, 3))
		raw_link_hear(run_link(r));
}

/* `last`: the endpoint closes while the hostile peer is connected. */
static void one_run(int listener, bool last)
{
	struct run r = {.rng = {seed}, .listener = listener};

	/* An address of its own for each run: the endpoint may hold it against the next one. */
	r.from = (INADDR_LOOPBACK & 0xff000000) | (0x10000 + (uint32_t)(seed % 100000));
	rng_next(&r.rng);
	done[0] = 0;
	run_join(&r, HELLO_MS);
	for (uint32_t n = rng_below(&r.rng, 5); n; n--)
		obey(&r, run_link(&r));
	for (uint32_t n = 1 + rng_below(&r.rng, STEPS); n; n--) {
		/* The choices of an act are the same whatever other acts are left out. */
		r.rng.at = rng_mix(seed << 16 | n);
		act_once(&r);
	}
	check_progress();
	check_bounds();
	if (seed % LATE_EACH == 0)
		come_late();
	if (last)
		finish_all();
	run_end(&r);
}

static unsigned int setting(const char *name, unsigned int fallback)
{
	const char *text = getenv(name);

	return text ? (unsigned int)strtoul(text, NULL, 10) : fallback;
}

int main(void)
{
	unsigned int runs = setting("RUNS", getenv("SEED") ? 1 : RUNS), n;
	uint64_t first = setting("SEED", 1), start_ms, end;
	int listener;

	limit = getenv("RUNS") ? 60 + runs / 2 : 55;
	alarm(LIMIT);
	need_provider();
	setenv("FI_WEFT_UNEXPECTED_MAX", "1000000", 1);
	setenv("FI_WEFT_UNEXPECTED_LIMIT", UNEXPECTED, 1);
	setenv("FI_WEFT_ACCESS_TIMEOUT", ACCESS_MS, 1);
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (scene == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	choose_acts();
	listener = foe_listen();
	start_all();
	check_progress();
	start_ms = now_ms();
	end = getenv("RUNS") ? UINT64_MAX : start_ms + RUN_MS;
	for (n = 0; n < runs && now_ms() < end; n++) {
		seed = first + n;
		if (n == runs / 10 || n == 0)
			measure();
		one_run(listener, false);
	}
	seed = first + n++;
	one_run(listener, true);
	printf("%u runs in %llu ms; %llu and %llu honest operations; %llu events of the hostile peer; "
	       "the endpoint has grown from %ld to %ld kB (bound: %ld)\n",
	       n, (unsigned long long)(now_ms() - start_ms),
	       (unsigned long long)seen(&scene->done[0]), (unsigned long long)seen(&scene->done[1]),
	       (unsigned long long)seen(&scene->foe_events), kb_before, kb_most,
	       kb_before + BUDGET_KB);
	return EXIT_SUCCESS;
}
