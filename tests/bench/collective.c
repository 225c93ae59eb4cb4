/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives between processes of one host, or of several, timed as an application sees them:
 *
 *     collective PROVIDER MEMBERS[@PID,...] barrier|allreduce|broadcast|alltoall SIZE...
 *
 * Each PID is a process whose network namespace is a host: the first one is that of the first
 * members, and all have equally many.
 *
 * Prints a line "SIZE MICROSECONDS" for each size, the input bytes of a member (alltoall: per other
 * member). allreduce adds doubles. Up to as many members as cores have one each and spin; with
 * more, members sleep while they wait. Status 77: the provider is not available, or lacks the call.
 * The same file runs on any libfabric.so.1 in LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "crowd.h"

#define NAME_ROOM   256
#define LIMIT       80 /* maximum lifetime of a process in seconds */
#define NOT_OFFERED 77 /* exit status */

/* State shared by the members; not used while measuring. */
struct meeting {
	char name[MEMBERS_MAX][NAME_ROOM];
	int arrived;
};

static struct meeting *meeting;
static char *provider;
static int host[MEMBERS_MAX]; /* process ids of the hosts */
static int hosts;             /* 0: all members are where the program was started */
static char **sizes;          /* ends with NULL */
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *ep;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_av_set *set;
static struct fid_mc *mc;
static fi_addr_t address[MEMBERS_MAX], group;

static void must(ssize_t ret, const char *name)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "bench: member %d: %s: %s\n", member, name, fi_strerror((int)-ret));
	exit(ret == -FI_ENODATA || ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP ? NOT_OFFERED
									      : EXIT_FAILURE);
}

static void meet(int times)
{
	__atomic_add_fetch(&meeting->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&meeting->arrived, __ATOMIC_SEQ_CST) < times * members)
		usleep(100);
}

static void find(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
}

static void open_all(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT,
				     .wait_obj = crowd_crowded() ? FI_WAIT_UNSPEC : FI_WAIT_NONE};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = MEMBERS_MAX};

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &eq_attr, &eq, NULL), "fi_eq_open");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
}

static void insert(void)
{
	size_t len = NAME_ROOM;

	must(fi_getname(&ep->fid, meeting->name[member], &len), "fi_getname");
	meet(1);
	for (int i = 0; i < members; i++)
		if (fi_av_insert(av, meeting->name[i], 1, &address[i], 0, NULL) != 1)
			crowd_fail("fi_av_insert refused an address");
}

static void join(void)
{
	struct fi_av_set_attr attr = {.count = (size_t)members,
				      .start_addr = address[0],
				      .end_addr = address[members - 1],
				      .stride = 1};
	struct fi_eq_entry entry;
	fi_addr_t all;
	uint32_t event = 0;
	ssize_t ret;

	must(fi_av_set(av, &attr, &set, NULL), "fi_av_set");
	must(fi_av_set_addr(set, &all), "fi_av_set_addr");
	must(fi_join_collective(ep, all, set, 0, &mc, NULL), "fi_join_collective");
	do {
		fi_cq_read(cq, NULL, 0);
		ret = fi_eq_read(eq, &event, &entry, sizeof entry, 0);
	} while (ret == -FI_EAGAIN);
	must(ret, "fi_eq_read");
	if (event != FI_JOIN_COMPLETE)
		crowd_fail("another event than FI_JOIN_COMPLETE");
	group = fi_mc_addr(mc);
}

static struct fi_context2 context; /* the reference never completes calls without one */

static ssize_t post(size_t size)
{
	size_t words = size / sizeof(double);

	if (what == BARRIER)
		return fi_barrier(ep, group, &context);
	if (what == ALLREDUCE)
		return fi_allreduce(ep, from, words, NULL, to, NULL, group, FI_DOUBLE, FI_SUM, 0,
				    &context);
	if (what == BROADCAST)
		return fi_broadcast(ep, from, words, NULL, group, address[0], FI_DOUBLE, 0,
				    &context);
	return fi_alltoall(ep, from, words, NULL, to, NULL, group, FI_DOUBLE, 0, &context);
}

static void call(size_t size)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_entry entry;
	ssize_t ret;

	while ((ret = post(size)) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0);
	must(ret, "posting");
	do
		ret = crowd_crowded() ? fi_cq_sread(cq, &entry, 1, NULL, -1)
				      : fi_cq_read(cq, &entry, 1);
	while (ret == -FI_EAGAIN);
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		ret = -error.err;
	must(ret, "completing");
}

static void close_all(void)
{
	fi_close(&mc->fid);
	fi_close(&set->fid);
	fi_close(&ep->fid);
	fi_close(&av->fid);
	fi_close(&cq->fid);
	fi_close(&domain->fid);
	fi_close(&eq->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
}

/* Enters the network of this member's host. */
static void enter(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/ns/net", host[member * hosts / members]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		crowd_fail("no such host");
	close(fd);
}

static void quiesce(void)
{
	cpu_set_t cpus;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT);
	CPU_ZERO(&cpus);
	CPU_SET((size_t)member, &cpus);
	if (!crowd_crowded() && sched_setaffinity(0, sizeof cpus, &cpus))
		crowd_fail("sched_setaffinity");
}

static void run(void)
{
	quiesce();
	if (hosts)
		enter();
	crowd_buffers(sizes);
	find();
	open_all();
	insert();
	join();
	crowd_measure(sizes, call);
	meet(2);
	close_all();
}

/* Returns the status of the first member that fails, and ends the others. */
static int wait_all(const pid_t *pids)
{
	int status, failed = 0;

	while (wait(&status) > 0) {
		if (!status || failed)
			continue;
		failed = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
		for (int i = 0; i < members; i++)
			kill(pids[i], SIGKILL);
	}
	return failed;
}

/* Reads MEMBERS[@PID,...]. Returns whether it makes sense. */
static bool read_members(const char *text)
{
	char *end;

	members = (int)strtol(text, &end, 10);
	for (; *end && hosts < MEMBERS_MAX; hosts++)
		host[hosts] = (int)strtol(end + 1, &end, 10);
	spread = hosts > 1;
	return !*end && members >= 1 && members <= MEMBERS_MAX && (!hosts || members % hosts == 0);
}

int main(int argc, char **argv)
{
	pid_t pids[MEMBERS_MAX];

	if (argc < 5 || !read_members(argv[2])) {
		fputs("Usage: collective PROVIDER MEMBERS[@PID,...] WHAT SIZE...\n", stderr);
		return EXIT_FAILURE;
	}
	provider = argv[1];
	crowd_what(argv[3]);
	sizes = argv + 4;
	meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (meeting == MAP_FAILED)
		crowd_fail("no memory");
	for (member = 0; member < members; member++) {
		pids[member] = fork();
		if (pids[member] == 0) {
			run();
			exit(EXIT_SUCCESS);
		}
	}
	return wait_all(pids);
}
