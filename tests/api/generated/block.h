/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls in which a process sleeps until something comes. Needs round.h. */
#ifndef GENERATED_BLOCK_H
#define GENERATED_BLOCK_H

#include <poll.h>

#define BLOCK_MS 5000 /* the end of a hang, times SLOWER */

/* The lock: while the process sleeps, another thread may look at what is owed to it; see doze.h. */
static inline void block_state(struct self *s, enum proc_state state)
{
	pthread_mutex_lock(&s->sleeping);
	__atomic_store_n(&s->mine->state, state, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&s->sleeping);
}

static inline void block_begin(struct self *s)
{
	block_state(s, PROC_WAITS);
}

static inline void block_end(struct self *s)
{
	block_state(s, PROC_CALLS);
}

/* Each returns whether it was woken before `ms` were over, or something came. */
static inline bool block_sread(struct self *s, struct fid_cq *cq, int ms)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source = FI_ADDR_UNSPEC;
	ssize_t ret;

	block_begin(s);
	ret = fi_cq_sreadfrom(cq, &e, 1, &source, NULL, ms);
	block_end(s);
	took_read(s, cq, ret, &e, &source);
	return ret != -FI_EAGAIN;
}

static inline bool block_set(struct self *s, int ms)
{
	int ret;

	block_begin(s);
	ret = fi_wait(s->set, ms);
	block_end(s);
	if (ret && ret != -FI_ETIMEDOUT && ret != -FI_EAGAIN && ret != -FI_EINTR)
		PROC_FAIL(s, "call: fi_wait: %d %s", ret, api_word(ret));
	return !ret || ret == -FI_EINTR;
}

static inline bool block_fds(struct self *s, int ms)
{
	struct pollfd fds[PROC_QUEUES] = {0};
	struct fid *fids[PROC_QUEUES];
	int ret;

	for (unsigned int i = 0; i < s->queue_count; i++) {
		fids[i] = &s->queues[i]->fid;
		fds[i].events = POLLIN;
		PROC_OK(s, fi_control(fids[i], FI_GETWAIT, &fds[i].fd));
	}
	ret = fi_trywait(s->fabric, fids, (int)s->queue_count);
	if (ret == -FI_EAGAIN)
		return true;
	PROC_OK(s, ret);
	block_begin(s);
	ret = poll(fds, s->queue_count, ms);
	block_end(s);
	return ret != 0;
}

/* Waits `ms` at most, once, and takes what has come. Returns whether it was woken. */
static inline bool block(struct self *s, int ms)
{
	bool woken = false;

	if (s->w->program.waits == WAITS_SREAD) {
		for (unsigned int i = 0; i < s->queue_count; i++)
			woken |= block_sread(s, s->queues[i], ms);
	} else {
		woken = s->set ? block_set(s, ms) : block_fds(s, ms);
		woken |= round_queues(s);
	}
	round_called(s);
	return woken;
}

/* counters: who waits for one more sleeps until there is one, or an error. */
static inline void block_count(struct self *s, struct fid_cntr *cntr, int ms)
{
	uint64_t more = fi_cntr_read(cntr) + 1, has;
	int ret;

	block_begin(s);
	ret = fi_cntr_wait(cntr, more, ms);
	block_end(s);
	has = fi_cntr_read(cntr);
	if (ret ? ret != -FI_ETIMEDOUT && ret != -FI_EAVAIL && ret != -FI_EINTR : has < more)
		PROC_FAIL(s, "counters: fi_cntr_wait for %" PRIu64 ": %d, and it is %" PRIu64, more,
			  ret, has);
}

#endif
