/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes beside a hostile peer, and whether they go on. */
#ifndef FAULT_HOSTILE_CAST_H
#define FAULT_HOSTILE_CAST_H

#include "honest_endpoint.h"
#include "hello.h"

/*
 * What the endpoint may grow: what it owes one peer that does not read (128 MiB, WIRE_ANSWERS_MAX),
 * and half of that for the rest. A sanitizer keeps freed memory for a while.
 */
#ifndef __SANITIZE_ADDRESS__
#define BUDGET_KB (192 * 1024)
#else
#define BUDGET_KB (800 * 1024)
#endif
/* Descriptors of connections that are open, or whose end is not noticed yet. */
#define SPARE_FDS 260

static char done[4096]; /* names of the acts of this run */
static uint64_t seed;

static struct {
	pid_t pid;
	const char *name;
} cast[PEERS + 1];

/* Ends the test with the seed that repeats the run, and what processes have ended. */
static __attribute__((noreturn)) void give_up(const char *why)
{
	int status;

	usleep(10000); /* what ended one process may end others */
	fprintf(stderr, "%s\nSEED=%llu, acts:%s\n", why, (unsigned long long)seed, done);
	for (size_t i = 0; i < PEERS + 1; i++)
		if (waitpid(cast[i].pid, &status, WNOHANG) > 0)
			fprintf(stderr, "%s has ended with status %#x\n", cast[i].name,
				(unsigned int)status);
	exit(EXIT_FAILURE);
}

/* Have all processes gone on? Each says on stderr why it has not. */
static void check_alive(void)
{
	siginfo_t info = {0};

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid)
		give_up("a process has ended");
}

/* Each honest peer ends two operations while the hostile one still has its connections. */
static void check_progress(void)
{
	uint64_t before[PEERS], end = now_ms() + OP_MS;

	for (size_t i = 0; i < PEERS; i++)
		before[i] = seen(&scene->done[i]);
	for (size_t i = 0; i < PEERS; i++)
		while (seen(&scene->done[i]) < before[i] + 2) {
			check_alive();
			if (now_ms() > end)
				give_up("honest operations do not end");
			usleep(100);
		}
}

static void start_all(void)
{
	static unsigned int numbers[PEERS];

	cast[0].name = "the endpoint";
	cast[0].pid = start("endpoint", endpoint_process, NULL);
	for (unsigned int i = 0; i < PEERS; i++) {
		numbers[i] = i;
		cast[i + 1].name = "an honest peer";
		cast[i + 1].pid = start("honest peer", honest_peer, &numbers[i]);
	}
	await_word(&scene->ready, PEERS + 1, "the names");
}

static void come_late(void)
{
	pid_t pid = start("late peer", honest_late, NULL);
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		give_up("an honest peer that came later was not served");
}

/* Memory (kB) and descriptors of the endpoint: when its buffers had their sizes, and most. */
static long kb_before, kb_most;
static int fds_before;

static void measure(void)
{
	kb_before = kb_most = memory_of(cast[0].pid);
	fds_before = count_fds(cast[0].pid);
}

static void check_bounds(void)
{
	long kb = memory_of(cast[0].pid);

	kb_most = kb > kb_most ? kb : kb_most;
	if (kb > kb_before + BUDGET_KB)
		give_up("the endpoint has grown beyond its bound");
	if (count_fds(cast[0].pid) > fds_before + SPARE_FDS)
		give_up("the endpoint leaves descriptors open");
}

/* A listener that the endpoint can connect to, as the hostile peer's address. */
static inline int foe_listen(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET};
	bool shm = !strcmp(provider(), "shm");
	int sock = shm ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
		       : tcp_socket();
	socklen_t len = sizeof(in);
	int n = snprintf(scene->foe.bytes, sizeof(scene->foe.bytes), "foe-%d", (int)getpid());

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	n = snprintf(un.sun_path + 1, 100, "weft/%.*s", n, scene->foe.bytes);
	if (shm)
		len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	if (bind(sock, shm ? (struct sockaddr *)&un : (struct sockaddr *)&in, len) ||
	    listen(sock, 8))
		fail("no address for the hostile peer: %s", strerror(errno));
	scene->foe.len = strlen(scene->foe.bytes) + 1;
	if (shm)
		return sock;
	getsockname(sock, (struct sockaddr *)&in, &len);
	memcpy(scene->foe.bytes, &in, scene->foe.len = sizeof(in));
	fcntl(sock, F_SETFL, O_NONBLOCK);
	return sock;
}

static void finish_all(void)
{
	alarm(3 * OP_MS / 1000); /* nobody can make the endpoint's close wait */
	add(&scene->stop);
	for (unsigned int i = 1; i <= PEERS; i++) {
		finish(cast[i].pid, "an honest peer");
		add(&scene->peers_stopped);
	}
	finish(cast[0].pid, "the endpoint");
}

#endif
