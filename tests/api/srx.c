/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive and transmit contexts shared by several endpoints. fi_endpoint(3), SHARED CONTEXTS. */
#include "obj.h"

#define SHARERS 3

struct shared {
	struct obj o; /* o.ep sends */
	struct fid_ep *srx;
	struct fid_stx *stx;
	struct fid_ep *ep[SHARERS];
	struct fid_cq *cq[SHARERS];
	fi_addr_t addr[SHARERS];
};

static void add_sharer(struct shared *s, int i)
{
	s->cq[i] = obj_cq(&s->o, FI_WAIT_NONE);
	s->ep[i] = obj_ep(&s->o);
	OK(fi_ep_bind(s->ep[i], &s->o.av->fid, 0));
	OK(fi_ep_bind(s->ep[i], &s->cq[i]->fid, FI_TRANSMIT | FI_RECV));
	if (s->srx)
		OK(fi_ep_bind(s->ep[i], &s->srx->fid, 0));
	if (s->stx)
		OK(fi_ep_bind(s->ep[i], &s->stx->fid, 0));
	OK(fi_enable(s->ep[i]));
	s->addr[i] = obj_insert_ep(s->o.av, s->ep[i]);
}

static void open_shared(struct shared *s, bool rx, bool tx)
{
	obj_open(&s->o);
	if (rx) {
		s->o.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		OK(fi_srx_context(s->o.domain, s->o.info->rx_attr, &s->srx, NULL));
	}
	if (tx) {
		s->o.info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
		OK(fi_stx_context(s->o.domain, s->o.info->tx_attr, &s->stx, NULL));
	}
	for (int i = 0; i < SHARERS; i++)
		add_sharer(s, i);
}

static void ask_shared(struct shared *s, uint64_t caps)
{
	s->o.hints = obj_hints(caps);
	if (!obj_find(&s->o, FI_VERSION(1, 17)) || !s->o.info->domain_attr->max_ep_srx_ctx) {
		if (!api_other())
			api_fail("shared receive contexts are not offered");
		api_skip("no shared receive contexts");
	}
}

static void close_shared(struct shared *s)
{
	for (int i = 0; i < SHARERS; i++) {
		if (s->ep[i])
			CLOSE(s->ep[i]);
		CLOSE(s->cq[i]);
	}
	if (s->srx)
		CLOSE(s->srx);
	if (s->stx)
		CLOSE(s->stx);
	obj_close(&s->o);
}

static void send_to(struct shared *s, int i, int word)
{
	POST(s->o.cq, fi_inject(s->o.ep, &word, sizeof(word), s->addr[i]));
}

