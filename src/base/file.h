/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls that may extend a file beyond RLIMIT_FSIZE. They fail with EFBIG and suppress the
 * signal SIGXFSZ, which would end the process. A memfd counts as a file.
 */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <sys/types.h>

/* As ftruncate(2): returns 0, or -1 and sets errno. */
int file_resize(int fd, off_t len);
/* As write(2): returns the bytes written, or -1 and sets errno. */
ssize_t file_write(int fd, const void *buf, size_t len);
/* Writes all bytes. Returns 0 or a negative error. */
int file_write_all(int fd, const void *buf, size_t len);
/* As pwrite(2): the same at an offset. */
ssize_t file_write_at(int fd, const void *buf, size_t len, off_t at);

#endif
