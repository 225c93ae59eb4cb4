/* SPDX-License-Identifier: BSD-2-Clause */
/* What the calls of keys in address vectors accept and refuse. fi_av(3), fi_domain(3), fi_mr(3). */
#include "obj.h"
#include "lib/key.h"

#define VERSION FI_VERSION(2, 1)

static const size_t bad[] = {0, 1, 15, 65, 1000};

static struct fi_info *hints_in_vector(void)
{
	struct fi_info *hints = obj_hints(FI_MSG | FI_TAGGED | FI_RMA);

	hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	return hints;
}

static void open_domain(struct obj *o, size_t max)
{
	*o = (struct obj){.hints = hints_in_vector()};
	o->hints->domain_attr->max_ep_auth_key = max;
	CHECK(obj_find(o, VERSION));
	obj_domain(o);
	o->av = obj_av(o, FI_AV_TABLE, 0);
}

static int insert_key(struct fid_av *av, unsigned int number, fi_addr_t *addr)
{
	uint8_t *bytes = key_bytes(number, KEY_LEN);
	int ret = fi_av_insert_auth_key(av, bytes, KEY_LEN, addr, 0);

	free(bytes);
	return ret;
}

/* A name that an endpoint of this process has had. */
static struct obj_name some_name(struct obj *o)
{
	struct fid_cq *cq = obj_cq(o, FI_WAIT_NONE);
	struct fid_ep *ep = obj_ready_ep(o, cq);
	struct obj_name name = obj_name(&ep->fid);

	CLOSE(ep);
	CLOSE(cq);
	return name;
}

/* ---- fi_getinfo, fi_domain, fi_endpoint ---- */

static bool offered(struct fi_info *hints, uint32_t version)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(version, NULL, NULL, 0, hints, &info);

	fi_freeinfo(hints);
	if (ret != -FI_ENODATA)
		OK(ret);
	fi_freeinfo(info);
	return ret == 0;
}

static void hints(struct api *a)
{
	struct fi_info *h = hints_in_vector();
	struct obj o;

	(void)a;
	CHECK(offered(hints_in_vector(), FI_VERSION(1, 20)));
	CHECK(!offered(hints_in_vector(), FI_VERSION(1, 19)));
	h->ep_attr->type = FI_EP_MSG;
	CHECK(!offered(h, VERSION));
	h = hints_in_vector();
	key_set(h, 1, KEY_LEN);
	CHECK(!offered(h, VERSION));
	h = hints_in_vector();
	h->domain_attr->auth_key = key_bytes(1, KEY_LEN);
	CHECK(!offered(h, VERSION));
	h = hints_in_vector();
	h->domain_attr->max_ep_auth_key = 1000;
	CHECK(!offered(h, VERSION));
	open_domain(&o, 0);
	CHECK_EQ(o.info->domain_attr->auth_key_size, FI_AV_AUTH_KEY);
	CHECK(!o.info->domain_attr->auth_key && !o.info->ep_attr->auth_key_size);
	CHECK(o.info->domain_attr->max_ep_auth_key >= 2);
	obj_close(&o);
}

static void endpoints(struct api *a)
{
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct obj o;

	(void)a;
	open_domain(&o, 0);
	key_set(o.info, 1, KEY_LEN);
	CHECK_EQ(fi_endpoint(o.domain, o.info, &ep, NULL), -FI_EINVAL);
	key_set(o.info, 0, 0);
	o.info->domain_attr->max_ep_auth_key = 1000;
	CHECK_EQ(fi_domain(o.fabric, o.info, &domain, NULL), -FI_EINVAL);
	o.info->domain_attr->max_ep_auth_key = 0;
	key_set_domain(o.info, 1, KEY_LEN);
	o.info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	CHECK_EQ(fi_domain(o.fabric, o.info, &domain, NULL), -FI_EINVAL);
	obj_close(&o);
}

