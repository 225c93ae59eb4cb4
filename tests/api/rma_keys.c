/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations with all registration modes, and on all kinds of regions. fi_mr(3). */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define V1_17 FI_VERSION(1, 17)
#define V1_4  FI_VERSION(1, 4)

static const struct rules {
	int mode;
	uint32_t version;
} all_rules[] = {
	{RMA_PROVIDED, V1_17},    {FI_MR_PROV_KEY, V1_17},  {0, V1_17},
	{FI_MR_VIRT_ADDR, V1_17}, {FI_MR_ALLOCATED, V1_17}, {FI_MR_BASIC, V1_4},
	{FI_MR_SCALABLE, V1_4},
};

/* Opens a domain with these rules. Returns false if another library does not offer them. */
static bool open_rules(struct rma *r, struct api *a, const struct rules *rules)
{
	struct fi_info *hints, *info = NULL;
	int ret;

	hints = obj_hints(FI_MSG | FI_RMA);
	hints->domain_attr->mr_mode = rules->mode;
	ret = fi_getinfo(rules->version, NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	fi_freeinfo(info);
	if (ret && api_other())
		return false;
	OK(ret);
	rma_open(r, a, &(struct rma_opts){.mr_mode = rules->mode, .version = rules->version});
	return true;
}

/* Checks the mode returned: a subset of the bits asked for; basic and scalable stay unchanged. */
static void check_mode(const struct rma *r, const struct rules *rules)
{
	int mode = r->o.info->domain_attr->mr_mode;

	if (rules->version == V1_4)
		CHECK_EQ(mode, rules->mode);
	else
		CHECK_EQ(mode & ~rules->mode, 0);
}

static void under_rules(struct rma *r)
{
	static const enum rma_form forms[] = {RMA_WRITE,  RMA_READ,       RMA_WRITEMSG, RMA_READMSG,
					      RMA_INJECT, RMA_INJECTDATA, RMA_READV};
	static const size_t lens[] = {8, 100, 5000, 70000};
	struct rma_step st = {0};

	for (size_t i = 0; i < API_COUNT(forms) * API_COUNT(lens); i++) {
		st.form = forms[i / API_COUNT(lens)];
		st.len = lens[i % API_COUNT(lens)];
		st.count = st.to_count = st.form == RMA_WRITEMSG || st.form == RMA_READMSG ? 3 : 1;
		if (rma_fits(r, &st))
			rma_step(r, &st);
	}
}

static void rules(struct api *a)
{
	for (size_t i = 0; i < API_COUNT(all_rules); i++) {
		struct rma r;

		if (!open_rules(&r, a, &all_rules[i]))
			continue;
		check_mode(&r, &all_rules[i]);
		under_rules(&r);
		rma_close(&r);
	}
}

/* A region of sixteen pieces in list order: operations cross the borders of pieces. */
static void across(struct rma *r, bool falling, size_t from, size_t len)
{
	struct rma_buf b = rma_buf_new(64000, 16, falling);
	struct rma_key key = {0};
	struct fid_mr *mr = NULL;
	unsigned char *buf = malloc(len), *want = malloc(len);

	CHECK(buf && want);
	rma_buf_set(&b, 1);
	if (r->a->rank == 1) {
		mr = rma_regv(r, b.iov, b.count, RMA_REMOTE);
		key = rma_key(r, mr, b.iov[0].iov_base, b.len);
	}
	key = rma_share(r, 1, &key);
	for (size_t i = 0; i < len; i++) {
		want[i] = data_byte(1, from + i);
		buf[i] = data_byte(2, from + i);
	}
	if (r->a->rank == 0) {
		unsigned char *got = calloc(1, len);

		CHECK(got);
		RMA_PLAIN(r, RMA_READ, got, len, &key, from);
		RMA_SAME(got, want, len);
		RMA_PLAIN(r, RMA_WRITE, buf, len, &key, from);
		RMA_PLAIN(r, RMA_READ, got, len, &key, from);
		RMA_SAME(got, buf, len);
		free(got);
	}
	api_meet(r->a);
	for (size_t i = 0, at = 0; mr && i < b.count; at += b.iov[i++].iov_len)
		for (size_t j = 0; j < b.iov[i].iov_len; j++) {
			unsigned char *byte = (unsigned char *)b.iov[i].iov_base + j;
			bool written = at + j >= from && at + j < from + len;

			CHECK_EQ(*byte, data_byte(written ? 2 : 1, at + j));
			*byte = data_byte(1, at + j);
		}
	if (mr) {
		RMA_EXPECT(&b, 1); /* memory around the pieces is unchanged */
		CLOSE(mr);
	}
	rma_buf_free(&b);
	free(buf);
	free(want);
}

static void segments(struct api *a)
{
	static const struct {
		size_t from, len;
	} parts[] = {{0, 8},       {0, 64000}, {249, 2},    {250, 750},
		     {9000, 4096}, {1, 63999}, {63990, 10}, {30000, 20000}};

	for (size_t i = 0; i < API_COUNT(all_rules); i++) {
		struct rma r;

		if (!open_rules(&r, a, &all_rules[i]))
			continue;
		if (r.o.info->domain_attr->mr_iov_limit < 16 && api_other())
			api_skip("regions have fewer pieces");
		for (size_t j = 0; j < 2 * API_COUNT(parts); j++)
			across(&r, j % 2, parts[j / 2].from, parts[j / 2].len);
		rma_close(&r);
	}
}

/* Many regions over the same bytes, each with its own key, some of them closed. */
static void overlapping(struct api *a)
{
	static unsigned char memory[3000];
	struct rma_key keys[200] = {0};
	struct fid_mr *mr[200];
	struct rma r;

	for (size_t i = 0; i < 4; i++) {
		unsigned char word[8];

		if (!open_rules(&r, a, &all_rules[i]))
			continue;
		data_fill(memory, sizeof(memory), 7);
		for (size_t n = 0; a->rank == 1 && n < 200; n++) {
			mr[n] = rma_reg(&r, memory + n, sizeof(memory) - n, RMA_REMOTE);
			keys[n] = rma_key(&r, mr[n], memory + n, sizeof(memory) - n);
		}
		for (size_t n = 0; a->rank == 1 && n < 200; n += 3)
			CLOSE(mr[n]);
		for (size_t n = 0; n < 200; n++)
			keys[n] = rma_share(&r, 1, &keys[n]);
		for (size_t n = 0; a->rank == 0 && n < 200; n++) {
			if (n % 3 == 0)
				continue;
			RMA_PLAIN(&r, RMA_READ, word, sizeof(word), &keys[n], 1000 - n);
			data_check_at(word, sizeof(word), 7, 1000);
			RMA_PLAIN(&r, RMA_READ, word, 1, &keys[n], keys[n].len - 1);
			data_check_at(word, 1, 7, sizeof(memory) - 1);
		}
		api_meet(a);
		for (size_t n = 0; a->rank == 1 && n < 200; n++)
			if (n % 3)
				CLOSE(mr[n]);
		rma_close(&r);
	}
}

/* NULL and SIZE_MAX: the whole address space, by address. */
static void address_space(struct api *a)
{
	static unsigned char memory[70000];
	unsigned char *heap = malloc(70000), *got = malloc(70000);
	struct rma_key key = {0};
	struct fid_mr *mr = NULL;
	uint64_t at[2] = {(uintptr_t)memory, (uintptr_t)heap}, all[4];
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = 0});
	if (a->rank == 1) {
		data_fill(memory, 70000, 3);
		data_fill(heap, 70000, 4);
		mr = rma_reg(&r, NULL, SIZE_MAX, RMA_REMOTE);
		key = rma_key(&r, mr, NULL, SIZE_MAX);
	}
	key = rma_share(&r, 1, &key);
	api_swap(a, at, all, sizeof(at));
	for (unsigned int n = 0; a->rank == 0 && n < 2; n++) {
		static const size_t lens[] = {8, 4096, 70000};

		for (size_t i = 0; i < API_COUNT(lens); i++) {
			memset(got, 0, 70000);
			RMA_PLAIN(&r, RMA_READ, got, lens[i], &key, all[2 + n]);
			data_check(got, lens[i], 3 + n);
			data_fill(got, lens[i], 3 + n);
			RMA_PLAIN(&r, RMA_WRITE, got, lens[i], &key, all[2 + n]);
		}
	}
	api_meet(a);
	if (a->rank == 1) {
		data_check(memory, 70000, 3);
		data_check(heap, 70000, 4);
		CLOSE(mr);
	}
	free(heap);
	free(got);
	rma_close(&r);
}

