/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process of the same user writes garbage, and swaps of good rows, into the table of a shared address vector, while its
 * owner inserts, removes, looks up, makes sets and sends to what it finds there. No call hangs or ends the owner, which then
 * closes all it has. A process that keeps the table's lock makes insertions fail.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/fi_collective.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "node.h"
#include "rng.h"

#define ROUNDS  3000
#define ENTRIES 200
#define WRITTEN 65536 /* bytes of the table's begin, where all rows of this test are */

static int ends[2];
static struct rng rng = {4711};

/* ---- Who writes ---- */

/* Opens the table as each process of the user can. */
static int open_table(pid_t pid)
{
	char folder[64], path[512], to[512];
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		ssize_t len;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		len = readlink(path, to, sizeof(to) - 1);
		to[len > 0 ? len : 0] = '\0';
		if (!strncmp(to, "/memfd:weft-av", strlen("/memfd:weft-av")))
			return open(path, O_RDWR | O_CLOEXEC);
	}
	fail("no shared address vector of process %d", (int)pid);
}

/* Words of garbage, small ones, or copies of others, to places of the head and of the rows. */
static void scribble(uint64_t *table)
{
	size_t words = WRITTEN / sizeof(*table), at = rng_below(&rng, (uint32_t)words);

	switch (rng_below(&rng, 4)) {
	case 0:
		table[at] = rng_next(&rng);
		break;
	case 1:
		table[at] = rng_below(&rng, 8);
		break;
	case 2:
		table[rng_below(&rng, 8)] = rng_bits(&rng, 64);
		break;
	default:
		table[at] = table[rng_below(&rng, (uint32_t)words)];
	}
}

static void writer(void *arg)
{
	int fd = open_table(getppid());
	struct stat is;
	uint64_t *table, *rows;
	size_t ids;

	(void)arg;
	fstat(fd, &is);
	table = mmap(NULL, (size_t)is.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (table == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	ids = 4096 + (sizeof(fi_addr_t) << 20); /* the rows follow those of so many entries */
	rows = table + ids / sizeof(*table);
	tell(ends[1], "", 1);
	for (;;) {
		scribble(table);
		scribble(rows);
	}
}

static void keeper(void *arg)
{
	int fd = open_table(getppid());

	(void)arg;
	if (flock(fd, LOCK_EX))
		fail("flock: %s", strerror(errno));
	tell(ends[1], "", 1);
	pause();
}

/* ---- The owner ---- */

static struct name made_up(const struct node *n, unsigned int number)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(1)};
	struct name name = {.len = sizeof(in)};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
	memcpy(name.bytes, &in, sizeof(in));
	if (n->info->addr_format == FI_ADDR_STR)
		snprintf(name.bytes, sizeof(name.bytes), "fi_shm://nobody/%u", number);
	return name;
}

static void share_vector(struct node *n)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	char name[64];

	snprintf(name, sizeof(name), "scribbled %d", (int)getpid());
	attr.name = name;
	must(fi_close(&n->av->fid), "fi_close");
	must(fi_av_open(n->domain, &attr, &n->av, NULL), "fi_av_open");
	node_bind(n);
}

static void use_set(struct node *n)
{
	struct fi_av_set_attr all = {.flags = FI_UNIVERSE};
	struct fid_av_set *set;

	if (!fi_av_set(n->av, &all, &set, NULL)) {
		fi_av_set_remove(set, rng_below(&rng, ENTRIES));
		fi_av_set_insert(set, rng_below(&rng, ENTRIES));
		must(fi_close(&set->fid), "fi_close of a set");
	}
}

static void use_vector(struct node *n, unsigned int round)
{
	fi_addr_t addr = rng_below(&rng, 2 * ENTRIES), inserted;
	struct name name = made_up(n, round % ENTRIES);
	char text[128], bytes[128];
	size_t len = sizeof(text);
	struct event e;

	fi_av_insert(n->av, name.bytes, 1, &inserted, 0, NULL);
	if (!fi_av_lookup(n->av, addr, bytes, &len) && len <= sizeof(bytes)) {
		len = sizeof(text);
		fi_av_straddr(n->av, bytes, text, &len);
	}
	fi_send(n->ep, "x", 1, NULL, addr, NULL);
	fi_inject(n->ep, "y", 1, addr);
	while (node_poll(n, &e))
		;
	if (round % 3 == 0)
		fi_av_remove(n->av, &addr, 1, 0);
	if (round % 64 == 0)
		use_set(n);
}

/* Starts who disturbs; returns once he does. */
static pid_t disturb(const char *name, void (*run)(void *arg))
{
	pid_t pid = start(name, run, NULL);

	hear(ends[0], &(char){0}, 1);
	return pid;
}

int main(void)
{
	struct name name;
	struct node n;
	pid_t pid;
	int ret;

	alarm(LIMIT);
	need_provider();
	setenv("FI_WEFT_ACCESS_TIMEOUT", "100", 1);
	wire(ends);
	node_create(&n, NULL);
	share_vector(&n);
	name = made_up(&n, ENTRIES);
	pid = disturb("keeper", keeper);
	ret = fi_av_insert(n.av, name.bytes, 1, NULL, 0, NULL);
	if (ret != -FI_EBUSY)
		fail("an insertion while another process has the lock: %d", ret);
	slay(pid);
	node_insert(&n, &name);
	pid = disturb("writer", writer);
	for (unsigned int i = 0; i < ROUNDS; i++)
		use_vector(&n, i);
	slay(pid);
	node_close(&n);
	return EXIT_SUCCESS;
}
