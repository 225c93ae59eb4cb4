/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps through calls of the data path one instruction at a time, for hotpath.py:
 *
 *     hotpath safe|domain        threading level FI_THREAD_SAFE or FI_THREAD_DOMAIN
 *
 * A child process opens two endpoints, warms them up and wraps each call to be counted in two
 * breakpoints; its parent single-steps between them. Prints "call NAME", then a line for each
 * instruction executed outside this program: "own OFFSET KIND" for one of libfabric.so at that
 * address of the file, "other OFFSET KIND" for any other library. KIND is "locked", "call",
 * "syscall" or "-". Only the public interface is used, so what is counted is what applications run.
 */
#include <link.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIP      77
#define STEPS_MAX 100000
#define WARM_UP   100
#define TAG       42

#define BREAKPOINT 0xcc
#define BREAK()    __asm__ volatile("int3" ::: "memory")

/* Tells the parent a name, then runs and counts one expression. */
#define COUNT(name, expr)                                                                          \
	do {                                                                                       \
		ssize_t result;                                                                    \
		say(name);                                                                         \
		BREAK();                                                                           \
		result = (expr);                                                                   \
		BREAK();                                                                           \
		must(result, name);                                                                \
	} while (0)

struct side {
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	fi_addr_t peer;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct side a, b;
static char out[4096], in[4096];
static struct fi_context2 context[2];
static uint64_t word, operand = 1, result; /* b's memory; what a adds to it, and gets */
static struct fid_mr *mr;
static uint64_t addr, key; /* of the word */
static struct fi_cq_tagged_entry entry;

/* Where things are mapped; the same in both processes. */
static uintptr_t own_base, own_end, main_base, main_end;

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "hotpath: %s: %s\n", call, fi_strerror((int)-ret));
	exit(EXIT_FAILURE);
}

static void say(const char *name)
{
	printf("call %s\n", name);
	fflush(stdout);
}

static void find_fabric(bool safe)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = safe ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("shm");
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
}

static void open_side(struct side *s)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 1};

	must(fi_cq_open(domain, &cq_attr, &s->cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &s->av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &s->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(s->ep, &s->av->fid, 0), "fi_ep_bind");
	must(fi_enable(s->ep), "fi_enable");
}

static void insert(struct side *s, const struct side *other)
{
	char name[256];
	size_t len = sizeof(name);

	must(fi_getname(&other->ep->fid, name, &len), "fi_getname");
	if (fi_av_insert(s->av, name, 1, &s->peer, 0, NULL) != 1)
		must(-FI_EINVAL, "fi_av_insert");
}

/* Reads one completion; the other side makes progress as well. */
static void wait_for(struct side *s, uint64_t flag)
{
	struct side *other = s == &a ? &b : &a;
	ssize_t ret;

	do {
		fi_cq_read(other->cq, &entry, 0);
		ret = fi_cq_read(s->cq, &entry, 1);
	} while (ret == -FI_EAGAIN);
	must(ret, "fi_cq_read");
	if (!(entry.flags & flag))
		must(-FI_EOTHER, "the completion is another");
}

static void receive_tagged(void)
{
	must(fi_trecv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, TAG, 0, &context[1]), "fi_trecv");
}

static void receive(void)
{
	must(fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &context[1]), "fi_recv");
}

static void warm_up(void)
{
	for (int i = 0; i < WARM_UP; i++) {
		ssize_t ret;

		receive_tagged();
		do {
			ret = fi_tsend(a.ep, out, 8, NULL, a.peer, TAG, &context[0]);
			fi_cq_read(b.cq, &entry, 0);
		} while (ret == -FI_EAGAIN);
		must(ret, "fi_tsend");
		wait_for(&a, FI_SEND);
		wait_for(&b, FI_RECV);
	}
}

static void count_tagged(void)
{
	COUNT("trecv", fi_trecv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, TAG, 0, &context[1]));
	COUNT("tsend", fi_tsend(a.ep, out, 8, NULL, a.peer, TAG, &context[0]));
	COUNT("cq_read", fi_cq_read(a.cq, &entry, 1));
	COUNT("cq_read+receive", fi_cq_read(b.cq, &entry, 1));
	receive_tagged();
	COUNT("tinject", fi_tinject(a.ep, out, 8, a.peer, TAG));
	wait_for(&b, FI_RECV);
	receive_tagged();
	COUNT("tinjectdata", fi_tinjectdata(a.ep, out, 8, 1, a.peer, TAG));
	wait_for(&b, FI_RECV);
	receive_tagged();
	COUNT("tsenddata", fi_tsenddata(a.ep, out, 8, NULL, 1, a.peer, TAG, &context[0]));
	wait_for(&a, FI_SEND);
	wait_for(&b, FI_RECV);
	receive_tagged();
	COUNT("tsend-64", fi_tsend(a.ep, out, 64, NULL, a.peer, TAG, &context[0]));
	wait_for(&a, FI_SEND);
	wait_for(&b, FI_RECV);
}

static void count_msg(void)
{
	COUNT("recv", fi_recv(b.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, &context[1]));
	COUNT("send", fi_send(a.ep, out, 8, NULL, a.peer, &context[0]));
	wait_for(&a, FI_SEND);
	wait_for(&b, FI_RECV);
	receive();
	COUNT("inject", fi_inject(a.ep, out, 8, a.peer));
	wait_for(&b, FI_RECV);
}

static ssize_t empty_read(void)
{
	return fi_cq_read(a.cq, &entry, 1) == -FI_EAGAIN ? 0 : -FI_EOTHER;
}

static void expose(void)
{
	must(fi_mr_reg(domain, &word, sizeof(word), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr,
		       NULL),
	     "fi_mr_reg");
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		addr = (uintptr_t)&word;
	key = fi_mr_key(mr);
}

