/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues: they belong to the fabric and have a lock of their own. fi_eq(3). */
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
	struct fid_eq fid;
	struct fabric *fabric;
	struct lock lock;
	struct list events; /* oldest first */
	struct list errors;
	struct waiter wait;
	uint64_t flags;
	int ref;                   /* atomic: objects bound */
	void *err_data;            /* what the last readerr handed out by pointer */
	struct list drivers;       /* struct eq_driver: what makes events while somebody reads */
	size_t size;               /* events the application may have waiting with fi_eq_write */
	size_t count;              /* events waiting; errors are not counted */
	pthread_mutex_t driving;   /* guards drivers; recursive, held during progress */
	struct list *next_driver;  /* of the walk under way */
	unsigned int driver_count; /* atomic to read */
	int timer;           /* atomic: wakes sleepers for a progress call now and then; -1: none */
	int timer_ms;        /* atomic: so often; 0: not at all */
	int tick_ms;         /* asked for with eq_tick, 0: never; */
	int rush_ms;         /* with eq_rush, while any of */
	unsigned int rushes; /* them are not over */
	uint64_t next_tick;  /* ms: it may have gone off; guarded by driving */
};

/* An event as it waits. */
struct eq_event {
	struct list link;
	uint32_t event;
	bool written; /* by fi_eq_write; else a fi_info in it is ours until it is read */
	size_t len;
	unsigned char data[] __attribute__((aligned(8)));
};

/* A failure as it waits. */
struct eq_error {
	struct list link;
	struct fi_eq_err_entry entry; /* err_data is not set */
	unsigned char data[];         /* entry.err_data_size bytes */
};

/*
 * Progress on behalf of a reader: connection management joins here. A driver is called without the
 * locks of the queue and of any domain, by one thread at a time; it may post events and add and
 * remove drivers, itself included. After eq_del_driver no call is under way.
 */
struct eq_driver {
	struct list link;
	void (*progress)(struct eq_driver *self);
	int fd; /* readable when a progress call would find something; -1: none */
};

static inline struct eq *eq_of(struct fid_eq *fid)
{
	return (struct eq *)fid;
}

int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);

/* Adds an event, `len` bytes copied. From any thread. 0 or -FI_ENOMEM. */
int eq_post(struct eq *eq, uint32_t event, const void *buf, size_t len);
/* Adds an error event; err_data copied. 0 or -FI_ENOMEM. */
int eq_post_error(struct eq *eq, const struct fi_eq_err_entry *entry);

/* How many events wait that are about an object. */
size_t eq_waiting(struct eq *eq, const struct fid *fid);
/* Drops what waits of an object that is being closed; requests to be connected are refused. */
void eq_forget(struct eq *eq, const struct fid *fid);

int eq_add_driver(struct eq *eq, struct eq_driver *driver);
void eq_del_driver(struct eq *eq, struct eq_driver *driver);
/* Another descriptor wakes for it from now on, or none (-1). Calls for one driver are serialized by its owner. */
void eq_driver_watch(struct eq *eq, struct eq_driver *driver, int fd);
/* Sleepers take a progress call at least so often (ms) from now on, for what nothing announces. */
void eq_tick(struct eq *eq, int ms);
/* The same (ms is the same for all) until as many calls of eq_calm have been made. */
void eq_rush(struct eq *eq, int ms);
void eq_calm(struct eq *eq);
/* The end of this socket wakes, too, until it is closed, of which nobody has to be told. */
void eq_watch_end(struct eq *eq, int sock);

/* For fi_trywait: 0 when a sleeper would be woken by whatever comes, -FI_EAGAIN: read first. */
int eq_arm(struct eq *eq);
/* Calls the drivers when nothing waits; true when an event or error can be read. */
bool eq_ready(struct eq *eq);
/* Calls every driver, unless another thread is at it. */
void eq_progress(struct eq *eq);

/* fi_ops_eq.write: the size limits what the application writes, never what the library posts. */
ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len, uint64_t flags);

/* eq_read.c: all operations but open, close and control. */
extern struct fi_ops_eq eq_read_ops;

#endif
