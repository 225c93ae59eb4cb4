/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that dlopen must not be given: they would hang or end the process, or run what just anybody has put there. */
#ifndef WEFT_INFO_EXTERNAL_CHECK_H
#define WEFT_INFO_EXTERNAL_CHECK_H

/*
 * Returns why the library is not loaded, or NULL: dlopen may have it, which refuses by itself what is not there, cannot be
 * read or is no ELF file of this machine. Refused are
 * - all but regular files, without a look inside: an open may wait, as that of a FIFO;
 * - a file that all may write, and one in a folder that all may write, except in a sticky one those of root and this user;
 * - a file shorter than the segments that its header lists, as a broken copy is: dlopen would die of it by SIGBUS.
 */
const char *external_check(const char *path);

#endif
