/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every form of operation between two connected endpoints of the provider "verbs", both in this
 * process at one address: msg_forms 10.77.0.1. Each case uses a connection of its own and prints a
 * line.
 */
#include "msg_ends.h"

/* ---- Cases ----------------------------------------------------------------------------------- */

static void messages(struct end *a, struct end *b)
{
	char word[] = "on the stack";
	struct iovec iov[2] = {{a->memory, 100}, {a->memory + 200, 300}};
	struct iovec to[2] = {{b->memory, 50}, {b->memory + 1000, 4000}};
	void *descs[2] = {a->desc, a->desc}, *to_descs[2] = {b->desc, b->desc};
	struct fi_cq_data_entry got;
	struct fi_msg msg = {
		.msg_iov = iov, .desc = descs, .iov_count = 2, .context = iov, .data = 9};

	fill(a, 1);
	OK(fi_recvv(b->ep, to, to_descs, 2, 0, to));
	OK(fi_sendv(a->ep, iov, descs, 2, 0, iov));
	done(a, SENT, iov);
	got = done(b, CAME, to);
	CHECK(got.len == 400);
	CHECK(!memcmp(b->memory, a->memory, 50) && !memcmp(b->memory + 1000, a->memory + 50, 50) &&
	      !memcmp(b->memory + 1050, a->memory + 200, 300));

	OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, b));
	OK(fi_inject(a->ep, word, sizeof(word), 0));
	memset(word, 0, sizeof(word));
	got = done(b, CAME, b);
	CHECK(got.len == sizeof(word) && !strcmp(b->memory, "on the stack"));
	silent(a);

	OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, b));
	OK(fi_injectdata(a->ep, a->memory, 0, 0x12345678, 0));
	got = done(b, CAME | FI_REMOTE_CQ_DATA, b);
	CHECK(got.len == 0 && got.data == 0x12345678);

	OK(fi_recv(b->ep, b->memory, 1000, b->desc, 0, b));
	OK(fi_senddata(a->ep, a->memory, 500, a->desc, 77, 0, a));
	done(a, SENT, a);
	got = done(b, CAME | FI_REMOTE_CQ_DATA, b);
	CHECK(got.len == 500 && got.data == 77 && !memcmp(a->memory, b->memory, 500));

	OK(fi_recvmsg(
		b->ep,
		&(struct fi_msg){.msg_iov = to, .desc = to_descs, .iov_count = 2, .context = to},
		0));
	OK(fi_sendmsg(a->ep, &msg, FI_REMOTE_CQ_DATA | FI_FENCE));
	done(a, SENT, iov);
	got = done(b, CAME | FI_REMOTE_CQ_DATA, to);
	CHECK(got.len == 400 && got.data == 9);
}

static void refused(struct end *a, struct end *b)
{
	struct fi_msg msg = {.msg_iov = &(struct iovec){a->memory, 1000},
			     .desc = &a->desc,
			     .iov_count = 1,
			     .context = a};
	size_t most = 4096, len = sizeof(most);
	uint64_t flags = FI_TRANSMIT | FI_COMMIT_COMPLETE;

	OK(fi_getopt(&a->ep->fid, FI_OPT_ENDPOINT, FI_OPT_INJECT_MSG_SIZE, &most, &len));
	CHECK(most >= 64 && most < 1000);
	CHECK(fi_inject(a->ep, a->memory, 1000, 0) == -FI_EMSGSIZE);
	CHECK(fi_sendmsg(a->ep, &msg, FI_INJECT) == -FI_EMSGSIZE);
	CHECK(fi_sendmsg(a->ep, &msg, FI_MATCH_COMPLETE) == -FI_EOPNOTSUPP);
	CHECK(fi_sendmsg(a->ep, &msg, FI_COMMIT_COMPLETE) == -FI_EOPNOTSUPP);
	CHECK(fi_send(a->ep, a->memory, 1000, NULL, 0, a) == -FI_EINVAL);
	CHECK(fi_recv(a->ep, a->memory, 1000, NULL, 0, a) == -FI_EINVAL);
	CHECK(fi_send(a->ep, a->memory, SIZE_MAX / 2, a->desc, 0, a) == -FI_EMSGSIZE);
	CHECK(fi_tsend(a->ep, a->memory, 8, a->desc, 0, 0, a) == -FI_EOPNOTSUPP);
	silent(a);

	/* As a default flag it applies only to the operations that know it. */
	OK(fi_control(&a->ep->fid, FI_SETOPSFLAG, &flags));
	for (int i = 0; i < 3; i++)
		OK(fi_recv(b->ep, b->memory, 1000, b->desc, 0, b));
	OK(fi_send(a->ep, a->memory, 1000, a->desc, 0, a));
	OK(fi_senddata(a->ep, a->memory, 10, NULL, 1, 0, a));
	OK(fi_sendv(a->ep, msg.msg_iov, &a->desc, 1, 0, a));
	for (int i = 0; i < 3; i++) {
		done(a, SENT, a);
		done(b, CAME | (i == 1 ? FI_REMOTE_CQ_DATA : 0), b);
	}
}

