/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_mon_sampler: shows meanwhile which calls a process with FI_HOOK=monitor makes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "../src/hook/tally_page.h"

#define ROWS_MAX 4096
#define PAGE_MAX (sizeof(struct tally_page) + ROWS_MAX * sizeof(struct tally_row))

struct request {
	char folder[4000];
	double seconds; /* between two samples */
	long samples;   /* 0: until the process ends */
};

/*
 * A process, its page as it was read last, and the figures at the sample before. The file is not
 * mapped: a shorter one would end this process.
 */
struct sampled {
	int file, process; /* a descriptor of the process; -1: it has ended */
	struct tally_page *page;
	size_t bytes;
	struct tally *before;
};

static const struct option longopts[] = {
	{"help", no_argument, NULL, 'h'},
	{"directory", required_argument, NULL, 'd'},
	{"interval", required_argument, NULL, 'i'},
	{"samples", required_argument, NULL, 'n'},
	{NULL, 0, NULL, 0},
};

static int usage(FILE *out, int status)
{
	fputs("Usage: fi_mon_sampler [OPTIONS] [PID]\n"
	      "  -h, --help              this text\n"
	      "  -d, --directory=FOLDER  where the processes' files are (/dev/shm/ofi-UID)\n"
	      "  -i, --interval=SECONDS  time between two samples (1)\n"
	      "  -n, --samples=COUNT     samples to take (until the process ends)\n\n"
	      "Prints the calls that a process made between two samples, as comma separated\n"
	      "values. Without PID, lists the processes that can be sampled.\n",
	      out);
	return status;
}

/* ---- A process's file ------------------------------------------------------------------------- */

static bool read_page(const struct sampled *s)
{
	return pread(s->file, s->page, s->bytes, 0) == (ssize_t)s->bytes;
}

/* Is it a page as long as it says? */
static bool is_page(const struct tally_page *page, size_t bytes)
{
	return page->magic == TALLY_MAGIC && page->count <= ROWS_MAX &&
	       sizeof(*page) + page->count * sizeof(struct tally_row) <= bytes;
}

static const char *load(struct sampled *s)
{
	struct stat is;

	if (fstat(s->file, &is))
		return fi_strerror(errno);
	if (is.st_uid != geteuid() || !S_ISREG(is.st_mode))
		return "not a file of this user";
	if (is.st_size < (off_t)sizeof(struct tally_page) || is.st_size > (off_t)PAGE_MAX)
		return "not a file of FI_HOOK=monitor";
	s->bytes = (size_t)is.st_size;
	s->page = malloc(s->bytes);
	if (!s->page)
		return fi_strerror(ENOMEM);
	if (read_page(s) && is_page(s->page, s->bytes))
		return NULL;
	free(s->page);
	return "not a file of FI_HOOK=monitor";
}

/* Sets the descriptor of the process. Returns NULL, or why there is none. */
static const char *find_process(struct sampled *s)
{
	s->process = (int)syscall(SYS_pidfd_open, (pid_t)s->page->pid, 0);
	return s->process < 0 && errno != ESRCH ? fi_strerror(errno) : NULL;
}

/* Returns NULL, or why the process cannot be sampled. */
static const char *open_page(const char *folder, const char *pid, struct sampled *s)
{
	char path[4096];
	const char *why;

	if (snprintf(path, sizeof(path), "%s/%s", folder, pid) >= (int)sizeof(path))
		return fi_strerror(ENAMETOOLONG);
	s->file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (s->file < 0)
		return fi_strerror(errno);
	why = load(s);
	if (!why) {
		why = find_process(s);
		if (!why)
			return NULL;
		free(s->page);
	}
	close(s->file);
	return why;
}

static void close_page(const struct sampled *s)
{
	if (s->process >= 0)
		close(s->process);
	free(s->page);
	close(s->file);
}

/* Waits for the end of the process, `seconds` at most. Returns whether it goes on. */
static bool lives(const struct sampled *s, double seconds)
{
	struct pollfd process = {.fd = s->process, .events = POLLIN};
	struct timespec t = {0};

	if (seconds > 0) {
		t.tv_sec = (time_t)seconds;
		t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	}
	return s->process >= 0 && ppoll(&process, 1, &t, NULL) <= 0;
}

