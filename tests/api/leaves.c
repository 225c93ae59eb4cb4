/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a call has accepted has left the sender's hands: it arrives though its process, which lives, never calls the
 * library again. Messages and writes up to the longest that go as one packet, the first ones to a peer, and those behind
 * as many as a receiver that does not look lets go.
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"

#define LONGEST 262144u
#define MOST    2000u /* messages to a receiver that does not look */
#define MISSES  3000u /* calls, one after the other, that find no space: then none will come */

enum kind { SEND, TSEND, INJECT, WRITE, INJECT_WRITE, KINDS };

static unsigned char bytes[LONGEST], in[LONGEST];

struct target {
	uint64_t base, key;
};

struct ends {
	struct side s;
	struct fid_mr *mr;
	struct target there;
	enum kind kind;
	size_t len;
	bool reads; /* the sender reads its queue after a call that finds no space */
};

static const size_t lengths[] = {200, 4096, 16384, 65536, LONGEST};

static bool applies(enum kind kind, size_t len)
{
	if (len > 4096 && !api_networked())
		return false; /* longer messages are announced there */
	return len <= 4096 || (kind != INJECT && kind != INJECT_WRITE);
}

static void open_ends(struct ends *e, struct api *a)
{
	struct target mine, of[API_RANKS];
	bool virtual;

	side_open(&e->s, a, &(struct side_opts){.caps = FI_MSG | FI_TAGGED | FI_RMA});
	OK(fi_mr_reg(e->s.domain, in, sizeof(in), FI_REMOTE_WRITE, 0, 4711, 0, &e->mr, NULL));
	virtual = e->s.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	mine = (struct target){virtual ? (uintptr_t)in : 0, fi_mr_key(e->mr)};
	api_swap(a, &mine, of, sizeof(mine));
	e->there = of[0];
}

static ssize_t post(struct ends *e, uint64_t data)
{
	struct side *s = &e->s;
	fi_addr_t to = s->addr[0];

	switch (e->kind) {
	case SEND:
		return fi_senddata(s->ep, bytes, e->len, NULL, data, to, NULL);
	case TSEND:
		return fi_tsenddata(s->ep, bytes, e->len, NULL, data, to, data, NULL);
	case INJECT:
		return fi_injectdata(s->ep, bytes, e->len, data, to);
	case WRITE:
		return fi_writedata(s->ep, bytes, e->len, NULL, data, to, e->there.base,
				    e->there.key, NULL);
	default:
		return fi_inject_writedata(s->ep, bytes, e->len, data, to, e->there.base,
					   e->there.key);
	}
}

/* Posts until it succeeds, or nothing is to be expected. */
static bool posted(struct ends *e, uint64_t data)
{
	struct fi_cq_tagged_entry entry;

	for (unsigned int i = 0; i < MISSES || !data; i++) {
		ssize_t ret = post(e, data);

		if (!ret)
			return true;
		CHECK_EQ(ret, -FI_EAGAIN);
		if (e->reads)
			fi_cq_read(e->s.tx, &entry, 1);
	}
	return false;
}

static void receive(struct ends *e, uint64_t data)
{
	struct fi_cq_tagged_entry got;

	if (e->kind == TSEND)
		POST(&e->s, fi_trecv(e->s.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, data, 0, NULL));
	else if (e->kind == SEND || e->kind == INJECT)
		POST(&e->s, fi_recv(e->s.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
	got = TAKE(&e->s, e->s.rx);
	CHECK_EQ(got.data, data);
	data_check(in, e->len, 5);
}

/*
 * From here on rank 1, which has sent up to `last`, only talks to rank 0 beside the library, and rank 0 gets what there is
 * from `next` on.
 */
static void leave(struct ends *e, uint64_t next, uint64_t last)
{
	struct api *a = e->s.a;

	if (a->rank) {
		a->progress = NULL;
		api_tell(a, 0, &last, sizeof(last));
		api_hear(a, 0, &(char){0}, 1);
	} else {
		api_hear(a, 1, &last, sizeof(last));
		while (next <= last)
			receive(e, next++);
		api_tell(a, 1, "", 1);
	}
	a->progress = side_progress;
}

static void first(struct api *a, enum kind kind, size_t len, bool reads)
{
	struct ends e = {.kind = kind, .len = len, .reads = reads};

	open_ends(&e, a);
	if (a->rank)
		CHECK(posted(&e, 0));
	leave(&e, 0, 0);
	OK(fi_close(&e.mr->fid));
	side_close(&e.s);
}

static void each_first(struct api *a, bool reads)
{
	data_fill(bytes, sizeof(bytes), 5);
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < API_COUNT(lengths); i++)
			if (applies(kind, lengths[i]))
				first(a, kind, lengths[i], reads);
}

static void first_ones(struct api *a)
{
	each_first(a, true);
}

static void first_ones_unread(struct api *a)
{
	each_first(a, false);
}

/* Connects, then sends until the receiver's ring, or the kernels, are full. */
static void full(struct api *a, enum kind kind, size_t len)
{
	struct ends e = {.kind = kind, .len = len, .reads = true};
	uint64_t last = 0;

	open_ends(&e, a);
	if (a->rank)
		CHECK(posted(&e, 0));
	else
		receive(&e, 0);
	api_meet(a);
	a->progress = NULL; /* rank 0 does not look */
	while (a->rank && last < MOST && posted(&e, last + 1))
		last++;
	leave(&e, 1, last);
	OK(fi_close(&e.mr->fid));
	side_close(&e.s);
}

static void full_ones(struct api *a)
{
	data_fill(bytes, sizeof(bytes), 5);
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < API_COUNT(lengths); i++)
			if (applies(kind, lengths[i]))
				full(a, kind, lengths[i]);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"first", first_ones, 2, {0}},
		{"first-unread", first_ones_unread, 2, {0}},
		{"full", full_ones, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
