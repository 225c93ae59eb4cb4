/* SPDX-License-Identifier: BSD-2-Clause */
/* The address space of this process, as the kernel tells of it. */
#ifndef WEFT_BASE_MAPS_H
#define WEFT_BASE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is all of it mapped, and of this process alone: of no file, and shared with nobody, so that only this
 * process changes what is behind the addresses? False, too, where the kernel does not tell. Allocates nothing.
 */
bool maps_private(uintptr_t from, uintptr_t to);

#endif
