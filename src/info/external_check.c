/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/external.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Who may have written it ------------------------------------------------------------------ */

static bool of_root_or_self(const char *path)
{
	struct stat is;

	return lstat(path, &is) == 0 && (is.st_uid == 0 || is.st_uid == geteuid());
}

/* May anybody have given the file its name? */
static bool anybody_names(const char *path)
{
	char folder[PATH_MAX];
	struct stat is;

	strncpy(folder, path, sizeof(folder) - 1);
	folder[sizeof(folder) - 1] = '\0';
	if (stat(dirname(folder), &is) || !(is.st_mode & S_IWOTH))
		return false;
	return !(is.st_mode & S_ISVTX) || !of_root_or_self(path);
}

static bool anybody_writes(const char *path, const struct stat *is)
{
	char target[PATH_MAX];

	if (is->st_mode & S_IWOTH || anybody_names(path))
		return true;
	return realpath(path, target) && anybody_names(target);
}

/* ---- Whether it is whole ---------------------------------------------------------------------- */

/* Reads segment header `i`; false: the file ends before it does. */
static bool read_segment(int fd, const ElfW(Ehdr) * head, int i, ElfW(Phdr) * segment)
{
	off_t at = (off_t)(head->e_phoff + (size_t)i * sizeof(*segment));

	return pread(fd, segment, sizeof(*segment), at) == (ssize_t)sizeof(*segment);
}

static bool holds_segments(int fd, const ElfW(Ehdr) * head, uint64_t size)
{
	ElfW(Phdr) segment;

	for (int i = 0; i < head->e_phnum; i++) {
		if (!read_segment(fd, head, i, &segment))
			return false;
		if (segment.p_type == PT_LOAD &&
		    (segment.p_offset > size || segment.p_filesz > size - segment.p_offset))
			return false;
	}
	return true;
}

static bool is_cut_off(const char *path, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ElfW(Ehdr) head;
	bool cut_off;

	if (fd < 0)
		return false;
	cut_off = pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
		  memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
		  head.e_phentsize == sizeof(ElfW(Phdr)) && !holds_segments(fd, &head, size);
	close(fd);
	return cut_off;
}

const char *external_check(const char *path)
{
	struct stat is;

	if (!strchr(path, '/') ||
	    stat(path, &is)) /* the dynamic linker looks for it, or says what is wrong */
		return NULL;
	if (!S_ISREG(is.st_mode))
		return "not a regular file";
	if (anybody_writes(path, &is))
		return "all users can write it, or put something else in its place";
	return is_cut_off(path, (uint64_t)is.st_size) ? "the file is cut off" : NULL;
}
