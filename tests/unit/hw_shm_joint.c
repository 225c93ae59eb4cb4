/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves joint copies: two states of the transport in one process, `own` of the owner and `far` of the
 * peer, which a thread lets take part. CMA reaches the own process like any other.
 */
#include <pthread.h>

#include "shm_pair.h"

#define CHUNK (64u << 10)
#define MOST  (20 * CHUNK + 1000)
#define SRC   0x300001u

/* What the peer does with an offer. */
enum act { HELP, IGNORE, TAKE_ONE, FAIL, WRITE_WORDS };

static unsigned char ours[MOST], theirs[MOST]; /* the owner's memory; the peer's, region 0 */
static struct shm *far;
static struct shm_link *to_far, *to_own;
static struct joint_help proposed;
static unsigned int proposals;
static _Atomic unsigned int helped; /* chunks */
static _Atomic int act;
static _Atomic bool ends;
static pthread_t thread;
/*
 * The second mapping of our ring's page. The peer uses the first one: a thread sanitizer takes one memory at
 * two addresses for two.
 */
static struct ring_page *mapped;

static struct ring_joint *cell(void)
{
	return &own->ring.page->joint;
}

static struct shm_link *connect_to(struct shm *from, struct shm *to, pid_t pid, int sock)
{
	struct wire_hello hello = {.cma_addr = (uintptr_t)&cma_word, .cma_value = cma_word};
	struct link_peer peer = {.hello = &hello, .id = SRC, .sock = sock, .pid = pid};
	struct link *link;
	int fds[WIRE_FDS];

	shm_transport.hello_fds(to, fds);
	for (int i = 0; i < WIRE_FDS; i++)
		peer.fds[i] = dup(fds[i]);
	ck_assert_int_eq(shm_transport.connect(from, &peer, &link), 0);
	ck_assert_uint_ne(((struct shm_link *)link)->pid, 0);
	return (struct shm_link *)link;
}

/* Notes an offer on region 0. */
static void note_proposal(uint32_t src, const struct packet *p)
{
	struct wire_joint w;

	ck_assert_uint_eq(src, SRC);
	ck_assert_uint_eq(wire_op(p->head), WIRE_JOINT);
	ck_assert_uint_eq(p->len, sizeof(w));
	ck_assert_uint_eq(p->data, regions[0].mr.fid.key);
	memcpy(&w, p->payload, sizeof(w));
	proposed = (struct joint_help){.copy = {.local = theirs + p->tag,
						.remote = w.at,
						.len = w.len,
						.write = wire_flags(p->head) & WIRE_READ},
				       .seq = w.seq,
				       .chunk = w.chunk};
	proposals++;
}

/* Progress of the peer, which drops the offers: what it does with them is the test's matter. */
static void peer_looks(void)
{
	struct packet p = {.data = 0};

	if (link_cursor_came(&far->cursor)) {
		link_place at = link_cursor_place(&far->cursor);

		p.head = link_place_head(at);
		p.len = link_place_len(at);
		p.tag = link_place_tag(at);
		link_place_payload(at, &p);
		note_proposal(link_place_src(at), &p);
	}
	shm_transport.progress(far);
}

static struct link *known; /* to the owner, for the peer; NULL: it drops offers */
static bool may_read;      /* does the peer send a message that may be read? */

static struct link *link_to(struct opener *o, uint32_t src)
{
	ck_assert_ptr_eq(o, &opener);
	ck_assert_uint_eq(src, SRC);
	return known;
}

static bool readable(struct opener *o, uint32_t src, uint64_t at, size_t len)
{
	(void)o, (void)src, (void)at, (void)len;
	return may_read;
}

static void help(void)
{
	uint64_t word;

	shm_joint_help(&to_own->link, &proposed);
	word = __atomic_load_n(&cell()->helped, __ATOMIC_ACQUIRE);
	if (word >> 32 == proposed.seq)
		helped += (uint32_t)word;
}

