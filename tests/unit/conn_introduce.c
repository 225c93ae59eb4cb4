/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is asked to introduce us, which introductions are passed on, and which are followed. */
#include <arpa/inet.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/av.h"
#include "core/av_store.h"
#include "fake_link.h"
#include "xfer/worker.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"

#define INTRODUCE WIRE_HEAD(WIRE_INTRODUCE, 0, 0, 0)

/* Addresses for documents: nobody has them. The peer of the fixture has the first. */
#define PEER   "192.0.2.1"
#define OTHER  "192.0.2.2"
#define NOBODY "192.0.2.77"
#define RELAY  "192.0.2.9"
#define PORT   4711
#define FARS   20

#define AWAITED 1200u /* more than 1024 */

/* Another peer, whose link counts the packets and keeps the last one. */
struct far {
	struct link link; /* first */
	struct peer *peer;
	unsigned int count;
	uint64_t head, tag;
	struct wire_address last;
	bool full;
};

static struct far far[FARS];
static struct far *const other = &far[0];
static unsigned int asked[AWAITED]; /* questions about the endpoint with this port */
static unsigned int warnings;
static char warning[1024]; /* the last one */

static int far_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		    uint64_t tag)
{
	struct far *f = (struct far *)link;

	(void)data;
	if (f->full)
		return -FI_EAGAIN;
	f->count++;
	f->head = head;
	f->tag = tag;
	if (len == sizeof(f->last))
		memcpy(&f->last, buf, len);
	if (f->last.port < AWAITED)
		asked[f->last.port]++;
	return 0;
}

static void far_close(struct link *link)
{
	(void)link;
}

static const struct link_ops far_ops = {.send = far_send, .close = far_close};

static struct addr address(const char *ip)
{
	struct addr a = {.kind = ADDR_IN, .port = PORT};

	ck_assert_int_eq(inet_pton(AF_INET, ip, a.ip), 1);
	return a;
}

static struct peer *peer_at(const char *ip)
{
	struct addr a = address(ip);
	struct peer *peer = peer_of(contact_by_name(&fake.worker->conn, &a, 0));

	ck_assert_ptr_nonnull(peer);
	return peer;
}

static bool has_peer(const char *ip)
{
	struct addr a = address(ip);

	return contact_find(&fake.worker->conn, &a, 0);
}

static void join(struct far *f, const char *ip)
{
	*f = (struct far){.link = {LINK_BARE, .ops = &far_ops}, .peer = peer_at(ip)};
	f->peer->conn.real = &f->link;
	f->peer->conn.hello_flags = WIRE_HELLO_INTRODUCES;
	contact_connected(&f->peer->conn);
}

static bool is_warning(const char *prov, int level, int subsys)
{
	(void)prov, (void)subsys;
	return level == FI_LOG_WARN;
}

static bool never_ready(const char *prov, int level, int subsys, uint64_t *showtime)
{
	(void)prov, (void)level, (void)subsys, (void)showtime;
	return false;
}

static void keep(const struct log_place *place, const char *msg)
{
	(void)place;
	warnings++;
	snprintf(warning, sizeof(warning), "%s", msg);
}

static void setup(void)
{
	static const struct log_sink sink = {is_warning, never_ready, keep};

	log_redirect(&sink);
	warnings = 0;
	fake_open_connected();
	addr_free(&fake.peer->conn.name);
	fake.peer->conn.name = fake.peer->conn.key = address(PEER);
	fake.peer->conn.hello_flags = WIRE_HELLO_INTRODUCES;
	join(other, OTHER);
}

/* The peer of the fixture says `word` about the endpoint of this address. */
static void hear(uint64_t word, const char *ip)
{
	struct addr a = address(ip);
	struct wire_address w = {.port = a.port};

	memcpy(w.ip, a.ip, sizeof(w.ip));
	fake_says(INTRODUCE, word, 0, &w, sizeof(w));
}

/* Has the peer heard `word` about the endpoint of this address, last of all? */
static bool has_heard(const struct far *f, enum wire_introduce word, const char *ip)
{
	struct addr a = address(ip);

	return f->count && wire_op(f->head) == WIRE_INTRODUCE && f->tag == word &&
	       f->last.port == a.port && !f->last.in6 && !memcmp(f->last.ip, a.ip, sizeof(a.ip));
}

