/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Figures of calls, and the file in which a process shows its own to the tools of its user. This
 * header stands alone: tools/fi_mon_sampler.c reads the file.
 */
#ifndef WEFT_HOOK_TALLY_PAGE_H
#define WEFT_HOOK_TALLY_PAGE_H

#include <stdint.h>

/*
 * Folder of the files unless the user names another: the number is the user's. A file is a pid; one
 * that is not complete has a name that begins with a dot.
 */
#define TALLY_FOLDER "/dev/shm/ofi-%u"

/* Figures of one call. Several threads add to them: readers may see a call in some of them. */
struct tally {
	uint64_t calls;
	uint64_t again;  /* of those, that returned -FI_EAGAIN */
	uint64_t failed; /* that returned another error */
	uint64_t bytes;  /* that they moved */
	uint64_t ns;
	uint64_t events; /* that the layer perf counts */
};

struct tally_row {
	char call[24]; /* "fi_tsend" */
	struct tally tally;
};

#define TALLY_MAGIC 0x31594c4c4154ULL /* "TALLY1" */

/* The file. All but the tallies is constant: the file has its name when it is complete. */
struct tally_page {
	uint64_t magic;
	uint32_t pid;
	uint32_t count; /* of rows */
	char program[48];
	struct tally_row rows[];
};

#endif