static void writes_and_reads(struct end *a, struct end *b)
{
	struct fi_rma_iov to = window(b, 400), all = window(b, 16384);
	struct iovec iov[2] = {{a->memory, 100}, {a->memory + 200, 300}};
	void *descs[2] = {a->desc, a->desc};
	struct fi_msg_rma msg = {.msg_iov = iov,
				 .desc = descs,
				 .iov_count = 2,
				 .rma_iov = &to,
				 .rma_iov_count = 1,
				 .context = iov,
				 .data = 5};
	struct fi_cq_data_entry got;

	fill(a, 3);
	OK(fi_write(a->ep, a->memory, all.len, a->desc, 0, all.addr, all.key, a));
	done(a, WROTE, a);
	CHECK(!memcmp(a->memory, b->memory + WINDOW, all.len));
	OK(fi_read(a->ep, a->memory + WINDOW, all.len, a->desc, 0, all.addr, all.key, b));
	done(a, READ, b);
	CHECK(!memcmp(a->memory, a->memory + WINDOW, all.len));

	OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, b));
	OK(fi_writemsg(a->ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION));
	done(a, WROTE, iov);
	got = done(b, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, b);
	CHECK(got.data == 5 && got.len == 400);
	CHECK(!memcmp(b->memory + WINDOW, a->memory, 100) &&
	      !memcmp(b->memory + WINDOW + 100, a->memory + 200, 300));

	memset(a->memory, 0, 600);
	OK(fi_readv(a->ep, iov, descs, 2, 0, to.addr, to.key, iov));
	done(a, READ, iov);
	CHECK(!memcmp(a->memory, b->memory + WINDOW, 100) &&
	      !memcmp(a->memory + 200, b->memory + WINDOW + 100, 300));

	OK(fi_inject_write(a->ep, "short", 6, 0, to.addr, to.key));
	OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, b));
	OK(fi_inject_writedata(a->ep, "word", 5, 0xfedcba98, 0, to.addr + 100, to.key));
	got = done(b, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, b);
	CHECK(got.data == 0xfedcba98);
	CHECK(!strcmp(b->memory + WINDOW, "short") && !strcmp(b->memory + WINDOW + 100, "word"));
	silent(a);
	to.len = 399;
	CHECK(fi_writemsg(a->ep, &msg, 0) == -FI_EINVAL);
}

static void atomics(struct end *a, struct end *b)
{
	struct fi_rma_iov to = window(b, 8);
	uint64_t *cell = (uint64_t *)(void *)(b->memory + WINDOW), one = 1, two = 2;
	uint64_t *old = (uint64_t *)(void *)a->memory;
	struct fi_atomic_attr attr;
	size_t count = 0;

	*cell = 40;
	OK(fi_fetch_atomic(a->ep, &two, 1, NULL, old, a->desc, 0, to.addr, to.key, FI_UINT64,
			   FI_SUM, a));
	done(a, FETCHED, a);
	CHECK(*old == 40 && *cell == 42);
	OK(fi_compare_atomic(a->ep, &one, 1, NULL, &two, NULL, old, a->desc, 0, to.addr, to.key,
			     FI_INT64, FI_CSWAP, a));
	done(a, FETCHED, a);
	CHECK(*old == 42 && *cell == 42);
	CHECK(fi_fetch_atomic(a->ep, &two, 1, NULL, old, a->desc, 0, to.addr, to.key, FI_UINT64,
			      FI_PROD, a) == -FI_EOPNOTSUPP);
	CHECK(fi_fetch_atomic(a->ep, &two, 1, NULL, old, a->desc, 0, to.addr + 4, to.key, FI_UINT64,
			      FI_SUM, a) == -FI_EINVAL);
	CHECK(fi_atomic(a->ep, &two, 1, NULL, 0, to.addr, to.key, FI_UINT64, FI_SUM, a) ==
	      -FI_EOPNOTSUPP);
	OK(fi_fetch_atomicvalid(a->ep, FI_UINT64, FI_SUM, &count));
	CHECK(count == 1);
	OK(fi_compare_atomicvalid(a->ep, FI_UINT64, FI_CSWAP, &count));
	CHECK(fi_fetch_atomicvalid(a->ep, FI_UINT32, FI_SUM, &count) == -FI_EOPNOTSUPP);
	CHECK(fi_atomicvalid(a->ep, FI_UINT64, FI_SUM, &count) == -FI_EOPNOTSUPP);
	OK(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC));
	CHECK(attr.count == 1 && attr.size == 8);
	CHECK(fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, 0) == -FI_EOPNOTSUPP);
}

