/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_RMA_PMEM: a mapped file as a region, and FI_COMMIT_COMPLETE. fi_rma(3), fi_mr(3), fi_cq(3). */
#include <fcntl.h>
#include <sys/syscall.h>

#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

#define LEN (256u << 10)

/* A file that rank 1 maps and registers, or ordinary memory. */
struct pmem {
	struct rma r;
	struct rma_target t;
	unsigned char *map;
	int fd;
};

/* Records the pages written back: this msync replaces the one that the library calls. */
#define PAGE 4096u

static unsigned char *watched;
static bool synced[LEN / PAGE];

__attribute__((visibility("default"))) int msync(void *at, size_t len, int flags)
{
	size_t from = (size_t)((unsigned char *)at - watched);

	for (size_t i = 0; watched && (flags & MS_SYNC) && i < LEN / PAGE; i++)
		if (i * PAGE >= from && (i + 1) * PAGE <= from + ((len + PAGE - 1) & ~(PAGE - 1UL)))
			__atomic_store_n(&synced[i], true, __ATOMIC_RELAXED);
	return (int)syscall(SYS_msync, at, len, flags);
}

static bool is_synced(size_t at, size_t len)
{
	for (size_t i = at / PAGE; i * PAGE < at + len; i++)
		if (!__atomic_load_n(&synced[i], __ATOMIC_RELAXED))
			return false;
	return true;
}

static int open_file(void)
{
	const char *folder = getenv("TMPDIR");
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/rma_pmem.XXXXXX", folder ? folder : "/var/tmp");
	fd = mkstemp(name);
	CHECK(fd >= 0);
	OK(unlink(name));
	OK(ftruncate(fd, LEN));
	return fd;
}

static void pmem_open(struct pmem *p, struct api *a, int mr_mode, bool persistent)
{
	struct rma_opts o = {.caps = FI_MSG | FI_RMA | FI_RMA_PMEM, .mr_mode = mr_mode};

	*p = (struct pmem){.fd = -1};
	rma_open(&p->r, a, &o);
	CHECK(p->r.o.info->caps & FI_RMA_PMEM);
	if (a->rank == 1) {
		p->fd = open_file();
		p->map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
		CHECK(p->map != MAP_FAILED);
		watched = p->map;
		OK(fi_mr_reg(p->r.o.domain, p->map, LEN, RMA_REMOTE, 0, 7,
			     persistent ? FI_RMA_PMEM : 0, &p->t.mr, NULL));
		p->t.key = rma_key(&p->r, p->t.mr, p->map, LEN);
	}
	p->t.key = rma_share(&p->r, 1, &p->t.key);
}

static void pmem_close(struct pmem *p)
{
	rma_target_close(&p->r, &p->t);
	if (p->map) {
		OK(munmap(p->map, LEN));
		close(p->fd);
	}
	rma_close(&p->r);
}

/* Returns a write of one piece to one or two ranges, sometimes with remote CQ data. */
static struct rma_op commit(const struct pmem *p, unsigned char *buf, size_t at, size_t len)
{
	static struct iovec iov;
	static struct fi_rma_iov to[2];

	iov = (struct iovec){buf, len};
	to[0] = (struct fi_rma_iov){p->t.key.base + at, len / 3, p->t.key.key};
	to[1] = (struct fi_rma_iov){p->t.key.base + at + len / 3, len - len / 3, p->t.key.key};
	return (struct rma_op){.form = RMA_WRITEMSG,
			       .iov = &iov,
			       .count = 1,
			       .to = to,
			       .to_count = 2,
			       .peer = p->r.addr[1],
			       .data = at,
			       .flags = FI_COMMIT_COMPLETE,
			       .context = buf};
}

static const size_t lens[] = {8, 64, 1000, 4096, 4097, 100000, LEN};

