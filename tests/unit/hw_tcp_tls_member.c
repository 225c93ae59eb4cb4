/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who knows the key of an encrypted link sends what TLS 1.3 does not allow, or more of what it does than anybody needs: each
 * either ends the link or changes nothing, no packet is read but one that was sent as such, and nothing is kept.
 */
#include <dlfcn.h>
#include <malloc.h>

#include "base/tls.h"
#include "tcp_pair.h"

#define TAG    16
#define HEAD   5     /* bytes in front of a record */
#define GROWTH 65536 /* bytes of heap that both ends may keep, of a million that are sent */
#define OFTEN  5000

/* Types of records, and of messages of the handshake. */
enum { CIPHER_CHANGE = 20, ALERT, HANDSHAKE, DATA, UNKNOWN = 99 };
enum { HELLO = 1, TICKET = 4, CERTIFICATE_ASKED = 13, FINISHED = 20, KEYS = 24 };

static const uint8_t key[TLS_KEY] = {1, 2, 3};
static uint32_t id;

/* ---- The member's end, which encrypts by itself ---- */

static struct {
	struct tls *tls;
	struct tls_out out;
	struct tls_way way;
	uint64_t number; /* of the next record */
	bool renewed;    /* the library alone knows its keys now */
} member;

static struct {
	void *(*ctx_new)(void);
	const void *(*cipher)(void);
	int (*init)(void *ctx, const void *cipher, void *engine, const void *key, const void *iv);
	int (*update)(void *ctx, void *to, int *len, const void *from, int count);
	int (*final)(void *ctx, void *to, int *len);
	int (*ctrl)(void *ctx, int what, int len, void *at);
	void (*ctx_free)(void *ctx);
} evp;

static void find(void *call, const char *name)
{
	*(void **)call = dlsym(dlopen("libcrypto.so.3", RTLD_NOW), name);
	ck_assert_ptr_nonnull(*(void **)call);
}

static void find_calls(void)
{
	find(&evp.ctx_new, "EVP_CIPHER_CTX_new");
	find(&evp.cipher, "EVP_aes_128_gcm");
	find(&evp.init, "EVP_EncryptInit_ex");
	find(&evp.update, "EVP_EncryptUpdate");
	find(&evp.final, "EVP_EncryptFinal_ex");
	find(&evp.ctrl, "EVP_CIPHER_CTX_ctrl");
	find(&evp.ctx_free, "EVP_CIPHER_CTX_free");
}

/* Sends a record: `len` bytes of this type, which is 0 for none at all, and zeros behind it (RFC 8446, 5.2). */
static void seal(uint8_t type, const void *bytes, size_t len, size_t zeros)
{
	static unsigned char plain[1 << 17], record[sizeof(plain) + HEAD + TAG];
	size_t all = len + (type > 0) + zeros, whole = all + TAG;
	uint8_t iv[TLS_IV];
	void *ctx = evp.ctx_new();
	int n;

	memcpy(record, (uint8_t[]){DATA, 3, 3, (uint8_t)(whole >> 8), (uint8_t)whole}, HEAD);
	memset(plain, 0, all);
	if (len)
		memcpy(plain, bytes, len);
	if (type)
		plain[len] = type;
	memcpy(iv, member.way.iv, sizeof(iv));
	for (int i = 0; i < 8; i++)
		iv[TLS_IV - 1 - i] ^= (uint8_t)(member.number >> 8 * i);
	member.number++;
	ck_assert_int_eq(evp.init(ctx, evp.cipher(), NULL, member.way.key, iv), 1);
	ck_assert_int_eq(evp.update(ctx, NULL, &n, record, HEAD), 1);
	ck_assert_int_eq(evp.update(ctx, record + HEAD, &n, plain, (int)all), 1);
	ck_assert_int_eq(evp.final(ctx, record + HEAD + all, &n), 1);
	ck_assert_int_eq(evp.ctrl(ctx, 0x10, TAG, record + HEAD + all), 1); /* the tag */
	evp.ctx_free(ctx);
	if (link_of(id) && !joints[id - 1].ends)
		send(peer_of(id), record, HEAD + whole, MSG_NOSIGNAL);
	make_progress(0);
}

