/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that messages longer than the bounce buffer go through a pipe, with a rest copied by CMA.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "hw/shm/shm_bounce.h"

#include "shm_pair.h"

enum { LEN = SHM_BOUNCE_MAX + 1, LONG = 3 << 20, PIPE = SHM_PIPE_BYTES };

static unsigned char bytes[LONG + 64], copy[LONG + 64];
static const int batch;
static struct shm_link *s;
static struct shm_pipe *filled; /* the last one announced */

static void start(void)
{
	setup();
	s = join(0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 5 + (i >> 9));
}

static void finish(void)
{
	leave(s);
	teardown();
}

static int rts_iov(struct shm_link *to, const struct iovec *iov, size_t count,
		   struct fi_rma_iov *at)
{
	void *registered = NULL;
	int err = to->link.memory->reg(&to->link, PROTO_PIPE, iov, count, &batch, at, &registered);

	ck_assert_int_eq(!err, registered != NULL);
	filled = registered;
	return err;
}

static uint64_t announce(size_t at, size_t len)
{
	struct iovec iov = {bytes + at, len};
	struct fi_rma_iov where = {.key = 0};

	if (rts_iov(s, &iov, 1, &where))
		return 0;
	ck_assert_uint_eq(where.addr, (uintptr_t)iov.iov_base);
	ck_assert_uint_eq(where.len, len);
	ck_assert_uint_ne(where.key, 0);
	return where.key;
}

static void end(struct shm_link *link, struct shm_pipe *p)
{
	link->link.memory->dereg(&link->link, p);
}

static void end_rts(void)
{
	end(s, filled);
}

static int left(void)
{
	int count;

	ck_assert_int_eq(ioctl(filled->ends[0], FIONREAD, &count), 0);
	return count;
}

/* Fetches the first `room` bytes of a message of `len` bytes. */
static ssize_t fetch(size_t at, size_t len, size_t room, uint64_t key)
{
	struct iovec local = {copy, room}, remote = {bytes + at, len};

	memset(copy, 0, sizeof(copy));
	return shm_fetch(&s->link, &local, 1, &remote, 1, key);
}

static void fetches_all(size_t at, size_t len, uint64_t key)
{
	ck_assert_int_eq(fetch(at, len, len, key), (ssize_t)len);
	ck_assert_int_eq(memcmp(copy, bytes + at, len), 0);
	ck_assert_uint_eq(copy[len], 0);
}

/* Messages that begin and end anywhere in a page, all by the same pipe. */
START_TEST(every_length)
{
	static const size_t lens[] = {LEN, PIPE - 1, PIPE, PIPE + 1, LONG};
	uint64_t first = 0;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t at = 0; at < 34; at += 17) {
			uint64_t key = announce(at, lens[i]);

			if (!first)
				first = key;
			ck_assert_uint_eq(key, first);
			ck_assert_int_gt(left(), (int)LEN - 1);
			fetches_all(at, lens[i], key);
			ck_assert_int_eq(left(), 0);
			end_rts();
		}
}
END_TEST

START_TEST(segments)
{
	struct iovec iov[3] = {{bytes + 5, 300000}, {bytes + 400000, 1}, {bytes + 500000, PIPE}};
	struct iovec local[2] = {{copy, 299999}, {copy + 300000, LONG - 300000}}, remote[3];
	struct fi_rma_iov where[3];

	ck_assert_int_eq(rts_iov(s, iov, 3, where), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(where[i].len, iov[i].iov_len);
		remote[i] = (struct iovec){(void *)(uintptr_t)where[i].addr, where[i].len};
	}
	ck_assert_int_eq(shm_fetch(&s->link, local, 2, remote, 3, where[0].key), 300001 + PIPE);
	ck_assert_int_eq(memcmp(copy, bytes + 5, 299999), 0);
	ck_assert_uint_eq(copy[300000], bytes[5 + 299999]);
	ck_assert_uint_eq(copy[300001], bytes[400000]);
	ck_assert_int_eq(memcmp(copy + 300002, bytes + 500000, PIPE), 0);
	end_rts();
}
END_TEST