/* Takes the last chunk as a peer does that is then not scheduled for a while. */
static void take_one(void)
{
	uint64_t word = __atomic_load_n(&cell()->left, __ATOMIC_ACQUIRE);

	while (!__atomic_compare_exchange_n(&cell()->left, &word, word - 1, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE))
		;
}

static void answer(void)
{
	switch (act) {
	case HELP:
		help();
		break;
	case TAKE_ONE:
		take_one();
		break;
	case FAIL:
		take_one();
		__atomic_store_n(&cell()->helped, (uint64_t)proposed.seq << 32 | 0x80000000u,
				 __ATOMIC_RELEASE);
		break;
	case WRITE_WORDS:
		for (uint64_t i = 1; i < 200; i++) {
			__atomic_store_n(&cell()->left, i * 0x9e3779b97f4a7c15, __ATOMIC_RELAXED);
			__atomic_store_n(&cell()->helped, i * 0x5bd1e995u, __ATOMIC_RELAXED);
		}
		break;
	default:
		break;
	}
}

static void *run(void *none)
{
	unsigned int seen = 0;

	(void)none;
	while (!ends) {
		peer_looks();
		if (proposals != seen)
			answer();
		seen = proposals;
	}
	return NULL;
}

static void begin(void)
{
	setup();
	ck_assert_int_eq(shm_transport.open(&opener, (void **)&far), 0);
	to_far = connect_to(own, far, getpid(), pairs[0][0]);
	to_own = connect_to(far, own, getpid(), pairs[0][1]);
	mapped = to_own->ring.page;
	to_own->ring.page = own->ring.page;
	events.link = link_to;
	events.readable = readable;
	known = NULL;
	may_read = false;
	proposals = helped = 0;
	ends = false;
	expose(0, theirs, MOST, BOTH);
	for (size_t i = 0; i < MOST; i++)
		ours[i] = (unsigned char)(i * 7 + i / 256 * 3);
	memset(theirs, 0, MOST);
}

static void end(void)
{
	to_own->ring.page = mapped;
	leave(to_far);
	leave(to_own);
	shm_transport.close(far);
	teardown();
}

static void start(enum act what)
{
	act = what;
	ck_assert_int_eq(pthread_create(&thread, NULL, run, NULL), 0);
}

static void stop(void)
{
	ends = true;
	pthread_join(thread, NULL);
}

static struct joint_copy copy_of(size_t len, bool write)
{
	return (struct joint_copy){.local = ours,
				   .key = regions[0].mr.fid.key,
				   .len = len,
				   .write = write,
				   .region = true};
}

static int copy(size_t len, bool write)
{
	struct joint_copy c = copy_of(len, write);

	return shm_joint_begin(&to_far->link, &c);
}

/* Progress calls of the owner until the copy has ended. */
static int rest(int ret)
{
	while (ret == -FI_EINPROGRESS)
		ret = shm_joint_ended(&to_far->link);
	return ret;
}

static bool guards_free(const struct shm *shm)
{
	for (unsigned int i = 0; i < RING_GUARDS; i++)
		if ((uint32_t)shm->ring.page->guards[i].word)
			return false;
	return true;
}

START_TEST(alone_if_the_peer_does_not_come)
{
	static const int vain[] = {1, 3, 7, 15, 31, 63, 63};

	ck_assert_int_eq(copy(MOST, true), 0);
	ck_assert_mem_eq(ours, theirs, MOST);
	for (size_t i = 0; i < sizeof(vain) / sizeof(vain[0]); i++) {
		for (int n = 0; n < vain[i]; n++)
			ck_assert_int_eq(copy(2 * CHUNK, true), -FI_EAGAIN);
		ck_assert_int_eq(copy(2 * CHUNK, true), 0);
	}
	ck_assert(guards_free(far));
}
END_TEST

