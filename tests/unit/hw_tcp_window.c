/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The windows of links with rails, against a plain model: rails are queues that lose what is on them, deliver in parts and
 * out of order with each other. What is read must be the stream, each byte once, in order.
 */
#include <stdlib.h>
#include <string.h>

#include "hw/tcp/rails/tcp_window.h"
#include "suite.h"

#define RAILS 3
#define QUEUE 4096
#define TOTAL (24ull << 20) /* bytes of the stream */

static struct tcp_window out, in;
static uint64_t put_bytes, read_bytes;

/* What is on a rail; the part of the first chunk that has been delivered. */
static struct queue {
	struct tcp_span chunk[QUEUE];
	unsigned int first, count;
	size_t got;
} queue[RAILS];

static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

static unsigned char byte_at(uint64_t at)
{
	return (unsigned char)(at * 7 + at / 251 + at / 65521);
}

static void write_some(void)
{
	static unsigned char bytes[200000];
	size_t len = below(3) ? below(300) + 1 : below(sizeof(bytes)) + 1;

	if (len > TOTAL - put_bytes)
		len = (size_t)(TOTAL - put_bytes);
	if (len > tcp_window_space(&out))
		return;
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(put_bytes + i);
	tcp_window_put(&out, bytes, len);
	put_bytes += len;
}

static void send_some(uint32_t rail)
{
	struct queue *q = &queue[rail];
	struct tcp_span chunk;

	for (uint32_t n = below(8); n && q->count < QUEUE; n--) {
		if (!tcp_window_take(&out, rail, &chunk))
			return;
		if (chunk.to <= chunk.from || chunk.to - chunk.from > TCP_CHUNK)
			ck_abort_msg("a chunk of %llu bytes",
				     (unsigned long long)(chunk.to - chunk.from));
		q->chunk[(q->first + q->count++) % QUEUE] = chunk;
	}
}

/* Delivers a part of the rail's first chunk. */
static void deliver(uint32_t rail)
{
	struct queue *q = &queue[rail];
	const struct tcp_span *c = &q->chunk[q->first];
	uint64_t at = c->from + q->got;
	size_t left = (size_t)(c->to - at), len;
	struct iovec from[2], to[2];

	if (!q->count)
		return;
	len = below(2) ? left : below((uint32_t)left) + 1;
	if (!tcp_window_fits(&in, at, len))
		ck_abort_msg("the sender leaves the window");
	for (size_t i = 0; i < len; i++) {
		if (at + i < in.next)
			continue;
		tcp_window_iov(&out, at + i, 1, from);
		tcp_window_iov(&in, at + i, 1, to);
		*(char *)to[0].iov_base = *(char *)from[0].iov_base;
	}
	if (!tcp_window_came(&in, at, len))
		ck_abort_msg("more parts than the window holds");
	q->got += len;
	if (q->got == c->to - c->from) {
		q->first = (q->first + 1) % QUEUE;
		q->count--;
		q->got = 0;
	}
}

static void lose(uint32_t rail)
{
	uint64_t there = 0, lost;

	for (uint32_t i = 0; i < out.count; i++)
		if (out.span[i].rail == rail)
			there += out.span[i].to - out.span[i].from;
	lost = tcp_window_lost(&out, rail);
	ck_assert_uint_eq(lost, there);
	queue[rail].count = 0;
	queue[rail].got = 0;
}

static void read_some(void)
{
	static unsigned char bytes[300000];
	size_t first = below(100000);
	struct iovec iov[2] = {{bytes, first}, {bytes + first, below(200000)}};
	size_t len = tcp_window_read(&in, iov, 2);

	for (size_t i = 0; i < len; i++)
		if (bytes[i] != byte_at(read_bytes + i))
			ck_abort_msg("byte %llu differs", (unsigned long long)(read_bytes + i));
	read_bytes += len;
	if (below(4) == 0)
		ck_assert(tcp_window_acked(&out, in.begin));
	if (below(50) == 0) {
		tcp_window_trim(&in);
		tcp_window_trim(&out);
	}
}

START_TEST(stream)
{
	uint64_t stuck = 0, last = 0;

	seed = (uint64_t)_i + 1;
	put_bytes = read_bytes = 0;
	memset(queue, 0, sizeof(queue));
	ck_assert(tcp_window_open(&out));
	ck_assert(tcp_window_open(&in));
	while (read_bytes < TOTAL) {
		for (uint32_t n = below(4); n; n--)
			write_some();
		send_some(below(RAILS));
		for (uint32_t n = below(12); n; n--)
			deliver(below(RAILS));
		if (below(200) == 0)
			lose(below(RAILS));
		read_some();
		stuck = read_bytes == last ? stuck + 1 : 0;
		last = read_bytes;
		if (stuck > 100000)
			ck_abort_msg("stuck at %llu", (unsigned long long)read_bytes);
	}
	tcp_window_close(&out);
	tcp_window_close(&in);
}
END_TEST

