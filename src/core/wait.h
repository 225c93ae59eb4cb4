/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a blocked reader of a completion queue, event queue or counter sleeps on, and the wait set
 * that joins several of them. fi_cq(3), fi_eq(3), fi_cntr(3), fi_poll(3).
 *
 * No wake-up is lost: the sleeper calls wait_arm, looks at its queue once more and only then
 * sleeps; the producer publishes and then calls wait_notify. One of the two sees the other. A wake
 * disarms, so a stream of completions costs one system call per sleep, not one each.
 *
 * In the library, one thread at a time (the leader) sleeps on the set; others asleep on the same
 * waiter follow it: whatever ends its sleep makes all of them look again.
 */
#ifndef WEFT_CORE_WAIT_H
#define WEFT_CORE_WAIT_H

#include <pthread.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

struct fabric;
struct wait_set;

/* What waiting has taught so far, to guess by how long to poll: see wait_spin.c. */
struct wait_predictor {
	_Alignas(4) uint8_t oversubscribed; /* others want our core; falls to 0 when no more do */
	uint8_t fresh;                      /* the last wait let others run, who did */
	uint8_t doubt;                      /* that what comes next comes while we keep the core */
	uint8_t passed;                     /* waits that did not even try */
};

/* Reads of the application's own, which do not wait, counted by progress calls. Each field is atomic for itself. */
struct wait_polls {
	uint64_t seen;    /* how much had come when the counting began, */
	uint64_t from_us; /* which was then */
	unsigned int from;
	unsigned int most; /* progress calls until others get the core: one of these */
};

#define WAIT_POLLS_ALONE          256 /* some tens of microseconds */
#define WAIT_POLLS_OVERSUBSCRIBED 16  /* where they wanted it the last time */

struct waiter {
	enum fi_wait_obj obj;  /* never FI_WAIT_UNSPEC once opened */
	int epfd;              /* FD, POLLFD, SET: readable when there is something; else -1 */
	int evfd;              /* member of epfd: readable after wait_signal; else -1 */
	int sleeping;          /* atomic: someone may be asleep, signal when something comes */
	struct wait_set *set;  /* FI_WAIT_SET: joined at open, left at wait_fini */
	pthread_mutex_t mutex; /* FI_WAIT_MUTEX_COND: the application's, which may hold it at any
	                          time; nothing here blocks on it */
	pthread_cond_t cond;
	struct fid *owner; /* atomic; SET: the object, which the set arms; see wait_own */
	struct list in_set;
	int rung;     /* atomic: evfd was written to since it was last read */
	int exported; /* atomic: FI_GETWAIT came, someone may sleep without our knowing */
	int also; /* atomic: another descriptor, not ours, that wakes the threads that sleep in the library; or -1 */
	/* Atomic, as a whole. */
	struct wait_predictor predictor;
	struct wait_polls polls;
	int signalling;       /* atomic: threads on their way to signal cond; see wait_cond.c */
	pthread_mutex_t gate; /* guards the rest; held for a few instructions, never while asleep */
	pthread_cond_t woken; /* followers */
	unsigned int wakes;   /* atomic to read: ends of sleeps */
	bool leader;          /* one of us sleeps on epfd */
};

/*
 * Opens what `obj` needs (FI_WAIT_UNSPEC becomes FI_WAIT_FD). `set` only with FI_WAIT_SET.
 * 0, -FI_EINVAL for an unknown kind or a missing set, or the error of the system call. Both take
 * the lock of the wait set: not with the domain locked.
 */
int wait_init(struct waiter *w, enum fi_wait_obj obj, struct fid_wait *set);
void wait_fini(struct waiter *w);

/* Says whose waiter it is, once the object is complete: a wait set can arm it from now on. */
void wait_own(struct waiter *w, struct fid *owner);

/* Makes a descriptor (a worker's poller) a reason to wake. Nothing to do without epfd. 0 or -errno. */
int wait_add_fd(struct waiter *w, int fd);
/* The same for other events of it, as epoll_ctl(2) names them. It may be closed without being taken out. */
int wait_watch_fd(struct waiter *w, int fd, uint32_t events);
void wait_del_fd(struct waiter *w, int fd);