START_TEST(short_ones_are_halved)
{
	static const struct {
		size_t len;
		uint32_t chunk;
	} cut[] = {{65536, 32768}, {98304, 49152}, {131071, 65536}, {131072, 65536}};

	for (unsigned int i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		while (copy(cut[i].len, true) ==
		       -FI_EAGAIN) /* the peer has left the last one alone */
			;
		peer_looks();
		ck_assert_uint_eq(proposals, i + 1);
		ck_assert_uint_eq(proposed.copy.len, cut[i].len);
		ck_assert_uint_eq(proposed.chunk, cut[i].chunk);
	}
}
END_TEST

START_TEST(each_copies_a_part)
{
	static const size_t len[] = {CHUNK, 2 * CHUNK - 1, 2 * CHUNK + 1, MOST};

	start(HELP);
	for (int round = 0; round < 400 || helped < 40; round++) {
		size_t n = len[round % 4];
		bool write = round & 4;
		int ret;

		ours[round % 1000] ^= 1;
		theirs[n - 1 - (size_t)round % 1000] ^= 1;
		ret = rest(copy(n, write));
		if (ret == -FI_EAGAIN)
			continue;
		ck_assert_int_eq(ret, 0);
		ck_assert_mem_eq(ours, theirs, n);
	}
	stop();
	ck_assert(guards_free(far));
	ck_assert(guards_free(own));
}
END_TEST

START_TEST(who_comes_late_moves_nothing)
{
	ck_assert_int_eq(copy(MOST, true), 0);
	peer_looks();
	ck_assert_uint_eq(proposals, 1);
	memset(theirs, 0, MOST);
	shm_joint_help(&to_own->link, &proposed);
	for (size_t i = 0; i < MOST; i++)
		ck_assert_uint_eq(theirs[i], 0);
	/* nor if the next copy is proposed meanwhile */
	ck_assert_int_eq(copy(MOST, false), -FI_EAGAIN);
	ck_assert_int_eq(copy(MOST, false), 0);
	shm_joint_help(&to_own->link, &proposed);
	for (size_t i = 0; i < MOST; i++)
		ck_assert_uint_eq(theirs[i], 0);
}
END_TEST

START_TEST(the_last_part_is_waited_for)
{
	struct joint_copy c = copy_of(MOST, true);
	size_t last =
		(MOST - 1) / (MOST / 8 / 4096 * 4096 + 4096) * (MOST / 8 / 4096 * 4096 + 4096);
	int ret;

	start(TAKE_ONE);
	while ((ret = copy(MOST, true)) != -FI_EINPROGRESS)
		ck_assert(ret == 0 || ret == -FI_EAGAIN);
	stop();
	ck_assert_int_eq(shm_joint_begin(&to_far->link, &c), -FI_EAGAIN); /* one at a time */
	memset(theirs + last, 0, MOST - last);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(shm_joint_ended(&to_far->link), -FI_EINPROGRESS);
	ck_assert(guards_free(far)); /* the peer may close its other regions meanwhile */
	memcpy(theirs + last, ours + last, MOST - last);
	__atomic_add_fetch(&cell()->helped, 1, __ATOMIC_RELEASE);
	ck_assert_int_eq(shm_joint_ended(&to_far->link), 0);
	ck_assert_mem_eq(ours, theirs, MOST);
	ck_assert(guards_free(far));
}
END_TEST

START_TEST(what_the_peer_cannot_copy_is_copied)
{
	start(FAIL);
	for (int i = 0; i < 100; i++) {
		memset(theirs, i, MOST);
		if (rest(copy(MOST, true)) == 0)
			ck_assert_mem_eq(ours, theirs, MOST);
	}
	stop();
	ck_assert(guards_free(far));
}
END_TEST

