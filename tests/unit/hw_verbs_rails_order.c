/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes over two devices (fakes here), which break, too: the peer's memory is at any time as one
 * device would leave it.
 */
#include "fake_regions.h"
#include "suite.h"

#define COUNT 120 /* operations of a run: each writes its number */

static unsigned char *buffer[COUNT + 1], *target;
static size_t length[COUNT + 1], place[COUNT + 1], moved[COUNT + 1];
static unsigned int executed[VERBS_RAILS], reported, seed;

static unsigned int pick(unsigned int below)
{
	return (unsigned int)rand_r(&seed) / 7 % below;
}

static void post_random(void)
{
	static const size_t most[] = {64, 64, 20000, (size_t)300 << 10};
	unsigned int n = operations + 1;
	const struct iovec ours = {NULL, 0};
	struct iovec local = ours;
	struct fi_rma_iov theirs = {.key = KEY};
	struct link_copy op = {.id = n,
			       .write = true,
			       .local = &local,
			       .local_count = 1,
			       .remote = &theirs,
			       .remote_count = 1};

	if (operations == COUNT || ends[0].requests - executed[0] > REQUESTS / 2)
		return;
	moved[n] = 0;
	length[n] = 1 + pick((unsigned int)most[pick(4)]);
	place[n] = pick((unsigned int)(LONG / 2 - length[n]));
	buffer[n] = malloc(length[n]);
	memset(buffer[n], (int)n, length[n]);
	local = (struct iovec){buffer[n], length[n]};
	theirs.addr = place[n];
	theirs.len = length[n];
	if (link_made->memory->copy(link_made, &op) != LINK_UNDER_WAY)
		free(buffer[n]);
	else
		operations = n;
}

/* The peer's device writes: never over what a reported operation has written later. */
static void execute(unsigned int rail)
{
	const struct end *e = &ends[rail];
	const struct request *q = &e->request[executed[rail] % REQUESTS];
	size_t wrong = 0;

	if (executed[rail] == e->requests)
		return;
	executed[rail]++;
	for (size_t i = q->at; i < q->at + q->len; i++) {
		wrong += target[i] > q->first && target[i] <= reported;
		target[i] = q->first;
	}
	ck_assert_uint_eq(wrong, 0);
}

/* Operations are reported in order, and what they wrote is there then. Those given up go by packets. */
static void check_reports(void)
{
	unsigned int count = 0;
	size_t wrong = 0;

	LIST_EACH (node, &r->operations)
		count++;
	while (reported < operations - count) {
		unsigned int n = ++reported;

		if (moved[n] < length[n])
			memset(target + place[n], (int)n, length[n]);
		for (size_t i = 0; i < length[n]; i++)
			wrong += target[place[n] + i] < n;
		free(buffer[n]);
	}
	ck_assert_uint_eq(wrong, 0);
}

static void step(void)
{
	unsigned int rail = pick(VERBS_RAILS);
	struct end *e = &ends[rail];
	struct ibv_wc wc = {.wr_id = e->request[e->done % REQUESTS].number,
			    .qp_num = e->direct.qp_num};

	switch (pick(4)) {
	case 0:
		post_random();
		break;
	case 1:
		execute(rail);
		break;
	default:
		if (!r->rail[rail].link || e->done == executed[rail])
			break;
		moved[e->request[e->done % REQUESTS].first] += e->request[e->done % REQUESTS].len;
		e->done++;
		verbs_rdma_done(e->l, &wc, false);
	}
	check_reports();
	credit(r->active, r->rail[r->active].count);
}

/* The rail breaks; requests under way may still be executed until the peer's end is destroyed. */
static void break_one(void)
{
	unsigned int rail = pick(VERBS_RAILS);

	breaks(rail);
	for (unsigned int i = pick(20); i; i--)
		step();
	closes(rail);
	executed[rail] = ends[rail].requests;
	for (unsigned int i = pick(20); i; i--)
		step();
	comes_again(rail);
}

/* Writes of all lengths to the same places, on rails that break: the peer finds what one device leaves. */
START_TEST(order_is_kept)
{
	unsigned char *expected = calloc(LONG, 1);

	seed = (unsigned int)_i + 1;
	reported = 0;
	memset(executed, 0, sizeof(executed));
	target = calloc(LONG, 1);
	while (reported < COUNT) {
		step();
		if (asked.what && !pick(4))
			tells(22);
		if (!pick(200))
			break_one();
	}
	for (unsigned int n = 1; n <= COUNT; n++)
		memset(expected + place[n], (int)n, length[n]);
	ck_assert_int_eq(memcmp(expected, target, LONG), 0);
	ck_assert_uint_gt(ends[1].requests, 0);
	free(expected);
	free(target);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_rails_order");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup_keyed, teardown);
	tcase_add_loop_test(c, order_is_kept, 0, 12);
	suite_add_tcase(s, c);
	return suite_run(s);
}
