/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links over two devices (fakes here): packets that a broken rail has not confirmed go again over
 * the other one, in order, and the receiver takes each once; long messages are read by both.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/forked.h"
#include "core/domain.h"
#include "hw/verbs/rdm/verbs_rails.h"
#include "suite.h"
#include "xfer/worker.h"

#define SENDS    64
#define REQUESTS 256
#define LONG     ((size_t)1 << 20)
#define PEER     7u

/* A request for RDMA that a fake device has been given. */
struct request {
	uint64_t number, at;
	uint32_t len, rkey;
};

/* A rail: a device of ours, its end of the link, and what was posted. */
struct end {
	struct verbs_dev dev;
	struct ibv_context ctx;
	struct ibv_cq cq;
	struct ibv_srq srq;
	struct ibv_qp qp, direct;
	struct verbs_link *l;
	struct verbs_head sent[SENDS];
	char first[SENDS];              /* first byte of each payload */
	struct verbs_rail_message said; /* the last message about rails */
	unsigned int sends;
	uint32_t returned;                /* credits, by packets of their own */
	struct request request[REQUESTS]; /* a ring */
	unsigned int requests, done;
};

static struct end ends[VERBS_RAILS];
static struct verbs v;
static struct verbs_multi multi;
static struct domain dom;
static struct worker worker = {.dom = &dom}; /* without an endpoint: it knows no peer */
static struct verbs_rails *r;
static struct link *link_made;
static struct ibv_mr mr;
static unsigned char *memory; /* that a message is read to */
static unsigned char times_read[LONG];

static struct verbs *device(unsigned int i)
{
	return i ? &multi.further[0] : &v;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct end *e = qp->qp_context;

	(void)bad;
	if (qp == &e->direct) {
		e->request[e->requests++ % REQUESTS] =
			(struct request){wr->wr_id, wr->wr.rdma.remote_addr, wr->sg_list[0].length,
					 wr->wr.rdma.rkey};
		return 0;
	}
	memcpy(&e->sent[e->sends], (void *)(uintptr_t)wr->sg_list[0].addr, sizeof(e->sent[0]));
	e->first[e->sends] = ((char *)(uintptr_t)wr->sg_list[0].addr)[sizeof(e->sent[0])];
	if (e->sent[e->sends].flags & VERBS_RAIL)
		memcpy(&e->said, (char *)(uintptr_t)wr->sg_list[0].addr + sizeof(e->sent[0]),
		       sizeof(e->said));
	if (e->sent[e->sends].head)
		e->sends++;
	else
		e->returned += e->sent[e->sends].freed;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
	(void)cq;
	(void)most;
	(void)wc;
	return 0;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	(void)qp;
	(void)attr;
	(void)mask;
	return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	(void)qp;
	return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *at, size_t len, int access)
{
	(void)pd;
	(void)at;
	(void)len;
	(void)access;
	return &mr;
}

static int dereg_mr(struct ibv_mr *of)
{
	(void)of;
	return 0;
}

static const struct verbs_lib lib = {
	.modify_qp = modify_qp, .destroy_qp = destroy_qp, .reg_mr = reg_mr, .dereg_mr = dereg_mr};

static struct verbs_link *make_link(unsigned int i)
{
	struct verbs *own = device(i);
	struct verbs_link *l = pool_get(&own->links);

	*l = (struct verbs_link){.link = {.eager_max = VERBS_PACKET_MAX},
				 .own = own,
				 .qp = &ends[i].qp,
				 .window = VERBS_WINDOW,
				 .inline_max = VERBS_INLINE,
				 .heard = true};
	memset(l->slots, 0xff, sizeof(l->slots));
	list_init(&l->in_all);
	list_init(&l->in_attend);
	list_init(&l->direct.rdma_posted);
	l->direct.qp = &ends[i].direct;
	l->direct.read_max = VERBS_READ_MAX;
	return l;
}

static void make_device(unsigned int i)
{
	struct end *e = &ends[i];
	struct verbs *own = device(i);

	memset(e, 0, sizeof(*e));
	e->ctx.ops.post_send = post_send;
	e->ctx.ops.poll_cq = poll_cq;
	e->dev = (struct verbs_dev){.lib = &lib,
				    .ctx = &e->ctx,
				    .cache_asked = true,
				    .forked = forked_count(),
				    .attr = {.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16}};
	e->qp = (struct ibv_qp){.context = &e->ctx, .qp_context = e, .qp_num = 2 * i + 1};
	e->direct = (struct ibv_qp){.context = &e->ctx, .qp_context = e, .qp_num = 2 * i + 2};
	verbs_state_init(own, &worker, NULL);
	own->path = (struct verbs_path){.dev = &e->dev, .mtu = IBV_MTU_1024};
	own->cq = &e->cq;
	verbs_slots_init(&own->send, &e->dev, VERBS_SLOT);
	e->l = make_link(i);
}

