/* SPDX-License-Identifier: BSD-2-Clause */
/* A log that other processes append to without help of its owner: process 0 maps a file and
 * exposes it, as it would expose persistent memory; the others append records in three steps.
 *
 *   1. reserve space: fetch-and-add of the record's size to the head's `reserved`
 *   2. write the record there, durable before it counts as written
 *   3. publish it once all earlier ones are published: an atomic write of eight bytes moves `tail`
 *
 * The eight bytes change at once or not at all, so a reader that stops at `tail` sees only
 * complete records. A writer that dies between steps 1 and 3 blocks the later ones: a real log
 * would need a time limit, and a void record in its place.
 *
 *     remote_log -n 4 -p shm */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include "log_file.h"
#include "node.h"

#define RECORDS 100 /* records of each writer */
#define HEAD(m) ((uint64_t)offsetof(struct log_head, m))

static void open_node(const char *provider)
{
	struct fi_info *hints = node_hints(provider, FI_RMA | FI_ATOMIC | FI_RMA_PMEM);

	node_open(hints, FI_TRANSMIT | FI_RECV);
	node_start();
}

/* ---- the writers ---- */

static uint64_t fetch(enum fi_op op, uint64_t at, uint64_t value)
{
	uint64_t old;

	while (node_full(fi_fetch_atomic(node.ep, &value, 1, NULL, &old, NULL, 0, at, LOG_KEY,
					 FI_UINT64, op, NULL),
			 "fi_fetch_atomic"))
		;
	node_complete("fi_fetch_atomic");
	return old;
}

/* Writes a record with FI_COMMIT_COMPLETE: after the completion it survives a power failure at
 * the target. */
static void write_durably(uint64_t at, const struct log_record *record)
{
	struct iovec from = {(void *)record, log_room(record->len)};
	struct fi_rma_iov to = {at, from.iov_len, LOG_KEY};
	struct fi_msg_rma msg = {
		.msg_iov = &from, .iov_count = 1, .addr = 0, .rma_iov = &to, .rma_iov_count = 1};

	while (node_full(fi_writemsg(node.ep, &msg, FI_COMPLETION | FI_COMMIT_COMPLETE),
			 "fi_writemsg"))
		;
	node_complete("fi_writemsg");
}

/* Writes eight bytes atomically, to an address that is a multiple of eight. 0, or the positive
 * error. */
static int write_atomically(uint64_t at, uint64_t value)
{
	struct fi_ioc from = {&value, 1};
	struct fi_rma_ioc to = {at, 1, LOG_KEY};
	struct fi_msg_atomic msg = {.msg_iov = &from,
				    .iov_count = 1,
				    .addr = 0,
				    .rma_iov = &to,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_ATOMIC_WRITE};
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do
		ret = fi_atomicmsg(node.ep, &msg, FI_COMPLETION | FI_COMMIT_COMPLETE);
	while (node_full(ret, "fi_atomicmsg"));
	return node_completion(&entry);
}

/* Appends a record. Records become visible in the order in which their space was reserved. */
static void append(const struct log_record *record)
{
	uint64_t size = log_room(record->len);
	uint64_t at = fetch(FI_SUM, HEAD(reserved), size);

	if (at + size > LOG_SIZE)
		fail("the log is full");
	write_durably(at, record);
	while (fetch(FI_ATOMIC_READ, HEAD(tail), 0) != at)
		sched_yield();
	must(-write_atomically(HEAD(tail), at + size), "fi_atomicmsg");
}

/* Checks that the library refuses an unaligned atomic write: a reader could see half of such a
 * tail. */
static void misplace(void)
{
	int error = write_atomically(HEAD(tail) + 4, ~0ULL);

	if (error != FI_EINVAL)
		fail("a misaligned tail gave \"%s\"", error ? fi_strerror(error) : "no error");
	say("was refused a tail at offset %llu: %s", (unsigned long long)HEAD(tail) + 4,
	    fi_strerror(error));
}

