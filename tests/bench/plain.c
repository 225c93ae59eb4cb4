/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_SUM of 4096 doubles, elements per nanosecond:
 *
 *     plain library    by the library's plain kernel
 *     plain hand       by a loop vectorised by hand
 *
 * Prints a line "BYTES VALUE" with the bytes of each array. Linked with libfabric.a for its
 * internal names. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "atomic/atomic.h"
#include "clock.h"

#define COUNT  4096
#define ROUNDS 400

static _Alignas(4096) double target[COUNT], operand[COUNT];

#if defined(__x86_64__)

#include <immintrin.h>

#define ADD_2(at) _mm_store_pd(t + (at), _mm_add_pd(_mm_load_pd(t + (at)), _mm_load_pd(v + (at))))
#define ADD_4(at)                                                                                  \
	_mm256_store_pd(t + (at), _mm256_add_pd(_mm256_load_pd(t + (at)), _mm256_load_pd(v + (at))))

static void sum_sse2(void *to, const void *from, size_t count)
{
	const double *v = from;
	double *t = to;

	for (size_t i = 0; i < count; i += 8) {
		ADD_2(i);
		ADD_2(i + 2);
		ADD_2(i + 4);
		ADD_2(i + 6);
	}
}

__attribute__((target("avx2"))) static void sum_avx2(void *to, const void *from, size_t count)
{
	const double *v = from;
	double *t = to;

	for (size_t i = 0; i < count; i += 16) {
		ADD_4(i);
		ADD_4(i + 4);
		ADD_4(i + 8);
		ADD_4(i + 12);
	}
}

static plain_kernel *by_hand(void)
{
	return __builtin_cpu_supports("avx2") ? sum_avx2 : sum_sse2;
}

#else

typedef double vector __attribute__((vector_size(32)));

static void sum_vector(void *to, const void *from, size_t count)
{
	const vector *v = from;
	vector *t = to;

	for (size_t i = 0; i < count / 4; i += 4) {
		t[i] += v[i];
		t[i + 1] += v[i + 1];
		t[i + 2] += v[i + 2];
		t[i + 3] += v[i + 3];
	}
}

static plain_kernel *by_hand(void)
{
	return sum_vector;
}

#endif

/* Returns elements per nanosecond. */
static double rate(plain_kernel *sum)
{
	double start = microseconds();

	for (int i = 0; i < ROUNDS; i++)
		sum(target, operand, COUNT);
	return (double)ROUNDS * COUNT / 1000 / (microseconds() - start);
}

/* All sums are exact integers. */
static int verify(double runs)
{
	for (size_t i = 0; i < COUNT; i++)
		if (target[i] != runs * ROUNDS * (double)i) {
			fprintf(stderr, "plain: element %zu is %g\n", i, target[i]);
			return EXIT_FAILURE;
		}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	double values[REPEATS];
	plain_kernel *sum;

	if (argc != 2 || (strcmp(argv[1], "library") && strcmp(argv[1], "hand"))) {
		fputs("Usage: plain library|hand\n", stderr);
		return EXIT_FAILURE;
	}
	sum = argv[1][0] == 'l' ? plain_find(FI_SUM, FI_DOUBLE) : by_hand();
	if (!sum) {
		fputs("plain: there is no such kernel\n", stderr);
		return EXIT_FAILURE;
	}
	for (size_t i = 0; i < COUNT; i++)
		operand[i] = (double)i;
	rate(sum);
	for (int i = 0; i < REPEATS; i++)
		values[i] = rate(sum);
	printf("%zu %.4f\n", sizeof target, clock_median(values, REPEATS));
	return verify(REPEATS + 1);
}