/* The link as both hellos and the agreement on the second rail leave it. */
static void setup(void)
{
	static const struct wire_hello hello = {.nic = {.qpn = 1,
							.window = VERBS_WINDOW,
							.mtu = IBV_MTU_1024,
							.reads = 4,
							.direct_qpn = 2}};
	struct link_peer peer = {.hello = &hello, .id = PEER};

	memset(&v, 0, sizeof(v));
	memset(&multi, 0, sizeof(multi));
	memset(times_read, 0, sizeof(times_read));
	memory = malloc(LONG);
	multi.count = 1;
	list_init(&multi.links);
	verbs_rails_pool(&multi.pieces);
	v.multi = &multi;
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		make_device(i);
	peer.pending = ends[0].l;
	ck_assert_int_eq(verbs_rails_connect(ends[0].l, &peer, &link_made), 0);
	r = (struct verbs_rails *)link_made;
	verbs_rails_add(r, 1, ends[1].l, 1);
	ck_assert_int_eq(verbs_link_join(ends[1].l, &hello.nic, PEER), 0);
	r->rail[1].proven = true;
	r->rail[1].device = device(1);
	verbs_rails_update(r);
}

static void teardown(void)
{
	link_made->ops->close(link_made);
	for (unsigned int i = 0; i < VERBS_RAILS; i++) {
		verbs_slots_fini(&device(i)->send, false);
		pool_fini(&device(i)->links);
		pool_fini(&device(i)->rdma_posted);
	}
	pool_fini(&multi.pieces);
	free(memory);
}

static int send_byte(char c)
{
	return link_made->ops->send(link_made, &c, 1, 0, WIRE_HEAD(WIRE_RTS, 0, 0, 0), 0);
}

static void send_bytes(const char *text)
{
	for (; *text; text++)
		ck_assert_int_eq(send_byte(*text), 0);
}

/* The sends of a rail from `first` on have these first bytes, and numbers from `number` on. */
static void has_sent(unsigned int rail, const char *text, uint32_t number)
{
	const struct end *e = &ends[rail];

	ck_assert_uint_eq(e->sends, strlen(text));
	for (unsigned int i = 0; i < e->sends; i++) {
		if (text[i] != '*') /* a message about rails */
			ck_assert_int_eq(e->first[i], text[i]);
		ck_assert_int_eq(!!(e->sent[i].flags & VERBS_RAIL), text[i] == '*');
		ck_assert_uint_eq(e->sent[i].flags >> VERBS_NUMBER, number + i);
	}
}

static void breaks(unsigned int rail)
{
	verbs_fail(ends[rail].l, FI_ETIMEDOUT);
	verbs_rails_broke(ends[rail].l);
}

static void credit(unsigned int rail, uint32_t count)
{
	ends[rail].l->credits += count;
	verbs_rails_credited(ends[rail].l, count);
}

/* What the peer has not confirmed goes again, in order and before anything else. */
START_TEST(goes_again)
{
	send_bytes("abcd");
	has_sent(0, "abcd", 1);
	has_sent(1, "", 0);
	credit(0, 1);
	breaks(0);
	has_sent(1, "bcd*", 2);
	send_bytes("e");
	has_sent(1, "bcd*e", 2);
}
END_TEST

/* So it does if the other rail has no space for all at once; new packets wait behind. */
START_TEST(goes_again_in_parts)
{
	send_bytes("abc");
	ends[1].l->credits = 2;
	breaks(0);
	has_sent(1, "ab", 1);
	ck_assert_int_eq(send_byte('d'), -FI_EAGAIN);
	credit(1, 1);
	has_sent(1, "abc", 1);
	ck_assert_int_eq(send_byte('d'), -FI_EAGAIN);
	credit(1, 1);
	has_sent(1, "abc*", 1);
	credit(1, 1);
	send_bytes("d");
	has_sent(1, "abc*d", 1);
}
END_TEST

/* No slot is lost: as many packets as one likes go over either rail. */
START_TEST(slots_come_back)
{
	for (unsigned int i = 0; i < 2 * VERBS_CHUNK * VERBS_CHUNKS; i++) {
		send_bytes("x");
		verbs_sent(ends[0].l, ends[0].l->posted);
		credit(0, 1);
		ends[0].sends = 0;
	}
	ck_assert_uint_eq(v.send.free_count, v.send.count);
	send_bytes("x");
	breaks(0);
	ck_assert_uint_eq(v.send.free_count, v.send.count);
}
END_TEST

