/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks after rails, now and then: which are silent, how much each may carry, and what they keep without need. */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/env.h"
#include "base/log.h"
#include "hw/tcp/tcp_output.h"
#include "hw/tcp/rails/tcp_rails.h"
#include "info/rails_setting.h"

/*
 * Bytes that a kernel keeps unsent for a rail: what it carries in UNSENT_MS, while the process may not run. More would
 * wait at a slow rail while a fast one has nothing to do.
 */
#define UNSENT_MS    8
#define UNSENT_LEAST 65536u
#define UNSENT_MOST  1048576u
#define ON_WAY_MS    16 /* limits what a rail has on its way, but for the fastest */
#define POLLS        8  /* checks within a limit of time */

uint32_t tcp_rails_period(void)
{
	int peer = env_get()->peer_timeout;
	uint32_t limit = rails_time_limit();

	if (peer > 0 && (uint32_t)peer < limit)
		limit = (uint32_t)peer;
	return limit / POLLS + 1;
}

void tcp_rails_limit(int sock, uint64_t rate)
{
	uint64_t bytes = rate * UNSENT_MS / 1000;
	uint32_t most = bytes < UNSENT_LEAST  ? UNSENT_LEAST
			: bytes > UNSENT_MOST ? UNSENT_MOST
					      : (uint32_t)bytes;

	setsockopt(sock, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof(most));
}

/*
 * A rail keeps no more bytes on their way than it carries in ON_WAY_MS and two round trips of an empty wire: what a slow one
 * has queued holds back all that comes later in the stream, and with the window the fast ones.
 */
static void limit_on_way(struct tcp_rail *r, const struct tcp_info *info)
{
	uint64_t us = ON_WAY_MS * 1000 + 2ull * info->tcpi_min_rtt;

	r->rate = info->tcpi_delivery_rate;
	r->most = r->rate * us / 1000000;
	if (r->most < UNSENT_LEAST)
		r->most = UNSENT_LEAST;
}

/*
 * Does the rail leave packets unanswered that went before the last check? What has just been sent says nothing yet, unless
 * it was sent before; nor do packets of the peer, which may hear nothing of us. Adapts what the kernel keeps to the rate that it has found.
 */
static bool tcp_rails_check_unanswered(struct tcp_rail *r, uint32_t period)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(r->sock, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	tcp_rails_limit(r->sock, info.tcpi_delivery_rate);
	limit_on_way(r, &info);
	if (info.tcpi_probes || !info.tcpi_unacked)
		return info.tcpi_probes;
	return info.tcpi_retransmits ||
	       (info.tcpi_last_ack_recv >= period && info.tcpi_last_data_sent >= period);
}

/* What is under way over the rail goes over others. */
static void set_silent(struct tcp_link *l, uint32_t rail)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	uint64_t bytes = tcp_rails_again(l, rail);

	r->silent = true;
	l->rails->ack_due = true;
	LOG_INFO(LOG_EP_CTRL,
		 "tcp: rail %u to peer %#x has not answered for %llu ms "
		 "(FI_WEFT_RAIL_TIMEOUT=%u): %llu bytes on it go over others",
		 rail, l->id, (unsigned long long)r->silence, rails_time_limit(),
		 (unsigned long long)bytes);
}

/*
 * Between two checks the process may have been stopped, or have computed: the time between them counts, but no single check
 * decides.
 */
static uint64_t tcp_rails_check_counted(uint64_t elapsed, uint64_t limit)
{
	uint64_t most = limit / 2 + limit % 2;

	return elapsed < most ? elapsed : most;
}

/* Checks one rail, `elapsed` ms after the last check. False: it leaves packets unanswered. */
static bool tcp_rails_check_rail(struct tcp_link *l, uint32_t rail, uint64_t elapsed,
				 uint32_t period)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	bool answers = !tcp_rails_check_unanswered(r, period);

	if (r->securing && l->tx != TCP_SECURING) {
		/* A further rail whose handshake takes long: it is to be made anew. */
		r->silence += tcp_rails_check_counted(elapsed, rails_time_limit());
		if (r->silence >= rails_time_limit())
			tcp_rails_end(l, rail, FI_ETIMEDOUT);
		return answers;
	}
	if (answers) {
		if (r->silent)
			LOG_INFO(LOG_EP_CTRL, "tcp: rail %u to peer %#x answers again", rail,
				 l->id);
		r->silence = 0;
		r->silent = false;
		return true;
	}
	r->silence += tcp_rails_check_counted(elapsed, rails_time_limit());
	/* The next look would be too late, and what was under way has to go again. */
	if (!r->silent && r->silence + 2ull * period >= rails_time_limit())
		set_silent(l, rail);
	return false;
}