/* The engine ends a link that `ended` reports: here the test looks at it first. */
static bool ended(void)
{
	return joints[id - 1].ends > 0;
}

static size_t packet(unsigned char *to)
{
	return put_frame(to, WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 7, 0, 0);
}

static void flush(void)
{
	send(peer_of(id), member.out.bytes, member.out.len, MSG_NOSIGNAL);
	member.out.len = 0;
	make_progress(0);
}

static void send_packet(void)
{
	unsigned char bytes[FRAME];
	size_t len = packet(bytes);

	if (member.renewed) {
		ck_assert(tls_write(member.tls, bytes, len));
		flush();
	} else {
		seal(DATA, bytes, len, 0);
	}
}

static void begin(void)
{
	unsigned char bytes[4096];
	struct tls_way in;
	int done = 0;

	find_calls();
	engine.key = key;
	id = join_raw();
	member.tls = tls_new(key, false, true, &member.out);
	while (!joints[id - 1].ready || !done) {
		ssize_t len = recv(peer_of(id), bytes, sizeof(bytes), 0);

		if (len > 0)
			tls_input(member.tls, bytes, (size_t)len);
		if (len > 0 && !done)
			ck_assert_int_ge(done = tls_handshake(member.tls), 0);
		write_all(peer_of(id), member.out.bytes, member.out.len);
		member.out.len = 0;
		make_progress(0);
	}
	ck_assert(tls_kernel_keys(member.tls, &member.way, &in));
	member.number = 0;
}

/* ---- What it does ---- */

static const unsigned char big[1 << 16];

static void nothing(void)
{
}

static void pads(void)
{
	seal(DATA, NULL, 0, 1000);
}

static void longest(void)
{
	unsigned char bytes[FRAME];

	seal(DATA, bytes, packet(bytes), TLS_RECORD - FRAME);
}

static void in_the_clear(void)
{
	unsigned char bytes[FRAME];

	send(peer_of(id), bytes, packet(bytes), MSG_NOSIGNAL);
}

/* As a record that is not encrypted. */
static void clear_record(void)
{
	unsigned char bytes[HEAD + FRAME] = {DATA, 3, 3, 0, FRAME};

	packet(bytes + HEAD);
	send(peer_of(id), bytes, sizeof(bytes), MSG_NOSIGNAL);
}

static void endless_record(void)
{
	static const unsigned char head[HEAD] = {DATA, 3, 3, 0xff, 0xff};

	send(peer_of(id), head, sizeof(head), MSG_NOSIGNAL);
	send(peer_of(id), big, sizeof(big), MSG_NOSIGNAL);
}

static void too_long(void)
{
	seal(DATA, big, TLS_RECORD + 1, 0);
}

static void without_type(void)
{
	seal(0, NULL, 0, 100);
}

static void of_no_type(void)
{
	seal(UNKNOWN, big, 100, 0);
}

static void cipher_change(void)
{
	seal(CIPHER_CHANGE, "\1", 1, 0);
}

static void empty_often(void)
{
	for (int i = 0; i < OFTEN && !ended(); i++)
		seal(DATA, NULL, 0, 0);
}

static void goodbye(void)
{
	seal(ALERT, "\1\0", 2, 0);
}

static void fatal(void)
{
	seal(ALERT, "\2\50", 2, 0);
}

/* user_canceled, which announces an end that does not come */
static void warns_often(void)
{
	for (int i = 0; i < OFTEN && !ended(); i++)
		seal(ALERT, "\1\132", 2, 0);
}

static void half_an_alert(void)
{
	seal(ALERT, "\1", 1, 0);
}