/* What a peer that breaks the protocol says. */
START_TEST(refuses)
{
	struct tcp_span chunk;

	ck_assert(tcp_window_open(&out));
	ck_assert(tcp_window_open(&in));
	tcp_window_put(&out, "abc", 3);
	ck_assert(!tcp_window_acked(&out, 1)); /* not sent yet */
	ck_assert(tcp_window_take(&out, 0, &chunk));
	ck_assert(!tcp_window_take(&out, 0, &chunk));
	ck_assert(tcp_window_acked(&out, 2));
	ck_assert(tcp_window_acked(&out, 1)); /* late, by another rail */
	ck_assert(!tcp_window_acked(&out, 4));
	ck_assert_uint_eq(tcp_window_space(&out), TCP_WINDOW - 1);
	ck_assert(tcp_window_fits(&in, 0, TCP_WINDOW));
	ck_assert(!tcp_window_fits(&in, 1, TCP_WINDOW));
	ck_assert(!tcp_window_fits(&in, UINT64_MAX, 1));
	for (uint32_t i = 0; i < TCP_SPANS; i++)
		ck_assert(tcp_window_came(&in, 1 + 2ull * i, 1));
	ck_assert(!tcp_window_came(&in, 1 + 2ull * TCP_SPANS, 1));
	ck_assert(tcp_window_came(&in, 0, 2ull * TCP_SPANS)); /* all parts and what lacks */
	ck_assert_uint_eq(in.count, 0);
	ck_assert_uint_eq(in.next, 2ull * TCP_SPANS);
	tcp_window_close(&out);
	tcp_window_close(&in);
}
END_TEST

/* What has come, be it read or not, complete or behind a gap, is told from what lacks. */
START_TEST(lacks)
{
	char got[10];
	const struct iovec iov = {got, sizeof(got)};

	ck_assert(tcp_window_open(&in));
	ck_assert(tcp_window_lacks(&in, 0, TCP_WINDOW));
	ck_assert(tcp_window_came(&in, 0, 20));
	ck_assert_uint_eq(tcp_window_read(&in, &iov, 1), 10);
	ck_assert(!tcp_window_lacks(&in, 5, 100));
	ck_assert(!tcp_window_lacks(&in, 19, 1));
	ck_assert(tcp_window_lacks(&in, 20, 100));
	ck_assert(tcp_window_came(&in, 30, 10)); /* 30 to 39 */
	ck_assert(tcp_window_came(&in, 60, 10)); /* 60 to 69 */
	ck_assert(tcp_window_lacks(&in, 20, 10));
	ck_assert(!tcp_window_lacks(&in, 20, 11));
	ck_assert(!tcp_window_lacks(&in, 20, 100));
	ck_assert(!tcp_window_lacks(&in, 32, 2));
	ck_assert(!tcp_window_lacks(&in, 39, 5));
	ck_assert(tcp_window_lacks(&in, 40, 20));
	ck_assert(!tcp_window_lacks(&in, 40, 21));
	ck_assert(tcp_window_lacks(&in, 70, 1000));
	tcp_window_close(&in);
}
END_TEST

/* Memory that is not used any more goes back. */
START_TEST(trims)
{
	struct tcp_span chunk;

	ck_assert(tcp_window_open(&out));
	tcp_window_put(&out, "abc", 3);
	tcp_window_trim(&out);
	ck_assert_mem_eq(out.bytes, "abc", 3); /* the peer may need it again */
	ck_assert(tcp_window_take(&out, 0, &chunk));
	ck_assert(tcp_window_acked(&out, 3));
	tcp_window_trim(&out);
	ck_assert_ptr_null(out.bytes);
	ck_assert(tcp_window_open(&out));
	tcp_window_put(&out, "de", 2);
	ck_assert(tcp_window_take(&out, 0, &chunk));
	ck_assert_uint_eq(chunk.from, 3);
	ck_assert_mem_eq(out.bytes + 3, "de", 2);
	tcp_window_close(&out);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_window");
	TCase *tcase = tcase_create("window");

	tcase_set_timeout(tcase, 50);
	tcase_add_loop_test(tcase, stream, 0, 4);
	tcase_add_test(tcase, refuses);
	tcase_add_test(tcase, lacks);
	tcase_add_test(tcase, trims);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
