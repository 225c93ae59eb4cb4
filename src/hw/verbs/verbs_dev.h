/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices, open as long as somebody uses them: once in a process, and not shared across fork, after
 * which the child's copies are dead.
 */
#ifndef WEFT_HW_VERBS_VERBS_DEV_H
#define WEFT_HW_VERBS_VERBS_DEV_H

#include "base/list.h"
#include "core/rdma_ports.h"
#include "hw/verbs/verbs_lib.h"

struct verbs_dev {
	const struct verbs_lib *lib;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	char name[RDMA_NAME_MAX];
	unsigned int users;
	unsigned int forked;   /* forked_count when it was opened */
	unsigned int troubles; /* atomic: events that may mean that something of it has broken */
	bool gone;             /* atomic: nothing of it works any more */
	struct list in_all;
};

/* A port of an open device. */
struct verbs_path {
	struct verbs_dev *dev;
	struct rdma_port port;
	uint16_t lid;         /* of InfiniBand */
	enum ibv_mtu mtu;     /* of the port as it is */
	uint32_t message_max; /* bytes */
};

/* Opens the device that has the address. 0 or a negative error. From any thread. */
int verbs_dev_open(const struct addr *a, struct verbs_path *path);
void verbs_dev_close(struct verbs_path *path);
/* Notes in `troubles` and `gone` what the device has to say of itself. From any thread. */
void verbs_dev_listen(struct verbs_dev *dev);

#endif
