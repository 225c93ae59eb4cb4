/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the proof of keys: clients that know a key come to endpoints that have it, or are called
 * by them, and say hellos of any kind in any order, with right codes and wrong ones. One endpoint
 * has two keys in its address vector, connected ones have one key. Each conversation is judged here
 * by what docs/PROTOCOL.md says: nothing but the right hellos with the right codes makes a link or a
 * connection request, delivers a message or completes a send, under any key but its own; all else
 * is refused and counted. Encrypted links do so with the right key alone.
 */
#include "connected.h"
#include "secure.h"
#include "talk.h"

#define STEPS  60
#define RECVS  4
#define ROUNDS 3 /* of progress after each step: accept, answer and what follows */

static const uint8_t other[KEY_LEN] = "another key, which is none here";

/* Of the input: every conversation; slot `i` has number talk_of[i]. */
static struct talk talks[STEPS];
static unsigned int talk_count, talk_of[SLOTS];
static struct secure secures[SLOTS];          /* the clients' ends of encrypted links */
static unsigned int refusals, refused_before; /* seen; of the endpoint before the input */
static bool rejected;                         /* a client with the key has said HELLO_REJECT */
static bool wrong_keys;        /* clients encrypt with another key than that of the link */
static struct wire_hello said; /* the last good hello of a client */
static uint32_t inbox[RECVS];
static fi_addr_t addrs[WAYS], key_addrs[KEYS]; /* a name has one key: names[n] has keys[n] */
static char sends[WAYS];                       /* contexts: to a peer with that key */

/* ---- What the endpoint does ---- */

/* An endpoint is seen to refuse the client. What a listener counts cannot be read. */
static void refusal(struct talk *t)
{
	if (t->at_listener)
		return;
	refusals += !t->refused;
	t->refused = true;
	MUST(worker->conn.auth.refused - refused_before >= refusals);
}

static void check_links(void)
{
	unsigned int links = 0, proofs = 0;

	LIST_EACH (node, &worker->conn.peers_list)
		links += contact_linked(LIST_ENTRY(node, struct contact, in_station));
	for (unsigned int n = 0; n < talk_count; n++)
		proofs += proven(&talks[n]);
	MUST(links + single_linked() <= proofs);
}

static bool any_proven(unsigned int key)
{
	unsigned int n = 0;

	while (n < talk_count && !(proven(&talks[n]) && talks[n].key == key))
		n++;
	return n < talk_count;
}

static void post(uint32_t *to)
{
	MUST(!fi_recv(ep, to, sizeof(*to), NULL, FI_ADDR_UNSPEC, to));
}

/*
 * A message names the conversation that it comes from. Its source is the entry of that
 * conversation's key, or none, and then the key is reported.
 */
static void received(uint32_t *to, const struct fi_cq_msg_entry *e, int err, fi_addr_t src)
{
	MUST(e->len == sizeof(*to) && *to < talk_count && proven(&talks[*to]));
	MUST(!err || err == FI_EADDRNOTAVAIL);
	MUST(src == (err ? key_addrs : addrs)[talks[*to].key]);
	post(to);
}

static void completed(const struct fi_cq_msg_entry *e, int err, fi_addr_t src)
{
	const char *sent = e->op_context;

	if (sent < sends || sent >= sends + WAYS) {
		received(e->op_context, e, err, src);
		return;
	}
	done++;
	MUST(err || any_proven((unsigned int)(sent - sends)));
	MUST(err != FI_EACCES || rejected || worker->conn.auth.encrypts ||
	     worker->conn.auth.refused != refused_before);
}

/* The data of a request names its conversation, too. */
static void requested(const void *data, size_t len)
{
	uint32_t number;

	MUST(any_proven(0));
	if (len < sizeof(number))
		return;
	memcpy(&number, data, sizeof(number));
	MUST(number < talk_count && proven(&talks[number]));
}

static void connected(void)
{
	MUST(any_proven(0));
}

