/* SPDX-License-Identifier: BSD-2-Clause */
/* What all objects have in common: calls that an object does not support, which return -FI_ENOSYS, and its end. */
#ifndef WEFT_BASE_FID_H
#define WEFT_BASE_FID_H

#include <rdma/fabric.h>

int fid_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int fid_no_control(struct fid *fid, int command, void *arg);
int fid_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int fid_no_tostr(const struct fid *fid, char *buf, size_t len);
int fid_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/* The calls of an object, of which only these three differ from one kind to another. */
/* clang-format off */
#define FID_OPS(close_, bind_, control_)                                                           \
	{                                                                                          \
		.size = sizeof(struct fi_ops), .close = (close_), .bind = (bind_),                 \
		.control = (control_), .ops_open = fid_no_ops_open, .tostr = fid_no_tostr,         \
		.ops_set = fid_no_ops_set,                                                         \
	}
/* clang-format on */

/* The same for the members of other tables that API 2.7 adds. */
int fid_no_call_2_7(void);

/*
 * Frees the memory of a closed object, which begins with `fid`. An application that closes it again is told so (-FI_EINVAL),
 * as long as nothing else has got the memory.
 */
void fid_free(struct fid *fid);

#endif
