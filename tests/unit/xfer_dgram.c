/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how datagram sends behave without socket space and with errors, over a fake transport. */
#include "dgram_open.h"
#include "core/workers.h"
#include "xfer/dgram/dgram.h"

static int room;  /* datagrams that the transport still accepts */
static int fails; /* result of a send once `room` is 0; 0: -FI_EAGAIN */
static uint64_t words[DGRAM_BATCH_MAX + 4];
static uint64_t seen[4 * DGRAM_BATCH_MAX]; /* datagrams, in the order sent */
static unsigned int seen_count;

static void see(const struct iovec *iov, size_t count)
{
	ck_assert_uint_eq(count, 1);
	ck_assert_uint_eq(iov->iov_len, sizeof(uint64_t));
	memcpy(&seen[seen_count++], iov->iov_base, sizeof(uint64_t));
	room--;
}

static int fake_send(struct dgram *d, const struct addr *to, const struct iovec *iov, size_t count)
{
	(void)d, (void)to;
	if (!room)
		return fails ? fails : -FI_EAGAIN;
	see(iov, count);
	return 0;
}

static int fake_send_many(struct dgram *d, const struct dgram_out *outs, unsigned int count)
{
	int taken = 0;

	(void)d;
	while (room && (unsigned int)taken < count) {
		see(outs[taken].iov, outs[taken].count);
		taken++;
	}
	return taken ? taken : fails ? fails : -FI_EAGAIN;
}

static const struct dgram_ops fake_ops = {.send = fake_send, .send_many = fake_send_many};
static const struct dgram_ops *real_ops;

static void setup(void)
{
	open_all();
	real_ops = opened.dgram->ops;
	opened.dgram->ops = &fake_ops;
	room = fails = 0;
	seen_count = 0;
	for (unsigned int i = 0; i < DGRAM_BATCH_MAX + 4; i++)
		words[i] = 100 + i;
}

static void teardown(void)
{
	if (opened.ep)
		opened.dgram->ops = real_ops;
	close_all();
}

static ssize_t give(unsigned int i, uint64_t flags)
{
	return send_word(opened.ep, opened.to_plain, &words[i], flags);
}

/* Checks that the last `count` datagrams sent are words `from` and up. */
static void expect_seen(unsigned int from, unsigned int count)
{
	ck_assert_uint_ge(seen_count, count);
	for (unsigned int i = 0; i < count; i++)
		ck_assert_uint_eq(seen[seen_count - count + i], words[from + i]);
}

START_TEST(no_room)
{
	ck_assert_int_eq(give(0, 0), -FI_EAGAIN);
	ck_assert_int_eq(fi_inject(opened.ep, words, 8, opened.to_plain), -FI_EAGAIN);
	expect_nothing();
	room = 1;
	ck_assert_int_eq(give(1, 0), 0);
	expect(&words[1]);
	expect_nothing();
	ck_assert_uint_eq(seen_count, 1);
}
END_TEST

START_TEST(cannot_be_sent)
{
	fails = -FI_ENODEV;
	ck_assert_int_eq(give(0, 0), -FI_ENODEV);
	expect_nothing();
}
END_TEST

START_TEST(no_way)
{
	fails = FI_EHOSTUNREACH;
	ck_assert_int_eq(give(0, 0), 0);
	expect_error(&words[0], FI_EHOSTUNREACH);
	ck_assert_int_eq(fi_inject(opened.ep, words, 8, opened.to_plain), -FI_EHOSTUNREACH);
	expect_nothing();
}
END_TEST

/* A call that fails also ends the batch that FI_MORE began. */
START_TEST(failed_last)
{
	static char bytes[1 << 17];
	struct iovec iov[WIRE_IOV_MAX + 1] = {{bytes, 1}};

	for (unsigned int i = 0; i < 5; i++) {
		room = 0;
		ck_assert_int_eq(give(0, FI_MORE), 0);
		ck_assert_int_eq(send_word(opened.ep, 4711, &words[2], FI_MORE), -FI_EINVAL);
		ck_assert_int_eq(give(1, FI_MORE), 0);
		room = 2;
		if (i == 0)
			ck_assert_int_eq(send_word(opened.ep, 4711, &words[2], 0), -FI_EINVAL);
		else if (i == 1)
			ck_assert_int_eq(fi_send(opened.ep, bytes, sizeof(bytes), NULL,
						 opened.to_plain, NULL),
					 -FI_EMSGSIZE);
		else if (i == 2)
			ck_assert_int_eq(fi_sendv(opened.ep, iov, NULL, WIRE_IOV_MAX + 1,
						  opened.to_plain, NULL),
					 -FI_EINVAL);
		else if (i == 3)
			ck_assert_int_eq(
				fi_senddata(opened.ep, bytes, 1, NULL, 1, opened.to_plain, NULL),
				-FI_EOPNOTSUPP);
		else
			ck_assert_int_eq(
				fi_inject(opened.ep, bytes, sizeof(bytes), opened.to_plain),
				-FI_EMSGSIZE);
		expect_seen(0, 2);
		ck_assert_uint_eq(seen_count, 2 * (i + 1));
		expect(&words[0]);
		expect(&words[1]);
		expect_nothing();
	}
}
END_TEST