/* Connected endpoints have no address vector. */
static void connected(struct api *a)
{
	struct fid_domain *domain;
	struct fid_pep *pep;
	struct fid_ep *ep;
	struct obj o, msg = {.hints = obj_hints(FI_MSG)};

	(void)a;
	open_domain(&o, 0);
	msg.hints->ep_attr->type = FI_EP_MSG;
	CHECK(obj_find(&msg, VERSION));
	msg.info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	CHECK_EQ(fi_endpoint(o.domain, msg.info, &ep, NULL), -FI_EOPNOTSUPP);
	CHECK_EQ(fi_domain(o.fabric, msg.info, &domain, NULL), -FI_EOPNOTSUPP);
	OK(fi_fabric(msg.info->fabric_attr, &msg.fabric, NULL));
	CHECK_EQ(fi_passive_ep(msg.fabric, msg.info, &pep, NULL), -FI_EOPNOTSUPP);
	obj_close(&msg);
	obj_close(&o);
}

/* A domain that was opened without such keys has no such endpoints and vectors. */
static void other_domain(struct api *a)
{
	struct obj o = {0};
	struct fid_ep *ep;
	fi_addr_t addr = 0;

	(void)a;
	CHECK(obj_find(&o, VERSION));
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_TABLE, 0);
	CHECK_EQ(insert_key(o.av, 1, &addr), -FI_ENOSYS);
	CHECK_EQ(fi_av_lookup_auth_key(o.av, 0, NULL, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_av_set_user_id(o.av, 0, 1, FI_AUTH_KEY), -FI_EBADFLAGS);
	CHECK_EQ(fi_av_remove(o.av, &addr, 1, FI_AUTH_KEY), -FI_EBADFLAGS);
	CHECK_EQ(fi_av_insert(o.av, "", 0, &addr, FI_AUTH_KEY, NULL), -FI_EBADFLAGS);
	o.info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	CHECK_EQ(fi_endpoint(o.domain, o.info, &ep, NULL), -FI_EINVAL);
	obj_close(&o);
}

/* ---- Keys ---- */

static void expect_key(struct fid_av *av, fi_addr_t addr, unsigned int number)
{
	uint8_t *want = key_bytes(number, KEY_LEN), got[100];
	size_t size = sizeof(got);

	OK(fi_av_lookup_auth_key(av, addr, got, &size));
	CHECK_EQ(size, KEY_LEN);
	CHECK(!memcmp(got, want, size));
	size = 5;
	memset(got, 0, sizeof(got));
	OK(fi_av_lookup_auth_key(av, addr, got, &size));
	CHECK_EQ(size, KEY_LEN);
	CHECK(!memcmp(got, want, 5) && !got[5]);
	free(want);
}

static void lookups(struct api *a)
{
	fi_addr_t key[3], entry[2];
	struct obj_name name;
	size_t size = 8;
	struct obj o;

	(void)a;
	open_domain(&o, 0);
	name = some_name(&o);
	for (unsigned int i = 1; i < 3; i++)
		OK(insert_key(o.av, i, &key[i]));
	CHECK(key[1] != key[2]);
	entry[0] = key[2];
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, entry, FI_AUTH_KEY, NULL), 1);
	CHECK_EQ(entry[0], 0);
	expect_key(o.av, key[1], 1);
	expect_key(o.av, key[2], 2);
	expect_key(o.av, entry[0], 2);
	CHECK_EQ(fi_av_lookup_auth_key(o.av, 1, &size, &size), -FI_EINVAL);
	CHECK_EQ(fi_av_lookup_auth_key(o.av, key[1], NULL, &size), -FI_EINVAL);
	CHECK_EQ(fi_av_lookup_auth_key(o.av, key[1], NULL, NULL), -FI_EINVAL);
	CHECK_EQ(fi_av_lookup(o.av, key[1], NULL, &(size_t){0}), -FI_EINVAL);
	/* The same bytes are the same key, until they are removed as often. */
	OK(insert_key(o.av, 1, &key[0]));
	CHECK_EQ(key[0], key[1]);
	OK(fi_av_remove(o.av, key, 1, FI_AUTH_KEY));
	expect_key(o.av, key[1], 1);
	OK(fi_av_remove(o.av, key, 1, FI_AUTH_KEY));
	CHECK_EQ(fi_av_lookup_auth_key(o.av, key[1], NULL, &(size_t){0}), -FI_EINVAL);
	obj_close(&o);
}

