/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls the entry points of each symbol version as a program linked with it does. Each struct
 * passed in has the size of that release and ends at an unmapped page, so reading or writing one
 * byte too many crashes this program. Argument: the library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("old_nodes: %s, line %d: %s\n", now->name, __LINE__, #what);        \
			failed = 1;                                                                \
		}                                                                                  \
	} while (0)

/* Sizes compiled into a program linked with the version. */
struct node {
	const char *name;
	uint32_t api;
	size_t info, tx_attr, ep_attr, domain_attr;
};

static const struct node nodes[] = {
	{"FABRIC_1.0", FI_VERSION(1, 0), 112, 72, 80, 120},
	{"FABRIC_1.1", FI_VERSION(1, 5), 112, 72, 96, 184},
	{"FABRIC_1.2", FI_VERSION(1, 7), 120, 72, 96, 184},
	{"FABRIC_1.3", FI_VERSION(1, 9), 120, 80, 96, 192},
	{"FABRIC_1.7", FI_VERSION(1, 20), 120, 80, 96, 200},
	{"FABRIC_1.8", FI_VERSION(2, 0), 120, 80, 96, 208},
	{"FABRIC_1.9", FI_VERSION(2, 5), 120, 80, 96, 224},
	{"FABRIC_1.10", FI_VERSION(2, 7), 120, 80, 104, 232},
};

static const struct node *now;
static int failed;

static struct fi_info *(*dupinfo)(const struct fi_info *);
static void (*freeinfo)(struct fi_info *);
static int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *,
		      struct fi_info **);

/* Returns `size` zeros in front of an unmapped page. Never freed. */
static void *at_edge(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *area =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED || mprotect(area + page, page, PROT_NONE)) {
		perror("old_nodes: mmap");
		exit(1);
	}
	return area + page - size;
}

static void *copy_at_edge(const void *from, size_t size)
{
	return memcpy(at_edge(size), from, size);
}

static void on_fault(int sig)
{
	static const char text[] = "old_nodes: touched memory behind a struct of ";

	(void)sig;
	if (write(1, text, sizeof(text) - 1) < 0 || write(1, now->name, strlen(now->name)) < 0 ||
	    write(1, "\n", 1) < 0)
		_exit(2);
	_exit(1);
}

/* ---- A NIC that counts its copies ---- */

static int nics;
static struct fi_ops nic_ops;

static int nic_close(struct fid *fid)
{
	nics--;
	free(fid);
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	struct fid_nic *copy = malloc(sizeof(*copy));

	if (command != FI_DUP || !copy) {
		free(copy);
		return -FI_ENOSYS;
	}
	*copy = *(struct fid_nic *)fid;
	*(struct fid_nic **)arg = copy;
	nics++;
	return 0;
}

static struct fi_ops nic_ops = {
	.size = sizeof(nic_ops), .close = nic_close, .control = nic_control};

static struct fid_nic nic = {.fid = {.fclass = FI_CLASS_NIC, .ops = &nic_ops}};

/* ---- Structs of the old releases ---- */

static bool has(size_t size, size_t offset)
{
	return size > offset;
}

#define INFO(member)   has(now->info, offsetof(struct fi_info, member))
#define TX(member)     has(now->tx_attr, offsetof(struct fi_tx_attr, member))
#define EP(member)     has(now->ep_attr, offsetof(struct fi_ep_attr, member))
#define DOMAIN(member) has(now->domain_attr, offsetof(struct fi_domain_attr, member))

static struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0x1234};
static uint8_t key[5] = "key";
static struct fid handle;

static struct fi_tx_attr *old_tx(void)
{
	struct fi_tx_attr attr = {.caps = FI_MSG, .rma_iov_limit = 3, .tclass = FI_TC_BULK_DATA};

	return copy_at_edge(&attr, now->tx_attr);
}

static struct fi_ep_attr *old_ep(void)
{
	struct fi_ep_attr attr = {
		.type = FI_EP_RDM, .rx_ctx_cnt = 7, .auth_key_size = sizeof(key), .xpu_ctx = key};

	attr.auth_key = copy_at_edge(key, sizeof(key));
	return copy_at_edge(&attr, now->ep_attr);
}

static struct fi_domain_attr *old_domain(void)
{
	struct fi_domain_attr attr = {
		.name = (char *)"domain",
		.max_ep_srx_ctx = 8,
		.cntr_cnt = 9,
		.mr_cnt = 10,
		.tclass = FI_TC_LOW_LATENCY,
		.max_ep_auth_key = 11,
		.max_group_id = 12,
		.max_cntr_value = 13,
		.max_err_cntr_value = 14,
		.max_xpu_ctx_cnt = 15,
		.auth_key_size = sizeof(key),
	};