/* ---- The third endpoint ---- */

START_TEST(passed_on)
{
	hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_eq(other->count, 1);
	ck_assert(has_heard(other, WIRE_INTRODUCE_TELL, PEER));
	ck_assert_uint_eq(fake.count, 0); /* no answer */
}
END_TEST

START_TEST(not_connected)
{
	hear(WIRE_INTRODUCE_ASK, NOBODY);
	ck_assert_uint_eq(other->count + fake.count, 0);
	ck_assert(!has_peer(NOBODY));
}
END_TEST

START_TEST(not_to_the_asker)
{
	hear(WIRE_INTRODUCE_ASK, PEER);
	ck_assert_uint_eq(other->count + fake.count, 0);
}
END_TEST

START_TEST(not_to_one_that_does_not_understand)
{
	other->peer->conn.hello_flags = 0;
	hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_eq(other->count, 0);
}
END_TEST

/* Who has proven another key is another one. */
START_TEST(not_across_keys)
{
	other->peer->conn.key_slot = 1;
	hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_eq(other->count, 0);
	other->peer->conn.key_slot = 0;
	fake.peer->conn.key_slot = 1;
	hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_eq(other->count, 0);
}
END_TEST

/* Nothing is kept for a link that takes no packet now. */
START_TEST(not_kept)
{
	other->full = true;
	hear(WIRE_INTRODUCE_ASK, OTHER);
	other->full = false;
	fi_cq_read(fake.cq, NULL, 0);
	ck_assert_uint_eq(other->count, 0);
	hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_eq(other->count, 1);
}
END_TEST

/* 1024 a second; a second later others count. */
START_TEST(flood)
{
	for (int i = 0; i < 5000; i++)
		hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_ge(other->count, 1024);
	ck_assert_uint_le(other->count, 2048); /* a second may have begun meanwhile */
	other->count = 0;
	fake.peer->conn.heard_ms -= 1000;
	hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_eq(other->count, 1);
}
END_TEST

/* ---- Malformed ---- */

static const struct {
	uint64_t word;
	size_t len;
	uint16_t port, in6;
} wrong[] = {
	{WIRE_INTRODUCE_ASK, 0, PORT, 0},       {WIRE_INTRODUCE_ASK, 19, PORT, 0},
	{WIRE_INTRODUCE_ASK, 21, PORT, 0},      {0, 20, PORT, 0},
	{WIRE_INTRODUCE_TELL + 1, 20, PORT, 0}, {UINT64_MAX, 20, PORT, 0},
	{WIRE_INTRODUCE_ASK, 20, 0, 0},         {WIRE_INTRODUCE_ASK, 20, PORT, 2},
	{WIRE_INTRODUCE_ASK, 20, PORT, 0xffff},
};

START_TEST(malformed)
{
	unsigned char payload[32] = {0};
	struct wire_address w = {.port = wrong[_i].port, .in6 = wrong[_i].in6};

	inet_pton(AF_INET, OTHER, w.ip);
	memcpy(payload, &w, sizeof(w));
	fake.worker->conn.reaches_out = true;
	warnings = 0;
	fake_says(INTRODUCE, wrong[_i].word, 0, payload, wrong[_i].len);
	ck_assert_uint_eq(warnings, 1); /* not taken for a good one */
	ck_assert_uint_eq(other->count + fake.count, 0);
	ck_assert_int_eq(fake.peer->conn.state, PEER_CONNECTED);
}
END_TEST

/* ---- Behind a firewall ---- */

/*
 * Is an endpoint connected to, if a peer tells so? That fails at once, as this worker uses no network, and leaves its
 * error.
 */
static bool follows(const char *ip)
{
	struct peer *peer = peer_at(ip);

	fake.worker->conn.introduce.followed_ms -= 1000; /* the last one was a second ago */
	peer->conn.named++;                              /* so it is not freed */
	peer->conn.last_error = 0;
	hear(WIRE_INTRODUCE_TELL, ip);
	peer->conn.named--;
	return peer->conn.last_error;
}

START_TEST(followed)
{
	fake.worker->conn.reaches_out = true;
	ck_assert(follows(NOBODY));
}
END_TEST

