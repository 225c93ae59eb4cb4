/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/stats.h"

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
#include "base/forked.h"
#include "base/log.h"
#include "xfer/worker.h"

#define PATH_MOST 4096
#define EXIT_WAIT 100 /* ms, at exit, for a thread that is in a call on the worker */

/*
 * struct worker.in_stats. Guarded by FORKED_STATS, which is taken within the domain's lock; at exit the other way round, but
 * then without waiting.
 */
static struct list open_workers = {&open_workers, &open_workers};

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

	if (!name || !*name)
		return 0;
	if (getauxval(AT_SECURE)) {
		LOG_WARN(LOG_CORE,
			 "FI_WEFT_STATS_SIGNAL=%s is ignored: the program runs with raised rights",
			 name);
		return 0;
	}
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
static void install_handler(void)
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

/* The handler's code may go away. A signal that comes too late must not end the process. */
static void uninstall_handler(void)
{
	struct sigaction now, ignore = {.sa_handler = SIG_IGN};

	if (signal_number && !sigaction(signal_number, NULL, &now) && now.sa_handler == on_signal)
		sigaction(signal_number, &ignore, NULL);
}

/* The workers are the parent's, which reports on them. */
static void stats_in_child(void)
{
	list_init(&open_workers);
}

static void stats_install(void)
{
	pthread_atfork(NULL, NULL, stats_in_child);
	install_handler();
}

/* FI_WEFT_STATS; NULL: it is not set, or empty. */
static const char *wanted_file(void)
{
	const char *pattern = env_get()->stats;

	return pattern && *pattern ? pattern : NULL;
}

/* Writes FI_WEFT_STATS with the process's number for each %p. False: it is too long. */
static bool stats_expand(const char *pattern, char path[PATH_MOST])
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
static int stats_open_file(void)
{
	const char *pattern = wanted_file();
	char path[PATH_MOST] = "";
	int fd;

	if (!pattern)
		return dup(STDERR_FILENO);
	if (getauxval(AT_SECURE))
		fd = -EACCES; /* the user has other rights than the program */
	else if (!stats_expand(pattern, path))
		fd = -ENAMETOOLONG;
	else
		fd = file_open_own(path, O_WRONLY | O_APPEND);
	if (fd < 0)
		LOG_WARN(LOG_CORE, "FI_WEFT_STATS=%s: no file %s for a report: %s", pattern, path,
			 fi_strerror(-fd));
	return fd;
}

/* Frees the text, which may be NULL. One write, so that reports of several processes in one file stay whole. */
static void stats_write_text(char *text, size_t len)
{
	const char *pattern = wanted_file();
	int fd = text ? stats_open_file() : -1;
	int err = fd < 0 ? 0 : file_write_all(fd, text, len);

	if (err)
		LOG_WARN(LOG_CORE, "FI_WEFT_STATS=%s: a report of %zu bytes is lost: %s",
			 pattern ? pattern : "(standard error)", len, fi_strerror(-err));
	if (fd >= 0)
		close(fd);
	free(text);
}

/* Returns what `report` writes of the worker, for free(), and its length; NULL: no memory. */
static char *text_of(struct worker *worker, void (*report)(struct worker *worker, FILE *out),
		     size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	if (!out)
		return NULL;
	report(worker, out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static void write_report(struct worker *worker)
{
	size_t len;
	char *text = text_of(worker, worker_report, &len);

	stats_write_text(text, len);
}

void stats_opened(struct worker *worker)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, stats_install);
	worker->stats_seen = __atomic_load_n(&asked, __ATOMIC_RELAXED);
	if (!wanted_file())
		return;
	forked_take(FORKED_STATS);
	list_push(&open_workers, &worker->in_stats);
	forked_give(FORKED_STATS);
}

void stats_closing(struct worker *worker)
{
	if (list_empty(&worker->in_stats))
		return;
	forked_take(FORKED_STATS);
	list_remove(&worker->in_stats);
	forked_give(FORKED_STATS);
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

/*
 * As shard_take, but waits a bounded time: exit() may have come from a call on the worker, or another
 * thread hang. Returns the shard that it has locked, or NULL.
 */
static struct shard *lock_shard(const struct sharded *x)
{
	uint64_t end = clock_coarse_ms() + EXIT_WAIT;

	do {
		struct shard *shard = __atomic_load_n(&x->shard, __ATOMIC_ACQUIRE);

		if (lock_try(&shard->lock)) {
			if (__atomic_load_n(&x->shard, __ATOMIC_RELAXED) == shard)
				return shard;
			lock_give(&shard->lock);
		}
		usleep(1000);
	} while (clock_coarse_ms() < end);
	return NULL;
}

/* No lock keeps the thread of an `unlocked` domain from the lists of the worker. */
static void report_without_peers(struct worker *worker, FILE *out)
{
	worker_report_head(worker, out);
	fputs("  peers are not told at exit with FI_THREAD_DOMAIN: close the endpoint\n", out);
}

static void report_at_exit(struct worker *worker)
{
	struct shard *shard = lock_shard(&worker->conn.driven.shard);
	size_t len;
	char *text;

	if (!shard)
		return;
	text = text_of(worker,
		       worker->conn.driven.dom->unlocked ? report_without_peers : worker_report,
		       &len);
	lock_give(&shard->lock);
	stats_write_text(text, len);
}

/* The process ends with open endpoints. */
static __attribute__((destructor)) void stats_at_exit(void)
{
	uninstall_handler();
	if (!forked_try(FORKED_STATS))
		return;
	LIST_EACH (node, &open_workers)
		report_at_exit(LIST_ENTRY(node, struct worker, in_stats));
	forked_give(FORKED_STATS);
}
