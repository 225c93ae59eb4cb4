/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A passive target: gives away its key, sleeps until a signal, then checks its memory without
 * calling the library. Writes and reads by peers must complete while the target sleeps. Needs
 * rma_buf.h.
 */
#ifndef API_RMA_PASSIVE_H
#define API_RMA_PASSIVE_H

#include <sys/uio.h>

#define PASSIVE_SIZE (2u << 20)

static unsigned char passive_memory[PASSIVE_SIZE]; /* memory of the sleeping rank */
static volatile sig_atomic_t passive_woken;

struct passive {
	struct rma r;
	struct rma_target t;
	pid_t sleeper;
	unsigned char *model; /* shared by all processes: expected content of `passive_memory` */
};

static inline void passive_signal(int sig)
{
	passive_woken = sig;
}

/* Skips the case unless this process may read the sleeper's memory (process_vm_readv). */
static inline void passive_probe(const struct passive *p, uintptr_t at)
{
	unsigned char byte;
	struct iovec here = {&byte, 1}, there = {(void *)at, 1};

	if (process_vm_readv(p->sleeper, &here, 1, &there, 1, 0) != 1)
		api_skip("the kernel lets no process reach into another one's memory");
}

/* Opens all processes. The sleeper's memory and the model hold message 1. */
static inline void passive_open(struct passive *p, struct api *a, const struct rma_opts *o)
{
	int last = a->ranks - 1;
	struct {
		uintptr_t pid, at; /* no padding: sent as bytes */
	} mine = {(uintptr_t)getpid(), (uintptr_t)passive_memory}, all[API_RANKS];
	unsigned char *first = malloc(8);

	rma_open(&p->r, a, o);
	CHECK(first != NULL);
	if (!api_other())
		CHECK(rma_mode(&p->r, FI_MR_PROV_KEY));
	p->model = a->shared;
	data_fill(a->rank == last ? passive_memory : p->model, PASSIVE_SIZE, 1);
	rma_target_open(&p->r, &p->t, passive_memory, PASSIVE_SIZE);
	api_swap(a, &mine, all, sizeof(mine));
	p->sleeper = (pid_t)all[last].pid;
	passive_probe(p, all[last].at);
	p->r.addr[!a->rank] = p->r.addr[last];
	if (a->rank != last) /* connects to the target while it is awake */
		RMA_PLAIN(&p->r, RMA_READ, first, 8, &p->t.key, 0);
	free(first);
}

static inline void passive_close(struct passive *p)
{
	rma_target_close(&p->r, &p->t);
	rma_close(&p->r);
}

/* Run by the last rank, between two barriers. */
static inline void passive_sleep(struct passive *p)
{
	void (*progress)(void *) = p->r.a->progress;
	sigset_t none, usr1;

	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signal(SIGUSR1, passive_signal);
	api_meet(p->r.a);
	p->r.a->progress = NULL;
	while (!passive_woken)
		sigsuspend(&none);
	passive_woken = 0;
	RMA_SAME(passive_memory, p->model, PASSIVE_SIZE);
	p->r.a->progress = progress;
}

static inline void passive_wake(const struct passive *p)
{
	CHECK(kill(p->sleeper, SIGUSR1) == 0);
}

static inline void passive_needs_all(void)
{
	if (api_other())
		api_skip("this library needs the target for some of it");
}

/* For two processes: rank 0 does `work` while rank 1 sleeps. */
static inline void passive_run(struct api *a, const struct rma_opts *o,
			       void (*work)(struct passive *p))
{
	struct passive p;

	passive_open(&p, a, o);
	if (a->rank == 1) {
		passive_sleep(&p);
	} else {
		api_meet(a);
		work(&p);
		passive_wake(&p);
	}
	passive_close(&p);
}

static inline void passive_put(struct passive *p, enum rma_form form, size_t len, size_t at,
			       unsigned int seed)
{
	unsigned char *buf = malloc(len);

	CHECK(buf != NULL);
	data_fill(buf, len, seed);
	memcpy(p->model + at, buf, len);
	RMA_PLAIN(&p->r, form, buf, len, &p->t.key, at);
	free(buf);
}

#endif