/* It leaves no peer behind. */
START_TEST(failed_ones_are_forgotten)
{
	fake.worker->conn.reaches_out = true;
	hear(WIRE_INTRODUCE_TELL, NOBODY);
	ck_assert(!has_peer(NOBODY));
}
END_TEST

START_TEST(not_behind_a_firewall)
{
	ck_assert(!follows(NOBODY));
}
END_TEST

START_TEST(not_on_this_host)
{
	fake.worker->conn.reaches_out = true;
	ck_assert(!follows("127.0.0.1"));
	ck_assert(!follows("0.0.0.0"));
}
END_TEST

/* Addresses that no endpoint has, and forms of those that lead to this host. */
static const struct {
	const char *ip;
	bool here;
} odd[] = {
	{"0.0.0.0", true},
	{"127.0.0.1", true},
	{"127.255.255.254", true},
	{"::", true},
	{"::1", true},
	{"::ffff:127.0.0.1", true},
	{"::ffff:0.0.0.0", true},
	{"224.0.0.1", false},
	{"240.0.0.1", false},
	{"255.255.255.255", false},
	{"::ffff:224.0.0.1", false},
	{"ff02::1", false},
	{"fe80::1", false},
	{"100::", false},
};

static size_t peers(void)
{
	size_t n = 0;

	LIST_EACH (node, &fake.worker->conn.peers_list)
		n++;
	return n;
}

START_TEST(odd_addresses)
{
	struct wire_address w = {.port = PORT, .in6 = strchr(odd[_i].ip, ':') != NULL};
	size_t before = peers();

	ck_assert_int_eq(inet_pton(w.in6 ? AF_INET6 : AF_INET, odd[_i].ip, w.ip), 1);
	fake.worker->conn.reaches_out = true;
	fake_says(INTRODUCE, WIRE_INTRODUCE_TELL, 0, &w, sizeof(w));
	ck_assert_int_eq(strstr(warning, "that is this host") != NULL, odd[_i].here);
	fake_says(INTRODUCE, WIRE_INTRODUCE_ASK, 0, &w, sizeof(w));
	ck_assert_uint_eq(peers(), before);
	ck_assert_uint_eq(other->count + fake.count, 0);
}
END_TEST

START_TEST(not_if_closed)
{
	fake.worker->conn.reaches_out = fake.worker->conn.auth.closed = true;
	ck_assert(!follows(NOBODY));
	fake.worker->conn.auth.closed = false;
}
END_TEST

/* Makes the peer one that was connected to, so many ms ago, because a third endpoint named it. */
static struct peer *attempt(const char *ip, enum peer_state state, unsigned int ago)
{
	struct peer *peer = peer_at(ip);

	ck_assert_int_eq(attempt_begin(&peer->conn), 0);
	peer->conn.attempt->until = clock_coarse_ms() + 10000 - ago;
	peer->conn.attempt->deadline = UINT64_MAX;
	peer->conn.state = state;
	return peer;
}

/* Polls as if the clock had gone on since the last poll. */
static void poll_later(void)
{
	fake.worker->conn.expired_ms = 0;
	conn_poll(&fake.worker->conn);
}

/* Sixteen; an older one gives way once it would have answered. */
START_TEST(few_at_a_time)
{
	char ip[32];

	fake.worker->conn.reaches_out = true;
	for (int i = 0; i < 16; i++) {
		snprintf(ip, sizeof(ip), "192.0.2.%d", 200 + i);
		ck_assert(follows(ip));
		snprintf(ip, sizeof(ip), "192.0.2.%d", 100 + i);
		attempt(ip, PEER_HANDSHAKE, i == 7 ? 1000 : 0);
	}
	ck_assert(!follows(NOBODY));
	peer_at("192.0.2.107")->conn.attempt->until -= 1000;
	fake.peer->conn.tells = 64; /* one that says too much ends none of them */
	ck_assert(!follows(NOBODY));
	poll_later();
	ck_assert(has_peer("192.0.2.107"));
	fake.peer->conn.tells = 0;
	ck_assert(follows(NOBODY));
	poll_later();
	for (int i = 0; i < 16; i++) {
		snprintf(ip, sizeof(ip), "192.0.2.%d", 100 + i);
		ck_assert_int_eq(has_peer(ip), i != 7);
	}
}
END_TEST