static void wrong_keys(struct api *a)
{
	uint8_t *bytes = key_bytes(1, 1000);
	fi_addr_t addr = 7;
	struct obj o;

	(void)a;
	open_domain(&o, 0);
	for (size_t i = 0; i < API_COUNT(bad); i++)
		CHECK_EQ(fi_av_insert_auth_key(o.av, bytes, bad[i], &addr, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_insert_auth_key(o.av, NULL, KEY_LEN, &addr, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_insert_auth_key(o.av, bytes, KEY_LEN, NULL, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_insert_auth_key(o.av, bytes, KEY_LEN, &addr, FI_MORE), -FI_EBADFLAGS);
	CHECK_EQ(addr, 7);
	free(bytes);
	obj_close(&o);
}

static void bounds(struct api *a)
{
	static const size_t asked[] = {2, 0};
	struct fid_av *second;
	fi_addr_t key[64];
	struct obj o;

	(void)a;
	for (size_t i = 0; i < API_COUNT(asked); i++) {
		size_t max, n = 0;

		open_domain(&o, asked[i]);
		max = o.info->domain_attr->max_ep_auth_key;
		CHECK(max >= 2 && max < API_COUNT(key) && (!asked[i] || max == asked[i]));
		for (; n < max; n++)
			OK(insert_key(o.av, (unsigned int)n + 1, &key[n]));
		CHECK_EQ(insert_key(o.av, 77, &key[n]), -FI_ENOSPC);
		OK(fi_av_remove(o.av, key, 1, FI_AUTH_KEY));
		OK(insert_key(o.av, 77, &key[0]));
		expect_key(o.av, key[0], 77);
		second = obj_av(&o, FI_AV_TABLE, 0);
		OK(insert_key(second, 78, &key[0]));
		CLOSE(second);
		obj_close(&o);
	}
}

/* A key stays while an endpoint was enabled with it, or an address has it. */
static void removal(struct api *a)
{
	fi_addr_t key, late, entry;
	struct obj_name name;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct obj o;

	(void)a;
	open_domain(&o, 0);
	name = some_name(&o);
	OK(insert_key(o.av, 1, &key));
	cq = obj_cq(&o, FI_WAIT_NONE);
	ep = obj_ready_ep(&o, cq);
	OK(insert_key(o.av, 2, &late));
	CHECK_EQ(fi_av_remove(o.av, &key, 1, FI_AUTH_KEY), -FI_EBUSY);
	OK(fi_av_remove(o.av, &late, 1, FI_AUTH_KEY));
	CHECK_EQ(fi_av_remove(o.av, &late, 1, FI_AUTH_KEY), -FI_EINVAL);
	CLOSE(ep);
	CLOSE(cq);
	entry = key;
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &entry, FI_AUTH_KEY, NULL), 1);
	CHECK_EQ(fi_av_remove(o.av, &key, 1, FI_AUTH_KEY), -FI_EBUSY);
	CHECK_EQ(fi_av_remove(o.av, &key, 1, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_remove(o.av, &entry, 1, FI_AUTH_KEY), -FI_EINVAL);
	OK(fi_av_remove(o.av, &entry, 1, 0));
	OK(fi_av_remove(o.av, &key, 1, FI_AUTH_KEY));
	obj_close(&o);
}

/* ---- Addresses ---- */

static void addresses(struct api *a)
{
	fi_addr_t key[3], entry;
	struct obj_name name;
	struct fi_av_attr named = {.name = "weft-keys-test"};
	struct fid_av *av;
	struct obj o;
	int err = 0;

	(void)a;
	open_domain(&o, 0);
	name = some_name(&o);
	OK(insert_key(o.av, 1, &key[1]));
	OK(insert_key(o.av, 2, &key[2]));
	entry = key[1];
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &entry, 0, NULL), -FI_EINVAL);
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, NULL, FI_AUTH_KEY, NULL), -FI_EINVAL);
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &entry, FI_AUTH_KEY | FI_AV_USER_ID, NULL),
		 -FI_EBADFLAGS);
	entry = key[2] + 1; /* no key's */
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &entry, FI_AUTH_KEY | FI_SYNC_ERR, &err), 0);
	CHECK_EQ(err, FI_EINVAL);
	CHECK_EQ(entry, FI_ADDR_NOTAVAIL);
	entry = key[1];
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &entry, FI_AUTH_KEY, NULL), 1);
	/* Once more it is the same entry, which has one key. */
	entry = key[1];
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &entry, FI_AUTH_KEY, NULL), 1);
	CHECK_EQ(entry, 0);
	entry = key[2];
	CHECK_EQ(fi_av_insert(o.av, name.bytes, 1, &entry, FI_AUTH_KEY | FI_SYNC_ERR, &err), 0);
	CHECK_EQ(err, FI_EADDRINUSE);
	entry = key[2];
	CHECK_EQ(fi_av_insertsvc(o.av, "127.0.0.1", "9", &entry, FI_AUTH_KEY, NULL),
		 !strcmp(api_provider(), "shm") ? 0 : 1);
	CHECK_EQ(fi_av_open(o.domain, &named, &av, NULL), -FI_EOPNOTSUPP);
	obj_close(&o);
}

