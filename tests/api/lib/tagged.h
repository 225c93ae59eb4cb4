/* SPDX-License-Identifier: BSD-2-Clause */
/* Tagged receives as targets of atomics, and these atomics. Needs atomic.h. */
#ifndef API_TAGGED_H
#define API_TAGGED_H

#define TAGGED_ROOM  8192 /* bytes of a receive buffer */
#define TAGGED_QUIET 8    /* ms */
#define TAGGED_TAG   UINT64_C(0xfeed0000beef0001)

/* Skips other libraries: none is known to support them. */
static inline void tagged_open(struct amo_side *m, struct api *a)
{
	if (api_other())
		api_skip("no atomics on tagged receives");
	amo_open(m, a, &(struct side_opts){0}, AMO_ACCESS);
}

/* Returns the receive buffer, in memory shared by both processes. */
static inline unsigned char *tagged_buffer(struct api *a)
{
	return amo_memory(a, 0) + DATA_GAP;
}

static inline void tagged_ready(struct api *a, unsigned int seed)
{
	memset(amo_memory(a, 0), DATA_GUARD, TAGGED_ROOM + 2 * DATA_GAP);
	data_fill(tagged_buffer(a), TAGGED_ROOM, seed);
}

static inline void tagged_receive(struct amo_side *m, size_t room, uint64_t tag, uint64_t ignore,
				  void *context)
{
	POST(&m->s, fi_trecv(m->s.ep, tagged_buffer(m->s.a), room, NULL, FI_ADDR_UNSPEC, tag,
			     ignore, context));
}

/* Waits for a receive that an atomic completed. Its length includes the bytes before the target. */
static inline struct fi_cq_tagged_entry tagged_ended(struct amo_side *m, const void *context,
						     uint64_t tag, size_t len)
{
	struct fi_cq_tagged_entry e = TAKE(&m->s, m->s.rx);

	CHECK_EQ((uintptr_t)e.op_context, (uintptr_t)context);
	CHECK_EQ(e.flags & AMO_FLAGS & ~FI_REMOTE_CQ_DATA, FI_TAGGED | FI_RECV | FI_ATOMIC);
	CHECK_EQ(e.tag, tag);
	CHECK_EQ(e.len, len);
	return e;
}

/* Addresses `one` to a tag instead of a key, and an offset instead of an address. */
static inline void tagged_aim(struct amo *one, const struct amo_side *m, uint64_t tag,
			      uint64_t offset, size_t count)
{
	one->form = AMO_MSG;
	amo_aim(one, m, 0, 0, count);
	one->target[0] = (struct fi_rma_ioc){offset, count, tag};
	one->flags |= FI_TAGGED;
}

#endif
