/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Argument of PROCMAP_QUERY (Linux 6.11, newer than our headers): the mapping of an address. */
struct query {
	uint64_t size;
	uint64_t how; /* 0: only a mapping that contains the address */
	uint64_t at;
	uint64_t from, to, flags, page, offset, inode; /* the answer */
	uint32_t major, minor, name_size, id_size;
	uint64_t name, id;
};

#define ASK    _IOWR('f', 17, struct query)
#define SHARED 8u /* in flags */

_Static_assert(sizeof(struct query) == 104, "layout of a question to the kernel");

/* A mapping: a part of the address space. */
struct part {
	uintptr_t from, to;
	bool own;
};

/* 0: the mapping is private, *at moves to its end. 1: not private, or none. -1: cannot ask. */
static int maps_ask(int fd, uintptr_t *at)
{
	struct query q = {.size = sizeof(q), .at = *at};

	if (ioctl(fd, ASK, &q))
		return errno == ENOENT ? 1 : -1;
	if (q.flags & SHARED || q.inode || q.to <= *at)
		return 1;
	*at = q.to;
	return 0;
}

static bool maps_read_line(const char *line, struct part *p)
{
	unsigned long from, to, inode;
	char rights[5];

	if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &from, &to, rights, &inode) != 4)
		return false;
	*p = (struct part){from, to, rights[3] == 'p' && !inode};
	return true;
}

/* Like `ask`, from a line of /proc/self/maps, which are in order. 2: the next line may match. */
static int maps_judge(const char *line, uintptr_t *at)
{
	struct part p;

	if (!maps_read_line(line, &p))
		return 1;
	if (p.to <= *at)
		return 2;
	if (p.from > *at || !p.own)
		return 1;
	*at = p.to;
	return 0;
}

/* Reads all of /proc/self/maps. Only the beginning of each line matters. */
static bool maps_read_all(int fd, uintptr_t at, uintptr_t to)
{
	char chunk[4096], line[128];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		for (const char *c = chunk; c < chunk + n; c++) {
			if (*c != '\n') {
				line[len] = *c;
				len += len < sizeof(line) - 1;
				continue;
			}
			line[len] = 0;
			len = 0;
			if (maps_judge(line, &at) == 1)
				return false;
			if (at >= to)
				return true;
		}
	return false;
}

bool maps_private(uintptr_t from, uintptr_t to)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), answer = 0;
	bool own;

	if (fd < 0)
		return false;
	for (uintptr_t at = from; at < to && !answer;)
		answer = maps_ask(fd, &at);
	own = answer < 0 ? maps_read_all(fd, from, to) : !answer;
	close(fd);
	return own;
}
