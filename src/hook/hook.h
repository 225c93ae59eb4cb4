/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layers around objects: FI_HOOK names what sees each call of an application. fi_hook(7).
 *
 * The pointers of an object to its tables are replaced by pointers to tables of this room, whose functions call those
 * of the object. The object stays where it is and what it is. Where FI_HOOK names nothing, no object is touched.
 */
#ifndef WEFT_HOOK_HOOK_H
#define WEFT_HOOK_HOOK_H

#include <rdma/fabric.h>

/* Wraps a fabric that was just opened; all that is opened from it is wrapped as well. */
void hook_fabric(struct fid_fabric *fabric);

#endif
