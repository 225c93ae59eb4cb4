/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports that the user of a program asks for: FI_WEFT_STATS, FI_WEFT_STATS_SIGNAL. weft-env(7). */
#include <fcntl.h>

#include "api.h"
#include "lib/side.h"

static char folder[64];

/* The path of the report of process `pid`. */
static const char *path_of(pid_t pid)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/report.%d", folder, (int)pid);
	return path;
}

/* Reports go to files of a new folder that rank 0 makes. */
static void begin(struct api *a)
{
	char pattern[128];
	char names[API_RANKS][sizeof(folder)];

	strcpy(folder, "/tmp/weft-reports-XXXXXX");
	if (!a->rank)
		CHECK(mkdtemp(folder));
	api_swap(a, folder, names, sizeof(folder));
	memcpy(folder, names[0], sizeof(folder));
	snprintf(pattern, sizeof(pattern), "%s/report.%%p", folder);
	setenv("FI_WEFT_STATS", pattern, 1);
}

/* Returns how often `what` is in the report of process `pid`. */
static unsigned int count_in(pid_t pid, const char *what)
{
	static char text[65536];
	unsigned int count = 0;
	int fd = open(path_of(pid), O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[len > 0 ? len : 0] = '\0';
	for (const char *at = text; (at = strstr(at, what)); at++)
		count++;
	return count;
}

static void end(pid_t pid)
{
	unlink(path_of(pid));
	rmdir(folder); /* the last one succeeds */
}

static const char *way(void)
{
	return api_networked() ? "\n    tcp: used\n" : "\n    shm: used\n";
}

static void talk(struct side *s)
{
	char byte = 1;

	if (s->a->rank) {
		POST(s, fi_send(s->ep, &byte, 1, NULL, s->addr[0], &byte));
		SENT(s, &byte, FI_MSG);
	} else {
		POST(s, fi_recv(s->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
		GOT(s, &byte, FI_MSG, 1);
	}
}

/* One report, of the endpoint as it was before it closed: its peer stays until then. */
static void closing(struct api *a)
{
	struct side s;
	char byte = 0;

	if (api_other())
		api_skip("no setting of another library");
	begin(a);
	side_open(&s, a, &(struct side_opts){0});
	talk(&s);
	CHECK_EQ(count_in(getpid(), "endpoint fi_"), 0);
	api_meet(a);
	if (a->rank)
		api_hear(a, 0, &byte, 1);
	side_close_alone(&s);
	CHECK_EQ(count_in(getpid(), "endpoint fi_"), 1);
	CHECK_EQ(count_in(getpid(), "\n  peer "), 1);
	if (!a->rank) {
		CHECK_EQ(count_in(getpid(), way()), 1);
		api_tell(a, 1, &byte, 1);
	}
	api_meet(a);
	end(getpid());
}

/* A process that exits with an open endpoint reports, too. */
static void exiting(struct api *a)
{
	pid_t pids[API_RANKS], mine = getpid();
	struct side s;

	if (api_other())
		api_skip("no setting of another library");
	begin(a);
	api_swap(a, &mine, pids, sizeof(mine));
	side_open(&s, a, &(struct side_opts){0});
	talk(&s);
	api_meet(a);
	if (a->rank)
		exit(0);
	while (!count_in(pids[1], way()))
		side_progress(&s);
	CHECK_EQ(count_in(pids[1], "endpoint fi_"), 1);
	end(pids[1]);
	side_close_alone(&s);
	end(mine);
}

static void poll_for(struct side *s, double seconds)
{
	for (double until = api_seconds() + seconds; api_seconds() < until;)
		side_progress(s);
}

/* Each signal makes one report, by a progress call. */
static void signals(struct api *a)
{
	struct side s;

	if (api_other())
		api_skip("no setting of another library");
	begin(a);
	side_open(&s, a, &(struct side_opts){0});
	for (unsigned int i = 1; i <= 3; i++) {
		OK(raise(SIGUSR2));
		CHECK_EQ(count_in(getpid(), "endpoint fi_"), i - 1);
		while (count_in(getpid(), "endpoint fi_") < i)
			side_progress(&s);
		poll_for(&s, 0.02);
		CHECK_EQ(count_in(getpid(), "endpoint fi_"), i);
	}
	side_close_alone(&s);
	end(getpid());
}

static unsigned int handled;

static void handle(int number)
{
	handled += number == SIGUSR2;
}

/* The program's own handler stays, and nothing is reported for its signal. */
static void own_handler(struct api *a)
{
	struct side s;

	if (api_other())
		api_skip("no setting of another library");
	begin(a);
	CHECK(signal(SIGUSR2, handle) != SIG_ERR);
	side_open(&s, a, &(struct side_opts){0});
	OK(raise(SIGUSR2));
	poll_for(&s, 0.02);
	CHECK_EQ(handled, 1);
	CHECK_EQ(count_in(getpid(), "endpoint fi_"), 0);
	side_close_alone(&s);
	end(getpid());
}

static const struct api_case cases[] = {
	{"closing", closing, 2, {NULL}},
	{"exiting", exiting, 2, {NULL}},
	{"signals", signals, 1, {"FI_WEFT_STATS_SIGNAL=USR2"}},
	{"own_handler", own_handler, 1, {"FI_WEFT_STATS_SIGNAL=SIGUSR2"}},
};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
