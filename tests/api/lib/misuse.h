/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that a manual page forbids, one a line: MISUSE(name, wanted, call). Each runs in a process of its own, with all
 * kinds of objects open (struct bench), and returns what the page says, or any error where it says nothing; afterwards the
 * objects work, and can be closed. Needs obj.h and rig.h.
 */
#ifndef API_MISUSE_H
#define API_MISUSE_H

#include <rdma/fi_collective.h>
#include <rdma/fi_ext.h>

#include "../../valgrind.h"

#define FINE    0 /* the call is harmless */
#define REFUSED 1 /* any error but -FI_EAGAIN */
#define ANY     2 /* any answer: the page promises nothing */
#define SKIPPED 3 /* not run */

/* What costs instructions of a short message is told in builds with debug checks alone (make asan). */
#if ENABLE_DEBUG
#define CHECKED(error) (error)
#else
#define CHECKED(error) SKIPPED
#endif

/* Uses an object that was closed: of that a memory checker speaks by itself. */
#define CLOSED(error) (error), .closed = true
#if defined(__SANITIZE_ADDRESS__)
#define CHECKS_MEMORY true
#else
#define CHECKS_MEMORY in_valgrind()
#endif

struct bench {
	struct rig r;
	struct obj other; /* of a fabric of its own */
	struct fid_eq *eq;
	struct fid_wait *waits;
	struct fid_poll *polls;
	struct fid_pep *pep; /* NULL where the provider has none */
	struct fid_ep *idle; /* not enabled, nothing is bound */
	struct fi_info *info, *msg_info;
	char bytes[64];
	size_t len;
	/* For what a call gives back. */
	union {
		struct fid_fabric *fabric;
		struct fid_domain *domain;
		struct fid_ep *ep;
		struct fid_pep *pep;
		struct fid_cq *cq;
		struct fid_cntr *cntr;
		struct fid_eq *eq;
		struct fid_av *av;
		struct fid_av_set *set;
		struct fid_mr *mr;
		struct fid_mc *mc;
		struct fid_poll *polls;
		struct fid_wait *waits;
		struct fid_stx *stx;
		struct fi_info *info;
		fi_addr_t addr;
		uint32_t event;
		void *any;
	} out;
};

struct misuse {
	const char *name;
	ssize_t (*call)(struct bench *b);
	int wanted;
	bool closed;
};

/* The linker makes a list of these. */
#define MISUSE(call_name, error, ...)                                                              \
	static ssize_t call_name(struct bench *b)                                                  \
	{                                                                                          \
		(void)b;                                                                           \
		return __VA_ARGS__;                                                                \
	}                                                                                          \
	static const struct misuse call_name##_row = {                                             \
		.name = #call_name, .call = call_name, .wanted = error};                           \
	static const struct misuse *const call_name##_at                                           \
		__attribute__((used, section("misuses"))) = &call_name##_row

extern const struct misuse *const __start_misuses[], *const __stop_misuses[];

#define EP(b)     ((b)->r.o.ep)
#define DOMAIN(b) ((b)->r.o.domain)

static inline void misuse_open(struct bench *b)
{
	struct fi_info *hints;

	memset(b, 0, sizeof(*b));
	rig_open(&b->r, &(struct rig_opts){.caps = FI_TRIGGER | FI_COLLECTIVE});
	b->info = b->r.o.info;
	obj_open(&b->other);
	OK(fi_eq_open(b->r.o.fabric,
		      &(struct fi_eq_attr){.wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE}, &b->eq,
		      NULL));
	OK(fi_wait_open(b->r.o.fabric, &(struct fi_wait_attr){.wait_obj = FI_WAIT_FD}, &b->waits));
	OK(fi_poll_open(DOMAIN(b), &(struct fi_poll_attr){0}, &b->polls));
	b->idle = obj_ep(&b->r.o);
	hints = obj_hints(FI_MSG);
	hints->ep_attr->type = FI_EP_MSG;
	if (!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &b->msg_info))
		OK(fi_passive_ep(b->r.o.fabric, b->msg_info, &b->pep, NULL));
	fi_freeinfo(hints);
	b->len = sizeof(b->bytes);
}

/* A message comes from the endpoint to itself; then all can be closed. */
static inline void misuse_close(struct bench *b)
{
	char got[8] = {0};

	if (EP(b)) {
		OK(fi_trecv(EP(b), got, sizeof(got), NULL, FI_ADDR_UNSPEC, 99, 0, got));
		POST(b->r.o.cq, fi_tinject(EP(b), "works", 6, b->r.self, 99));
		OBJ_UNTIL(!strcmp(got, "works"), rig_progress(&b->r));
	}
	if (b->pep)
		CLOSE(b->pep);
	fi_freeinfo(b->msg_info);
	if (b->idle)
		CLOSE(b->idle);
	if (b->polls)
		CLOSE(b->polls);
	if (b->waits)
		CLOSE(b->waits);
	if (b->eq)
		CLOSE(b->eq);
	obj_close(&b->other);
	rig_close(&b->r);
}

static inline void misuse_judge(const struct misuse *m, ssize_t got)
{
	if (m->wanted == ANY || (m->wanted == REFUSED && got < 0 && got != -FI_EAGAIN))
		return;
	api_check_eq(got, m->wanted == REFUSED ? -FI_EINVAL : m->wanted, m->name);
}

static inline void misuse_run(const struct misuse *m)
{
	struct bench b;

	alarm(api_limit());
	misuse_open(&b);
	api_name = m->name;
	api_at(__FILE__, __LINE__);
	misuse_judge(m, m->call(&b));
	misuse_close(&b);
	exit(0);
}

/* Runs all lines, even after a failure. Each has its own limit of time. */
static inline void misuse_all(struct api *a)
{
	unsigned int bad = 0;

	(void)a;
	alarm(0);
	for (const struct misuse *const *m = __start_misuses; m < __stop_misuses; m++) {
		int status;
		pid_t pid;

		if ((*m)->wanted == SKIPPED || ((*m)->closed && CHECKS_MEMORY))
			continue;
		pid = fork();
		if (!pid)
			misuse_run(*m);
		CHECK(waitpid(pid, &status, 0) == pid);
		if (WIFSIGNALED(status))
			fprintf(stderr, "%s: ended by signal %d\n", (*m)->name, WTERMSIG(status));
		bad += status != 0;
	}
	CHECK_EQ(bad, 0);
}

static inline int misuse_main(int argc, char **argv)
{
	static const struct api_case cases[] = {{"misuse", misuse_all, 1, {0}}};

	for (const struct misuse *const *m = __start_misuses; argc > 1 && m < __stop_misuses; m++)
		if (!strcmp((*m)->name, argv[1]))
			misuse_run(*m);
	return api_main(argc, argv, cases, API_COUNT(cases));
}

#endif
