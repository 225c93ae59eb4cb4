/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocations of this process, and mappings of memory, that fail; and the blocks that the library has. */
#ifndef FAULT_SHORT_MEMORY_H
#define FAULT_SHORT_MEMORY_H

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <rdma/fabric.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	bool armed;
	unsigned int count, fails; /* while armed; the first that fails, 0: none */
	unsigned int row;          /* how many fail */
} memory;

static inline const char *memory_how(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "from allocation %u of %u on %u failed", memory.fails,
		 memory.count, memory.row);
	return text;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static inline void need_memory(void)
{
	puts("the sanitizer has an allocator of its own");
	exit(77);
}
#else
static inline void need_memory(void)
{
}

static inline bool memory_short(void)
{
	unsigned int now = memory.armed ? ++memory.count : 0;

	if (!now || !memory.fails || now < memory.fails || now - memory.fails >= memory.row)
		return false;
	errno = ENOMEM; /* glibc's pthread_create asserts that */
	return true;
}

#define BLOCKS_MAX 65536

static struct {
	uintptr_t from, to; /* the library */
	void *at[BLOCKS_MAX];
	unsigned int count;
	atomic_flag lock; /* the library has threads */
} blocks = {.lock = ATOMIC_FLAG_INIT};

static inline void blocks_lock(void)
{
	while (atomic_flag_test_and_set(&blocks.lock))
		sched_yield();
}

static inline void blocks_unlock(void)
{
	atomic_flag_clear(&blocks.lock);
}

static inline int memory_find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	const uintptr_t inside = *(uintptr_t *)arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		uintptr_t to = from + info->dlpi_phdr[i].p_memsz;

		if (inside >= from && inside < to) {
			blocks.from = from;
			blocks.to = to;
		}
	}
	return 0;
}

/* From now on blocks that the library allocates are known. */
static inline void memory_watch(void)
{
	uintptr_t inside;
	Dl_info info;

	dladdr((void *)fi_fabric, &info);
	inside = (uintptr_t)info.dli_saddr;
	dl_iterate_phdr(memory_find_library, &inside);
}

/* Notes a block if the caller is the library. Returns it. */
static inline void *memory_note(void *at, const void *caller)
{
	if (!at || (uintptr_t)caller < blocks.from || (uintptr_t)caller >= blocks.to)
		return at;
	blocks_lock();
	if (blocks.count < BLOCKS_MAX)
		blocks.at[blocks.count++] = at;
	blocks_unlock();
	return at;
}

static inline void memory_forget(const void *at)
{
	blocks_lock();
	for (unsigned int i = blocks.count; at && i-- > 0;)
		if (blocks.at[i] == at) {
			blocks.at[i] = blocks.at[--blocks.count];
			break;
		}
	blocks_unlock();
}

#define NOTED(at) memory_note(at, __builtin_return_address(0))

#pragma GCC visibility push(default) /* the library calls these, too */
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t count, size_t len);
void *__libc_realloc(void *old, size_t len);
void *__libc_memalign(size_t align, size_t len);
void __libc_free(void *at);

void *malloc(size_t len)
{
	return memory_short() ? NULL : NOTED(__libc_malloc(len));
}

void *calloc(size_t count, size_t len)
{
	return memory_short() ? NULL : NOTED(__libc_calloc(count, len));
}

void *realloc(void *old, size_t len)
{
	if (memory_short())
		return NULL;
	memory_forget(old);
	return NOTED(__libc_realloc(old, len));
}

void *aligned_alloc(size_t align, size_t len)
{
	return memory_short() ? NULL : NOTED(__libc_memalign(align, len));
}

void free(void *at)
{
	memory_forget(at);
	__libc_free(at);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	return memory_short() ? MAP_FAILED
			      : (void *)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}
#pragma GCC visibility pop
#endif

#endif
