/* SPDX-License-Identifier: BSD-2-Clause */
/* A timer that makes sleepers of a station go on with its attempts to connect. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "conn/conn_own.h"

void conn_timer_set(struct station *station, int ms)
{
	struct itimerspec when = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)STATION_HW << 32};

	conn_timer_clear(station);
	if (ms <= 0)
		return;
	station->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (station->timer < 0 || timerfd_settime(station->timer, 0, &when, NULL) ||
	    epoll_ctl(station->driven.fd, EPOLL_CTL_ADD, station->timer, &ev))
		LOG_WARN(LOG_EP_CTRL,
			 "no timer for a connection attempt: %s (ulimit -n limits descriptors)",
			 fi_strerror(errno));
}

void conn_timer_clear(struct station *station)
{
	if (station->timer < 0)
		return;
	/* A forked child has it open, too, so to close it does not end the watch. */
	epoll_ctl(station->driven.fd, EPOLL_CTL_DEL, station->timer, NULL);
	close(station->timer);
	station->timer = -1;
}
