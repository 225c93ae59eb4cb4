/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process of the same user. It does nothing but make connections for its memory's sake: what the endpoint copies
 * from its peers, or to them, goes from and to there. Who writes the words that peers share with the endpoint is the fuzzer.
 */
#ifndef FUZZ_NEIGHBOR_H
#define FUZZ_NEIGHBOR_H

#include <fcntl.h>
#include <rdma/fi_domain.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/mr_share.h"
#include "input.h"

#define ARENA ((size_t)1 << 20)

static struct {
	pid_t pid;
	int asked; /* a byte there brings both ends of a connection that the process has made */
} neighbor;

/* Memory that the process has at the same address. */
static unsigned char arena[ARENA];
static const uint64_t cma_word = 0x70726f6265;

static inline void neighbor_run(int sock)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec iov = {&(char){0}, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.buf,
			   .msg_controllen = sizeof(control.buf)};
	int pair[2];

	control.align = (struct cmsghdr){CMSG_LEN(sizeof(pair)), SOL_SOCKET, SCM_RIGHTS};
	while (recv(sock, iov.iov_base, 1, 0) == 1) {
		MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
		memcpy(CMSG_DATA(&control.align), pair, sizeof(pair));
		MUST(sendmsg(sock, &m, 0) == 1);
		close(pair[0]);
		close(pair[1]);
	}
	_exit(0);
}

/* In the new process: it has no descriptor of the endpoint. */
static inline void neighbor_become(int sock)
{
	for (int sig = 1; sig < SIGRTMIN; sig++)
		signal(sig, SIG_DFL);
	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
		if (fd != sock)
			close(fd);
	neighbor_run(sock);
}

static inline void neighbor_end(void)
{
	close(neighbor.asked);
	kill(neighbor.pid, SIGKILL);
	waitpid(neighbor.pid, NULL, 0);
	neighbor.pid = 0;
}

static inline void neighbor_begin(void)
{
	int pair[2];

	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	neighbor.pid = fork();
	MUST(neighbor.pid >= 0);
	if (!neighbor.pid)
		neighbor_become(pair[1]);
	close(pair[1]);
	MUST(!setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 2},
			 sizeof(struct timeval)));
	neighbor.asked = pair[0];
}

static inline void neighbor_open(void)
{
	neighbor_begin();
	atexit(neighbor_end);
}

/* False: the process has ended, or lost its way: what the endpoint copied there may have been anything. */
static inline bool neighbor_ask(int pair[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))], byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t len;

	if (send(neighbor.asked, &byte, 1, MSG_NOSIGNAL) != 1)
		return false;
	do
		len = recvmsg(neighbor.asked, &m, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	if (len != 1 || !CMSG_FIRSTHDR(&m))
		return false;
	memcpy(pair, CMSG_DATA(CMSG_FIRSTHDR(&m)), 2 * sizeof(int));
	return true;
}

/* A connection whose ends the process has made, or one that is begun anew. */
static inline void neighbor_pair(int pair[2])
{
	while (!neighbor_ask(pair)) {
		neighbor_end();
		neighbor_begin();
	}
}

/* A table of regions that peers' operations name: all of them are in the arena. */
static inline void table_fill(struct share_page *page)
{
	page->magic = SHARE_MAGIC;
	page->slots = SHARE_SLOTS;
	page->buckets = SHARE_BUCKETS;
	page->hashed = 1;
	page->notify_all = 0;
	page->used = 2;
	for (uint32_t slot = 0; slot < 2; slot++) {
		page->bucket[share_bucket(slot + 1)] = slot + 1;
		page->entry[slot] =
			(struct share_entry){.region = {.key = slot + 1,
							.base = (uintptr_t)arena,
							.length = ARENA,
							.access = FI_REMOTE_READ | FI_REMOTE_WRITE,
							.flags = SHARE_THERE}};
	}
}

/* Makes one. It stays writable here; *fd is what a hello brings. */
static inline struct share_page *table_make(int *fd)
{
	struct share_page *page;

	*fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	MUST(*fd >= 0 && !ftruncate(*fd, sizeof(*page)));
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	MUST(page != MAP_FAILED && !fcntl(*fd, F_ADD_SEALS, SHARE_SEALS));
	return page;
}

#endif
