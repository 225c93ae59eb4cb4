/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies between our memory and a peer's: one-sided operations by CMA, recall of posted packets; what copies are there. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>

#include "base/once.h"
#include "hw/shm/shm.h"
#include "link/wire.h"

/*
 * Looks all ranges up in the peer's table. 0; 1: the owner counts such accesses; or a negative error. WIRE_NOTIFY names
 * one region only: several ranges, of which one counts, go by packets (-FI_ENOSYS).
 */
static int find_all(const struct shm_link *s, const struct fi_rma_iov *range, size_t count,
		    uint64_t access, struct iovec *at)
{
	int notify = 0;

	for (size_t i = 0; i < count; i++) {
		struct mr_place place;
		int err = mr_view_find(&s->regions, &range[i], access, &place);

		if (err)
			return err;
		notify |= place.counted;
		at[i] = (struct iovec){(void *)(uintptr_t)place.at, range[i].len};
	}
	return notify && count > 1 ? -FI_ENOSYS : notify;
}

static uint64_t shm_rma_access_of(bool write)
{
	return write ? FI_REMOTE_WRITE : FI_REMOTE_READ;
}

/*
 * Returns -FI_EFAULT if some bytes have moved. If the peer ended meanwhile, returns that error: the
 * engine then notices that the peer is dead.
 */
static int copy_error(const struct shm_cma *c, int err)
{
	return c->moved && err != -ESRCH && err != -FI_ECONNRESET ? -FI_EFAULT : err;
}

/* Performs `c`, which lacks only its remote side. */
static int access_regions(struct shm_link *s, struct shm_cma c, const struct fi_rma_iov *range,
			  size_t count)
{
	struct iovec at[WIRE_IOV_MAX];
	struct shm_guard guard;
	int err, notify;

	if (!s->pid || !s->regions.page)
		return -FI_ENOSYS;
	if (count > WIRE_IOV_MAX || c.local_count > WIRE_IOV_MAX)
		return -FI_EINVAL;
	/* The guard comes first: regions that are looked up under it stay until it is released. */
	if (!shm_guard_enter(&s->ring, s->src, &guard))
		return -FI_EAGAIN;
	notify = find_all(s, range, count, shm_rma_access_of(c.write), at);
	c.remote = at;
	c.remote_count = count;
	err = notify < 0 ? notify : shm_cma_copy(s, &c);
	shm_guard_leave(&guard);
	if (err < 0)
		return notify < 0 ? notify : copy_error(&c, err);
	return notify;
}

int shm_put(struct link *link, const struct iovec *local, size_t local_count,
	    const struct fi_rma_iov *remote, size_t remote_count)
{
	struct shm_cma c = {.local = local, .local_count = local_count, .write = true};

	return access_regions((struct shm_link *)link, c, remote, remote_count);
}

int shm_get(struct link *link, const struct iovec *local, size_t local_count,
	    const struct fi_rma_iov *remote, size_t remote_count)
{
	struct shm_cma c = {.local = local, .local_count = local_count};

	return access_regions((struct shm_link *)link, c, remote, remote_count);
}

bool shm_reach(struct link *link, const struct fi_rma_iov *remote, size_t remote_count, bool write)
{
	struct shm_link *s = (struct shm_link *)link;
	struct iovec at[WIRE_IOV_MAX];

	return s->pid && remote_count <= WIRE_IOV_MAX &&
	       find_all(s, remote, remote_count, shm_rma_access_of(write), at) >= 0;
}

/*
 * The peer may take the packet at any time (shm_rx.c take). The payload is copied first, and the
 * copy is valid only if the compare-exchange finds the packet still published.
 */
