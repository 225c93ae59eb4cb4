/* SPDX-License-Identifier: BSD-2-Clause */
/* Three processes on three hosts. The script that starts them disconnects the second host and
 * connects it again. Operations of the first process with the second must fail in bounded time,
 * while it still communicates with the third. After reconnection all processes communicate again,
 * and no failed operation takes effect any more.
 *
 *     hosts_drop [-i] FOLDER RANK SECONDS    -i: the second makes no calls while disconnected
 *
 * SECONDS: limit for an operation to fail. Creates the files talked.RANK and lost.0; waits for
 * cut.0 and whole.0. */
#include "hosts_node.h"

#define LONG (1 << 20)

static unsigned char region[2 * LONG], out[LONG], in[LONG];
static uint64_t round; /* of messages: part of the tag */

static void wait_done(const struct op *op, const char *what)
{
	double start = seconds();

	while (!op->done) {
		progress(100);
		if (seconds() - start > STUCK || touched("failed", 0))
			die("%s rank %d, %zu bytes: stuck", what, op->peer, op->size);
	}
	if (op->err)
		die("%s rank %d: %s", what, op->peer, fi_strerror(op->err));
}

static void tell(int peer, size_t size)
{
	struct op op = {.kind = SEND, .peer = peer, .buf = out, .size = size};

	op.tag = (uint64_t)node.rank << 32 | round;
	memset(out, node.rank * 50 + (int)round % 50, size);
	post(&op);
	wait_done(&op, "telling");
}

/* Receives a message. Returns its length. */
static size_t hear(int peer)
{
	struct op op = {.kind = RECV, .peer = peer, .buf = in, .size = LONG};

	op.tag = (uint64_t)peer << 32 | round;
	memset(in, 0xff, LONG);
	post(&op);
	wait_done(&op, "hearing");
	for (size_t i = 0; i < op.len; i++)
		if (in[i] != peer * 50 + (int)round % 50)
			die("byte %zu of %zu from rank %d is %02x", i, op.len, peer, in[i]);
	node.checked++;
	return op.len;
}

static void ask(int peer, size_t size)
{
	round++;
	tell(peer, size);
	if (hear(peer) != size)
		die("another answer from rank %d", peer);
}

static size_t answer(int peer)
{
	size_t len;

	round++;
	len = hear(peer);
	tell(peer, len);
	return len;
}

/* Each pair exchanges messages, or all with rank 0 only; the lower rank begins. A connection that
 * ended unnoticed may lose a message, so the other two exchange none before reconnection. */
static void talk_all(bool others)
{
	static const size_t sizes[] = {0, 8, 5000, LONG};

	for (int peer = 0; peer < node.ranks; peer++) {
		round = 100 * (uint64_t)(node.rank + peer); /* equal on both sides */
		if (peer == node.rank || (!others && peer > 0 && node.rank > 0))
			continue;
		for (int i = 0; i < 4; i++)
			if (peer > node.rank)
				ask(peer, sizes[i]);
			else if (answer(peer) != sizes[i])
				die("another question from rank %d", peer);
	}
}

static void wait_file(const char *what)
{
	double start = seconds();

	while (!touched(what, 0)) {
		progress(20);
		if (touched("failed", 0))
			exit(1);
		if (seconds() - start > STUCK)
			die("%s does not come", what);
	}
}

/* Operations that need the peer's answer must fail, within the limit. */
static void lose(int peer, double limit)
{
	static const enum op_kind kinds[] = {SEND_DELIVERED, READ, WRITE, FETCH_ADD, SEND};
	enum { COUNT = sizeof(kinds) / sizeof(kinds[0]) };
	struct op op[COUNT];
	double start = seconds();

	node.may_fail = true;
	memset(out, 0xab, LONG);
	for (int i = 0; i < COUNT; i++) {
		size_t size = kinds[i] == SEND ? LONG : 8;

		op[i] = (struct op){.kind = kinds[i], .peer = peer, .buf = out, .size = size};
		op[i].tag = 77;
		post(&op[i]);
	}
	while (node.open > 0) {
		if (node.rank == 0)
			ask(2, 5000); /* waits only for its own operation */
		else
			progress(100);
		if (seconds() - start > limit)
			die("after %.1f s %ld operations have not failed", limit, node.open);
	}
	for (int i = 0; i < COUNT; i++)
		if (!op[i].err)
			die("operation %d with a peer that is cut off is done", (int)kinds[i]);
	printf("rank %d: cut off: %s after %.1f s\n", node.rank, fi_strerror(op[0].err),
	       seconds() - start);
	node.may_fail = false;
}

/* Failed operations must not take effect after reconnection, even later. */
static void check_untouched(void)
{
	double start = seconds();

	while (seconds() - start < 4)
		progress(100);
	for (int i = 0; i < 8; i++)
		if (region[i])
			die("a write that had failed was done afterwards");
}

/* Runs while the second host is disconnected. */
static void cut_off(bool idle, double limit)
{
	round = 2000;
	if (node.rank == 0) {
		lose(1, limit);
		ask(2, 0);
		touch("lost", 0);
	} else if (node.rank == 1 && !idle) {
		lose(0, limit);
	} else if (node.rank == 2) {
		while (answer(0))
			;
	}
	wait_file("whole");
	if (idle)
		check_untouched();
}

int main(int argc, char **argv)
{
	bool idle = argc > 1 && strcmp(argv[1], "-i") == 0;
	struct fi_info *hints = fi_allocinfo();

	argv += idle;
	if (!hints || argc != 4 + idle) {
		fputs("Usage: hosts_drop [-i] FOLDER RANK SECONDS\n", stderr);
		return EXIT_FAILURE;
	}
	node = (struct node){.dir = argv[1], .rank = atoi(argv[2]), .ranks = 3, .local = 1};
	node.sleeps = node.rank < 2;
	hints->caps = FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	open_endpoint(hints, region, sizeof(region));
	meet_peers(region);
	talk_all(false);
	touch("talked", node.rank);
	wait_file("cut");
	cut_off(idle, atof(argv[3]));
	talk_all(true);
	meet("closing");
	close_node();
	fi_freeinfo(hints);
	printf("rank %d of 3: %ld messages checked\n", node.rank, node.checked);
	return EXIT_SUCCESS;
}