/* Returns whether the peer answers over one of the rails, or there is none. Asks the engine for those that are missing or silent. */
static bool check_rails(struct tcp_link *l, uint64_t elapsed, uint32_t period)
{
	struct tcp_rail *fastest = NULL;
	bool any = false, answers = false;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		struct tcp_rail *r = &l->rails->rail[i];

		/* Behind what has come and was not read comes the end. A peer that has closed the link sends it no more. */
		if (r->broken && poll(&(struct pollfd){.fd = r->sock, .events = POLLIN}, 1, 0) != 1)
			tcp_rails_end(l, i, FI_ECONNRESET);
		any |= r->sock >= 0;
		answers |= r->sock >= 0 && tcp_rails_check_rail(l, i, elapsed, period);
		if (tcp_rails_usable(r) && (!fastest || r->rate > fastest->rate))
			fastest = r;
		if (i < l->rails->wanted && (r->sock < 0 || r->silent) && l->tx != TCP_SECURING)
			l->own->opener->events->rail_wanted(l->own->opener, l->id, i,
							    rails_time_limit());
	}
	if (fastest)
		fastest->most = UINT64_MAX;
	return answers || !any;
}

/* Closes windows that are not used, unless a rail, which may be silent, is in the middle of a chunk. */
static void tcp_rails_check_trim(struct tcp_link *l)
{
	struct tcp_rails *rails = l->rails;
	bool sends = false, receives = false;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		sends |= rails->rail[i].busy;
		receives |= rails->rail[i].have == sizeof(rails->rail[i].in);
	}
	if (!sends)
		tcp_window_trim(&rails->out);
	if (!receives)
		tcp_rails_trim_in(l);
	for (uint32_t i = 0; i < WIRE_RAILS_MAX && !rails->out.bytes; i++) {
		if (rails->rail[i].busy)
			continue;
		free(rails->rail[i].encrypted.bytes);
		rails->rail[i].encrypted = (struct tls_out){.bytes = NULL};
	}
}

/* Nothing was sent since the last check: what the windows hold is asked for, and given back. */
static void tcp_rails_check_rest(struct tcp_link *l)
{
	struct tcp_rails *rails = l->rails;
	struct tcp_window *out = &rails->out;

	if (rails->quiet == out->next && out->begin < out->next && rails->ask <= out->begin) {
		rails->ask = out->next;
		rails->ask_due = true;
	}
	rails->quiet = out->next;
	tcp_rails_check_trim(l);
}

static void check_link(struct tcp_link *l, uint64_t elapsed, uint32_t period)
{
	struct tcp_rails *rails = l->rails;
	uint64_t timeout =
		env_get()->peer_timeout > 0 ? (uint64_t)env_get()->peer_timeout : UINT64_MAX;

	if (check_rails(l, elapsed, period))
		rails->silence = 0;
	else
		rails->silence += tcp_rails_check_counted(elapsed, timeout);
	tcp_rails_name(l);
	tcp_rails_check_rest(l);
	tcp_rails_flush(l);
	if (l->sock < 0 && !l->own->opener->events->rail_coming(l->own->opener, l->id))
		tcp_fail(l, rails->err ? rails->err : FI_ECONNRESET);
	else if (rails->silence >= timeout)
		tcp_fail(l, FI_ETIMEDOUT);
}

void tcp_rails_poll(struct tcp *t, uint64_t now)
{
	uint32_t period = tcp_rails_period();
	uint64_t elapsed = now - t->looked_rails;

	if (now < t->next_rails)
		return;
	t->looked_rails = now;
	t->next_rails = now + period;
	LIST_EACH_OF (struct tcp_link, l, &t->links, in_state) {
		if (!l->rails || l->tx == TCP_FAILED)
			continue;
		TCP_OUTPUT_LOCKED(l);
		check_link(l, elapsed, period);
	}
}
