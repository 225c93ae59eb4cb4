/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo with open objects: entries refer to open fabrics and domains, and hints can name them.
 * fi_fabric(3), fi_domain(3).
 */
#include "obj.h"

#define V1_17 FI_VERSION(1, 17)

/* Two fabrics with a domain each; `first` is opened first. */
struct two {
	struct obj first, second;
	struct fi_info *hints, *list;
};

static void two_open(struct two *t)
{
	t->first.hints = obj_hints(FI_MSG);
	t->second.hints = obj_hints(FI_MSG);
	t->hints = obj_hints(FI_MSG);
	t->list = NULL;
	obj_domain(&t->first);
	obj_domain(&t->second);
}

static void two_close(struct two *t)
{
	fi_freeinfo(t->list);
	fi_freeinfo(t->hints);
}

static void ask(struct two *t)
{
	fi_freeinfo(t->list);
	t->list = NULL;
	OK(fi_getinfo(V1_17, NULL, NULL, 0, t->hints, &t->list));
}

/* Checks that every entry refers to this fabric, and to this domain if it has the domain's name. */
static void tells_of(const struct two *t, struct fid_fabric *fabric, struct fid_domain *domain)
{
	const char *name = t->first.info->domain_attr->name;

	for (struct fi_info *info = t->list; info; info = info->next) {
		bool same = strcmp(info->domain_attr->name, name) == 0;

		CHECK(info->fabric_attr->fabric == fabric);
		if (api_other() && !info->domain_attr->domain)
			continue; /* another library sets no domains */
		CHECK(info->domain_attr->domain == (same ? domain : NULL));
	}
}

#define TELLS_OF(...) (api_at(__FILE__, __LINE__), tells_of(__VA_ARGS__))

/* Entries refer to the first fabric opened, as fi_fabric(3) says; other libraries may set none. */
static void first_opened(struct api *a)
{
	struct two t = {.list = NULL};

	(void)a;
	two_open(&t);
	ask(&t);
	if (api_other() && !t.list->fabric_attr->fabric)
		api_skip("entries tell of no fabric");
	TELLS_OF(&t, t.first.fabric, t.first.domain);
	CLOSE(t.first.domain);
	t.first.domain = NULL;
	ask(&t);
	TELLS_OF(&t, t.first.fabric, NULL);
	CLOSE(t.first.fabric);
	t.first.fabric = NULL;
	ask(&t);
	TELLS_OF(&t, t.second.fabric, t.second.domain);
	obj_close(&t.second);
	ask(&t);
	TELLS_OF(&t, NULL, NULL);
	obj_close(&t.first);
	two_close(&t);
}

/* Hints that name an open object give entries of that object alone, which refer to it. */
static void named(struct api *a)
{
	struct two t = {.list = NULL};
	struct fi_info *none;

	(void)a;
	if (api_other())
		api_skip("hints with open objects are not looked at");
	two_open(&t);
	t.hints->fabric_attr->fabric = t.second.fabric;
	ask(&t);
	TELLS_OF(&t, t.second.fabric, t.second.domain);
	t.hints->fabric_attr->fabric = NULL;
	t.hints->domain_attr->domain = t.second.domain;
	ask(&t);
	TELLS_OF(&t, t.second.fabric, t.second.domain);
	for (struct fi_info *info = t.list; info; info = info->next)
		CHECK(strcmp(info->domain_attr->name, t.second.info->domain_attr->name) == 0);
	t.hints->fabric_attr->fabric = t.first.fabric;
	CHECK_EQ(fi_getinfo(V1_17, NULL, NULL, 0, t.hints, &none), -FI_ENODATA);
	/* An entry can serve as hints even if other objects are open. */
	t.hints->fabric_attr->fabric = NULL;
	ask(&t);
	fi_freeinfo(t.hints);
	t.hints = fi_dupinfo(t.list);
	ask(&t);
	TELLS_OF(&t, t.second.fabric, t.second.domain);
	obj_close(&t.second);
	/* Hints may name a closed object. */
	ask(&t);
	TELLS_OF(&t, t.first.fabric, t.first.domain);
	obj_close(&t.first);
	two_close(&t);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"first_opened", first_opened, 1, {0}},
		{"named", named, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
