/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "hw/shm/shm_ring.h"

#define CLAIM_TRIES   1000
#define SLOTS_MIN     1024u /* of 64 bytes: 64 KiB, whole pages of any size */
#define SLOTS_MAX     (1u << 20)
#define RING_SEALS    (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define POPULATED_MAX ((size_t)1 << 20) /* bytes of slots */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; refused before */
#endif

/* All parts of the file begin at a page of this machine: 4, 16 or 64 KiB. */
static size_t page_len(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t len)
{
	return (len + page_len() - 1) & -page_len();
}

static size_t ring_len(uint32_t slots)
{
	return page_len() + whole_pages(slots * sizeof(uint64_t)) + (size_t)slots * RING_SLOT;
}

/* Maps page, claims and slots, then the slots once more behind them. */
static int ring_map(struct ring *r, int fd, uint32_t slots)
{
	size_t len = ring_len(slots), slots_len = (size_t)slots * RING_SLOT;
	size_t map_len = len + slots_len;
	off_t slots_off = (off_t)(len - slots_len);
	unsigned char *base;

	base = mmap(NULL, map_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	if (mmap(base, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(base + len, slots_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 slots_off) == MAP_FAILED) {
		int err = errno;

		munmap(base, map_len);
		return -err;
	}
	/* A forked child does not use the ring, and its mapping would keep the memory alive. */
	madvise(base, map_len, MADV_DONTFORK);
	r->page = (struct ring_page *)base;
	r->claims = (uint64_t *)(base + page_len());
	r->slots = base + slots_off;
	r->mask = slots - 1;
	r->shift = (uint32_t)__builtin_ctz(slots);
	r->map_len = map_len;
	return 0;
}

int shm_ring_create(struct ring *r, size_t bytes, int *fd)
{
	uint32_t slots = SLOTS_MIN;
	int err, mem = memfd_create("weft-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (mem < 0)
		return -errno;
	while (slots < SLOTS_MAX && (size_t)slots * RING_SLOT < bytes)
		slots *= 2;
	if (file_resize(mem, (off_t)ring_len(slots)) || fcntl(mem, F_ADD_SEALS, RING_SEALS)) {
		err = -errno;
		goto close_mem;
	}
	err = ring_map(r, mem, slots);
	if (err)
		goto close_mem;
	if (getrandom(&r->secret, sizeof(r->secret), 0) != sizeof(r->secret)) {
		err = -FI_EIO;
		goto unmap;
	}
	r->page->slots = slots;
	r->page->secret = r->secret;
	/* Positions begin in lap 1: a fresh claim word says lap 0 and so is stale. */
	r->page->head = r->page->hint = slots;
	__atomic_store_n(&r->page->magic, RING_MAGIC, __ATOMIC_RELEASE);
	*fd = mem;
	return 0;
unmap:
	shm_ring_unmap(r);
close_mem:
	close(mem);
	return err;
}

int shm_ring_attach(struct ring *r, int fd)
{
	struct ring_page page;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & RING_SEALS) != RING_SEALS || fstat(fd, &st) ||
	    pread(fd, &page, sizeof(page), 0) != (ssize_t)sizeof(page))
		return -FI_EINVAL;
	if (page.magic != RING_MAGIC || page.slots < SLOTS_MIN || page.slots > SLOTS_MAX ||
	    (page.slots & (page.slots - 1)) || (size_t)st.st_size != ring_len(page.slots))
		return -FI_EINVAL;
	r->secret = page.secret;
	return ring_map(r, fd, page.slots);
}

void shm_ring_populate(const struct ring *r)
{
	size_t slots = (size_t)r->mask + 1;

	if (slots > POPULATED_MAX / RING_SLOT)
		slots = POPULATED_MAX / RING_SLOT;
	madvise(r->page, whole_pages(page_len() + slots * sizeof(uint64_t)), MADV_POPULATE_WRITE);
	madvise(r->slots, whole_pages(slots * RING_SLOT), MADV_POPULATE_WRITE);
}

void shm_ring_unmap(struct ring *r)
{
	munmap(r->page, r->map_len);
}

/*
 * Moves *pos, the start of a claim at or after the head, over the claims of this lap to the
 * frontier; *word is the stale claim word there. False: the owner has freed the slots at *pos
 * meanwhile, a word on the way is no claim, or *steps, which counts down, is 0.
 */
static bool find_frontier(const struct ring *r, uint64_t *pos, uint64_t *word, uint32_t *steps)
{
	for (; *steps; --*steps) {
		uint32_t slots;
		int32_t ahead;

		*word = __atomic_load_n(ring_claim_at(r, *pos), __ATOMIC_ACQUIRE);
		/* Shifted so that the 31-bit laps compare as signed distances. */
		ahead = (int32_t)((claim_lap(*word) - ring_lap(r, *pos)) << 1);
		if (ahead < 0)
			return true;
		slots = claim_slots(*word);
		if (ahead > 0 || slots - 1 >= PACKET_SLOTS)
			return false;
		*pos += slots;
	}
	return false;
}

int shm_ring_claim(struct ring *r, uint64_t *pos, uint32_t owner, uint32_t slots, uint64_t *word)
{
	uint32_t steps = 2 * (r->mask + 1);
	bool astray = false;

	/* Bounded: a ring that another process corrupts must not keep us here. */
	for (int tries = 0; tries < CLAIM_TRIES && steps; tries++) {
		/* Pairs with the release in shm_rx.c shm_publish_head: slots before `head` are free. */
		uint64_t head = __atomic_load_n(&r->page->head, __ATOMIC_ACQUIRE);
		uint64_t hint = __atomic_load_n(&r->page->hint, __ATOMIC_RELAXED);

		if (hint - *pos <= r->mask)
			*pos = hint;
		/* Also if it is beyond a lap: the page's head, hint or a claim was wrong once. */
		if (astray || *pos - head > r->mask + UINT64_C(1))
			*pos = head;
		astray = !find_frontier(r, pos, word, &steps);
		if (astray)
			continue;
		if (*pos + slots - head > r->mask + UINT64_C(1))
			return -FI_EAGAIN;
		if (__atomic_compare_exchange_n(ring_claim_at(r, *pos), word,
						claim_word(ring_lap(r, *pos), owner, slots), false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			__atomic_store_n(&r->page->hint, *pos, __ATOMIC_RELAXED);
			return 0;
		}
	}
	return -FI_EAGAIN;
}

bool shm_ring_sleep(struct ring *r, uint64_t head)
{
	uint64_t *claim = ring_claim_at(r, head);
	uint64_t word = __atomic_load_n(claim, __ATOMIC_ACQUIRE);

	/* Bounded: a process that changes the word again and again only keeps us awake. */
	for (int tries = 0; tries < CLAIM_TRIES; tries++) {
		if (claim_lap(word) == ring_lap(r, head))
			return false;
		/* Pairs with the compare-exchange of the sender that claims this slot. */
		if (__atomic_compare_exchange_n(claim, &word, word | CLAIM_SLEEP, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

uint64_t shm_ring_step(const struct ring *r, uint64_t *pos)
{
	uint64_t word = __atomic_load_n(ring_claim_at(r, *pos), __ATOMIC_ACQUIRE);

	if (!ring_is_claim(r, *pos, word))
		return 0;
	*pos += claim_slots(word);
	return word;
}

uint32_t shm_ring_reap(struct ring *r, uint64_t head, uint32_t owner)
{
	uint64_t pos = head, at = head, word;
	uint32_t reaped = 0;

	/* Bounded: senders may go on claiming during the walk. */
	while (pos - head <= r->mask && (word = shm_ring_step(r, &pos))) {
		uint64_t state = ring_state(r, at);

		if (claim_owner(word) == (owner & RING_DEAD) && state != RING_PUBLISHED &&
		    state != RING_CANCELLED) {
			/* Only the owner changes a claim word of this lap. */
			__atomic_store_n(ring_claim_at(r, at), word | (uint64_t)RING_DEAD << 12,
					 __ATOMIC_RELAXED);
			reaped++;
		}
		at = pos;
	}
	return reaped;
}

uint32_t shm_ring_skip_dead(const struct ring *r, uint64_t head)
{
	uint64_t pos = head, word = shm_ring_step(r, &pos);

	return word && claim_owner(word) == RING_DEAD ? claim_slots(word) : 0;
}

uint32_t shm_ring_skip_cancelled(const struct ring *r, uint64_t head)
{
	uint64_t pos = head;

	return ring_state(r, head) == RING_CANCELLED ? claim_slots(shm_ring_step(r, &pos)) : 0;
}
