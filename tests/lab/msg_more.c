/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Further promises of connected endpoints of the provider "verbs", run as msg_forms: FI_MORE,
 * completion levels, atomic writes, operations that cannot be cancelled, shared receive contexts.
 */
#include "msg_ends.h"

static struct fi_msg_rma write_of(const struct end *a, const struct iovec *iov,
				  const struct fi_rma_iov *to, void *context)
{
	return (struct fi_msg_rma){.msg_iov = iov,
				   .desc = (void **)(uintptr_t)&a->desc,
				   .iov_count = 1,
				   .rma_iov = to,
				   .rma_iov_count = 1,
				   .context = context};
}

/* Sends with FI_MORE go out in order with the next operation, and do not wait longer. */
static void together(struct end *a, struct end *b)
{
	struct iovec iov = {a->memory, 100};
	struct fi_msg msg = {.msg_iov = &iov, .desc = &a->desc, .iov_count = 1};
	struct fi_rma_iov to = window(b, 100);
	struct fi_msg_rma write = write_of(a, &iov, &to, &to);

	for (int i = 0; i < 5; i++)
		OK(fi_recv(b->ep, b->memory + i * 128, 128, b->desc, 0, &b->memory[i]));
	for (int i = 0; i < 3; i++) {
		iov.iov_base = a->memory + i * 128;
		iov.iov_len = i ? 100 : 10; /* the first one is inline in its work request */
		memset(iov.iov_base, 'a' + i, 128);
		msg.context = &a->memory[i];
		OK(fi_sendmsg(a->ep, &msg, FI_MORE));
	}
	iov.iov_len = 100;
	OK(fi_writemsg(a->ep, &write, FI_MORE));
	OK(fi_send(a->ep, a->memory, 1, a->desc, 0, a));
	for (int i = 0; i < 3; i++)
		done(a, SENT, &a->memory[i]);
	done(a, WROTE, &to);
	done(a, SENT, a);
	for (int i = 0; i < 4; i++) {
		struct fi_cq_data_entry got = done(b, CAME, &b->memory[i]);

		CHECK(got.len == (i == 3 ? 1 : i ? 100 : 10));
		CHECK(b->memory[i * 128] == (i == 3 ? 'a' : 'a' + i));
	}
	CHECK(b->memory[WINDOW] == 'c' && b->memory[WINDOW + 99] == 'c');

	/* No operation follows. */
	iov.iov_len = 10;
	msg.context = b;
	OK(fi_sendmsg(a->ep, &msg, FI_MORE));
	done(a, SENT, b);
	done(b, CAME, &b->memory[4]);
}

/* As many sends with FI_MORE as the queue holds; afterwards the queue has space again. */
static void all_together(struct end *a, struct end *b)
{
	struct fi_msg msg = {.msg_iov = &(struct iovec){a->memory, 100},
			     .desc = &a->desc,
			     .iov_count = 1,
			     .context = a};

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 16; i++)
			OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, b));
		for (int i = 0; i < 16; i++)
			OK(fi_sendmsg(a->ep, &msg, FI_MORE));
		CHECK(fi_sendmsg(a->ep, &msg, 0) == -FI_EAGAIN);
		for (int i = 0; i < 16; i++) {
			done(a, SENT, a);
			done(b, CAME, b);
		}
	}
	silent(a);
}

/* Injected memory can be reused at once, also with FI_MORE. */
static void injected_with_more(struct end *a, struct end *b)
{
	char word[] = "first";
	struct fi_msg msg = {
		.msg_iov = &(struct iovec){word, sizeof(word)}, .iov_count = 1, .context = a};

	OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, b));
	OK(fi_recv(b->ep, b->memory + 100, 100, b->desc, 0, a));
	OK(fi_sendmsg(a->ep, &msg, FI_MORE | FI_INJECT));
	memcpy(word, "again", sizeof(word));
	OK(fi_sendmsg(a->ep, &msg, FI_INJECT));
	done(a, SENT, a);
	done(a, SENT, a);
	done(b, CAME, b);
	done(b, CAME, a);
	CHECK(!strcmp(b->memory, "first") && !strcmp(b->memory + 100, "again"));
}

/*
 * A send with FI_MORE that is still held when the connection ends is cancelled with a completion.
 */