/* Buffers match in the order of posting, whichever endpoint a message is for. */
static void posted_first(struct api *a)
{
	struct shared s = {0};
	int words[30];

	(void)a;
	ask_shared(&s, FI_MSG | FI_TAGGED);
	open_shared(&s, true, false);
	CHECK_EQ(s.srx->fid.fclass, FI_CLASS_SRX_CTX);
	for (int n = 0; n < 30; n++)
		OK(fi_recv(s.srx, &words[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &words[n]));
	for (int n = 0; n < 30; n++) {
		send_to(&s, n * 7 % SHARERS, n);
		CHECK_EQ(obj_done(s.cq[n * 7 % SHARERS], &words[n]).len, sizeof(int));
		CHECK_EQ(words[n], n);
	}
	for (int i = 0; i < SHARERS; i++)
		obj_quiet(s.cq[i], 5);
	close_shared(&s);
}

/* Unexpected messages complete in the queue of their endpoint. */
static void unexpected(struct api *a)
{
	struct shared s = {0};
	int words[9], seen[SHARERS] = {0};

	(void)a;
	ask_shared(&s, FI_MSG | FI_TAGGED);
	open_shared(&s, true, false);
	for (int n = 0; n < 9; n++)
		send_to(&s, n % SHARERS, n);
	for (int i = 0; i < SHARERS; i++)
		obj_quiet(s.cq[i], 5);
	for (int n = 0; n < 9; n++)
		OK(fi_recv(s.srx, &words[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &words[n]));
	for (int n = 0; n < 9; n++) {
		struct fi_cq_tagged_entry e = obj_next(s.cq[n % SHARERS], NULL);
		int word = *(int *)e.op_context;

		CHECK_EQ(word % SHARERS, n % SHARERS);
		CHECK_EQ(word / SHARERS, seen[n % SHARERS]++);
	}
	close_shared(&s);
}

static void tagged(struct api *a)
{
	struct shared s = {0};
	int word, got[2] = {0};

	(void)a;
	ask_shared(&s, FI_MSG | FI_TAGGED);
	open_shared(&s, true, false);
	for (int n = 0; n < 2; n++)
		OK(fi_trecv(s.srx, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, (uint64_t)n, 0,
			    &got[n]));
	word = 11;
	POST(s.o.cq, fi_tinject(s.o.ep, &word, sizeof(word), s.addr[2], 1));
	CHECK_EQ(obj_done(s.cq[2], &got[1]).tag, 1);
	word = 10;
	POST(s.o.cq, fi_tinject(s.o.ep, &word, sizeof(word), s.addr[0], 0));
	CHECK_EQ(obj_done(s.cq[0], &got[0]).tag, 0);
	CHECK_EQ(got[0], 10);
	CHECK_EQ(got[1], 11);
	close_shared(&s);
}

/* One multi-receive buffer for all endpoints; the last message releases it. */
static void multi_recv(struct api *a)
{
	struct shared s = {0};
	char buf[256];
	struct iovec iov = {buf, sizeof(buf)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf};
	size_t min = 64;
	int used = 0;

	(void)a;
	ask_shared(&s, FI_MSG | FI_TAGGED | FI_MULTI_RECV);
	open_shared(&s, true, false);
	OK(fi_setopt(&s.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	OK(fi_recvmsg(s.srx, &msg, FI_MULTI_RECV | FI_COMPLETION));
	for (int n = 0; !used && n < 100; n++) {
		struct fi_cq_tagged_entry e;

		send_to(&s, n % SHARERS, n);
		e = obj_done(s.cq[n % SHARERS], buf);
		CHECK_EQ(e.len, sizeof(int));
		CHECK(memcmp(e.buf, &n, sizeof(n)) == 0);
		used = e.flags & FI_MULTI_RECV ? n + 1 : 0;
	}
	if (!api_other())
		CHECK_EQ(used, (256 - 64) / 4 + 1);
	close_shared(&s);
}

/* Buffers left by one endpoint serve the others. */
static void one_closes(struct api *a)
{
	struct shared s = {0};
	int got[2] = {0};

	(void)a;
	ask_shared(&s, FI_MSG | FI_TAGGED);
	open_shared(&s, true, false);
	for (int n = 0; n < 2; n++)
		OK(fi_recv(s.srx, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[n]));
	send_to(&s, 0, 5);
	obj_done(s.cq[0], &got[0]);
	CLOSE(s.ep[0]);
	s.ep[0] = NULL;
	if (!api_other())
		CHECK_EQ(fi_close(&s.srx->fid), -FI_EBUSY);
	send_to(&s, 1, 6);
	obj_done(s.cq[1], &got[1]);
	CHECK_EQ(got[1], 6);
	close_shared(&s);
}

#define LONG_BYTES (16u << 20)

/* Closing an endpoint while a message to it fills a buffer: the buffer is released. */
static void used_up_by_one_that_closes(struct api *a)
{
	static char buf[LONG_BYTES], msg_bytes[LONG_BYTES];

	(void)a;
	for (int rounds = 1; rounds < 10000; rounds += 1 + rounds / 4) {
		struct shared s = {0};
		struct iovec iov = {buf, sizeof(buf)};
		struct fi_msg msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf};
		unsigned int given_back = 0;
		struct fi_cq_tagged_entry e;
		struct fi_cq_err_entry err = {0};
		ssize_t ret;

		ask_shared(&s, FI_MSG | FI_TAGGED | FI_MULTI_RECV);
		open_shared(&s, true, false);
		OK(fi_recvmsg(s.srx, &msg, FI_MULTI_RECV | FI_COMPLETION));
		POST(s.o.cq, fi_send(s.o.ep, msg_bytes, LONG_BYTES, NULL, s.addr[0], msg_bytes));
		for (int i = 0; i < rounds; i++) {
			fi_cq_read(s.o.cq, NULL, 0);
			fi_cq_read(s.cq[0], NULL, 0);
		}
		CLOSE(s.ep[0]);
		s.ep[0] = NULL;
		while ((ret = fi_cq_read(s.cq[0], &e, 1)) != -FI_EAGAIN) {
			if (ret == 1)
				given_back += !!(e.flags & FI_MULTI_RECV);
			else
				OK(fi_cq_readerr(s.cq[0], &err, 0) != 1);
			if (ret != 1)
				given_back += !!(err.flags & FI_MULTI_RECV);
		}
		CHECK(given_back <= 1);
		if (!given_back) { /* the buffer serves the others */
			send_to(&s, 1, 7);
			CHECK_EQ(obj_done(s.cq[1], buf).len, sizeof(int));
		}
		close_shared(&s);
	}
}

/* A cancelled buffer is not used. */
static void cancel(struct api *a)
{
	struct shared s = {0};
	int got[2] = {0};

	(void)a;
	ask_shared(&s, FI_MSG | FI_TAGGED);
	open_shared(&s, true, false);
	for (int n = 0; n < 2; n++)
		OK(fi_recv(s.srx, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[n]));
	OK(fi_cancel(&s.srx->fid, &got[0]));
	send_to(&s, 1, 8);
	OBJ_UNTIL(got[1] || got[0], fi_cq_read(s.cq[1], NULL, 0));
	CHECK_EQ(got[0], 0);
	CHECK_EQ(got[1], 8);
	close_shared(&s);
}

/* Long messages between two processes: the receiver's endpoints share both contexts. */
static void between_processes(struct api *a)
{
	size_t len = 1 << 20;
	char *buf = malloc(SHARERS * len);
	struct obj_name mine[SHARERS], all[2 * SHARERS];
	struct shared s = {0};

	ask_shared(&s, FI_MSG | FI_TAGGED);
	open_shared(&s, true, true);
	for (int i = 0; i < SHARERS; i++)
		mine[i] = obj_name(&s.ep[i]->fid);
	api_swap(a, mine, all, sizeof(mine));
	for (int i = 0; i < SHARERS; i++) {
		fi_addr_t peer = obj_insert(s.o.av, &all[!a->rank * SHARERS + i]);
		char *at = buf + (size_t)i * len;

		if (a->rank == 0) {
			data_fill(at, len, (unsigned int)i);
			POST(s.cq[i], fi_send(s.ep[i], at, len, NULL, peer, at));
			obj_done(s.cq[i], at);
		} else {
			OK(fi_recv(s.srx, at, len, NULL, FI_ADDR_UNSPEC, at));
			CHECK_EQ(obj_done(s.cq[i], at).len, len);
			data_check(at, len, (unsigned int)i);
		}
	}
	api_meet(a);
	close_shared(&s);
	free(buf);
}

/* Sends through a shared transmit context complete in the queue of the endpoint. */
static void transmit(struct api *a)
{
	struct shared s = {0};
	int words[SHARERS], got[SHARERS] = {0};

	(void)a;
	ask_shared(&s, FI_MSG | FI_TAGGED);
	open_shared(&s, false, true);
	CHECK_EQ(s.stx->fid.fclass, FI_CLASS_STX_CTX);
	for (int i = 0; i < SHARERS; i++) {
		int to = (i + 1) % SHARERS;

		words[i] = i + 1;
		OK(fi_recv(s.ep[to], &got[to], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[to]));
		POST(s.cq[i],
		     fi_send(s.ep[i], &words[i], sizeof(int), NULL, s.addr[to], &words[i]));
		obj_done(s.cq[i], &words[i]);
		obj_done(s.cq[to], &got[to]);
		CHECK_EQ(got[to], i + 1);
	}
	close_shared(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"posted_first", posted_first, 1, {0}},
		{"unexpected", unexpected, 1, {0}},
		{"tagged", tagged, 1, {0}},
		{"multi_recv", multi_recv, 1, {0}},
		{"one_closes", one_closes, 1, {0}},
		{"used_up_by_one_that_closes", used_up_by_one_that_closes, 1, {0}},
		{"used_up_no_cma", used_up_by_one_that_closes, 1, {"FI_SHM_DISABLE_CMA=yes"}},
		{"cancel", cancel, 1, {0}},
		{"between_processes", between_processes, 2, {0}},
		{"transmit", transmit, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