/*
 * Messages under way each have a pipe of their own, up to SHM_PIPES; a link uses its last pipe
 * again.
 */
START_TEST(all_at_once)
{
	struct shm_link *other = join(0);
	struct iovec iov = {bytes, PIPE};
	struct shm_pipe *pipes[SHM_PIPES];
	uint64_t keys[SHM_PIPES], others;
	struct fi_rma_iov at;

	for (unsigned int i = 0; i < SHM_PIPES; i++) {
		keys[i] = announce(i, PIPE);
		pipes[i] = filled;
		ck_assert_uint_ne(keys[i], 0);
		for (unsigned int k = 0; k < i; k++)
			ck_assert_uint_ne(keys[i], keys[k]);
	}
	ck_assert_uint_eq(announce(1, PIPE), 0);
	fetches_all(1, PIPE, 0);
	for (unsigned int i = SHM_PIPES; i-- > 0;) {
		fetches_all(i, PIPE, keys[i]);
		end(s, pipes[i]);
	}
	ck_assert_int_eq(rts_iov(other, &iov, 1, &at), 0);
	others = at.key;
	end(other, filled);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t key = announce(0, PIPE);

		ck_assert_uint_ne(key, others);
		fetches_all(0, PIPE, key);
		end_rts();
		ck_assert_uint_eq(key, keys[SHM_PIPES - 1]);
	}
	leave(other);
}
END_TEST

/* A short receive, or none: the rest is not taken for the next message's bytes. */
START_TEST(not_all_taken)
{
	uint64_t first = announce(0, PIPE), second, third;

	ck_assert_int_eq(fetch(0, PIPE, 1000, first), 1000);
	ck_assert_int_eq(memcmp(copy, bytes, 1000), 0);
	end_rts();
	second = announce(100, PIPE);
	ck_assert_uint_ne(second, first);
	fetches_all(100, PIPE, second);
	end_rts();
	third = announce(7, PIPE);
	ck_assert_uint_eq(third, second);
	end_rts();
	ck_assert_uint_ne(announce(8, PIPE), third);
	ck_assert_int_eq(fetch(7, PIPE, PIPE, third), -FI_ECONNRESET);
	ck_assert_int_eq(fetch(7, PIPE, PIPE, third), -FI_ECONNRESET);
	ck_assert_int_eq(fetch(7, PIPE, PIPE, first), -FI_ECONNRESET);
	ck_assert_int_ge(left(), PIPE - 4096);
	end_rts();
}
END_TEST

/* The sender recalls a message before or while the receiver takes it: the fetch fails. */
START_TEST(recalled)
{
	struct iovec local = {copy, PIPE};
	uint64_t key = announce(0, PIPE);

	end_rts();
	memset(bytes, 0xee, PIPE);
	ck_assert_int_eq(fetch(0, PIPE, PIPE, key), -FI_ECONNRESET);
	key = announce(0, PIPE);
	s->pipe.fd = dup(filled->ends[0]);
	s->pipe.key = key;
	end_rts();
	ck_assert_int_eq(fetch(0, PIPE, PIPE, key), -FI_ECONNRESET);
	ck_assert_uint_eq(s->pipe.key, 0);
	/* The rest of a partly taken message is dropped. */
	key = announce(0, PIPE);
	local.iov_len = 1;
	ck_assert_int_eq(shm_pipe_take(&s->pipe, getpid(), key, &local, 1), 1);
	ck_assert_uint_eq(s->pipe.key, 0);
	end_rts();
}
END_TEST

/* An ended message leaves no pages in a pipe that a peer has open. */
START_TEST(nothing_kept)
{
	uint64_t key = announce(0, PIPE);
	int fd = dup(filled->ends[0]), count;

	ck_assert_uint_ne(key, 0);
	end_rts();
	ck_assert_int_eq(ioctl(fd, FIONREAD, &count), 0);
	ck_assert_int_eq(count, 0);
	close(fd);
}
END_TEST