/* `may_encrypt`: if it comes from the endpoint of clients.h. */
static void heard(struct talk *t, const struct wire_hello *hello, bool fds, bool may_encrypt)
{
	static uint8_t nonce[WIRE_PROOF];
	static const uint8_t zero[WIRE_PROOF];

	if (hello->kind == HELLO_GREETING)
		t->encrypts = may_encrypt && hello->incarnation == worker->conn.incarnation;
	MUST(hello->magic == WIRE_MAGIC && hello->version == WIRE_VERSION);
	MUST(hello->size == sizeof(*hello));
	if (!advance(t, hello, false)) {
		/* Who has proven nothing is told nothing but that. */
		MUST(t->came && t->wrong && hello->kind == HELLO_REJECT);
		MUST(hello->error == FI_EACCES && !memcmp(hello->mac, zero, WIRE_PROOF));
	}
	MUST(!fds || t->good > 2);
	if (hello->kind == HELLO_REJECT && hello->error == FI_EACCES)
		refusal(t);
	if (hello->kind == HELLO_GREETING || hello->kind == HELLO_CHALLENGE) {
		MUST(memcmp(hello->nonce, nonce, WIRE_PROOF) != 0);
		memcpy(nonce, hello->nonce, WIRE_PROOF);
	}
	t->heard = *hello;
}

/* The endpoint has closed the connection. */
static void ended(unsigned int i)
{
	struct talk *t = &talks[talk_of[i]];

	slot_close(i, false);
	if (t->came && t->wrong)
		refusal(t);
}

/* Receives a hello. False: there is none; until the proof is complete nothing else may come. */
static bool hear_hello(unsigned int i)
{
	char control[CMSG_SPACE(WIRE_FDS * sizeof(int))];
	struct wire_hello hello;
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t len = recv(slots[i].sock, &hello, sizeof(hello), MSG_DONTWAIT | MSG_PEEK);
	const struct cmsghdr *c;

	if (len < 0 && errno == EAGAIN)
		return false;
	if (len <= 0) {
		ended(i);
		return false;
	}
	if (slots[i].way == NETWORK && len < (ssize_t)sizeof(hello))
		return false;
	MUST(recvmsg(slots[i].sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == (ssize_t)sizeof(hello));
	c = CMSG_FIRSTHDR(&m);
	heard(&talks[talk_of[i]], &hello, c, slots[i].way == NETWORK && worker->conn.auth.encrypts);
	for (size_t n = 0; c && n < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); n++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + n * sizeof(int), sizeof(int));
		close(fd);
	}
	return true;
}

