/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A raw peer in shared memory: connects to an endpoint with a good hello and a ring of its own, maps
 * the endpoint's ring and writes to it as it pleases.
 */
#ifndef FAULT_RAW_SHM_H
#define FAULT_RAW_SHM_H

#include <sys/stat.h>

#include "raw_client.h"

#define HEAD(op, flags, rx, id)                                                                    \
	((uint64_t)(op) | (uint64_t)(flags) << 8 | (uint64_t)(rx) << 16 | (uint64_t)(id) << 32)

/* Layouts of hw/shm/shm_ring.h. */
struct raw_page {
	uint32_t magic, slots;
	uint64_t secret;
	uint64_t head __attribute__((aligned(64)));
	uint64_t hint __attribute__((aligned(64)));
	uint32_t closed __attribute__((aligned(64)));
	struct {
		uint64_t word __attribute__((aligned(64)));
	} guards[56];
};

struct raw_slot {
	uint64_t token;
	uint32_t src, len;
	uint64_t head, tag;
	unsigned char rest[32];
};

struct raw_rts {
	uint64_t len, count;
	struct {
		uint64_t addr, len, key;
	} segment[1];
};

/* A mapped ring. */
struct raw_ring {
	struct raw_page *page;
	uint64_t *claims;
	unsigned char *slots;
	uint32_t mask;
	uint64_t pos; /* the endpoint's: of our last claim; our own: of the next answer */
};

struct raw_peer {
	int sock;
	uint32_t id; /* of this peer at the endpoint */
	struct raw_ring ring, own;
};

static uint64_t raw_probe = 0x5eed;

/* Receives the endpoint's hello and the descriptor of its ring. */
static int raw_answer(int sock, struct hello *h)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {h, sizeof(*h)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd;

	if (got != sizeof(*h) || h->kind != HELLO_ACCEPT || !c)
		fail("a good hello is not accepted");
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* The raw peer's own ring: 1024 empty slots. */
static int raw_ring_file(void)
{
	struct raw_page page = {
		.magic = RING_MAGIC, .slots = RING_SLOTS, .secret = 1, .head = RING_SLOTS};
	int fd = memfd_create("raw_ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	page.hint = page.head;
	if (fd < 0 || ftruncate(fd, RING_LEN) ||
	    pwrite(fd, &page, sizeof(page), 0) != sizeof(page) || fcntl(fd, F_ADD_SEALS, SEALS))
		fail("memfd: %s", strerror(errno));
	return fd;
}

static void raw_map(struct raw_ring *r, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		fail("fstat: %s", strerror(errno));
	r->page = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r->page == MAP_FAILED)
		fail("cannot map a ring: %s", strerror(errno));
	r->mask = r->page->slots - 1;
	r->claims = (uint64_t *)(void *)((char *)r->page + 4096);
	r->slots = (unsigned char *)r->claims + (((size_t)r->page->slots * 8 + 4095) & ~4095ul);
	r->pos = r->page->head;
	close(fd);
}

/* Connects the raw peer number `n` to the endpoint of this name. */
static struct raw_peer raw_join(const struct name *name, unsigned int n)
{
	struct hello h = good_hello(n);
	struct raw_peer p = {.sock = raw_connect(name)};
	int fd = raw_ring_file();

	h.probe_addr = (uintptr_t)&raw_probe;
	h.probe_value = raw_probe;
	say(p.sock, &h, sizeof(h), &fd, 1);
	raw_map(&p.own, fd);
	raw_map(&p.ring, raw_answer(p.sock, &h));
	p.id = h.your_id;
	return p;
}

static struct raw_slot *raw_slot(const struct raw_ring *r)
{
	return (struct raw_slot *)(void *)(r->slots + (r->pos & r->mask) * 64);
}

/* Reads one packet of the endpoint. False: there is none. */
static inline bool raw_heard(struct raw_peer *p, struct raw_slot *slot)
{
	struct raw_ring *r = &p->own;

	if (__atomic_load_n(&raw_slot(r)->token, __ATOMIC_ACQUIRE) != r->page->secret + r->pos)
		return false;
	*slot = *raw_slot(r);
	r->pos += r->claims[r->pos & r->mask] & 4095;
	__atomic_store_n(&r->page->head, r->pos, __ATOMIC_RELEASE);
	return true;
}

/*
 * Claims `slots` slots at the frontier; the raw peer is the only sender. Waits for space, and keeps
 * off the end of the ring, where a packet would wrap. False: none within 2 s.
 */
static bool raw_claim(struct raw_peer *p, uint32_t slots)
{
	struct raw_ring *r = &p->ring;
	uint64_t end = now_ms() + 2000, lap;
	unsigned int shift = (unsigned int)__builtin_ctz(r->mask + 1);
	uint64_t word;

	for (;;) {
		lap = r->pos >> shift;
		word = __atomic_load_n(&r->claims[r->pos & r->mask], __ATOMIC_ACQUIRE);
		if ((word >> 33) != (lap & 0x7fffffff))
			break;
		r->pos += word & 4095;
	}
	while (r->pos + slots - __atomic_load_n(&r->page->head, __ATOMIC_ACQUIRE) > r->mask) {
		if (now_ms() > end)
			return false;
		sched_yield();
	}
	__atomic_store_n(&r->claims[r->pos & r->mask],
			 lap << 33 | (uint64_t)(p->id & 0xfffff) << 12 | slots, __ATOMIC_RELEASE);
	if (word & UINT64_C(1) << 32)
		send(p->sock, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	return true;
}

/* Copies to the claimed slots; the slots are one row, mapped twice in the endpoint. */
static void raw_write(const struct raw_ring *r, size_t offset, const void *from, size_t len)
{
	size_t bytes = ((size_t)r->mask + 1) * 64, at = (r->pos & r->mask) * 64 + offset;

	for (size_t i = 0; i < len; i++)
		r->slots[(at + i) % bytes] = ((const unsigned char *)from)[i];
}

/* Writes head and payload; `at`: where the payload begins, 40 if there is data. */
static void raw_fill(const struct raw_peer *p, struct raw_slot head, const void *payload)
{
	size_t at = head.head >> 8 & 2 ? 40 : 32;

	head.src = p->id;
	raw_write(&p->ring, 8, (char *)&head + 8, at - 8);
	raw_write(&p->ring, at, payload, head.len);
}

static void raw_publish(const struct raw_peer *p)
{
	const struct raw_ring *r = &p->ring;

	__atomic_store_n(&raw_slot(r)->token, r->page->secret + r->pos, __ATOMIC_RELEASE);
}

/* Claims, writes and publishes a packet without data. */
static inline bool raw_send(struct raw_peer *p, struct raw_slot head, const void *payload)
{
	size_t at = head.head >> 8 & 2 ? 40 : 32;

	if (!raw_claim(p, (uint32_t)((at + head.len + 63) / 64)))
		return false;
	raw_fill(p, head, payload);
	raw_publish(p);
	return true;
}

#endif