const void *shm_cancel_posted(struct link *link, uint64_t place, size_t *len)
{
	struct shm_link *s = (struct shm_link *)link;
	struct link_slot *slot = ring_slot_at(&s->ring, place);
	uint64_t token = s->ring.secret + place;
	size_t bytes, from;

	if (__atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) != token)
		return NULL;
	if (!s->recalled)
		s->recalled = malloc(SHM_PACKET_MAX);
	bytes = ONCE(slot->len);
	from = shm_header_len(ONCE(slot->head));
	if (!s->recalled || bytes > SHM_PACKET_MAX)
		return NULL;
	once_copy(s->recalled, (unsigned char *)slot + from, bytes);
	/* Partner: shm_rx.c take. */
	if (!__atomic_compare_exchange_n(&slot->token, &token, token + RING_RECALLING, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return NULL;
	*len = bytes;
	return s->recalled;
}

/*
 * The release keeps earlier reads of the peer's memory before the recall, and so before all that the
 * peer does once it sees that. Partners: shm_rx.c take, and the acquire in ring_state.
 */
bool shm_recall_posted(struct link *link, uint64_t place)
{
	struct shm_link *s = (struct shm_link *)link;
	uint64_t token = s->ring.secret + place;

	return __atomic_compare_exchange_n(&ring_slot_at(&s->ring, place)->token, &token,
					   token + RING_CANCELLED, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* The release makes what we did for the owner visible: pairs with the acquire in ring_state. */
void shm_release(struct link *link, uint64_t place, bool done)
{
	struct shm_link *s = (struct shm_link *)link;
	uint64_t state = done ? RING_CANCELLED : RING_PUBLISHED;

	__atomic_store_n(&ring_slot_at(&s->ring, place)->token, s->ring.secret + place + state,
			 __ATOMIC_RELEASE);
}

static size_t remote_bytes(const struct link_copy *c)
{
	size_t bytes = 0;

	for (size_t i = 0; i < c->remote_count; i++)
		bytes += c->remote[i].len;
	return bytes;
}

/* Reads a message where its sender said that it is. */
static int shm_rma_read_message(struct shm_link *s, const struct link_copy *c)
{
	struct iovec remote[WIRE_IOV_MAX];
	struct shm_cma cma = {.local = c->local,
			      .remote = remote,
			      .local_count = c->local_count,
			      .remote_count = c->remote_count};
	int err;

	if (!c->remote_count || c->remote_count > WIRE_IOV_MAX)
		return -FI_EINVAL;
	for (size_t i = 0; i < c->remote_count; i++)
		remote[i] = (struct iovec){(void *)(uintptr_t)c->remote[i].addr, c->remote[i].len};
	err = shm_cma_copy(s, &cma);
	if (err)
		return err;
	/* A peer that closed its worker may have reused the memory before we read it. */
	if (shm_guard_closed(&s->ring))
		return -FI_ECONNRESET;
	return cma.moved == remote_bytes(c) ? LINK_DONE : -FI_EIO;
}

static int access_alone(struct link *link, const struct link_copy *c)
{
	return (c->write ? shm_put : shm_get)(link, c->local, c->local_count, c->remote,
					      c->remote_count);
}

static int shm_rma_copy(struct link *link, const struct link_copy *c)
{
	struct shm_link *s = (struct shm_link *)link;
	int ret;

	if (c->look)
		return shm_reach(link, c->remote, c->remote_count, c->write) ? LINK_DONE
									     : -FI_EAGAIN;
	ret = shm_joint_copy(s, c);
	if (c->message)
		return ret < 0 ? shm_rma_read_message(s, c) : ret;
	return ret < 0 && ret != -FI_EFAULT ? access_alone(link, c) : ret;
}

/* Performs a write with the data of its packet. */
static int perform_write(struct link *link, uint64_t place, struct link_copy c)
{
	size_t want = remote_bytes(&c), len;
	const char *payload = shm_cancel_posted(link, place, &len);
	struct iovec data;
	int ret = -FI_EIO;

	if (!payload)
		return -FI_EAGAIN;
	/* The data are the end of the payload. A shorter one is not ours: the peer changed it. */
	if (len >= want) {
		data = (struct iovec){(char *)(uintptr_t)payload + len - want, want};
		c.local = &data;
		c.local_count = want ? 1 : 0;
		ret = access_alone(link, &c);
	}
	shm_release(link, place, ret >= 0 || ret == -FI_EFAULT);
	return ret;
}

/*
 * Performs a read. It must not see the effect of later operations, which the peer may perform meanwhile. So the bytes
 * count only if the packet can be recalled afterwards: the peer had not reached it.
 */
static int perform_read(struct link *link, uint64_t place, const struct link_copy *c)
{
	int ret = c->local ? access_alone(link, c) : LINK_DONE;

	if (ret < 0 && ret != -FI_EFAULT)
		return ret;
	return shm_recall_posted(link, place) ? ret : -FI_EAGAIN;
}

static int shm_rma_perform(struct link *link, uint64_t place, const struct link_copy *c)
{
	return c->write ? perform_write(link, place, *c) : perform_read(link, place, c);
}

const struct link_memory_ops shm_memory_ops = {
	.reg = link_registers_nothing,
	.dereg = link_deregisters_nothing,
	.copy = shm_rma_copy,
	.abort = shm_joint_abandon,
	.perform = shm_rma_perform,
};
