/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw clients of an endpoint's Unix socket: every wrong way to connect that we could think of. */
#ifndef FAULT_RAW_CLIENT_H
#define FAULT_RAW_CLIENT_H

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "hello.h"

/* The begin of a ring's first page: hw/shm/shm_ring.h. */
struct page {
	uint32_t magic, slots;
	uint64_t secret;
};

#define RING_MAGIC 0x326e6972u
#define RING_SLOTS 1024u
#define RING_PAGE  ((size_t)sysconf(_SC_PAGESIZE))
/* With claim words, which begin at a page as the slots do. */
#define RING_LEN                                                                                   \
	(RING_PAGE + (RING_SLOTS * 8 + RING_PAGE - 1) / RING_PAGE * RING_PAGE + RING_SLOTS * 64)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Fills in the Unix socket address of the endpoint `name`; returns its length. */
static inline socklen_t raw_address(const struct name *name, struct sockaddr_un *un)
{
	struct sockaddr_in in;
	char text[INET_ADDRSTRLEN];
	int len;

	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(&in, name->bytes, sizeof(in));
	if (strcmp(provider(), "shm"))
		len = snprintf(un->sun_path + 1, 100, "weft/%s/%u",
			       inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text)),
			       ntohs(in.sin_port));
	else
		len = snprintf(un->sun_path + 1, 100, "weft/%s", name->bytes);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* Connects to the Unix socket of the endpoint `name`. */
static inline int raw_connect(const struct name *name)
{
	struct sockaddr_un un;
	socklen_t len = raw_address(name, &un);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0 || connect(sock, (struct sockaddr *)&un, len))
		fail("cannot connect to the endpoint: %s", strerror(errno));
	return sock;
}

/* Listens on the Unix socket that peers of the endpoint `name` connect to. */
static inline int raw_listen(const struct name *name)
{
	struct sockaddr_un un;
	socklen_t len = raw_address(name, &un);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0 || bind(sock, (struct sockaddr *)&un, len) || listen(sock, 16))
		fail("cannot take the name of an endpoint: %s", strerror(errno));
	return sock;
}

#define FDS_MAX 16 /* descriptors sent at once */

static inline void say(int sock, const void *words, size_t len, const int *fds, unsigned int count)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)words, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (count) {
		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	/* The endpoint may have closed the connection already. */
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		fail("sendmsg: %s", strerror(errno));
}

static inline int ring_file(size_t len, int seals, struct page page)
{
	int fd = memfd_create("raw_client", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)len) ||
	    pwrite(fd, &page, sizeof(page), 0) != sizeof(page) || fcntl(fd, F_ADD_SEALS, seals))
		fail("memfd: %s", strerror(errno));
	return fd;
}

enum { HELLO_FLAWS = 10, FILE_FLAWS = 15, MANNERS = 7 + HELLO_FLAWS + FILE_FLAWS };

/* Sends a hello with one wrong field, and a proper ring. */
static inline void flawed_hello(int sock, unsigned int flaw, unsigned int n)
{
	const struct page page = {RING_MAGIC, RING_SLOTS, 1};
	int fd = ring_file(RING_LEN, SEALS, page);
	struct hello h = good_hello(n);

	switch (flaw) {
	case 0:
		h.magic = __builtin_bswap32(MAGIC);
		break;
	case 1:
		h.magic++;
		break;
	case 2:
		h.version++;
		break;
	case 3:
		h.version = __builtin_bswap16(VERSION);
		break;
	case 4:
		h.size++;
		break;
	case 5:
		h.kind = n % 3 ? 77 : 2;
		break;
	case 6:
		h.name_format = 12345;
		break;
	case 7:
		h.name_len = n % 2 ? sizeof(h.name) + 1 : UINT32_MAX;
		break;
	case 8:
		h.name_len = 0;
		break;
	default:
		memset(h.name, 'x', h.name_len = sizeof(h.name));
	}
	say(sock, &h, sizeof(h), &fd, 1);
	close(fd);
}

/* Sends a good hello with a file that is no proper ring. */
static inline void flawed_file(int sock, unsigned int flaw, unsigned int n)
{
	const struct page page = {RING_MAGIC, RING_SLOTS, 1};
	struct hello h = good_hello(n);
	int fd = -1, pair[2];

	switch (flaw) {
	case 0:
		fd = ring_file(RING_LEN, 0, page);
		break;
	case 1:
		fd = ring_file(RING_LEN, F_SEAL_SHRINK | F_SEAL_SEAL, page);
		break;
	case 2:
		fd = ring_file(RING_LEN - RING_PAGE, SEALS, page);
		break;
	case 3:
		fd = ring_file(RING_LEN + RING_PAGE, SEALS, page);
		break;
	case 4:
		fd = ring_file(RING_LEN, SEALS | F_SEAL_WRITE, page);
		break;
	case 5:
		fd = ring_file(16, SEALS, page);
		break;
	case 6:
		fd = ring_file(RING_LEN, SEALS, (struct page){RING_MAGIC, 1000, 1});
		break;
	case 7:
		fd = ring_file(RING_LEN, SEALS, (struct page){RING_MAGIC, 1u << 31, 1});
		break;
	case 8:
		fd = ring_file(RING_LEN, SEALS, (struct page){0, RING_SLOTS, 1});
		break;
	case 9:
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		break;
	case 10:
		fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
		break;
	case 11:
		fd = open("/", O_PATH | O_CLOEXEC);
		break;
	case 12:
		fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
		break;
	case 13:
		fd = epoll_create1(EPOLL_CLOEXEC);
		break;
	default:
		if (pipe2(pair, O_CLOEXEC))
			fail("pipe2: %s", strerror(errno));
		close(pair[1]);
		fd = pair[0];
	}
	say(sock, &h, sizeof(h), &fd, 1);
	if (flaw == 0 && ftruncate(fd, 0))
		fail("ftruncate: %s", strerror(errno));
	close(fd);
}

/* Misbehaves in one of MANNERS ways. */
static inline void misbehave(int sock, unsigned int manner, unsigned int n)
{
	const struct page page = {RING_MAGIC, RING_SLOTS, 1};
	struct hello h = good_hello(n);
	static char garbage[60000];
	int fds[4] = {1, 1, 1, 1};

	for (size_t i = 0; manner == 0 && i < sizeof(garbage); i++)
		garbage[i] = (char)(n * 31 + i * 7);
	if (manner >= 7 + HELLO_FLAWS) {
		flawed_file(sock, manner - 7 - HELLO_FLAWS, n);
	} else if (manner >= 7) {
		flawed_hello(sock, manner - 7, n);
	} else if (manner == 0) {
		say(sock, garbage, 1 + n * 97 % sizeof(garbage), fds, n % 2);
	} else if (manner == 1) {
		say(sock, &h, 1 + n % (sizeof(h) - 1), fds, n % 2);
	} else if (manner == 2) {
		say(sock, &h, sizeof(h), NULL, 0);
	} else if (manner == 3) {
		say(sock, &h, sizeof(h), fds, 2 + n % 3); /* more than one descriptor */
	} else if (manner == 4) {
		say(sock, "", 0, fds, n % 3); /* an empty message, which looks like an end */
	} else if (manner == 5) {
		/* Everything right, but the connection ends at once. */
		fds[0] = ring_file(RING_LEN, SEALS, page);
		say(sock, &h, sizeof(h), fds, 1);
		close(fds[0]);
	} /* 6: connects and sends nothing */
}

#endif
