/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of a link that lacks a capability. */
#include "link/link.h"

#include <rdma/fi_errno.h>

#include "link/cursor.h"

static struct link_slot nothing;
struct link_cursor link_cursor_never = {.at = &nothing, .next = 1, .stop = &nothing};

static int no_zcopy_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
			  size_t count)
{
	return link->ops->sendv(link, p, iov, count);
}

static int no_copy_out(struct link *link)
{
	(void)link;
	return 0;
}

/* Nothing waits. */
static void no_cork(struct link *link, bool more)
{
	(void)link, (void)more;
}

const struct link_zcopy_ops link_no_zcopy = {
	.sendv = no_zcopy_sendv, .copy_out = no_copy_out, .cork = no_cork};

int link_registers_nothing(struct link *link, const struct iovec *iov, size_t count,
			   struct fi_rma_iov *at, void **registered)
{
	(void)link, (void)iov, (void)count, (void)at, (void)registered;
	return -FI_ENOSYS;
}

void link_deregisters_nothing(struct link *link, void *registered)
{
	(void)link, (void)registered;
}

static int no_copy(struct link *link, const struct link_copy *copy)
{
	(void)link, (void)copy;
	return -FI_ENOSYS;
}

static void no_abort(struct link *link)
{
	(void)link;
}

int link_performs_nothing(struct link *link, uint64_t place, const struct link_copy *copy)
{
	(void)link, (void)place, (void)copy;
	return -FI_ENOSYS;
}

const struct link_memory_ops link_no_memory = {
	.reg = link_registers_nothing,
	.dereg = link_deregisters_nothing,
	.copy = no_copy,
	.abort = no_abort,
	.perform = link_performs_nothing,
};
