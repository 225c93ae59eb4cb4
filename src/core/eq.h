/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues. They belong to the fabric and each has a lock of its own. fi_eq(3). */
#ifndef WEFT_CORE_EQ_H
#define WEFT_CORE_EQ_H

#include <pthread.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/lock.h"
#include "core/fabric.h"
#include "core/wait.h"

struct eq {
	union {
		struct fid_eq fid;
		struct waitable waitable;
	};
	struct fabric *fabric;
	unsigned int forks; /* forked_count of the process that opened it */
	struct lock lock;
	struct list events; /* oldest first */
	struct list errors;
	struct waiter wait;
	uint64_t flags;
	int ref;                   /* atomic: objects bound */
	void *err_data;            /* error whose err_data the last readerr returned by pointer */
	struct list drivers;       /* struct eq_driver: called while the application reads */
	size_t size;               /* limit of unread events for fi_eq_write */
	size_t count;              /* unread events, without errors */
	pthread_mutex_t driving;   /* guards drivers and next_tick; recursive; held by progress */
	struct list *next_driver;  /* next one of the loop in eq_progress */
	unsigned int driver_count; /* atomic to read */
	int timer;           /* atomic: timerfd that wakes sleepers for progress calls; -1: none */
	int timer_ms;        /* atomic: interval of the timer; 0: stopped */
	int tick_ms;         /* interval asked for by eq_tick; 0: none */
	int rush_ms;         /* interval asked for by eq_rush, while rushes > 0 */
	unsigned int rushes; /* calls of eq_rush without their eq_calm */
	uint64_t next_tick;  /* ms: when the timer may have fired; guarded by driving */
};

/* An unread event. */
struct eq_event {
	struct list link;
	uint32_t event;
	bool written; /* by fi_eq_write; else we own a fi_info in it until it is read */
	size_t len;
	unsigned char data[] __attribute__((aligned(8)));
};

/* An unread error. */
struct eq_error {
	struct list link;
	struct fi_eq_err_entry entry; /* err_data is not set */
	unsigned char data[];         /* entry.err_data_size bytes */
};

/*
 * A hook for progress on behalf of readers; connection management adds its own. `progress` is
 * called without locks of the queue or of a domain, by one thread at a time. It may post events,
 * and add and remove drivers, itself included. After eq_del_driver no call is under way.
 */
struct eq_driver {
	struct list link;
	void (*progress)(struct eq_driver *self);
	int fd; /* readable when progress would find something; -1: none */
};

static inline struct eq *eq_of(struct fid_eq *fid)
{
	return (struct eq *)fid;
}

int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);

/* Adds an event; copies `len` bytes. From any thread. 0 or -FI_ENOMEM. */
int eq_post(struct eq *eq, uint32_t event, const void *buf, size_t len);
/* Adds an error; copies err_data. From any thread. 0 or -FI_ENOMEM. */
int eq_post_error(struct eq *eq, const struct fi_eq_err_entry *entry);

/* Returns how many unread events are about an object. */
size_t eq_waiting(struct eq *eq, const struct fid *fid);
/* Drops unread events and errors of an object that is being closed; rejects connection requests among them. */
void eq_forget(struct eq *eq, const struct fid *fid);

int eq_add_driver(struct eq *eq, struct eq_driver *driver);
void eq_del_driver(struct eq *eq, struct eq_driver *driver);
/* Replaces the driver's descriptor (-1: none). The owner serializes calls for one driver. */
void eq_driver_watch(struct eq *eq, struct eq_driver *driver, int fd);
/* Makes sleepers run the drivers at least every `ms`, for changes that no descriptor reports. */
void eq_tick(struct eq *eq, int ms);
/* The same until eq_calm was called as often as eq_rush. `ms` is the same in all calls. */
void eq_rush(struct eq *eq, int ms);
void eq_calm(struct eq *eq);
/* Wakes sleepers when the connection of `sock` ends. Closing the socket removes the watch. */
void eq_watch_end(struct eq *eq, int sock);

/* Calls every driver, unless another thread is doing so. */
void eq_progress(struct eq *eq);

/* fi_ops_eq.write. The size limits what the application writes, never what the library posts. */
ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags);

/* In eq_read.c: all operations but open, close and control. */
extern struct fi_ops_eq eq_read_ops;
extern const struct waitable_ops eq_waitable_ops;

#endif
