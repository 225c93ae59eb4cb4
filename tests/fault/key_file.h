/* SPDX-License-Identifier: BSD-2-Clause */
/* A key for the endpoints of a process. */
#ifndef FAULT_KEY_FILE_H
#define FAULT_KEY_FILE_H

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "process.h"

/* Endpoints that this process opens have the key from now on; `auth`: FI_WEFT_AUTH. */
static inline void use_key(const char *auth, const void *key, size_t len)
{
	int fd = memfd_create("key", MFD_CLOEXEC);
	char path[64];

	if (fd < 0 || fchmod(fd, 0600) || write(fd, key, len) != (ssize_t)len)
		fail("a file for the key: %s", strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("FI_WEFT_AUTH_KEY_FILE", path, 1);
	setenv("FI_WEFT_AUTH", auth, 1);
}

/* Is there what this level needs? NULL: endpoints without a key. */
static inline bool has_library(const char *auth)
{
	return !auth ||
	       dlopen(strcmp(auth, "encrypt") ? "libcrypto.so.3" : "libssl.so.3", RTLD_NOW);
}

#endif
