/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiters: what a blocked reader of a completion queue, event queue or counter sleeps on; and wait
 * sets, which join several waiters. fi_cq(3), fi_eq(3), fi_cntr(3), fi_poll(3).
 *
 * No wakeup is lost: the sleeper calls wait_arm, checks its queue again and only then sleeps; the
 * producer publishes and then calls wait_notify. One of the two sees the other's store. A wakeup
 * disarms, so a stream of completions costs one system call per sleep, not one per completion.
 *
 * Inside the library one thread per waiter (the leader) polls the descriptors; other sleepers on
 * the same waiter follow it: the end of the leader's sleep makes all of them check again.
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
#include "base/lock.h"

struct domain;
struct fabric;
struct wait_set;
struct waitable;

/* What a queue or counter shows to poll sets. */
struct wait_view {
	struct domain *dom;
	int *ref;              /* atomic: its users */
	uint64_t done, failed; /* of a counter, as far as they are news for fi_poll */
};

struct waitable_ops {
	/* For fi_trywait. 0: every event from now on signals its wait object; -FI_EAGAIN: read first. */
	int (*arm)(struct waitable *self);
	/* For wait sets: makes progress; true if there is something to read. Sets are in no set: NULL from here on. */
	bool (*ready)(struct waitable *self);
	/* For poll sets. Event queues are in none: NULL. */
	struct wait_view (*look)(struct waitable *self);
	/* Makes progress; true if there is something to read, or differs from `seen`, which is brought up to date. */
	bool (*polled)(struct waitable *self, struct wait_view *seen);
};

/* How objects begin that an application can wait for: completion and event queues, counters, wait sets, poll sets. */
struct waitable {
	struct fid fid;
	void *ops; /* struct fi_ops_cq and its like */
	const struct waitable_ops *waits;
};

/* What earlier waits taught about how long to poll: see wait_spin.c. */
struct wait_predictor {
	_Alignas(4) uint8_t oversubscribed; /* > 0: others want our core; falls to 0 when none do */
	uint8_t fresh;                      /* other threads ran during the last sched_yield */
	uint8_t doubt;  /* up to DOUBT_MOST: polling on a core just regained was in vain */
	uint8_t passed; /* waits that skipped polling because of `doubt` */
};

/* The application's nonblocking reads, counted in progress calls. Each field is atomic. */
struct wait_polls {
	uint64_t seen;    /* events that had come when the count began */
	uint64_t from_us; /* time when the count began */
	unsigned int from;
	unsigned int most; /* progress calls until we yield the core: one of these */
};

#define WAIT_POLLS_ALONE          256 /* some tens of microseconds */
#define WAIT_POLLS_OVERSUBSCRIBED 16  /* if other threads ran at the last yield */

struct waiter {
	enum fi_wait_obj obj; /* never FI_WAIT_UNSPEC once opened */
	int epfd; /* FD, POLLFD, SET: epoll descriptor, readable if there is an event; else -1 */
	int evfd; /* eventfd in epfd, readable after wait_signal; else -1 */
	int sleeping; /* atomic: a thread may sleep, so events must signal */
	/* FI_WAIT_SET: joined by wait_init, left by wait_fini. */
	struct wait_set *set;
	/* FI_WAIT_MUTEX_COND: the application may hold it any time; nothing here blocks on it. */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	/* Atomic; FI_WAIT_SET: what the set arms; see wait_own. */
	struct waitable *owner;
	struct list in_set;
	int rung;     /* atomic: evfd was written since it was last read */
	int exported; /* atomic: FI_GETWAIT was called, so the application may sleep by itself */
	/* Atomic: a further descriptor, not owned, that wakes the leader too; or -1. */
	int also;
	/* Read and written atomically as a whole. */
	struct wait_predictor predictor;
	struct wait_polls polls;
	int signalling;       /* atomic: threads that are about to signal cond; see wait_sleep.c */
	pthread_mutex_t gate; /* guards the fields below; held briefly, never while asleep */
	pthread_cond_t woken; /* followers sleep on this */
	unsigned int wakes;   /* atomic to read: how often sleepers were woken */
	bool leader;          /* a thread sleeps on epfd */
};

/*
 * wait_init opens what `obj` needs; FI_WAIT_UNSPEC becomes FI_WAIT_FD; `set` only with FI_WAIT_SET. 0, -FI_EINVAL for
 * an unknown kind or a missing set, or a system error. Both take the wait set's lock; domain not locked.
 */
int wait_init(struct waiter *w, enum fi_wait_obj obj, struct fid_wait *set);
void wait_fini(struct waiter *w);

/* Names the waiter's object once the object is complete; a wait set can arm it from now on. */
void wait_own(struct waiter *w, struct waitable *owner, const struct waitable_ops *waits);