/* Takes what comes over a link. */
static void hear_link(unsigned int i)
{
	static char bytes[65536];
	struct talk *t = &talks[talk_of[i]];

	if (t->encrypts && !secures[i].tls) {
		secures[i].wrong_key = wrong_keys;
		secure_begin(&secures[i], t->came, keys[t->key], KEY_LEN,
			     wrong_keys ? t->chain : t->asked);
	}
	while (t->encrypts ? secure_read(&secures[i], slots[i].sock, bytes, sizeof(bytes)) > 0
			   : recv(slots[i].sock, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void hear_all(void)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		while (slots[i].sock >= 0 && !talks[talk_of[i]].linked && hear_hello(i))
			;
		if (slots[i].sock >= 0 && talks[talk_of[i]].linked)
			hear_link(i);
	}
}

/* ---- What the clients do ---- */

/* A conversation begins on the slot, if it has a socket. */
static void begin(unsigned int i, bool came, bool at_listener)
{
	if (slots[i].sock < 0)
		return;
	secure_end(&secures[i]);
	talk_of[i] = talk_count;
	talks[talk_count++] =
		(struct talk){.came = came,
			      .at_listener = at_listener,
			      .encrypts = came && !at_listener && slots[i].way == NETWORK &&
					  worker->conn.auth.encrypts};
}

/* Says the hello, with the descriptor of a ring where one is due, or (`odd`) where none is. */
static void say_hello(unsigned int i, const struct wire_hello *hello, bool odd)
{
	struct talk *t = &talks[talk_of[i]];
	bool inside = slots[i].way == INSIDE, ring = inside && carries_ring(hello->kind) != odd;
	int fds[FDS_MAX];

	/* Bytes behind the proof are packets of tcp, which tests/fuzz/frames.c makes up. */
	if (!inside && proven(t))
		return;
	if (ring)
		fds[0] = file_fd("", 0, RING_SEALS);
	if (!say(i, hello, sizeof(*hello), fds, ring) || t->over || proven(t))
		return;
	if (formed(hello, inside, ring) && advance(t, hello, true)) {
		said = *hello;
		rejected |= hello->kind == HELLO_REJECT;
		return;
	}
	t->over = true;
	t->wrong = formed(hello, inside, ring);
}

static struct wire_hello plain_hello(struct input *in, const struct talk *t)
{
	const uint32_t next[] = {HELLO_GREETING, HELLO_CHALLENGE,
				 t->at_listener ? HELLO_REQUEST : HELLO_CONNECT, HELLO_ACCEPT};
	const uint64_t incarnations[] = {1, UINT64_MAX, worker->conn.incarnation, said.incarnation};
	struct addr unknown = names[NETWORK];
	const struct addr *const all[] = {&names[NETWORK], &names[INSIDE], &worker->conn.name,
					  &unknown};
	struct wire_hello hello = {.magic = WIRE_MAGIC,
				   .version = WIRE_VERSION,
				   .size = sizeof(hello),
				   .name_format = FI_SOCKADDR_IN,
				   .data_len = sizeof(uint32_t)};
	uint32_t number = (uint32_t)(t - talks);
	uint8_t kind = take8(in) % (HELLO_KINDS + 1), who = take8(in);
	size_t len = sizeof(hello.name);

	unknown.port ^= 1;
	hello.flags = t->encrypts != (who >> 6 & 1) ? WIRE_HELLO_ENCRYPTS : 0;
	hello.kind = kind ? kind : next[t->good % 4];
	hello.your_id = t->heard.your_id;
	hello.incarnation = incarnations[who & 3];
	hello.serial = who >> 4 & 3;
	hello.cma_addr = t->heard.cma_addr;
	hello.cma_value = t->heard.cma_value;
	MUST(!addr_to_user(all[who >> 2 & 3], hello.name, &len));
	hello.name_len = (uint32_t)len;
	memcpy(hello.data, &number, sizeof(number));
	return hello;
}

/* Gives the hello a code, which is good or not. */
static void seal(struct input *in, const struct talk *t, struct wire_hello *hello)
{
	switch (take8(in) % 9) {
	case 0:
		code(keys[t->key], t->came, t->chain, hello, hello->mac);
		break;
	case 1:
		code(other, t->came, t->chain, hello, hello->mac);
		break;
	case 2: /* that of the other role */
		code(keys[t->key], !t->came, t->chain, hello, hello->mac);
		break;
	case 3: /* that of another conversation */
		code(keys[t->key], t->came, talks[take8(in) % talk_count].chain, hello, hello->mac);
		break;
	case 4: /* the endpoint's own */
		memcpy(hello->mac, t->heard.mac, WIRE_PROOF);
		break;
	case 5: /* that of another hello */
		memcpy(hello->mac, said.mac, WIRE_PROOF);
		break;
	case 6: /* not bound to what was said before */
		code(keys[t->key], t->came, (const uint8_t[WIRE_PROOF]){0}, hello, hello->mac);
		break;
	case 7: /* the other of both keys */
		code(keys[!t->key], t->came, t->chain, hello, hello->mac);
		break;
	default:
		break;
	}
}

/* Changes bytes anywhere but in the application's data. */
static void patch(struct input *in, struct wire_hello *hello, unsigned int count)
{
	while (count--) {
		size_t at = take16(in) % (sizeof(*hello) - sizeof(hello->data));

		if (at >= offsetof(struct wire_hello, data))
			at += sizeof(hello->data);
		((unsigned char *)hello)[at] = take8(in);
	}
}

/* Says a new hello, with bytes changed before and after it got its code. */
static void say_new(struct input *in, unsigned int i)
{
	struct wire_hello hello = plain_hello(in, &talks[talk_of[i]]);
	uint8_t patches = take8(in);

	patch(in, &hello, patches & 7);
	seal(in, &talks[talk_of[i]], &hello);
	patch(in, &hello, patches >> 3 & 3);
	say_hello(i, &hello, patches >> 7);
}

/* Says what another has said: the endpoint, in any conversation, or a client that knew the key. */
static void say_again(struct input *in, unsigned int i)
{
	uint8_t which = take8(in);
	const struct wire_hello *old = &talks[which / 2 % talk_count].heard;

	say_hello(i, which % 2 ? &said : old, false);
}

/* Encrypts what is said, and changes a byte of it if the input wants that. */
static void say_secure(unsigned int i, const void *bytes, size_t len, size_t spoil)
{
	struct secure *s = &secures[i];

	if (!s->done || s->spoilt)
		return;
	MUST(tls_write(s->tls, bytes, len));
	s->spoilt = spoil;
	secure_flush(s, slots[i].sock, spoil);
}

/* Says a message. One that is in the clear or changed, over an encrypted link, must not arrive. */
static void say_message(struct input *in, unsigned int i)
{
	struct talk *t = &talks[talk_of[i]];
	uint8_t how = take8(in);
	struct {
		struct tcp_frame frame;
		uint32_t number;
	} message = {{.head = WIRE_HEAD(WIRE_MSG, 0, 0, 0), .len = sizeof(uint32_t)}, talk_of[i]};
	size_t len = sizeof(message.frame) + sizeof(message.number);

	if (slots[i].way != NETWORK)
		return;
	if (t->encrypts && how)
		message.number = UINT32_MAX;
	t->over = true;
	if (t->encrypts && t->linked && how != 1) {
		say_secure(i, &message, len, how);
		return;
	}
	send(slots[i].sock, &message, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	secures[i].spoilt = true;
}

static void speak(struct input *in, unsigned int i, unsigned int what)
{
	if (slots[i].sock < 0)
		return;
	switch (what) {
	case 5:
		say_again(in, i);
		break;
	case 6:
		say_message(in, i);
		break;
	default:
		say_new(in, i);
	}
}

/* The application calls a client, by an endpoint of either kind. */
static void app_call(int way, bool by_single)
{
	if (by_single)
		single_call(way, keys[0]);
	else
		call(addrs[way], &sends[way]);
}

/*
 * The application answers a connection request, also with an endpoint whose key is not the one that
 * was proven, or closes its connected endpoint.
 */
static void app_answer(unsigned int how)
{
	if (how == 3)
		single_close();
	else if (!single.request)
		return;
	else if (how == 2)
		request_reject();
	else
		request_accept(how ? other : keys[0]);
	MUST(how != 1 || !single_linked());
}

static void progress(void)
{
	make_progress();
	connected_progress();
}

static void act(struct input *in)
{
	uint8_t what = take8(in);
	unsigned int i = what >> 4 & 3;
	int way = what >> 6 & 1;
	bool single_too = what & 8;

	switch (what % 8) {
	case 0:
		come(i, way, single_too ? &pep_name : &worker->conn.name);
		begin(i, true, single_too);
		break;
	case 1:
		app_call(way, single_too);
		break;
	case 2:
		answer(i, way);
		begin(i, false, false);
		break;
	case 7:
		if (single_too)
			app_answer(i);
		else
			slot_close(i, what >> 7);
		break;
	default:
		speak(in, i, what % 8);
	}
}

static void step(struct input *in)
{
	act(in);
	for (unsigned int n = 0; n < ROUNDS; n++) {
		progress();
		hear_all();
	}
	check_links();
}

static void close_all(void)
{
	connected_close();
	endpoint_close();
}

/* Clients lose places to each other: for connections that prove their key, and for unknown peers. */
static void open_all(void)
{
	static bool before;

	setenv("FI_WEFT_PENDING_MAX", "3", 1);
	setenv("FI_WEFT_UNKNOWN_MAX", "2", 1);
	endpoint_open(FI_MSG | FI_SOURCE | FI_SOURCE_ERR, FI_AV_AUTH_KEY);
	for (unsigned int k = 0; k < KEYS; k++)
		MUST(!fi_av_insert_auth_key(av, keys[k], KEY_LEN, &key_addrs[k], 0));
	endpoint_enable();
	connected_open(keys[0], KEY_LEN);
	if (!before) {
		peers_listen();
		ring_check();
		atexit(close_all);
	}
	before = true;
	for (int way = 0; way < WAYS; way++)
		addrs[way] = entry(way, &key_addrs[way]);
	for (unsigned int i = 0; i < RECVS; i++)
		post(&inbox[i]);
}

static void choose_level(uint8_t which)
{
	worker->conn.auth.closed = which & 1;
	worker->conn.auth.encrypts = which & 2;
	wrong_keys = which & 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned int fds;

	if (!hmac_load() || !tls_load())
		return 0; /* keys cannot be used here */
	if (!ep)
		open_all();
	fds = lowest_fd(); /* libFuzzer opens descriptors itself */
	talk_count = refusals = 0;
	refused_before = worker->conn.auth.refused;
	rejected = false;
	memset(&said, 0, sizeof(said));
	choose_level(take8(&in));
	for (int i = 0; i < STEPS && in.left; i++)
		step(&in);
	connected_end();
	quiesce(fds);
	for (unsigned int i = 0; i < SLOTS; i++)
		secure_end(&secures[i]);
	if (ends_all(size))
		close_all();
	return 0;
}
