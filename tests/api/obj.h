/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of objects (endpoints, queues, vectors, regions) share. A program lists its cases
 * and hands them to obj_main; each case runs in a process of its own, so that one that fails or
 * hangs takes no other with it. An expectation that is not met ends the process with status 1.
 */
#ifndef TESTS_API_OBJ_H
#define TESTS_API_OBJ_H

#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OBJ_PATIENCE_MS 20000 /* for anything that has to come */
#define OBJ_CASE_S      50    /* a case that takes longer has hung */
#define OBJ_SKIP        77

#define MUST(cond, ...)                                                                            \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #cond);         \
			fprintf(stderr, "" __VA_ARGS__);                                           \
			fprintf(stderr, "\n");                                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* The result of a call, compared with what it has to be; both are shown when they differ. */
#define IS(call, want)                                                                             \
	do {                                                                                       \
		long long got_ = (long long)(call), want_ = (long long)(want);                     \
		MUST(got_ == want_, "%s is %lld (%s), not %lld", #call, got_,                      \
		     got_ < 0 ? fi_strerror((int)-got_) : "", want_);                              \
	} while (0)

#define OK(call)     IS(call, 0)
#define FAILS(call)  MUST((call) < 0, "an error is due")
#define CLOSE(thing) OK(fi_close(&(thing)->fid))

/* Not a failure: what the case needs is not there. */
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		printf("  cannot: " __VA_ARGS__);                                                  \
		printf("\n");                                                                      \
		fflush(stdout);                                                                    \
		_exit(OBJ_SKIP);                                                                   \
	} while (0)

struct obj_case {
	const char *name;
	void (*run)(void);
};

/* The usual set of objects; members a test does not open stay NULL and are not closed. */
struct obj {
	struct fi_info *hints, *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

struct obj_name {
	size_t len;
	char bytes[256];
};

static inline uint64_t obj_now_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000 + (uint64_t)at.tv_nsec / 1000;
}

/* CPU time this process used so far, in microseconds. */
static inline uint64_t obj_cpu_us(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static inline void obj_sleep_us(uint64_t us)
{
	struct timespec left = {.tv_sec = (time_t)(us / 1000000),
				.tv_nsec = (long)(us % 1000000) * 1000};

	while (nanosleep(&left, &left))
		;
}

/* Polls until `cond`, doing `work`; a failure when it takes longer than patience lasts. */
#define OBJ_UNTIL(cond, work)                                                                      \
	for (uint64_t end_ = obj_now_us() + OBJ_PATIENCE_MS * 1000ULL; !(cond);) {                 \
		MUST(obj_now_us() < end_, "waited for it for %d ms", OBJ_PATIENCE_MS);             \
		work;                                                                              \
	}

/* What $HW names, as a provider; the only place that knows how a test finds its transport. */
static inline struct fi_info *obj_hints(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	const char *hw = getenv("HW");

	MUST(hints, "fi_allocinfo");
	hints->fabric_attr->prov_name = strdup(hw && *hw ? hw : "shm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = caps;
	return hints;
}

/* Asks by o->hints (those of obj_hints if NULL); false when nobody offers it. */
static inline bool obj_find(struct obj *o, uint32_t version)
{
	int ret;

	if (!o->hints)
		o->hints = obj_hints(FI_MSG | FI_TAGGED);
	ret = fi_getinfo(version, NULL, NULL, 0, o->hints, &o->info);
	MUST(ret == 0 || ret == -FI_ENODATA, "fi_getinfo: %s", fi_strerror(-ret));
	return ret == 0;
}

/* Fabric and domain; a case without them is skipped. */
static inline void obj_domain(struct obj *o)
{
	if (!o->info && !obj_find(o, FI_VERSION(1, 17)))
		SKIP("fi_getinfo offers nothing for what this case asks");
	OK(fi_fabric(o->info->fabric_attr, &o->fabric, NULL));
	OK(fi_domain(o->fabric, o->info, &o->domain, NULL));
}

static inline struct fid_cq *obj_cq(struct obj *o, enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wait};
	struct fid_cq *cq;

	OK(fi_cq_open(o->domain, &attr, &cq, NULL));
	return cq;
}

static inline struct fid_cntr *obj_cntr(struct obj *o, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = wait};
	struct fid_cntr *cntr;

	OK(fi_cntr_open(o->domain, &attr, &cntr, NULL));
	return cntr;
}

static inline struct fid_av *obj_av(struct obj *o, enum fi_av_type type, int rx_ctx_bits)
{
	struct fi_av_attr attr = {.type = type, .rx_ctx_bits = rx_ctx_bits};
	struct fid_av *av;

	OK(fi_av_open(o->domain, &attr, &av, NULL));
	return av;
}

static inline struct fid_ep *obj_ep(struct obj *o)
{
	struct fid_ep *ep;

	OK(fi_endpoint(o->domain, o->info, &ep, NULL));
	return ep;
}

