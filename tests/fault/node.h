/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fault tests share: processes that end in time, and one endpoint in each of them. */
#ifndef FAULT_NODE_H
#define FAULT_NODE_H

#include <dirent.h>
#include <errno.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef LIMIT
#define LIMIT 55 /* seconds a process may live */
#endif

static const char *who = "main"; /* in messages */

static inline __attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s (%d): ", who, (int)getpid());
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

static inline void must(ssize_t ret, const char *what)
{
	if (ret < 0)
		fail("%s: %s", what, fi_strerror((int)-ret));
}

static inline uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- Processes: each ends with its parent, and with its alarm. ---- */

static inline pid_t start(const char *name, void (*run)(void *arg), void *arg)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent && getppid() != 0)
		_exit(EXIT_FAILURE);
	alarm(LIMIT);
	who = name;
	run(arg);
	exit(EXIT_SUCCESS);
}

static inline void finish(pid_t pid, const char *name)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("%s ended with status %#x", name, (unsigned int)status);
}

static inline void slay(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (!WIFSIGNALED(status))
		fail("process %d ended by itself with status %#x", (int)pid, (unsigned int)status);
}

/* Both ends of a wire between two processes: whole words, never half of one. */
static inline void wire(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		fail("socketpair: %s", strerror(errno));
}

static inline void tell(int end, const void *word, size_t len)
{
	if (send(end, word, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("the other side is gone");
}

static inline void hear(int end, void *word, size_t len)
{
	if (recv(end, word, len, 0) != (ssize_t)len)
		fail("the other side is gone");
}

/* ---- An endpoint and what belongs to it ---- */

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

struct name {
	size_t len;
	char bytes[128];
};

struct event {
	void *context;
	uint64_t flags, tag;
	size_t len;
	int err; /* positive */
};

static inline const char *provider(void)
{
	const char *hw = getenv("HW");

	return hw && *hw ? hw : "shm";
}

static inline struct fi_info *node_info(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int ret;

	hints->fabric_attr->prov_name = strdup(provider());
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV;
	ret = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA) {
		printf("no provider %s here\n", provider());
		exit(77);
	}
	must(ret, "fi_getinfo");
	return info;
}

static inline void try_info(void *arg)
{
	(void)arg;
	fi_freeinfo(node_info());
}

/* Ends the test where the provider is not there; the library is not touched in this process. */
static inline void need_provider(void)
{
	int status;

	if (waitpid(start("main", try_info, NULL), &status, 0) > 0 && WIFEXITED(status) &&
	    !WEXITSTATUS(status))
		return;
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

static inline void node_bind(struct node *n)
{
	must(fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(n->ep), "fi_enable");
}

/* With `name` the endpoint takes that address. */
static inline void node_open(struct node *n, const struct name *name)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	n->info = node_info();
	if (name) {
		free(n->info->src_addr);
		n->info->src_addr = malloc(name->len);
		n->info->src_addrlen = name->len;
		memcpy(n->info->src_addr, name->bytes, name->len);
	}
	must(fi_fabric(n->info->fabric_attr, &n->fabric, NULL), "fi_fabric");
	must(fi_domain(n->fabric, n->info, &n->domain, NULL), "fi_domain");
	must(fi_av_open(n->domain, &av, &n->av, NULL), "fi_av_open");
	must(fi_cq_open(n->domain, &cq, &n->cq, NULL), "fi_cq_open");
	must(fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
	node_bind(n);
}

static inline void node_close(struct node *n)
{
	must(fi_close(&n->ep->fid), "fi_close");
	must(fi_close(&n->cq->fid), "fi_close");
	must(fi_close(&n->av->fid), "fi_close");
	must(fi_close(&n->domain->fid), "fi_close");
	must(fi_close(&n->fabric->fid), "fi_close");
	fi_freeinfo(n->info);
}

static inline struct name node_name(struct node *n)
{
	struct name name = {.len = sizeof(name.bytes)};

	must(fi_getname(&n->ep->fid, name.bytes, &name.len), "fi_getname");
	return name;
}

static inline fi_addr_t node_insert(struct node *n, const struct name *name)
{
	fi_addr_t addr;

	if (fi_av_insert(n->av, name->bytes, 1, &addr, 0, NULL) != 1)
		fail("fi_av_insert refuses an address");
	return addr;
}

/* One completion, if there is any. */
static inline bool node_poll(struct node *n, struct event *e)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_cq_read(n->cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == 1) {
		*e = (struct event){entry.op_context, entry.flags, entry.tag, entry.len, 0};
		return true;
	}
	if (ret != -FI_EAVAIL)
		must(ret, "fi_cq_read");
	must(fi_cq_readerr(n->cq, &error, 0), "fi_cq_readerr");
	*e = (struct event){error.op_context, error.flags, error.tag, error.len, error.err};
	return true;
}

/* The next completion; none within `ms` is a failure. */
static inline struct event node_wait(struct node *n, unsigned int ms, const char *what)
{
	uint64_t end = now_ms() + ms;
	struct event e;

	while (!node_poll(n, &e)) {
		if (now_ms() > end)
			fail("no completion within %u ms: %s", ms, what);
		sched_yield();
	}
	return e;
}

/* ---- What a process holds ---- */

static inline int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		fail("%s: %s", path, strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline int count_fds(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return count_entries(path);
}

/* VmRSS in kB. */
static inline long memory_of(pid_t pid)
{
	char path[64], line[256];
	long kb = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && kb < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "VmRSS: %ld", &kb);
	if (file)
		fclose(file);
	if (kb < 0)
		fail("no VmRSS of process %d", (int)pid);
	return kb;
}

#endif
