/* SPDX-License-Identifier: BSD-2-Clause */
/* Links with several rails: to a socket of the test, and between its two workers. */
#ifndef UNIT_RAILS_PAIR_H
#define UNIT_RAILS_PAIR_H

#include <netinet/in.h>

#include "hw/tcp/rails/tcp_rails.h"
#include "tcp_pair.h"

#define MSG   WIRE_HEAD(WIRE_MSG, 0, 0, 0)
#define CHUNK sizeof(struct tcp_chunk)
#define COUNT 400u

static unsigned char bytes[262144];
static unsigned int wanted[WIRE_RAILS_MAX];

static inline void on_wanted(uint32_t src, uint32_t rail)
{
	(void)src;
	wanted[rail]++;
}

/* Called by each test before its first link. */
static inline void rails(void)
{
	setenv("FI_WEFT_RAIL_TIMEOUT", "80", 1);
	engine.rails = 2;
	engine.on_wanted = on_wanted;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 13 + i / 257);
}

/* Who sends by the link: its owner alone, so that tests know when, or the flusher, too? */
static inline void let_flusher(uint32_t id, bool may)
{
	((struct tcp_link *)link_of(id))->own->no_flusher = !may;
}

/* The link of a test, whose other end is a socket of the test. */
static inline uint32_t raw_link(void)
{
	uint32_t id;

	rails();
	id = join_raw();
	let_flusher(id, false);
	return id;
}

static inline uint32_t link_between(void)
{
	uint32_t id;

	rails();
	id = join_both();
	if (engine.key)
		PROGRESS_UNTIL(joints[id - 1].ready && joints[id].ready);
	return id;
}

static inline void add_rail(uint32_t id, uint32_t rail, int sock)
{
	struct link_peer peer = learned(joints[id - 1].side, sock);

	ck_assert_int_eq(tcp_transport.join(link_of(id), rail, &peer), 0);
}

/* Adds rail `rail` to a link whose other end is a socket of the test, which is returned. */
static inline int add_raw(uint32_t id, uint32_t rail)
{
	int fds[2];

	tcp_sockets(fds);
	add_rail(id, rail, fds[0]);
	return fds[1];
}

static inline void add_both(uint32_t id, uint32_t rail)
{
	add_rail(id + 1, rail, add_raw(id, rail));
}

/* Ends the first worker's socket of a rail, as a reset by the network would. */
static inline void reset_rail(uint32_t id, uint32_t rail)
{
	const struct tcp_link *l = (const struct tcp_link *)link_of(id);

	shutdown(l->rails->rail[rail].sock, SHUT_RDWR);
}

/* Sends a message whose end is reported. */
static inline int post(uint32_t id, size_t len, uint64_t tag)
{
	const struct packet p = {.head = MSG, .tag = tag, .len = len};
	const struct iovec iov = {bytes, len};

	ck_assert_int_eq(link_of(id)->ops->send(link_of(id), bytes, len, 0, MSG, tag), -FI_EAGAIN);
	return link_of(id)->zcopy->sendv(link_of(id), &p, &iov, 1);
}

static inline struct tcp_rails *rails_of(uint32_t id)
{
	return ((struct tcp_link *)link_of(id))->rails;
}

static inline size_t length_of(unsigned int n)
{
	return n % 5 == 0 ? (n * 7919u) % sizeof(bytes) : n % 300;
}

static inline void check_seen(void)
{
	ck_assert_uint_eq(seen_count, COUNT);
	for (unsigned int i = 0; i < COUNT; i++) {
		ck_assert_uint_eq(seen[i].tag, i);
		ck_assert_uint_eq(seen[i].len, length_of(i));
		ck_assert_mem_eq(seen[i].payload, bytes, seen[i].len);
	}
}

/* Packets of all lengths, while, if it `breaks`, a rail after the other ends and is replaced. */
static inline void pass_in_order(bool breaks)
{
	uint32_t id = link_between();
	uint64_t end = clock_coarse_ms() + 20000;

	add_both(id, 1);
	for (unsigned int i = 0; i < COUNT;) {
		int ret = post(id, length_of(i), i);

		ck_assert(ret == 0 || ret == -FI_EAGAIN);
		ck_assert_uint_lt(clock_coarse_ms(), end);
		i += ret == 0;
		if (ret == 0 && breaks && i % 20 == 0) {
			reset_rail(id, i / 20 % 2);
			PROGRESS_UNTIL(rails_of(id)->rail[i / 20 % 2].sock < 0);
			if (i % 3 == 0)
				make_progress(1);
			add_both(id, i / 20 % 2);
		}
		make_progress(0);
		make_progress(1);
	}
	PROGRESS_UNTIL(seen_count == COUNT);
	check_seen();
	ck_assert_int_eq(joints[id - 1].ends + joints[id].ends, 0);
	ck_assert_uint_eq(link_of(id)->zcopy_posted, COUNT);
	PROGRESS_UNTIL(!link_holds(link_of(id)));
}

#endif
