/* SPDX-License-Identifier: BSD-2-Clause */
/* A timer that makes sleepers of a worker go on with its attempts to connect. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "xfer/conn/conn_own.h"

void conn_timer_set(struct worker *worker, int ms)
{
	struct itimerspec when = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)WORKER_HW << 32};

	conn_timer_clear(worker);
	if (ms <= 0)
		return;
	worker->conn.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (worker->conn.timer < 0 || timerfd_settime(worker->conn.timer, 0, &when, NULL) ||
	    epoll_ctl(worker->conn.driven.fd, EPOLL_CTL_ADD, worker->conn.timer, &ev))
		LOG_WARN(LOG_EP_CTRL,
			 "no timer for a connection attempt: %s (ulimit -n limits descriptors)",
			 fi_strerror(errno));
}

void conn_timer_clear(struct worker *worker)
{
	if (worker->conn.timer < 0)
		return;
	/* A forked child has it open, too, so to close it does not end the watch. */
	epoll_ctl(worker->conn.driven.fd, EPOLL_CTL_DEL, worker->conn.timer, NULL);
	close(worker->conn.timer);
	worker->conn.timer = -1;
}