/* Only calls with FI_COMPLETION complete; the queue slots of the others are reused. */
static void selected(struct end *a, struct end *b)
{
	struct fi_rma_iov to = window(b, 8);
	struct fi_msg_rma msg = {.msg_iov = &(struct iovec){a->memory, 8},
				 .desc = &a->desc,
				 .iov_count = 1,
				 .rma_iov = &to,
				 .rma_iov_count = 1,
				 .context = b};

	for (int i = 0; i < 100; i++) {
		time_t end = time(NULL) + WAIT_S;
		ssize_t ret;

		while ((ret = fi_write(a->ep, a->memory, 8, a->desc, 0, to.addr, to.key, a)) ==
		       -FI_EAGAIN) {
			struct fi_cq_data_entry entry;

			CHECK(fi_cq_read(a->cq, &entry, 1) == -FI_EAGAIN && time(NULL) < end);
		}
		OK(ret);
	}
	while (fi_writemsg(a->ep, &msg, FI_COMPLETION))
		silent(a);
	done(a, WROTE, b);
	silent(a);
}

static void counters(struct end *a, struct end *b)
{
	struct fi_rma_iov to = window(b, 8);

	OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, b));
	OK(fi_send(a->ep, a->memory, 100, a->desc, 0, a));
	OK(fi_inject_write(a->ep, a->memory, 8, 0, to.addr, to.key));
	OK(fi_read(a->ep, a->memory, 8, a->desc, 0, to.addr, to.key, a));
	OK(fi_cntr_wait(a->cntr, 3, WAIT_S * 1000));
	OK(fi_cntr_wait(b->cntr, 1, WAIT_S * 1000));
	CHECK(fi_cntr_read(a->cntr) == 3 && fi_cntr_read(b->cntr) == 1);
	silent(a);
}

/* A full queue frees its slots again; the queue holds the size asked for and no more. */
static void full(struct end *a, struct end *b)
{
	int posted = 0, received = 0;

	while (!fi_recv(b->ep, b->memory, 8, b->desc, 0, b))
		received++;
	CHECK(received == 16);
	CHECK(fi_recv(b->ep, b->memory, 8, b->desc, 0, b) == -FI_EAGAIN);
	while (!fi_send(a->ep, a->memory, 8, a->desc, 0, a) && posted < 100)
		posted++;
	CHECK(posted == 16);
	CHECK(fi_send(a->ep, a->memory, 8, a->desc, 0, a) == -FI_EAGAIN);
	for (int i = 0; i < posted; i++) {
		done(a, SENT, a);
		done(b, CAME, b);
	}
	OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, b));
	OK(fi_send(a->ep, a->memory, 8, a->desc, 0, a));
	done(a, SENT, a);
	done(b, CAME, b);
}

static void check_over(struct end *e)
{
	event(e->eq, FI_SHUTDOWN);
	CHECK(fi_send(e->ep, e->memory, 8, e->desc, 0, e) == -FI_ENOTCONN);
}

/*
 * A message that does not fit ends the connection; both sides get the reason, other operations are
 * cancelled.
 */
static void too_long(struct end *a, struct end *b)
{
	struct fi_cq_err_entry err;

	OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, b));
	OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, a));
	OK(fi_send(a->ep, a->memory, 1000, a->desc, 0, a));
	err = failed(b, b);
	/* Some devices cannot tell this error from other local errors. */
	CHECK((err.err == FI_ETRUNC || err.err == FI_EIO) && err.flags == CAME);
	err = failed(a, a);
	CHECK(err.err == FI_EREMOTEIO && err.flags == SENT);
	CHECK(strstr(fi_cq_strerror(a->cq, err.prov_errno, NULL, NULL, 0), "remote"));
	err = failed(b, a);
	CHECK(err.err == FI_ECANCELED);
	check_over(a);
	check_over(b);
}

static void denied(struct end *a, struct end *b)
{
	struct fi_rma_iov to = window(b, 8);
	struct fi_cq_err_entry err;

	OK(fi_write(a->ep, a->memory, 8, a->desc, 0, to.addr, to.key, a));
	err = failed(a, a);
	CHECK(err.err == FI_EACCES && err.flags == WROTE);
	CHECK(strstr(fi_cq_strerror(a->cq, err.prov_errno, NULL, NULL, 0), "access"));
	check_over(a);
}

static void ended(struct end *a, struct end *b)
{
	OK(fi_recv(a->ep, a->memory, 8, a->desc, 0, a));
	OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, b));
	OK(fi_shutdown(a->ep, 0));
	check_over(a);
	CHECK(failed(a, a).err == FI_ECANCELED);
	check_over(b);
	CHECK(failed(b, b).err == FI_ECANCELED);
	OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, a));
	CHECK(failed(b, a).err == FI_ECANCELED);
}

static const struct msg_case cases[] = {
	{"messages", messages, false, false, 0},
	{"refused", refused, false, false, 0},
	{"writes and reads", writes_and_reads, false, false, 0},
	{"atomics", atomics, false, false, 0},
	{"selected", selected, true, false, 0},
	{"counters", counters, true, true, 0},
	{"full", full, false, false, 0},
	{"too long", too_long, false, false, 0},
	{"denied", denied, false, false, FI_SEND | FI_RECV | FI_REMOTE_READ},
	{"ended", ended, false, false, 0},
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	run_cases(argv[1], cases, sizeof(cases) / sizeof(cases[0]));
	return 0;
}
