/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint that is closed, or shut down, first serves what has come: operations whose bytes had reached its process
 * before, unread, end with success at their initiator, and have been performed.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>

#include "obj.h"
#include "lib/rma.h"

#define LEN (4u << 20)
#define MANY                                                                                       \
	200 /* writes, so many that they are sent together; fewer where only so many go out to who does not look */
#define CALLS 1000 /* progress calls after which no more writes will go out */
#define DATA  0x1234u
/* In which the other kernel acknowledges what it has: until then ours may hold back later packets. */
#define ACK_US 100000

/* Rank 0 has an operation under way with rank 1. */
struct last {
	struct rma r;
	struct rma_key key; /* of `region` of rank 1 */
};

static unsigned char region[LEN], local[LEN], result[LEN];

struct deed {
	const char *name;
	size_t len;
	ssize_t (*post)(struct last *l, size_t len);
	unsigned int ends; /* operations, each with a completion at rank 0 */
	bool receives;     /* rank 1 gets a completion */
};

static ssize_t put(struct last *l, size_t len)
{
	return fi_write(l->r.o.ep, local, len, NULL, l->r.addr[1], l->key.base, l->key.key, local);
}

static ssize_t put_data(struct last *l, size_t len)
{
	return fi_writedata(l->r.o.ep, local, len, NULL, DATA, l->r.addr[1], l->key.base,
			    l->key.key, local);
}

static ssize_t put_delivered(struct last *l, size_t len)
{
	struct iovec iov[2] = {{local, len / 2}, {local + len / 2, len - len / 2}};
	struct fi_rma_iov to[2] = {{l->key.base, len - 1, l->key.key},
				   {l->key.base + len - 1, 1, l->key.key}};

	return rma_post(l->r.o.ep, &(struct rma_op){.form = RMA_WRITEMSG,
						    .iov = iov,
						    .count = 2,
						    .to = to,
						    .to_count = 2,
						    .peer = l->r.addr[1],
						    .flags = FI_DELIVERY_COMPLETE,
						    .context = local});
}

static ssize_t get(struct last *l, size_t len)
{
	return fi_read(l->r.o.ep, result, len, NULL, l->r.addr[1], l->key.base, l->key.key, local);
}

static ssize_t add(struct last *l, size_t len)
{
	return fi_atomic(l->r.o.ep, local, len, NULL, l->r.addr[1], l->key.base, l->key.key,
			 FI_UINT8, FI_BOR, local);
}

static ssize_t fetch(struct last *l, size_t len)
{
	return fi_fetch_atomic(l->r.o.ep, local, len, NULL, result, NULL, l->r.addr[1], l->key.base,
			       l->key.key, FI_UINT8, FI_ATOMIC_WRITE, local);
}

static ssize_t swap(struct last *l, size_t len)
{
	static const unsigned char zeros[64];

	return fi_compare_atomic(l->r.o.ep, local, len, NULL, zeros, NULL, result, NULL,
				 l->r.addr[1], l->key.base, l->key.key, FI_UINT8, FI_CSWAP, local);
}

static ssize_t tell(struct last *l, size_t len)
{
	struct iovec iov = {local, len};

	return fi_sendmsg(
		l->r.o.ep,
		&(struct fi_msg){
			.msg_iov = &iov, .iov_count = 1, .addr = l->r.addr[1], .context = local},
		FI_DELIVERY_COMPLETE);
}

static ssize_t tell_tagged(struct last *l, size_t len)
{
	struct iovec iov = {local, len};

	return fi_tsendmsg(l->r.o.ep,
			   &(struct fi_msg_tagged){.msg_iov = &iov,
						   .iov_count = 1,
						   .addr = l->r.addr[1],
						   .tag = 7,
						   .context = local},
			   FI_MATCH_COMPLETE);
}

static const struct deed deeds[] = {
	{"write of 8", 8, put, 1, false},
	{"write", 4096, put, 1, false},
	{"longer write", 32768, put, 1, false},
	{"writes", 8, put, MANY, false},
	{"write with data", 64, put_data, 1, true},
	{"list, delivered", 3000, put_delivered, 1, false},
	{"read of 8", 8, get, 1, false},
	{"read", 4096, get, 1, false},
	{"long read", LEN, get, 1, false},
	{"atomic", 16, add, 1, false},
	{"fetching atomic", 16, fetch, 1, false},
	{"comparing atomic", 16, swap, 1, false},
	{"message", 100, tell, 1, true},
	{"longer message", 6000, tell, 1, true},
	{"tagged message", 100, tell_tagged, 1, true},
};

/* Posts the operation; -FI_EAGAIN if there is no space for it even after CALLS progress calls. */
static ssize_t post(struct last *l, const struct deed *d)
{
	ssize_t ret = -FI_EAGAIN;

	for (unsigned int i = 0; i < CALLS && ret == -FI_EAGAIN; i++) {
		ret = d->post(l, d->len);
		rma_progress(&l->r);
	}
	return ret;
}

/* Posts the operations, and makes progress so that they leave the process. Returns their number. */
static unsigned int begin(struct last *l, const struct deed *d)
{
	unsigned int posted = 0;
	ssize_t ret = 0;

	while (posted < d->ends && ret == 0) {
		ret = post(l, d);
		posted += ret == 0;
	}
	if (!posted || ret != -FI_EAGAIN)
		api_check_eq(ret, 0, d->name);
	for (unsigned int i = 0; i < 100; i++)
		fi_cq_read(l->r.o.cq, NULL, 0);
	if (posted > 1)
		obj_sleep_us(ACK_US);
	return posted;
}