/* Makes a readable descriptor wake sleepers. Does nothing without epfd. 0 or -errno. */
int wait_add_fd(struct waiter *w, int fd);
/* The same for other epoll_ctl(2) events. Closing `fd` without wait_del_fd is permitted. */
int wait_watch_fd(struct waiter *w, int fd, uint32_t events);
void wait_del_fd(struct waiter *w, int fd);

/* Wakes all sleepers. From any thread, domain locked or not; never blocks. */
void wait_signal(struct waiter *w);
/*
 * Consumes what wait_signal wrote to evfd. For fi_trywait, after wait_arm, before the application
 * sleeps on the descriptor.
 */
void wait_drain(struct waiter *w);

/*
 * Called after an event was published; one load if there is no sleeper. Pairs with wait_arm.
 * Publish under a lock that the sleeper takes to check, or by a sequentially consistent operation.
 */
static inline void wait_notify(struct waiter *w)
{
	if (__builtin_expect(__atomic_load_n(&w->sleeping, __ATOMIC_SEQ_CST), 0))
		wait_signal(w);
}

/*
 * Announces a sleep: every event published from now on signals. Check the queue again afterwards.
 * The result is for wait_sleep_since. Callers must not
 * clear `sleeping`: other threads may be asleep.
 */
unsigned int wait_arm(struct waiter *w);

/*
 * Sleeps until signalled, or for `timeout` ms (-1: no limit). Returns at once if a signal came
 * since the wait_arm that returned `armed`. No lock held. 0: check again; -FI_EAGAIN: timeout;
 * -FI_EINTR.
 */
int wait_sleep_since(struct waiter *w, unsigned int armed, int timeout);

/* The same for a waiter on which only this thread sleeps, armed already; armed again on return. 0 or -FI_EAGAIN. */
int wait_sleep(struct waiter *w, int timeout);

/* The condition of a blocking call; embedded in the caller's struct. */
struct wait_for {
	/*
	 * Makes progress and returns whether the call can return. With `arm`, false promises that
	 * every event from now on wakes us. Called without locks.
	 */
	bool (*ready)(struct wait_for *self, bool arm);
	/* Limit (ms) of one sleep, if some events cannot wake us; 0: none. `ready` may set it. */
	int nap;
	/* Counts parts of longer operations that `ready` saw: see shard_part. */
	unsigned int parts;
};

/* First phase of wait_until: polls as long as it pays, or until `end`. True: ready. */
bool wait_spin(struct waiter *w, struct wait_for *what, uint64_t end);

/* Returns the end (us) of a wait of `timeout` ms that begins now; negative: no limit. */
static inline uint64_t wait_end(int timeout)
{
	return timeout < 0 ? UINT64_MAX : clock_us() + (uint64_t)timeout * 1000;
}

/*
 * A blocking call: polls for FI_WEFT_SPIN_US after the last part, then sleeps, until `ready` or
 * `end`. 0, -FI_ETIMEDOUT or -FI_EINTR.
 */
int wait_until(struct waiter *w, struct wait_for *what, uint64_t end);

/* Returns whether wait_give_way is due: `polls.most` progress calls of nonblocking reads passed. */
static inline bool wait_polled(const struct waiter *w, unsigned int progress_calls)
{
	return __builtin_expect(progress_calls -
						__atomic_load_n(&w->polls.from, __ATOMIC_RELAXED) >=
					__atomic_load_n(&w->polls.most, __ATOMIC_RELAXED),
				0);
}

/*
 * Yields the core if no event came since the last call (`seen`: events so far) and the application
 * does nothing but read. Otherwise it would keep the core to the end of its time slice, and delay
 * the threads that are to send what it waits for. No lock held.
 */
void wait_give_way(struct waiter *w, unsigned int progress_calls, uint64_t seen);

/* Returns whether there is nothing to sleep on: waits poll and yield until their end. */
static inline bool wait_only_polls(const struct waiter *w)
{
	return w->obj == FI_WAIT_YIELD || w->obj == FI_WAIT_NONE;
}

/* Returns whether only wait_signal wakes sleepers, no descriptor: a thread of the library has to drive the workers. */
bool wait_must_poll(const struct waiter *w);

/* FI_GETWAIT and FI_GETWAITOBJ of fi_control. */
int wait_control(struct waiter *w, int command, void *arg);

/* fi_ops_fabric.trywait: may the application sleep on these objects? fi_poll(3) */
int wait_try_all(struct fid_fabric *fabric, struct fid **fids, int count);

/* fi_wait_open: the set's descriptor is readable if a member's is. */
int wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set);
int poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);

/* Wait sets. fi_poll(3). */

struct wait_set {
	union {
		struct fid_wait fid;
		struct waitable waitable;
	};
	struct fabric *fabric;
	unsigned int forks;  /* forked_count of the process that opened it */
	struct waiter wait;  /* the waiter of threads that wait on the set */
	struct lock lock;    /* guards members; taken before the domain's */
	struct list members; /* struct waiter.in_set */
	int ref;             /* atomic: members */
};

#endif
