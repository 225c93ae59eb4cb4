/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations of the buffers of long messages outlive the messages:
 *
 *	rdm_cache CASE IFACE IFACE
 *
 * Each side prints how many registrations of its buffers it has kept.
 */
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>

#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#define NODE_MR   (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY) /* without FI_MR_ALLOCATED */
#include "rdm_pair.h"

#include <pthread.h>
#include <stddef.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define LEN     100000 /* bytes of a message */
#define MAPPED  102400 /* bytes of the pages it lies in */
#define MANY    10
#define NUMBERS 4096

/* Writes the device's numbers of this process's registrations of LEN bytes. Returns their count. */
static int registrations(char numbers[NUMBERS])
{
	char line[512], length[32], owner[32], *number;
	FILE *list = popen("rdma resource show mr", "r");
	int count = 0;

	snprintf(length, sizeof(length), " mrlen %d ", LEN);
	snprintf(owner, sizeof(owner), " pid %d ", getpid());
	numbers[0] = 0;
	while (list && fgets(line, sizeof(line), list)) {
		if (!strstr(line, length) || !strstr(line, owner))
			continue;
		number = strstr(line, " mrn ");
		if (number && strlen(numbers) < NUMBERS - 32)
			sprintf(numbers + strlen(numbers), "%ld ", atol(number + 5));
		count++;
	}
	if (!list || pclose(list))
		fail("no list of registrations");
	return count;
}

static void say_kept(void)
{
	char numbers[NUMBERS];

	printf("%s: %d kept\n", who, registrations(numbers));
	fflush(stdout);
}

static unsigned char *map(void *at, int flags)
{
	unsigned char *mem = mmap(at, MAPPED, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED || (at && mem != at))
		fail("no memory at %p: %s", at, strerror(errno));
	return mem;
}

/* Sends message `which` from side 1 to side 0, with `buf` on either side. */
static void message(struct side *s, unsigned char *buf, unsigned int which)
{
	struct event e;

	if (side_number) {
		side_fill(buf, which, LEN);
		MUST(s->n.cq, fi_send(s->n.ep, buf, LEN, NULL, s->peer, buf));
	} else {
		memset(buf, 0, LEN);
		must(fi_recv(s->n.ep, buf, LEN, NULL, s->peer, buf), "fi_recv");
	}
	e = node_wait(&s->n, PATIENCE_MS, "a message");
	if (e.err)
		fail("message %u: %s", which, fi_strerror(e.err));
	if (!side_number)
		side_check(buf, which, LEN);
	side_meet(s);
}

static void end(struct side *s)
{
	side_meet(s);
	node_close(&s->n);
}

/* The same buffer repeatedly. */
static void again(struct side *s)
{
	unsigned char *buf = map(NULL, MAP_PRIVATE);
	char first[NUMBERS], last[NUMBERS];

	message(s, buf, 0);
	registrations(first);
	for (unsigned int i = 1; i < 6; i++)
		message(s, buf, i);
	registrations(last);
	say_kept();
	printf("%s: %s\n", who,
	       strcmp(first, last) ? "registered again" : "never registered again");
	end(s);
	munmap(buf, MAPPED);
}

static void many(struct side *s)
{
	unsigned char *buf[MANY];

	for (unsigned int i = 0; i < MANY; i++) {
		buf[i] = map(NULL, MAP_PRIVATE);
		message(s, buf[i], i);
	}
	for (unsigned int i = 0; i < MANY; i++)
		message(s, buf[i], MANY + i);
	say_kept();
	end(s);
}

/* Shared memory: changes by other processes are not reported. */
static void shared(struct side *s)
{
	unsigned char *buf = map(NULL, MAP_SHARED), *file;
	int fd = memfd_create("buffer", MFD_CLOEXEC);

	message(s, buf, 0);
	message(s, buf, 1);
	must(ftruncate(fd, MAPPED), "ftruncate");
	file = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	message(s, file, 2);
	must(ftruncate(fd, 0), "ftruncate");
	must(ftruncate(fd, MAPPED), "ftruncate");
	message(s, file, 3);
	say_kept();
	end(s);
}

/* ---- Other pages behind the same addresses --------------------------------------------------- */

static void by_unmapping(unsigned char *buf)
{
	munmap(buf, MAPPED);
	map(buf, MAP_PRIVATE | MAP_FIXED_NOREPLACE);
}

