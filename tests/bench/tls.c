/* SPDX-License-Identifier: BSD-2-Clause */
/* Speed of TLS 1.3 over a plain socket, by OpenSSL's own reads and writes: what an encrypted link can reach. The cipher is
 * that of the links. Both sides spin.
 *
 *     tls tcp SIZE...     one-way time of a ping-pong, microseconds
 *     tls stream SIZE...  windows of 64 messages with a buffer each, and an answer: GB/s
 *
 * Prints a line "SIZE VALUE" for each size. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <string.h>
#include "pair.h"

#define WINDOW 64
#define ANSWER 8 /* bytes */

static bool stream;
static char **sizes; /* ends with NULL */
static SSL *ssl;
static char *tx, *rx; /* WINDOW buffers each */

static void put(const char *from, size_t size)
{
	int n;

	do
		n = SSL_write(ssl, from, (int)size);
	while (n <= 0 && SSL_get_error(ssl, n) == SSL_ERROR_WANT_WRITE);
	if (n != (int)size)
		pair_fail("SSL_write");
}

static void get(char *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		int n = SSL_read(ssl, to + done, (int)(size - done));

		if (n <= 0 && SSL_get_error(ssl, n) != SSL_ERROR_WANT_READ)
			pair_fail("SSL_read");
		done += n > 0 ? (size_t)n : 0;
	}
}

static void once(size_t size, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		size_t count = stream ? WINDOW : 1;

		for (size_t slot = 0; slot < count; slot++)
			side == 0 ? put(tx + slot * size, size) : get(rx + slot * size, size);
		side == 0 ? get(rx, stream ? ANSWER : size) : put(tx, stream ? ANSWER : size);
	}
}

/* Returns one-way microseconds, or GB/s. */
static double figure(size_t size)
{
	int rounds = stream ? pair_windows(size) : pair_rounds(size);
	double start = microseconds(), time;

	once(size, rounds);
	time = microseconds() - start;
	return stream ? (double)(rounds * WINDOW * size) / 1000 / time : time / rounds / 2;
}

static void measure(size_t size)
{
	double values[REPEATS_MAX];
	int repeats = pair_repeats(size);

	figure(size);
	for (int i = 0; i < repeats; i++)
		values[i] = figure(size);
	if (side == 0)
		printf("%zu %.4f\n", size, clock_median(values, repeats));
}

static SSL_SESSION *key(SSL *of)
{
	static const unsigned char secret[32] = {1}, code[] = {0x13, 0x01};
	SSL_SESSION *session = SSL_SESSION_new();

	SSL_SESSION_set1_master_key(session, secret, sizeof secret);
	SSL_SESSION_set_cipher(session, SSL_CIPHER_find(of, code));
	SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION);
	return session;
}

static int use_key(SSL *of, const EVP_MD *hash, const unsigned char **id, size_t *len,
		   SSL_SESSION **session)
{
	(void)hash;
	*id = (const unsigned char *)"bench";
	*len = 5;
	*session = key(of);
	return 1;
}

static int find_key(SSL *of, const unsigned char *id, size_t len, SSL_SESSION **session)
{
	(void)id, (void)len;
	*session = key(of);
	return 1;
}

/* Side 0 listens. */
static int open_socket(void)
{
	struct sockaddr_in mine = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(PAIR_HOST)},
			   peer;
	int sock = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t len = sizeof mine;

	if (bind(sock, (struct sockaddr *)&mine, len) || (side == 0 && listen(sock, 1)) ||
	    getsockname(sock, (struct sockaddr *)&mine, &len))
		pair_fail("no socket");
	pair_swap(&mine, &peer, sizeof mine);
	if (side == 0)
		sock = accept(sock, NULL, NULL);
	else if (connect(sock, (struct sockaddr *)&peer, sizeof peer))
		pair_fail("connect");
	if (setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
		pair_fail("TCP_NODELAY");
	return sock;
}

/* The key is known to both sides. */
static void secure(int sock)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());

	SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
	SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
	SSL_CTX_set_psk_use_session_callback(ctx, use_key);
	SSL_CTX_set_psk_find_session_callback(ctx, find_key);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_read_ahead(ctx, 1);
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, sock);
	if ((side == 0 ? SSL_accept(ssl) : SSL_connect(ssl)) != 1)
		pair_fail("no handshake");
	fcntl(sock, F_SETFL, O_NONBLOCK);
}

static void run(void)
{
	size_t most = 0;

	for (char **size = sizes; *size; size++)
		if (strtoul(*size, NULL, 0) > most)
			most = strtoul(*size, NULL, 0);
	if (posix_memalign((void **)&tx, 4096, WINDOW * most) ||
	    posix_memalign((void **)&rx, 4096, WINDOW * most))
		pair_fail("no memory");
	memset(tx, side + 1, WINDOW * most);
	memset(rx, side + 1, WINDOW * most);
	secure(open_socket());
	for (char **size = sizes; *size; size++)
		measure(strtoul(*size, NULL, 0));
}

int main(int argc, char **argv)
{
	stream = argc > 1 && !strcmp(argv[1], "stream");
	if (argc < 3 || (!stream && strcmp(argv[1], "tcp") != 0)) {
		fputs("Usage: tls tcp|stream SIZE...\n", stderr);
		return EXIT_FAILURE;
	}
	sizes = argv + 2;
	pair_network = true;
	return pair_run(run);
}
