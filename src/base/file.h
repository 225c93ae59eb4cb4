/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls on files without the signals that would end the process: beyond RLIMIT_FSIZE they
 * fail with EFBIG and suppress SIGXFSZ (a memfd counts as a file), and where a pipe or socket has
 * no reader with EPIPE and suppress SIGPIPE.
 */
#ifndef WEFT_BASE_FILE_H
#define WEFT_BASE_FILE_H

#include <sys/types.h>

/*
 * Opens a file that the user's settings name, or makes it, for this user alone; `flags` are of
 * open(2): the access mode, O_APPEND and O_TRUNC. In a folder of many, others may have put something
 * in its place: a link, a FIFO or device, or another user's file is refused. Never waits. Returns a
 * descriptor, or a negative error: -ELOOP for a symbolic link, -ENXIO for a FIFO that nobody reads,
 * -EPERM for the others.
 */
int file_open_own(const char *path, int flags);
/* As ftruncate(2): returns 0, or -1 and sets errno. */
int file_resize(int fd, off_t len);
/* As write(2): returns the bytes written, or -1 and sets errno. */
ssize_t file_write(int fd, const void *buf, size_t len);
/* Writes all bytes. Returns 0 or a negative error. */
int file_write_all(int fd, const void *buf, size_t len);
/* As pwrite(2): the same at an offset. */
ssize_t file_write_at(int fd, const void *buf, size_t len, off_t at);

#endif