/* A descriptor of local memory may be passed to every call, required or not. */
static void described(struct api *a)
{
	static unsigned char local[20000], remote[20000];
	struct rma_key key = {0};
	struct fid_mr *mr, *there = NULL;
	void *descs[2];
	struct iovec iov[2] = {{local, 7000}, {local + 8000, 9000}};
	struct rma r;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED | FI_MR_LOCAL});
	mr = rma_reg(&r, local, sizeof(local), FI_READ | FI_WRITE);
	descs[0] = descs[1] = fi_mr_desc(mr);
	if (a->rank == 1) {
		there = rma_reg(&r, remote, sizeof(remote), RMA_REMOTE);
		key = rma_key(&r, there, remote, sizeof(remote));
	}
	key = rma_share(&r, 1, &key);
	data_fill(local, sizeof(local), 5);
	if (a->rank == 0) {
		POST(r.o.cq,
		     fi_write(r.o.ep, local, 20000, descs[0], r.addr[1], key.base, key.key, local));
		obj_done(r.o.cq, local);
		memset(local, 0, sizeof(local));
		POST(r.o.cq,
		     fi_readv(r.o.ep, iov, descs, 2, r.addr[1], key.base + 1000, key.key, iov));
		obj_done(r.o.cq, iov);
		data_check_at(local, 7000, 5, 1000);
		data_check_at(local + 8000, 9000, 5, 8000);
	}
	api_meet(a);
	if (there) {
		data_check(remote, sizeof(remote), 5);
		CLOSE(there);
	}
	CLOSE(mr);
	rma_close(&r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"rules", rules, 2, {0}},
		{"segments", segments, 2, {0}},
		{"overlapping", overlapping, 2, {0}},
		{"address_space", address_space, 2, {0}},
		{"described", described, 2, {0}},
		{"rules_no_cma", rules, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"segments_no_cma", segments, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
