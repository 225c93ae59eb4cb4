/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw clients and raw listeners without the key of an endpoint, or with old and foreign proofs of it: none gets a
 * connection, delivers a message, or makes an operation end with anything but FI_EACCES; each is counted and logged.
 * Those that do know the key are let in.
 */
#include <fcntl.h>

#include "proof.h"
#include "raw_client.h"

#define KEY      'k'
#define OTHER    'o'
#define WAIT_MS  10000
#define QUIET_MS 30
#define GREETERS 150
#define LEFT_MS  500 /* all who have left are noticed within this time */

static struct node victim;
static struct name victim_name;
static bool inside; /* by the Unix socket */
static unsigned int number = 1000, refusals;
static int stderr_fd, log_fd;
static char in[64];

/* A good connection of before, to be played back. */
static struct hello old_greeting, old_connect, old_challenge;

/* ---- The endpoint under attack is this process's ---- */

static void show_log(int status, void *arg)
{
	char text[4096];
	off_t end = lseek(log_fd, 0, SEEK_END);
	ssize_t len = pread(log_fd, text, sizeof(text), end > 4096 ? end - 4096 : 0);

	(void)arg;
	if (status && len > 0 && write(stderr_fd, text, (size_t)len) < 0)
		_exit(1);
}

static void open_victim(void)
{
	char path[64], bytes[PROOF_LEN];
	int fd;

	snprintf(path, sizeof(path), "/tmp/weft_keyed.%d", (int)getpid());
	memset(bytes, KEY, sizeof(bytes));
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, sizeof(bytes)) != sizeof(bytes))
		fail("%s: %s", path, strerror(errno));
	close(fd);
	setenv("FI_WEFT_AUTH_KEY_FILE", path, 1);
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_INTERVAL", "0", 1);
	stderr_fd = dup(STDERR_FILENO);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	dup2(log_fd, STDERR_FILENO);
	on_exit(show_log, NULL);
	node_open(&victim, NULL);
	unlink(path);
	victim_name = node_name(&victim);
	must(fi_recv(victim.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), "fi_recv");
}

static unsigned int count_log(const char *text)
{
	static char log[1 << 20];
	ssize_t len = pread(log_fd, log, sizeof(log) - 1, 0);
	unsigned int count = 0;

	log[len > 0 ? len : 0] = 0;
	for (const char *at = log; (at = strstr(at, text)); at++)
		count++;
	return count;
}

/* Nothing has come to the endpoint, and it has logged one more refusal. */
static void refused(const char *what)
{
	uint64_t end = now_ms() + QUIET_MS;
	struct event e;

	refusals++;
	while (now_ms() < end ||
	       (count_log("refused so far") < refusals && now_ms() < end + WAIT_MS))
		if (node_poll(&victim, &e))
			fail("%s: an operation ended with %d", what, e.err);
	if (count_log("refused so far") != refusals)
		fail("%s: %u refusals in the log, not %u", what, count_log("refused so far"),
		     refusals);
}

/* ---- Sockets ---- */

static void send_hello(int sock, const struct hello *h)
{
	const struct page page = {RING_MAGIC, RING_SLOTS, 1};
	bool ring = inside && h->kind != HELLO_GREETING && h->kind != HELLO_CHALLENGE;
	int fd = ring ? ring_file(RING_LEN, SEALS, page) : -1;

	say(sock, h, sizeof(*h), &fd, ring);
	if (ring)
		close(fd);
}

/* The next hello; kind 0: the connection has ended. Descriptors that come with it are dropped. */
static struct hello recv_hello(int sock)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct hello h = {.kind = 0};
	size_t have = 0;
	ssize_t len = -1;
	struct event e;

	while (have < sizeof(h)) {
		len = recv(sock, (char *)&h + have, sizeof(h) - have, MSG_DONTWAIT);
		if (len == 0 || (len < 0 && errno != EAGAIN))
			return (struct hello){.kind = 0};
		if (len > 0)
			have += (size_t)len;
		else if (now_ms() > end)
			fail("no hello within %d ms", WAIT_MS);
		else if (node_poll(&victim, &e))
			fail("an operation ended with %d", e.err);
	}
	return h;
}

static int come(void)
{
	return inside ? raw_connect(&victim_name) : raw_connect_tcp(&victim_name);
}

/* A connection that wants to begin with a greeting of this kind. */
static struct hello next_hello(uint16_t kind)
{
	struct hello h = good_hello(number);

