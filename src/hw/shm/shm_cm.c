/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening a port's ring, joining a peer's, and the direct access to its memory. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "hw/shm/shm.h"
#include "hw/wire.h"
#include "xfer/xfer.h"

/* An injected message is always a packet. */
static size_t eager_limit(void)
{
	size_t want = env_get()->eager_max;

	return want < XFER_INJECT_MAX  ? XFER_INJECT_MAX
	       : want > SHM_PACKET_MAX ? SHM_PACKET_MAX
				       : want;
}

static int shm_open_port(struct port *port, void **state)
{
	struct shm *shm = calloc(1, sizeof(*shm));
	int err;

	if (!shm)
		return -FI_ENOMEM;
	err = ring_create(&shm->ring, env_get()->ring_size, &shm->fd);
	if (err) {
		LOG_WARN(LOG_EP_CTRL, "shm: cannot make a receive ring of %zu bytes: %s",
			 env_get()->ring_size, fi_strerror(-err));
		free(shm);
		return err;
	}
	shm->port = port;
	shm->head = shm->published = shm->ring.mask + UINT64_C(1);
	shm->publish_step = (shm->ring.mask + 1) / 8;
	*state = shm;
	return 0;
}

static void shm_close_port(void *state)
{
	struct shm *shm = state;

	ring_unmap(&shm->ring);
	close(shm->fd);
	free(shm);
}

static int shm_hello_fd(void *state)
{
	return ((struct shm *)state)->fd;
}

/* Steps over the first `len` bytes of a vector. */
static void advance(struct iovec **iov, size_t *count, size_t len)
{
	while (*count && len >= (*iov)->iov_len) {
		len -= (*iov)->iov_len;
		(*iov)++;
		(*count)--;
	}
	if (*count) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + len;
		(*iov)->iov_len -= len;
	}
}

/* The kernel moves at most 2 GiB a call: what it left over is asked for again. */
static ssize_t fetch_rest(struct shm_link *s, struct iovec *local, size_t local_count,
			  struct iovec *remote, size_t remote_count, size_t done)
{
	ssize_t got = (ssize_t)done;

	while (got > 0) {
		advance(&local, &local_count, (size_t)got);
		advance(&remote, &remote_count, (size_t)got);
		if (!local_count || !remote_count)
			break;
		got = process_vm_readv(s->pid, local, local_count, remote, remote_count, 0);
		if (got > 0)
			done += (size_t)got;
	}
	return got < 0 ? -errno : (ssize_t)done;
}

static size_t total(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	while (count-- > 0)
		len += iov++->iov_len;
	return len;
}

static ssize_t shm_fetch(struct link *link, const struct iovec *local, size_t local_count,
			 const struct iovec *remote, size_t remote_count)
{
	struct shm_link *s = (struct shm_link *)link;
	struct iovec l[WIRE_IOV_MAX], r[WIRE_IOV_MAX];
	ssize_t got;

	if (!s->pid)
		return -FI_ENOSYS;
	got = process_vm_readv(s->pid, local, local_count, remote, remote_count, 0);
	if (got == (ssize_t)total(local, local_count) ||
	    got == (ssize_t)total(remote, remote_count))
		return got;
	if (got > 0) {
		memcpy(l, local, local_count * sizeof(*l));
		memcpy(r, remote, remote_count * sizeof(*r));
		return fetch_rest(s, l, local_count, r, remote_count, (size_t)got);
	}
	got = -errno;
	if (errno == EPERM || errno == ENOSYS) {
		LOG_INFO(LOG_EP_DATA,
			 "shm: process_vm_readv from %d refused: %s; copying through"
			 " the ring from now on",
			 (int)s->pid, fi_strerror(errno));
		s->pid = 0;
	}
	return got;
}

static void shm_close_link(struct link *link)
{
	struct shm_link *s = (struct shm_link *)link;

	ring_unmap(&s->ring);
	free(s);
}

static const struct link_ops shm_link_ops = {
	.send = shm_send,
	.sendv = shm_sendv,
	.fetch = shm_fetch,
	.close = shm_close_link,
};

/* Tries the direct way on a word whose value is known; a pid that is not the peer fails here. */
static void probe_fetch(struct shm_link *s, const struct link_peer *peer)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)};
	struct iovec remote = {(void *)(uintptr_t)peer->hello->probe_addr, sizeof(word)};

	if (env_get()->shm_disable_cma)
		return;
	s->pid = peer->pid;
	if (shm_fetch(&s->link, &local, 1, &remote, 1) != (ssize_t)sizeof(word) ||
	    word != peer->hello->probe_value)
		s->pid = 0;
}

static int shm_connect(void *state, const struct link_peer *peer, struct link **link)
{
	struct shm_link *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		err = -FI_ENOMEM;
		goto close_fd;
	}
	err = ring_attach(&s->ring, peer->fd);
	if (err) {
		LOG_WARN(LOG_EP_CTRL, "shm: process %d sent no usable ring: %s", (int)peer->pid,
			 fi_strerror(-err));
		free(s);
		goto close_fd;
	}
	close(peer->fd);
	s->link.ops = &shm_link_ops;
	s->own = state;
	s->turns_seen = s->own->turns - 1;
	s->src = peer->id;
	s->sock = peer->sock;
	s->owner = claim_word(0, peer->id, 0);
	s->next = __atomic_load_n(&s->ring.page->head, __ATOMIC_ACQUIRE);
	s->limit = s->next + s->ring.mask + 1;
	probe_fetch(s, peer);
	s->link.eager_max = s->pid ? eager_limit() : SHM_PACKET_MAX;
	*link = &s->link;
	return 0;
close_fd:
	close(peer->fd);
	return err;
}

const struct transport shm_transport = {
	.name = "shm",
	.open = shm_open_port,
	.close = shm_close_port,
	.turn = shm_turn,
	.arm = shm_arm,
	.hello_fd = shm_hello_fd,
	.connect = shm_connect,
	.bury = shm_bury,
};
