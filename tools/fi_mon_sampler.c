/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_mon_sampler: shows meanwhile which calls a process with FI_HOOK=monitor makes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "../src/hook/tally_page.h"

#define ROWS_MAX 4096

struct request {
	char folder[4000];
	double seconds; /* between two samples */
	long samples;   /* 0: until the process ends */
};

/* A process's page, and the figures at the sample before. */
struct sampled {
	const struct tally_page *page;
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

/* Is it a page of this user, and as long as it says? */
static bool is_page(const struct tally_page *page, size_t bytes)
{
	if (bytes < sizeof(*page) || __atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) != TALLY_MAGIC)
		return false;
	return page->count <= ROWS_MAX &&
	       sizeof(*page) + page->count * sizeof(struct tally_row) <= bytes;
}

static const char *map(int fd, struct sampled *s)
{
	struct stat is;
	void *at;

	if (fstat(fd, &is))
		return fi_strerror(errno);
	if (is.st_uid != geteuid() || !S_ISREG(is.st_mode))
		return "not a file of this user";
	if (is.st_size < (off_t)sizeof(struct tally_page))
		return "not a file of FI_HOOK=monitor";
	s->bytes = (size_t)is.st_size;
	at = mmap(NULL, s->bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return fi_strerror(errno);
	s->page = at;
	if (is_page(s->page, s->bytes))
		return NULL;
	munmap(at, s->bytes);
	return "not a file of FI_HOOK=monitor";
}

/* Returns NULL, or why the process cannot be sampled. */
static const char *open_page(const char *folder, const char *pid, struct sampled *s)
{
	char path[4096];
	const char *why;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", folder, pid) >= (int)sizeof(path))
		return fi_strerror(ENAMETOOLONG);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return fi_strerror(errno);
	why = map(fd, s);
	close(fd);
	return why;
}

static bool lives(const struct tally_page *page)
{
	return kill((pid_t)page->pid, 0) == 0 || errno != ESRCH;
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
		       lives(s.page) ? "" : " (ended)");
		munmap((void *)s.page, s.bytes);
	}
	closedir(dir);
	return EXIT_SUCCESS;
}

/* ---- Samples ---------------------------------------------------------------------------------- */

static uint64_t since(const uint64_t *now, uint64_t *before)
{
	uint64_t value = __atomic_load_n(now, __ATOMIC_RELAXED), more = value - *before;

	*before = value;
	return more;
}

static void print_row(double seconds, const struct tally_row *row, struct tally *before)
{
	const struct tally *now = &row->tally;
	uint64_t calls = since(&now->calls, &before->calls);
	uint64_t again = since(&now->again, &before->again);
	uint64_t failed = since(&now->failed, &before->failed);
	uint64_t bytes = since(&now->bytes, &before->bytes);
	uint64_t ns = since(&now->ns, &before->ns);

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

static void sleep_until(double seconds)
{
	struct timespec t = {.tv_sec = (time_t)seconds};

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Ends with the process, after one more sample. */
static void sample(const struct request *r, struct sampled *s)
{
	double began = now_in_seconds();
	uint32_t count = s->page->count;
	bool more = true;

	puts("seconds,call,calls,again,failed,bytes,ns");
	for (long taken = 0; more; taken++) {
		more = lives(s->page) && taken + 1 != r->samples;
		for (uint32_t i = 0; i < count; i++)
			print_row(now_in_seconds() - began, &s->page->rows[i], &s->before[i]);
		fflush(stdout);
		if (more)
			sleep_until(began + (double)(taken + 1) * r->seconds);
	}
}

static int sample_process(const struct request *r, const char *pid)
{
	struct sampled s;
	const char *why = open_page(r->folder, pid, &s);

	if (why) {
		fprintf(stderr, "fi_mon_sampler: %s/%s: %s\n", r->folder, pid, why);
		return EXIT_FAILURE;
	}
	s.before = calloc(s.page->count, sizeof(*s.before));
	if (!s.before) {
		fputs("fi_mon_sampler: out of memory\n", stderr);
		return EXIT_FAILURE;
	}
	sample(r, &s);
	free(s.before);
	munmap((void *)s.page, s.bytes);
	return EXIT_SUCCESS;
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
