/* SPDX-License-Identifier: BSD-2-Clause */
/* Scalable endpoints: up to 64 contexts each way, addressed by name. fi_endpoint(3), fi_av(3). */
#include <rdma/fi_ext_weft.h>

#include "obj.h"

#define MOST 64
#define BITS 6

struct sep {
	struct obj o;
	struct fid_ep *ep;
	int tx_count, rx_count;
	struct fid_ep *tx[MOST], *rx[MOST];
	struct fid_cq *tx_cq[MOST], *rx_cq[MOST];
};

static void find(struct sep *s, int tx, int rx)
{
	s->tx_count = tx;
	s->rx_count = rx;
	if (!s->o.hints)
		s->o.hints = obj_hints(FI_MSG | FI_TAGGED | FI_NAMED_RX_CTX | FI_SOURCE |
				       FI_DIRECTED_RECV);
	s->o.hints->ep_attr->tx_ctx_cnt = (size_t)tx;
	s->o.hints->ep_attr->rx_ctx_cnt = (size_t)rx;
	obj_domain(&s->o);
	if (!s->o.av)
		s->o.av = obj_av(&s->o, FI_AV_UNSPEC, BITS);
}

static void add_contexts(struct sep *s)
{
	for (int i = 0; i < s->tx_count; i++) {
		s->tx_cq[i] = obj_cq(&s->o, FI_WAIT_NONE);
		OK(fi_tx_context(s->ep, i, NULL, &s->tx[i], NULL));
		OK(fi_ep_bind(s->tx[i], &s->tx_cq[i]->fid, FI_TRANSMIT));
		OK(fi_enable(s->tx[i]));
	}
	for (int i = 0; i < s->rx_count; i++) {
		s->rx_cq[i] = obj_cq(&s->o, FI_WAIT_NONE);
		OK(fi_rx_context(s->ep, i, NULL, &s->rx[i], NULL));
		OK(fi_ep_bind(s->rx[i], &s->rx_cq[i]->fid, FI_RECV));
		OK(fi_enable(s->rx[i]));
	}
}

static void open_sep(struct sep *s, int tx, int rx)
{
	find(s, tx, rx);
	OK(fi_scalable_ep(s->o.domain, s->o.info, &s->ep, NULL));
	OK(fi_scalable_ep_bind(s->ep, &s->o.av->fid, 0));
	OK(fi_enable(s->ep));
	add_contexts(s);
}

static void close_sep(struct sep *s)
{
	for (int i = 0; i < s->tx_count; i++) {
		CLOSE(s->tx[i]);
		CLOSE(s->tx_cq[i]);
	}
	for (int i = 0; i < s->rx_count; i++) {
		CLOSE(s->rx[i]);
		CLOSE(s->rx_cq[i]);
	}
	CLOSE(s->ep);
	obj_close(&s->o);
}

static void limits(struct api *a)
{
	struct sep s = {0};
	struct fid_ep *ep;

	(void)a;
	find(&s, 4, 4);
	if (!api_other()) {
		CHECK(s.o.info->domain_attr->max_ep_tx_ctx >= MOST);
		CHECK(s.o.info->domain_attr->max_ep_rx_ctx >= MOST);
	}
	CHECK(s.o.info->ep_attr->tx_ctx_cnt >= 4);
	CHECK(s.o.info->ep_attr->rx_ctx_cnt >= 4);
	s.o.info->ep_attr->tx_ctx_cnt = s.o.info->ep_attr->rx_ctx_cnt = 4;
	OK(fi_scalable_ep(s.o.domain, s.o.info, &s.ep, NULL));
	CHECK_EQ(s.ep->fid.fclass, FI_CLASS_SEP);
	FAILS(fi_tx_context(s.ep, 4, NULL, &ep, NULL));
	FAILS(fi_rx_context(s.ep, 4, NULL, &ep, NULL));
	if (!api_other())
		FAILS(fi_rx_context(s.ep, -1, NULL, &ep, NULL));
	CLOSE(s.ep);
	s.o.info->ep_attr->tx_ctx_cnt = s.o.info->domain_attr->max_ep_tx_ctx + 1;
	if (!api_other())
		FAILS(fi_scalable_ep(s.o.domain, s.o.info, &s.ep, NULL));
	obj_close(&s.o);
}

/*
 * Rank 0 sends from each of its contexts to each context of rank 1, which checks the destination.
 */
