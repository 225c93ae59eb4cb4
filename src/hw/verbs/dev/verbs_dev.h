/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices. A device is opened once per process and closed by its last user. A forked child
 * cannot use its copy: it opens the device anew.
 */
#ifndef WEFT_HW_VERBS_DEV_H
#define WEFT_HW_VERBS_DEV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/ranges.h"
#include "info/rdma_ports.h"
#include "hw/verbs/dev/verbs_lib.h"

/* Events of a queue whose context this is. Set from any thread. */
struct verbs_note {
	bool broken; /* atomic: the queue is broken */
	bool last;   /* atomic: queue pair's last shared receive has completed */
};

struct verbs_cache;

struct verbs_dev {
	const struct verbs_lib *lib;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	bool software; /* software device: this host's kernel sends, perhaps after the post */
	bool pages;    /* on-demand paging: the device looks up pages by itself */
	bool writes_atomically; /* it has IBV_WR_ATOMIC_WRITE, and its library queue pairs for that */
	struct ibv_mr *anywhere;   /* registration of all memory for our side, or NULL */
	struct verbs_cache *cache; /* registration cache or NULL; valid if cache_asked */
	bool cache_asked;          /* atomic: `cache` was decided */
	char name[RDMA_NAME_MAX];
	unsigned int users;
	unsigned int forked;   /* forked_count() when the device was opened */
	unsigned int troubles; /* atomic: counts events that may mean a broken object */
	bool removed;          /* atomic: the device was removed, nothing of it works */
	int removed_fd;        /* eventfd, readable once `removed` */
	int nodes_fd;          /* inotify on the device nodes, or -1 */
	struct list in_all;
};

/* A port of an open device. */
struct verbs_path {
	struct verbs_dev *dev;
	struct rdma_port port;
	uint16_t lid;         /* InfiniBand only */
	enum ibv_mtu mtu;     /* active MTU of the port */
	uint32_t message_max; /* bytes */
};

/* Opens the device with the address. 0 or a negative error. From any thread. */
int verbs_dev_open(const struct addr *a, struct verbs_path *path);
void verbs_dev_close(struct verbs_path *path);

/* Logs that `what` cannot be made, with errno. Returns the negative error. */
int verbs_failed(const char *what);

/* verbs_news.c */
/* Makes a completion channel that wakes epfd; events of the device wake `news`. 0 or a negative error. */
int verbs_channel_open(const struct verbs_dev *dev, int epfd, int news,
		       struct ibv_comp_channel **channel);
void verbs_channel_close(const struct verbs_dev *dev, struct ibv_comp_channel *channel, int news);
/* Reads the events of its only queue that made the channel readable. */
void verbs_channel_read(const struct verbs_dev *dev, struct ibv_comp_channel *channel,
			struct ibv_cq *cq);

static inline bool verbs_dev_removed(const struct verbs_dev *dev)
{
	return __builtin_expect(__atomic_load_n(&dev->removed, __ATOMIC_RELAXED), 0);
}

static inline bool verbs_note_read(const bool *what)
{
	return __atomic_load_n(what, __ATOMIC_RELAXED);
}

/* verbs_news.c: for verbs_dev.c. 0 or a negative error. */
int verbs_news_open(struct verbs_dev *dev);
void verbs_news_close(struct verbs_dev *dev);
void verbs_news_remove(const struct verbs_dev *dev, int epfd);
/* Reads all events: sets `troubles`, `removed` and the notes of queues. From any thread. */
void verbs_news_read(struct verbs_dev *dev);
/* Checks only for removal, which wakes every sleeper. From any thread. */
void verbs_news_nodes(struct verbs_dev *dev);

/* verbs_mem.c: registrations of the application's memory for the time of a transfer. */

/* A registration that covers a segment; each user gets it and puts it. */
struct verbs_mem {
	struct verbs_dev *dev;
	struct ibv_mr *mr;
	bool kept;          /* it is in the cache: verbs_cache.c */
	bool watched;       /* `kept`: its memory is watched */
	struct range range; /* range in the cache, if `kept` */
};

/* Registers `iov`, or finds it in the cache, with IBV_ACCESS_ bits. NULL: the device refuses. */
struct verbs_mem *verbs_mem_get(struct verbs_dev *dev, const struct iovec *iov,
				unsigned int access);
/* Ends a use. `mem` may be NULL. */
void verbs_mem_put(struct verbs_mem *mem);

/*
 * Registers `iov` anew. If the limit of locked memory is reached, first drops unused cached
 * registrations. NULL, with errno: the device refuses.
 */
struct ibv_mr *verbs_mem_register(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access);

/* verbs_cache.c: the cache behind these. */
/* As verbs_mem_get. NULL: the cache cannot serve it. From any thread. */
struct verbs_mem *verbs_cache_get(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access);
void verbs_cache_put(struct verbs_mem *mem);

/* Deregisters all registrations that are not in use. False: there were none. */
bool verbs_cache_spare(const struct verbs_dev *dev);
/* Deregisters registrations whose memory has changed. */
void verbs_cache_sweep(const struct verbs_dev *dev);
/* The device is being closed: drops its registrations, none of which is in use. */
void verbs_cache_leave(struct verbs_dev *dev);

/* verbs_slots.c: registered slots of equal size for packets, in chunks that are added on demand. */

#define VERBS_CHUNK   64 /* slots per chunk */
#define VERBS_CHUNKS  64 /* most chunks */
#define VERBS_NO_SLOT UINT16_MAX

struct verbs_slots {
	struct verbs_dev *dev;
	size_t size; /* bytes of a slot */
	unsigned int count;
	uint16_t free_count;
	uint16_t *free; /* stack of free slots */
	struct {
		unsigned char *mem;
		struct ibv_mr *mr;
	} chunk[VERBS_CHUNKS];
};

void verbs_slots_init(struct verbs_slots *s, struct verbs_dev *dev, size_t size);
/* Frees all slots, none of which is in use. `forked`: the registrations are the parent's. */
void verbs_slots_fini(struct verbs_slots *s, bool forked);
/* Adds a chunk. 0 or a negative error. */
int verbs_slots_grow(struct verbs_slots *s);

/* Returns a free slot, or VERBS_NO_SLOT. */
static inline uint16_t verbs_slots_get(struct verbs_slots *s)
{
	return s->free_count ? s->free[--s->free_count] : VERBS_NO_SLOT;
}

static inline void verbs_slots_put(struct verbs_slots *s, uint16_t slot)
{
	s->free[s->free_count++] = slot;
}

static inline unsigned char *verbs_slots_at(const struct verbs_slots *s, uint16_t slot)
{
	return s->chunk[slot / VERBS_CHUNK].mem + slot % VERBS_CHUNK * s->size;
}

static inline struct ibv_sge verbs_slots_sge(const struct verbs_slots *s, uint16_t slot,
					     uint32_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)verbs_slots_at(s, slot),
				.length = len,
				.lkey = s->chunk[slot / VERBS_CHUNK].mr->lkey};
}

#endif