static void paused_at_the_end(struct end *a, struct end *b)
{
	struct fi_msg msg = {.msg_iov = &(struct iovec){a->memory, 100},
			     .desc = &a->desc,
			     .iov_count = 1,
			     .context = a};
	struct fi_cq_data_entry entry;
	time_t end = time(NULL) + WAIT_S;
	ssize_t n;

	(void)b;
	OK(fi_sendmsg(a->ep, &msg, FI_MORE));
	OK(fi_shutdown(a->ep, 0));
	while ((n = fi_cq_read(a->cq, &entry, 1)) == -FI_EAGAIN)
		CHECK(time(NULL) < end);
	CHECK(n == -FI_EAVAIL && failed(a, a).err == FI_ECANCELED);
}

static void confirmed(struct end *a, struct end *b)
{
	static const uint64_t levels[] = {
		FI_DELIVERY_COMPLETE, FI_COMMIT_COMPLETE, FI_DELIVERY_COMPLETE | FI_FENCE,
		FI_COMMIT_COMPLETE | FI_INJECT, FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE};
	struct iovec iov = {a->memory, 60};
	struct fi_rma_iov to = window(b, 60);
	struct fi_msg_rma write = write_of(a, &iov, &to, &iov);
	struct fi_msg msg = {.msg_iov = &iov, .desc = &a->desc, .iov_count = 1, .context = &msg};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		memset(a->memory, 'A' + (int)i, 60);
		OK(fi_writemsg(a->ep, &write, levels[i]));
		done(a, WROTE, &iov);
		CHECK(!memcmp(a->memory, b->memory + WINDOW, 60));
	}
	OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, b));
	write.data = 99;
	OK(fi_writemsg(a->ep, &write, FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA | FI_MORE));
	OK(fi_writemsg(a->ep, &write, FI_DELIVERY_COMPLETE));
	done(a, WROTE, &iov);
	done(a, WROTE, &iov);
	CHECK(done(b, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, b).data == 99);
	OK(fi_recv(b->ep, b->memory, 100, b->desc, 0, b));
	OK(fi_sendmsg(a->ep, &msg, FI_DELIVERY_COMPLETE));
	done(a, SENT, &msg);
	done(b, CAME, b);
	silent(a);
}

/* Each confirmed operation uses two slots of the queue, and frees both. */
static void many_confirmed(struct end *a, struct end *b)
{
	struct iovec iov = {a->memory, 8};
	struct fi_rma_iov to = window(b, 8);
	struct fi_msg_rma write = write_of(a, &iov, &to, a);

	for (int round = 0; round < 10; round++) {
		int posted = 0;
		ssize_t ret;

		while (!(ret = fi_writemsg(a->ep, &write, FI_COMMIT_COMPLETE)))
			posted++;
		CHECK(ret == -FI_EAGAIN && posted == 8);
		for (int i = 0; i < posted; i++)
			done(a, WROTE, a);
		silent(a);
	}
}

/* A confirmed operation has one completion, whichever of its two parts fails. */
static void not_confirmed(struct end *a, struct end *b)
{
	struct iovec iov = {a->memory, 8};
	struct fi_rma_iov to = window(b, 8);
	struct fi_msg_rma write = write_of(a, &iov, &to, a);
	struct fi_cq_err_entry err;

	OK(fi_writemsg(a->ep, &write, FI_DELIVERY_COMPLETE | FI_MORE));
	OK(fi_writemsg(a->ep, &write, FI_DELIVERY_COMPLETE));
	err = failed(a, a);
	CHECK(err.err == FI_EACCES && err.flags == WROTE);
	err = failed(a, a);
	CHECK(err.err == FI_ECANCELED && err.flags == WROTE);
	silent(a);
}