/* A message of the handshake that says to be so long, and has `len` bytes behind its head. */
static void message(uint8_t type, uint32_t says, const void *bytes, size_t len)
{
	unsigned char m[1024] = {type, (uint8_t)(says >> 16), (uint8_t)(says >> 8), (uint8_t)says};

	if (len)
		memcpy(m + 4, bytes, len);
	seal(HANDSHAKE, m, 4 + len, 0);
}

static void hello_again(void)
{
	message(HELLO, 100, big, 100);
}

static void finished_again(void)
{
	message(FINISHED, 32, big, 32);
}

static void certificate_asked(void)
{
	message(CERTIFICATE_ASKED, 3, "\0\0\0", 3);
}

static void wrong_key_update(void)
{
	message(KEYS, 1, "\7", 1);
}

static void keys_asked_for(void)
{
	message(KEYS, 1, "\1", 1);
}

/* Tickets with which it could connect again: a lifetime, a number, a nonce, 200 bytes, no extensions. */
static void tickets(void)
{
	unsigned char ticket[4 + 4 + 2 + 2 + 200 + 2] = {0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 200};

	for (int i = 0; i < OFTEN && !ended(); i++) {
		ticket[9] = (unsigned char)i;
		message(TICKET, sizeof(ticket), ticket, sizeof(ticket));
	}
}

/* One of 16 MB, whose bytes come one by one record. */
static void endless_message(void)
{
	message(TICKET, 0xffffff, big, 1000);
	for (int i = 0; i < OFTEN && !ended(); i++)
		seal(HANDSHAKE, big, 4000, 0);
}

/* New keys of its own again and again. */
static void new_keys_often(void)
{
	void *library = dlopen("libssl.so.3", RTLD_NOW);
	int (*update)(void *ssl, int what), (*say)(void *ssl);

	*(void **)&update = dlsym(library, "SSL_key_update");
	*(void **)&say = dlsym(library, "SSL_do_handshake");
	member.renewed = true;
	for (int i = 0; i < OFTEN && !ended(); i++) {
		ck_assert_int_eq(update(*(void **)member.tls, 0), 1);
		ck_assert_int_eq(say(*(void **)member.tls), 1);
		flush();
	}
}

static const struct {
	void (*act)(void);
	bool goes_on;       /* may the link? Then a packet behind it is read */
	unsigned int reads; /* packets in what is done, where it goes on */
} deeds[] = {
	{nothing, true, 0},
	{pads, true, 0},
	{longest, true, 1},
	{in_the_clear, false, 0},
	{clear_record, false, 0},
	{endless_record, false, 0},
	{too_long, false, 0},
	{without_type, false, 0},
	{of_no_type, false, 0},
	{cipher_change, false, 0},
	{empty_often, true, 0},
	{goodbye, false, 0},
	{fatal, false, 0},
	{warns_often, true, 0},
	{half_an_alert, false, 0},
	{hello_again, false, 0},
	{finished_again, false, 0},
	{certificate_asked, false, 0},
	{wrong_key_update, false, 0},
	{keys_asked_for, false, 0},
	{tickets, true, 0},
	{endless_message, false, 0},
	{new_keys_often, true, 0},
};

START_TEST(deed)
{
	size_t heap;

	begin();
	heap = mallinfo2().uordblks;
	deeds[_i].act();
	send_packet();
	PROGRESS_UNTIL(ended() || seen_count == deeds[_i].reads + 1);
	if (ended()) {
		ck_assert_uint_le(seen_count, deeds[_i].reads);
		ck_assert_int_ne(joints[id - 1].ended, 0);
	} else {
		ck_assert(deeds[_i].goes_on);
	}
	ck_assert_uint_le(mallinfo2().uordblks, heap + GROWTH);
	tls_free(member.tls);
	free(member.out.bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_tls_member");
	TCase *tcase = tcase_create("member");

	if (!tls_load()) {
		printf("no libssl.so.3 here, or built without it\n");
		return 77;
	}
	tcase_add_loop_test(tcase, deed, 0, (int)(sizeof(deeds) / sizeof(deeds[0])));
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
