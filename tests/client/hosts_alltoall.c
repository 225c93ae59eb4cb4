/* SPDX-License-Identifier: BSD-2-Clause */
/* Many processes on several hosts, all to all in random order: tagged messages of many sizes,
 * writes and reads, atomics, a barrier; all bytes are checked. The library chooses the provider
 * (FI_PROVIDER) and the address. Each process prints a line at its end: its number, provider,
 * address, the bytes sent to its own host and to others, the number of checks.
 *
 *     hosts_alltoall [-a] [-6] FOLDER RANK RANKS LOCAL    -a: no atomics; -6: IPv6 addresses
 *
 * Each host has LOCAL processes, the first host the first ones. */
#include "hosts_node.h"

static const size_t sizes[] = {
	0,     1,      7,      8,      63,     64,     65,      192,   300,
	1000,  1024,   2048,   4095,   4096,   4097,   9000,    16384, 65535,
	65536, 100000, 131072, 262143, 262144, 262145, 1 << 20,
};

#define SIZES  (sizeof(sizes) / sizeof(sizes[0]))
#define ROUNDS 3
#define ADDS   20 /* additions to the word of each peer */
#define SWAPS  5

/* The region of a process: one part per rank, then words for atomics. */
#define PART ((size_t)3 << 20)
#define GAP  8 /* bytes that must stay unchanged */
#define TAIL 192

enum word { SUM = 0, BITS = 64, SWAPPED = 128 }; /* offsets in the tail */

static unsigned char *region;
static struct op in[NODE_RANKS * SIZES], out[NODE_RANKS * SIZES];

static unsigned int next_random(void)
{
	static uint64_t state;

	if (!state)
		state = (uint64_t)node.rank * 7919 + 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned int)(state >> 33);
}

static void shuffle(struct op *op, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = next_random() % i;
		struct op moved = op[i - 1];

		op[i - 1] = op[j];
		op[j] = moved;
	}
}

/* The content of a message or part depends on its writer, its target and its index. */
static uint64_t key_of(int round, int from, int to, size_t index)
{
	return (uint64_t)round << 48 | (uint64_t)from << 32 | (uint64_t)to << 16 | index;
}

static unsigned char pattern(uint64_t key, size_t at)
{
	return (unsigned char)(at * 31 + at / 256 + (key >> 48) * 101 + (key >> 32 & 0xffff) * 7 +
			       (key >> 16 & 0xffff) * 59 + (key & 0xffff) * 13 + 1);
}

static void fill(unsigned char *buf, size_t size, uint64_t key)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = pattern(key, i);
}

static void check(const char *what, const unsigned char *buf, size_t size, uint64_t key)
{
	for (size_t i = 0; i < size; i++)
		if (buf[i] != pattern(key, i))
			die("%s, round, from, to, index %016llx: byte %zu of %zu is %02x, not %02x",
			    what, (unsigned long long)key, i, size, buf[i], pattern(key, i));
	node.checked += (long)size + 1;
}

static struct op *new_op(struct op *op, enum op_kind kind, int peer, size_t index)
{
	*op = (struct op){.kind = kind, .peer = peer, .size = sizes[index]};
	op->buf = malloc(op->size ? op->size : 1);
	if (!op->buf)
		die("no memory");
	return op;
}