/*
 * The one that was named may take the connection and say nothing, or say that it connects and not do it; one that an
 * operation asked for is waited for.
 */
START_TEST(silent_ones_end)
{
	static const enum peer_state states[] = {PEER_CONNECTING, PEER_HANDSHAKE, PEER_CROSSED};
	struct peer *peer = attempt(NOBODY, states[_i], 9000);

	peer->conn.named++;
	peer->conn.attempt->again_ms = UINT64_MAX;
	poll_later();
	ck_assert_int_eq(peer->conn.state, states[_i]);
	peer->conn.attempt->until -= 1000;
	poll_later();
	ck_assert_int_eq(peer->conn.state, PEER_IDLE);
	attempt(NOBODY, states[_i], 10000)->conn.attempt->until = 0;
	poll_later();
	ck_assert_int_eq(peer->conn.state, states[_i]);
	peer->conn.named--;
}
END_TEST

/* One that a third endpoint speaks for cannot use up what that endpoint may say for others. */
START_TEST(one_name_counts_once_a_second)
{
	fake.worker->conn.reaches_out = true;
	for (int i = 0; i < 1000; i++)
		hear(WIRE_INTRODUCE_TELL, NOBODY);
	ck_assert_uint_le(fake.peer->conn.tells, 2); /* a second may have begun meanwhile */
	ck_assert(follows("192.0.2.78"));
}
END_TEST

/* 64 names a second. */
START_TEST(flood_of_names)
{
	char ip[32];

	fake.worker->conn.reaches_out = true;
	for (int i = 0; i < 200; i++) {
		snprintf(ip, sizeof(ip), "198.51.100.%d", i);
		hear(WIRE_INTRODUCE_TELL, ip);
	}
	ck_assert(!follows(NOBODY));
	fake.peer->conn.heard_ms -= 1000;
	ck_assert(follows(NOBODY));
}
END_TEST

/* Names that lead nowhere fill no log; what an operation asked for is always told. */
START_TEST(few_log_lines)
{
	char ip[32];

	fake.worker->conn.reaches_out = true;
	for (int i = 0; i < 60; i++) {
		snprintf(ip, sizeof(ip), "198.51.100.%d", i);
		hear(WIRE_INTRODUCE_TELL, ip);
	}
	ck_assert_uint_ge(warnings, 1);
	ck_assert_uint_le(warnings, 2); /* the interval of the log may have ended meanwhile */
	warnings = 0;
	for (int i = 0; i < 3; i++)
		ck_assert_int_ne(conn_start(&peer_at(NOBODY)->conn), 0);
	ck_assert_uint_eq(warnings, 3);
}
END_TEST

/* What leads to nothing does not use up what a peer may say. */
START_TEST(vain_ones_do_not_count)
{
	fake.worker->conn.reaches_out = true;
	for (int i = 0; i < 1000; i++)
		hear(WIRE_INTRODUCE_ASK, NOBODY);
	hear(WIRE_INTRODUCE_ASK, OTHER);
	ck_assert_uint_eq(other->count, 1);
	for (int i = 0; i < 1000; i++)
		hear(WIRE_INTRODUCE_TELL, OTHER); /* it is connected */
	ck_assert(follows(NOBODY));
}
END_TEST

/* ---- Who waits ---- */

static struct peer *await(void)
{
	struct peer *peer = peer_at(NOBODY);

	ck_assert_int_eq(attempt_begin(&peer->conn), 0);
	peer->conn.state = PEER_AWAITED;
	peer->conn.attempt_ms = clock_coarse_ms();
	return peer;
}

START_TEST(all_are_asked)
{
	struct peer *awaited = await();

	conn_options_await(&awaited->conn);
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_uint_eq(other->count, 1);
	ck_assert(has_heard(other, WIRE_INTRODUCE_ASK, NOBODY));
	ck_assert_uint_ge(awaited->conn.attempt->again_ms, awaited->conn.attempt_ms + 1000);
}
END_TEST