/*
 * An FI_MORE batch goes out with its last datagram; the unsent rest goes with later progress calls.
 */
START_TEST(together)
{
	room = 2;
	for (unsigned int i = 0; i < 4; i++)
		ck_assert_int_eq(give(i, FI_MORE), 0);
	ck_assert_uint_eq(seen_count, 0);
	ck_assert_int_eq(give(4, 0), 0);
	expect_seen(0, 2);
	expect(&words[0]);
	expect(&words[1]);
	expect_nothing();
	room = 1;
	expect(&words[2]);
	expect_nothing();
	room = 8;
	expect(&words[3]);
	expect(&words[4]);
	expect_seen(0, 5);
	expect_nothing();
}
END_TEST

/* A datagram that fails ends with its error; later ones are sent. */
START_TEST(one_fails)
{
	for (unsigned int i = 0; i < 3; i++)
		ck_assert_int_eq(give(i, FI_MORE), 0);
	room = 1;
	fails = -FI_ENETUNREACH;
	opened.dgram->ops = &fake_ops;
	dgram_flush(opened.dgram);
	expect(&words[0]);
	expect_error(&words[1], FI_ENETUNREACH);
	expect_error(&words[2], FI_ENETUNREACH);
	expect_nothing();
	room = 1;
	ck_assert_int_eq(give(3, 0), 0);
	expect(&words[3]);
}
END_TEST

/* The batch is limited, and no send overtakes it. */
START_TEST(bounded)
{
	for (unsigned int i = 0; i < DGRAM_BATCH_MAX; i++)
		ck_assert_int_eq(give(i, FI_MORE), 0);
	ck_assert_int_eq(give(DGRAM_BATCH_MAX, FI_MORE), -FI_EAGAIN);
	ck_assert_int_eq(give(DGRAM_BATCH_MAX, 0), -FI_EAGAIN);
	ck_assert_int_eq(give(DGRAM_BATCH_MAX, FI_INJECT), -FI_EAGAIN);
	ck_assert_int_eq(fi_inject(opened.ep, words, 8, opened.to_plain), -FI_EAGAIN);
	ck_assert_uint_eq(seen_count, 0);
	room = DGRAM_BATCH_MAX + 1;
	ck_assert_int_eq(fi_inject(opened.ep, &words[DGRAM_BATCH_MAX], 8, opened.to_plain), 0);
	expect_seen(0, DGRAM_BATCH_MAX + 1);
	for (unsigned int i = 0; i < DGRAM_BATCH_MAX; i++)
		expect(&words[i]);
	expect_nothing();
}
END_TEST

/* An injected datagram is not queued, but sent at once behind the batch. */
START_TEST(injected)
{
	room = 2;
	ck_assert_int_eq(give(0, FI_MORE), 0);
	ck_assert_int_eq(give(1, FI_MORE | FI_INJECT | FI_COMPLETION), 0);
	expect_seen(0, 2);
	expect(&words[0]);
	expect(&words[1]);
	expect_nothing();
}
END_TEST

/* Socket space wakes a sleeper while a datagram waits. */
START_TEST(room_wakes)
{
	struct worker *worker = ep_of(opened.ep)->worker;
	struct pollfd p = {.fd = worker_driven(worker)->fd, .events = POLLIN};

	ck_assert(worker_arm(worker));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(give(0, FI_MORE), 0);
	ck_assert(worker_arm(worker));
	ck_assert_int_eq(poll(&p, 1, 1000), 1);
	room = 1;
	expect(&words[0]);
	ck_assert(worker_arm(worker));
	ck_assert_int_eq(poll(&p, 1, 0), 0);
}
END_TEST

/*
 * Datagrams queued by a closed alias complete on the endpoint; those of a closed endpoint are
 * dropped.
 */
START_TEST(closing)
{
	struct fid_ep *alias;

	ck_assert_int_eq(fi_ep_alias(opened.ep, &alias, FI_TRANSMIT), 0);
	ck_assert_int_eq(send_word(alias, opened.to_plain, &words[0], FI_MORE), 0);
	ck_assert_int_eq(give(1, FI_MORE), 0);
	ck_assert_int_eq(fi_close(&alias->fid), 0);
	room = 2;
	expect(&words[0]);
	expect(&words[1]);
	ck_assert_int_eq(give(2, FI_MORE), 0);
	room = 0;
	ck_assert_int_eq(fi_close(&opened.ep->fid), 0);
	opened.ep = NULL;
	expect_nothing();
	ck_assert_uint_eq(seen_count, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_dgram");
	TCase *tcase = tcase_create("dgram");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, no_room);
	tcase_add_test(tcase, cannot_be_sent);
	tcase_add_test(tcase, no_way);
	tcase_add_test(tcase, failed_last);
	tcase_add_test(tcase, together);
	tcase_add_test(tcase, one_fails);
	tcase_add_test(tcase, bounded);
	tcase_add_test(tcase, injected);
	tcase_add_test(tcase, room_wakes);
	tcase_add_test(tcase, closing);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