	attr.auth_key = copy_at_edge(key, sizeof(key));
	return copy_at_edge(&attr, now->domain_attr);
}

/* Returns an info with all members of the release, and `next`, which a copy does not follow. */
static struct fi_info *old_info(void)
{
	struct fi_rx_attr rx = {.caps = FI_RECV, .iov_limit = 6};
	struct fi_fabric_attr fabric = {.name = (char *)"fabric", .prov_name = (char *)"prov"};
	struct fi_info info = {
		.next = (struct fi_info *)8,
		.caps = FI_MSG,
		.addr_format = FI_SOCKADDR_IN,
		.src_addrlen = sizeof(address),
		.handle = &handle,
		.nic = &nic,
	};

	info.src_addr = copy_at_edge(&address, sizeof(address));
	info.tx_attr = old_tx();
	info.rx_attr = copy_at_edge(&rx, sizeof(rx));
	info.ep_attr = old_ep();
	info.domain_attr = old_domain();
	info.fabric_attr = copy_at_edge(&fabric, sizeof(fabric));
	return copy_at_edge(&info, now->info);
}

/* ---- fi_dupinfo ---- */

static void check_tx(const struct fi_tx_attr *tx)
{
	CHECK(tx->caps == FI_MSG && tx->rma_iov_limit == 3);
	CHECK(tx->tclass == (TX(tclass) ? FI_TC_BULK_DATA : 0));
}

static void check_ep(const struct fi_ep_attr *ep, const struct fi_ep_attr *old)
{
	CHECK(ep->type == FI_EP_RDM && ep->rx_ctx_cnt == 7);
	if (EP(auth_key)) {
		CHECK(ep->auth_key_size == sizeof(key) && ep->auth_key != old->auth_key);
		CHECK(ep->auth_key && !memcmp(ep->auth_key, key, sizeof(key)));
	} else {
		CHECK(!ep->auth_key && !ep->auth_key_size);
	}
	CHECK(ep->xpu_ctx == (EP(xpu_ctx) ? key : NULL));
}

static void check_domain(const struct fi_domain_attr *dom, const struct fi_domain_attr *old)
{
	CHECK(dom->name != old->name && !strcmp(dom->name, "domain"));
	CHECK(dom->max_ep_srx_ctx == 8);
	CHECK(dom->cntr_cnt == (DOMAIN(cntr_cnt) ? 9 : 0));
	CHECK(dom->mr_cnt == (DOMAIN(mr_cnt) ? 10 : 0));
	CHECK(dom->tclass == (DOMAIN(tclass) ? FI_TC_LOW_LATENCY : 0));
	CHECK(dom->max_ep_auth_key == (DOMAIN(max_ep_auth_key) ? 11 : 0));
	CHECK(dom->max_group_id == (DOMAIN(max_group_id) ? 12 : 0));
	CHECK(dom->max_cntr_value == (DOMAIN(max_cntr_value) ? 13 : 0));
	CHECK(dom->max_err_cntr_value == (DOMAIN(max_err_cntr_value) ? 14 : 0));
	CHECK(dom->max_xpu_ctx_cnt == (DOMAIN(max_xpu_ctx_cnt) ? 15 : 0));
	if (DOMAIN(auth_key))
		CHECK(dom->auth_key && dom->auth_key != old->auth_key &&
		      !memcmp(dom->auth_key, key, sizeof(key)));
	else
		CHECK(!dom->auth_key);
}

static void check_copy(const struct fi_info *copy, const struct fi_info *old)
{
	CHECK(!copy->next && copy->caps == FI_MSG && copy->handle == &handle);
	CHECK(copy->src_addr != old->src_addr && copy->src_addrlen == sizeof(address));
	CHECK(!memcmp(copy->src_addr, &address, sizeof(address)) && !copy->dest_addr);
	check_tx(copy->tx_attr);
	CHECK(copy->rx_attr != old->rx_attr && copy->rx_attr->iov_limit == 6);
	check_ep(copy->ep_attr, old->ep_attr);
	check_domain(copy->domain_attr, old->domain_attr);
	CHECK(copy->fabric_attr->name != old->fabric_attr->name);
	CHECK(!strcmp(copy->fabric_attr->name, "fabric"));
	CHECK(!strcmp(copy->fabric_attr->prov_name, "prov"));
	CHECK(INFO(nic) ? copy->nic && copy->nic != &nic : !copy->nic);
}

