/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters bound to endpoints: what counts, with queues and without. fi_cntr(3), fi_endpoint(3). */
#include "obj.h"

/* An endpoint with counters; with `queues` its completions go to o->cq. */
struct counted {
	struct fid_ep *ep;
	struct fid_cntr *sent, *received;
	fi_addr_t addr;
};

static void open_counted(struct obj *o, struct counted *c, uint64_t cq_flags, enum fi_wait_obj wait)
{
	c->sent = obj_cntr(o, wait);
	c->received = obj_cntr(o, wait);
	c->ep = obj_ep(o);
	OK(fi_ep_bind(c->ep, &o->av->fid, 0));
	if (cq_flags)
		OK(fi_ep_bind(c->ep, &o->cq->fid, cq_flags));
	OK(fi_ep_bind(c->ep, &c->sent->fid, FI_SEND));
	OK(fi_ep_bind(c->ep, &c->received->fid, FI_RECV));
	OK(fi_enable(c->ep));
	c->addr = obj_insert_ep(o->av, c->ep);
}

static void close_counted(struct counted *c)
{
	CLOSE(c->ep);
	CLOSE(c->sent);
	CLOSE(c->received);
}

static void open_objects(struct obj *o)
{
	obj_domain(o);
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
	o->cq = obj_cq(o, FI_WAIT_NONE);
}

/* Waits until the counter reads `count`; reading makes progress. */
static void reaches(struct fid_cntr *cntr, uint64_t count)
{
	uint64_t value;

	OBJ_UNTIL((value = fi_cntr_read(cntr)) >= count, );
	CHECK_EQ(value, count);
}

