/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a raw client can end, delay or join no collective group of which it is no member: all
 * kinds of control messages, before, during and after the join, and messages in a member's name,
 * over TCP and, where the endpoint has it, in shared memory.
 * The group's other member is a raw client, too, so that the test knows all that was said.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_COLLECTIVE)
#include "joiner.h"

#define OTHER_PORT 2001u

/* When the attack comes. */
enum moment { BEFORE, DURING, AFTER };

enum { KEY = 1, ID = 2, OWN_NAME = 4, MESSAGE = 8, GONE = 16, MEMBERS_OWN = 32 };

static const struct attack {
	const char *what;
	uint32_t member; /* rank of the raw member; the endpoint has the other */
	enum moment when;
	unsigned int how; /* fields that the attacker knows, and what else it does */
	struct control says;
} attacks[] = {
	{"FAIL before the join", 1, BEFORE, KEY, {.kind = FAILED, .attempt = 1}},
	{"FAIL of the last attempt", 1, BEFORE, KEY, {.kind = FAILED, .attempt = UINT32_MAX}},
	{"UP before the join", 1, BEFORE, KEY, {.kind = UP, .rank = 1, .size = 2, .attempt = 1}},
	{"FAIL to the root", 1, DURING, KEY, {.kind = FAILED, .attempt = 1}},
	{"FAIL in our name", 1, DURING, KEY | OWN_NAME, {.kind = FAILED, .attempt = 1}},
	{"UP", 1, DURING, KEY, {.kind = UP, .rank = 1, .size = 2, .attempt = 1}},
	{"UP of a later attempt", 1, DURING, KEY, {.kind = UP, .rank = 1, .attempt = 9}},
	{"PROBE of a later attempt", 1, DURING, KEY, {.kind = PROBE, .rank = 1, .attempt = 9}},
	{"ASK", 1, DURING, KEY, {.kind = ASK, .rank = 1, .size = 2, .attempt = 1, .id = 77}},
	{"DOWN", 0, DURING, KEY, {.kind = DOWN, .size = 2, .attempt = 1, .id = 4711}},
	{"FAIL to a child", 0, DURING, KEY, {.kind = FAILED, .attempt = 1}},
	{"ASK to a child", 0, DURING, KEY, {.kind = ASK, .size = 2, .attempt = 1, .id = 77}},
	{"early LEAVE", 0, DURING, KEY, {.kind = LEAVE, .size = 2, .id = 4711}},
	{"early ABORT", 0, DURING, KEY, {.kind = ABORT, .size = 2, .error = 5, .id = 4711}},
	{"ABORT", 1, AFTER, KEY | ID, {.kind = ABORT, .rank = 1, .size = 2, .error = 5}},
	{"LEAVE", 1, AFTER, KEY | ID, {.kind = LEAVE, .rank = 1, .size = 2}},
	{"ABORT in our name", 1, AFTER, KEY | ID | OWN_NAME, {.kind = ABORT, .error = 5}},
	{"the end of a link in our name", 1, AFTER, KEY | ID | OWN_NAME | GONE, {.kind = HERE}},
	{"HERE", 1, AFTER, KEY | ID, {.kind = HERE}},
	{"a message in a member's name", 1, AFTER, ID | MESSAGE, {.rank = 1}},
	{"a member's LEAVE in our name", 1, AFTER, ID | MEMBERS_OWN, {.kind = LEAVE}},
	{"a member's message in our name", 1, AFTER, ID | MESSAGE | MEMBERS_OWN, {.rank = 0}},
};

/* ---- The raw clients ------------------------------------------------------------------------- */

struct scene {
	const struct attack *attack;
	int member;            /* socket */
	struct raw_link other; /* the attacker */
	uint64_t key, id, tag; /* of the group; of the endpoint's message in the barrier */
	int err;               /* what the attack has done to the group; 0: nothing */
	const char *at;        /* and in which step */
};

static void note(struct scene *s, int err, const char *at)
{
	if (err && !s->err) {
		s->err = err;
		s->at = at;
	}
}

/* Sends a packet of the attack. */
static void put(struct scene *s, struct frame frame, const void *payload, size_t len)
{
	frame.len = (uint32_t)len;
	if (s->attack->how & MEMBERS_OWN)
		raw_send(s->member, frame, payload, len);
	else
		raw_link_put(&s->other, frame, payload);
}

/* The endpoint reads all that the attacker has sent. */
static void mark(struct scene *s)
{
	put(s, joiner_mark_frame, "m", 1);
	joiner_await_mark();
}

