/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for both ends of a one-sided operation: pieces of uneven lengths with guard bytes, at
 * rising or falling addresses. A step is one operation that both ends check. Needs rma.h.
 */
#ifndef API_RMA_BUF_H
#define API_RMA_BUF_H

#define RMA_IOV     16
#define RMA_EMPTY   (-1) /* in place of a seed: no message was written */
#define RMA_CQ_DATA UINT64_C(0xfedcba9876543210)

struct rma_buf {
	unsigned char *memory;
	size_t total, len, count;
	struct iovec iov[RMA_IOV];
};

/*
 * Returns the length of piece `i`. Lengths rise, or fall if `falling`; pieces of short messages may
 * be empty.
 */
static inline size_t rma_piece(size_t len, size_t count, size_t i, bool falling)
{
	size_t n = falling ? count - 1 - i : i;
	size_t all = count * count;

	return len * (n + 1) * (n + 1) / all - len * n * n / all;
}

/*
 * Equal arguments give equal offsets in all processes. If `falling`, pieces lie at falling
 * addresses.
 */
static inline struct rma_buf rma_buf_new(size_t len, size_t count, bool falling)
{
	struct rma_buf b = {.len = len, .count = count};
	size_t at = DATA_GAP + 1;

	b.total = len + (count + 1) * (DATA_GAP + 1);
	b.memory = malloc(b.total);
	if (!b.memory)
		api_fail("no memory");
	for (size_t n = 0; n < count; n++) {
		size_t i = falling ? count - 1 - n : n;

		b.iov[i] = (struct iovec){b.memory + at, rma_piece(len, count, i, falling)};
		at += b.iov[i].iov_len + DATA_GAP + 1;
	}
	return b;
}

static inline void rma_buf_free(struct rma_buf *b)
{
	free(b->memory);
	b->memory = NULL;
}

static inline size_t rma_buf_offset(const struct rma_buf *b, size_t i)
{
	return (size_t)((unsigned char *)b->iov[i].iov_base - b->memory);
}

/* Writes to `image` the content of `b` after message `seed`. */
static inline void rma_buf_paint(const struct rma_buf *b, unsigned char *image, int seed)
{
	size_t from = 0;

	memset(image, DATA_GUARD, b->total);
	for (size_t i = 0; i < b->count; i++) {
		unsigned char *at = image + rma_buf_offset(b, i);

		for (size_t j = 0; j < b->iov[i].iov_len; j++)
			at[j] = seed == RMA_EMPTY ? DATA_EMPTY
						  : data_byte((unsigned int)seed, from + j);
		from += b->iov[i].iov_len;
	}
}

static inline void rma_buf_set(const struct rma_buf *b, int seed)
{
	rma_buf_paint(b, b->memory, seed);
}

/*
 * Other processes write the memory compared here. The thread sanitizer does not see how they
 * synchronize.
 */
static __attribute__((no_sanitize("thread"))) size_t
rma_difference(const unsigned char *got, const unsigned char *want, size_t len)
{
	size_t i = 0;

	while (i < len && got[i] == want[i])
		i++;
	return i;
}

static inline void rma_same(const unsigned char *got, const unsigned char *want, size_t len)
{
	size_t i = rma_difference(got, want, len);
	char line[128];

	if (i == len)
		return;
	snprintf(line, sizeof(line), "byte %zu of %zu is %#x, wanted %#x", i, len, got[i], want[i]);
	api_fail(line);
}

static inline void rma_buf_expect(const struct rma_buf *b, int seed)
{
	unsigned char *image = malloc(b->total);

	if (!image)
		api_fail("no memory");
	rma_buf_paint(b, image, seed);
	rma_same(b->memory, image, b->total);
	free(image);
}

#define RMA_SAME(...)   (api_at(__FILE__, __LINE__), rma_same(__VA_ARGS__))
#define RMA_EXPECT(...) (api_at(__FILE__, __LINE__), rma_buf_expect(__VA_ARGS__))

/* Writes the pieces of `b` as remote ranges to `to`. `key` is that of a region over all of `b`. */
static inline void rma_ranges(const struct rma_buf *b, const struct rma_key *key,
			      struct fi_rma_iov *to)
{
	for (size_t i = 0; i < b->count; i++)
		to[i] = (struct fi_rma_iov){key->base + rma_buf_offset(b, i), b->iov[i].iov_len,
					    key->key};
}

/* ---- A region of the last rank, whose key all ranks know ------------------------------------- */

struct rma_target {
	struct fid_mr *mr; /* on the last rank only */
	struct rma_key key;
};

