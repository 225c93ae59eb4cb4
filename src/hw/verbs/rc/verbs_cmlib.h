/* SPDX-License-Identifier: BSD-2-Clause */
/* librdmacm, loaded like libibverbs (verbs_lib.h) when the first connection is made. */
#ifndef WEFT_HW_VERBS_CMLIB_H
#define WEFT_HW_VERBS_CMLIB_H

#include <rdma/rdma_cma.h>

#define VERBS_CMLIB_CALLS(CALL)                                                                    \
	CALL(create_event_channel)                                                                 \
	CALL(destroy_event_channel)                                                                \
	CALL(create_id)                                                                            \
	CALL(destroy_id)                                                                           \
	CALL(migrate_id)                                                                           \
	CALL(bind_addr)                                                                            \
	CALL(resolve_addr)                                                                         \
	CALL(resolve_route)                                                                        \
	CALL(init_qp_attr)                                                                         \
	CALL(connect)                                                                              \
	CALL(establish)                                                                            \
	CALL(listen)                                                                               \
	CALL(accept)                                                                               \
	CALL(reject)                                                                               \
	CALL(disconnect)                                                                           \
	CALL(get_cm_event)                                                                         \
	CALL(ack_cm_event)                                                                         \
	CALL(get_src_port)                                                                         \
	CALL(event_str)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): `name` is that of a member */
#define VERBS_CMLIB_MEMBER(name) __typeof__(rdma_##name) *name;
struct verbs_cmlib {
	VERBS_CMLIB_CALLS(VERBS_CMLIB_MEMBER)
};
#undef VERBS_CMLIB_MEMBER

/* Returns the functions; NULL, and logged once: no library. From any thread. */
const struct verbs_cmlib *verbs_cmlib(void);

/*
 * Returns a non-blocking event channel, closed in a forked child, which would keep its connections
 * open. NULL, with errno: no memory or no connection manager.
 */
struct rdma_event_channel *verbs_cmlib_channel(void);
/* Closes the channel; no id uses it. */
void verbs_cmlib_drop(struct rdma_event_channel *channel);

#endif