/* Wakes the threads that sleep. From any thread, with or without the domain's lock; never blocks. */
void wait_signal(struct waiter *w);
/* Takes back what wait_signal left in the descriptor; before the application sleeps on it, once armed. */
void wait_drain(struct waiter *w);

/*
 * To be called where something became readable: one load when nobody sleeps. Partner: wait_arm.
 * What was published must be so under a lock the sleeper looks under, or by a sequentially
 * consistent operation.
 */
static inline void wait_notify(struct waiter *w)
{
	if (__builtin_expect(__atomic_load_n(&w->sleeping, __ATOMIC_SEQ_CST), 0))
		wait_signal(w);
}

/*
 * Announces a sleep: what is published from now on signals. Look at the queue again after it. The
 * result is for wait_sleep_since. The flag clears itself; clearing it may rob another thread.
 */
unsigned int wait_arm(struct waiter *w);

/*
 * Sleeps until signalled or `timeout` ms passed (-1: no limit), or not at all when anything was
 * signalled since that wait_arm. No lock held. 0 (look again), -FI_EAGAIN (time is up) or
 * -FI_EINTR.
 */
int wait_sleep_since(struct waiter *w, unsigned int armed, int timeout);

/*
 * The same for a waiter that only this thread sleeps on, with `sleeping` set. Armed again when it
 * returns. 0 or -FI_EAGAIN.
 */
int wait_sleep(struct waiter *w, int timeout);

/* What a blocking call waits for; embedded in the caller's own struct. */
struct wait_for {
	/*
	 * Makes progress and says whether the call can return. false with `arm` is a promise:
	 * whatever comes from now on wakes us. Called without locks.
	 */
	bool (*ready)(struct wait_for *self, bool arm);
	/* ms: longest sleep at a stretch, where not everything can wake us; 0: no limit. May be set
	   by `ready`. */
	int nap;
	/* Counts the parts of something longer that `ready` has brought. */
	unsigned int parts;
};

/* The first part of wait_until: polls for as long as it is worth it, until `ready` (true) or until `end`. */
bool wait_spin(struct waiter *w, struct wait_for *what, uint64_t end);

/* When a wait of `timeout` ms (negative: no limit) that begins now ends, in microseconds. */
static inline uint64_t wait_end(int timeout)
{
	return timeout < 0 ? UINT64_MAX : clock_us() + (uint64_t)timeout * 1000;
}

/*
 * The whole of a blocking call: polls for a while (FI_WEFT_SPIN_US, from the last part on), then sleeps, until
 * `ready` or until `end`. 0, -FI_ETIMEDOUT or -FI_EINTR.
 */
int wait_until(struct waiter *w, struct wait_for *what, uint64_t end);

/* A read that does not wait has found nothing after so many progress calls: is it time for wait_give_way? */
static inline bool wait_polled(const struct waiter *w, unsigned int progress_calls)
{
	return __builtin_expect(progress_calls -
						__atomic_load_n(&w->polls.from, __ATOMIC_RELAXED) >=
					__atomic_load_n(&w->polls.most, __ATOMIC_RELAXED),
				0);
}

/*
 * Lets others have the core if nothing came meanwhile (`seen` is how much has come so far) and the application does
 * nothing but read: it would keep the core to the end of its time slice, from the very ones who have to send what it
 * waits for. No lock held.
 */
void wait_give_way(struct waiter *w, unsigned int progress_calls, uint64_t seen);

/* There is nothing to sleep on: who waits polls, letting other threads run in between, until the end. */
static inline bool wait_only_polls(const struct waiter *w)
{
	return w->obj == FI_WAIT_YIELD || w->obj == FI_WAIT_NONE;
}

/* Nothing but wait_signal wakes it, no descriptor does: workers need a thread to drive them. */
bool wait_must_poll(const struct waiter *w);

/* FI_GETWAIT and FI_GETWAITOBJ as fi_control gives them. */
int wait_control(struct waiter *w, int command, void *arg);

/* wait_signal for FI_WAIT_MUTEX_COND. */
void wait_cond_signal(struct waiter *w);

/* fi_wait_open: a set of its own whose descriptor is readable when a member's is. */
int wait_set_open(struct fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set);

#endif