START_TEST(who_does_not_understand_is_not_asked)
{
	other->peer->conn.hello_flags = fake.peer->conn.hello_flags = 0;
	conn_options_await(&await()->conn);
	ck_assert_uint_eq(other->count + fake.count, 0);
}
END_TEST

/* Eight of them, and each within three seconds. */
START_TEST(others_each_second)
{
	unsigned int sum = 0;
	struct peer *awaited;
	char ip[32];

	fake.peer->conn.hello_flags = 0;
	for (int i = 1; i < FARS; i++) {
		snprintf(ip, sizeof(ip), "192.0.2.%d", 100 + i);
		join(&far[i], ip);
	}
	awaited = await();
	for (unsigned int times = 1; times <= 3; times++) {
		conn_options_await(&awaited->conn);
		awaited->conn.attempt_ms -= 1000;
		sum = 0;
		for (int i = 0; i < FARS; i++)
			sum += far[i].count;
		ck_assert_uint_eq(sum, 8 * times);
	}
	for (int i = 0; i < FARS; i++)
		ck_assert_uint_ge(far[i].count, 1);
}
END_TEST

/* While the relay is not connected, it is waited for a second. */
START_TEST(relay_first)
{
	struct peer *awaited = await();

	fake.worker->conn.relay.name = address(RELAY);
	conn_options_await(&awaited->conn);
	ck_assert_uint_eq(other->count, 0);
	ck_assert_uint_lt(awaited->conn.attempt->again_ms, awaited->conn.attempt_ms + 1000);
	join(&far[1], RELAY);
	conn_options_await(&awaited->conn);
	ck_assert(has_heard(&far[1], WIRE_INTRODUCE_ASK, NOBODY));
	ck_assert_uint_eq(far[1].count, 1);
	ck_assert_uint_eq(other->count, 1);
}
END_TEST

START_TEST(relay_that_never_comes)
{
	struct peer *awaited = await();

	fake.worker->conn.relay.name = address(RELAY);
	awaited->conn.attempt_ms -= 1000;
	conn_options_await(&awaited->conn);
	ck_assert_uint_eq(other->count, 1);
}
END_TEST

/* Makes `AWAITED` peers ones that are asked about, each by its port. */
static void await_many(void)
{
	for (uint16_t port = 0; port < AWAITED; port++) {
		struct addr a = address(NOBODY);
		struct peer *peer;

		a.port = port;
		peer = peer_of(contact_by_name(&fake.worker->conn, &a, 0));
		ck_assert_ptr_nonnull(peer);
		ck_assert_int_eq(attempt_begin(&peer->conn), 0);
		peer->conn.state = PEER_AWAITED;
		peer->conn.attempt->deadline = UINT64_MAX;
		peer->conn.attempt_ms = clock_coarse_ms();
	}
}

/* No more questions a second than half of what others hear; those that had to wait come first then. */
START_TEST(asked_in_their_order)
{
	fake.peer->conn.hello_flags = 0;
	await_many();
	for (unsigned int second = 1; second <= 3; second++) {
		poll_later();
		ck_assert_uint_eq(other->count, second * 512);
		LIST_EACH (node, &fake.worker->conn.peers_list) {
			struct peer *peer = LIST_ENTRY(node, struct peer, conn.in_station);

			if (peer->conn.attempt)
				peer->conn.attempt->again_ms = 0;
		}
		fake.worker->conn.introduce.asked_ms -= 1000;
	}
	for (unsigned int port = 0; port < AWAITED; port++)
		ck_assert_uint_ge(asked[port], 1);
}
END_TEST

/* ---- The relay ---- */

/* Three seconds later: the relay is looked for again, which fails at once where the worker uses no network. */
static void look_for_relay(void)
{
	fake.worker->conn.relay.next = 0;
	conn_options_tick(&fake.worker->conn, clock_coarse_ms());
}