static void by_mapping_over(unsigned char *buf)
{
	map(buf, MAP_PRIVATE | MAP_FIXED);
}

static void by_discarding(unsigned char *buf)
{
	if (madvise(buf, MAPPED, MADV_DONTNEED))
		fail("madvise: %s", strerror(errno));
}

static void by_moving(unsigned char *buf)
{
	unsigned char *away = map(NULL, MAP_PRIVATE);

	if (mremap(buf, MAPPED, MAPPED, MREMAP_MAYMOVE | MREMAP_FIXED, away) != away)
		fail("mremap: %s", strerror(errno));
	map(buf, MAP_PRIVATE | MAP_FIXED_NOREPLACE);
	memset(away, 0xee, MAPPED);
}

static void by_one_page(unsigned char *buf)
{
	if (madvise(buf + 4 * 4096, 4096, MADV_DONTNEED))
		fail("madvise: %s", strerror(errno));
}

static void by_moving_in(unsigned char *buf)
{
	unsigned char *from = map(NULL, MAP_PRIVATE);

	memset(from, 0xdd, MAPPED);
	if (mremap(from, MAPPED, MAPPED, MREMAP_MAYMOVE | MREMAP_FIXED, buf) != buf)
		fail("mremap: %s", strerror(errno));
}

static void (*const changes[])(unsigned char *) = {
	by_unmapping, by_mapping_over, by_discarding, by_moving, by_one_page, by_moving_in,
};
#define CHANGES ((int)(sizeof(changes) / sizeof(changes[0])))

struct change {
	int which;
	unsigned char *buf;
};

static void *change(void *arg)
{
	const struct change *c = arg;

	changes[c->which](c->buf);
	return NULL;
}

/* Shrinks and grows the heap. */
static void change_heap(struct side *s)
{
	for (unsigned int i = 0; i < 3; i++) {
		unsigned char *buf = sbrk(MAPPED);

		message(s, buf, i);
		if (sbrk(0) == buf + MAPPED)
			sbrk(-MAPPED);
	}
}

static void changed(struct side *s)
{
	unsigned char *buf = map(NULL, MAP_PRIVATE);
	unsigned int which = 0;

	for (int i = 0; i < 2 * CHANGES; i++) {
		struct change c = {i / 2, buf};
		pthread_t thread;

		message(s, buf, which++);
		if (i % 2) {
			change(&c);
		} else {
			pthread_create(&thread, NULL, change, &c);
			pthread_join(thread, NULL);
		}
		message(s, buf, which++);
	}
	say_kept();
	change_heap(s);
	end(s);
}

/* Another thread maps and unmaps memory continuously. */
static bool stop;

static void *unrest(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		unsigned char *mem = map(NULL, MAP_PRIVATE);

		mem[0] = 1;
		munmap(mem, MAPPED);
		free(malloc(1 << 20));
		usleep(200);
	}
	return NULL;
}