START_TEST(what_others_write_ends_nothing_early)
{
	start(WRITE_WORDS);
	for (int i = 0; i < 100; i++) {
		int ret;

		memset(theirs, i, MOST);
		ret = rest(copy(MOST, true));
		ck_assert(ret == 0 || ret == -FI_EAGAIN);
		if (ret == 0)
			ck_assert_mem_eq(ours, theirs, MOST);
	}
	stop();
}
END_TEST

START_TEST(a_greedy_owner_holds_no_peer)
{
	uint64_t all;

	ck_assert_int_eq(copy(MOST, true), 0);
	peer_looks();
	all = (uint64_t)proposed.seq << 32 | 0xffff;
	for (int i = 0; i < 100; i++) {
		cell()->left = all;
		shm_joint_help(&to_own->link,
			       &proposed); /* more chunks than there are: none is taken */
		ck_assert_uint_eq(cell()->left, all);
	}
	proposed.chunk = 0;
	shm_joint_help(&to_own->link, &proposed);
	proposed.chunk = 4096;
	proposed.copy.len = SIZE_MAX;
	shm_joint_help(&to_own->link, &proposed);
	ck_assert_uint_eq(cell()->left, all);
}
END_TEST

/* A peer that writes to our memory comes too late, or is waited for. */
START_TEST(an_abandoned_one_is_written_to_no_more)
{
	struct joint_copy c = copy_of(MOST, false);
	int ret;

	start(TAKE_ONE);
	while ((ret = copy(MOST, false)) != -FI_EINPROGRESS)
		ck_assert(ret == 0 || ret == -FI_EAGAIN);
	stop();
	shm_joint_abandon(&to_far->link);
	memset(ours, 1, MOST);
	memset(theirs, 2, MOST);
	proposed.copy.local = theirs;
	shm_joint_help(&to_own->link, &proposed);
	for (size_t i = 0; i < MOST; i++)
		ck_assert_uint_eq(ours[i], 1);
	ck_assert(guards_free(own));
	ck_assert_int_eq(shm_joint_begin(&to_far->link, &c), 0);
	ck_assert_mem_eq(ours, theirs, MOST);
}
END_TEST

START_TEST(refused_without_a_right)
{
	struct joint_copy c = copy_of(MOST, true);

	regions[0].mr.access = FI_REMOTE_READ;
	mr_share_update(&dom, &regions[0]);
	ck_assert_int_eq(shm_joint_begin(&to_far->link, &c), -FI_EACCES);
	c.key++;
	ck_assert_int_eq(shm_joint_begin(&to_far->link, &c), -FI_ENOKEY);
	ck_assert(guards_free(far));
	peer_looks();
	ck_assert_uint_eq(proposals, 0);
	c = copy_of(MOST, false);
	ck_assert_int_eq(shm_joint_begin(&to_far->link, &c), 0);
}
END_TEST

START_TEST(nothing_is_left_of_an_abandoned_one)
{
	int ret;

	start(TAKE_ONE);
	while ((ret = copy(MOST, true)) != -FI_EINPROGRESS)
		ck_assert(ret == 0 || ret == -FI_EAGAIN);
	stop();
	shm_joint_abandon(&to_far->link);
	ck_assert(guards_free(far));
	ck_assert_int_eq(copy(MOST, true), 0);
	ck_assert_mem_eq(ours, theirs, MOST);
}
END_TEST

static int ended;

static void copied(struct opener *o, uint64_t id, int ret)
{
	ck_assert_ptr_eq(o, &opener);
	ck_assert_uint_eq(id, 0x4711);
	ended = ret;
}