/* An enabled endpoint with o's vector, completing on `cq`. */
static inline struct fid_ep *obj_ready_ep(struct obj *o, struct fid_cq *cq)
{
	struct fid_ep *ep = obj_ep(o);

	OK(fi_ep_bind(ep, &o->av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	return ep;
}

/* Everything of struct obj not opened yet. */
static inline void obj_open(struct obj *o)
{
	if (!o->domain)
		obj_domain(o);
	if (!o->av)
		o->av = obj_av(o, FI_AV_MAP, 0);
	if (!o->cq)
		o->cq = obj_cq(o, FI_WAIT_NONE);
	if (!o->ep)
		o->ep = obj_ready_ep(o, o->cq);
}

static inline void obj_close(struct obj *o)
{
	if (o->ep)
		CLOSE(o->ep);
	if (o->cq)
		CLOSE(o->cq);
	if (o->av)
		CLOSE(o->av);
	if (o->domain)
		CLOSE(o->domain);
	if (o->fabric)
		CLOSE(o->fabric);
	fi_freeinfo(o->info);
	fi_freeinfo(o->hints);
	memset(o, 0, sizeof(*o));
}

static inline struct obj_name obj_name(struct fid *fid)
{
	struct obj_name name = {.len = sizeof(name.bytes)};

	OK(fi_getname(fid, name.bytes, &name.len));
	return name;
}

static inline fi_addr_t obj_insert(struct fid_av *av, const struct obj_name *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	IS(fi_av_insert(av, name->bytes, 1, &addr, 0, NULL), 1);
	return addr;
}

/* An endpoint's own address in its vector: messages to oneself. */
static inline fi_addr_t obj_self(struct obj *o, struct fid_ep *ep)
{
	struct obj_name name = obj_name(&ep->fid);

	return obj_insert(o->av, &name);
}

/* Says what went wrong with a completion, and ends. */
static inline void obj_cq_failed(struct fid_cq *cq, ssize_t ret)
{
	struct fi_cq_err_entry err = {0};

	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		MUST(false, "completion with error %d (%s)", err.err, fi_strerror(err.err));
	MUST(false, "fi_cq_read: %s", fi_strerror((int)-ret));
}

/* The next completion and, if wanted, its source. */
static inline struct fi_cq_tagged_entry obj_next(struct fid_cq *cq, fi_addr_t *src)
{
	struct fi_cq_tagged_entry entry = {0};
	fi_addr_t unused;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_readfrom(cq, &entry, 1, src ? src : &unused)) != -FI_EAGAIN, );
	if (ret != 1)
		obj_cq_failed(cq, ret);
	return entry;
}

/* The next completion has to be that of `context`. */
static inline struct fi_cq_tagged_entry obj_done(struct fid_cq *cq, const void *context)
{
	struct fi_cq_tagged_entry entry = obj_next(cq, NULL);

	MUST(entry.op_context == context, "completion of %p", entry.op_context);
	return entry;
}

/* The next completion has to be a failed one. */
static inline struct fi_cq_err_entry obj_error(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = {0};
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN, );
	IS(ret, -FI_EAVAIL);
	IS(fi_cq_readerr(cq, &err, 0), 1);
	return err;
}

/* Nothing comes for `ms`. */
static inline void obj_quiet(struct fid_cq *cq, unsigned int ms)
{
	uint64_t end = obj_now_us() + ms * 1000ULL;
	struct fi_cq_tagged_entry entry;

	while (obj_now_us() < end)
		IS(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

/* A call that may have to be repeated while there is no room; reading `cq` makes some. */
#define POST(cq, call)                                                                             \
	do {                                                                                       \
		ssize_t ret_;                                                                      \
		OBJ_UNTIL((ret_ = (call)) != -FI_EAGAIN, fi_cq_read((cq), NULL, 0));               \
		IS(ret_, 0);                                                                       \
	} while (0)

static inline void obj_fill(void *buf, size_t len, unsigned int seed)
{
	unsigned char *at = buf;

	for (size_t i = 0; i < len; i++)
		at[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static inline void obj_check(const void *buf, size_t len, unsigned int seed)
{
	const unsigned char *at = buf;

	for (size_t i = 0; i < len; i++)
		MUST(at[i] == (unsigned char)(seed + i * 7 + (i >> 8)), "byte %zu of %zu", i, len);
}


/* The status of a child: 0, a failure or OBJ_SKIP. */
static inline int obj_reap(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid, "no child %d", (int)pid);
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "process %d: signal %d%s\n", (int)pid, WTERMSIG(status),
			WTERMSIG(status) == SIGALRM ? ": it hung" : "");
		return 1;
	}
	return WEXITSTATUS(status);
}

static inline int obj_run_case(const struct obj_case *c)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	MUST(pid >= 0, "fork");
	if (pid)
		return obj_reap(pid);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(OBJ_CASE_S);
	c->run();
	exit(0);
}

/* Runs the cases named on the command line, or all. */
static inline int obj_main(int argc, char **argv, const struct obj_case *cases)
{
	int failed = 0, skipped = 0, run = 0;

	for (const struct obj_case *c = cases; c->name; c++) {
		bool named = argc < 2;
		int status;

		for (int i = 1; i < argc; i++)
			named |= !strcmp(argv[i], c->name);
		if (!named)
			continue;
		run++;
		status = obj_run_case(c);
		failed += status != 0 && status != OBJ_SKIP;
		skipped += status == OBJ_SKIP;
		printf("%s %s\n", status == 0 ? "ok  " : status == OBJ_SKIP ? "skip" : "FAIL",
		       c->name);
	}
	if (failed || !run)
		return 1;
	if (skipped == run)
		printf("nothing of it can run here\n");
	return skipped == run ? OBJ_SKIP : 0;
}

#endif
