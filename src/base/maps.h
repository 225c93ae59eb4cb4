/* SPDX-License-Identifier: BSD-2-Clause */
/* The address space of this process, from the kernel. */
#ifndef WEFT_BASE_MAPS_H
#define WEFT_BASE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is all of the range mapped as private anonymous memory, so that only this process can change its
 * contents? Returns false also if the kernel does not say. Allocates nothing.
 */
bool maps_private(uintptr_t from, uintptr_t to);

#endif