static void check_dupinfo(void)
{
	struct fi_info *old = old_info(), *copy = dupinfo(old), *blank = dupinfo(NULL);
	struct fi_info *bare = dupinfo(at_edge(now->info));

	CHECK(copy && blank && bare);
	check_copy(copy, old);
	CHECK(nics == (INFO(nic) ? 1 : 0));
	CHECK(blank->tx_attr && blank->rx_attr && blank->ep_attr && blank->domain_attr);
	CHECK(blank->fabric_attr && !blank->nic && !blank->domain_attr->max_err_cntr_value);
	CHECK(!bare->tx_attr && !bare->rx_attr && !bare->ep_attr && !bare->domain_attr);
	freeinfo(copy);
	freeinfo(blank);
	freeinfo(bare);
	freeinfo(NULL);
	CHECK(nics == 0);
}

/* ---- fi_getinfo and fi_fabric ---- */

static void *symbol(void *lib, const char *name)
{
	void *found = dlvsym(lib, name, now->name);

	if (!found)
		printf("old_nodes: there is no %s@%s\n", name, now->name);
	failed |= !found;
	return found;
}

static struct fi_info *old_hints(void)
{
	struct fi_info info = {.caps = FI_MSG, .mode = FI_CONTEXT};

	info.tx_attr = at_edge(now->tx_attr);
	info.rx_attr = at_edge(sizeof(struct fi_rx_attr));
	info.ep_attr = at_edge(now->ep_attr);
	info.ep_attr->type = FI_EP_RDM;
	info.domain_attr = at_edge(now->domain_attr);
	info.fabric_attr = at_edge(sizeof(struct fi_fabric_attr));
	return copy_at_edge(&info, now->info);
}

/* In 1.0 the four bytes behind prov_version were padding with arbitrary content. */
static void check_fabric(void *lib, const struct fi_info *info)
{
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	struct fi_fabric_attr *attr = copy_at_edge(info->fabric_attr, sizeof(*attr));
	struct fid_fabric *opened = NULL;

	if (now->api != FI_VERSION(1, 0) && now->api != FI_VERSION(1, 5))
		return;
	fabric = (int (*)(struct fi_fabric_attr *, struct fid_fabric **, void *))symbol(
		lib, "fi_fabric");
	if (!fabric)
		return;
	CHECK(fabric(NULL, &opened, NULL) == -FI_EINVAL && !opened);
	attr->api_version = FI_VERSION(1, now->api == FI_VERSION(1, 0) ? 77 : 5);
	CHECK(fabric(attr, &opened, &failed) == 0 && opened);
	if (!opened)
		return;
	CHECK(opened->api_version == now->api && opened->fid.context == &failed);
	CHECK(fi_close(&opened->fid) == 0);
}

/* What the library calls its version; programs of every release may ask for that. */
static uint32_t version_of(void *lib)
{
	uint32_t (*version)(void) = (uint32_t(*)(void))dlsym(lib, "fi_version");

	CHECK(version);
	return version ? version() : 0;
}

static void check_getinfo(void *lib)
{
	uint32_t newest = strcmp(now->name, "FABRIC_1.10") ? FI_VERSION(2, 6) : FI_VERSION(2, 7);
	struct fi_info *info = NULL;

	CHECK(getinfo(newest + 1, NULL, NULL, 0, NULL, &info) == -FI_ENOSYS && !info);
	CHECK(getinfo(newest, NULL, NULL, 0, NULL, NULL) == -FI_EINVAL);
	CHECK(getinfo(version_of(lib), NULL, NULL, 0, NULL, &info) == 0 && info);
	freeinfo(info);
	info = NULL;
	CHECK(getinfo(newest, NULL, NULL, 0, NULL, &info) == 0 && info);
	freeinfo(info);
	info = NULL;
	CHECK(getinfo(now->api, NULL, NULL, 0, NULL, &info) == 0 && info);
	freeinfo(info);
	info = NULL;
	CHECK(getinfo(now->api, NULL, NULL, 0, old_hints(), &info) == 0 && info);
	if (!info)
		return;
	CHECK(info->domain_attr->name && info->fabric_attr->name && info->fabric_attr->prov_name);
	CHECK(info->fabric_attr->api_version == now->api);
	check_fabric(lib, info);
	freeinfo(info);
}

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (!lib) {
		printf("old_nodes: %s\n", argc > 1 ? dlerror() : "which library?");
		return 1;
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	signal(SIGSEGV, on_fault);
	for (now = nodes; now < nodes + sizeof(nodes) / sizeof(nodes[0]); now++) {
		dupinfo = (struct fi_info * (*)(const struct fi_info *)) symbol(lib, "fi_dupinfo");
		freeinfo = (void (*)(struct fi_info *))symbol(lib, "fi_freeinfo");
		getinfo = (int (*)(uint32_t, const char *, const char *, uint64_t,
				   const struct fi_info *, struct fi_info **))symbol(lib,
										     "fi_getinfo");
		if (!dupinfo || !freeinfo || !getinfo)
			continue;
		check_dupinfo();
		check_getinfo(lib);
	}
	return failed;
}
