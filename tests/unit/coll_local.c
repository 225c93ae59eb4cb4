/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves the local steps of plans: copies and reductions in memory. */
#include "coll/op.h"
#include "suite.h"

#include <string.h>

enum { COUNT = 3000 }; /* more elements than are combined at a time */

static double in[COUNT + 9], out[COUNT + 9], tmp[COUNT + 9];

static struct local doubles(enum fi_op op, bool commutes)
{
	return (struct local){{(char *)in, (char *)out, (char *)tmp},
			      sizeof(double),
			      plain_find(op, FI_DOUBLE),
			      commutes};
}

static void fill(void)
{
	for (int i = 0; i < COUNT + 9; i++) {
		in[i] = i;
		out[i] = 1e6 + 3 * i;
		tmp[i] = 5e6 + 7 * i;
	}
}

/* Reduces with the step; FI_DIFF shows which operand is left. */
static void reduce(enum fi_op op, bool commutes, struct plan_local step)
{
	struct local l = doubles(op, commutes);
	struct plan_round r = {.locals = 1};

	fill();
	step.what = PLAN_REDUCE;
	step.count = COUNT;
	step.blocks = 1;
	r.local[0] = step;
	local_run(&l, &r);
}

START_TEST(apart)
{
	reduce(FI_DIFF, false,
	       (struct plan_local){
		       .dst = {PLAN_OUT, 2}, .left = {PLAN_TMP, 5}, .right = {PLAN_IN, 1}});
	for (int i = 0; i < COUNT; i++)
		ck_assert(out[i + 2] == 5e6 + 7 * (i + 5) - (i + 1));
	ck_assert(out[1] == 1e6 + 3 && out[COUNT + 2] == 1e6 + 3 * (COUNT + 2));
	ck_assert(tmp[5] == 5e6 + 35 && in[1] == 1);
}
END_TEST

START_TEST(onto_the_left)
{
	reduce(FI_DIFF, false,
	       (struct plan_local){
		       .dst = {PLAN_OUT, 2}, .left = {PLAN_OUT, 2}, .right = {PLAN_IN, 1}});
	for (int i = 0; i < COUNT; i++)
		ck_assert(out[i + 2] == 1e6 + 3 * (i + 2) - (i + 1));
	ck_assert(out[1] == 1e6 + 3 && out[COUNT + 2] == 1e6 + 3 * (COUNT + 2));
}
END_TEST

START_TEST(onto_the_right)
{
	reduce(FI_DIFF, false,
	       (struct plan_local){
		       .dst = {PLAN_OUT, 2}, .left = {PLAN_IN, 1}, .right = {PLAN_OUT, 2}});
	for (int i = 0; i < COUNT; i++)
		ck_assert(out[i + 2] == i + 1 - (1e6 + 3 * (i + 2)));
	ck_assert(out[1] == 1e6 + 3 && out[COUNT + 2] == 1e6 + 3 * (COUNT + 2));
}
END_TEST

/* A commuting operator may exchange its operands. */
START_TEST(onto_the_right_commuting)
{
	reduce(FI_SUM, true,
	       (struct plan_local){
		       .dst = {PLAN_OUT, 2}, .left = {PLAN_IN, 1}, .right = {PLAN_OUT, 2}});
	for (int i = 0; i < COUNT; i++)
		ck_assert(out[i + 2] == i + 1 + 1e6 + 3 * (i + 2));
}
END_TEST

START_TEST(blocks)
{
	struct local l = doubles(FI_SUM, false);
	struct plan_round r = {.locals = 2};

	fill();
	r.local[0] = (struct plan_local){.what = PLAN_COPY,
					 .dst = {PLAN_OUT, 20},
					 .left = {PLAN_IN, 0},
					 .count = 2,
					 .blocks = 4,
					 .dst_step = -5,
					 .left_step = 3};
	r.local[1] = (struct plan_local){.what = PLAN_COPY, /* overlaps itself */
					 .dst = {PLAN_OUT, 21},
					 .left = {PLAN_OUT, 20},
					 .count = 2,
					 .blocks = 1};
	local_run(&l, &r);
	ck_assert(out[20] == 0 && out[21] == 0 && out[22] == 1);
	ck_assert(out[15] == 3 && out[16] == 4 && out[10] == 6 && out[11] == 7);
	ck_assert(out[5] == 9 && out[6] == 10 && out[7] == 1e6 + 21 && out[4] == 1e6 + 12);
}
END_TEST

