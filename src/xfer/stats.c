/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "xfer/worker.h"

#define PATH_MOST   4096
#define EXIT_WAIT   100 /* ms, at exit, for a thread that is in a call on the worker */
#define REPORT_MODE 0644

/* Taken within the domain's lock; at exit the other way round, but then without waiting. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list open_workers = {&open_workers, &open_workers}; /* struct worker.in_stats */

static unsigned int asked; /* atomic: signals that have come */
static int signal_number;  /* that our handler is for; 0: none */

static void on_signal(int number)
{
	(void)number;
	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
}

/* The signals that programs leave alone most often. */
static const struct {
	const char *name;
	int number;
} signals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"WINCH", SIGWINCH}};

/* Returns the number of the signal that FI_WEFT_STATS_SIGNAL names; 0: none, or no good one. */
static int wanted_signal(void)
{
	const char *name = env_get()->stats_signal;

	if (!name)
		return 0;
	if (!strncmp(name, "SIG", 3))
		name += 3;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!strcmp(name, signals[i].name))
			return signals[i].number;
	LOG_WARN(LOG_CORE, "FI_WEFT_STATS_SIGNAL=%s is ignored: use USR1, USR2, HUP or WINCH",
		 env_get()->stats_signal);
	return 0;
}

/* Handlers of the application stay: ours comes only where the default was. */
static void install(void)
{
	struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
	int number = wanted_signal();

	if (!number || sigaction(number, NULL, &old))
		return;
	if (old.sa_flags & SA_SIGINFO || old.sa_handler != SIG_DFL) {
		LOG_WARN(LOG_CORE,
			 "FI_WEFT_STATS_SIGNAL=%s is ignored: the program handles the signal "
			 "itself; choose another one",
			 env_get()->stats_signal);
		return;
	}
	if (!sigaction(number, &ours, NULL))
		signal_number = number;
}

static void uninstall(void)
{
	struct sigaction now, before = {.sa_handler = SIG_DFL};

	if (signal_number && !sigaction(signal_number, NULL, &now) && now.sa_handler == on_signal)
		sigaction(signal_number, &before, NULL);
}

/* Writes FI_WEFT_STATS with the process's number for each %p. False: it is too long. */
static bool expand(const char *pattern, char path[PATH_MOST])
{
	size_t len = 0;

	for (const char *c = pattern; *c && len < PATH_MOST; c++) {
		bool number = c[0] == '%' && c[1] == 'p';

		len += (size_t)snprintf(path + len, PATH_MOST - len, number ? "%d" : "%c",
					number ? (int)getpid() : *c);
		c += number;
	}
	return len < PATH_MOST;
}

/* Returns a descriptor to append reports to, or a negative error. */
static int open_file(void)
{
	const char *pattern = env_get()->stats;
	char path[PATH_MOST] = "";
	int fd = -1;

	if (!pattern)
		return dup(STDERR_FILENO);
	if (getauxval(AT_SECURE))
		errno = EACCES; /* the user has other rights than the program */
	else if (!expand(pattern, path))
		errno = ENAMETOOLONG;
	else
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, REPORT_MODE);
	if (fd >= 0)
		return fd;
	LOG_WARN(LOG_CORE, "FI_WEFT_STATS=%s: no file %s for a report: %s", pattern, path,
		 fi_strerror(errno));
	return -errno;
}

/* One write, so that reports of several processes in one file stay whole. */
static void write_report(struct worker *worker)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int fd = out ? open_file() : -1;

	if (out) {
		worker_report(worker, out);
		fclose(out);
	}
	if (fd >= 0) {
		if (text)
			file_write_all(fd, text, len);
		close(fd);
	}
	free(text);
}

void stats_opened(struct worker *worker)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	worker->stats_seen = __atomic_load_n(&asked, __ATOMIC_RELAXED);
	if (!env_get()->stats)
		return;
	pthread_mutex_lock(&open_lock);
	list_push(&open_workers, &worker->in_stats);
	pthread_mutex_unlock(&open_lock);
}

void stats_closing(struct worker *worker)
{
	if (list_empty(&worker->in_stats))
		return;
	pthread_mutex_lock(&open_lock);
	list_remove(&worker->in_stats);
	pthread_mutex_unlock(&open_lock);
	write_report(worker);
}

void stats_poll(struct worker *worker)
{
	unsigned int now = __atomic_load_n(&asked, __ATOMIC_RELAXED);

	if (worker->stats_seen == now)
		return;
	worker->stats_seen = now;
	write_report(worker);
}

/* Waits a bounded time: exit() may have come from a call on the worker, or another thread hang. */
static bool lock_shard(struct shard *shard)
{
	uint64_t end = clock_coarse_ms() + EXIT_WAIT;
	bool locked;

	while (!(locked = lock_try(&shard->lock)) && clock_coarse_ms() < end)
		usleep(1000);
	return locked;
}

/* The process ends with open endpoints. A forked child leaves its parent's alone. */
static __attribute__((destructor)) void stats_at_exit(void)
{
	uninstall();
	if (pthread_mutex_trylock(&open_lock))
		return;
	LIST_EACH (node, &open_workers) {
		struct worker *worker = LIST_ENTRY(node, struct worker, in_stats);
		struct shard *shard = __atomic_load_n(&worker->shard.shard, __ATOMIC_ACQUIRE);

		if (domain_foreign(worker->dom) || !lock_shard(shard))
			continue;
		write_report(worker);
		lock_give(&shard->lock);
	}
	pthread_mutex_unlock(&open_lock);
}