static void atomic_writes(struct end *a, struct end *b)
{
	struct fi_rma_iov to = window(b, 8);
	volatile uint64_t *cell = (uint64_t *)(void *)(b->memory + WINDOW);
	uint64_t value = 0x1122334455667788;
	struct fi_ioc ioc = {&value, 1};
	struct fi_rma_ioc remote = {to.addr, 1, to.key};
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
				    .iov_count = 1,
				    .rma_iov = &remote,
				    .rma_iov_count = 1,
				    .datatype = FI_INT64,
				    .op = FI_ATOMIC_WRITE,
				    .context = b};
	struct fi_atomic_attr attr;
	size_t count = 0;

	OK(fi_atomic(a->ep, &value, 1, NULL, 0, to.addr, to.key, FI_UINT64, FI_ATOMIC_WRITE, a));
	value = 1; /* the operand was read in the call */
	done(a, FI_ATOMIC | FI_WRITE, a);
	CHECK(*cell == 0x1122334455667788);
	OK(fi_atomicmsg(a->ep, &msg, FI_DELIVERY_COMPLETE));
	done(a, FI_ATOMIC | FI_WRITE, b);
	CHECK(*cell == 1);
	value = 2;
	OK(fi_atomicmsg(a->ep, &msg, FI_COMMIT_COMPLETE | FI_FENCE));
	done(a, FI_ATOMIC | FI_WRITE, b);
	CHECK(*cell == 2);
	value = 3;
	OK(fi_atomicv(a->ep, &ioc, NULL, 1, 0, to.addr, to.key, FI_UINT64, FI_ATOMIC_WRITE, a));
	done(a, FI_ATOMIC | FI_WRITE, a);
	CHECK(*cell == 3);
	value = 4;
	OK(fi_inject_atomic(a->ep, &value, 1, 0, to.addr, to.key, FI_UINT64, FI_ATOMIC_WRITE));
	OK(fi_fetch_atomic(a->ep, &value, 1, NULL, a->memory, a->desc, 0, to.addr, to.key,
			   FI_UINT64, FI_SUM, a));
	done(a, FETCHED, a);
	CHECK(!memcmp(a->memory, &(uint64_t){4}, 8) && *cell == 8);
	silent(a);

	CHECK(fi_atomic(a->ep, &value, 1, NULL, 0, to.addr + 4, to.key, FI_UINT64, FI_ATOMIC_WRITE,
			a) == -FI_EINVAL);
	CHECK(fi_atomic(a->ep, &value, 2, NULL, 0, to.addr, to.key, FI_UINT64, FI_ATOMIC_WRITE,
			a) == -FI_EINVAL);
	CHECK(fi_atomic(a->ep, &value, 1, NULL, 0, to.addr, to.key, FI_UINT32, FI_ATOMIC_WRITE,
			a) == -FI_EOPNOTSUPP);
	OK(fi_atomicvalid(a->ep, FI_UINT64, FI_ATOMIC_WRITE, &count));
	CHECK(count == 1);
	OK(fi_query_atomic(domain, FI_UINT64, FI_ATOMIC_WRITE, &attr, 0));
	CHECK(attr.count == 1 && attr.size == 8);
}

/* Atomic writes keep the order with other operations, and use as many slots as these. */
static void atomic_writes_in_order(struct end *a, struct end *b)
{
	struct fi_rma_iov to = window(b, 8);
	volatile uint64_t *cell = (uint64_t *)(void *)(b->memory + WINDOW);

	for (uint64_t i = 1; i <= 40; i++) {
		struct iovec iov = {a->memory, 8};
		struct fi_msg_rma write = write_of(a, &iov, &to, a);

		memcpy(a->memory, &i, 8);
		OK(fi_writemsg(a->ep, &write, FI_MORE));
		OK(fi_atomic(a->ep, &(uint64_t){i + 1000}, 1, NULL, 0, to.addr, to.key, FI_UINT64,
			     FI_ATOMIC_WRITE, b));
		done(a, WROTE, a);
		done(a, FI_ATOMIC | FI_WRITE, b);
		CHECK(*cell == i + 1000);
	}
}

static void kept(struct end *a, struct end *b)
{
	struct fid_cntr *cntr;
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};

	OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, a));
	CHECK(fi_cancel(&b->ep->fid, a) == -FI_EOPNOTSUPP);
	OK(fi_cancel(&b->ep->fid, b));
	OK(fi_send(a->ep, a->memory, 8, a->desc, 0, a));
	done(a, SENT, a);
	done(b, CAME, a);
	OK(fi_cancel(&b->ep->fid, a));
	OK(fi_cntr_open(domain, &attr, &cntr, NULL));
	CHECK(fi_mr_bind(a->mr, &cntr->fid, FI_REMOTE_WRITE) == -FI_EOPNOTSUPP);
	OK(fi_close(&cntr->fid));
}

