/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a worker's ring; connects to a peer's ring. */
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "core/mr.h"
#include "info/providers.h"
#include "hw/shm/shm.h"
#include "hw/transports.h"
#include "link/link.h"
#include "link/wire.h"

/*
 * `percent` of struct shm_copier for rings, whose readers wait for each fragment. Non-temporal stores of one copy take
 * half of the time of cached ones if both sides share a cache, a seventh if they do not.
 */
#define RING_PERCENT 33u
/*
 * The same for single copies of 4 KiB. They took 23 to 33 % where both sides shared a cache, and the reader then lost
 * more than the writer gained (0.82 us one way instead of 0.69); 11 to 21 % where they did not (1.3 us instead of 2.6).
 */
#define SINGLE_PERCENT 22u
static int shm_open_worker(struct opener *opener, void **state)
{
	struct shm *shm = calloc(1, sizeof(*shm));
	int err;

	if (!shm)
		return -FI_ENOMEM;
	err = shm_ring_create(&shm->ring, env_get()->ring_size, &shm->fd);
	if (err) {
		LOG_WARN(
			LOG_EP_CTRL,
			"shm: cannot make a receive ring of %zu bytes: %s (FI_WEFT_RING_SIZE and ulimit -f set its limits)",
			env_get()->ring_size, fi_strerror(-err));
		free(shm);
		return err;
	}
	shm->opener = opener;
	shm_set_head(shm, shm->ring.mask + UINT64_C(1));
	shm->published = shm_head(shm);
	*state = shm;
	return 0;
}

static void shm_close_worker(void *state)
{
	struct shm *shm = state;

	shm_ring_unmap(&shm->ring);
	close(shm->fd);
	free(shm);
}

static void shm_hello_fds(void *state, int fds[WIRE_FDS])
{
	struct shm *shm = state;

	fds[0] = shm->fd;
	fds[1] = mr_share_fd(shm->opener->dom);
}

/* The engine reports messages as failed; closed guards make peers refuse to fetch them. */
static void shm_drain(void *state)
{
	shm_guard_close(&((struct shm *)state)->ring);
}

static void shm_quiesce(void *state, bool last)
{
	struct shm *shm = state;

	if (last)
		shm_guard_close(&shm->ring);
	shm_guard_note(&shm->ring, shm->noted);
}

static bool shm_quiesced(void *state, uint32_t *id)
{
	struct shm *shm = state;

	return shm_guard_ended(&shm->ring, shm->noted, id);
}

static void shm_disown(void *state, uint32_t id)
{
	struct shm *shm = state;

	shm_guard_disown(&shm->ring, shm->noted, id);
}

static void shm_close_link(struct link *link)
{
	struct shm_link *s = (struct shm_link *)link;

	shm_ring_unmap(&s->ring);
	mr_view_detach(&s->regions);
	free(s->recalled);
	free(s);
}

static const struct link_ops shm_link_ops = {
	.send = shm_send,
	.sendv = shm_sendv,
	.close = shm_close_link,
};

/* Tries CMA on a word whose value the hello told. Fails for a pid that is not the peer's. */
static void test_fetch(struct shm_link *s, const struct link_peer *peer)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)};
	struct iovec remote = {(void *)(uintptr_t)peer->hello->cma_addr, sizeof(word)};
	struct shm_cma c = {
		.local = &local, .remote = &remote, .local_count = 1, .remote_count = 1};

	if (env_get()->shm_disable_cma)
		return;
	s->pid = peer->pid;
	s->looked = clock_coarse_ms();
	if (shm_cma_copy(s, &c) || c.moved != sizeof(word) || word != peer->hello->cma_value)
		s->pid = 0;
}

static uint32_t why_no_cma(const struct shm_link *s)
{
	if (s->pid)
		return FI_WEFT_USED;
	if (env_get()->shm_disable_cma)
		return FI_WEFT_DISABLED;
	return s->cma_error ? FI_WEFT_NO_PTRACE : FI_WEFT_NO_PROCESS;
}

static void shm_describe(const struct link *link, struct link_state *state)
{
	const struct shm_link *s = (const struct shm_link *)link;

	state->credits = s->limit > s->next ? s->limit - s->next : 0;
	state->direct_read = why_no_cma(s);
}

static int shm_cm_join(struct shm_link *s, const struct link_peer *peer)
{
	int err = shm_ring_attach(&s->ring, peer->fds[0]);

	if (err) {
		LOG_PEER(
			LOG_EP_CTRL,
			"shm: process %d sent no usable ring: %s (does it use the same version of the library?)",
			(int)peer->pid, fi_strerror(-err));
		return err;
	}
	/* Without the peer's table of regions, one-sided operations go by packets. */
	err = peer->fds[1] < 0 ? 0 : mr_view_attach(&s->regions, peer->fds[1]);
	if (err)
		LOG_PEER(
			LOG_EP_CTRL,
			"shm: process %d sent no usable table of regions: %s; one-sided operations go by packets",
			(int)peer->pid, fi_strerror(-err));
	return 0;
}

static int shm_connect(void *state, const struct link_peer *peer, struct link **link)
{
	struct shm_link *s = calloc(1, sizeof(*s));
	size_t eager = env_get()->eager_max;
	int err = s ? shm_cm_join(s, peer) : -FI_ENOMEM;

	for (unsigned int i = 0; i < WIRE_FDS; i++)
		if (peer->fds[i] >= 0)
			close(peer->fds[i]);
	if (err) {
		free(s);
		return err;
	}
	s->link = (struct link){LINK_BARE, .ops = &shm_link_ops};
	s->link.memory = &shm_memory_ops;
	s->link.local = true;
	s->own = state;
	s->calls_seen = s->own->progress_calls - 1;
	s->copier[0].percent = SINGLE_PERCENT;
	s->copier[1].percent = RING_PERCENT;
	s->src = peer->id;
	s->sock = peer->sock;
	s->next = __atomic_load_n(&s->ring.page->head, __ATOMIC_ACQUIRE);
	s->limit = s->next + s->ring.mask + 1;
	shm_expect(s, s->next);
	test_fetch(s, peer);
	s->link.packet_max = SHM_PACKET_MAX;
	s->joint_min = env_get()->joint_min < SHM_JOINT_MIN ? SHM_JOINT_MIN : env_get()->joint_min;
	s->link.silent = true;
	/* An injected message is always one packet. */
	s->link.eager_max = !s->pid || eager > SHM_PACKET_MAX ? SHM_PACKET_MAX
			    : eager < LINK_INJECT_MAX         ? LINK_INJECT_MAX
							      : eager;
	*link = &s->link;
	return 0;
}

const struct transport shm_transport = {
	.name = "shm",
	.bit = PROVIDER_SHM,
	.kind = LINK_HOST,
	.open = shm_open_worker,
	.close = shm_close_worker,
	.progress = shm_progress,
	.idle = shm_idle,
	.cursor = shm_cursor,
	.arm = shm_arm,
	.describe = shm_describe,
	.hello_fds = shm_hello_fds,
	.connect = shm_connect,
	.reap = shm_reap,
	.drain = shm_drain,
	.quiesce = shm_quiesce,
	.quiesced = shm_quiesced,
	.disown = shm_disown,
	.blocked = shm_blocked,
	.skip = shm_skip,
};
