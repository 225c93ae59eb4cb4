/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the programs of this folder, each of which makes the calls of one client in that client's order, in two
 * processes. `wire` joins them as the client's own launcher would: names, and signs that something has been done.
 */
#ifndef ORDER_H
#define ORDER_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSION FI_VERSION(1, 17)
#define NAME    128
#define LIMIT   40 /* seconds: a process that hangs ends */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);         \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define OK(call)                                                                                   \
	do {                                                                                       \
		long ok_ = (long)(call);                                                           \
                                                                                                   \
		if (ok_) {                                                                         \
			fprintf(stderr, "%s:%d: %s: %ld\n", __FILE__, __LINE__, #call, ok_);       \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

struct side {
	const char *provider;
	int wire;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr; /* of region_open, or NULL */
	fi_addr_t peer;
	struct fi_cq_tagged_entry entry; /* the last that was read */
	unsigned int received, ended;    /* messages that came; own operations but receives */
};

static inline void tell(struct side *s, const void *what, size_t len)
{
	CHECK(send(s->wire, what, len, 0) == (ssize_t)len);
}

static inline void hear(struct side *s, void *what, size_t len)
{
	CHECK(recv(s->wire, what, len, MSG_WAITALL) == (ssize_t)len);
}

static inline void meet(struct side *s)
{
	char sign = 0;

	tell(s, &sign, 1);
	hear(s, &sign, 1);
}

/* Hints of a reliable endpoint of the provider under test. */
static inline struct fi_info *side_hints(const struct side *s, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();

	CHECK(hints);
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup(s->provider);
	hints->domain_attr->control_progress = hints->domain_attr->data_progress =
		FI_PROGRESS_MANUAL;
	return hints;
}

/* Opens what the hints ask for, and frees them. */
static inline void side_domain(struct side *s, struct fi_info *hints)
{
	OK(fi_getinfo(VERSION, NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	OK(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	OK(fi_domain(s->fabric, s->info, &s->domain, NULL));
}

static inline struct fid_av *side_av(const struct side *s)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fid_av *av;

	OK(fi_av_open(s->domain, &attr, &av, NULL));
	return av;
}

static inline struct fid_cq *side_cq(const struct side *s, enum fi_cq_format format)
{
	struct fi_cq_attr attr = {.format = format, .size = 1024};
	struct fid_cq *cq;

	OK(fi_cq_open(s->domain, &attr, &cq, NULL));
	return cq;
}

static inline void side_endpoint(struct side *s, enum fi_cq_format format)
{
	s->av = side_av(s);
	s->cq = side_cq(s, format);
	OK(fi_endpoint(s->domain, s->info, &s->ep, NULL));
	OK(fi_ep_bind(s->ep, &s->av->fid, 0));
	OK(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(s->ep));
}

/* Exchanges names. Returns the address of the other side's endpoint. */
static inline fi_addr_t side_introduce(struct side *s, struct fid_ep *ep, struct fid_av *av)
{
	char name[NAME] = {0};
	size_t len = sizeof(name);
	fi_addr_t peer;

	OK(fi_getname(&ep->fid, name, &len));
	tell(s, name, sizeof(name));
	hear(s, name, sizeof(name));
	CHECK(fi_av_insert(av, name, 1, &peer, 0, NULL) == 1);
	return peer;
}

/* Reads one entry into s->entry. Returns whether there was one; an error ends the process. */
static inline bool side_read(struct side *s)
{
	ssize_t ret = fi_cq_read(s->cq, &s->entry, 1);
	struct fi_cq_err_entry err = {0};

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL && fi_cq_readerr(s->cq, &err, 0) == 1)
		fprintf(stderr, "completion with error %d: %s\n", err.err, fi_strerror(err.err));
	CHECK(ret == 1);
	s->received += !!(s->entry.flags & FI_RECV);
	s->ended += !(s->entry.flags & FI_RECV);
	return true;
}

/* Posts as clients do: one read for each "again". */
#define POST(s, call)                                                                              \
	do {                                                                                       \
		ssize_t post_;                                                                     \
                                                                                                   \
		while ((post_ = (call)) == -FI_EAGAIN)                                             \
			side_read(s);                                                              \
		OK(post_);                                                                         \
	} while (0)

/* Memory of the other side, as operations name it. */
struct region {
	uint64_t base, key;
};

/* Registers memory of its own for the other side, and learns of that side's. */
static inline struct region region_open(struct side *s, void *buf, size_t len)
{
	bool virt = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct region r;

	OK(fi_mr_reg(s->domain, buf, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &s->mr, NULL));
	r = (struct region){virt ? (uint64_t)(uintptr_t)buf : 0, fi_mr_key(s->mr)};
	tell(s, &r, sizeof(r));
	hear(s, &r, sizeof(r));
	return r;
}

static inline void side_close(struct side *s)
{
	OK(fi_close(&s->ep->fid));
	OK(fi_close(&s->cq->fid));
	OK(fi_close(&s->av->fid));
	if (s->mr)
		OK(fi_close(&s->mr->fid));
	OK(fi_close(&s->domain->fid));
	OK(fi_close(&s->fabric->fid));
	fi_freeinfo(s->info);
}

/* Runs both sides in processes of their own. Returns main's status. */
static inline int side_play(const char *provider, void (*first)(struct side *),
			    void (*second)(struct side *))
{
	int wires[2], status;
	struct side side = {.provider = provider};
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, wires) == 0);
	CHECK((pid = fork()) >= 0);
	alarm(LIMIT * (getenv("SLOWER") ? (unsigned int)atoi(getenv("SLOWER")) : 1));
	side.wire = wires[pid == 0];
	close(wires[pid != 0]);
	(pid ? first : second)(&side);
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status != 0;
}

#endif
