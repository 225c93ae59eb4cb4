/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo with open objects: entries refer to open fabrics and domains, and hints can name them.
 * fi_fabric(3), fi_domain(3).
 */
#include <pthread.h>

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

		if (strcmp(info->fabric_attr->prov_name, t->list->fabric_attr->prov_name) != 0)
			continue; /* tcp;ofi_rxm where tcp is named */
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

/* ---- What a domain was opened with ----------------------------------------------------------- */

#define BASIC (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

/* Attributes of a domain, and of an entry that names it. */
struct attrs {
	enum fi_threading threading;
	enum fi_progress data, control;
	int mr_mode;
};

/* `asked` with a domain that was opened for `has`. The entry has `given`; no entry if `none`. */
static const struct {
	struct attrs has, asked;
	bool none;
	struct attrs given;
} rows[] = {
	/* Nothing asked: the domain's */
	{{FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0},
	 {0},
	 false,
	 {FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0}},
	{{FI_THREAD_SAFE, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO, 0},
	 {0},
	 false,
	 {FI_THREAD_SAFE, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO, 0}},
	/* Threading: what is asked, as endpoints can be opened with more than their domain */
	{{FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0},
	 {.threading = FI_THREAD_SAFE},
	 false,
	 {FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0}},
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0},
	 {.threading = FI_THREAD_DOMAIN},
	 false,
	 {FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0}},
	/* Progress: a thread is there or not */
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0},
	 {.data = FI_PROGRESS_AUTO},
	 true,
	 {0}},
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0},
	 {.control = FI_PROGRESS_AUTO},
	 true,
	 {0}},
	{{FI_THREAD_SAFE, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL, 0},
	 {.control = FI_PROGRESS_AUTO},
	 false,
	 {FI_THREAD_SAFE, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO, 0}},
	/* Regions: the domain's way, if the hints offer it */
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0},
	 {.mr_mode = BASIC},
	 false,
	 {FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0}},
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_MR_BASIC},
	 {.mr_mode = BASIC},
	 false,
	 {FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, BASIC}},
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_MR_BASIC},
	 {.mr_mode = FI_MR_BASIC},
	 false,
	 {FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_MR_BASIC}},
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_MR_BASIC},
	 {.mr_mode = 0},
	 true,
	 {0}},
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_MR_BASIC},
	 {.mr_mode = FI_MR_SCALABLE},
	 true,
	 {0}},
	{{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, 0},
	 {.mr_mode = FI_MR_BASIC},
	 true,
	 {0}},
};

static void put_attrs(struct fi_domain_attr *to, const struct attrs *from)
{
	to->threading = from->threading;
	to->data_progress = from->data;
	to->control_progress = from->control;
	to->mr_mode = from->mr_mode;
}

static void attrs_are(const struct fi_domain_attr *attr, const struct attrs *wanted)
{
	CHECK_EQ(attr->threading, wanted->threading);
	CHECK_EQ(attr->data_progress, wanted->data);
	CHECK_EQ(attr->control_progress, wanted->control);
	CHECK_EQ(attr->mr_mode, wanted->mr_mode);
}

/* An entry for an open domain says what that domain gives; else there is none. */
static void gives(struct api *a)
{
	(void)a;
	if (api_other())
		api_skip("hints with open objects are not looked at");
	for (size_t i = 0; i < API_COUNT(rows); i++) {
		struct fi_info *hints = obj_hints(FI_MSG), *list = NULL;
		struct obj o = {.hints = obj_hints(FI_MSG)};

		put_attrs(o.hints->domain_attr, &rows[i].has);
		obj_domain(&o);
		put_attrs(hints->domain_attr, &rows[i].asked);
		hints->domain_attr->domain = o.domain;
		CHECK_EQ(fi_getinfo(V1_17, NULL, NULL, 0, hints, &list),
			 rows[i].none ? -FI_ENODATA : 0);
		if (list)
			attrs_are(list->domain_attr, &rows[i].given);
		fi_freeinfo(list);
		/* Without the domain in the hints there is an entry, for another domain if need be. */
		hints->domain_attr->domain = NULL;
		OK(fi_getinfo(V1_17, NULL, NULL, 0, hints, &list));
		if (rows[i].none)
			CHECK(list->domain_attr->domain == NULL);
		fi_freeinfo(list);
		fi_freeinfo(hints);
		obj_close(&o);
	}
}

/* ---- Endpoints of another threading level ---------------------------------------------------- */

/* What threads of the second part share: each sends to the endpoint, which receives that. */
struct part {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t self;
	unsigned int messages; /* of each thread */
	unsigned int left;     /* atomic: completions to come */
};

static uint64_t thread_in, thread_out;

static void *exchange(void *arg)
{
	struct part *p = arg;
	struct fi_cq_tagged_entry entry;

	for (unsigned int i = 0; i < p->messages; i++) {
		POST(p->cq, fi_trecv(p->ep, &thread_in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, &thread_in));
		POST(p->cq, fi_tsend(p->ep, &thread_out, 8, NULL, p->self, 0, &thread_out));
		while (fi_cq_read(p->cq, &entry, 1) == 1)
			__atomic_sub_fetch(&p->left, 1, __ATOMIC_RELAXED);
	}
	OBJ_UNTIL(!__atomic_load_n(&p->left, __ATOMIC_RELAXED),
		  if (fi_cq_read(p->cq, &entry, 1) == 1)
			  __atomic_sub_fetch(&p->left, 1, __ATOMIC_RELAXED));
	return NULL;
}

static void run_threads(struct part *p)
{
	pthread_t thread[3];

	p->left = 2 * p->messages * API_COUNT(thread);
	for (size_t i = 0; i < API_COUNT(thread); i++)
		CHECK_EQ(pthread_create(&thread[i], NULL, exchange, p), 0);
	for (size_t i = 0; i < API_COUNT(thread); i++)
		CHECK_EQ(pthread_join(thread[i], NULL), 0);
	obj_quiet(p->cq, 1);
}

/*
 * A part of a program opens a domain for FI_THREAD_DOMAIN. Another part asks for FI_THREAD_SAFE on this domain: from
 * then on its threads use an endpoint together.
 */
static void threads(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG | FI_TAGGED)};
	struct fi_info *hints = obj_hints(FI_MSG | FI_TAGGED), *safe;
	struct part p = {.messages = api_times(20000)};

	(void)a;
	if (api_other())
		api_skip("other libraries promise what they do not give");
	obj_time_limit(30);
	o.hints->domain_attr->threading = FI_THREAD_DOMAIN;
	obj_open(&o);
	hints->domain_attr->domain = o.domain;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	OK(fi_getinfo(V1_17, NULL, NULL, 0, hints, &safe));
	p.cq = obj_cq(&o, FI_WAIT_NONE);
	OK(fi_endpoint(o.domain, safe, &p.ep, NULL));
	OK(fi_ep_bind(p.ep, &o.av->fid, 0));
	OK(fi_ep_bind(p.ep, &p.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(p.ep));
	p.self = obj_insert_ep(o.av, p.ep);
	run_threads(&p);
	CLOSE(p.ep);
	CLOSE(p.cq);
	fi_freeinfo(safe);
	fi_freeinfo(hints);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"gives", gives, 1, {0}},
		{"threads", threads, 1, {0}},
		{"first_opened", first_opened, 1, {0}},
		{"named", named, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
