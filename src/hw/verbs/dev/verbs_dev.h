/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices, open as long as somebody uses them: once in a process, and not shared across fork, after
 * which the child's copies are dead.
 */
#ifndef WEFT_HW_VERBS_DEV_H
#define WEFT_HW_VERBS_DEV_H

#include "base/list.h"
#include "info/rdma_ports.h"
#include "hw/verbs/dev/verbs_lib.h"

/* What the device says of a queue whose context this is; set from any thread. */
struct verbs_note {
	bool broken; /* atomic: it is of no use any more */
	bool last; /* atomic: of a queue pair with shared receives: all that it took have come back */
};

struct verbs_cache;

struct verbs_dev {
	const struct verbs_lib *lib;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	bool software; /* no hardware is behind it: this host's kernel sends, perhaps after the call */
	bool pages;    /* it looks pages up by itself, where that is asked for */
	struct ibv_mr
		*anywhere; /* our side of a transfer, wherever it is; NULL: is to be registered */
	struct verbs_cache *cache; /* of registrations, or NULL; see cache_asked */
	bool cache_asked;          /* atomic: is there one? */
	char name[RDMA_NAME_MAX];
	unsigned int users;
	unsigned int forked;   /* forked_count when it was opened */
	unsigned int troubles; /* atomic: events that may mean that something of it has broken */
	bool removed;          /* atomic: nothing of it works any more, or will be waited for */
	int removed_fd;        /* readable from then on */
	int nodes_fd;          /* tells of devices taken away, or -1 */
	struct list in_all;
};

/* A port of an open device. */
struct verbs_path {
	struct verbs_dev *dev;
	struct rdma_port port;
	uint16_t lid;         /* of InfiniBand */
	enum ibv_mtu mtu;     /* of the port as it is */
	uint32_t message_max; /* bytes */
};

/* Opens the device that has the address. 0 or a negative error. From any thread. */
int verbs_dev_open(const struct addr *a, struct verbs_path *path);
void verbs_dev_close(struct verbs_path *path);

static inline bool verbs_dev_removed(const struct verbs_dev *dev)
{
	return __builtin_expect(__atomic_load_n(&dev->removed, __ATOMIC_RELAXED), 0);
}

static inline bool verbs_note_read(const bool *what)
{
	return __atomic_load_n(what, __ATOMIC_RELAXED);
}

/* verbs_news.c: for those who open devices. 0 or a negative error. */
int verbs_news_open(struct verbs_dev *dev);
void verbs_news_close(struct verbs_dev *dev);
/* News of the device wake the epoll instance; of a device that has gone they do so for ever. */
int verbs_news_add(const struct verbs_dev *dev, int epfd);
void verbs_news_remove(const struct verbs_dev *dev, int epfd);
/* Notes what is new: `troubles`, `gone`, and in the contexts of queues. From any thread. */
void verbs_news_read(struct verbs_dev *dev);
/* Notes only whether it was taken away, which wakes everybody. From any thread. */
void verbs_news_nodes(struct verbs_dev *dev);

#endif
