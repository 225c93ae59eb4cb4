/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint in a process of its own that joins groups and makes barriers by order of the test.
 * The group's other member is a raw client named 127.0.0.1:MEMBER_PORT.
 */
#ifndef FAULT_JOINER_H
#define FAULT_JOINER_H

#include <rdma/fi_collective.h>
#include <sys/mman.h>

#include "raw_group.h"

#define MEMBER_PORT 1001u
#define MARK        0x77u /* tag of the message that tells that all earlier ones were read */

enum order { SET, JOIN, AWAIT_JOIN, MARKED, BARRIER, NO_BARRIER, AWAIT_BARRIER, CLOSE };

static int joiner_ends[2];

struct joiner {
	struct node n;
	struct fid_eq *eq;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t self, member;
};

static void open_joiner(struct joiner *j)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct hello h = hello_of_port(MEMBER_PORT);
	struct name name;

	node_create(&j->n, NULL);
	must(fi_eq_open(j->n.fabric, &attr, &j->eq, NULL), "fi_eq_open");
	must(fi_ep_bind(j->n.ep, &j->eq->fid, 0), "fi_ep_bind");
	node_bind(&j->n);
	name = node_name(&j->n);
	tell(joiner_ends[1], &name, sizeof(name));
	j->self = node_insert(&j->n, &name);
	memcpy(name.bytes, h.name, h.name_len);
	j->member = node_insert(&j->n, &name);
}

static void make_set(struct joiner *j, uint32_t member)
{
	struct fi_av_set_attr attr = {
		.count = 2, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL};

	must(fi_av_set(j->n.av, &attr, &j->set, NULL), "fi_av_set");
	must(fi_av_set_insert(j->set, member ? j->self : j->member), "fi_av_set_insert");
	must(fi_av_set_insert(j->set, member ? j->member : j->self), "fi_av_set_insert");
}

static int begin_join(struct joiner *j)
{
	fi_addr_t addr;

	must(fi_av_set_addr(j->set, &addr), "fi_av_set_addr");
	return fi_join_collective(j->n.ep, addr, j->set, 0, &j->mc, NULL);
}

/* Returns 0, or why the join failed (positive). */
static int await_join(struct joiner *j)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	uint32_t event = 0;
	ssize_t ret = fi_eq_sread(j->eq, &event, &entry, sizeof(entry), WAIT_MS, 0);

	if (ret == -FI_EAVAIL && fi_eq_readerr(j->eq, &err, 0) > 0)
		return err.err;
	return ret > 0 && event == FI_JOIN_COMPLETE ? 0 : FI_ETIMEDOUT;
}

static int await_mark(struct joiner *j)
{
	char byte;

	must(fi_trecv(j->n.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, MARK, 0, NULL), "fi_trecv");
	return node_wait(&j->n, WAIT_MS, "the mark").err;
}

static int obey(struct joiner *j, const uint32_t order[2])
{
	struct event e;

	switch ((enum order)order[0]) {
	case SET:
		make_set(j, order[1]);
		return 0;
	case JOIN:
		return begin_join(j);
	case AWAIT_JOIN:
		return await_join(j);
	case MARKED:
		return await_mark(j);
	case BARRIER:
		return (int)fi_barrier(j->n.ep, fi_mc_addr(j->mc), NULL);
	case NO_BARRIER:
		for (uint64_t end = now_ms() + 50; now_ms() < end;)
			if (node_poll(&j->n, &e))
				return e.err ? e.err : FI_EALREADY;
		return 0;
	case AWAIT_BARRIER:
		return node_wait(&j->n, WAIT_MS, "a barrier").err;
	case CLOSE:
		return fi_close(&j->mc->fid);
	}
	return FI_EINVAL;
}

static void joiner_live(void *arg)
{
	struct joiner j;
	uint32_t order[2];
	int ret;

	dup2(*(int *)arg, STDERR_FILENO);
	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_INTERVAL", "0", 1); /* all lines */
	open_joiner(&j);
	for (;;) {
		while (recv(joiner_ends[1], order, sizeof(order), MSG_DONTWAIT) != sizeof(order)) {
			fi_cq_read(j.n.cq, NULL, 0); /* makes progress */
			usleep(100);
		}
		ret = obey(&j, order);
		tell(joiner_ends[1], &ret, sizeof(ret));
	}
}

/* Makes the endpoint do that. Returns 0 or an error. */
static inline int joiner_make(enum order order, uint32_t arg)
{
	uint32_t words[2] = {order, arg};
	int ret;

	tell(joiner_ends[0], words, sizeof(words));
	hear(joiner_ends[0], &ret, sizeof(ret));
	return ret;
}

/* Starts the endpoint, whose warnings go to `log`. Sets its name. Returns its pid. */
static inline pid_t joiner_start(struct name *name, int log)
{
	pid_t pid;

	wire(joiner_ends);
	pid = start("server", joiner_live, &log);
	hear(joiner_ends[0], name, sizeof(*name));
	return pid;
}

/* The message that joiner_await_mark waits for, with a payload of one byte. */
static const struct frame joiner_mark_frame = {
	.head = HEAD(WIRE_MSG, TAGGED, 0, 0), .tag = MARK, .len = 1};

static inline void joiner_await_mark(void)
{
	if (joiner_make(MARKED, 0))
		fail("the mark did not arrive");
}

/* The endpoint has read all that this client has sent. */
static inline void joiner_mark(int sock)
{
	raw_send(sock, joiner_mark_frame, "m", 1);
	joiner_await_mark();
}

/* Returns the key of the group, after the endpoint and the member of rank 1 have made one. */
static inline uint64_t joiner_first_join(int member)
{
	struct control c = {0};
	uint64_t key;

	if (joiner_make(JOIN, 0) || !raw_read_control(member, &c) || c.kind != PROBE)
		fail("no PROBE for a member");
	key = c.key;
	raw_control(
		member,
		(struct control){
			.kind = UP, .rank = 1, .size = 2, .attempt = 1, .key = key, .id = c.id});
	if (joiner_make(AWAIT_JOIN, 0) || !raw_read_control(member, &c) || c.kind != DOWN ||
	    joiner_make(CLOSE, 0))
		fail("the first join failed");
	return key;
}

/* Does the log contain `text`? */
static inline bool joiner_logged(int log, const char *text)
{
	off_t len = lseek(log, 0, SEEK_END);
	char *bytes = len > 0 ? mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, log, 0) : MAP_FAILED;
	bool found;

	if (bytes == MAP_FAILED)
		return false;
	found = memmem(bytes, (size_t)len, text, strlen(text)) != NULL;
	munmap(bytes, (size_t)len);
	return found;
}

#endif
