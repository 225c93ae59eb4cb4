/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected endpoints of the provider "verbs" in one process: opening, and helpers that wait
 * for completions.
 */
#ifndef LAB_MSG_ENDS_H
#define LAB_MSG_ENDS_H

#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEMORY 65536 /* bytes of registered memory per end */
#define WINDOW 32768 /* offset of the part that the other end writes */
#define WAIT_S 60    /* limit in seconds */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s, line %d: not so: %s\n", now, __LINE__, #cond);        \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)
#define OK(call) check_ok((call), #call, __LINE__)

struct end {
	struct fid_ep *ep;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_cntr *cntr; /* counts all events, or NULL */
	struct fid_mr *mr;
	void *desc;
	char *memory;
};

static const char *now = "start";
static struct fi_info *info, *listen_info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *pep_eq;
static struct fid_pep *pep;
static bool selective, counted;
static struct fid_ep *shared; /* shared receive context of the ends, or NULL */
static struct fid_eq *eqs[8]; /* of the open ends */
static unsigned int eq_count;

static inline void check_ok(ssize_t ret, const char *call, int line)
{
	if (!ret)
		return;
	fprintf(stderr, "%s, line %d: %s: %s\n", now, line, call, fi_strerror((int)-ret));
	exit(EXIT_FAILURE);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static inline struct fi_info *look_up(const char *address, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *found;

	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->tx_attr->size = 16;
	hints->rx_attr->size = 16;
	OK(fi_getinfo(FI_VERSION(1, 17), address, flags ? NULL : "1", flags, hints, &found));
	fi_freeinfo(hints);
	return found;
}

static inline void open_end(struct end *e, struct fi_info *from, uint64_t access)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	uint64_t bind = FI_TRANSMIT | FI_RECV | (selective ? FI_SELECTIVE_COMPLETION : 0);

	*e = (struct end){.memory = aligned_alloc(4096, MEMORY)};
	memset(e->memory, 0, MEMORY);
	OK(fi_mr_reg(domain, e->memory, MEMORY, access, 0, 0, 0, &e->mr, NULL));
	e->desc = fi_mr_desc(e->mr);
	OK(fi_endpoint(domain, from, &e->ep, NULL));
	OK(fi_eq_open(fabric, &eq_attr, &e->eq, NULL));
	eqs[eq_count++] = e->eq;
	OK(fi_cq_open(domain, &cq_attr, &e->cq, NULL));
	OK(fi_ep_bind(e->ep, &e->eq->fid, 0));
	OK(fi_ep_bind(e->ep, &e->cq->fid, bind));
	if (counted) {
		OK(fi_cntr_open(domain, &cntr_attr, &e->cntr, NULL));
		OK(fi_ep_bind(e->ep, &e->cntr->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE));
	}
	if (shared)
		OK(fi_ep_bind(e->ep, &shared->fid, 0));
	OK(fi_enable(e->ep));
}

/* Reads the event queues of all ends, for progress. */
static inline void progress_others(void)
{
	char buf[256];
	uint32_t got;

	for (unsigned int i = 0; i < eq_count; i++)
		fi_eq_read(eqs[i], &got, buf, sizeof(buf), FI_PEEK);
}

/* Waits for the next event, which must be `want`. Returns its info. */
static inline struct fi_info *event(struct fid_eq *eq, uint32_t want)
{
	struct fi_eq_cm_entry entry[8];
	time_t end = time(NULL) + WAIT_S;
	uint32_t got = 0;
	ssize_t n;

	while ((n = fi_eq_read(eq, &got, entry, sizeof(entry), 0)) == -FI_EAGAIN) {
		CHECK(time(NULL) < end);
		progress_others();
	}
	CHECK(n >= (ssize_t)sizeof(*entry) && got == want);
	return entry[0].info;
}

#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static inline void connect_with(struct end *a, struct end *b, uint64_t access)
{
	char name[64];
	size_t len = sizeof(name);
	struct fi_info *request;

	OK(fi_getname(&pep->fid, name, &len));
	open_end(a, info, ACCESS);
	OK(fi_connect(a->ep, name, NULL, 0));
	request = event(pep_eq, FI_CONNREQ);
	open_end(b, request, access);
	OK(fi_accept(b->ep, NULL, 0));
	event(a->eq, FI_CONNECTED);
	event(b->eq, FI_CONNECTED);
	fi_freeinfo(request);
}