static inline void rma_target_open(struct rma *r, struct rma_target *t, void *memory, size_t len)
{
	int owner = r->a->ranks - 1;

	*t = (struct rma_target){0};
	if (r->a->rank == owner) {
		t->mr = rma_reg(r, memory, len, RMA_REMOTE);
		t->key = rma_key(r, t->mr, memory, len);
	}
	t->key = rma_share(r, owner, &t->key);
}

/* Waits until all ranks are done, then closes the region. */
static inline void rma_target_close(struct rma *r, struct rma_target *t)
{
	api_meet(r->a);
	if (t->mr)
		CLOSE(t->mr);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/*
 * One operation of rank 0 on memory of rank 1, checked at both ends. Without automatic progress
 * (a->progress set), rank 1 reads its completion before rank 0 meets it.
 */
struct rma_step {
	enum rma_form form;
	size_t len;
	size_t count, to_count; /* local pieces, remote ranges */
	bool falling;           /* local pieces; the remote ranges are the other way round */
	unsigned int seed;      /* incremented by each step */
	uint64_t flags;
};

static inline void rma_step_op(const struct rma_step *st, struct rma_op *op)
{
	op->form = st->form;
	op->flags = st->flags;
	op->data = RMA_CQ_DATA + st->seed;
	if (pair_bare())
		op->data &= UINT32_MAX; /* a device carries 32 bits of remote CQ data */
	op->to_count = st->to_count;
}

static inline void rma_step_target(struct rma *r, const struct rma_step *st)
{
	struct rma_buf b = rma_buf_new(st->len, st->to_count, !st->falling);
	bool reads = rma_reads(st->form);
	struct rma_op op = {0};
	struct rma_key key;
	struct fid_mr *mr;

	rma_step_op(st, &op);
	if (rma_has_data(&op) && pair_bare()) /* remote CQ data consumes a receive */
		OK(fi_recv(r->o.ep, NULL, 0, NULL, 0, NULL));
	rma_buf_set(&b, reads ? (int)st->seed : RMA_EMPTY);
	/* On bare queue pairs a read confirms that a write has arrived. */
	mr = rma_reg(r, b.memory, b.total,
		     pair_bare() ? RMA_REMOTE
		     : reads     ? FI_REMOTE_READ
				 : FI_REMOTE_WRITE);
	key = rma_key(r, mr, b.memory, b.total);
	rma_share(r, 1, &key);
	if (!r->a->progress)
		api_meet(r->a);
	if (rma_has_data(&op))
		RMA_NOTIFIED(r, r->in, op.data, b.len);
	if (r->a->progress)
		api_meet(r->a);
	RMA_EXPECT(&b, (int)st->seed);
	CLOSE(mr);
	rma_buf_free(&b);
}

static inline void rma_step_initiator(struct rma *r, const struct rma_step *st)
{
	struct rma_buf there = rma_buf_new(st->len, st->to_count, !st->falling);
	struct rma_buf here = rma_buf_new(st->len, st->count, st->falling);
	struct rma_key key = rma_share(r, 1, NULL);
	struct fi_rma_iov to[RMA_IOV];
	struct rma_op op = {
		.iov = here.iov, .count = here.count, .to = to, .peer = r->addr[1], .context = &op};

	rma_step_op(st, &op);
	rma_ranges(&there, &key, to);
	rma_buf_set(&here, rma_reads(st->form) ? RMA_EMPTY : (int)st->seed);
	RMA_RUN(r, &op);
	RMA_EXPECT(&here, (int)st->seed);
	api_meet(r->a);
	rma_buf_free(&there);
	rma_buf_free(&here);
}

/* Runs a step; both ranks call it. Limits pieces and ranges to what the endpoint supports. */
static inline void rma_step(struct rma *r, struct rma_step *step)
{
	struct rma_step st = *step;

	st.seed = ++step->seed;
	if (st.count > r->o.info->tx_attr->iov_limit)
		st.count = r->o.info->tx_attr->iov_limit;
	if (st.to_count > r->o.info->tx_attr->rma_iov_limit)
		st.to_count = r->o.info->tx_attr->rma_iov_limit;
	if (r->a->rank == 1)
		rma_step_target(r, &st);
	else
		rma_step_initiator(r, &st);
}

/* Returns whether the form can carry the length. */
static inline bool rma_fits(const struct rma *r, const struct rma_step *st)
{
	bool inject = rma_injects(st->form) || (st->flags & FI_INJECT);

	return !inject || st->len <= r->o.info->tx_attr->inject_size;
}

#endif