/* Messages of every form count, in addition to their completions. */
static void with_queues(struct api *a)
{
	struct obj o = {0};
	struct counted c[2] = {0};
	int words[4], word = 1;

	(void)a;
	open_objects(&o);
	for (int i = 0; i < 2; i++)
		open_counted(&o, &c[i], FI_TRANSMIT | FI_RECV, FI_WAIT_NONE);
	for (int i = 0; i < 2; i++)
		OK(fi_recv(c[1].ep, &words[i], sizeof(int), NULL, FI_ADDR_UNSPEC, NULL));
	for (int i = 2; i < 4; i++)
		OK(fi_trecv(c[1].ep, &words[i], sizeof(int), NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	POST(o.cq, fi_send(c[0].ep, &word, sizeof(word), NULL, c[1].addr, NULL));
	POST(o.cq, fi_tsend(c[0].ep, &word, sizeof(word), NULL, c[1].addr, 1, NULL));
	for (int n = 0; n < 4; n++)
		obj_next(o.cq, NULL);
	reaches(c[0].sent, 2);
	reaches(c[1].received, 2);
	/* Injected messages have no completion, but count. */
	POST(o.cq, fi_inject(c[0].ep, &word, sizeof(word), c[1].addr));
	POST(o.cq, fi_tinject(c[0].ep, &word, sizeof(word), c[1].addr, 1));
	reaches(c[1].received, 4);
	reaches(c[0].sent, 4);
	CHECK_EQ(fi_cntr_read(c[0].received), 0);
	CHECK_EQ(fi_cntr_read(c[1].sent), 0);
	for (int i = 0; i < 2; i++)
		close_counted(&c[i]);
	obj_close(&o);
}

/* Messages whose completion FI_SELECTIVE_COMPLETION suppresses count as well. */
static void suppressed(struct api *a)
{
	struct obj o = {0};
	struct counted c = {0};
	int got[8];

	(void)a;
	open_objects(&o);
	o.info->tx_attr->op_flags = o.info->rx_attr->op_flags = 0;
	open_counted(&o, &c, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION, FI_WAIT_NONE);
	for (int n = 0; n < 8; n++) {
		OK(fi_recv(c.ep, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, NULL));
		POST(o.cq, fi_send(c.ep, &n, sizeof(n), NULL, c.addr, NULL));
		reaches(c.received, (uint64_t)n + 1);
		reaches(c.sent, (uint64_t)n + 1);
		CHECK_EQ(got[n], n);
	}
	obj_quiet(o.cq, 10);
	close_counted(&c);
	obj_close(&o);
}

/* fi_cntr_wait on a counter with FI_WAIT_NONE polls; another library may refuse it. */
static void may_wait(struct obj *o, enum fi_wait_obj wait)
{
	struct fid_cntr *cntr = obj_cntr(o, wait);
	uint64_t start = obj_now_us();

	if (api_other() && fi_cntr_wait(cntr, 0, 0) == -FI_ENOSYS)
		api_skip("no waiting without a wait object");
	OK(fi_cntr_wait(cntr, 0, 0));
	CHECK_EQ(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	if (!api_other()) /* one library returns +FI_ETIMEDOUT */
		CHECK_EQ(fi_cntr_wait(cntr, 1, 30), -FI_ETIMEDOUT);
	CHECK(obj_now_us() - start >= (api_other() ? 0 : 29000));
	OK(fi_cntr_add(cntr, 1));
	OK(fi_cntr_wait(cntr, 1, -1));
	OK(fi_cntr_adderr(cntr, 1));
	if (!api_other()) /* another library may keep waiting */
		CHECK_EQ(fi_cntr_wait(cntr, 2, OBJ_PATIENCE_MS), -FI_EAVAIL);
	CLOSE(cntr);
}

/* Endpoints without any queue: short and long messages between processes. */
static void without_queues(struct api *a, enum fi_wait_obj wait)
{
	static char buf[2 << 20];
	int timeout = wait == FI_WAIT_NONE ? -1 : OBJ_PATIENCE_MS;
	struct obj o = {0};
	struct counted c = {0};
	fi_addr_t peer;

	open_objects(&o);
	may_wait(&o, wait);
	open_counted(&o, &c, 0, wait);
	peer = obj_swap(a, c.ep, o.av);
	for (uint64_t n = 0; n < 40; n++) {
		size_t len = n % 2 ? sizeof(buf) : 64;

		if (a->rank == 0) {
			data_fill(buf, len, (unsigned int)n);
			OBJ_UNTIL(fi_send(c.ep, buf, len, NULL, peer, NULL) == 0,
				  fi_cntr_read(c.sent));
			OK(fi_cntr_wait(c.sent, n + 1, timeout));
			continue;
		}
		memset(buf, 0, len);
		OK(fi_recv(c.ep, buf, len, NULL, FI_ADDR_UNSPEC, NULL));
		OK(fi_cntr_wait(c.received, n + 1, timeout));
		data_check(buf, len, (unsigned int)n);
	}
	api_meet(a);
	close_counted(&c);
	obj_close(&o);
}

static void alone(struct api *a)
{
	without_queues(a, FI_WAIT_UNSPEC);
}

static void alone_polling(struct api *a)
{
	without_queues(a, FI_WAIT_NONE);
}

/* A truncated message counts as an error; the queue has the reason. */
static void errors(struct api *a)
{
	struct obj o = {0};
	struct counted c = {0};
	struct fi_cq_err_entry err;
	char big[64] = "", little[8];

	(void)a;
	open_objects(&o);
	open_counted(&o, &c, FI_RECV | FI_TRANSMIT | FI_SELECTIVE_COMPLETION, FI_WAIT_UNSPEC);
	OK(fi_recv(c.ep, little, sizeof(little), NULL, FI_ADDR_UNSPEC, little));
	POST(o.cq, fi_inject(c.ep, big, sizeof(big), c.addr));
	err = obj_error(o.cq);
	CHECK_EQ(err.err, FI_ETRUNC);
	CHECK(err.op_context == little);
	OBJ_UNTIL(fi_cntr_readerr(c.received) == 1, );
	CHECK_EQ(fi_cntr_read(c.received), 0);
	/* An error ends a wait. */
	OK(fi_recv(c.ep, little, sizeof(little), NULL, FI_ADDR_UNSPEC, little));
	POST(o.cq, fi_inject(c.ep, big, sizeof(big), c.addr));
	if (!api_other())
		CHECK_EQ(fi_cntr_wait(c.received, 1, OBJ_PATIENCE_MS), -FI_EAVAIL);
	close_counted(&c);
	obj_close(&o);
}

static void values(struct api *a)
{
	struct obj o = {0};
	struct fid_cntr *cntr;
	uint64_t start;

	(void)a;
	obj_domain(&o);
	cntr = obj_cntr(&o, FI_WAIT_UNSPEC);
	CHECK_EQ(fi_cntr_read(cntr), 0);
	OK(fi_cntr_add(cntr, 5));
	reaches(cntr, 5);
	OK(fi_cntr_set(cntr, 2));
	OBJ_UNTIL(fi_cntr_read(cntr) == 2, );
	OK(fi_cntr_adderr(cntr, 3));
	OBJ_UNTIL(fi_cntr_readerr(cntr) == 3, );
	OK(fi_cntr_seterr(cntr, 1));
	OBJ_UNTIL(fi_cntr_readerr(cntr) == 1, );
	CHECK_EQ(fi_cntr_read(cntr), 2);
	OK(fi_cntr_wait(cntr, 2, 0));
	start = obj_now_us();
	CHECK_EQ(fi_cntr_wait(cntr, 3, 50), -FI_ETIMEDOUT);
	CHECK(obj_now_us() - start >= 49000);
	CHECK_EQ(fi_cntr_readerr(cntr), 1);
	CLOSE(cntr);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"with_queues", with_queues, 1, {0}},
		{"suppressed", suppressed, 1, {0}},
		{"alone", alone, 2, {0}},
		{"alone_polling", alone_polling, 2, {0}},
		{"errors", errors, 1, {0}},
		{"values", values, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
