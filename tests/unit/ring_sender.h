/* SPDX-License-Identifier: BSD-2-Clause */
/* A receive ring, its reader and its senders, for the tests of the ring. */
#ifndef UNIT_RING_SENDER_H
#define UNIT_RING_SENDER_H

#include <check.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hw/shm/shm_ring.h"

#define BYTES 65536u /* the smallest ring */
#define LIMIT 40     /* seconds */

/* The reader's state, as in hw/shm/shm_rx.c. */
static struct ring ring;
static uint64_t head;
static int memfd;

static void setup(void)
{
	ck_assert_int_eq(shm_ring_create(&ring, BYTES, &memfd), 0);
	head = ring.page->head;
	alarm(LIMIT);
}

static void teardown(void)
{
	shm_ring_unmap(&ring);
	close(memfd);
}

static uint32_t ring_count(void)
{
	return ring.mask + 1;
}

/* A sender with its own mapping of the ring, as in another process. */
struct sender {
	struct ring ring;
	uint64_t next;
	uint32_t id;
};

static struct sender attach(uint32_t id)
{
	struct sender s = {.id = id};

	ck_assert_int_eq(shm_ring_attach(&s.ring, memfd), 0);
	s.next = s.ring.page->head;
	return s;
}

static int claim(struct sender *s, uint32_t slots)
{
	uint64_t word;

	return shm_ring_claim(&s->ring, &s->next, s->id, slots, &word);
}

/* Writes and publishes a message; `number` determines its tag and payload bytes. */
static void publish(struct sender *s, uint32_t slots, uint64_t number)
{
	struct link_slot *slot = ring_slot_at(&s->ring, s->next);

	slot->src = s->id;
	slot->len = slots;
	slot->tag = number;
	memset(slot->rest, (int)number & 0xff, slots * RING_SLOT - 32);
	__atomic_store_n(&slot->token, s->ring.secret + s->next, __ATOMIC_RELEASE);
	s->next += slots;
}

static int put(struct sender *s, uint32_t slots, uint64_t number)
{
	int err = claim(s, slots);

	if (!err)
		publish(s, slots, number);
	return err;
}

/* Returns the message published at the head, or NULL. */
static struct link_slot *look(void)
{
	struct link_slot *slot = ring_slot_at(&ring, head);

	return __atomic_load_n(&slot->token, __ATOMIC_ACQUIRE) == ring.secret + head ? slot : NULL;
}

static void release(uint32_t slots)
{
	head += slots;
	__atomic_store_n(&ring.page->head, head, __ATOMIC_RELEASE);
}

static void take(uint32_t id, uint32_t slots, uint64_t number)
{
	struct link_slot *slot = look();

	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->src, id);
	ck_assert_uint_eq(slot->len, slots);
	ck_assert_uint_eq(slot->tag, number);
	for (size_t i = 0; i < slots * RING_SLOT - 32; i++)
		if (slot->rest[i] != (number & 0xff))
			ck_abort_msg("byte %zu of message %llu", i, (unsigned long long)number);
	release(slots);
}

static pid_t child(int (*run)(uint32_t id), uint32_t id)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT);
	_exit(run(id));
}

static int status_of(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