static void committed(struct api *a, int mr_mode)
{
	unsigned char *buf = malloc(LEN);
	struct pmem p;

	CHECK(buf != NULL);
	pmem_open(&p, a, mr_mode, true);
	for (unsigned int n = 0; n < 2 * API_COUNT(lens); n++) {
		size_t len = lens[n / 2], at = (LEN - len) / 2 + n % 2 * ((LEN - len) / 3);
		struct rma_op op = commit(&p, buf, at, len);

		op.flags |= n % 2 ? FI_REMOTE_CQ_DATA : 0;
		memset(synced, 0, sizeof(synced));
		api_meet(a);
		if (a->rank == 0) {
			data_fill(buf, len, n);
			RMA_RUN(&p.r, &op);
			api_meet(a);
			continue;
		}
		if (n % 2)
			RMA_NOTIFIED(&p.r, p.r.in, at, len);
		if (n % 2) /* remote CQ data comes after the data is durable */
			CHECK(is_synced(at, len));
		api_meet(a);
		CHECK(is_synced(at, len));
		CHECK_EQ(pread(p.fd, buf, len, (off_t)at), (ssize_t)len);
		data_check(buf, len, n);
	}
	pmem_close(&p);
	free(buf);
}

static void commits(struct api *a)
{
	committed(a, RMA_PROVIDED);
	committed(a, 0);
}

/* A commit behind plain writes, in the order of writes, makes only its own data durable. */
static void among_writes(struct api *a)
{
	unsigned char *buf = malloc(LEN), *got = malloc(LEN);
	struct pmem p;

	CHECK(buf && got);
	pmem_open(&p, a, RMA_PROVIDED, true);
	data_fill(buf, LEN, 3);
	for (size_t at = 0; a->rank == 0 && at < LEN; at += 8192) {
		struct rma_op op = commit(&p, buf + at, at, 8192);

		op.flags = at % 65536 == 57344 ? FI_COMMIT_COMPLETE : 0;
		rma_start(&p.r, &op);
		p.r.done[0]++;
	}
	for (size_t at = 0; a->rank == 0 && at < LEN; at += 8192)
		obj_done(p.r.o.cq, buf + at);
	rma_counted(&p.r);
	api_meet(a);
	if (a->rank == 1) {
		CHECK_EQ(pread(p.fd, got, LEN, 0), LEN);
		RMA_SAME(got, buf, LEN);
	}
	pmem_close(&p);
	free(buf);
	free(got);
}

/* FI_COMMIT_COMPLETE on memory not registered as persistent: an error, and nothing is written. */
static void refused(struct api *a)
{
	unsigned char *buf = malloc(LEN);
	struct pmem p;

	CHECK(buf != NULL);
	pmem_open(&p, a, RMA_PROVIDED, false);
	memset(buf, 0xff, LEN);
	for (unsigned int n = 0; a->rank == 0 && n < API_COUNT(lens); n++) {
		struct rma_op op = commit(&p, buf, 0, lens[n]);

		RMA_FAILS(&p.r, &op, FI_EINVAL);
	}
	api_meet(a);
	if (a->rank == 1)
		CHECK(data_all(p.map, LEN, 0));
	api_meet(a);
	if (a->rank == 0) { /* without the level the memory works as any other */
		struct rma_op op = commit(&p, buf, 0, LEN);

		op.flags = FI_DELIVERY_COMPLETE;
		RMA_RUN(&p.r, &op);
	}
	api_meet(a);
	if (a->rank == 1)
		CHECK(data_all(p.map, LEN, 0xff));
	pmem_close(&p);
	free(buf);
}

/* The level concerns writes only: as a default flag it does not affect reads. */
static void reads(struct api *a)
{
	uint64_t level = FI_TRANSMIT | FI_COMMIT_COMPLETE;
	unsigned char *buf = calloc(1, LEN);
	struct pmem p;

	CHECK(buf != NULL);
	pmem_open(&p, a, RMA_PROVIDED, false);
	if (a->rank == 1)
		data_fill(p.map, LEN, 5);
	OK(fi_control(&p.r.o.ep->fid, FI_SETOPSFLAG, &level));
	api_meet(a);
	for (unsigned int n = 0; a->rank == 0 && n < API_COUNT(lens); n++) {
		memset(buf, 0, LEN);
		RMA_PLAIN(&p.r, RMA_READ, buf, lens[n], &p.t.key, 0);
		data_check(buf, lens[n], 5);
	}
	pmem_close(&p);
	free(buf);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"commits", commits, 2, {0}},
		{"among_writes", among_writes, 2, {0}},
		{"refused", refused, 2, {0}},
		{"reads", reads, 2, {0}},
		{"commits_no_cma", commits, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"refused_no_cma", refused, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