	h.kind = kind;
	if (kind == HELLO_GREETING || kind == HELLO_CHALLENGE)
		memset(h.nonce, (int)number, sizeof(h.nonce));
	return h;
}

/* ---- The endpoint is connected to ---- */

static struct hello greet(int sock, struct proof *p)
{
	struct hello h, answer;

	number++;
	h = next_hello(HELLO_GREETING);
	proof_seal(p, PROOF_INITIATOR, &h);
	old_greeting = h;
	send_hello(sock, &h);
	answer = recv_hello(sock);
	if (answer.kind != HELLO_CHALLENGE)
		fail("a greeting is answered with %u", answer.kind);
	return answer;
}

/* A message of a connection that is made, or not. */
static void send_message(int sock)
{
	struct frame f = {.head = WIRE_MSG, .len = 4};

	if (!inside && (send(sock, &f, sizeof(f), MSG_NOSIGNAL) != sizeof(f) ||
			send(sock, "word", 4, MSG_NOSIGNAL) != 4))
		errno = 0; /* closed already */
}

static void let_in(void)
{
	struct proof p = proof_begin(KEY);
	struct hello h, answer;
	int sock = come();

	answer = greet(sock, &p);
	if (!proof_good(&p, PROOF_TARGET, &answer))
		fail("the challenge is no proof");
	h = next_hello(HELLO_CONNECT);
	proof_seal(&p, PROOF_INITIATOR, &h);
	old_connect = h;
	send_hello(sock, &h);
	answer = recv_hello(sock);
	if (answer.kind != HELLO_ACCEPT || !proof_good(&p, PROOF_TARGET, &answer))
		fail("one who knows the key gets answer %u", answer.kind);
	send_message(sock);
	if (!inside) {
		struct event e = node_wait(&victim, WAIT_MS, "a good message");

		if (e.err || memcmp(in, "word", 4) != 0)
			fail("a good message ends with %d", e.err);
		memset(in, 0, sizeof(in));
		must(fi_recv(victim.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), "fi_recv");
	}
	close(sock);
}

static void kept_out(int sock, const char *what)
{
	struct hello answer;

	send_message(sock);
	answer = recv_hello(sock);
	if (answer.kind && (answer.kind != HELLO_REJECT || answer.error != FI_EACCES))
		fail("%s: answer %u, error %u", what, answer.kind, answer.error);
	close(sock);
	refused(what);
}

static void without_key(uint16_t kind)
{
	struct hello h = next_hello(kind);
	int sock = come();

	number++;
	send_hello(sock, &h);
	kept_out(sock, "a hello without a proof");
}

/* Greets with the code of another key, none, or that of a greeting with another nonce: there is no challenge. */
static void greet_falsely(char key, bool coded, bool changed)
{
	struct hello h = next_hello(HELLO_GREETING);
	struct proof p = proof_begin(key);
	int sock = come();

	number++;
	if (coded)
		proof_seal(&p, PROOF_INITIATOR, &h);
	h.nonce[0] ^= changed;
	send_hello(sock, &h);
	kept_out(sock, "a greeting without a proof");
}

/* Ways to answer a challenge. */
enum answer {
	OTHER_KEY,
	NO_CODE,
	REPLAYED,
	ITS_OWN_CODE,
	ITS_OWN_HELLO,
	OTHER_ROLE,
	OTHER_NAME,
	OTHER_NIC,
	OTHER_KIND,
	AGAIN,
	GONE,
	ANSWERS
};

static struct hello answer_to(enum answer how, struct proof *p, const struct hello *challenge)
{
	bool known = how >= OTHER_ROLE && how <= OTHER_KIND;
	struct hello h = next_hello(how == AGAIN ? HELLO_GREETING : HELLO_CONNECT);

	if (how == REPLAYED)
		return old_connect;
	if (how == ITS_OWN_HELLO)
		return *challenge;
	/* One who relays the proofs of another that knows the key, changed. */
	if (known && !proof_good(p, PROOF_TARGET, challenge))
		fail("the challenge is no proof");
	if (known || how == OTHER_KEY)
		proof_seal(p, how == OTHER_ROLE ? PROOF_TARGET : PROOF_INITIATOR, &h);
	if (how == ITS_OWN_CODE)
		memcpy(h.mac, challenge->mac, sizeof(h.mac));
	if (how == OTHER_NAME)
		h.name[3] ^= 1;
	if (how == OTHER_NIC)
		h.nic[0] ^= 1;
	if (how == OTHER_KIND)
		h.kind = 4;
	return h;
}

