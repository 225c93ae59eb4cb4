/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of reads and writes of mixed sizes to overlapping ranges, posted without waiting. The
 * results must be those of the operations in the order of posting. Needs rma_buf.h.
 */
#ifndef API_RMA_STREAM_H
#define API_RMA_STREAM_H

#define STREAM_SIZE  (96u << 10) /* bytes that all ranges lie in */
#define STREAM_COUNT 400

struct stream_op {
	unsigned char *buf, *want; /* want: expected content of `buf` at the end */
	size_t len;
	bool done;
};

struct stream {
	struct rma *r;
	fi_addr_t peer;
	struct rma_key key;   /* of at least STREAM_SIZE bytes */
	unsigned char *model; /* expected target memory after the operations posted so far */
	unsigned int seed;    /* of the random choices */
	unsigned int reads;   /* percentage of reads */
	uint64_t flags;       /* for some of the ...msg calls: FI_MORE, FI_FENCE */
	size_t done;
	struct stream_op ops[STREAM_COUNT];
};

static inline unsigned int stream_random(struct stream *s, unsigned int below)
{
	s->seed = s->seed * 1664525 + 1013904223;
	return (s->seed >> 8) % below;
}

/* Reads one completion, if there is one. */
static inline void stream_reap(struct stream *s)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(s->r->o.cq, &e, 1);
	struct stream_op *op;

	if (ret == -FI_EAGAIN) {
		rma_progress(s->r);
		return;
	}
	if (ret != 1)
		obj_cq_failed(s->r->o.cq, ret);
	op = e.op_context;
	api_check_eq(op >= s->ops && op < s->ops + STREAM_COUNT, 1, "a context that was given");
	api_check_eq(op->done, 0, "completions of this operation before");
	op->done = true;
	s->done++;
}

static inline enum rma_form stream_form(struct stream *s, size_t len)
{
	static const enum rma_form writes[] = {RMA_WRITE, RMA_WRITEV, RMA_WRITEMSG, RMA_INJECT};
	static const enum rma_form reads[] = {RMA_READ, RMA_READV, RMA_READMSG};
	bool fits = len <= s->r->o.info->tx_attr->inject_size;

	if (stream_random(s, 100) < s->reads)
		return reads[stream_random(s, 3)];
	return writes[stream_random(s, fits ? 4 : 3)];
}

static inline void stream_prepare(struct stream_op *op, enum rma_form form, unsigned char *model,
				  unsigned int seed)
{
	op->buf = malloc(op->len + 1);
	op->want = malloc(op->len + 1);
	if (!op->buf || !op->want)
		api_fail("no memory");
	if (rma_reads(form)) {
		memset(op->buf, DATA_EMPTY, op->len);
		memcpy(op->want, model, op->len);
		return;
	}
	data_fill(op->buf, op->len, seed);
	memcpy(model, op->buf, op->len);
	memcpy(op->want, op->buf, op->len);
}

static inline void stream_one(struct stream *s, unsigned int i)
{
	static const size_t lens[] = {1, 8, 24, 64, 500, 4096, 4097, 20000, 70000};
	struct stream_op *op = &s->ops[i];
	size_t len = lens[stream_random(s, API_COUNT(lens))];
	size_t at = stream_random(s, STREAM_SIZE - (unsigned int)len), half = len / 2;
	enum rma_form form = stream_form(s, len);
	size_t ranges = s->r->o.info->tx_attr->rma_iov_limit > 1 ? 2 : 1;
	struct fi_rma_iov to[2] = {{s->key.base + at, ranges > 1 ? half : len, s->key.key},
				   {s->key.base + at + half, len - half, s->key.key}};
	struct iovec iov;
	ssize_t ret;

	op->len = len;
	stream_prepare(op, form, s->model + at, i + s->seed % 256);
	iov = (struct iovec){op->buf, len};
	OBJ_UNTIL((ret = rma_post(s->r->o.ep,
				  &(struct rma_op){.form = form,
						   .iov = &iov,
						   .count = 1,
						   .to = to,
						   .to_count = ranges,
						   .peer = s->peer,
						   .flags = stream_random(s, 2) ? s->flags : 0,
						   .context = op})) != -FI_EAGAIN,
		  stream_reap(s));
	api_check_eq(ret, 0, "posting a read or write");
	s->r->done[rma_reads(form)]++;
	if (!rma_injects(form))
		return;
	memset(op->buf, DATA_GUARD, len);
	memset(op->want, DATA_GUARD, len);
	op->done = true;
	s->done++;
}

/*
 * Posts all operations, waits for them, and checks the data of reads. The caller compares the
 * target with the model.
 */
static inline void stream_run(struct stream *s)
{
	s->done = 0;
	memset(s->ops, 0, sizeof(s->ops));
	for (unsigned int i = 0; i < STREAM_COUNT; i++)
		stream_one(s, i);
	OBJ_UNTIL(s->done == STREAM_COUNT, stream_reap(s));
	rma_counted(s->r);
	for (unsigned int i = 0; i < STREAM_COUNT; i++) {
		rma_same(s->ops[i].buf, s->ops[i].want, s->ops[i].len);
		free(s->ops[i].buf);
		free(s->ops[i].want);
	}
}

#define STREAM_RUN(...) (api_at(__FILE__, __LINE__), stream_run(__VA_ARGS__))

#endif
