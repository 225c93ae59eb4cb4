/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_joint.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/once.h"
#include "core/mr.h"
#include "hw/shm/shm.h"
#include "link/opener.h"
#include "link/wire.h"

/* A chunk is an eighth of the copy, within these bounds (bytes): a system call costs as much as some 4 KiB. */
#define CHUNK_MIN 65536u
#define CHUNK_MAX 262144u
#define PAGE      4096u
/* Looks at the peer's word before its last chunk is waited for by progress calls: some 50 us. */
#define SPINS 2000
/* An abandoned copy waits at most so long (ms) for a peer that writes to our memory. */
#define ABANDON_MS 1000

static struct ring_joint *shm_joint_page_of(const struct ring *r)
{
	return &r->page->joint;
}

/* Copies chunks, as either side sees them. 0 or a negative error. */
static int copy_chunks(struct shm_link *s, const struct joint_copy *c, uint64_t chunk,
		       uint64_t first, uint64_t count)
{
	uint64_t at = first * chunk, len = count * chunk;
	struct iovec local, remote;
	struct shm_cma cma = {.local = &local,
			      .remote = &remote,
			      .local_count = 1,
			      .remote_count = 1,
			      .write = c->write};

	if (len > c->len - at)
		len = c->len - at;
	local = (struct iovec){(char *)c->local + at, len};
	remote = (struct iovec){(void *)(uintptr_t)(c->remote + at), len};
	return shm_cma_copy(s, &cma);
}

/* ---- Owner ----------------------------------------------------------------------------------- */

/*
 * Takes a chunk, of which the first `first` are ours already. Returns the end of what is left: `first`
 * if nothing is. A word that neither side writes leaves all to us.
 */
