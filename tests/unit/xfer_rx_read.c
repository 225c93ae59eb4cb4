/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that a message taken past the queue is received as one that goes through it: rx_read and rx_deliver. */
#include "ring_says.h"

#include "core/cq.h"

#define READ_MAX 1024u /* longest message that goes past the queue */
#define TAG      9
#define GUARD    0xa5

enum way { ONE, FROM, SEVERAL, WAYS }; /* fi_cq_read, fi_cq_readfrom, fi_cq_read of several */

/* What a receive leaves: memory, entry and source, all guarded. */
struct got {
	unsigned char buf[READ_MAX + 64];
	unsigned char entry[64];
	fi_addr_t src;
	ssize_t ret;
};

static unsigned char payload[READ_MAX + 1];
static char context;

static struct cq *queue(void)
{
	return cq_of(fake.cq);
}

static void post(bool tagged, void *buf, size_t len)
{
	if (tagged)
		ck_assert_int_eq(
			fi_trecv(fake.ep, buf, len, NULL, fake.addr, TAG, 0xff00, &context), 0);
	else
		ck_assert_int_eq(fi_recv(fake.ep, buf, len, NULL, FI_ADDR_UNSPEC, &context), 0);
}

/* Makes the peer's source known, and the worker idle. */
static void begin(void)
{
	char buf[8];

	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (unsigned char)(i * 7 + i / 64);
	post(true, buf, sizeof(buf));
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 8);
	fake_expect(&context, FI_RECV | FI_TAGGED);
	become_idle();
}

/* Receives one message of the peer, through its ring or by rx_deliver. */
static void receive(struct got *g, unsigned int flags, uint32_t len, bool ring, enum way way)
{
	uint64_t head = WIRE_HEAD(WIRE_MSG, flags, 0, 77);
	uint64_t tag = flags & WIRE_TAGGED ? TAG | 0x4200 : 0, data = flags & WIRE_DATA ? 4711 : 0;

	memset(g, GUARD, sizeof(*g));
	post(flags & WIRE_TAGGED, g->buf, len);
	if (ring)
		ring_says(0, head, tag, data, payload, len);
	else
		fake_says(head, tag, data, payload, len);
	if (way == FROM)
		g->ret = fi_cq_readfrom(fake.cq, g->entry, 1, &g->src);
	else
		g->ret = fi_cq_read(fake.cq, g->entry, way == ONE ? 1 : 4);
}

/* Does a message in the ring leave what it leaves by rx_deliver, past the queue? */
static void compare(unsigned int flags, uint32_t len, enum way way)
{
	struct got past, through;
	uint32_t tail;

	worker_progress(fake.worker); /* publishes the head if that is due */
	become_idle();
	queue()->workers.shard.shard->calls_left = 2; /* the read does not drive other workers */
	tail = queue()->tail;
	receive(&past, flags, len, true, way);
	ck_assert_uint_eq(queue()->tail - tail, len > READ_MAX);
	ck_assert_uint_eq(queue()->head, queue()->tail);
	receive(&through, flags, len, false, way);
	ck_assert_int_eq(past.ret, 1);
	ck_assert_int_eq(through.ret, 1);
	ck_assert_mem_eq(past.buf, payload, len);
	ck_assert_mem_eq(past.buf, through.buf, sizeof(past.buf));
	ck_assert_mem_eq(past.entry, through.entry, sizeof(past.entry));
	ck_assert_uint_eq(past.src, through.src);
	if (way == FROM)
		ck_assert_uint_eq(past.src, fake.addr);
}

