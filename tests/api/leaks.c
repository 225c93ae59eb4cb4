/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening, using and closing objects many times leaves the numbers of descriptors, threads and
 * mappings unchanged, and memory does not grow; the same holds for a peer.
 * TIMEOUT=120
 */
#include <dirent.h>

#include "obj.h"

#define WARM_UP 50 /* rounds that fill caches and malloc arenas, however few follow */
#define TIMES   ((int)api_times(450)) /* rounds that are measured */
/* Allowed growth (bytes) of resident memory over all rounds, and its lower bound. */
#define GROWTH       ((size_t)api_times(1024) << 10)
#define GROWTH_LEAST (512u << 10)

struct use {
	long fds, threads, mappings;
	size_t bytes;
};

static long entries(const char *path)
{
	DIR *dir = opendir(path);
	long count = 0;

	CHECK(dir != NULL);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static struct use use_now(void)
{
	struct use u = {.fds = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
	FILE *maps = fopen("/proc/self/maps", "r"), *statm = fopen("/proc/self/statm", "r");
	long pages = 0;
	int c;

	CHECK(maps && statm);
	while ((c = fgetc(maps)) != EOF)
		u.mappings += c == '\n';
	CHECK(fscanf(statm, "%*d %ld", &pages) == 1);
	u.bytes = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
	fclose(maps);
	fclose(statm);
	return u;
}

/* Not under memory checkers, which delay frees and find leaks themselves. */
static bool grew(const struct use *before, const struct use *now)
{
	size_t growth = GROWTH > GROWTH_LEAST ? GROWTH : GROWTH_LEAST;

	return !getenv("SLOWER") &&
	       (now->bytes > before->bytes + growth || now->mappings > before->mappings + 4);
}

/* Returns the current use. A joined thread may stay listed for a moment. */
static struct use use_quiesced(const struct use *before)
{
	struct use now = use_now();

	for (int n = 0; n < 100 && now.threads > before->threads; n++) {
		obj_sleep_us(10000);
		now = use_now();
	}
	return now;
}

static void same(const struct use *before)
{
	struct use now = use_quiesced(before);

	if (now.fds != before->fds || now.threads != before->threads || grew(before, &now)) {
		fprintf(stderr,
			"  descriptors %ld, then %ld; threads %ld, %ld; mappings %ld, %ld; "
			"KiB %zu, %zu\n",
			before->fds, now.fds, before->threads, now.threads, before->mappings,
			now.mappings, before->bytes >> 10, now.bytes >> 10);
		api_fail("something is left behind");
	}
}

/* Runs `once` WARM_UP times, then TIMES, and compares the use before and after. */
static void repeat(void (*once)(void *), void *arg)
{
	int warm = WARM_UP, times = warm + TIMES;
	struct use before = {0};

	obj_time_limit(25);
	for (int n = 0; n < times; n++) {
		if (n == warm)
			before = use_now();
		once(arg);
	}
	same(&before);
}

/* Sends to itself and to another endpoint, short and long messages. */
static void talk(struct obj *o, struct fid_ep *other)
{
	static char out[100000], in[100000];
	fi_addr_t addr[2] = {obj_insert_ep(o->av, o->ep), obj_insert_ep(o->av, other)};

	for (int i = 0; i < 4; i++) {
		size_t len = i < 2 ? 8 : sizeof(out);

		OK(fi_recv(i % 2 ? other : o->ep, in, len, NULL, FI_ADDR_UNSPEC, in));
		POST(o->cq, fi_send(o->ep, out, len, NULL, addr[i % 2], out));
		obj_next(o->cq, NULL);
		obj_next(o->cq, NULL);
	}
	OK(fi_av_remove(o->av, addr, 2, 0));
}

static void open_endpoints(void *arg)
{
	struct obj *o = arg;
	struct fid_ep *other = obj_ready_ep(o, o->cq);

	o->ep = obj_ready_ep(o, o->cq);
	talk(o, other);
	CLOSE(other);
	CLOSE(o->ep);
	o->ep = NULL;
}

static void endpoints(struct api *a)
{
	struct obj o = {0};

	(void)a;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	o.cq = obj_cq(&o, FI_WAIT_FD);
	repeat(open_endpoints, &o);
	obj_close(&o);
}

/* Opens all objects and leaves a receive and a message behind. */
static void open_everything(void *arg)
{
	enum fi_progress *progress = arg;
	struct obj o = {0};
	struct fid_mr *mr;
	static int in;

	o.hints = obj_hints(FI_MSG | FI_TAGGED);
	o.hints->domain_attr->data_progress = *progress;
	obj_domain(&o);
	o.cq = obj_cq(&o, FI_WAIT_FD);
	obj_open(&o);
	talk(&o, o.ep);
	OK(fi_mr_reg(o.domain, &in, sizeof(in), FI_SEND | FI_RECV, 0, 1, 0, &mr, NULL));
	OK(fi_recv(o.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
	POST(o.cq, fi_tinject(o.ep, &in, sizeof(in), obj_insert_ep(o.av, o.ep), 1));
	CLOSE(mr);
	obj_close(&o);
}

static void everything(struct api *a)
{
	enum fi_progress manual = FI_PROGRESS_MANUAL;

	(void)a;
	repeat(open_everything, &manual);
}

static void with_thread(struct api *a)
{
	enum fi_progress automatic = FI_PROGRESS_AUTO;

	(void)a;
	repeat(open_everything, &automatic);
}

/* Opens contexts and aliases. */
static void open_contexts(void *arg)
{
	struct obj *o = arg;
	struct fid_ep *sep, *tx, *rx, *alias;

	OK(fi_scalable_ep(o->domain, o->info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &o->av->fid, 0));
	OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
	OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
	OK(fi_ep_bind(tx, &o->cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(rx, &o->cq->fid, FI_RECV));
	OK(fi_enable(sep));
	OK(fi_enable(tx));
	OK(fi_enable(rx));
	OK(fi_ep_alias(tx, &alias, FI_TRANSMIT));
	CLOSE(alias);
	CLOSE(tx);
	CLOSE(rx);
	CLOSE(sep);
}

static void contexts(struct api *a)
{
	struct obj o = {0};

	(void)a;
	if (api_other())
		api_skip("aliases of contexts");
	o.hints = obj_hints(FI_MSG | FI_NAMED_RX_CTX);
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 1);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	repeat(open_contexts, &o);
	obj_close(&o);
}

/* Calls fi_getinfo as a program does at its start. */
static void ask(void *arg)
{
	struct obj o = {0};

	(void)arg;
	CHECK(obj_find(&o, FI_VERSION(1, 17)));
	fi_freeinfo(o.info);
	fi_freeinfo(o.hints);
}

static void infos(struct api *a)
{
	(void)a;
	repeat(ask, NULL);
}

/* Rank 0 keeps its endpoint. Rank 1 opens one, both send, and rank 1 closes it again. */
static void visit(struct api *a, struct obj *o)
{
	static char in[100000], out[100000];
	fi_addr_t peer = obj_swap(a, o->ep, o->av);

	OK(fi_recv(o->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	POST(o->cq, fi_send(o->ep, out, sizeof(out), NULL, peer, out));
	obj_next(o->cq, NULL);
	obj_next(o->cq, NULL);
	api_meet(a);
	OK(fi_av_remove(o->av, &peer, 1, 0));
}

static void visitor(struct api *a)
{
	int warm = WARM_UP, times = warm + TIMES;
	struct use before = {0};
	struct obj o = {0};

	obj_time_limit(60);
	if (a->rank == 0)
		obj_open(&o);
	for (int n = 0; n < times; n++) {
		if (a->rank == 1)
			obj_open(&o);
		if (a->rank == 0 && n == warm)
			before = use_now();
		obj_progress(a, o.cq);
		visit(a, &o);
		a->progress = NULL;
		if (a->rank == 1)
			obj_close(&o);
	}
	api_meet(a);
	if (a->rank == 1)
		return;
	/* The end of the last visitor may be noticed a little later. */
	for (int n = 0; n < 100 && use_now().fds != before.fds; n++) {
		obj_sleep_us(10000);
		fi_cq_read(o.cq, NULL, 0);
	}
	same(&before);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"endpoints", endpoints, 1, {0}},
		{"everything", everything, 1, {0}},
		{"with_thread", with_thread, 1, {0}},
		{"contexts", contexts, 1, {0}},
		{"infos", infos, 1, {0}},
		{"visitor", visitor, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
