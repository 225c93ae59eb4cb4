/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves every kernel right: edge values at every alignment, compared with the model bit by bit. */
#include <sys/mman.h>

#include "atomic_model.h"
#include "suite.h"

#define MOST  (VALUES * VALUES) /* elements of a case */
#define GUARD 64                /* bytes around an array */
#define BYTE  0xa5
#define ROOM  (MOST * LARGEST + 2 * GUARD + 2 * LARGEST)

/* The inputs and the expected results. */
static unsigned char targets[MOST * LARGEST], operands[MOST * LARGEST], compares[MOST * LARGEST];
static unsigned char expected[MOST * LARGEST];
static bool any_nan[MOST];

/* The memory that kernels work on, with guards. */
static unsigned char target[ROOM] __attribute__((aligned(GUARD)));
static unsigned char operand[ROOM], compare[ROOM], result[ROOM];

/*
 * Pairs each value with each: target and operand, or target and compare value; the third is random.
 */
static size_t fill(const struct type *t, bool compares_too)
{
	unsigned char values[VALUES * LARGEST];
	size_t n = (size_t)model_values(t, values), count = 0, size = t->size;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++, count++) {
			size_t third = arbitrary() % n;

			memcpy(&targets[count * size], &values[i * size], size);
			memcpy(&operands[count * size], &values[(compares_too ? third : j) * size],
			       size);
			memcpy(&compares[count * size], &values[j * size], size);
		}
	}
	return count;
}

static void work_out(const struct type *t, enum fi_op op, bool compares_too, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = i * t->size;

		any_nan[i] = model(t, op, &targets[at], &operands[at],
				   compares_too ? &compares[at] : NULL, &expected[at]);
	}
}

/*
 * Copies an array between guards, `shift` bytes from an address aligned to 64. Returns its place.
 */
static void *place(unsigned char *room, const void *from, size_t bytes, size_t shift)
{
	size_t begin = GUARD + shift;

	memset(room, BYTE, begin);
	memcpy(room + begin, from, bytes);
	memset(room + begin + bytes, BYTE, GUARD);
	return room + begin;
}

static bool guarded(const unsigned char *room, size_t bytes, size_t shift)
{
	size_t begin = GUARD + shift;

	for (size_t i = 0; i < begin; i++)
		if (room[i] != BYTE)
			return false;
	for (size_t i = begin + bytes; i < begin + bytes + GUARD; i++)
		if (room[i] != BYTE)
			return false;
	return true;
}

/* Uses no assertion of check, which costs a system call, for each element. */
static void check_elements(const struct type *t, enum fi_op op, const unsigned char *got,
			   size_t count, size_t shift)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = i * t->size;

		if (!alike(t, &got[at], &expected[at], any_nan[i]))
			ck_abort_msg(
				"%s operator %d shift %zu element %zu: target %llx operand %llx "
				"compare %llx gave %llx, not %llx",
				t->name, op, shift, i, (unsigned long long)load(t, &targets[at], 0),
				(unsigned long long)load(t, &operands[at], 0),
				(unsigned long long)load(t, &compares[at], 0),
				(unsigned long long)load(t, &got[at], 0),
				(unsigned long long)load(t, &expected[at], 0));
	}
}

static void check_cell(const struct type *t, enum atomic_form form, enum fi_op op, size_t count,
		       size_t shift)
{
	size_t bytes = count * t->size;
	struct atomic_args a = {
		.target = place(target, targets, bytes, shift),
		.operand = op == FI_ATOMIC_READ ? NULL : place(operand, operands, bytes, shift + 1),
		.compare =
			form == ATOMIC_COMPARE ? place(compare, compares, bytes, shift + 3) : NULL,
		.result = form == ATOMIC_BASE ? NULL : place(result, expected, bytes, shift + 5),
		.count = count,
	};
	atomic_kernel *kernel = atomic_find(form, op, (enum fi_datatype)(t - types));

	ck_assert_ptr_nonnull(kernel);
	kernel(&a);
	check_elements(t, op, a.target, count, shift);
	ck_assert(guarded(target, bytes, shift));
	if (a.operand)
		ck_assert_mem_eq(a.operand, operands, bytes);
	if (a.compare)
		ck_assert_mem_eq(a.compare, compares, bytes);
	if (a.result) {
		ck_assert_mem_eq(a.result, targets, bytes);
		ck_assert(guarded(result, bytes, shift + 5));
	}
}