static uint32_t shm_joint_take(const struct shm_joint *j, uint64_t *left, uint32_t first)
{
	uint64_t word = __atomic_load_n(left, __ATOMIC_RELAXED);
	uint32_t end;

	do {
		end = left_end(word);
		if (word >> 32 != j->seq || left_first(word) != first || end < first ||
		    end > j->chunks)
			return j->chunks;
		/* No order is needed: the other word tells what the peer has done. */
	} while (end > first &&
		 !__atomic_compare_exchange_n(left, &word, left_word(j->seq, first + 1, end), false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return end;
}

/* Copies from the front until nothing is left. Then the chunks from j->end on are the peer's. */
static int copy_front(struct shm_joint *j)
{
	struct ring_joint *page = shm_joint_page_of(&j->link->own->ring);
	int err = 0;

	j->end = j->chunks;
	for (uint32_t first = 0; !err && first < j->end; first++) {
		j->end = shm_joint_take(j, &page->left, first);
		if (first < j->end)
			err = copy_chunks(j->link, &j->copy, j->chunk, first, 1);
	}
	if (err) /* the peer takes no more */
		j->end = left_end(__atomic_exchange_n(&page->left, 0, __ATOMIC_RELAXED));
	if (j->end > j->chunks)
		j->end = j->chunks;
	return err;
}

/* Has the peer done its chunks? If it could not, *left is the number of those it left. */
static bool has_ended(const struct shm_joint *j, uint32_t *left)
{
	/* Pairs with the release of help_done. */
	uint64_t word =
		__atomic_load_n(&shm_joint_page_of(&j->link->own->ring)->helped, __ATOMIC_ACQUIRE);
	uint32_t done = (uint32_t)word & ~HELP_FAILED, theirs = j->chunks - j->end;
	bool ours = word >> 32 == j->seq;

	*left = !ours ? theirs : done < theirs ? theirs - done : 0;
	return !*left || !ours || word & HELP_FAILED;
}

/* Begins an access to a region of the peer: finds its memory. 0 or a negative error. */
static int shm_joint_enter(struct shm_link *s, struct shm_joint *j, struct shm_guard *guard)
{
	const struct fi_rma_iov range = {j->address, j->copy.len, j->copy.key};
	struct mr_place place;
	int err;

	if (!s->regions.page)
		return -FI_ENOSYS;
	if (!shm_guard_enter(&s->ring, s->src, guard))
		return -FI_EAGAIN;
	err = mr_view_find(&s->regions, &range, j->copy.write ? FI_REMOTE_WRITE : FI_REMOTE_READ,
			   &place);
	if (err) {
		shm_guard_leave(guard);
		return err;
	}
	j->copy.remote = place.at;
	j->counted = place.counted;
	return 0;
}

static int shm_joint_finish(struct shm_joint *j, int err)
{
	const struct shm_link *s = j->link;

	if (!err && !j->copy.region && shm_guard_closed(&s->ring))
		err = -FI_ECONNRESET; /* the peer may have reused the memory before we read it */
	j->link = NULL;
	return err ? err : j->counted;
}

/* Copies what the peer has left, and ends. */
static int finish_rest(struct shm_joint *j, uint32_t left)
{
	return shm_joint_finish(
		j,
		j->err || !left ? j->err : copy_chunks(j->link, &j->copy, j->chunk, j->end, left));
}

static int shm_joint_propose(struct shm_link *s, struct shm_joint *j)
{
	const struct joint_copy *copy = &j->copy;
	struct ring_joint *page = shm_joint_page_of(&s->own->ring);
	struct wire_joint w = {
		.at = (uintptr_t)copy->local, .len = copy->len, .seq = ++j->seq, .chunk = j->chunk};
	uint64_t flags =
		WIRE_DATA | (copy->region ? WIRE_REGION : 0) | (copy->write ? 0 : WIRE_READ);

	s->calls_seen = s->own->progress_calls - 1; /* XOFF does not stop these: see claim_slow */
	__atomic_store_n(&page->helped, help_word(j->seq, 0), __ATOMIC_RELAXED);
	/* Pairs with the acquire in take_last: the peer sees the other word, and the bytes. */
	__atomic_store_n(&page->left, left_word(j->seq, 0, j->chunks), __ATOMIC_RELEASE);
	return shm_send(&s->link, &w, sizeof(w), copy->key, WIRE_HEAD(WIRE_JOINT, flags, 0, 0),
			j->address);
}

static void shm_joint_measure(struct shm_joint *j, size_t len)
{
	size_t chunk = len / 8;

	if (chunk < CHUNK_MIN)
		chunk = len / 2 < CHUNK_MIN ? (len + 1) / 2 : CHUNK_MIN;
	else if (chunk > CHUNK_MAX)
		chunk = CHUNK_MAX;
	chunk = (chunk + PAGE - 1) & ~(size_t)(PAGE - 1);
	j->chunk = (uint32_t)chunk;
	j->chunks = (uint32_t)((len + chunk - 1) / chunk);
}

/* Our part. 0, 1 or an error as shm_joint_begin. */
static int shm_joint_begin_copy(struct shm_link *s, struct shm_joint *j)
{
	int err = shm_joint_propose(s, j);
	uint32_t left;

	j->link = s;
	if (err)
		return shm_joint_finish(j, err);
	j->err = copy_front(j);
	trial_judge(&s->joint_trial, j->end < j->chunks); /* has the peer taken any? */
	for (int i = 0; !has_ended(j, &left); i++) {
		if (i == SPINS)
			return -FI_EINPROGRESS;
		cpu_relax();
	}
	return finish_rest(j, left);
}

int shm_joint_begin(struct link *link, const struct joint_copy *copy)
{
	struct shm_link *s = (struct shm_link *)link;
	struct shm_joint *j = &s->own->joint;
	struct shm_guard guard;
	int ret;

	if (!s->pid || j->link || copy->len > SHM_JOINT_MAX)
		return -FI_EAGAIN;
	if (s->joint_trial.skip) { /* the peer has left the last ones alone */
		s->joint_trial.skip--;
		return -FI_EAGAIN;
	}
	j->copy = *copy;
	j->address = copy->remote;
	j->counted = false;
	shm_joint_measure(j, copy->len);
	if (!copy->region)
		return shm_joint_begin_copy(s, j);
	ret = shm_joint_enter(s, j, &guard);
	if (ret)
		return ret;
	/* While only the peer copies, no guard is held: it accesses its own region. */
	ret = shm_joint_begin_copy(s, j);
	shm_guard_leave(&guard);
	return ret;
}

int shm_joint_ended(struct link *link)
{
	struct shm_link *s = (struct shm_link *)link;
	struct shm_joint *j = &s->own->joint;
	struct shm_guard guard;
	uint32_t left;
	int ret;

	if (!has_ended(j, &left))
		return -FI_EINPROGRESS;
	if (!left || !j->copy.region)
		return finish_rest(j, left);
	ret = shm_joint_enter(s, j, &guard);
	if (ret)
		return shm_joint_finish(j, ret);
	ret = finish_rest(j, left);
	shm_guard_leave(&guard);
	return ret;
}

/* What the engine is told. Only of a region it matters whether the peer counts. */
static int shm_joint_outcome(const struct joint_copy *c, int ret)
{
	if (ret == -FI_EINPROGRESS)
		return LINK_UNDER_WAY;
	if (ret < 0)
		return ret;
	return !c->region ? LINK_TOGETHER : ret ? LINK_COUNTED : LINK_DONE;
}

/* Is it long enough, and in one piece? */
static bool shm_joint_suits(const struct shm_link *s, const struct link_copy *c)
{
	return !c->at_once && c->local_count == 1 && c->remote_count == 1 &&
	       c->local->iov_len >= s->joint_min && c->local->iov_len == c->remote->len;
}

static void set_under_way(struct shm *shm, bool yes)
{
	shm->joint.under_way = yes;
	shm_attend(shm);
}

int shm_joint_copy(struct shm_link *s, const struct link_copy *c)
{
	struct joint_copy copy;
	int ret;

	if (!shm_joint_suits(s, c))
		return -FI_EAGAIN;
	copy = (struct joint_copy){.local = c->local->iov_base,
				   .remote = c->remote->addr,
				   .key = c->remote->key,
				   .len = c->remote->len,
				   .write = c->write,
				   .region = !c->message};
	ret = shm_joint_begin(&s->link, &copy);
	if (ret == -FI_EINPROGRESS) {
		s->own->joint.id = c->id;
		set_under_way(s->own, true);
	}
	return shm_joint_outcome(&copy, ret);
}

void shm_joint_progress(struct shm *shm)
{
	struct shm_joint *j = &shm->joint;
	int ret = shm_joint_ended(&j->link->link);

	if (ret == -FI_EINPROGRESS)
		return;
	set_under_way(shm, false);
	shm->opener->events->copied(shm->opener, j->id, shm_joint_outcome(&j->copy, ret));
}

void shm_joint_abandon(struct link *link)
{
	struct shm_joint *j = &((struct shm_link *)link)->own->joint;
	const struct ring *ring = &((struct shm_link *)link)->own->ring;
	uint64_t noted[RING_GUARDS], end = clock_coarse_ms() + ABANDON_MS;
	uint32_t id;

	if (j->link != (struct shm_link *)link)
		return;
	__atomic_store_n(&shm_joint_page_of(ring)->left, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with shm_guard_enter of help_copy */
	/* Waits, a bounded time, until nobody writes to our memory who began before. */
	if (!j->copy.write) {
		shm_guard_note(ring, noted);
		while (!shm_guard_ended(ring, noted, &id) && clock_coarse_ms() < end)
			sched_yield();
	}
	j->link = NULL;
	set_under_way(((struct shm_link *)link)->own, false);
}

/* ---- The peer -------------------------------------------------------------------------------- */

/* Takes the last chunk that is left. Returns its number, or UINT32_MAX: none is. */
static uint32_t shm_joint_take_last(struct ring_joint *page, uint32_t seq, uint32_t chunks)
{
	uint64_t word = __atomic_load_n(&page->left, __ATOMIC_RELAXED);
	uint32_t first, end;

	do {
		first = left_first(word);
		end = left_end(word);
		if (word >> 32 != seq || first >= end || end > chunks)
			return UINT32_MAX;
		/* The acquire keeps the copy behind it. */
	} while (!__atomic_compare_exchange_n(&page->left, &word, left_word(seq, first, end - 1),
					      false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return end - 1;
}

/* Copies a chunk. Into the owner's memory only under a guard, so that the owner can wait for its end. */
static int help_copy(struct shm_link *s, const struct joint_help *h, uint32_t at)
{
	struct shm_guard guard;
	bool wanted; /* the owner has not abandoned the copy */
	int err;

	if (!h->copy.write)
		return copy_chunks(s, &h->copy, h->chunk, at, 1);
	if (!shm_guard_enter(&s->ring, s->src, &guard))
		return -FI_EAGAIN;
	/* Pairs with the fence of shm_joint_abandon: the owner waits for the guard, or we see its store. */
	wanted = __atomic_load_n(&shm_joint_page_of(&s->ring)->left, __ATOMIC_RELAXED) >> 32 ==
		 h->seq;
	err = wanted ? copy_chunks(s, &h->copy, h->chunk, at, 1) : -FI_ECANCELED;
	shm_guard_leave(&guard);
	return err;
}

/* The release makes the copied bytes visible: pairs with has_ended. False: the owner waits no longer. */
static bool help_done(struct ring_joint *page, uint32_t seq, uint32_t done, int err)
{
	uint64_t word = help_word(seq, done);

	return __atomic_compare_exchange_n(&page->helped, &word,
					   err ? word | HELP_FAILED : word + 1, false,
					   __ATOMIC_RELEASE, __ATOMIC_RELAXED) &&
	       !err;
}

void shm_joint_help(struct link *link, const struct joint_help *help)
{
	struct shm_link *s = (struct shm_link *)link;
	struct ring_joint *page = shm_joint_page_of(&s->ring);
	uint64_t chunks = help->chunk < PAGE ? 0 : (help->copy.len + help->chunk - 1) / help->chunk;
	uint32_t at;

	if (chunks > UINT16_MAX)
		return;
	/* The bound is for an owner that writes the word again and again. */
	for (uint32_t done = 0; done < chunks; done++) {
		at = shm_joint_take_last(page, help->seq, (uint32_t)chunks);
		if (at == UINT32_MAX || !help_done(page, help->seq, done, help_copy(s, help, at)))
			return;
	}
}

/* Returns our memory of the copy, or NULL: the peer may not access it. */
static void *shm_joint_memory_of(struct opener *o, uint32_t src, const struct packet *p, size_t len)
{
	uint64_t access = wire_flags(p->head) & WIRE_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;
	const struct mr *mr;

	if (!(wire_flags(p->head) & WIRE_REGION))
		return access == FI_REMOTE_READ && o->events->readable(o, src, p->tag, len)
			       ? (void *)(uintptr_t)p->tag
			       : NULL;
	mr = mr_granted(o->dom, p->data, p->tag, len, access);
	return mr && mr->iov_count == 1 ? (char *)mr->iov->iov_base + (p->tag - mr->offset) : NULL;
}

/* What has ended meanwhile is no error: the peer goes on without us. */
void shm_joint_hear(struct opener *o, uint32_t src, const struct packet *p)
{
	struct link *link = o->events->link(o, src);
	struct joint_help help;
	struct wire_joint w;

	if (p->len != sizeof(w) || !(wire_flags(p->head) & WIRE_DATA) || !link || !link->local) {
		LOG_INFO(LOG_EP_DATA, "shm: offer of a joint copy of %zu bytes dropped", p->len);
		return;
	}
	once_copy(&w, p->payload, sizeof(w));
	help = (struct joint_help){
		.copy = {.local = shm_joint_memory_of(o, src, p, w.len),
			 .remote = w.at,
			 .len = w.len,
			 .write = wire_flags(p->head) & WIRE_READ},
		.seq = w.seq,
		.chunk = w.chunk,
	};
	if (help.copy.local)
		shm_joint_help(link, &help);
}