static void user_ids(struct api *a)
{
	fi_addr_t key, none = 1;
	struct obj o;

	(void)a;
	open_domain(&o, 0);
	OK(insert_key(o.av, 1, &key));
	OK(fi_av_set_user_id(o.av, key, 1234, FI_AUTH_KEY));
	CHECK_EQ(fi_av_set_user_id(o.av, none, 1234, FI_AUTH_KEY), -FI_EINVAL);
	CHECK_EQ(fi_av_set_user_id(o.av, key, 1234, 0), -FI_EINVAL);
	CHECK_EQ(fi_av_set_user_id(o.av, key, 1234, FI_MORE), -FI_EBADFLAGS);
	obj_close(&o);
}

/* ---- Regions ---- */

static void regions(struct api *a)
{
	static char bytes[64];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct fi_mr_auth_key keys = {.src_addr = FI_ADDR_UNSPEC};
	struct fi_mr_attr attr = {.mr_iov = &iov,
				  .iov_count = 1,
				  .access = FI_REMOTE_READ,
				  .auth_key_size = sizeof(keys),
				  .auth_key = (uint8_t *)&keys};
	struct fid_mr *mr;
	struct obj o;

	(void)a;
	open_domain(&o, 0);
	CHECK_EQ(fi_mr_reg(o.domain, bytes, 8, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, 0, &mr), -FI_EINVAL);
	keys.av = o.av;
	OK(fi_mr_regattr(o.domain, &attr, 0, &mr));
	CLOSE(mr);
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, FI_AUTH_KEY, &mr), -FI_EOPNOTSUPP);
	keys.src_addr = 0; /* counts only with FI_DIRECTED_RECV */
	OK(fi_mr_regattr(o.domain, &attr, 0, &mr));
	CLOSE(mr);
	attr.auth_key = NULL;
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, 0, &mr), -FI_EINVAL);
	obj_close(&o);
	o.hints = hints_in_vector();
	o.hints->caps |= FI_DIRECTED_RECV;
	CHECK(obj_find(&o, VERSION));
	obj_domain(&o);
	o.av = keys.av = obj_av(&o, FI_AV_TABLE, 0);
	attr.auth_key = (uint8_t *)&keys;
	CHECK_EQ(fi_mr_regattr(o.domain, &attr, 0, &mr), -FI_EOPNOTSUPP);
	keys.src_addr = FI_ADDR_UNSPEC;
	OK(fi_mr_regattr(o.domain, &attr, 0, &mr));
	CLOSE(mr);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"hints", hints, 1, {0}},         {"endpoints", endpoints, 1, {0}},
		{"connected", connected, 1, {0}}, {"other-domain", other_domain, 1, {0}},
		{"lookups", lookups, 1, {0}},     {"wrong-keys", wrong_keys, 1, {0}},
		{"bounds", bounds, 1, {0}},       {"removal", removal, 1, {0}},
		{"addresses", addresses, 1, {0}}, {"user-ids", user_ids, 1, {0}},
		{"regions", regions, 1, {0}},
	};

	key_need_library();
	return api_main(argc, argv, cases, API_COUNT(cases));
}
