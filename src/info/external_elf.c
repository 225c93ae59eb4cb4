/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "info/external_elf.h"

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

bool external_elf_cut_off(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat is;
	ElfW(Ehdr) head;
	bool cut_off;

	if (fd < 0)
		return false;
	cut_off = fstat(fd, &is) == 0 &&
		  pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
		  memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
		  head.e_phentsize == sizeof(ElfW(Phdr)) &&
		  !holds_segments(fd, &head, (uint64_t)is.st_size);
	close(fd);
	return cut_off;
}