static void named_sends(struct sep *s, fi_addr_t peer)
{
	for (int i = 0; i < s->tx_count; i++)
		for (int j = 0; j < s->rx_count; j++) {
			uint64_t word = (uint64_t)(i * MOST + j);

			POST(s->tx_cq[i], fi_tinject(s->tx[i], &word, sizeof(word),
						     fi_rx_addr(peer, j, BITS), word));
		}
}

static void named_receives(struct sep *s, fi_addr_t peer)
{
	static uint64_t words[MOST];

	for (int i = 0; i < s->tx_count; i++)
		for (int j = 0; j < s->rx_count; j++) {
			struct fi_cq_tagged_entry e;
			fi_addr_t src;

			words[j] = UINT64_MAX;
			POST(s->rx_cq[j],
			     fi_trecv(s->rx[j], &words[j], sizeof(words[j]), NULL, FI_ADDR_UNSPEC,
				      (uint64_t)(i * MOST + j), 0, &words[j]));
			e = obj_next(s->rx_cq[j], &src);
			CHECK(e.op_context == &words[j]);
			CHECK_EQ(words[j], i * MOST + j);
			CHECK_EQ(src & (UINT64_MAX >> BITS), peer);
		}
}

static void named(struct api *a)
{
	struct sep s = {0};
	int count = api_other() ? 16 : MOST;
	fi_addr_t peer;

	open_sep(&s, count, count);
	peer = obj_swap(a, s.ep, s.o.av);
	if (a->rank == 0)
		named_sends(&s, peer);
	else
		named_receives(&s, peer);
	api_meet(a);
	for (int j = 0; j < count; j++)
		obj_quiet(s.rx_cq[j], 0);
	close_sep(&s);
}

/* Plain endpoints can address contexts too; order holds in each. */
static void from_plain(struct api *a)
{
	struct sep s = {0};
	struct fid_cq *cq;
	fi_addr_t addr;
	int got[2] = {-1, -1};

	(void)a;
	open_sep(&s, 2, 2);
	addr = obj_insert_ep(s.o.av, s.ep);
	cq = obj_cq(&s.o, FI_WAIT_NONE);
	s.o.ep = obj_ready_ep(&s.o, cq);
	for (int n = 0; n < 100; n++)
		POST(cq, fi_inject(s.o.ep, &n, sizeof(n), fi_rx_addr(addr, n % 2, BITS)));
	for (int n = 0; n < 100; n++) {
		int at = n % 2;

		OK(fi_recv(s.rx[at], &got[at], sizeof(int), NULL, FI_ADDR_UNSPEC, &got[at]));
		CHECK_EQ(obj_done(s.rx_cq[at], &got[at]).len, sizeof(int));
		CHECK_EQ(got[at], n);
	}
	CLOSE(s.o.ep);
	s.o.ep = NULL;
	CLOSE(cq);
	close_sep(&s);
}