static void busy(struct side *s)
{
	pthread_t thread;

	message(s, map(NULL, MAP_PRIVATE), 0);
	pthread_create(&thread, NULL, unrest, NULL);
	for (unsigned int i = 0; i < 15; i++) {
		unsigned char *buf = map(NULL, MAP_PRIVATE);

		message(s, buf, 2 * i);
		message(s, buf, 2 * i + 1);
		munmap(buf, MAPPED);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	end(s);
}

/* A region whose pages are replaced: writes reach the pages present at that time. */
static void bare(struct side *s)
{
	unsigned char *buf = map(NULL, MAP_PRIVATE);
	struct fi_rma_iov at = {(uintptr_t)buf, LEN, 0};
	volatile unsigned char *last = buf + LEN - 1;
	struct fid_mr *mr = NULL;
	struct event e;
	uint64_t until;

	message(s, map(NULL, MAP_PRIVATE), 0);
	if (side_number) {
		side_fill(buf, 1, LEN);
		hear(s->end, &at, sizeof(at));
		MUST(s->n.cq, fi_write(s->n.ep, buf, LEN, NULL, s->peer, at.addr, at.key, buf));
		e = node_wait(&s->n, PATIENCE_MS, "a write");
		if (e.err)
			fail("a write: %s", fi_strerror(e.err));
		tell(s->end, "", 1);
	} else {
		must(fi_mr_reg(s->n.domain, buf, LEN, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL),
		     "fi_mr_reg");
		at.key = fi_mr_key(mr);
		by_unmapping(buf);
		tell(s->end, &at, sizeof(at));
		side_serve(s);
		/* If sent as packets, the write may still be in flight. */
		until = now_ms() + 5000;
		while (*last != side_byte(1, LEN - 1) && now_ms() < until)
			node_poll(&s->n, &e);
		side_check(buf, 1, LEN);
		must(fi_close(&mr->fid), "fi_close");
	}
	end(s);
}

/* A child has a copy of all memory; its changes do not matter. */
static void child(struct side *s)
{
	unsigned char *buf = map(NULL, MAP_PRIVATE);
	int status;
	pid_t pid;

	message(s, buf, 0);
	pid = fork();
	if (!pid) {
		alarm(20);
		memset(buf, 0x77, MAPPED);
		munmap(buf, MAPPED);
		_exit(0);
	}
	message(s, buf, 1);
	if (waitpid(pid, &status, 0) != pid || status)
		fail("the child ended with %#x", status);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	message(s, buf, 2);
	by_unmapping(buf);
	message(s, buf, 3);
	say_kept();
	end(s);
	munmap(buf, MAPPED);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/* Makes the kernel refuse the system call, as container engines do. */
static void forbid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		fail("seccomp: %s", strerror(errno));
}

static void forbidden(struct side *s)
{
	forbid();
	again(s);
}

/* A memory monitor of the application. */
static struct tally {
	struct fid_mem_monitor fid; /* first: the library knows this part */
	int started, subscribed;    /* calls that have not been undone */
	int all;                    /* calls of subscribe */
	bool stale;                 /* result of valid: no */
} tally;

static int tally_start(struct fid_mem_monitor *fid)
{
	((struct tally *)fid)->started++;
	return 0;
}

static void tally_stop(struct fid_mem_monitor *fid)
{
	((struct tally *)fid)->started--;
}

static int tally_subscribe(struct fid_mem_monitor *fid, const void *addr, size_t len)
{
	(void)addr, (void)len;
	((struct tally *)fid)->subscribed++;
	((struct tally *)fid)->all++;
	return 0;
}

static void tally_unsubscribe(struct fid_mem_monitor *fid, const void *addr, size_t len)
{
	(void)addr, (void)len;
	((struct tally *)fid)->subscribed--;
}

static bool tally_valid(struct fid_mem_monitor *fid, const void *addr, size_t len)
{
	(void)addr, (void)len;
	return !((struct tally *)fid)->stale;
}

/* Memory is replaced, and only the application's monitor tells, by itself or when it is asked. */
static void imported(struct side *s)
{
	static struct fi_ops_mem_monitor ops = {sizeof(ops),     tally_start,       tally_stop,
						tally_subscribe, tally_unsubscribe, tally_valid};
	unsigned char *buf = map(NULL, MAP_PRIVATE);

	tally.fid.fid.fclass = FI_CLASS_MEM_MONITOR;
	tally.fid.export_ops = &ops;
	must(fi_import(FI_VERSION(2, 6), "mr_cache", NULL, 0, 0, &tally.fid.fid, NULL),
	     "fi_import");
	for (unsigned int i = 0; i < 8; i++) {
		message(s, buf, 2 * i);
		tally.stale = i % 2;
		if (!tally.stale)
			tally.fid.import_ops->notify(&tally.fid, buf + LEN / 2, 1);
		map(buf, MAP_PRIVATE | MAP_FIXED);
		message(s, buf, 2 * i + 1);
		tally.stale = false;
	}
	say_kept();
	if (fi_close(&tally.fid.fid) != -FI_EBUSY)
		fail("the monitor is closed while it is in use");
	end(s);
	if (tally.all < 9 || tally.started || tally.subscribed)
		fail("the monitor: %d of %d subscriptions are left, started %d", tally.subscribed,
		     tally.all, tally.started);
	must(fi_close(&tally.fid.fid), "fi_close");
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): the name of a function */
#define CASE(of)                                                                                   \
	{                                                                                          \
		.name = #of, .run = { of, of }                                                     \
	}
static const struct side_case cases[] = {
	CASE(again), CASE(many),  CASE(shared),    CASE(changed),  CASE(busy),
	CASE(bare),  CASE(child), CASE(forbidden), CASE(imported), {.name = NULL},
};

int main(int argc, char **argv)
{
	return side_main(cases, argc, argv);
}