START_TEST(same_as_through_the_queue)
{
	static const enum fi_cq_format formats[] = {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG,
						    FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED};
	static const uint32_t lens[] = {0,  1,  3,  4,  7,  8,  9,   15,  16,   17,      23,
					24, 25, 31, 32, 33, 64, 100, 512, 1023, READ_MAX};

	begin();
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		for (unsigned int flags = 0; flags <= (WIRE_TAGGED | WIRE_DATA); flags++)
			for (size_t j = 0; j < sizeof(lens) / sizeof(*lens); j++)
				for (enum way way = ONE; way < WAYS; way++) {
					queue()->format = formats[i];
					compare(flags, lens[j], way);
				}
	compare(WIRE_TAGGED, READ_MAX + 1, ONE);
	compare(WIRE_TAGGED, READ_MAX + 1, SEVERAL);
}
END_TEST

/* Several at once come in order, up to the first that is not plain: it is left where it is. */
START_TEST(several_at_once)
{
	struct fi_cq_tagged_entry entry[8];
	uint64_t buf[6] = {0};
	uint32_t tail;

	begin();
	for (uint32_t i = 0; i < 6; i++) {
		uint64_t word = 100 + i;

		ck_assert_int_eq(fi_trecv(fake.ep, &buf[i], i == 3 ? 4 : 8, NULL, FI_ADDR_UNSPEC, i,
					  0, &buf[i]),
				 0);
		ring_says(i, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), i, 0, &word, sizeof(word));
	}
	tail = queue()->tail;
	ck_assert_int_eq(fi_cq_read(fake.cq, entry, 8), 3);
	ck_assert_uint_eq(queue()->tail, tail);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_ptr_eq(entry[i].op_context, &buf[i]);
		ck_assert_uint_eq(entry[i].tag, i);
		ck_assert_uint_eq(buf[i], 100 + i);
	}
	(void)fake_expect_error(&buf[3], FI_ETRUNC);
	ck_assert_int_eq(fi_cq_read(fake.cq, entry, 8), 2);
	ck_assert_ptr_eq(entry[1].op_context, &buf[5]);
	fake_expect_nothing();
}
END_TEST

/* As many as the reader has entries for, by one call of those granted; where the head is due to be published, through the queue. */
START_TEST(many_at_once)
{
	static struct fi_cq_tagged_entry entry[2048];
	uint32_t slots = ring_of_worker()->ring.mask + 1, many = slots / 4, seen = 0, tail;
	unsigned int calls;
	uint64_t buf;

	ck_assert_uint_le(many, sizeof(entry) / sizeof(*entry));
	begin();
	for (uint32_t i = 0; i < many; i++) {
		ck_assert_int_eq(fi_trecv(fake.ep, &buf, 8, NULL, FI_ADDR_UNSPEC, i, 0, &buf), 0);
		ring_says(i, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), i, 0, payload, 8);
	}
	tail = queue()->tail;
	calls = fake.worker->conn.driven.idle.calls;
	for (unsigned int reads = 1; seen < many; reads++) {
		ssize_t n = fi_cq_read(fake.cq, entry, many);

		ck_assert_int_ge(n, 64); /* what progress of the transport delivers at most */
		for (ssize_t i = 0; i < n; i++)
			ck_assert_uint_eq(entry[i].tag, seen++);
		ck_assert_uint_eq(fake.worker->conn.driven.idle.calls, calls - reads);
		ck_assert_uint_le(shm_head(ring_of_worker()) - ring_of_worker()->ring.page->head,
				  slots / 8);
	}
	ck_assert_uint_le(queue()->tail - tail, many / 4);
}
END_TEST

/* The length in a slot may be wrong: the sender's claim says where the next packet is. */
START_TEST(length_of_another_than_the_claim)
{
	struct shm *shm = ring_of_worker();
	unsigned char buf[READ_MAX];
	uint64_t pos;

	begin();
	pos = shm_head(shm);
	post(true, buf, sizeof(buf));
	ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 64);
	ring_slot_at(&shm->ring, pos)->len = READ_MAX;
	fake_expect(&context, FI_RECV | FI_TAGGED);
	ck_assert_uint_gt(shm_head(shm), pos + 2);
	shm_publish_head(shm);
	ck_assert_uint_eq(shm_head(shm), pos + 2);
	post(true, buf, sizeof(buf));
	ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 100);
	fake_expect(&context, FI_RECV | FI_TAGGED);
	ck_assert_mem_eq(buf, payload, 100);
}
END_TEST