static void free_ops(struct op *op)
{
	for (size_t i = 0; i < (size_t)node.ranks * SIZES; i++) {
		free(op[i].buf);
		op[i].buf = NULL;
	}
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Returns the form of a send; both sides compute the same. */
static enum op_kind kind_of(uint64_t key, size_t size)
{
	unsigned int choice = (unsigned int)((key ^ key >> 16 ^ key >> 32 ^ key >> 48) % 3);

	if (choice == 0 && size <= node.info->tx_attr->inject_size)
		return INJECT;
	return choice == 1 ? SEND_DATA : SEND;
}

static void prepare_messages(int round)
{
	size_t count = 0;

	for (int peer = 0; peer < node.ranks; peer++)
		for (size_t i = 0; i < SIZES; i++, count++) {
			uint64_t key = key_of(round, node.rank, peer, i);
			struct op *op = new_op(&out[count], kind_of(key, sizes[i]), peer, i);

			op->tag = key;
			fill(op->buf, op->size, key);
			new_op(&in[count], RECV, peer, i)->tag = key_of(round, peer, node.rank, i);
		}
	shuffle(out, count);
	shuffle(in, count);
}

static void check_received(const struct op *op)
{
	bool data = kind_of(op->tag, op->size) == SEND_DATA;

	if (op->len != op->size)
		die("message %016llx: %zu bytes, not %zu", (unsigned long long)op->tag, op->len,
		    op->size);
	if (!!(op->flags & FI_REMOTE_CQ_DATA) != data || (data && op->data != ~op->tag))
		die("message %016llx: flags %llx, data %llx", (unsigned long long)op->tag,
		    (unsigned long long)op->flags, (unsigned long long)op->data);
	check("message", op->buf, op->size, op->tag);
}

/* Posts half of the receives first, the others between the sends and whenever a send does not fit,
 * so that some messages are unexpected. */
static void messages(int round)
{
	size_t count = (size_t)node.ranks * SIZES, waited = 0;

	prepare_messages(round);
	while (waited < count / 2)
		post(&in[waited++]);
	for (size_t i = 0; i < count; i++) {
		while (waited < count && !post_now(&out[i]))
			post(&in[waited++]);
		if (waited == count)
			post(&out[i]);
		else if (i % 2)
			post(&in[waited++]);
	}
	wait_until(0, "messages");
	for (size_t i = 0; i < count; i++)
		check_received(&in[i]);
	free_ops(in);
	free_ops(out);
}

/* A dissemination barrier. */
static void barrier(int pass)
{
	for (int step = 1; step < node.ranks; step *= 2) {
		uint64_t tag = key_of(0xffff, pass, 0, (size_t)step);
		struct op op[2] = {{.kind = RECV, .tag = tag}, {.kind = SEND, .tag = tag}};

		op[0].peer = (node.rank + node.ranks - step) % node.ranks;
		op[1].peer = (node.rank + step) % node.ranks;
		post(&op[0]);
		post(&op[1]);
		wait_until(0, "barrier");
	}
}

/* ---- Writes and reads ------------------------------------------------------------------------ */

static size_t place_of(int rank, size_t index)
{
	size_t at = (size_t)rank * PART;

	for (size_t i = 0; i < index; i++)
		at += sizes[i] + GAP;
	return at;
}

static void prepare_writes(void)
{
	bool ordered = node.info->tx_attr->msg_order & FI_ORDER_RAW; /* reads see injected writes */
	size_t count = 0;

	for (int peer = 0; peer < node.ranks; peer++)
		for (size_t i = 0; i < SIZES; i++, count++) {
			uint64_t key = key_of(0, node.rank, peer, i);
			bool inject = ordered && kind_of(key, sizes[i]) == INJECT;
			struct op *op = new_op(&out[count], inject ? INJECT_WRITE : WRITE, peer, i);

			op->addr = place_of(node.rank, i);
			fill(op->buf, op->size, key);
			new_op(&in[count], READ, peer, i)->addr = op->addr;
			in[count].tag = key;
		}
	shuffle(out, count);
	shuffle(in, count);
}

/* Writes to this process's part of each region, and reads it back. */
static void write_and_read(void)
{
	size_t count = (size_t)node.ranks * SIZES;

	prepare_writes();
	for (size_t i = 0; i < count; i++)
		post(&out[i]);
	wait_until(0, "writes");
	for (size_t i = 0; i < count; i++)
		post(&in[i]);
	wait_until(0, "reads");
	for (size_t i = 0; i < count; i++)
		check("read", in[i].buf, in[i].size, in[i].tag);
	free_ops(in);
	free_ops(out);
}

static void check_region(void)
{
	static const unsigned char untouched[GAP];

	for (int peer = 0; peer < node.ranks; peer++)
		for (size_t i = 0; i < SIZES; i++) {
			const unsigned char *at = region + place_of(peer, i);

			check("written", at, sizes[i], key_of(0, peer, node.rank, i));
			if (memcmp(at + sizes[i], untouched, GAP) != 0)
				die("rank %d wrote behind its %zu bytes", peer, sizes[i]);
		}
}

/* ---- Atomics --------------------------------------------------------------------------------- */

static struct op *word_op(struct op *op, enum op_kind kind, int peer, enum word word)
{
	*op = (struct op){.kind = kind, .peer = peer, .size = 8};
	op->addr = (size_t)node.ranks * PART + word;
	return op;
}

/* Adds to the word of each peer. The fetched values grow if atomics are ordered. */
static void add(void)
{
	bool ordered = node.info->tx_attr->msg_order & FI_ORDER_ATOMIC_WAW;
	size_t ranks = (size_t)node.ranks;

	for (size_t i = 0; i < ADDS * ranks; i++) {
		word_op(&out[i], FETCH_ADD, (int)(i % ranks), SUM)->arg[0] =
			(uint64_t)node.rank + 1;
		post(&out[i]);
	}
	wait_until(0, "additions");
	for (size_t i = ranks; i < ADDS * ranks; i++)
		if (ordered && out[i].result <= out[i - ranks].result)
			die("additions at rank %d: found %llu after %llu", out[i].peer,
			    (unsigned long long)out[i].result,
			    (unsigned long long)out[i - ranks].result);
}

static void set_bits(void)
{
	for (int peer = 0; peer < node.ranks; peer++) {
		word_op(&out[peer], BIT_OR, peer, BITS)->arg[0] = (uint64_t)1 << node.rank;
		post(&out[peer]);
	}
	wait_until(0, "bits");
}

/* Increments by compare and swap, until no other process was faster. */
static void swap(int peer)
{
	uint64_t found = 0;
	struct op op;

	do {
		word_op(&op, SWAP, peer, SWAPPED)->arg[1] = found;
		op.arg[0] = found + 1;
		post(&op);
		wait_until(0, "compare and swap");
		if (op.result == found)
			return;
		found = op.result;
	} while (true);
}

static void atomics(void)
{
	add();
	set_bits();
	for (int i = 0; i < SWAPS * node.ranks; i++)
		swap((node.rank + i) % node.ranks);
}

static void check_word(const char *what, enum word word, uint64_t want)
{
	uint64_t found;

	memcpy(&found, region + (size_t)node.ranks * PART + word, sizeof(found));
	if (found != want)
		die("%s: %llu, not %llu", what, (unsigned long long)found,
		    (unsigned long long)want);
	node.checked++;
}

static void check_words(void)
{
	uint64_t ranks = (uint64_t)node.ranks;

	check_word("sum", SUM, ADDS * ranks * (ranks + 1) / 2);
	check_word("bits", BITS, ((uint64_t)1 << ranks) - 1);
	check_word("swaps", SWAPPED, SWAPS * ranks);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void run(bool with_atomics)
{
	for (int round = 0; round < ROUNDS; round++)
		messages(round);
	write_and_read();
	if (with_atomics)
		atomics();
	barrier(0);
	check_region();
	if (with_atomics)
		check_words();
	barrier(1);
}

static void say_passed(void)
{
	char name[128] = "?";
	size_t len = sizeof(name);

	fi_av_straddr(node.av, node.card[node.rank].name, name, &len);
	printf("rank %d of %d: %s at %s: %llu bytes inside, %llu outside, %ld checks passed\n",
	       node.rank, node.ranks, node.info->fabric_attr->prov_name, name,
	       (unsigned long long)node.bytes_local, (unsigned long long)node.bytes_remote,
	       node.checked);
	fflush(stdout);
}

static bool read_arguments(int argc, char **argv, struct fi_info *hints)
{
	int opt;

	hints->caps = FI_TAGGED | FI_RMA | FI_ATOMIC;
	while ((opt = getopt(argc, argv, "a6")) != -1) {
		if (opt == 'a')
			hints->caps &= ~FI_ATOMIC;
		else if (opt == '6')
			hints->addr_format = FI_SOCKADDR_IN6;
		else
			return false;
	}
	if (argc - optind != 4)
		return false;
	node.dir = argv[optind];
	node.rank = atoi(argv[optind + 1]);
	node.ranks = atoi(argv[optind + 2]);
	node.local = atoi(argv[optind + 3]);
	node.sleeps = node.rank % 2;
	return node.ranks > 0 && node.ranks <= NODE_RANKS && node.local > 0;
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo();
	size_t size;

	if (!hints || !read_arguments(argc, argv, hints)) {
		fputs("Usage: hosts_alltoall [-a] [-6] FOLDER RANK RANKS LOCAL\n", stderr);
		return EXIT_FAILURE;
	}
	size = (size_t)node.ranks * PART + TAIL;
	region = aligned_alloc(64, size);
	if (!region || place_of(0, SIZES) > PART)
		die("no region");
	memset(region, 0, size);
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	open_endpoint(hints, region, size);
	meet_peers(region);
	run(hints->caps & FI_ATOMIC);
	say_passed();
	meet("closing");
	close_node();
	fi_freeinfo(hints);
	free(region);
	return EXIT_SUCCESS;
}