/* A copy that is under way ends in a progress call, for which no call is left out. */
START_TEST(its_end_is_reported)
{
	struct iovec local = {ours, MOST};
	struct fi_rma_iov remote = {.len = MOST, .key = regions[0].mr.fid.key};
	struct link_copy c = {.id = 0x4711,
			      .write = true,
			      .local = &local,
			      .local_count = 1,
			      .remote = &remote,
			      .remote_count = 1};
	int ret;

	events.copied = copied;
	ended = -1;
	start(TAKE_ONE);
	while ((ret = to_far->link.memory->copy(&to_far->link, &c)) != LINK_UNDER_WAY)
		ck_assert_int_eq(ret, LINK_DONE);
	stop();
	ck_assert(!shm_transport.idle(own));
	shm_transport.progress(own);
	ck_assert_int_eq(ended, -1);
	__atomic_add_fetch(&cell()->helped, 1, __ATOMIC_RELEASE);
	shm_transport.progress(own);
	ck_assert_int_eq(ended, LINK_DONE);
	ck_assert(shm_transport.idle(own));
}
END_TEST

/* Is there help for an offer of `len` bytes, a chunk that is left, at `at` of the peer's memory? */
static bool finds_help(uint64_t flags, uint64_t at, uint64_t key, size_t len)
{
	struct wire_joint w = {.at = (uintptr_t)ours, .len = len, .seq = 3, .chunk = 4096};
	struct packet p = {.head = WIRE_HEAD(WIRE_JOINT, WIRE_DATA | flags, 0, 0),
			   .tag = at,
			   .data = key,
			   .payload = &w,
			   .len = sizeof(w)};

	cell()->left = (uint64_t)w.seq << 32 | 1;
	cell()->helped = (uint64_t)w.seq << 32;
	shm_joint_hear(&opener, SRC, &p);
	return !(cell()->left & 0xffff);
}

START_TEST(its_key_says_what_an_owner_may_name)
{
	uint64_t key = regions[0].mr.fid.key;

	ck_assert(!finds_help(WIRE_REGION | WIRE_READ, 0, key, 4096)); /* of nobody connected */
	known = &to_own->link;
	ck_assert(finds_help(WIRE_REGION | WIRE_READ, 0, key, 4096));
	ck_assert(finds_help(WIRE_REGION, MOST - 4096, key, 4096));
	ck_assert(!finds_help(WIRE_REGION, MOST - 4095, key, 4096));
	ck_assert(!finds_help(WIRE_REGION, 0, key + 1, 4096));
	regions[0].mr.access = FI_REMOTE_READ;
	ck_assert(finds_help(WIRE_REGION | WIRE_READ, 0, key, 4096));
	ck_assert(!finds_help(WIRE_REGION, 0, key, 4096));
}
END_TEST

START_TEST(only_a_message_under_way_may_be_named)
{
	uint64_t at = (uintptr_t)theirs;

	known = &to_own->link;
	ck_assert(!finds_help(WIRE_READ, at, 0, 4096));
	may_read = true;
	ck_assert(finds_help(WIRE_READ, at, 0, 4096));
	ck_assert(!finds_help(0, at, 0, 4096)); /* nobody writes to it */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_joint");
	TCase *tcase = tcase_create("joint");

	tcase_add_checked_fixture(tcase, begin, end);
	tcase_set_timeout(tcase, LIMIT);
	tcase_add_test(tcase, alone_if_the_peer_does_not_come);
	tcase_add_test(tcase, short_ones_are_halved);
	tcase_add_test(tcase, each_copies_a_part);
	tcase_add_test(tcase, who_comes_late_moves_nothing);
	tcase_add_test(tcase, the_last_part_is_waited_for);
	tcase_add_test(tcase, what_the_peer_cannot_copy_is_copied);
	tcase_add_test(tcase, what_others_write_ends_nothing_early);
	tcase_add_test(tcase, a_greedy_owner_holds_no_peer);
	tcase_add_test(tcase, an_abandoned_one_is_written_to_no_more);
	tcase_add_test(tcase, refused_without_a_right);
	tcase_add_test(tcase, nothing_is_left_of_an_abandoned_one);
	tcase_add_test(tcase, its_key_says_what_an_owner_may_name);
	tcase_add_test(tcase, only_a_message_under_way_may_be_named);
	tcase_add_test(tcase, its_end_is_reported);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
