/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/mr_share.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

/* Lies in a page of its own that is zero in a forked child, since the table is the parent's. */
struct mr_share {
	struct share_page *page; /* NULL in a forked child */
	int fd;
};

/* Maps and seals the table. The owner maps first: the seal forbids later writable mappings. */
static struct share_page *map_sealed(int fd)
{
	struct share_page *page;

	if (file_resize(fd, sizeof(*page)))
		return NULL;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (fcntl(fd, F_ADD_SEALS, SHARE_SEALS)) {
		munmap(page, sizeof(*page));
		return NULL;
	}
	madvise(page, sizeof(*page), MADV_DONTFORK);
	page->slots = SHARE_SLOTS;
	page->buckets = SHARE_BUCKETS;
	__atomic_store_n(&page->magic, SHARE_MAGIC, __ATOMIC_RELEASE);
	return page;
}

static struct mr_share *map_wiped(void)
{
	struct mr_share *share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (share == MAP_FAILED)
		return NULL;
	if (madvise(share, sizeof(*share), MADV_WIPEONFORK)) {
		munmap(share, sizeof(*share));
		return NULL;
	}
	return share;
}

void mr_share_open(struct domain *dom)
{
	struct mr_share *share = map_wiped();
	int fd = share ? memfd_create("weft-regions", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
	struct share_page *page = fd < 0 ? NULL : map_sealed(fd);

	dom->share = NULL;
	if (page) {
		*share = (struct mr_share){page, fd};
		dom->share = share;
		return;
	}
	LOG_INFO(LOG_MR, "no table of regions, peers access memory by packets: %s",
		 fi_strerror(errno));
	if (fd >= 0)
		close(fd);
	if (share)
		munmap(share, sizeof(*share));
}

void mr_share_close(struct domain *dom)
{
	struct mr_share *share = dom->share;

	if (!share)
		return;
	if (share->page) {
		munmap(share->page, sizeof(*share->page));
		close(share->fd);
	}
	munmap(share, sizeof(*share));
	dom->share = NULL;
}

/* Returns the page, or NULL if there is none or in a forked child. */
static struct share_page *mr_share_page_of(const struct domain *dom)
{
	return dom->share ? dom->share->page : NULL;
}

int mr_share_fd(const struct domain *dom)
{
	return mr_share_page_of(dom) ? dom->share->fd : -1;
}

void mr_share_notify_all(struct domain *dom)
{
	struct share_page *page = mr_share_page_of(dom);

	if (page)
		__atomic_store_n(&page->notify_all, 1, __ATOMIC_RELEASE);
}

/* Pairs with mr_view.c read_entry. Each word is a release store, so no word is seen before the odd seq. */
static void write_entry(struct share_entry *e, const struct share_region *region)
{
	const uint64_t *from = (const uint64_t *)region;
	uint64_t *to = (uint64_t *)&e->region;
	uint32_t seq = e->seq;

	__atomic_store_n(&e->seq, seq + 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < sizeof(*region) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
	__atomic_store_n(&e->seq, seq + 2, __ATOMIC_RELEASE);
}

static struct share_region mr_share_describe(const struct mr *mr)
{
	return (struct share_region){
		.key = mr->fid.key,
		.base = (uintptr_t)mr->iov[0].iov_base,
		.offset = mr->offset,
		.length = mr->length,
		.access = mr->access,
		.counted = mr->cntr ? mr->cntr_flags : 0,
		.flags = SHARE_THERE,
	};
}

/* Pairs with mr_view.c find_hashed. */
static void mr_share_chain(struct share_page *page, uint32_t slot, uint64_t key)
{
	uint32_t *bucket = &page->bucket[share_bucket(key)];

	__atomic_store_n(&page->entry[slot].next, *bucket, __ATOMIC_RELAXED);
	__atomic_store_n(bucket, slot + 1, __ATOMIC_RELEASE);
}

/*
 * Removes a slot from its bucket. A reader that is at the slot can go on: `next` stays, or leads to
 * the slot's next bucket.
 */
static void mr_share_unchain(struct share_page *page, uint32_t slot, uint64_t key)
{
	uint32_t *link = &page->bucket[share_bucket(key)];

	while (*link != slot + 1)
		link = &page->entry[*link - 1].next;
	__atomic_store_n(link, page->entry[slot].next, __ATOMIC_RELEASE);
}

static void mr_share_enter(struct share_page *page, uint32_t slot,
			   const struct share_region *region, bool hashed)
{
	if (page->hashed != hashed)
		__atomic_store_n(&page->hashed, hashed, __ATOMIC_RELEASE);
	if (page->used <= slot)
		__atomic_store_n(&page->used, slot + 1, __ATOMIC_RELEASE);
	if (hashed)
		mr_share_chain(page, slot, region->key);
}

void mr_share_update(struct domain *dom, const struct region *r)
{
	struct share_page *page = mr_share_page_of(dom);
	struct share_region region;

	if (!page || !r->mr.enabled || r->mr.iov_count != 1 || r->slot >= SHARE_SLOTS)
		return;
	region = mr_share_describe(&r->mr);
	if (!(page->entry[r->slot].region.flags & SHARE_THERE))
		mr_share_enter(page, r->slot, &region, !mr_table_chooses(dom->mrs));
	write_entry(&page->entry[r->slot], &region);
}

void mr_share_remove(struct domain *dom, const struct region *r)
{
	struct share_page *page = mr_share_page_of(dom);
	struct share_entry *e;

	if (!page || r->slot >= SHARE_SLOTS)
		return;
	e = &page->entry[r->slot];
	if (!(e->region.flags & SHARE_THERE))
		return;
	if (page->hashed)
		mr_share_unchain(page, r->slot, r->mr.fid.key);
	write_entry(e, &(struct share_region){0});
	/*
	 * Pairs with shm_guard.c shm_guard_enter. A peer that does not see the removal holds a
	 * guard that every later check of guards sees.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