/* Reads in vain until they would yield the core. Returns the events that had come by then. */
static uint64_t events_by_now(void)
{
	for (int i = 0; i < 3 * WAIT_POLLS_ALONE; i++)
		fake_expect_nothing();
	return queue()->wait.polls.seen;
}

/* Reads between which a message goes past the queue are not in vain. */
START_TEST(message_counts_as_an_event)
{
	uint64_t buf, before;

	begin();
	before = events_by_now();
	ck_assert_uint_eq(events_by_now(), before);
	become_idle();
	post(true, &buf, sizeof(buf));
	ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 8);
	fake_expect(&context, FI_RECV | FI_TAGGED);
	ck_assert_uint_ne(events_by_now(), before);
}
END_TEST

START_TEST(read_of_no_entry_takes_nothing)
{
	uint64_t buf = 0;

	begin();
	post(true, &buf, sizeof(buf));
	ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 8);
	ck_assert_int_lt(fi_cq_read(fake.cq, NULL, 0), 1);
	fake_expect(&context, FI_RECV | FI_TAGGED);
	ck_assert_mem_eq(&buf, payload, 8);
}
END_TEST

/* What comes without a receive that fits is kept. */
START_TEST(unexpected_message_is_kept)
{
	uint64_t buf = 0, other = 0;

	begin();
	ck_assert_int_eq(fi_trecv(fake.ep, &other, 8, NULL, FI_ADDR_UNSPEC, TAG + 1, 0, &other), 0);
	ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 8);
	fake_expect_nothing();
	post(true, &buf, sizeof(buf));
	fake_expect(&context, FI_RECV | FI_TAGGED);
	ck_assert_mem_eq(&buf, payload, 8);
	ck_assert_uint_eq(other, 0);
}
END_TEST

/* A message is reported to the queue of its receive, whichever is read. */
START_TEST(queue_of_the_receives)
{
	struct rx *rx = fake.worker->rx[0];
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_cq_tagged_entry entry;
	struct fid_cq *other;
	uint64_t buf = 0;

	begin();
	ck_assert_int_eq(fi_cq_open(fake.domain, &attr, &other, NULL), 0);
	rx->cq = rx->plain_cq = cq_of(other); /* as if it had been bound for receives */
	post(true, &buf, sizeof(buf));
	ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 8);
	fake_expect_nothing();
	ck_assert_int_eq(fi_cq_read(other, &entry, 1), 1);
	ck_assert_ptr_eq(entry.op_context, &context);
	rx->cq = rx->plain_cq = queue();
	ck_assert_int_eq(fi_close(&other->fid), 0);
}
END_TEST

/* With FI_SELECTIVE_COMPLETION each receive says whether it is reported. */
START_TEST(selective_completions)
{
	struct iovec iov = {.iov_len = 8};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = TAG};
	uint64_t buf[2] = {0};
	uint32_t tail;

	begin();
	fake.worker->rx[0]->complete_all = false; /* as if the queue had been bound so */
	ep_of(fake.ep)->rx_msg_flags = 0;
	tail = queue()->tail;
	for (int i = 0; i < 2; i++) {
		iov.iov_base = msg.context = &buf[i];
		ck_assert_int_eq(fi_trecvmsg(fake.ep, &msg, i ? FI_COMPLETION : 0), 0);
		ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 8);
		if (i)
			fake_expect(&buf[i], FI_RECV | FI_TAGGED);
		else
			fake_expect_nothing();
		ck_assert_mem_eq(&buf[i], payload, 8);
		ck_assert_uint_eq(queue()->tail, tail);
	}
}
END_TEST

