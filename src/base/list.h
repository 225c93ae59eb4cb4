/* SPDX-License-Identifier: BSD-2-Clause */
/* Intrusive doubly linked list with a sentinel head. Owns no memory; callers lock. */
#ifndef WEFT_BASE_LIST_H
#define WEFT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define LIST_ENTRY(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* NOLINTBEGIN(bugprone-macro-parentheses): `node` is a name that is declared here */
#define LIST_EACH(node, head)                                                                      \
	for (struct list *node = (head)->next; node != (head); node = node->next)

/* The body may remove `node`. */
#define LIST_EACH_SAFE(node, head)                                                                 \
	for (struct list *node = (head)->next, *node##_next = node->next; node != (head);          \
	     node = node##_next, node##_next = node->next)

/* The same with the structures around the nodes. */
#define LIST_ITEM(node, head, type, member)                                                        \
	((node) == (head) ? NULL : LIST_ENTRY(node, type, member))

#define LIST_EACH_OF(type, item, head, member)                                                     \
	for (type *item = LIST_ITEM((head)->next, head, type, member); item;                       \
	     item = LIST_ITEM(item->member.next, head, type, member))

#define LIST_EACH_SAFE_OF(type, item, head, member)                                                \
	for (type *item = LIST_ITEM((head)->next, head, type, member),                             \
		  *item##_next = item ? LIST_ITEM(item->member.next, head, type, member) : NULL;   \
	     item; item = item##_next,                                                             \
		  item##_next = item ? LIST_ITEM(item->member.next, head, type, member) : NULL)
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_insert_before(struct list *pos, struct list *node)
{
	struct list *before = pos->prev;

	/* In this order the compiler makes four stores; neighbours it would first join in a vector. */
	node->next = pos;
	before->next = node;
	node->prev = before;
	pos->prev = node;
}

static inline void list_push(struct list *head, struct list *node)
{
	list_insert_before(head, node);
}

static inline void list_push_front(struct list *head, struct list *node)
{
	list_insert_before(head->next, node);
}

/* Takes a node out, which is then no node until it is initialised or inserted. */
static inline void list_unlink(const struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* May be called again on a removed node. */
static inline void list_remove(struct list *node)
{
	list_unlink(node);
	node->next = node->prev = node;
}

static inline struct list *list_pop(struct list *head)
{
	struct list *node = head->next;

	if (node == head)
		return NULL;
	list_remove(node); /* NOLINT(clang-analyzer-unix.Malloc): it does not follow the lists */
	return node;
}

#endif
