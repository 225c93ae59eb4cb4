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
static void no_waiting(struct link *link)
{
	(void)link;
}

const struct link_zcopy_ops link_no_zcopy = {
	.sendv = no_zcopy_sendv, .copy_out = no_copy_out, .more = no_waiting, .flush = no_waiting};

static int no_reg(struct link *link, enum proto proto, const struct iovec *iov, size_t count,
		  const void *batch, struct fi_rma_iov *at, void **registered)
{
	(void)link, (void)proto, (void)iov, (void)count, (void)batch, (void)at, (void)registered;
	return -FI_ENOSYS;
}

static void no_dereg(struct link *link, void *registered)
{
	(void)link, (void)registered;
}

const struct link_rndv_ops link_no_rndv = {.reg = no_reg, .dereg = no_dereg};

static int no_post(struct link *link, const struct link_rdma *op)
{
	(void)link, (void)op;
	return -FI_ENOSYS;
}

static void no_abort(struct link *link)
{
	(void)link;
}

const struct link_rdma_ops link_no_rdma = {.post = no_post, .abort = no_abort};

static ssize_t no_fetch(struct link *link, const struct iovec *local, size_t local_count,
			const struct iovec *remote, size_t remote_count, uint64_t key)
{
	(void)link, (void)local, (void)local_count, (void)remote, (void)remote_count, (void)key;
	return -FI_ENOSYS;
}

static int no_access(struct link *link, const struct iovec *local, size_t local_count,
		     const struct fi_rma_iov *remote, size_t remote_count)
{
	(void)link, (void)local, (void)local_count, (void)remote, (void)remote_count;
	return -FI_ENOSYS;
}

static bool no_reach(struct link *link, const struct fi_rma_iov *remote, size_t remote_count,
		     bool write)
{
	(void)link, (void)remote, (void)remote_count, (void)write;
	return false;
}

static int no_joint(struct link *link, const struct link_joint *copy)
{
	(void)link, (void)copy;
	return -FI_ENOSYS;
}

static int no_joint_ended(struct link *link)
{
	(void)link;
	return -FI_ENOSYS;
}

static void no_joint_abandon(struct link *link)
{
	(void)link;
}

static void no_help(struct link *link, const struct link_help *help)
{
	(void)link, (void)help;
}

static const void *no_cancel_posted(struct link *link, uint64_t place, size_t *len)
{
	(void)link, (void)place, (void)len;
	return NULL;
}

static void no_release(struct link *link, uint64_t place, bool done)
{
	(void)link, (void)place, (void)done;
}

static bool no_recall_posted(struct link *link, uint64_t place)
{
	(void)link, (void)place;
	return false;
}

const struct link_local_ops link_no_local = {
	.fetch = no_fetch,
	.put = no_access,
	.get = no_access,
	.reach = no_reach,
	.cancel_posted = no_cancel_posted,
	.release = no_release,
	.recall_posted = no_recall_posted,
	.joint = no_joint,
	.joint_ended = no_joint_ended,
	.joint_abandon = no_joint_abandon,
	.help = no_help,
};