static inline void close_end(struct end *e)
{
	if (e->ep)
		OK(fi_close(&e->ep->fid));
	OK(fi_close(&e->cq->fid));
	OK(fi_close(&e->eq->fid));
	eq_count = 0;
	OK(fi_close(&e->mr->fid));
	if (e->cntr)
		OK(fi_close(&e->cntr->fid));
	free(e->memory);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static inline struct fi_cq_data_entry done(struct end *e, uint64_t flags, void *context)
{
	struct fi_cq_data_entry entry;
	ssize_t n = fi_cq_sread(e->cq, &entry, 1, NULL, WAIT_S * 1000);

	if (n == -FI_EAVAIL) {
		struct fi_cq_err_entry err = {0};

		fi_cq_readerr(e->cq, &err, 0);
		fprintf(stderr, "%s: a completion says: %s\n", now, fi_strerror(err.err));
	}
	CHECK(n == 1);
	CHECK(entry.flags == flags);
	CHECK(entry.op_context == context);
	return entry;
}

static inline struct fi_cq_err_entry failed(struct end *e, void *context)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_data_entry entry;
	time_t end = time(NULL) + WAIT_S;
	ssize_t n;

	while ((n = fi_cq_read(e->cq, &entry, 1)) == -FI_EAGAIN)
		CHECK(time(NULL) < end);
	CHECK(n == -FI_EAVAIL);
	CHECK(fi_cq_readerr(e->cq, &err, 0) == 1);
	printf("%s: fails with %s, %d\n", now, fi_strerror(err.err), err.prov_errno);
	CHECK(err.op_context == context);
	return err;
}

static inline void silent(struct end *e)
{
	struct fi_cq_data_entry entry;

	for (int i = 0; i < 200; i++)
		CHECK(fi_cq_read(e->cq, &entry, 1) == -FI_EAGAIN);
}

static inline void fill(struct end *e, int seed)
{
	for (int i = 0; i < WINDOW; i++)
		e->memory[i] = (char)(i * 7 + seed);
}

static inline struct fi_rma_iov window(const struct end *e, size_t len)
{
	return (struct fi_rma_iov){(uintptr_t)e->memory + WINDOW, len, fi_mr_key(e->mr)};
}

#define SENT    (FI_MSG | FI_SEND)
#define CAME    (FI_MSG | FI_RECV)
#define WROTE   (FI_RMA | FI_WRITE)
#define READ    (FI_RMA | FI_READ)
#define FETCHED (FI_ATOMIC | FI_READ)

/* ---- Running cases --------------------------------------------------------------------------- */

/* A test case, which runs on a connection of its own. */
struct msg_case {
	const char *name;
	void (*run)(struct end *a, struct end *b);
	bool selective, counted;
	uint64_t access; /* access of the memory; 0: all */
};

static inline void open_all(const char *address)
{
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};

	info = look_up(address, 0);
	listen_info = look_up(address, FI_SOURCE);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_eq_open(fabric, &eq_attr, &pep_eq, NULL));
	OK(fi_passive_ep(fabric, listen_info, &pep, NULL));
	OK(fi_pep_bind(pep, &pep_eq->fid, 0));
	OK(fi_listen(pep));
}

static inline void close_all(void)
{
	OK(fi_close(&pep->fid));
	OK(fi_close(&pep_eq->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(listen_info);
}

static inline void run_cases(const char *address, const struct msg_case *cases, size_t count)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_all(address);
	for (const struct msg_case *c = cases; c < cases + count; c++) {
		struct end a, b;

		now = c->name;
		selective = c->selective;
		counted = c->counted;
		connect_with(&a, &b, c->access ? c->access : ACCESS);
		c->run(&a, &b);
		close_end(&a);
		close_end(&b);
		printf("%s: done\n", now);
	}
	close_all();
}

#endif
