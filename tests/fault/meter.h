/* SPDX-License-Identifier: BSD-2-Clause */
/* What a piece of work costs this process: time of the processor, instructions, memory. */
#ifndef FAULT_METER_H
#define FAULT_METER_H

#include <malloc.h>

#include "process.h"

/* Processor time of the process in ns, the kernel's share included. */
static inline double meter_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int meter_order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline double meter_median(double *of, size_t count)
{
	qsort(of, count, sizeof(*of), meter_order);
	return of[count / 2];
}

/* Bytes in use, as malloc counts them. */
static inline size_t meter_heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* ---- Instructions: the processor stops after each, and a signal handler counts ---- */

static volatile uint64_t meter_steps;

static inline void meter_step(int sig)
{
	(void)sig;
	meter_steps++;
}

#ifdef __x86_64__
#define METER_TRAP "0x100" /* the trap flag */

static inline __attribute__((always_inline)) void meter_trace(bool on)
{
	/* Below the red zone, which the compiler may be using. */
	if (on)
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq $" METER_TRAP
				 ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
					 : "memory", "cc");
	else
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~" METER_TRAP
				 ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::
					 : "memory", "cc");
}
#else
/* Nothing is counted. */
static inline void meter_trace(bool on)
{
	(void)on;
}
#endif

/* Returns the instructions that the process itself executes in `run`, and a few; 0: not counted here. */
static inline uint64_t meter_instructions(void (*run)(void))
{
	struct sigaction count = {.sa_handler = meter_step}, before;

	meter_steps = 0;
	sigaction(SIGTRAP, &count, &before);
	meter_trace(true);
	run();
	meter_trace(false);
	sigaction(SIGTRAP, &before, NULL);
	return meter_steps;
}

#endif