/* A plain fi_addr_t addresses the first context. */
static void first_context(struct api *a)
{
	struct sep s = {0};
	int word = 7, got = 0;
	fi_addr_t addr;

	(void)a;
	open_sep(&s, 2, 3);
	addr = obj_insert_ep(s.o.av, s.ep);
	CHECK_EQ(fi_rx_addr(addr, 0, BITS), addr);
	CHECK(fi_rx_addr(addr, 1, BITS) != fi_rx_addr(addr, 2, BITS));
	OK(fi_recv(s.rx[0], &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
	POST(s.tx_cq[1], fi_send(s.tx[1], &word, sizeof(word), NULL, addr, &word));
	obj_done(s.rx_cq[0], &got);
	obj_done(s.tx_cq[1], &word);
	CHECK_EQ(got, 7);
	close_sep(&s);
}

/* Long messages and a directed receive between contexts. */
static void long_directed(struct api *a)
{
	struct sep s = {0};
	size_t len = 3 << 20;
	char *buf = malloc(len);
	fi_addr_t peer;

	open_sep(&s, 2, 5);
	peer = obj_swap(a, s.ep, s.o.av);
	if (a->rank == 0) {
		data_fill(buf, len, 5);
		POST(s.tx_cq[1],
		     fi_tsend(s.tx[1], buf, len, NULL, fi_rx_addr(peer, 4, BITS), 9, buf));
		obj_done(s.tx_cq[1], buf);
	} else {
		OK(fi_trecv(s.rx[4], buf, len, NULL, peer, 9, 0, buf));
		CHECK_EQ(obj_done(s.rx_cq[4], buf).len, len);
		data_check(buf, len, 5);
	}
	api_meet(a);
	close_sep(&s);
	free(buf);
}

/* Connects both sides, so that later sends are not queued for the connection setup. */
static void greet(struct sep *s, struct api *a, fi_addr_t peer)
{
	uint64_t word = 1;

	if (a->rank) {
		OK(fi_trecv(s->rx[0], &word, sizeof(word), NULL, FI_ADDR_UNSPEC, 0, 0, &word));
		obj_done(s->rx_cq[0], &word);
	} else {
		POST(s->tx_cq[0],
		     fi_tinject(s->tx[0], &word, sizeof(word), fi_rx_addr(peer, 0, BITS), 0));
		obj_progress(a, s->tx_cq[0]);
	}
	api_meet(a);
	a->progress = NULL;
}

/* Closes a receive context while a long message to it is in flight: the sender gets an error. */
static void closed_under_way(struct api *a)
{
	struct fi_cq_tagged_entry entry;
	struct sep s = {0};
	size_t len = 3 << 20;
	char *buf = calloc(1, len);
	fi_addr_t peer;
	ssize_t ret;

	open_sep(&s, 1, 2);
	peer = obj_swap(a, s.ep, s.o.av);
	greet(&s, a, peer);
	if (a->rank)
		OK(fi_trecv(s.rx[1], buf, len, NULL, FI_ADDR_UNSPEC, 9, 0, buf));
	api_meet(a);
	if (!a->rank)
		POST(s.tx_cq[0],
		     fi_tsend(s.tx[0], buf, len, NULL, fi_rx_addr(peer, 1, BITS), 9, buf));
	api_meet_still(a);
	if (a->rank) {
		fi_cq_read(s.rx_cq[1], NULL, 0);
		CLOSE(s.rx[1]);
		CLOSE(s.rx_cq[1]);
		s.rx_count = 1;
		obj_progress(a, s.rx_cq[0]);
	} else {
		OBJ_UNTIL((ret = fi_cq_read(s.tx_cq[0], &entry, 1)) != -FI_EAGAIN, );
		if (ret == -FI_EAVAIL)
			CHECK_EQ(obj_error(s.tx_cq[0]).err, FI_ECANCELED);
		else
			CHECK_EQ(ret, 1);
	}
	api_meet(a);
	close_sep(&s);
	free(buf);
}

#define GONE     4
#define GONE_LEN (1u << 20)

/* Closes a transmit context and unmaps its memory before its long messages have been sent. */
static void memory_gone(struct api *a)
{
	unsigned char *buf = mmap(NULL, GONE * GONE_LEN, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sep s = {0};
	fi_addr_t peer;
	char byte = 0;

	open_sep(&s, 2, 2);
	peer = obj_swap(a, s.ep, s.o.av);
	greet(&s, a, peer);
	for (size_t i = 0; i < GONE && a->rank; i++)
		OK(fi_trecv(s.rx[1], buf + i * GONE_LEN, GONE_LEN, NULL, FI_ADDR_UNSPEC, 9, 0,
			    buf + i * GONE_LEN));
	api_meet(a);
	for (size_t i = 0; i < GONE && !a->rank; i++) {
		data_fill(buf + i * GONE_LEN, GONE_LEN, (unsigned int)i);
		POST(s.tx_cq[1], fi_tsend(s.tx[1], buf + i * GONE_LEN, GONE_LEN, NULL,
					  fi_rx_addr(peer, 1, BITS), 9, NULL));
	}
	if (!a->rank) {
		CLOSE(s.tx[1]);
		CLOSE(s.tx_cq[1]);
		s.tx_count = 1;
		OK(munmap(buf, GONE * GONE_LEN));
	}
	api_meet_still(a);
	if (!a->rank) {
		obj_progress(a, s.tx_cq[0]);
		api_hear(a, 1, &byte, 1);
	}
	for (size_t i = 0; i < GONE && a->rank; i++) {
		struct fi_cq_tagged_entry entry;
		ssize_t ret;

		OBJ_UNTIL((ret = fi_cq_read(s.rx_cq[1], &entry, 1)) != -FI_EAGAIN, );
		if (ret == 1)
			data_check(buf + i * GONE_LEN, GONE_LEN, (unsigned int)i);
		else
			obj_error(s.rx_cq[1]);
	}
	if (a->rank)
		api_tell(a, 0, &byte, 1);
	api_meet(a);
	close_sep(&s);
}

static ssize_t send_with(struct sep *s, int i, fi_addr_t to, uint64_t *word, uint64_t flags)
{
	struct iovec iov = {word, sizeof(*word)};
	struct fi_msg_tagged m = {.msg_iov = &iov,
				  .iov_count = 1,
				  .addr = fi_rx_addr(to, 0, BITS),
				  .tag = (uint64_t)i,
				  .context = word};

	return fi_tsendmsg(s->tx[i], &m, flags | FI_COMPLETION);
}

/*
 * Both contexts have an operation with the same context pointer, which waits for an earlier one: the one that is asked
 * cancels its own.
 */
static void canceled(struct api *a)
{
	struct fi_cq_err_entry error;
	struct sep s = {0};
	uint64_t word = 7;
	fi_addr_t peer;

	open_sep(&s, 2, 1);
	peer = obj_swap(a, s.ep, s.o.av);
	if (a->rank == 0) {
		POST(s.tx_cq[0], send_with(&s, 0, peer, &word, FI_MATCH_COMPLETE));
		for (int i = 0; i < 2; i++)
			POST(s.tx_cq[i], send_with(&s, i, peer, &word, FI_FENCE));
		OK(fi_cancel(&s.tx[1]->fid, &word));
		error = obj_error(s.tx_cq[1]);
		CHECK_EQ(error.err, FI_ECANCELED);
		CHECK(error.op_context == &word);
		api_meet(a);
		for (int i = 0; i < 2; i++)
			CHECK(obj_next(s.tx_cq[0], NULL).op_context == &word);
	} else {
		obj_progress(a, s.rx_cq[0]);
		api_meet(a);
		for (int i = 0; i < 2; i++) {
			POST(s.rx_cq[0], fi_trecv(s.rx[0], &word, sizeof(word), NULL,
						  FI_ADDR_UNSPEC, 0, 0, &word));
			obj_next(s.rx_cq[0], NULL);
		}
	}
	api_meet(a);
	a->progress = NULL;
	close_sep(&s);
}

/* The scalable endpoint itself has no data operations; it and its contexts need a vector. */
static void refusals(struct api *a)
{
	struct sep s = {0};
	struct fid_ep *tx;
	struct fid_cq *cq;
	int word = 1;

	(void)a;
	find(&s, 1, 1);
	cq = obj_cq(&s.o, FI_WAIT_NONE);
	OK(fi_scalable_ep(s.o.domain, s.o.info, &s.ep, NULL));
	OK(fi_tx_context(s.ep, 0, NULL, &tx, NULL));
	CHECK_EQ(tx->fid.fclass, FI_CLASS_TX_CTX);
	OK(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT));
	if (!api_other())
		CHECK_EQ(fi_enable(tx), -FI_ENOAV);
	OK(fi_scalable_ep_bind(s.ep, &s.o.av->fid, 0));
	OK(fi_enable(s.ep));
	OK(fi_enable(tx));
	if (!api_other()) {
		FAILS(fi_send(s.ep, &word, sizeof(word), NULL, 0, NULL));
		FAILS(fi_recv(tx, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, NULL));
	}
	CLOSE(tx);
	CLOSE(cq);
	s.tx_count = s.rx_count = 0;
	close_sep(&s);
}

/* What is known of a peer is asked with the address of any of its contexts. */
static void peer_state(struct api *a)
{
	struct fi_weft_ops_peers *ops;
	struct fi_weft_peer peer;
	struct sep s = {0};
	fi_addr_t addr;

	(void)a;
	open_sep(&s, 2, 2);
	if (fi_open_ops(&s.ep->fid, FI_WEFT_PEERS, 0, (void **)&ops, NULL) && api_other())
		api_skip("an extension of another library");
	addr = obj_insert_ep(s.o.av, s.ep);
	for (int i = 0; i < 2; i++)
		OK(ops->read(&s.ep->fid, fi_rx_addr(addr, i, BITS), &peer, sizeof(peer)));
	CHECK_EQ(ops->read(&s.ep->fid, addr + 1, &peer, sizeof(peer)), -FI_EINVAL);
	close_sep(&s);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"limits", limits, 1, {0}},
		{"named", named, 2, {0}},
		{"from_plain", from_plain, 1, {0}},
		{"first_context", first_context, 1, {0}},
		{"long_directed", long_directed, 2, {0}},
		{"closed_under_way", closed_under_way, 2, {0}},
		{"closed_under_way_no_cma", closed_under_way, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"memory_gone", memory_gone, 2, {0}},
		{"canceled", canceled, 2, {0}},
		{"refusals", refusals, 1, {0}},
		{"peer_state", peer_state, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