START_TEST(every_cell_at_every_alignment)
{
	const struct type *t = &types[_i];
	size_t count;

	if (!model_holds(t))
		return;
	for (int form = 0; form < ATOMIC_FORMS; form++) {
		count = fill(t, form == ATOMIC_COMPARE);
		for (int op = 0; op < OPS; op++) {
			if (!model_has(t, form, op))
				continue;
			work_out(t, op, form == ATOMIC_COMPARE, count);
			for (size_t shift = 0; shift <= t->size; shift++)
				check_cell(t, form, op, count, shift);
			for (size_t few = 0; few < 4; few++)
				check_cell(t, form, op, few, few);
		}
	}
}
END_TEST

START_TEST(every_plain_cell)
{
	const struct type *t = &types[_i];
	size_t count = fill(t, false), bytes;

	if (!model_holds(t))
		return;
	for (int op = 0; op < OPS; op++) {
		if (!model_has(t, ATOMIC_BASE, op))
			continue;
		work_out(t, op, false, count);
		for (size_t n = 0; n <= count; n = n < 200 ? n + 1 : n == count ? n + 1 : count) {
			size_t shift = n % 2 * t->size;
			unsigned char *got;

			bytes = n * t->size;
			got = place(target, targets, bytes, shift);
			plain_find(op, _i)(got, place(operand, operands, bytes, 0), n);
			check_elements(t, op, got, n, shift);
			ck_assert(guarded(target, bytes, shift));
			ck_assert_mem_eq(operand + GUARD, operands, bytes);
		}
	}
}
END_TEST

/* The result may be written over the operand or the compare value. */
START_TEST(result_in_place)
{
	const struct type *t = &types[_i];
	size_t count = fill(t, true), bytes = count * t->size;
	struct atomic_args a = {.count = count};

	if (!model_holds(t))
		return;
	work_out(t, FI_CSWAP, true, count);
	for (int over_compare = 0; over_compare < 2; over_compare++) {
		a.target = place(target, targets, bytes, 0);
		a.operand = place(operand, operands, bytes, 0);
		a.compare = place(compare, compares, bytes, 0);
		a.result = over_compare ? compare + GUARD : operand + GUARD;
		atomic_find(ATOMIC_COMPARE, FI_CSWAP, _i)(&a);
		check_elements(t, FI_CSWAP, a.target, count, 0);
		ck_assert_mem_eq(a.result, targets, bytes);
	}
}
END_TEST

/* Reads and failed compares work on read-only memory. */
START_TEST(read_only_memory)
{
	const struct type *t = &types[_i];
	unsigned char one[LARGEST] = {1}, old[LARGEST], zero[LARGEST] = {0};
	unsigned char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct atomic_args a = {.operand = one, .compare = one, .result = old, .count = 1};

	ck_assert_ptr_ne(page, MAP_FAILED);
	if (!model_holds(t))
		return;
	for (size_t shift = 0; shift <= t->size; shift++) {
		a.target = page + shift;
		memset(old, BYTE, sizeof(old));
		atomic_find(ATOMIC_FETCH, FI_ATOMIC_READ, _i)(&a);
		ck_assert_mem_eq(old, zero, t->size);
		memset(old, BYTE, sizeof(old));
		atomic_find(ATOMIC_COMPARE, FI_CSWAP, _i)(&a);
		ck_assert_mem_eq(old, zero, t->size);
	}
	munmap(page, 4096);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("atomic_values");
	TCase *all = tcase_create("all");

	tcase_set_timeout(all, 10);
	tcase_add_loop_test(all, every_cell_at_every_alignment, 0, TYPES);
	tcase_add_loop_test(all, every_plain_cell, 0, TYPES);
	tcase_add_loop_test(all, result_in_place, 0, TYPES);
	tcase_add_loop_test(all, read_only_memory, 0, TYPES);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
