/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "hook/tally.h"

#define PAGE_BYTES (sizeof(struct tally_page) + CALL_COUNT * sizeof(struct tally_row))

static struct tally_page *page; /* NULL: the process is not monitored */
static char path[4096];         /* of the file */

/* Makes the folder, unless it is there. It has to be the user's, and only the user's. */
static int own_folder(const char *folder)
{
	struct stat is;

	if (mkdir(folder, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(folder, &is))
		return -errno;
	if (!S_ISDIR(is.st_mode))
		return -ENOTDIR;
	return is.st_uid == geteuid() && !(is.st_mode & 077) ? 0 : -EPERM;
}

/* Writes the name of the file to `path`. 0 or a negative errno. */
static int name_file(void)
{
	const char *base = env_get()->monitor_folder;
	char folder[sizeof(path) - 16];
	int len;

	if (base)
		len = snprintf(folder, sizeof(folder), "%s", base);
	else
		len = snprintf(folder, sizeof(folder), TALLY_FOLDER, (unsigned int)geteuid());
	if (len >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	return own_folder(folder);
}

/* Makes the file, full of zeros, and maps it. Returns NULL and sets *err, a negative errno. */
static struct tally_page *map_file(int *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	void *at = MAP_FAILED;

	if (fd < 0) {
		*err = -errno;
		return NULL;
	}
	/* With memory for all of it: else an access might end the process. */
	*err = file_resize(fd, PAGE_BYTES) ? -errno : -posix_fallocate(fd, 0, PAGE_BYTES);
	if (!*err)
		at = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!*err && at == MAP_FAILED)
		*err = -errno;
	close(fd);
	if (at != MAP_FAILED)
		return at;
	unlink(path);
	return NULL;
}

/* The pages of a forked child are its parent's: it is not monitored. */
static void in_child(void)
{
	page = NULL;
}

void monitor_start(void)
{
	struct tally_page *p;
	int err;

	if (getauxval(AT_SECURE)) {
		LOG_WARN(LOG_CORE, "no monitor: the program runs with raised rights");
		return;
	}
	err = name_file();
	p = err ? NULL : map_file(&err);
	if (!p) {
		LOG_WARN(LOG_CORE, "no monitor: %s: %s", path, strerror(-err));
		return;
	}
	p->pid = (uint32_t)getpid();
	p->count = CALL_COUNT;
	strncpy(p->program, program_invocation_short_name, sizeof(p->program) - 1);
	for (int id = 0; id < CALL_COUNT; id++)
		strncpy(p->rows[id].call, calls_name((enum call_id)id),
			sizeof(p->rows[id].call) - 1);
	__atomic_store_n(&p->magic, TALLY_MAGIC, __ATOMIC_RELEASE); /* pairs with fi_mon_sampler */
	pthread_atfork(NULL, NULL, in_child);
	page = p;
}

void monitor_call(const struct call *call)
{
	if (page)
		tally_add(&page->rows[call->id].tally, call);
}

/* Other threads may still call: the memory stays. */
static __attribute__((destructor)) void at_exit(void)
{
	if (page && !env_get()->monitor_linger)
		unlink(path);
}
