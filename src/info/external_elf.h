/* SPDX-License-Identifier: BSD-2-Clause */
/* A library cut off in its middle, as a broken copy leaves it: dlopen would die of it by SIGBUS. */
#ifndef WEFT_INFO_EXTERNAL_ELF_H
#define WEFT_INFO_EXTERNAL_ELF_H

#include <stdbool.h>

/*
 * Is the file shorter than the segments that its header lists? False for all that is no ELF file of this
 * machine, or cannot be read: dlopen refuses that by itself.
 */
bool external_elf_cut_off(const char *path);

#endif