static void write_all(void)
{
	static union {
		struct log_record record;
		char room[LOG_RECORD_MAX];
	} next;

	team_barrier(NULL);
	for (uint64_t number = 0; number < RECORDS; number++) {
		log_compose(&next.record, (uint32_t)team.rank, number);
		append(&next.record);
	}
	say("appended %d records", RECORDS);
	if (team.rank == 1)
		misplace();
	team_barrier(node_progress);
}

/* ---- the owner, which is also the reader ---- */

/* Opens the log file. Without a path it has no name and vanishes with this process. */
static char *open_log(const char *path)
{
	FILE *file = path ? fopen(path, "w+") : tmpfile();
	void *map;

	if (!file || ftruncate(fileno(file), LOG_SIZE) != 0)
		fail("no file for the log");
	map = mmap(NULL, LOG_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (map == MAP_FAILED)
		fail("the log can not be mapped");
	fclose(file);
	return (char *)map;
}

/* Checks that the record at `at` is complete and the next one of its writer; returns the offset
 * behind it. */
static uint64_t check_record(const char *log, uint64_t at, uint64_t *next)
{
	static union {
		struct log_record record;
		char room[LOG_RECORD_MAX];
	} wanted;
	const struct log_record *found = (const struct log_record *)(log + at);

	if (found->writer < 1 || found->writer >= (uint32_t)team.size)
		fail("at %llu: no record", (unsigned long long)at);
	log_compose(&wanted.record, found->writer, next[found->writer]++);
	if (memcmp(found, &wanted, log_room(wanted.record.len)) != 0 ||
	    found->sum != log_sum(found))
		fail("at %llu: record %llu of writer %u is not whole", (unsigned long long)at,
		     (unsigned long long)wanted.record.number, found->writer);
	return at + log_room(found->len);
}

/* Reads records as the tail grows, until all have come. */
static uint64_t follow(const char *log, int records)
{
	const struct log_head *head = (const struct log_head *)log;
	uint64_t at = sizeof *head, next[TEAM_MAX] = {0};

	while (records > 0) {
		uint64_t tail = __atomic_load_n(&head->tail, __ATOMIC_ACQUIRE);

		for (; at < tail; records--)
			at = check_record(log, at, next);
		if (at != tail)
			fail("the tail is inside a record");
		node_progress();
		sched_yield();
	}
	return at;
}

static void keep_log(const char *path)
{
	char *log = open_log(path);
	struct log_head *head = (struct log_head *)log;
	struct fid_mr *mr;
	uint64_t end;

	head->reserved = head->tail = sizeof *head;
	mr = node_expose(log, LOG_SIZE, LOG_KEY, FI_RMA_PMEM);
	say("keeps the log in %s", path ? path : "a file without a name");
	team_barrier(NULL);
	end = follow(log, RECORDS * (team.size - 1));
	say("read %llu bytes, all records of %d writers, as they came: each is whole and in order",
	    (unsigned long long)end, team.size - 1);
	team_barrier(node_progress);
	if (head->tail != end || head->reserved != end)
		fail("the tail was moved by what was refused");
	must(fi_close(&mr->fid), "fi_close");
}

int main(int argc, char **argv)
{
	const char *provider = NULL, *path = NULL;
	int opt, count = 4;

	while ((opt = getopt(argc, argv, "f:n:p:h")) != -1) {
		if (opt == 'f')
			path = optarg;
		else if (opt == 'n')
			count = atoi(optarg);
		else if (opt == 'p')
			provider = optarg;
		else
			count = 0;
		if (count >= 2 && count <= TEAM_MAX)
			continue;
		fputs("Usage: remote_log [-n PROCESSES] [-f FILE] [-p PROVIDER]\n",
		      opt == 'h' ? stdout : stderr);
		return opt == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	team_start(count, "remote_log");
	open_node(provider);
	if (team.rank == 0)
		keep_log(path);
	else
		write_all();
	node_stop();
	node_close();
	return EXIT_SUCCESS;
}
