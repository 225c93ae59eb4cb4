/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a piece of work costs this process: instructions, memory. Neither depends on what else the machine does, as time
 * would.
 */
#ifndef FAULT_METER_H
#define FAULT_METER_H

#include <malloc.h>
#include <rdma/fi_eq.h>

#include "process.h"

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
static inline uint64_t meter_instructions(void (*run)(void *), void *arg)
{
	struct sigaction count = {.sa_handler = meter_step}, before;

	meter_steps = 0;
	sigaction(SIGTRAP, &count, &before);
	meter_trace(true);
	run(arg);
	meter_trace(false);
	sigaction(SIGTRAP, &before, NULL);
	return meter_steps;
}

/* ---- Reads of an empty queue ---- */

#define METER_READS 64 /* in a row: one of them polls the sockets */
#define METER_TIMES 5

static inline void meter_read_some(void *cq)
{
	for (int i = 0; i < METER_READS; i++)
		fi_cq_read((struct fid_cq *)cq, NULL, 0);
}

/*
 * Returns the instructions of a read of `cq`, which is empty; polls of sockets included. Counting takes so long that rare
 * checks of all peers come often, on a busy machine nearly each time: the least count has fewest of them.
 */
static inline double meter_empty_read(struct fid_cq *cq)
{
	double least = 0;

	for (int i = 0; i < METER_TIMES; i++) {
		double read = (double)meter_instructions(meter_read_some, cq) / METER_READS;

		if (!i || read < least)
			least = read;
	}
	return least;
}

#endif