static void answer_falsely(enum answer how)
{
	struct proof p = proof_begin(KEY);
	char what[32];
	struct hello h;
	int sock = come();

	snprintf(what, sizeof(what), "answer %u", (unsigned int)how);
	if (how == REPLAYED) {
		send_hello(sock, &old_greeting);
		h = recv_hello(sock);
	} else {
		h = greet(sock, &p);
	}
	if (how == OTHER_KEY)
		memset(p.key, OTHER, sizeof(p.key));
	h = answer_to(how, &p, &h);
	if (how != GONE)
		send_hello(sock, &h);
	else
		shutdown(sock, SHUT_RDWR);
	kept_out(sock, what);
}

/* Many greet and say no more: one who knows the key is let in soon. */
static void greeters(void)
{
	int socks[GREETERS];
	struct event e;

	for (int i = 0; i < GREETERS; i++) {
		socks[i] = come();
		send_hello(socks[i], &old_greeting);
		node_poll(&victim, &e);
	}
	let_in();
	for (int i = 0; i < GREETERS; i++)
		close(socks[i]);
	/* How many of them were refused depends on who was read when: all have left when no more are. */
	do {
		refusals = count_log("refused so far");
		for (uint64_t end = now_ms() + LEFT_MS; now_ms() < end;)
			node_poll(&victim, &e);
	} while (count_log("refused so far") != refusals);
}

/* ---- The endpoint connects ---- */

/* Ways to answer its greeting, and then its hello. */
enum reply {
	ACCEPTS,
	CROSSES,
	REJECTS,
	GREETS_BACK,
	RELAYS_BACK,
	CHALLENGES_WRONGLY,
	CHALLENGES_AGAIN,
	/* After a good challenge. */
	ACCEPTS_PLAINLY,
	ACCEPTS_WRONGLY,
	CROSSES_PLAINLY,
	REJECTS_PLAINLY,
	ITS_HELLO_BACK,
	REPLIES
};

static int listener;
static fi_addr_t listener_addr;

static void open_listener(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct name name = {.len = sizeof(sin)};
	socklen_t len = sizeof(sin);

	listener = tcp_socket();
	if (bind(listener, (struct sockaddr *)&sin, len) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&sin, &len))
		fail("a listener: %s", strerror(errno));
	memcpy(name.bytes, &sin, sizeof(sin));
	listener_addr = node_insert(&victim, &name);
}

static ssize_t send_mine(void)
{
	return fi_send(victim.ep, "mine", 4, NULL, listener_addr, &victim);
}

static int take_call(void)
{
	ssize_t ret = send_mine();
	int sock;

	if (ret != -FI_EAGAIN)
		fail("a send does not wait for its connection: %s", fi_strerror((int)-ret));
	sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (sock < 0)
		fail("accept: %s", strerror(errno));
	return sock;
}

/* Passes its greeting to its own listener, and the challenge back. */
static struct hello relayed(const struct hello *greeting)
{
	struct hello h;
	int sock = raw_connect_tcp(&victim_name);

	if (send(sock, greeting, sizeof(*greeting), MSG_NOSIGNAL) != sizeof(*greeting))
		fail("send: %s", strerror(errno));
	h = recv_hello(sock);
	if (h.kind != HELLO_CHALLENGE)
		fail("a relayed greeting is answered with %u", h.kind);
	refusals++; /* of the one who relays and leaves */
	close(sock);
	return h;
}

static struct hello first_reply(enum reply how, const struct hello *greeting)
{
	static const uint16_t kinds[] = {
		[ACCEPTS] = HELLO_ACCEPT, [CROSSES] = HELLO_CROSSED, [REJECTS] = HELLO_REJECT};
	struct proof p = proof_begin(OTHER);
	uint8_t code[PROOF_LEN];
	struct hello h;

	if (how == GREETS_BACK)
		return *greeting;
	if (how == RELAYS_BACK)
		return relayed(greeting);
	if (how == CHALLENGES_AGAIN)
		return old_challenge;
	h = next_hello(how == CHALLENGES_WRONGLY ? HELLO_CHALLENGE : kinds[how]);
	proof_code(&p, PROOF_INITIATOR, greeting, code);
	if (how == CHALLENGES_WRONGLY)
		proof_seal(&p, PROOF_TARGET, &h);
	h.data_len = how == REJECTS ? 5 : 0;
	h.error = how == REJECTS ? FI_EBUSY : 0;
	return h;
}

