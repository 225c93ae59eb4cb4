/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions as objects: registering, keys, modes, events, closing. fi_mr(3). */
#include "obj.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

static char memory[3][4096];

static void open_mode(struct obj *o, int mr_mode)
{
	o->hints = obj_hints(FI_MSG);
	o->hints->domain_attr->mr_mode = mr_mode;
	obj_domain(o);
}

/* Keys chosen by the application: each key can be used once at a time. */
static void own_keys(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr[3], *other = NULL;
	struct iovec iov[2] = {{memory[0], 100}, {memory[1], 200}};
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 1, .access = REMOTE, .requested_key = UINT64_MAX - 1};

	(void)a;
	open_mode(&o, 0);
	CHECK_EQ(o.info->domain_attr->mr_mode, 0);
	OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 7, 0, &mr[0], NULL));
	CHECK_EQ(mr[0]->fid.fclass, FI_CLASS_MR);
	CHECK_EQ(fi_mr_key(mr[0]), 7);
	CHECK_EQ(fi_mr_reg(o.domain, memory[1], 4096, REMOTE, 0, 7, 0, &other, NULL), -FI_ENOKEY);
	OK(fi_mr_regv(o.domain, iov, 1, REMOTE, 0, 0, 0, &mr[1], NULL));
	CHECK_EQ(fi_mr_key(mr[1]), 0);
	OK(fi_mr_regattr(o.domain, &attr, 0, &mr[2]));
	CHECK_EQ(fi_mr_key(mr[2]), UINT64_MAX - 1);
	for (int i = 0; i < 3; i++)
		CLOSE(mr[i]);
	/* The key is free again. */
	OK(fi_mr_reg(o.domain, memory[1], 4096, REMOTE, 0, 7, 0, &other, NULL));
	CHECK_EQ(fi_mr_key(other), 7);
	CLOSE(other);
	obj_close(&o);
}

/* The same memory in many regions, and several pieces as one region. */
static void overlapping(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr[20], *pieces = NULL;
	struct iovec iov[3] = {{memory[2], 64}, {memory[0], 4096}, {memory[1] + 7, 1}};

	(void)a;
	open_mode(&o, 0);
	for (uint64_t i = 0; i < 20; i++)
		OK(fi_mr_reg(o.domain, memory[0] + i, 4096 - i, REMOTE, 0, i, 0, &mr[i], NULL));
	if (o.info->domain_attr->mr_iov_limit >= 3) {
		OK(fi_mr_regv(o.domain, iov, 3, REMOTE, 0, 100, 0, &pieces, NULL));
		CHECK_EQ(fi_mr_key(pieces), 100);
		CLOSE(pieces);
	}
	for (int i = 0; i < 20; i++)
		CLOSE(mr[i]);
	obj_close(&o);
}

/* NULL and SIZE_MAX, as in shmem_init of the tutorial. */
static void address_space(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr;

	(void)a;
	open_mode(&o, 0);
	OK(fi_mr_reg(o.domain, NULL, SIZE_MAX, REMOTE, 0, 0, 0, &mr, NULL));
	CHECK_EQ(fi_mr_key(mr), 0);
	CLOSE(mr);
	obj_close(&o);
}

/* Keys chosen by the library are unique among live regions, and not reused at once. */
static void given_keys(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr[50], *next;
	uint64_t key;

	(void)a;
	open_mode(&o, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY);
	for (int i = 0; i < 50; i++) {
		OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, (uint64_t)i, 0, &mr[i], NULL));
		CHECK(fi_mr_key(mr[i]) != FI_KEY_NOTAVAIL);
		for (int j = 0; j < i; j++)
			CHECK(fi_mr_key(mr[i]) != fi_mr_key(mr[j]));
	}
	key = fi_mr_key(mr[10]);
	CLOSE(mr[10]);
	if (o.info->domain_attr->mr_mode & FI_MR_PROV_KEY) {
		OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 10, 0, &next, NULL));
		if (!api_other())
			CHECK(fi_mr_key(next) != key);
		CLOSE(next);
	}
	for (int i = 0; i < 50; i++)
		if (i != 10)
			CLOSE(mr[i]);
	obj_close(&o);
}

