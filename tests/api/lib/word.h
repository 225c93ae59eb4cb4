/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics on single words of rank 0's region. Needs atomic.h. */
#ifndef API_WORD_H
#define API_WORD_H

static uint64_t word_operand = 1, word_compare, word_result;

static const enum fi_op word_op[] = {FI_SUM, FI_SUM, FI_CSWAP_NE};

/* Adds one to the first word; a compare operation writes one. */
static inline struct amo word_amo(struct amo_side *to, enum amo_family family, enum amo_form form)
{
	struct amo m = {.family = family, .form = form, .type = FI_UINT64, .op = word_op[family]};

	m.buf->addr = &word_operand;
	m.compare->addr = &word_compare;
	m.result->addr = &word_result;
	amo_aim(&m, to, 0, 0, 1);
	m.context = &word_operand;
	return m;
}

static inline uint64_t *word_at(struct api *a, size_t i)
{
	return (uint64_t *)(void *)amo_memory(a, 0) + i;
}

#endif