/* The endpoint's hello proper, after a good challenge. */
static struct hello challenge(int sock, struct proof *p, const struct hello *greeting)
{
	struct hello h = next_hello(HELLO_CHALLENGE);
	uint8_t code[PROOF_LEN];

	proof_code(p, PROOF_INITIATOR, greeting, code);
	proof_seal(p, PROOF_TARGET, &h);
	old_challenge = h;
	send_hello(sock, &h);
	h = recv_hello(sock);
	if (h.kind != HELLO_CONNECT || !proof_good(p, PROOF_INITIATOR, &h))
		fail("a good challenge is answered with %u", h.kind);
	return h;
}

static struct hello second_reply(enum reply how, struct proof *p, const struct hello *connect)
{
	struct proof other = proof_begin(OTHER);
	struct hello h = next_hello(how == CROSSES_PLAINLY   ? HELLO_CROSSED
				    : how == REJECTS_PLAINLY ? HELLO_REJECT
							     : HELLO_ACCEPT);

	if (how == ITS_HELLO_BACK)
		return *connect;
	if (how == ACCEPTS_WRONGLY) {
		memcpy(other.chain, p->chain, sizeof(other.chain));
		proof_seal(&other, PROOF_TARGET, &h);
	}
	return h;
}

static void fails(int sock, const char *what)
{
	struct hello h;
	ssize_t ret;

	while ((ret = send_mine()) == -FI_EAGAIN)
		;
	if (ret != -FI_EACCES)
		fail("%s: the send fails with %s", what, fi_strerror((int)-ret));
	h = recv_hello(sock);
	if (h.kind)
		fail("%s: a hello of kind %u follows", what, h.kind);
	close(sock);
	refused(what);
}

static void reply_falsely(enum reply how)
{
	struct proof p = proof_begin(KEY);
	int sock = take_call();
	struct hello greeting = recv_hello(sock), h;
	char what[32];

	number++;
	snprintf(what, sizeof(what), "reply %u", (unsigned int)how);
	if (greeting.kind != HELLO_GREETING)
		fail("%s: the endpoint begins with %u", what, greeting.kind);
	if (how < ACCEPTS_PLAINLY) {
		h = first_reply(how, &greeting);
	} else {
		h = challenge(sock, &p, &greeting);
		h = second_reply(how, &p, &h);
	}
	send_hello(sock, &h);
	fails(sock, what);
}

/* A listener that knows the key gets the message. */
static void reply_well(void)
{
	struct proof p = proof_begin(KEY);
	int sock = take_call();
	struct hello greeting = recv_hello(sock), h;
	struct event e;

	number++;
	challenge(sock, &p, &greeting);
	h = next_hello(HELLO_ACCEPT);
	proof_seal(&p, PROOF_TARGET, &h);
	send_hello(sock, &h);
	MUST(victim.cq, send_mine());
	e = node_wait(&victim, WAIT_MS, "a send to one who knows the key");
	if (e.err)
		fail("a send to one who knows the key ends with %d", e.err);
	close(sock);
	for (uint64_t end = now_ms() + QUIET_MS; now_ms() < end;)
		if (node_poll(&victim, &e) && e.context != in)
			fail("an operation too many ended");
}

static void attack(void)
{
	let_in();
	without_key(HELLO_CONNECT);
	without_key(4);
	without_key(HELLO_ACCEPT);
	without_key(HELLO_CHALLENGE);
	greet_falsely(OTHER, true, false);
	greet_falsely(KEY, false, false);
	greet_falsely(KEY, true, true);
	for (enum answer how = 0; how < ANSWERS; how++)
		answer_falsely(how);
	let_in();
	greeters();
}

int main(void)
{
	alarm(LIMIT);
	proof_need_library();
	need_provider();
	open_victim();
	if (strcmp(provider(), "tcp")) {
		inside = true;
		attack();
	}
	inside = false;
	if (strcmp(provider(), "shm")) {
		attack();
		open_listener();
		reply_well();
		for (enum reply how = 0; how < REPLIES; how++)
			reply_falsely(how);
		reply_well();
	}
	node_close(&victim);
	return EXIT_SUCCESS;
}