/* A peer that is to be disconnected has lost a packet: no later one may be delivered. */
START_TEST(nothing_of_an_expelled_peer)
{
	uint64_t buf = 0;

	begin();
	post(false, &buf, sizeof(buf));
	contact_expel(&fake.peer->conn, END_BUDGET);
	idle_begin(&fake.worker->conn.driven.idle, 5); /* as if nothing had ended the grant */
	ring_says(0, WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, payload, 8);
	fake_expect_nothing();
	ck_assert_uint_eq(buf, 0);
	idle_end(&fake.worker->conn.driven.idle);
	fake_expect_nothing();
	fake.closed = 0;
}
END_TEST

/* Receives a message that goes past the queue. Returns its source. */
static fi_addr_t source_past(void)
{
	unsigned char buf[8] = {0}, entry[64];
	uint32_t tail;
	fi_addr_t src;

	become_idle();
	queue()->workers.shard.shard->calls_left = 2;
	tail = queue()->tail;
	post(false, buf, sizeof(buf));
	ring_says(0, WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, payload, 8);
	ck_assert_int_eq(fi_cq_readfrom(fake.cq, entry, 1, &src), 1);
	ck_assert_uint_eq(queue()->tail, tail);
	ck_assert_mem_eq(buf, payload, 8);
	return src;
}

/* Messages of a peer that the address vector does not hold go past the queue, too; it is found once it is inserted. */
START_TEST(unknown_peer)
{
	static const char *const others[] = {"fi_shm://other", "fi_shm://third"};
	fi_addr_t addr;

	begin();
	for (unsigned int i = 0; i < 2; i++) {
		ck_assert_int_eq(fi_av_remove(fake.av, &fake.addr, 1, 0), 0);
		ck_assert_uint_eq(source_past(), FI_ADDR_NOTAVAIL);
		ck_assert_uint_eq(source_past(), FI_ADDR_NOTAVAIL);
		ck_assert_int_eq(fi_av_insert(fake.av, others[i], 1, &addr, 0, NULL), 1);
		ck_assert_uint_eq(source_past(), FI_ADDR_NOTAVAIL);
		ck_assert_int_eq(fi_av_insert(fake.av, "fi_shm://fake", 1, &fake.addr, 0, NULL), 1);
		ck_assert_uint_ne(fake.addr, addr);
		ck_assert_uint_eq(source_past(), fake.addr);
		ck_assert_uint_eq(source_past(), fake.addr);
	}
}
END_TEST

/* Senders learn in time of free slots, though progress of the transport finds no packet. */
START_TEST(slots_are_given_back)
{
	struct shm *shm = ring_of_worker();
	uint32_t slots = shm->ring.mask + 1;
	uint64_t buf;

	begin();
	for (uint32_t i = 0; i < 3 * slots; i++) {
		if (!fake.worker->conn.driven.idle.calls)
			become_idle();
		post(true, &buf, sizeof(buf));
		ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), TAG, 0, payload, 8);
		fake_expect(&context, FI_RECV | FI_TAGGED);
		ck_assert_uint_le(shm_head(shm) - shm->ring.page->head, slots / 4);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rx_read");
	TCase *tcase = tcase_create("past");

	tcase_add_checked_fixture(tcase, fake_open_connected, fake_shut);
	tcase_add_test(tcase, same_as_through_the_queue);
	tcase_add_test(tcase, several_at_once);
	tcase_add_test(tcase, many_at_once);
	tcase_add_test(tcase, length_of_another_than_the_claim);
	tcase_add_test(tcase, message_counts_as_an_event);
	tcase_add_test(tcase, read_of_no_entry_takes_nothing);
	tcase_add_test(tcase, unexpected_message_is_kept);
	tcase_add_test(tcase, queue_of_the_receives);
	tcase_add_test(tcase, selective_completions);
	tcase_add_test(tcase, nothing_of_an_expelled_peer);
	tcase_add_test(tcase, unknown_peer);
	tcase_add_test(tcase, slots_are_given_back);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
