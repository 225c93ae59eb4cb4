/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/stall.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/threads.h"
#include "conn/conn.h"
#include "conn/connect.h"

#define TICK_S   1     /* between two looks at the ring of a station that sleeps */
#define JUDGE_MS 20    /* between two looks at the threads of a process */
#define SAY_MS   10000 /* between two log lines about one packet */

void stall_begin(struct station *station)
{
	const struct itimerspec every = {{.tv_sec = TICK_S}, {.tv_sec = TICK_S}};
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)STATION_STALL << 32};
	struct stall *s = &station->stall;

	if (s->timer >= 0)
		return;
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->timer < 0 || timerfd_settime(s->timer, 0, &every, NULL) ||
	    epoll_ctl(station->driven.fd, EPOLL_CTL_ADD, s->timer, &ev))
		LOG_PEER(LOG_EP_CTRL, "no timer for looks at a ring: %s", strerror(errno));
}

static void close_timer(struct stall *s)
{
	if (s->timer >= 0)
		close(s->timer);
	s->timer = -1;
}

void stall_tick(struct station *station)
{
	uint64_t ticks;

	if (read(station->stall.timer, &ticks, sizeof(ticks)) < 0)
		return;
	LIST_EACH_OF (const struct contact, peer, &station->peers_list, in_station) {
		if (contact_linked(peer) && contact_inside(peer))
			return;
	}
	close_timer(&station->stall);
}

static void stall_end(struct stall *s)
{
	threads_end(s->threads);
	s->threads = NULL;
	s->since = 0;
}

void stall_close(struct station *station)
{
	stall_end(&station->stall);
	close_timer(&station->stall);
}

/* Returns the connected peer that claims by this owner, or NULL. */
static struct contact *stall_claimer(struct station *station, uint32_t owner)
{
	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		if ((pool_id(peer) & TRANSPORT_OWNER_MASK) == owner && peer->sock >= 0)
			return peer;
	}
	return NULL;
}

static void stall_warn(const struct contact *peer, const char *what)
{
	LOG_PEER(LOG_EP_DATA, "ring: %s (process %d) has claimed a packet and does not send it: %s",
		 contact_text(peer), (int)connect_pid(peer->sock), what);
}

/* Is no thread of the peer in the middle of a send? See base/threads.h. */
static bool stall_is_elsewhere(struct stall *s, const struct contact *peer)
{
	if (!s->threads)
		s->threads = threads_begin(connect_pid(peer->sock));
	return s->threads && threads_elsewhere(s->threads);
}

/* The packet has not come for twice FI_WEFT_ACCESS_TIMEOUT. */
static void stall_judge(struct station *station, uint32_t owner, uint64_t now)
{
	struct contact *peer = stall_claimer(station, owner);
	struct stall *s = &station->stall;

	if (peer && !stall_is_elsewhere(s, peer)) {
		if (now >= s->say)
			stall_warn(peer, "messages behind it wait");
		s->say = now >= s->say ? now + SAY_MS : s->say;
		return;
	}
	station->via[LINK_HOST].transport->skip(station->via[LINK_HOST].state);
	stall_end(s);
	if (peer) {
		stall_warn(peer, "disconnected");
		conn_expel(peer);
	} else {
		LOG_PEER(LOG_EP_DATA,
			 "ring: skipped packet %#llx, which no connected peer is sending",
			 (unsigned long long)s->mark);
	}
}

void stall_watch(struct station *station)
{
	const struct transport *t = station->via[LINK_HOST].transport;
	uint64_t now = clock_coarse_ms();
	struct stall *s = &station->stall;
	uint32_t owner;

	if (now == s->looked || !t || !t->blocked)
		return;
	s->looked = now;
	if (!t->blocked(station->via[LINK_HOST].state, &s->mark, &owner)) {
		if (s->since)
			stall_end(s);
		return;
	}
	if (!s->since)
		s->since = now;
	if (now - s->since < 2 * (uint64_t)env_get()->access_timeout || now < s->judge)
		return;
	s->judge = now + JUDGE_MS;
	stall_judge(station, owner, now);
}
