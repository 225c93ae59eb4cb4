/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/layers.h"

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

#define PAGE_BYTES (sizeof(struct tally_page) + CALL_COUNT * sizeof(struct tally_row))

static struct tally_page *page; /* NULL: the process is not monitored */

/* The file. Another process may have the same pid, in a pid namespace of its own, and replace it. */
static char path[4096];
static dev_t device;
static ino_t inode;

/*
 * Opens the folder, which is made unless it is there. It has to be the user's, and only the user's.
 * Returns a descriptor or a negative errno.
 */
static int open_folder(const char *folder)
{
	struct stat is;
	int fd;

	if (mkdir(folder, 0700) && errno != EEXIST)
		return -errno;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &is) == 0 && is.st_uid == geteuid() && !(is.st_mode & 077))
		return fd;
	close(fd);
	return -EPERM;
}

/* Writes the name of the folder to `path`, with no slash behind it: that would follow a link. */
static int name_folder(void)
{
	const char *base = env_get()->monitor_folder;
	int len;

	if (base)
		len = snprintf(path, sizeof(path), "%s", base);
	else
		len = snprintf(path, sizeof(path), TALLY_FOLDER, (unsigned int)geteuid());
	if (len >= (int)sizeof(path) - 16)
		return -ENAMETOOLONG;
	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	return 0;
}

/* Fills the file, which nobody else knows yet, and maps it. Returns 0 or a negative errno. */
static int map_file(int fd, struct tally_page **out)
{
	struct tally_page *p;
	struct stat is;
	/* With memory for all of it: else an access might end the process. */
	int err = file_resize(fd, PAGE_BYTES) ? -errno : -posix_fallocate(fd, 0, PAGE_BYTES);

	if (err)
		return err;
	p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || fstat(fd, &is))
		return -errno;
	device = is.st_dev;
	inode = is.st_ino;
	p->magic = TALLY_MAGIC;
	p->pid = (uint32_t)getpid();
	p->count = CALL_COUNT;
	strncpy(p->program, program_invocation_short_name, sizeof(p->program) - 1);
	for (int id = 0; id < CALL_COUNT; id++)
		strncpy(p->rows[id].call, calls_name((enum call_id)id),
			sizeof(p->rows[id].call) - 1);
	*out = p;
	return 0;
}

/*
 * Makes the file under another name, and gives it its own when it is complete: a file of that name
 * may be mapped by a process that lives.
 */
static int make_file(int folder, struct tally_page **out)
{
	char name[16], unfinished[64];
	int fd, err;

	snprintf(name, sizeof(name), "%d", (int)getpid());
	snprintf(unfinished, sizeof(unfinished), ".%s.%llx", name, (unsigned long long)clock_ns());
	fd = openat(folder, unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = map_file(fd, out);
	close(fd);
	if (!err && renameat(folder, unfinished, folder, name)) {
		err = -errno;
		munmap(*out, PAGE_BYTES);
	}
	if (err)
		unlinkat(folder, unfinished, 0);
	return err;
}

/* The pages of a forked child are its parent's: it is not monitored. */
static void monitor_in_child(void)
{
	page = NULL;
}

static int make_page(struct tally_page **out)
{
	int folder, err = name_folder();

	if (err)
		return err;
	folder = open_folder(path);
	if (folder < 0)
		return folder;
	err = make_file(folder, out);
	close(folder);
	return err;
}

void monitor_start(void)
{
	struct tally_page *made = NULL;
	size_t len;
	int err;

	if (getauxval(AT_SECURE)) {
		LOG_WARN(LOG_CORE, "no monitor: the program runs with raised rights");
		return;
	}
	err = make_page(&made);
	if (err) {
		LOG_WARN(LOG_CORE, "no monitor: %s: %s", path, strerror(-err));
		return;
	}
	page = made;
	len = strlen(path);
	snprintf(path + len, sizeof(path) - len, "/%d", (int)getpid());
	pthread_atfork(NULL, NULL, monitor_in_child);
}

void monitor_call(const struct call *call)
{
	if (page)
		tally_add(&page->rows[call->id].tally, call);
}

/* Is the file of this name still the one of this process? */
static bool monitor_is_ours(void)
{
	struct stat is;

	return lstat(path, &is) == 0 && is.st_dev == device && is.st_ino == inode;
}

/* Other threads may still call: the memory stays. */
static __attribute__((destructor)) void monitor_at_exit(void)
{
	if (page && !env_get()->monitor_linger && monitor_is_ours())
		unlink(path);
}
