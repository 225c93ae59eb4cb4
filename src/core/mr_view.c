/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/mr_view.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "core/mr_share.h"

#define READ_TRIES 100

int mr_view_attach(struct mr_view *view, int fd)
{
	uint32_t words[3]; /* magic, slots, buckets */
	struct share_page *page;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	view->page = NULL;
	if (seals < 0 || (seals & SHARE_SEALS) != SHARE_SEALS || fstat(fd, &st) ||
	    st.st_size != sizeof(*page) ||
	    pread(fd, words, sizeof(words), 0) != (ssize_t)sizeof(words))
		return -FI_EINVAL;
	if (words[0] != SHARE_MAGIC || words[1] != SHARE_SLOTS || words[2] != SHARE_BUCKETS)
		return -FI_EINVAL;
	page = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	madvise(page, sizeof(*page), MADV_DONTFORK);
	view->page = page;
	return 0;
}

void mr_view_detach(struct mr_view *view)
{
	if (view->page)
		munmap((void *)(uintptr_t)view->page, sizeof(*view->page));
	view->page = NULL;
}

/* Reads a consistent entry; pairs with mr_share.c write_entry. false: it changed at every try. */
static bool read_entry(const struct share_entry *e, struct share_region *region)
{
	const uint64_t *from = (const uint64_t *)&e->region;
	uint64_t *to = (uint64_t *)region;

	for (int tries = 0; tries < READ_TRIES; tries++) {
		uint32_t seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);

		for (size_t i = 0; i < sizeof(*region) / sizeof(*to); i++)
			to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
		if (!(seq & 1) && __atomic_load_n(&e->seq, __ATOMIC_RELAXED) == seq)
			return true;
		cpu_relax();
	}
	return false;
}

static bool read_slot(const struct share_page *page, uint32_t slot, uint64_t key,
		      struct share_region *region)
{
	return read_entry(&page->entry[slot], region) && region->flags & SHARE_THERE &&
	       region->key == key;
}

static bool mr_view_valid(const struct share_page *page, uint32_t slot)
{
	return slot < SHARE_SLOTS && slot < __atomic_load_n(&page->used, __ATOMIC_ACQUIRE);
}

/* Searches the key's bucket. The chain may change meanwhile; a lookup that gets lost fails. */
static bool mr_view_find_hashed(const struct share_page *page, uint64_t key,
				struct share_region *region)
{
	uint32_t next = __atomic_load_n(&page->bucket[share_bucket(key)], __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; next && i < SHARE_WALK; i++) {
		uint32_t slot = next - 1;

		if (!mr_view_valid(page, slot))
			return false;
		if (read_slot(page, slot, key, region))
			return true;
		next = __atomic_load_n(&page->entry[slot].next, __ATOMIC_ACQUIRE);
	}
	return false;
}

static bool mr_view_find_key(const struct share_page *page, uint64_t key,
			     struct share_region *region)
{
	uint32_t slot = mr_key_slot(key);

	if (__atomic_load_n(&page->hashed, __ATOMIC_ACQUIRE))
		return mr_view_find_hashed(page, key, region);
	return mr_view_valid(page, slot) && read_slot(page, slot, key, region);
}

int mr_view_find(const struct mr_view *view, const struct fi_rma_iov *range, uint64_t access,
		 struct mr_place *place)
{
	struct share_region r;
	uint64_t at;

	if (!view->page || !mr_view_find_key(view->page, range->key, &r))
		return -FI_ENOKEY;
	if (access & ~r.access)
		return -FI_EACCES;
	at = range->addr - r.offset; /* below the region the difference wraps to a huge value */
	if (at > r.length || range->len > r.length - at)
		return -FI_EINVAL;
	place->at = r.base + at;
	place->counted =
		r.counted & access || __atomic_load_n(&view->page->notify_all, __ATOMIC_ACQUIRE);
	return 0;
}
