/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of a host, each of which sends a message to each other one:
 *
 *     everybody PROVIDER PROCESSES
 *
 * Prints lines "WHAT PROCESSES VALUE". WHAT is
 *     all           milliseconds from the first message until all have come to all
 *     pair          the same in microseconds, for each two processes
 *     descriptors   open in a process, what it had before left out
 *     private       kilobytes that a process has written since and shares with none
 * Processes that outnumber the cores give these away while nothing comes. Status 77: the provider is
 * not available. The same file runs on any libfabric.so.1 in LD_LIBRARY_PATH. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/mman.h>
#include "fabric.h"
#include "memory.h"

#define PROCESSES_MAX 256
#define FLEETS        5 /* all processes are started anew so many times */

/* State shared by the processes of a fleet. */
struct meeting {
	char name[PROCESSES_MAX][NAME_ROOM];
	int arrived;
	double ms[FLEETS];
	double descriptors, kb; /* of the first process */
};

static struct meeting *meeting;
static char *provider;
static int processes, fleet, met;
static bool crowded;
static fi_addr_t address[PROCESSES_MAX];
static char message[8] = "message", room[PROCESSES_MAX][sizeof message];
static struct fi_context2 sends[PROCESSES_MAX], receives[PROCESSES_MAX];
static int completed;

static void progress(void)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t count = fabric_read(entry, 16);

	completed += count > 0 ? (int)count : 0;
	if (crowded && count <= 0)
		sched_yield();
}

/* Waits until all have come here, the library being served meanwhile. */
static void meet(void)
{
	__atomic_add_fetch(&meeting->arrived, 1, __ATOMIC_SEQ_CST);
	for (met++; __atomic_load_n(&meeting->arrived, __ATOMIC_SEQ_CST) < met * processes;)
		progress();
}

static double descriptors(void)
{
	DIR *open_ones = opendir("/proc/self/fd");
	double count = 0;

	while (open_ones && readdir(open_ones))
		count++;
	closedir(open_ones);
	return count;
}

static void exchange(void)
{
	for (int i = 1; i < processes; i++)
		must(fi_recv(ep, room[i], sizeof room[i], NULL, FI_ADDR_UNSPEC, &receives[i]),
		     "fi_recv");
	meet();
	for (int i = 1; i < processes; i++) {
		fi_addr_t to = address[(side + i) % processes];
		ssize_t ret;

		while ((ret = fi_send(ep, message, sizeof message, NULL, to, &sends[i])) ==
		       -FI_EAGAIN)
			progress();
		must(ret, "fi_send");
	}
	while (completed < 2 * (processes - 1))
		progress();
	meet();
}

static void run(void)
{
	double before, had, start;

	fabric_descriptors(4 * (size_t)processes + 64);
	memset(address, 1, sizeof address);
	memset(room, 1, sizeof room);
	memset(sends, 1, sizeof sends);
	memset(receives, 1, sizeof receives);
	had = descriptors();
	before = memory_private();
	fabric_offered(fabric_find(fabric_hints(provider, FI_MSG, false)), "fi_getinfo");
	fabric_open();
	fabric_name(ep, meeting->name[side]);
	meet();
	for (int i = 0; i < processes; i++)
		address[i] = fabric_insert(meeting->name[i]);
	meet();
	start = microseconds();
	exchange();
	if (side == 0) {
		meeting->ms[fleet] = (microseconds() - start) / 1000;
		meeting->descriptors = descriptors() - had;
		meeting->kb = memory_private() - before;
	}
	meet();
	for (int i = 1; i < processes; i++)
		if (memcmp(room[i], message, sizeof message))
			pair_fail("wrong data received");
	fabric_close();
}

/* Returns the status of the first process that fails, or 0. */
static int run_fleet(void)
{
	pid_t pids[PROCESSES_MAX];

	meeting->arrived = 0;
	for (int i = 0; i < processes; i++) {
		pids[i] = pair_fork(i);
		if (!pids[i]) {
			run();
			exit(EXIT_SUCCESS);
		}
	}
	return pair_wait(pids, processes);
}

static void say(const char *what, double value)
{
	printf("%s %d %.4g\n", what, processes, value);
}

int main(int argc, char **argv)
{
	int fleets, failed = 0;
	double ms;

	processes = argc == 3 ? atoi(argv[2]) : 0;
	if (processes < 2 || processes > PROCESSES_MAX) {
		fputs("Usage: everybody PROVIDER PROCESSES\n", stderr);
		return EXIT_FAILURE;
	}
	provider = argv[1];
	crowded = processes > sysconf(_SC_NPROCESSORS_ONLN);
	fleets = processes <= 16 ? FLEETS : 1;
	meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (meeting == MAP_FAILED)
		pair_fail("no memory");
	for (fleet = 0; fleet < fleets && !failed; fleet++)
		failed = run_fleet();
	if (failed)
		return failed;
	ms = clock_median(meeting->ms, fleets);
	say("all", ms);
	say("pair", ms * 2000 / (processes * (processes - 1)));
	say("descriptors", meeting->descriptors);
	say("private", meeting->kb);
	return EXIT_SUCCESS;
}
