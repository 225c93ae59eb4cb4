/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for struct fi_ops members that an object does not support. All return -FI_ENOSYS. */
#ifndef WEFT_BASE_FID_H
#define WEFT_BASE_FID_H

#include <rdma/fabric.h>

int fid_no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int fid_no_control(struct fid *fid, int command, void *arg);
int fid_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);
int fid_no_tostr(const struct fid *fid, char *buf, size_t len);
int fid_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);

/* The same for the members of other tables that API 2.7 adds. */
int fid_no_call_2_7(void);

#endif