/* An operator for elements of 7 bytes, of which 4096 is no multiple. */
static void join(void *target, const void *operand, size_t count)
{
	for (size_t i = 0; i < 7 * count; i++)
		((char *)target)[i] = (char)(2 * ((char *)target)[i] + ((const char *)operand)[i]);
}

START_TEST(odd_width)
{
	static char a[7 * COUNT], b[7 * COUNT], c[7 * COUNT + 1];
	struct local l = {{a, c, b}, 7, join, false};
	struct plan_round r = {.locals = 1};

	memset(a, 3, sizeof(a));
	memset(b, 5, sizeof(b));
	r.local[0] = (struct plan_local){.what = PLAN_REDUCE,
					 .dst = {PLAN_OUT, 0},
					 .left = {PLAN_IN, 0},
					 .right = {PLAN_TMP, 0},
					 .count = COUNT,
					 .blocks = 1};
	local_run(&l, &r);
	for (int i = 0; i < 7 * COUNT; i++)
		ck_assert_int_eq(c[i], 11);
	ck_assert_int_eq(c[7 * COUNT], 0);
}
END_TEST

/* May a message to OUT 100 to 199 come while a round is under way? */
START_TEST(apart_from_a_round)
{
	static const struct {
		struct plan_message message;
		struct plan_local step;
		bool apart;
	} rounds[] = {
		{.apart = true},
		/* Messages: behind, before, of another space; the first and the last element. */
		{.message = {.place = {PLAN_OUT, 200}, .count = 9}, .apart = true},
		{.message = {.place = {PLAN_OUT, 90}, .count = 10}, .apart = true},
		{.message = {.place = {PLAN_TMP, 100}, .count = 100}, .apart = true},
		{.message = {.place = {PLAN_OUT, 90}, .count = 11}},
		{.message = {.send = true, .place = {PLAN_OUT, 199}, .count = 1}},
		/* Steps: all of their places count, those of a copy less its right operand. */
		{.step = {PLAN_REDUCE, {PLAN_TMP, 0}, {PLAN_TMP, 0}, {PLAN_IN, 100}, 200, 1},
		 .apart = true},
		{.step = {PLAN_REDUCE, {PLAN_OUT, 150}, {PLAN_TMP, 0}, {PLAN_IN, 0}, 1, 1}},
		{.step = {PLAN_REDUCE, {PLAN_TMP, 0}, {PLAN_OUT, 150}, {PLAN_IN, 0}, 1, 1}},
		{.step = {PLAN_REDUCE, {PLAN_TMP, 0}, {PLAN_TMP, 0}, {PLAN_OUT, 150}, 1, 1}},
		{.step = {PLAN_COPY, {PLAN_TMP, 0}, {PLAN_IN, 0}, {PLAN_OUT, 150}, 1, 1},
		 .apart = true},
		{.step = {PLAN_COPY, {PLAN_TMP, 0}, {PLAN_IN, 0}, {PLAN_TMP, 0}, 1, 2}},
	};
	struct local l = doubles(FI_SUM, true);
	struct plan_message m = {.place = {PLAN_OUT, 100}, .count = 100};
	struct plan_round r = {.messages = rounds[_i].message.count != 0,
			       .locals = rounds[_i].step.count != 0};

	r.message[0] = rounds[_i].message;
	r.local[0] = rounds[_i].step;
	ck_assert_int_eq(local_apart(&l, &r, &m), rounds[_i].apart);
	/* In place: IN is OUT. */
	l.space[PLAN_IN] = l.space[PLAN_OUT];
	r.messages = 1;
	r.message[0] = (struct plan_message){.send = true, .place = {PLAN_IN, 150}, .count = 1};
	ck_assert(!local_apart(&l, &r, &m));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_local");
	TCase *tcase = tcase_create("local");

	tcase_add_test(tcase, apart);
	tcase_add_test(tcase, onto_the_left);
	tcase_add_test(tcase, onto_the_right);
	tcase_add_test(tcase, onto_the_right_commuting);
	tcase_add_test(tcase, blocks);
	tcase_add_test(tcase, odd_width);
	tcase_add_loop_test(tcase, apart_from_a_round, 0, 12);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