static void strike(struct scene *s)
{
	const struct attack *a = s->attack;
	struct control c = a->says;

	c.key = a->how & KEY ? s->key : 0;
	c.id = a->how & ID ? s->id : c.id;
	mark(s); /* a message makes the endpoint look for the sender's address */
	if (a->how & MESSAGE)
		put(s,
		    (struct frame){.head = GROUP_HEAD,
				   .tag = (s->tag & ~RANK_MASK) | a->says.rank,
				   .data = s->id},
		    NULL, 0);
	else
		put(s, (struct frame){.head = WIRE_GROUP}, &c, sizeof(c));
	mark(s);
	if (a->how & GONE) {
		raw_link_close(&s->other, true);
		usleep(100000);
	}
}

/* Answers as a child or a parent does. */
static void answer(struct scene *s, struct control c)
{
	if (s->attack->member && c.kind == PROBE) {
		raw_control(s->member, (struct control){.kind = UP,
							.rank = 1,
							.size = 2,
							.attempt = 1,
							.key = c.key,
							.id = c.id});
	} else if (c.kind == UP) {
		s->id = 4711;
		raw_control(
			s->member,
			(struct control){
				.kind = DOWN, .size = 2, .attempt = 1, .key = c.key, .id = s->id});
	}
}

/* Takes part in the join until it has ended for the endpoint; `strikes`: an attack comes first. */
static void join(struct scene *s, bool strikes)
{
	uint32_t last = s->attack->member ? DOWN : UP;
	struct control c = {0};

	note(s, joiner_make(JOIN, 0), "the call");
	while (c.kind != last && raw_read_control(s->member, &c)) {
		if (c.kind == FAILED)
			break;
		s->key = c.key;
		if (c.kind == DOWN)
			s->id = c.id;
		if (strikes && (c.kind == PROBE || c.kind == UP)) {
			strike(s);
			strikes = false;
		}
		answer(s, c);
	}
	note(s, c.kind == FAILED ? (int)c.error : 0, "what the member hears");
	note(s, joiner_make(AWAIT_JOIN, 0), "the join");
}

static void barrier(struct scene *s, bool strikes)
{
	struct packet p;

	note(s, joiner_make(BARRIER, 0), "the barrier's call");
	if (!s->err && raw_read_message(s->member, &p)) {
		s->tag = p.frame.tag;
		if (strikes)
			strike(s);
		note(s, joiner_make(NO_BARRIER, 0), "the barrier before the member came");
		raw_send(s->member,
			 (struct frame){.head = GROUP_HEAD,
					.tag = (s->tag & ~RANK_MASK) | s->attack->member,
					.data = s->id},
			 NULL, 0);
	}
	if (!s->err)
		note(s, joiner_make(AWAIT_BARRIER, 0), "the barrier");
}

static void play(struct scene *s)
{
	if (joiner_make(SET, s->attack->member))
		fail("no set");
	join(s, false);
	barrier(s, false);
	if (s->err)
		fail("a group without an attack: %s", fi_strerror(s->err));
	if (joiner_make(CLOSE, 0))
		fail("a group cannot be closed");
	if (s->attack->when == BEFORE)
		strike(s);
	join(s, s->attack->when == DURING);
	if (!s->err)
		barrier(s, s->attack->when == AFTER);
}

/* The attacker connects, perhaps in the endpoint's own name. */
static void enter(struct scene *s, const struct name *to, bool inside)
{
	struct hello h = hello_of_port(OTHER_PORT);

	if (s->attack->how & OWN_NAME)
		memcpy(h.name, to->bytes, h.name_len);
	raw_link_enter_by(&s->other, to, inside, h);
}

/* Returns whether the group took no notice of the attack. */
static bool withstands(const struct attack *a, bool inside, int log)
{
	struct scene s = {.attack = a};
	struct name name;
	pid_t pid;

	pid = joiner_start(&name, log);
	s.member = raw_enter(&name, hello_of_port(MEMBER_PORT));
	enter(&s, &name, inside);
	play(&s);
	slay(pid);
	close(s.member);
	raw_link_close(&s.other, false);
	close(joiner_ends[0]);
	close(joiner_ends[1]);
	if (s.err)
		fprintf(stderr, "%s%s: %s: %s\n", a->what, inside ? ", in shared memory" : "", s.at,
			fi_strerror(s.err));
	return !s.err;
}

int main(void)
{
	int log = memfd_create("log", MFD_CLOEXEC), failures = 0;
	bool memory = strcmp(provider(), "tcp");

	alarm(LIMIT);
	need_network();
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		failures += !withstands(&attacks[i], false, log);
		if (memory)
			failures += !withstands(&attacks[i], true, log);
	}
	if (!joiner_logged(log, "FAIL about a group dropped: its sender ") ||
	    !joiner_logged(log, "message to a group dropped: its sender "))
		fail("the log does not tell what was dropped");
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