/* A peer waits for no more packets from us to get its last credits. */
START_TEST(credits_come_back)
{
	ends[1].l->freed = 1;
	verbs_rails_progress(&v);
	ck_assert_uint_eq(ends[0].returned, 0);
	ck_assert_uint_eq(ends[1].returned, 1);
	ck_assert_uint_eq(ends[1].l->freed, 0);
}
END_TEST

static bool takes(unsigned int rail, uint32_t number)
{
	const struct packet p = {.head = WIRE_HEAD(WIRE_RTS, 0, 0, 0)};

	return verbs_rails_take(ends[rail].l, number << VERBS_NUMBER, &p);
}

/* Each number is taken once, whatever rail it comes by. */
START_TEST(takes_once)
{
	ck_assert(takes(0, 1));
	ck_assert(takes(0, 2));
	ck_assert(!takes(1, 1));
	ck_assert(!takes(1, 2));
	ck_assert(takes(1, 3));
	ck_assert(!takes(0, 3));
	ck_assert_int_eq(ends[0].l->err, 0);
	r->got = VERBS_NUMBER_MASK;
	ck_assert(!takes(0, VERBS_NUMBER_MASK));
	ck_assert(takes(0, 0));
	ck_assert(!takes(1, 0));
}
END_TEST

/* A number that comes too early is a fault of the peer: the rail ends. */
START_TEST(takes_no_gap)
{
	ck_assert(takes(0, 1));
	ck_assert(!takes(0, 3));
	ck_assert_int_eq(ends[0].l->err, FI_EPROTO);
}
END_TEST

/* The peer says something about a rail by packet `number` over rail `over`. */
static void hears(unsigned int over, uint32_t number, const struct verbs_rail_message *m,
		  size_t len)
{
	const struct packet p = {.head = WIRE_HEAD(WIRE_MSG, 0, 0, 0), .payload = m, .len = len};

	ck_assert(!verbs_rails_take(ends[over].l, number << VERBS_NUMBER | VERBS_RAIL, &p));
}

/* The peer finds a rail broken: ours is destroyed before the answer, and packets go again. */
START_TEST(peer_finds_it_broken)
{
	const struct verbs_rail_message m = {.what = VERBS_RAIL_BROKEN, .rail = 0, .serial = 0};

	send_bytes("ab");
	credit(0, 1);
	hears(1, 1, &m, sizeof(m));
	ck_assert_ptr_null(r->rail[0].link);
	has_sent(1, "b*", 2);
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_CLOSED);
	ck_assert_uint_eq(ends[1].said.rail, 0);
	ck_assert(!link_made->reaches);
}
END_TEST

/* Both find it at a time: each answers the other. An earlier link of the rail is closed already. */
START_TEST(both_find_it_broken)
{
	struct verbs_rail_message m = {.what = VERBS_RAIL_BROKEN, .rail = 0, .serial = 0};

	breaks(0);
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_BROKEN);
	ck_assert(r->rail[0].closing);
	hears(1, 1, &m, sizeof(m));
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_CLOSED);
	m.what = VERBS_RAIL_CLOSED;
	hears(1, 2, &m, sizeof(m));
	ck_assert(!r->rail[0].closing);
	m = (struct verbs_rail_message){.what = VERBS_RAIL_BROKEN, .rail = 1, .serial = 7};
	hears(1, 3, &m, sizeof(m));
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_CLOSED);
	ck_assert_uint_eq(ends[1].said.serial, 7);
	ck_assert_ptr_nonnull(r->rail[1].link);
}
END_TEST

/* A message that makes no sense changes nothing here; the engine ends the link (FI_EPROTO). */
START_TEST(says_nonsense)
{
	static const struct {
		struct verbs_rail_message m;
		size_t len;
	} cases[] = {
		{{.what = 0}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_CLOSED + 1}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_BROKEN, .rail = VERBS_RAILS},
		 sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_BROKEN, .rail = UINT32_MAX},
		 sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_ACCEPTED, .rail = 1}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_REFUSED, .rail = 1}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_BROKEN, .rail = 0}, sizeof(struct verbs_rail_message) - 1},
		{{.what = VERBS_RAIL_BROKEN, .rail = 0}, 0},
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		hears(0, i + 1, &cases[i].m, cases[i].len);
	has_sent(0, "", 0);
	has_sent(1, "", 0);
	ck_assert_ptr_nonnull(r->rail[0].link);
	ck_assert_ptr_nonnull(r->rail[1].link);
}
END_TEST