/* Local registration works, and its descriptor may be passed to every operation. */
static void local(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr;
	fi_addr_t self;
	void *desc;

	(void)a;
	o.hints = obj_hints(FI_MSG);
	o.hints->domain_attr->mr_mode = FI_MR_LOCAL;
	obj_open(&o);
	OK(fi_mr_reg(o.domain, memory, sizeof(memory), FI_SEND | FI_RECV, 0, 3, 0, &mr, NULL));
	desc = fi_mr_desc(mr);
	self = obj_insert_ep(o.av, o.ep);
	data_fill(memory[0], 4096, 1);
	OK(fi_recv(o.ep, memory[1], 4096, desc, FI_ADDR_UNSPEC, memory[1]));
	POST(o.cq, fi_send(o.ep, memory[0], 4096, desc, self, memory[0]));
	obj_next(o.cq, NULL);
	obj_next(o.cq, NULL);
	data_check(memory[1], 4096, 1);
	CLOSE(mr);
	obj_close(&o);
}

/*
 * Regions that give peers no right need no key: any number of them may request the same one, beside
 * a region of that key, in all modes.
 */
static void local_keys(struct api *a)
{
	static const int modes[] = {0, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
				    FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, FI_MR_RAW,
				    FI_MR_ENDPOINT};
	static const uint64_t rights[] = {
		0, FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_SEND | FI_RECV | FI_READ | FI_WRITE};

	(void)a;
	for (size_t i = 0; i < API_COUNT(modes); i++) {
		struct fid_mr *mr[API_COUNT(rights)], *window, *other;
		uint8_t raw[8];
		uint64_t base;
		size_t len = sizeof(raw);
		struct obj o = {0};

		open_mode(&o, modes[i]);
		OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 0, 0, &window, NULL));
		CHECK(fi_mr_key(window) != FI_KEY_NOTAVAIL);
		for (size_t n = 0; n < API_COUNT(rights); n++) {
			OK(fi_mr_reg(o.domain, memory[0], 4096, rights[n], 0, 0, 0, &mr[n], NULL));
			CHECK(fi_mr_key(mr[n]) == FI_KEY_NOTAVAIL);
			CHECK(fi_mr_desc(mr[n]) != NULL);
			CHECK_EQ(fi_mr_raw_attr(mr[n], &base, raw, &len, 0), -FI_ENOKEY);
			if (modes[i] & FI_MR_ENDPOINT) {
				struct fid_ep *ep = obj_ep(&o);

				OK(fi_mr_bind(mr[n], &ep->fid, 0));
				OK(fi_mr_enable(mr[n]));
				CLOSE(ep);
			}
		}
		for (size_t n = 0; n < API_COUNT(rights); n++)
			CLOSE(mr[n]);
		if (!(o.info->domain_attr->mr_mode & FI_MR_PROV_KEY))
			CHECK_EQ(fi_mr_reg(o.domain, memory[0], 1, REMOTE, 0, 0, 0, &other, NULL),
				 -FI_ENOKEY);
		CLOSE(window);
		obj_close(&o);
	}
}

/* FI_MR_BASIC and FI_MR_SCALABLE, as old programs use them. */
static void old_modes(struct api *a)
{
	static const int modes[] = {FI_MR_BASIC, FI_MR_SCALABLE};

	(void)a;
	for (size_t i = 0; i < API_COUNT(modes); i++) {
		struct obj o = {0};
		struct fid_mr *mr;

		o.hints = obj_hints(FI_MSG);
		o.hints->domain_attr->mr_mode = modes[i];
		if (!obj_find(&o, FI_VERSION(1, 4)) && api_other())
			continue;
		CHECK(o.info != NULL);
		CHECK_EQ(o.info->domain_attr->mr_mode, modes[i]);
		obj_domain(&o);
		OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 5, 0, &mr, NULL));
		if (modes[i] == FI_MR_SCALABLE)
			CHECK_EQ(fi_mr_key(mr), 5);
		CLOSE(mr);
		obj_close(&o);
	}
}

/*
 * A domain bound to an event queue with FI_REG_MR reports each registration; *mr is written first.
 */
static void events(struct api *a)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_entry entry;
	struct obj o = {0};
	struct fid_mr *mr;
	struct fid_eq *eq;
	uint32_t event;
	int context;

	(void)a;
	open_mode(&o, 0);
	OK(fi_eq_open(o.fabric, &attr, &eq, NULL));
	if (fi_domain_bind(o.domain, &eq->fid, FI_REG_MR) && api_other())
		api_skip("no asynchronous registration");
	OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 4, 0, &mr, &context));
	CHECK_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), OBJ_PATIENCE_MS, 0), sizeof(entry));
	CHECK_EQ(event, FI_MR_COMPLETE);
	CHECK(entry.fid == &mr->fid);
	CHECK(entry.context == &context);
	CHECK_EQ(fi_mr_key(mr), 4);
	CLOSE(mr);
	CLOSE(o.domain);
	o.domain = NULL;
	CLOSE(eq);
	obj_close(&o);
}

