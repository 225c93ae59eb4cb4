/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps through calls one instruction at a time. A child process wraps each call to be counted in
 * two breakpoints (COUNT); its parent single-steps between them. Prints "call NAME", then a line
 * for each instruction executed outside this program: "own OFFSET KIND" for one of libfabric.so at
 * that address of the file, "other OFFSET KIND" for any other library. KIND is "locked", "call",
 * "syscall" or "-".
 */
#ifndef TESTS_STEPS_H
#define TESTS_STEPS_H

#include <link.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS_SKIP 77
#define STEPS_MAX  100000

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

/* Address ranges of the library and of this program; the same in both processes. */
static uintptr_t own_base, own_end, main_base, main_end;

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "steps: %s: %s\n", call, fi_strerror((int)-ret));
	exit(EXIT_FAILURE);
}

static void say(const char *name)
{
	printf("call %s\n", name);
	fflush(stdout);
}

/* Classifies an x86-64 instruction by its first bytes. */
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
	/* An exchange with memory is locked without a prefix. */
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

/* Reads the child's instruction pointer. Returns false if the child has ended. */
static bool where(pid_t pid, uintptr_t *rip)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
		return false;
	*rip = regs.rip;
	return true;
}

/* Resumes the child until it stops. Returns the signal that stopped it, or 0 if it has ended. */
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

/* Steps from the first breakpoint to the second. Returns false if the child does not get there. */
static bool step_through(pid_t pid, int *status)
{
	unsigned char code[16];
	uintptr_t rip, last = 0;

	for (int i = 0; i < STEPS_MAX && where(pid, &rip); i++) {
		read_code(pid, rip, code);
		if (rip >= main_base && rip < main_end && code[0] == BREAKPOINT)
			return go(PTRACE_SINGLESTEP, pid, status) == SIGTRAP;
		if (rip != last) /* a repeated string instruction counts once */
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
			fprintf(stderr, "steps: the child stopped by signal %d\n", sig);
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

/* Runs `run` in a child and counts its steps. Returns main's exit status. */
static inline int steps_of(int (*run)(void *arg), void *arg)
{
	pid_t pid;

	dl_iterate_phdr(note_object, NULL);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(STEPS_SKIP);
		raise(SIGSTOP);
		exit(run(arg));
	}
	return pid < 0 ? EXIT_FAILURE : trace(pid);
}

#endif