static void finish(struct last *l, const struct deed *d, unsigned int posted)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {0};
	ssize_t ret;

	for (unsigned int i = 0; i < posted; i++) {
		OBJ_UNTIL((ret = fi_cq_read(l->r.o.cq, &e, 1)) != -FI_EAGAIN, rma_progress(&l->r));
		if (ret == -FI_EAVAIL)
			fi_cq_readerr(l->r.o.cq, &err, 0);
		api_check_eq(ret == 1 ? 0 : -err.err, 0, d->name);
		CHECK(e.op_context == local);
	}
	if (d->post == get)
		CHECK(!memcmp(result, local, d->len));
}

/* Rank 1 looks at nothing before it closes. */
static void leave(struct last *l, const struct deed *d, bool shut)
{
	struct fi_cq_tagged_entry e;

	if (shut)
		OK(fi_shutdown(l->r.o.ep, 0));
	else
		CLOSE(l->r.o.ep);
	if (!shut)
		l->r.o.ep = NULL;
	if (d->receives) {
		api_at(__FILE__, __LINE__);
		api_check_eq(fi_cq_read(l->r.in, &e, 1), 1, d->name);
	}
	api_check_eq(memcmp(region, local, d->len), 0, d->name);
}

/* What rank 0 moves is 1 to 255; rank 1 has it in its region only if it is read. */
static void fill(const struct deed *d, int rank)
{
	for (size_t i = 0; i < d->len; i++)
		local[i] = (unsigned char)(i % 255 + 1);
	memset(region, 0, d->len);
	memset(result, 0, d->len);
	if (rank && d->post == get)
		memcpy(region, local, d->len);
}

static void round_of(struct api *a, const struct deed *d, bool shut)
{
	struct last l;
	unsigned int posted;
	struct fid_mr *mr;
	char byte = 0;

	fill(d, a->rank);
	rma_open(&l.r, a, &(struct rma_opts){.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC});
	mr = rma_reg(&l.r, region, LEN, RMA_REMOTE);
	l.key = rma_key(&l.r, mr, region, LEN);
	l.key = rma_share(&l.r, 1, &l.key);
	if (a->rank == 0)
		RMA_PLAIN(&l.r, RMA_WRITE, local, 0, &l.key, 0); /* connects */
	else if (d->post == tell)
		OK(fi_recv(l.r.o.ep, region, LEN, NULL, FI_ADDR_UNSPEC, NULL));
	else if (d->post == tell_tagged)
		OK(fi_trecv(l.r.o.ep, region, LEN, NULL, FI_ADDR_UNSPEC, 7, 0, NULL));
	api_meet(a);
	a->progress = NULL;
	if (a->rank == 0) {
		posted = begin(&l, d);
		api_tell(a, 1, &byte, 1);
		finish(&l, d, posted);
	} else {
		api_hear(a, 0, &byte, 1);
		leave(&l, d, shut);
	}
	api_meet(a);
	CLOSE(mr);
	rma_leave(&l.r);
}

/* A device performs a long read alone: the closing process does not know of it. */
static bool is_known(const struct deed *d)
{
	return d->len < LEN || strcmp(api_provider(), "verbs") != 0;
}

static void closes(struct api *a)
{
	for (unsigned int i = 0; i < API_COUNT(deeds); i++)
		if (is_known(&deeds[i]))
			round_of(a, &deeds[i], false);
}

static void shuts_down(struct api *a)
{
	for (unsigned int i = 0; i < API_COUNT(deeds); i++)
		round_of(a, &deeds[i], true);
}

/*
 * How a runtime exits: a barrier by messages, last writes to everybody without waiting, and all close. What was written
 * before the first of them closed is in the memory of each.
 */
static void exit_of(struct api *a)
{
	unsigned char *words = region, word = (unsigned char)(a->rank + 1);
	struct fid_mr *mr;
	struct last l;

	memset(region, 0, sizeof(region));
	rma_open(&l.r, a, &(struct rma_opts){.caps = FI_MSG | FI_RMA});
	mr = rma_reg(&l.r, region, LEN, RMA_REMOTE);
	for (int i = 0; i < a->ranks; i++)
		OK(fi_recv(l.r.o.ep, result + i, 1, NULL, FI_ADDR_UNSPEC, NULL));
	api_meet(a);
	for (int i = 0; i < a->ranks; i++)
		POST(l.r.o.cq, fi_inject(l.r.o.ep, &word, 1, l.r.addr[i]));
	for (int i = 0; i < a->ranks; i++)
		obj_next(l.r.in, NULL);
	api_meet(a);
	a->progress = NULL;
	for (int i = 0; i < a->ranks; i++) {
		struct rma_key mine = rma_key(&l.r, mr, region, LEN),
			       key = rma_share(&l.r, i, &mine);

		memset(local, word, 5000);
		POST(l.r.o.cq, fi_write(l.r.o.ep, local, 5000, NULL, l.r.addr[i],
					key.base + word * 5000u, key.key, NULL));
		POST(l.r.o.cq,
		     fi_inject_write(l.r.o.ep, &word, 1, l.r.addr[i], key.base + word, key.key));
	}
	api_meet(a);
	CLOSE(l.r.o.ep);
	l.r.o.ep = NULL;
	for (int i = 1; i <= a->ranks; i++) {
		CHECK_EQ(words[i], i);
		CHECK(data_all(words + i * 5000, 5000, (unsigned char)i));
	}
	api_meet(a);
	CLOSE(mr);
	rma_leave(&l.r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"closes", closes, 2, {0}},
		{"closes-no-cma", closes, 2, {"FI_SHM_DISABLE_CMA=yes"}},
		{"closes-connected", closes, 2, {"EP=msg"}},
		{"exit", exit_of, 4, {0}},
		{"exit-no-cma", exit_of, 4, {"FI_SHM_DISABLE_CMA=yes"}},
		{"shuts-down", shuts_down, 2, {"EP=msg"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
