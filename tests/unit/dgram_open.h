/* SPDX-License-Identifier: BSD-2-Clause */
/* A udp endpoint on loopback, with access to its transport, and a plain socket as its peer. */
#ifndef DGRAM_OPEN_H
#define DGRAM_OPEN_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "core/ep.h"
#include "hw/udp/udp.h"
#include "xfer/worker.h"
#include "suite.h"

struct opened {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct dgram *dgram; /* of ep */
	struct udp *udp;     /* the same object: the transport's view */
	struct sockaddr_in name;
	int plain; /* the peer's socket */
	/* The address of `plain`; an address without a listener. */
	fi_addr_t to_plain, to_nobody;
};

static struct opened opened;

static int plain_socket(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(*name);

	*name = (struct sockaddr_in){.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)name, len), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)name, &len), 0);
	return fd;
}

static fi_addr_t insert(const struct sockaddr_in *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	ck_assert_int_eq(fi_av_insert(opened.av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

static struct fi_info *udp_info(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("udp");
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG;
	ck_assert_int_eq(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &info),
			 0);
	fi_freeinfo(hints);
	return info;
}

static void open_objects(void)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	opened.info = udp_info();
	ck_assert_int_eq(fi_fabric(opened.info->fabric_attr, &opened.fabric, NULL), 0);
	ck_assert_int_eq(fi_domain(opened.fabric, opened.info, &opened.domain, NULL), 0);
	ck_assert_int_eq(fi_av_open(opened.domain, &av, &opened.av, NULL), 0);
	ck_assert_int_eq(fi_cq_open(opened.domain, &cq, &opened.cq, NULL), 0);
	ck_assert_int_eq(fi_endpoint(opened.domain, opened.info, &opened.ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(opened.ep, &opened.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(opened.ep, &opened.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_enable(opened.ep), 0);
}

static void open_all(void)
{
	struct sockaddr_in name;
	size_t len = sizeof(opened.name);

	open_objects();
	opened.dgram = ep_of(opened.ep)->worker->dgram;
	opened.udp = (struct udp *)opened.dgram;
	ck_assert_int_eq(fi_getname(&opened.ep->fid, &opened.name, &len), 0);
	opened.plain = plain_socket(&name);
	opened.to_plain = insert(&name);
	close(plain_socket(&name));
	opened.to_nobody = insert(&name);
}

static void close_all(void)
{
	close(opened.plain);
	if (opened.ep)
		ck_assert_int_eq(fi_close(&opened.ep->fid), 0);
	ck_assert_int_eq(fi_close(&opened.cq->fid), 0);
	ck_assert_int_eq(fi_close(&opened.av->fid), 0);
	ck_assert_int_eq(fi_close(&opened.domain->fid), 0);
	ck_assert_int_eq(fi_close(&opened.fabric->fid), 0);
	fi_freeinfo(opened.info);
}

/* Sends *word with `flags`; the context is `word`. */
static inline ssize_t send_word(struct fid_ep *ep, fi_addr_t to, uint64_t *word, uint64_t flags)
{
	struct iovec iov = {word, sizeof(*word)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = to, .context = word};

	return fi_sendmsg(ep, &msg, flags);
}

/* Waits for the next completion, which has to be that of `context`. */
static struct fi_cq_msg_entry expect(const void *context)
{
	struct fi_cq_msg_entry e;
	ssize_t ret = -FI_EAGAIN;

	for (int i = 0; i < 2000 && ret == -FI_EAGAIN; i++) {
		ret = fi_cq_read(opened.cq, &e, 1);
		if (i > 100 && ret == -FI_EAGAIN)
			usleep(1000);
	}
	ck_assert_int_eq(ret, 1);
	ck_assert_ptr_eq(e.op_context, context);
	return e;
}

static inline void expect_error(const void *context, int err)
{
	struct fi_cq_err_entry e = {0};
	struct fi_cq_msg_entry unused;

	ck_assert_int_eq(fi_cq_read(opened.cq, &unused, 1), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(opened.cq, &e, 0), 1);
	ck_assert_ptr_eq(e.op_context, context);
	ck_assert_int_eq(e.err, err);
}

static void expect_nothing(void)
{
	struct fi_cq_msg_entry e;

	ck_assert_int_eq(fi_cq_read(opened.cq, &e, 1), -FI_EAGAIN);
}

#endif
