/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/forked.h"
#include "core/av_shared.h"

#define PREFIX_MAX 64 /* bytes of "@weft-av/UID/HASH" */
#define TRY_US     1000
#define FIND_TRIES 20   /* a process that is ending may still be in the list */
#define DOOR_TRIES 1000 /* another process is between av_name_enter and forked_close */

/*
 * Writes "@weft-av/UID/HASH"; '@' is how the kernel's list shows the leading zero byte. Returns the
 * length.
 */
static int av_name_prefix_of(const char *name, char *buf)
{
	uint64_t hash =
		UINT64_C(0xcbf29ce484222325); /* FNV-1a; collisions are detected by `take` */

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return snprintf(buf, PREFIX_MAX, "@weft-av/%u/%016llx", (unsigned int)geteuid(),
			(unsigned long long)hash);
}

/* Binds a new socket to the prefix of `name` followed by `more`. 0 or a negative error. */
static int av_name_bind_name(const char *name, const char *more, int *sock)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char prefix[PREFIX_MAX];
	int err, len, s;

	av_name_prefix_of(name, prefix);
	len = snprintf(un.sun_path, sizeof(un.sun_path), "%s%s", prefix, more);
	un.sun_path[0] = '\0';
	/* The socket never listens, so nothing can be queued on it. */
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return -errno;
	err = forked_guard(s);
	if (!err && bind(s, (struct sockaddr *)&un,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)))
		err = -errno;
	if (err)
		forked_close(s);
	else
		*sock = s;
	return err;
}

int av_name_enter(const char *name, int *door)
{
	int err = av_name_bind_name(name, "", door);

	for (int i = 1; err == -FI_EADDRINUSE && i < DOOR_TRIES; i++) {
		usleep(TRY_US);
		err = av_name_bind_name(name, "", door);
	}
	return err;
}

int av_name_publish(const char *name, int fd, int *place)
{
	char pid[16], at[32];
	/*
	 * The pid as other users of this /proc see it; getpid(2) may return that of an inner pid
	 * namespace.
	 */
	ssize_t len = readlink("/proc/self", pid, sizeof(pid) - 1);

	if (len < 0)
		return -errno;
	pid[len] = '\0';
	snprintf(at, sizeof(at), "/%s/%d", pid, fd);
	return av_name_bind_name(name, at, place);
}

/* Opens only regular files of this user. O_PATH first, so that a wrong file is not touched. */
static int open_place(int pid, int fd, int flags)
{
	char path[64];
	struct stat st;
	int opened = -1, at;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	if (!fstat(at, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		opened = open(path, flags | O_CLOEXEC);
	close(at);
	return opened;
}

static int find_once(const char *prefix, int flags, int (*take)(void *arg, int fd), void *arg)
{
	FILE *list = fopen("/proc/self/net/unix", "re");
	int err = -FI_ENOENT, pid, fd;
	char *line = NULL, *at;
	size_t room = 0;

	if (!list)
		return -FI_ENOSYS;
	while ((err == -FI_ENOENT || err == -FI_ENOSYS) && getline(&line, &room, list) > 0) {
		at = strstr(line, prefix);
		if (!at || sscanf(at + strlen(prefix), "/%d/%d", &pid, &fd) != 2)
			continue;
		fd = open_place(pid, fd, flags);
		err = fd < 0 ? -FI_ENOSYS : take(arg, fd);
	}
	free(line);
	fclose(list);
	return err;
}

int av_name_find(const char *name, int flags, int (*take)(void *arg, int fd), void *arg)
{
	char prefix[PREFIX_MAX];
	int err;

	av_name_prefix_of(name, prefix);
	err = find_once(prefix, flags, take, arg);
	for (int i = 1; err == -FI_ENOSYS && i < FIND_TRIES; i++) {
		usleep(TRY_US);
		err = find_once(prefix, flags, take, arg);
	}
	return err;
}
