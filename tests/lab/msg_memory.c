/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registering memory that devices may refuse, for connected endpoints of the provider "verbs". The
 * library must return the same error as the device gives to a program that uses libibverbs:
 *
 *	msg_memory 10.77.0.1 rxe0
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <linux/udmabuf.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE   ((size_t)4096)
#define LEN    (4 * PAGE)
#define ACCESS (FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MR     (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

static struct ibv_pd *pd;

static void fail(const char *what, int said, int expected)
{
	fprintf(stderr, "%s: %s, and not: %s\n", what, fi_strerror(said), fi_strerror(expected));
	exit(EXIT_FAILURE);
}

static void must(int ret, const char *call)
{
	if (ret)
		fail(call, -ret, 0);
}

/* Returns 0 or a positive error. */
static int close_mr(struct ibv_mr *mr)
{
	return mr ? ibv_dereg_mr(mr) : errno;
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (struct ibv_device **at = list; at && *at && !ctx; at++)
		if (!strcmp(ibv_get_device_name(*at), name))
			ctx = ibv_open_device(*at);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd)
		fail("the device without us", errno, 0);
}

struct ours {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

static struct ours open_ours(const char *address, const char *provider, uint32_t version)
{
	struct fi_info *hints = fi_allocinfo();
	bool bare = !strcmp(provider, "verbs");
	struct ours o;

	hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = bare ? FI_EP_MSG : FI_EP_RDM;
	hints->mode = FI_RX_CQ_DATA;
	hints->domain_attr->mr_mode = MR;
	must(fi_getinfo(version, address, NULL, FI_SOURCE, hints, &o.info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(o.info->fabric_attr, &o.fabric, NULL), "fi_fabric");
	must(fi_domain(o.fabric, o.info, &o.domain, NULL), "fi_domain");
	return o;
}

static void close_ours(struct ours *o)
{
	must(fi_close(&o->domain->fid), "fi_close");
	must(fi_close(&o->fabric->fid), "fi_close");
	fi_freeinfo(o->info);
}

/* Returns 0 or a positive error. */
static int quiesce(int ret, struct fid_mr *mr)
{
	if (ret)
		return -ret;
	if (fi_mr_key(mr) == FI_KEY_NOTAVAIL)
		fail("a region without a key", 0, 0);
	return -fi_close(&mr->fid);
}

static void hole(const struct ours *o)
{
	char *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fid_mr *mr = NULL;
	int expected, said;

	munmap(mem + PAGE, PAGE);
	expected = close_mr(ibv_reg_mr(pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE));
	said = quiesce(fi_mr_reg(o->domain, mem, LEN, FI_RECV, 0, 0, 0, &mr, NULL), mr);
	if (!expected || said != expected)
		fail("memory with a hole", said, expected);
	printf("memory with a hole: %s\n", fi_strerror(said));
}

static int register_dmabuf(const struct ours *o, int fd)
{
	struct fi_mr_dmabuf dmabuf = {.fd = fd, .offset = PAGE, .len = PAGE};
	struct fi_mr_attr attr = {.dmabuf = &dmabuf, .iov_count = 1, .access = ACCESS};
	struct fid_mr *mr = NULL;

	return quiesce(fi_mr_regattr(o->domain, &attr, FI_MR_DMABUF, &mr), mr);
}

/* Makes a dmabuf if the kernel can, else returns an ordinary file, which is none. */
static int make_dmabuf(void)
{
	int fd = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING),
	    maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	struct udmabuf_create create = {.memfd = (uint32_t)fd, .size = LEN};

	if (ftruncate(fd, LEN) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		fail("a file in memory", errno, 0);
	return maker < 0 ? fd : ioctl(maker, UDMABUF_CREATE, &create);
}

static void dmabuf(const struct ours *o)
{
	int fd = make_dmabuf(), expected, said;

	if (fd < 0)
		fail("UDMABUF_CREATE", errno, 0);
	expected = close_mr(ibv_reg_dmabuf_mr(pd, PAGE, PAGE, PAGE, fd,
					      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_WRITE));
	said = register_dmabuf(o, fd);
	if (said != expected)
		fail("a dma-buf", said, expected);
	printf("a dma-buf: %s\n", fi_strerror(said));
}

/* Registration without a device, and for an API version without the flag. */
static void refusal(const char *address, const char *provider, uint32_t version)
{
	struct ours o = open_ours(address, provider, version);
	int said = register_dmabuf(&o, 0);

	if (said != FI_EBADFLAGS)
		fail("a dma-buf that nobody takes", said, FI_EBADFLAGS);
	close_ours(&o);
}

int main(int argc, char **argv)
{
	struct ours o;

	if (argc != 3)
		return 2;
	open_device(argv[2]);
	o = open_ours(argv[1], "verbs", FI_VERSION(1, 20));
	hole(&o);
	dmabuf(&o);
	close_ours(&o);
	refusal(argv[1], "verbs", FI_VERSION(1, 17));
	refusal(argv[1], "weft", FI_VERSION(1, 20));
	puts("done");
	return 0;
}
