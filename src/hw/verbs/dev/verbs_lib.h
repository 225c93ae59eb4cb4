/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs, loaded with dlopen when the first device is used: hosts without devices pay nothing,
 * and the project runs where the library is not installed.
 */
#ifndef WEFT_HW_VERBS_LIB_H
#define WEFT_HW_VERBS_LIB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* Functions called by name; posting and polling go through the device's own tables. */
#define VERBS_CALLS(CALL)                                                                          \
	CALL(get_device_list)                                                                      \
	CALL(free_device_list)                                                                     \
	CALL(get_device_name)                                                                      \
	CALL(open_device)                                                                          \
	CALL(close_device)                                                                         \
	CALL(query_device)                                                                         \
	CALL(query_port)                                                                           \
	CALL(alloc_pd)                                                                             \
	CALL(dealloc_pd)                                                                           \
	CALL(reg_mr)                                                                               \
	CALL(reg_dmabuf_mr)                                                                        \
	CALL(dereg_mr)                                                                             \
	CALL(create_comp_channel)                                                                  \
	CALL(destroy_comp_channel)                                                                 \
	CALL(create_cq)                                                                            \
	CALL(resize_cq)                                                                            \
	CALL(destroy_cq)                                                                           \
	CALL(get_cq_event)                                                                         \
	CALL(ack_cq_events)                                                                        \
	CALL(create_srq)                                                                           \
	CALL(destroy_srq)                                                                          \
	CALL(create_qp)                                                                            \
	CALL(modify_qp)                                                                            \
	CALL(query_qp)                                                                             \
	CALL(qp_to_qp_ex)                                                                          \
	CALL(destroy_qp)                                                                           \
	CALL(create_ah)                                                                            \
	CALL(destroy_ah)                                                                           \
	CALL(get_async_event)                                                                      \
	CALL(ack_async_event)                                                                      \
	CALL(event_type_str)                                                                       \
	CALL(wc_status_str)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): `name` is that of a member */
#define VERBS_MEMBER(name) __typeof__(ibv_##name) *name;
struct verbs_lib {
	VERBS_CALLS(VERBS_MEMBER)
};
#undef VERBS_MEMBER

/* A function: its name in the library, and the offset of its pointer in a table. */
struct verbs_call {
	const char *name;
	size_t offset;
};

/* Loads `library` and fills `table`. False, and logged: the library or a function is missing. */
bool verbs_lib_load(const char *library, const struct verbs_call *calls, size_t count, void *table);

/* Returns the functions; NULL, and logged once: no library. From any thread. */
const struct verbs_lib *verbs_lib(void);
/* Returns the text of an enum ibv_wc_status. From any thread. */
const char *verbs_status_text(int status);

#endif