static int list(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct sampled s;

	if (!dir) {
		fprintf(stderr, "fi_mon_sampler: %s: %s\n", folder, fi_strerror(errno));
		return EXIT_FAILURE;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || open_page(folder, entry->d_name, &s))
			continue;
		printf("%s %.48s%s\n", entry->d_name, s.page->program,
		       lives(&s, 0) ? "" : " (ended)");
		close_page(&s);
	}
	closedir(dir);
	return EXIT_SUCCESS;
}

/* ---- Samples ---------------------------------------------------------------------------------- */

static uint64_t since(uint64_t now, uint64_t *before)
{
	uint64_t more = now - *before;

	*before = now;
	return more;
}

static void print_row(double seconds, const struct tally_row *row, struct tally *before)
{
	const struct tally *now = &row->tally;
	uint64_t calls = since(now->calls, &before->calls);
	uint64_t again = since(now->again, &before->again);
	uint64_t failed = since(now->failed, &before->failed);
	uint64_t bytes = since(now->bytes, &before->bytes);
	uint64_t ns = since(now->ns, &before->ns);

	if (calls)
		printf("%.3f,%.24s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
		       seconds, row->call, calls, again, failed, bytes, ns);
}

static double now_in_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Ends with the process, after one more sample. Returns whether the file was read each time. */
static bool sample(const struct request *r, struct sampled *s)
{
	double began = now_in_seconds(), next = began;
	uint32_t count = s->page->count;
	bool more = lives(s, 0);

	puts("seconds,call,calls,again,failed,bytes,ns");
	for (long left = r->samples;;) {
		if (!read_page(s))
			return false;
		for (uint32_t i = 0; i < count; i++)
			print_row(now_in_seconds() - began, &s->page->rows[i], &s->before[i]);
		fflush(stdout);
		if (!more || --left == 0)
			return true;
		next += r->seconds;
		more = lives(s, next - now_in_seconds());
	}
}

static int sample_process(const struct request *r, const char *pid)
{
	struct sampled s;
	const char *why = open_page(r->folder, pid, &s);
	bool whole;

	if (why) {
		fprintf(stderr, "fi_mon_sampler: %s/%s: %s\n", r->folder, pid, why);
		return EXIT_FAILURE;
	}
	s.before = calloc(s.page->count, sizeof(*s.before));
	if (!s.before) {
		fputs("fi_mon_sampler: out of memory\n", stderr);
		close_page(&s);
		return EXIT_FAILURE;
	}
	whole = sample(r, &s);
	if (!whole)
		fprintf(stderr, "fi_mon_sampler: %s/%s: the file has become shorter\n", r->folder,
			pid);
	free(s.before);
	close_page(&s);
	return whole ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- Options ---------------------------------------------------------------------------------- */

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Returns whether the option is good, or prints why not. */
static bool take_option(struct request *r, int option, const char *text)
{
	char *end;

	switch (option) {
	case 'd':
		if (strlen(text) < sizeof(r->folder)) {
			strcpy(r->folder, text);
			return true;
		}
		break;
	case 'i':
		r->seconds = strtod(text, &end);
		if (end != text && !*end && r->seconds >= 0.001 && r->seconds <= 1e6)
			return true;
		break;
	case 'n':
		r->samples = strtol(text, NULL, 10);
		if (is_number(text) && r->samples > 0 && r->samples < 1000000000)
			return true;
		break;
	default:
		return false;
	}
	fprintf(stderr, "fi_mon_sampler: -%c: \"%s\" is no good value\n", option, text);
	return false;
}

int main(int argc, char **argv)
{
	struct request r = {.seconds = 1};
	int option;

	snprintf(r.folder, sizeof(r.folder), TALLY_FOLDER, (unsigned int)geteuid());
	while ((option = getopt_long(argc, argv, "hd:i:n:", longopts, NULL)) != -1) {
		if (option == 'h')
			return usage(stdout, EXIT_SUCCESS);
		if (!take_option(&r, option, optarg))
			return usage(stderr, EXIT_FAILURE);
	}
	if (optind == argc)
		return list(r.folder);
	if (optind + 1 < argc || !is_number(argv[optind])) {
		fprintf(stderr, "fi_mon_sampler: \"%s\" is no process id\n", argv[argc - 1]);
		return usage(stderr, EXIT_FAILURE);
	}
	return sample_process(&r, argv[optind]);
}