/* A relay that is down is told once, and again when it has been there. Meanwhile a timer wakes sleepers. */
START_TEST(relay_is_down)
{
	fake.worker->conn.relay.name = address(RELAY);
	fake.worker->conn.reaches_out = true;
	for (int i = 0; i < 10; i++)
		look_for_relay();
	ck_assert_uint_eq(warnings, 1);
	ck_assert_ptr_nonnull(strstr(warning, RELAY));
	ck_assert_int_ge(fake.worker->conn.timer, 0);
	ck_assert_int_ne(conn_start(&peer_at(RELAY)->conn), 0); /* for an operation */
	ck_assert_uint_eq(warnings, 2);
	join(&far[1], RELAY);
	look_for_relay();
	ck_assert_int_eq(fake.worker->conn.timer, -1);
	contact_failed(&far[1].peer->conn, FI_ECONNRESET);
	for (int i = 0; i < 10; i++)
		look_for_relay();
	ck_assert_uint_eq(warnings, 3);
	ck_assert_int_ge(fake.worker->conn.timer, 0);
}
END_TEST

/* An endpoint that is behind no firewall needs the relay while it waits for one that is. */
START_TEST(relay_is_not_wanted)
{
	fake.worker->conn.relay.name = address(RELAY);
	look_for_relay();
	ck_assert(!has_peer(RELAY));
	conn_options_await(&await()->conn);
	look_for_relay();
	ck_assert_uint_eq(warnings, 1);
	look_for_relay();
	ck_assert_uint_eq(warnings, 1);
	ck_assert_int_eq(fake.worker->conn.timer, -1);
}
END_TEST

/* A relay that nobody can connect to is not awaited, and nobody is asked for it. */
START_TEST(relay_behind_a_firewall)
{
	fi_addr_t addr;

	ck_assert_int_eq(fi_av_insert(fake.av, "fi_shm://relay", 1, &addr, 0, NULL), 1);
	av_store_set_firewall(fake.worker->conn.av->store, (uint32_t)addr);
	fake.worker->conn.relay.name = address(RELAY);
	conn_relay_option.await(&fake.peer->conn);
	fake.worker->conn.relay.peer->addr =
		addr; /* vectors of shm take no address that others have */
	fake.worker->conn.reaches_out = true;
	fake.worker->conn.via[LINK_SOCKET].state = fake.worker; /* as if it used a network */
	for (int i = 0; i < 10; i++)
		look_for_relay();
	fake.worker->conn.via[LINK_SOCKET].state = NULL;
	ck_assert_int_eq(peer_at(RELAY)->conn.state, PEER_IDLE);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_ptr_nonnull(strstr(warning, "FI_FIREWALL_ADDR"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_introduce");
	TCase *tcase = tcase_create("introduce");

	setenv("FI_LOG_INTERVAL", "60000", 1);
	tcase_add_checked_fixture(tcase, setup, fake_shut);
	tcase_add_test(tcase, passed_on);
	tcase_add_test(tcase, not_connected);
	tcase_add_test(tcase, not_to_the_asker);
	tcase_add_test(tcase, not_to_one_that_does_not_understand);
	tcase_add_test(tcase, not_across_keys);
	tcase_add_test(tcase, not_kept);
	tcase_add_test(tcase, flood);
	tcase_add_loop_test(tcase, malformed, 0, sizeof(wrong) / sizeof(wrong[0]));
	tcase_add_test(tcase, followed);
	tcase_add_test(tcase, failed_ones_are_forgotten);
	tcase_add_test(tcase, not_behind_a_firewall);
	tcase_add_test(tcase, not_on_this_host);
	tcase_add_loop_test(tcase, odd_addresses, 0, sizeof(odd) / sizeof(odd[0]));
	tcase_add_test(tcase, not_if_closed);
	tcase_add_test(tcase, few_at_a_time);
	tcase_add_loop_test(tcase, silent_ones_end, 0, 3);
	tcase_add_test(tcase, one_name_counts_once_a_second);
	tcase_add_test(tcase, flood_of_names);
	tcase_add_test(tcase, few_log_lines);
	tcase_add_test(tcase, vain_ones_do_not_count);
	tcase_add_test(tcase, all_are_asked);
	tcase_add_test(tcase, who_does_not_understand_is_not_asked);
	tcase_add_test(tcase, others_each_second);
	tcase_add_test(tcase, relay_first);
	tcase_add_test(tcase, relay_that_never_comes);
	tcase_add_test(tcase, asked_in_their_order);
	tcase_add_test(tcase, relay_is_down);
	tcase_add_test(tcase, relay_is_not_wanted);
	tcase_add_test(tcase, relay_behind_a_firewall);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