/* One-sided operations go over the first rail, and by packets while there is none. */
START_TEST(regions_keep_to_the_first)
{
	const struct iovec ours = {memory, LONG};
	const struct fi_rma_iov theirs = {.len = LONG, .key = 11};
	const struct link_rdma op = {
		.local = &ours, .local_count = 1, .remote = &theirs, .remote_count = 1};

	ends[0].l->link.reaches = true;
	verbs_rails_update(r);
	ck_assert(link_made->reaches);
	ck_assert_int_eq(link_made->rdma->post(link_made, &op), 0);
	ck_assert_uint_gt(ends[0].requests, 0);
	ck_assert_uint_eq(ends[1].requests, 0);
	breaks(0);
	ck_assert(!link_made->reaches);
	ck_assert(link_made->rdma_usable);
	ck_assert_int_ne(link_made->rdma->post(link_made, &op), 0);
	ck_assert_uint_eq(ends[1].requests, 0);
}
END_TEST

static int read_all(uint64_t key)
{
	const struct iovec ours = {memory, LONG};
	const struct fi_rma_iov theirs = {.addr = 0, .len = LONG, .key = key};
	const struct link_rdma op = {.message = true,
				     .local = &ours,
				     .local_count = 1,
				     .remote = &theirs,
				     .remote_count = 1};

	return link_made->rdma->post(link_made, &op);
}

/* Keys of a message: those of the first rail below. */
#define KEY(first, second) ((uint64_t)(second) << 32 | (first))

/* The device of the rail completes its oldest request. Returns its bytes; 0: there is none. */
static size_t complete(unsigned int rail)
{
	struct end *e = &ends[rail];
	const struct request *done = &e->request[e->done % REQUESTS];
	struct ibv_wc wc = {.wr_id = done->number, .qp_num = e->direct.qp_num};

	if (e->done == e->requests)
		return 0;
	e->done++;
	ck_assert_uint_eq(done->rkey, rail ? 22 : 11);
	ck_assert_uint_le(done->at + done->len, LONG);
	for (uint32_t i = 0; i < done->len; i++)
		times_read[done->at + i]++;
	verbs_rdma_done(e->l, &wc, false);
	return done->len;
}

/* Each byte has been read, `most` times at most, and the message is complete. */
static void all_is_read(unsigned int most)
{
	size_t wrong = 0;

	for (size_t i = 0; i < LONG; i++)
		wrong += !times_read[i] || times_read[i] > most;
	ck_assert_uint_eq(wrong, 0);
	ck_assert(list_empty(&r->reads));
}

/* Each rail reads as much as it can: the second is three times as fast here. */
START_TEST(reads_divide)
{
	size_t bytes[VERBS_RAILS] = {0, 0};

	ck_assert_int_eq(read_all(KEY(11, 22)), 0);
	while (!list_empty(&r->reads)) {
		bytes[0] += complete(0);
		for (int i = 0; i < 3; i++)
			bytes[1] += complete(1);
	}
	all_is_read(1);
	ck_assert_uint_eq(bytes[0] + bytes[1], LONG);
	ck_assert_uint_ge(bytes[1], LONG * 5 / 8);
	ck_assert_uint_le(bytes[1], LONG * 7 / 8);
}
END_TEST

/* What a rail has not read when it breaks, the other one reads. */
START_TEST(reads_go_again)
{
	ck_assert_int_eq(read_all(KEY(11, 22)), 0);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_gt(complete(_i), 0);
	breaks(_i);
	while (complete(1 - _i))
		;
	all_is_read(2);
}
END_TEST

/* A message whose memory one device alone knows is read by that rail, and by nobody without it. */
START_TEST(reads_by_one)
{
	ck_assert_int_eq(read_all(KEY(11, 0)), 0);
	ck_assert_uint_eq(ends[1].requests, 0);
	while (complete(0))
		;
	all_is_read(1);
	ck_assert_int_eq(read_all(KEY(0, 0)), -FI_ENOMEM);
	ck_assert_int_eq(read_all(KEY(11, 0)), 0);
	breaks(0);
	ck_assert(list_empty(&r->reads)); /* the engine asks for packets */
	ck_assert(link_made->rdma_usable);
	ck_assert_int_eq(read_all(KEY(11, 0)), -FI_ENOMEM);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_rails");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, goes_again);
	tcase_add_test(c, goes_again_in_parts);
	tcase_add_test(c, slots_come_back);
	tcase_add_test(c, credits_come_back);
	tcase_add_test(c, takes_once);
	tcase_add_test(c, takes_no_gap);
	tcase_add_test(c, peer_finds_it_broken);
	tcase_add_test(c, both_find_it_broken);
	tcase_add_test(c, says_nonsense);
	tcase_add_test(c, regions_keep_to_the_first);
	tcase_add_test(c, reads_divide);
	tcase_add_loop_test(c, reads_go_again, 0, VERBS_RAILS);
	tcase_add_test(c, reads_by_one);
	suite_add_tcase(s, c);
	return suite_run(s);
}
