/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a file longer than RLIMIT_FSIZE permits is an error like any other, EFBIG: SIGXFSZ, which by default
 * ends the process, is kept from it. A memfd counts as a file.
 */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <sys/types.h>

/* ftruncate(2): 0, or -1 and errno. */
int file_resize(int fd, off_t len);
/* write(2): the bytes written, or -1 and errno. */
ssize_t file_write(int fd, const void *buf, size_t len);

#endif
