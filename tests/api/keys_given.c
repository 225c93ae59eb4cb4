/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is accepted as a key of a job, and from where: no key is taken in silence and then not used. fi_endpoint(3),
 * fi_domain(3).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "obj.h"
#include "lib/key.h"

static const size_t good[] = {16, 32, 64}, bad[] = {1, 15, 65, 1000};

/* An entry for these hints, which it frees; NULL: none. */
static struct fi_info *entry(struct fi_info *hints, uint32_t version)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(version, NULL, NULL, 0, hints, &info);

	fi_freeinfo(hints);
	if (ret != -FI_ENODATA)
		OK(ret);
	return info;
}

static struct fi_info *any_entry(void)
{
	struct fi_info *info = entry(obj_hints(FI_MSG), FI_VERSION(1, 17));

	CHECK(info);
	return info;
}

static void hints_with_keys(struct api *a)
{
	struct fi_info *hints, *info;

	(void)a;
	for (size_t i = 0; i < API_COUNT(good); i++) {
		hints = obj_hints(FI_MSG);
		key_set(hints, 1, good[i]);
		key_set_domain(hints, 2, good[i]);
		info = entry(hints, FI_VERSION(1, 17));
		CHECK(info);
		CHECK_EQ(info->ep_attr->auth_key_size, good[i]);
		CHECK_EQ(info->domain_attr->auth_key_size, good[i]);
		CHECK_EQ(info->ep_attr->auth_key[good[i] - 1], 0xa1);
		CHECK_EQ(info->domain_attr->auth_key[good[i] - 1], 0xa2);
		fi_freeinfo(info);
	}
	for (size_t i = 0; i < 2 * API_COUNT(bad); i++) {
		hints = obj_hints(FI_MSG);
		(i % 2 ? key_set : key_set_domain)(hints, 1, bad[i / 2]);
		CHECK(!entry(hints, FI_VERSION(1, 17)));
	}
	hints = obj_hints(FI_MSG);
	hints->ep_attr->auth_key_size = 32; /* and no key */
	CHECK(!entry(hints, FI_VERSION(1, 17)));
}

/* The interface before 1.5 has no keys: what stands there is not looked at. */
static void old_interface(struct api *a)
{
	struct fi_info *hints = obj_hints(FI_MSG), *info;

	(void)a;
	key_set(hints, 1, 8);
	info = entry(hints, FI_VERSION(1, 4));
	CHECK(info);
	CHECK_EQ(info->ep_attr->auth_key_size, 0);
	fi_freeinfo(info);
}

/* What fi_endpoint says to a key in its entry, and what to one in the domain's. */
static void try_key(struct obj *o, size_t len, int want)
{
	struct fid_domain *domain;
	struct fid_ep *ep;

	key_set(o->info, 1, len);
	CHECK_EQ(fi_endpoint(o->domain, o->info, &ep, NULL), want);
	if (!want)
		CLOSE(ep);
	key_set(o->info, 0, 0);
	key_set_domain(o->info, 1, len);
	CHECK_EQ(fi_domain(o->fabric, o->info, &domain, NULL), want);
	if (!want)
		CLOSE(domain);
	key_set_domain(o->info, 0, 0);
}

static void opened_with_keys(struct api *a)
{
	struct obj o = {.info = any_entry()};
	struct fid_ep *ep;

	(void)a;
	obj_domain(&o);
	for (size_t i = 0; i < API_COUNT(good); i++)
		try_key(&o, good[i], 0);
	for (size_t i = 0; i < API_COUNT(bad); i++)
		try_key(&o, bad[i], -FI_EINVAL);
	o.info->ep_attr->auth_key_size = 32;
	CHECK_EQ(fi_endpoint(o.domain, o.info, &ep, NULL), -FI_EINVAL);
	o.info->ep_attr->auth_key_size = 0;
	o.info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	CHECK_EQ(fi_endpoint(o.domain, o.info, &ep, NULL), -FI_EINVAL);
	o.info->domain_attr->auth_key_size = 0;
	obj_close(&o);
}

/* Datagrams have no connection on which a key could be proven. */
static void datagrams(struct api *a)
{
	struct fi_info *hints = fi_allocinfo();
	struct obj o = {0};

	(void)a;
	hints->fabric_attr->prov_name = strdup("udp");
	hints->ep_attr->type = FI_EP_DGRAM;
	o.info = entry(hints, FI_VERSION(1, 17));
	if (!o.info)
		api_skip("no udp");
	obj_domain(&o);
	try_key(&o, 32, -FI_EOPNOTSUPP);
	hints = fi_allocinfo();
	hints->fabric_attr->prov_name = strdup("udp");
	hints->ep_attr->type = FI_EP_DGRAM;
	key_set(hints, 1, 32);
	CHECK(!entry(hints, FI_VERSION(1, 17)));
	obj_close(&o);
}

/* ---- The file ---- */

static char path[128];

static void write_key(size_t len, bool newline, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char bytes[256];

	memset(bytes, 'k', len);
	bytes[len] = '\n';
	len += newline;
	CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && !fchmod(fd, mode));
	close(fd);
}

static void expect(struct obj *o, int want)
{
	struct fid_ep *ep;

	CHECK_EQ(fi_endpoint(o->domain, o->info, &ep, NULL), want);
	if (!want)
		CLOSE(ep);
}

static void from_file(struct api *a)
{
	struct obj o = {0};

	(void)a;
	snprintf(path, sizeof(path), "/tmp/weft_key.%d", (int)getpid());
	setenv("FI_WEFT_AUTH_KEY_FILE", path, 1);
	o.info = any_entry();
	obj_domain(&o);
	expect(&o, -FI_ENOENT);
	for (size_t i = 0; i < API_COUNT(good); i++) {
		write_key(good[i], i % 2, 0600);
		expect(&o, 0);
	}
	for (size_t i = 0; i < 3; i++) {
		write_key(bad[i], true, 0600);
		expect(&o, -FI_EINVAL);
	}
	write_key(0, false, 0600);
	expect(&o, -FI_EINVAL);
	write_key(32, false, 0640);
	expect(&o, -FI_EACCES);
	write_key(32, false, 0604);
	expect(&o, -FI_EACCES);
	/* A key of the application's own comes first. */
	key_set(o.info, 1, 32);
	expect(&o, 0);
	unlink(path);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"hints", hints_with_keys, 1, {0}},   {"old-interface", old_interface, 1, {0}},
		{"opened", opened_with_keys, 1, {0}}, {"datagrams", datagrams, 1, {0}},
		{"file", from_file, 1, {0}},
	};

	key_need_library();
	return api_main(argc, argv, cases, API_COUNT(cases));
}