static ssize_t inject_write(void)
{
	return fi_inject_write(a.ep, &operand, sizeof(operand), a.peer, addr, key);
}

static ssize_t post_read(void)
{
	return fi_read(a.ep, &result, sizeof(result), NULL, a.peer, addr, key, &context[0]);
}

static ssize_t fetch_add(void)
{
	return fi_fetch_atomic(a.ep, &operand, 1, NULL, &result, NULL, a.peer, addr, key, FI_UINT64,
			       FI_SUM, &context[0]);
}

/* A read comes after everything before it. */
static void settle(uint64_t expected)
{
	must(post_read(), "fi_read");
	wait_for(&a, FI_READ);
	if (result != expected)
		must(-FI_EOTHER, "the word is another");
}

/* The target does its part only afterwards: posting is what is counted. */
static void count_onesided(void)
{
	expose();
	for (int i = 0; i < WARM_UP; i++) {
		must(inject_write(), "fi_inject_write");
		must(fetch_add(), "fi_fetch_atomic");
		wait_for(&a, FI_READ);
		settle(2);
	}
	COUNT("inject_write", inject_write());
	settle(1);
	COUNT("fetch_atomic", fetch_add());
	wait_for(&a, FI_READ);
	settle(2);
	COUNT("read", post_read());
	wait_for(&a, FI_READ);
}

static int child(bool safe)
{
	find_fabric(safe);
	open_side(&a);
	open_side(&b);
	insert(&a, &b);
	insert(&b, &a);
	warm_up();
	count_tagged();
	count_msg();
	count_onesided();
	COUNT("cq_read-empty", empty_read());
	return 0;
}

/* One instruction's first bytes, as far as they say what is counted. x86-64. */
static const char *kind_of(const unsigned char *code)
{
	bool locked = false;
	unsigned int at = 0, reg;

	while (code[at] && strchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", code[at]))
		locked |= code[at++] == 0xf0;
	if ((code[at] & 0xf0) == 0x40) /* REX */
		at++;
	reg = code[at + 1] >> 3 & 7;
	if (code[at] == 0xe8 || (code[at] == 0xff && (reg == 2 || reg == 3)))
		return "call";
	if (code[at] == 0x0f && (code[at + 1] == 0x05 || code[at + 1] == 0x34))
		return "syscall";
	/* An exchange with memory locks by itself. */
	if ((code[at] == 0x86 || code[at] == 0x87) && code[at + 1] >> 6 != 3)
		locked = true;
	return locked ? "locked" : "-";
}

static void read_code(pid_t pid, uintptr_t at, unsigned char *code)
{
	for (unsigned int i = 0; i < 16; i += 8) {
		long word = ptrace(PTRACE_PEEKTEXT, pid, at + i, NULL);

		memcpy(code + i, &word, 8);
	}
}

/* Where the child stands; false when it has ended. */
static bool where(pid_t pid, uintptr_t *rip)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		return false;
	*rip = regs.rip;
	return true;
}

/* Goes on until the child stops again; the signal it stopped by, or 0 when it has ended. */
static int go(enum __ptrace_request how, pid_t pid, int *status)
{
	if (ptrace(how, pid, NULL, 0) || waitpid(pid, status, 0) != pid)
		return 0;
	return WIFSTOPPED(*status) ? WSTOPSIG(*status) : 0;
}

static void print_step(uintptr_t rip, const unsigned char *code)
{
	if (rip >= own_base && rip < own_end)
		printf("own %#lx %s\n", rip - own_base, kind_of(code));
	else if (rip < main_base || rip >= main_end)
		printf("other %#lx %s\n", rip, kind_of(code));
}

/* From behind the first breakpoint up to the second. False when that is not reached. */
static bool step_through(pid_t pid, int *status)
{
	unsigned char code[16];
	uintptr_t rip, last = 0;

	for (int i = 0; i < STEPS_MAX && where(pid, &rip); i++) {
		read_code(pid, rip, code);
		if (rip >= main_base && rip < main_end && code[0] == BREAKPOINT)
			return go(PTRACE_SINGLESTEP, pid, status) == SIGTRAP;
		if (rip != last) /* a repeated string instruction is one */
			print_step(rip, code);
		last = rip;
		if (go(PTRACE_SINGLESTEP, pid, status) != SIGTRAP)
			return false;
	}
	return false;
}

static int trace(pid_t pid)
{
	int status, sig;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return EXIT_FAILURE;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_EXITKILL);
	while ((sig = go(PTRACE_CONT, pid, &status)) != 0) {
		if (sig != SIGTRAP || !step_through(pid, &status)) {
			fprintf(stderr, "hotpath: the child stopped by signal %d\n", sig);
			kill(pid, SIGKILL);
			return EXIT_FAILURE;
		}
		fflush(stdout);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

static int note_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	bool is_own = strstr(object->dlpi_name, "libfabric.so");
	uintptr_t end = 0;

	(void)size, (void)arg;
	for (unsigned int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &object->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && object->dlpi_addr + ph->p_vaddr + ph->p_memsz > end)
			end = object->dlpi_addr + ph->p_vaddr + ph->p_memsz;
	}
	if (is_own)
		own_base = object->dlpi_addr, own_end = end;
	else if (!object->dlpi_name[0])
		main_base = object->dlpi_addr, main_end = end;
	return 0;
}

int main(int argc, char **argv)
{
	bool safe = argc > 1 && !strcmp(argv[1], "safe");
	pid_t pid;

	dl_iterate_phdr(note_object, NULL);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(SKIP);
		raise(SIGSTOP);
		exit(child(safe));
	}
	return pid < 0 ? EXIT_FAILURE : trace(pid);
}