/* A receiver that never reads the pipes soon gets no more of them; one that reads does. */
START_TEST(not_taken)
{
	unsigned int given = 0;

	for (int i = 0; i < 20; i++) {
		uint64_t key = announce(0, PIPE);

		fetches_all(0, PIPE, key);
		end_rts();
	}
	while (given < 100 && announce(0, PIPE)) {
		given++;
		end_rts();
	}
	ck_assert_uint_ge(given, 1);
	ck_assert_uint_lt(given, 10);
	ck_assert_uint_eq(own->pipes.open, 0);
}
END_TEST

/* Unreadable memory is refused and keeps no pipe. */
START_TEST(refused)
{
	struct iovec iov = {mmap(NULL, PIPE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PIPE};
	struct fi_rma_iov at;

	ck_assert_ptr_ne(iov.iov_base, MAP_FAILED);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(rts_iov(s, &iov, 1, &at), -FI_ENOSYS);
	ck_assert_uint_eq(own->pipes.open, 0);
	munmap(iov.iov_base, PIPE);
}
END_TEST

/* A descriptor's number may name another file by now: the receiver does not read from it. */
START_TEST(another_file)
{
	uint64_t key = announce(0, PIPE);
	int number = filled->ends[0], other[2];
	char word[8];

	end_rts();
	ck_assert_int_eq(pipe(other), 0);
	ck_assert_int_eq(write(other[1], "secret", 7), 7);
	if (other[0] != number)
		ck_assert_int_eq(dup2(other[0], number), number);
	ck_assert_int_eq(fetch(0, PIPE, PIPE, key), -FI_ECONNRESET);
	ck_assert_int_eq(read(number, word, sizeof(word)), 7);
	ck_assert_str_eq(word, "secret");
	if (other[0] != number)
		close(number);
	close(other[0]);
	close(other[1]);
	ck_assert_int_eq(fetch(0, PIPE, PIPE, UINT64_MAX), -FI_ECONNRESET);
	ck_assert_int_eq(fetch(0, PIPE, PIPE, 1), -FI_ECONNRESET);
}
END_TEST

/* The sender makes the pipe wait for bytes that never come: the receiver does not. */
START_TEST(never_delivers)
{
	static char bin[PIPE];
	uint64_t key = announce(0, PIPE);

	ck_assert_int_eq(fcntl(filled->ends[0], F_SETFL, 0), 0);
	ck_assert_int_gt(read(filled->ends[0], bin, PIPE), 0);
	ck_assert_int_eq(left(), 0);
	fetches_all(0, PIPE, key);
	/* It does the same while the receiver has the pipe open. */
	ck_assert_int_eq(fcntl(filled->ends[0], F_SETFL, 0), 0);
	fetches_all(0, PIPE, key);
	end_rts();
}
END_TEST

/* What the sender names is a pipe in a file system, which may be of the sender's making. */
START_TEST(named_pipe)
{
	char path[] = "/tmp/weft-pipe-XXXXXX";
	struct stat st;
	int fd;

	ck_assert_ptr_ne(mkdtemp(path), NULL);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(write(fd, "ours", 4), 4);
	ck_assert_int_eq(fetch(0, PIPE, PIPE, (uint64_t)st.st_ino << 32 | ((uint32_t)fd + 1)),
			 -FI_ECONNRESET);
	close(fd);
}
END_TEST

/* Pipes use at most half of the user's limit of pipe buffers. */
START_TEST(quota)
{
	unsigned int count = 0;

	own->pipes.links = 3;
	own->pipes.allowed = (size_t)2 * 4 * 3 * PIPE;
	while (announce(count, PIPE))
		count++;
	ck_assert_uint_eq(count, 3);
	own->pipes.allowed = PIPE;
	own->pipes.links = 1;
}
END_TEST

/* No pipe can be made: one that is open and idle serves, although the link's last one has been closed. */
START_TEST(another_pipe)
{
	uint64_t first = announce(0, PIPE), last = announce(1, PIPE);
	struct rlimit files, few;

	ck_assert_uint_ne(last, 0);
	end_rts(); /* closes it: nobody has read it */
	fetches_all(0, PIPE, first);
	end(s, &own->pipes.pipe[0]);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	few = files;
	few.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	last = announce(2, PIPE);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	ck_assert_uint_eq(last, first);
	fetches_all(2, PIPE, last);
	end_rts();
}
END_TEST

/* Whatever a peer says which pipe it is: it is none. Under a sanitizer (make asan) no number overflows. */
START_TEST(any_key)
{
	static const uint32_t halves[] = {0, 1, INT32_MAX, 1u << 31, (1u << 31) + 1, UINT32_MAX};
	const size_t count = sizeof(halves) / sizeof(halves[0]);
	struct iovec iov = {copy, 1};
	struct shm_pipe_user u = {.key = 0};

	for (size_t high = 0; high < count; high++)
		for (size_t low = 0; low < count; low++) {
			uint64_t key = (uint64_t)halves[high] << 32 | halves[low];

			if (key)
				ck_assert_int_le(shm_pipe_take(&u, getpid(), key, &iov, 1), 0);
			ck_assert_uint_eq(u.key, 0);
		}
}
END_TEST

/* A peer that may not read our memory cannot get our descriptors either. */
START_TEST(no_access)
{
	pid_t pid = s->pid;

	s->pid = 0;
	ck_assert_uint_eq(announce(0, PIPE), 0);
	s->pid = pid;
}
END_TEST

/* Between processes: the owner announces a message, a child fetches it. */
static struct {
	uint64_t key;
	unsigned char *at;
} * reported;

static int fetching(int number)
{
	struct shm_link *l = join(number);
	struct iovec local = {copy, PIPE}, remote;

	for (int i = 1; i < 7; i += 2) {
		await_step(i);
		remote = (struct iovec){reported->at, PIPE};
		memset(copy, 0, sizeof(copy));
		EXPECT(shm_fetch(&l->link, &local, 1, &remote, 1, reported->key) == PIPE);
		EXPECT(copy[0] == i && copy[PIPE - 1] == i);
		next_step();
	}
	leave(l);
	return 0;
}

START_TEST(across)
{
	pid_t pid;

	reported = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(reported, MAP_FAILED);
	pid = child(fetching, 1);
	for (int i = 1; i < 7; i += 2) {
		memset(bytes + 9, i, PIPE);
		reported->at = bytes + 9;
		reported->key = announce(9, PIPE);
		ck_assert_uint_ne(reported->key, 0);
		next_step();
		await_step(i + 1);
		ck_assert_int_eq(left(), 0);
		end_rts();
	}
	ck_assert_int_eq(status_of(pid), 0);
	munmap(reported, 4096);
}
END_TEST

/* Returns whether the pipe of a process can be opened by its number. */
static bool have_pipes(void)
{
	char path[64];
	int fd, ends[2];

	if (pipe(ends))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), ends[0]);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	close(ends[0]);
	close(ends[1]);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int main(void)
{
	Suite *suite;
	TCase *tcase;

	if (!have_pipes()) {
		puts("no descriptors of other processes are to be had here");
		return 77;
	}
	suite = suite_create("hw_shm_pipe");
	tcase = tcase_create("pipe");
	tcase_add_checked_fixture(tcase, start, finish);
	tcase_set_timeout(tcase, LIMIT);
	tcase_add_test(tcase, every_length);
	tcase_add_test(tcase, segments);
	tcase_add_test(tcase, all_at_once);
	tcase_add_test(tcase, not_all_taken);
	tcase_add_test(tcase, recalled);
	tcase_add_test(tcase, nothing_kept);
	tcase_add_test(tcase, not_taken);
	tcase_add_test(tcase, refused);
	tcase_add_test(tcase, another_file);
	tcase_add_test(tcase, never_delivers);
	tcase_add_test(tcase, named_pipe);
	tcase_add_test(tcase, quota);
	tcase_add_test(tcase, another_pipe);
	tcase_add_test(tcase, any_key);
	tcase_add_test(tcase, no_access);
	tcase_add_test(tcase, across);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
