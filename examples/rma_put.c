/* SPDX-License-Identifier: BSD-2-Clause */
/* Remote memory access in its plainest form: process 0 exposes memory and then only looks on, while
 * process 1 writes into it in three ways, reads it back, and is refused what it may not do.
 *
 *     rma_put -p shm
 *
 * The two processes are started by the program itself. */
#include <stdint.h>
#include <rdma/fi_rma.h>
#include "node.h"

#define EXPOSED    (2u << 20)
#define LONG_AT    0u /* offsets and lengths of the three writes */
#define LONG_SIZE  (1u << 20)
#define SHORT_AT   LONG_SIZE
#define SHORT_SIZE 16u
#define LAST_AT    (LONG_SIZE + 4096)
#define LAST_SIZE  4000u
#define DONE       42u /* remote CQ data of the last write */

/* Address and key of the exposed memory; both depend on mr_mode. */
struct window {
	uint64_t addr;
	uint64_t key;
};

/* Expected content of the exposed memory at the end; the writer sends from here. */
static unsigned char expected[EXPOSED];

static void fill(size_t at, size_t size)
{
	for (size_t i = at; i < at + size; i++)
		expected[i] = (unsigned char)(i * 7 + i / 256 + 1);
}

/* Offers the mr_mode bits of adapters that use virtual addresses and choose the keys; the bits
 * that stay set in the answer must be honored. Requests that writes arrive in order, so that the
 * last one proves the others. */
static void open_node(const char *provider)
{
	struct fi_info *hints = node_hints(provider, FI_RMA);

	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->tx_attr->msg_order = FI_ORDER_RMA_WAW;
	hints->rx_attr->msg_order = FI_ORDER_RMA_WAW;
	node_open(hints, FI_TRANSMIT | FI_RECV);
	node_start();
}

/* Target: its only completion is that of the write with remote CQ data. */
static void look_on(void)
{
	static unsigned char memory[EXPOSED];
	struct fid_mr *mr = node_expose(memory, sizeof memory, 1, 0);
	bool virtual = node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct window window = {virtual ? (uintptr_t)memory : 0, fi_mr_key(mr)};
	struct fi_cq_data_entry entry;

	say("exposes %zu bytes under key %#llx", sizeof memory, (unsigned long long)window.key);
	team_exchange(&window, sizeof window);
	must(-node_completion(&entry), "a write to this process");
	if (!(entry.flags & FI_REMOTE_WRITE) || !(entry.flags & FI_REMOTE_CQ_DATA))
		fail("this is no write with data: %s",
		     fi_tostr(&entry.flags, FI_TYPE_CQ_EVENT_FLAGS));
	if (entry.data != DONE)
		fail("it came with %llu, not %u", (unsigned long long)entry.data, DONE);
	if (memcmp(memory, expected, sizeof memory) != 0)
		fail("the memory is not what was written");
	say("was told %u by the last write, and finds all %u bytes in place", DONE,
	    LONG_SIZE + SHORT_SIZE + LAST_SIZE);
	team_barrier(node_progress);
	if (memcmp(memory, expected, sizeof memory) != 0)
		fail("the memory was changed by what should have been refused");
	must(fi_close(&mr->fid), "fi_close");
}

/* Writes many bytes: the library uses the buffer until the completion. */
static void write_long(struct window to)
{
	while (node_full(fi_write(node.ep, expected + LONG_AT, LONG_SIZE, NULL, 0,
				  to.addr + LONG_AT, to.key, NULL),
			 "fi_write"))
		;
	node_complete("fi_write");
	say("wrote %u bytes with fi_write, and has the completion", LONG_SIZE);
}

/* Injects a write: the buffer is free at once, and no completion follows. */
static void write_short(struct window to)
{
	char scratch[SHORT_SIZE];

	if (node.info->tx_attr->inject_size < SHORT_SIZE)
		fail("this provider injects no more than %zu bytes",
		     node.info->tx_attr->inject_size);
	memcpy(scratch, expected + SHORT_AT, SHORT_SIZE);
	while (node_full(
		fi_inject_write(node.ep, scratch, SHORT_SIZE, 0, to.addr + SHORT_AT, to.key),
		"fi_inject_write"))
		;
	memset(scratch, 0, SHORT_SIZE);
	say("wrote %u bytes with fi_inject_write, and forgot about them", SHORT_SIZE);
}

/* Writes with remote CQ data: the one write with a completion at the target. */
static void write_last(struct window to)
{
	while (node_full(fi_writedata(node.ep, expected + LAST_AT, LAST_SIZE, NULL, DONE, 0,
				      to.addr + LAST_AT, to.key, NULL),
			 "fi_writedata"))
		;
	node_complete("fi_writedata");
	say("wrote %u bytes with fi_writedata, and the number %u", LAST_SIZE, DONE);
}

static void read_back(struct window from)
{
	static unsigned char copy[EXPOSED];

	memset(copy, 0xff, sizeof copy);
	while (node_full(fi_read(node.ep, copy, sizeof copy, NULL, 0, from.addr, from.key, NULL),
			 "fi_read"))
		;
	node_complete("fi_read");
	if (memcmp(copy, expected, sizeof copy) != 0)
		fail("read back something else than was written");
	say("read all %zu bytes back: they are right", sizeof copy);
}

/* Writes beyond the exposed memory: that changes nothing and completes in error. The call itself
 * may refuse it if the library knows the limits. */
static void overreach(struct window to)
{
	static char junk[16];
	struct fi_cq_data_entry entry;
	ssize_t ret;
	int error;

	do
		ret = fi_write(node.ep, junk, sizeof junk, NULL, 0, to.addr + EXPOSED - 8, to.key,
			       NULL);
	while (ret == -FI_EAGAIN);
	error = ret ? (int)-ret : node_completion(&entry);
	if (!error)
		fail("a write beyond the end was not refused");
	say("was refused a write beyond the end: %s", fi_strerror(error));
}

static void write_and_read(void)
{
	struct window window;

	team_exchange("", 0);
	memcpy(&window, team_card(0), sizeof window);
	write_long(window);
	write_short(window);
	write_last(window);
	read_back(window);
	overreach(window);
	team_barrier(node_progress);
}

int main(int argc, char **argv)
{
	const char *provider = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "p:h")) != -1) {
		if (opt == 'p') {
			provider = optarg;
			continue;
		}
		fputs("Usage: rma_put [-p PROVIDER]\n", opt == 'h' ? stdout : stderr);
		return opt == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	fill(LONG_AT, LONG_SIZE);
	fill(SHORT_AT, SHORT_SIZE);
	fill(LAST_AT, LAST_SIZE);
	team_start(2, "rma_put");
	open_node(provider);
	if (team.rank == 0)
		look_on();
	else
		write_and_read();
	node_stop();
	node_close();
	return EXIT_SUCCESS;
}