static double seconds(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/*
 * A send without a receive arrives soon after the receive is posted. The best of several tries
 * counts, as the host may be busy.
 */
static void late(struct end *a, struct end *b)
{
	double best = 1;

	for (int i = 0; i < 8; i++) {
		double start;

		OK(fi_send(a->ep, "late...", 8, NULL, 0, a));
		silent(b);
		start = seconds();
		OK(fi_recv(b->ep, b->memory, 8, b->desc, 0, b));
		done(b, CAME, b);
		if (seconds() - start < best)
			best = seconds() - start;
		done(a, SENT, a);
	}
	CHECK(best < 0.3);
}

static int post_all(const struct end *e)
{
	int posted = 0;
	ssize_t ret;

	while (!(ret = fi_recv(shared, e->memory + WINDOW, 8, e->desc, 0, (void *)(uintptr_t)e)))
		posted++;
	CHECK(ret == -FI_EAGAIN);
	return posted;
}

static void to_shared(struct end *from, struct end *to, const char *word, const void *context)
{
	struct fi_cq_data_entry got;

	OK(fi_send(from->ep, word, 8, NULL, 0, from));
	done(from, SENT, from);
	got = done(to, CAME, (void *)(uintptr_t)context);
	CHECK(got.len == 8);
}

/* Two connections receive into the oldest receive of their shared context. */
static void share(struct end *a, struct end *b)
{
	struct fi_rx_attr attr = *info->rx_attr;
	struct end c, d, e, f;
	struct fid_ep *alias;

	CHECK(info->domain_attr->max_ep_srx_ctx > 0);
	OK(fi_srx_context(domain, &attr, &shared, NULL));
	connect_with(&c, &d, ACCESS);
	connect_with(&e, &f, ACCESS);
	CHECK(fi_recv(d.ep, d.memory, 8, d.desc, 0, &d) == -FI_EOPNOTSUPP);
	CHECK(fi_close(&shared->fid) == -FI_EBUSY);
	OK(fi_ep_alias(shared, &alias, FI_RECV));
	for (int i = 0; i < 4; i++)
		OK(fi_recv(i % 2 ? alias : shared, a->memory + i * 8, 8, a->desc, 0,
			   &a->memory[i]));
	OK(fi_close(&alias->fid));
	CHECK(fi_cancel(&shared->fid, &a->memory[3]) == -FI_EOPNOTSUPP);
	OK(fi_cancel(&shared->fid, b));
	to_shared(&c, &d, "one....", &a->memory[0]);
	to_shared(&e, &f, "two....", &a->memory[1]);
	to_shared(&d, &c, "three..", &a->memory[2]);
	to_shared(&c, &d, "four...", &a->memory[3]);
	CHECK(!memcmp(a->memory, "one....\0two....\0three..\0four...", 32));

	/* The message waits for a receive. */
	OK(fi_send(c.ep, "late...", 8, NULL, 0, &c));
	silent(&d);
	CHECK(post_all(b) == 16);
	done(&d, CAME, b);
	done(&c, SENT, &c);
	CHECK(!strcmp(b->memory + WINDOW, "late..."));

	/* Messages received before the endpoint is closed are reported. */
	OK(fi_send(c.ep, "parting", 8, NULL, 0, &c));
	done(&c, SENT, &c);
	OK(fi_close(&d.ep->fid));
	d.ep = NULL;
	done(&d, CAME, b);
	CHECK(!strcmp(b->memory + WINDOW, "parting"));
	close_end(&c);
	close_end(&d);
	CHECK(post_all(b) == 2);
	to_shared(&e, &f, "go on..", b);
	close_end(&e);
	close_end(&f);
	CHECK(post_all(b) == 1);
	OK(fi_close(&shared->fid));
	shared = NULL;
}

static const struct msg_case cases[] = {
	{"together", together, false, false, 0},
	{"all together", all_together, false, false, 0},
	{"injected with more", injected_with_more, false, false, 0},
	{"held at the end", paused_at_the_end, false, false, 0},
	{"confirmed", confirmed, false, false, 0},
	{"many confirmed", many_confirmed, false, false, 0},
	{"not confirmed", not_confirmed, false, false, FI_RECV | FI_REMOTE_READ},
	{"atomic writes", atomic_writes, false, false, 0},
	{"atomic writes in order", atomic_writes_in_order, false, false, 0},
	{"kept", kept, false, false, 0},
	{"late", late, false, false, 0},
	{"share", share, false, false, 0},
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	run_cases(argv[1], cases, sizeof(cases) / sizeof(cases[0]));
	return 0;
}