/* FI_MR_ENDPOINT: the application binds and enables regions, if the domain has the mode. */
static void per_endpoint(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr;

	(void)a;
	o.hints = obj_hints(FI_MSG);
	o.hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_RMA_EVENT;
	obj_open(&o);
	OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 4, 0, &mr, NULL));
	if (o.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		OK(fi_mr_bind(mr, &o.ep->fid, 0));
		OK(fi_mr_enable(mr));
	}
	CHECK(fi_mr_key(mr) != FI_KEY_NOTAVAIL);
	CLOSE(mr);
	obj_close(&o);
}

/* Without FI_MR_ENDPOINT regions may still be bound to an endpoint, by either call, at any time. */
static void to_endpoint(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr;
	int ret;

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_RMA);
	obj_open(&o);
	OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 4, 0, &mr, NULL));
	ret = fi_ep_bind(o.ep, &mr->fid, 0);
	if (api_other() && ret)
		api_skip("regions do not bind to endpoints");
	OK(ret);
	if (!api_other()) {
		OK(fi_ep_bind(o.ep, &mr->fid, REMOTE));
		CHECK_EQ(fi_ep_bind(o.ep, &mr->fid, FI_CLAIM), -FI_EBADFLAGS);
		OK(fi_mr_bind(mr, &o.ep->fid, 0));
		OK(fi_mr_enable(mr));
		OK(fi_mr_bind(mr, &o.ep->fid, 0));
		OK(fi_ep_bind(o.ep, &mr->fid, REMOTE));
	}
	CLOSE(mr);
	obj_close(&o);
}

static void raw_keys(struct api *a)
{
	struct obj o = {0};
	uint64_t base = 1, key = 0;
	uint8_t raw[64];
	size_t size = sizeof(raw);
	struct fid_mr *mr;

	(void)a;
	open_mode(&o, FI_MR_RAW);
	OK(fi_mr_reg(o.domain, memory[0], 4096, REMOTE, 0, 99, 0, &mr, NULL));
	if (api_other() && fi_mr_raw_attr(mr, &base, raw, &size, 0))
		api_skip("no raw keys");
	OK(fi_mr_raw_attr(mr, &base, raw, &size, 0));
	CHECK_EQ(size, o.info->domain_attr->mr_key_size);
	size = 1;
	CHECK_EQ(fi_mr_raw_attr(mr, &base, raw, &size, 0), -FI_ETOOSMALL);
	CHECK_EQ(size, o.info->domain_attr->mr_key_size);
	OK(fi_mr_map_raw(o.domain, base, raw, size, &key, 0));
	CHECK_EQ(key, fi_mr_key(mr));
	OK(fi_mr_unmap_key(o.domain, key));
	OK(fi_mr_refresh(mr, NULL, 0, 0));
	CLOSE(mr);
	obj_close(&o);
}

static void refusals(struct api *a)
{
	struct obj o = {0};
	struct fid_mr *mr = NULL;
	struct iovec iov[2] = {{memory[0], 1}, {memory[1], 1}};

	(void)a;
	if (api_other())
		api_skip("what is refused is ours to say");
	open_mode(&o, 0);
	FAILS(fi_mr_regv(o.domain, iov, 0, REMOTE, 0, 1, 0, &mr, NULL));
	FAILS(fi_mr_regv(o.domain, iov, o.info->domain_attr->mr_iov_limit + 1, REMOTE, 0, 1, 0, &mr,
			 NULL));
	FAILS(fi_mr_reg(o.domain, memory[0], 1, REMOTE, 1, 1, 0, &mr, NULL));
	FAILS(fi_mr_reg(o.domain, memory[0], SIZE_MAX, REMOTE, 0, 1, 0, &mr, NULL));
	CHECK(mr == NULL);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"own_keys", own_keys, 1, {0}},
		{"overlapping", overlapping, 1, {0}},
		{"address_space", address_space, 1, {0}},
		{"given_keys", given_keys, 1, {0}},
		{"local", local, 1, {0}},
		{"local_keys", local_keys, 1, {0}},
		{"old_modes", old_modes, 1, {0}},
		{"events", events, 1, {0}},
		{"per_endpoint", per_endpoint, 1, {0}},
		{"to_endpoint", to_endpoint, 1, {0}},
		{"raw_keys", raw_keys, 1, {0}},
		{"refusals", refusals, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
