/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that good hellos are accepted and bad ones refused, over a pair of sockets. */
#include "fake_link.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "xfer/worker.h"
#include "conn/hello.h"

static int pair[2]; /* the client's end is [0] */
static int sent;    /* the descriptor that `say` sends */

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static struct wire_hello good(enum hello_kind kind)
{
	struct wire_hello hello = {.magic = WIRE_MAGIC,
				   .version = WIRE_VERSION,
				   .size = sizeof(hello),
				   .kind = kind,
				   .your_id = 7,
				   .incarnation = 8,
				   .name_format = FI_ADDR_STR,
				   .name = "fi_shm://me"};

	hello.name_len = (uint32_t)strlen(hello.name) + 1;
	return hello;
}

/* Sends these bytes with `fds` descriptors. */
static void say(const void *bytes, size_t len, unsigned int fds)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	char control[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct cmsghdr *c;
	int *at;

	if (fds) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fds * sizeof(int));
		at = (int *)CMSG_DATA(c);
		for (unsigned int i = 0; i < fds; i++)
			at[i] = sent;
	}
	ck_assert_int_eq(sendmsg(pair[0], &msg, 0), len);
}

static int send_ours(enum hello_kind kind, uint32_t id)
{
	return hello_send(&fake.worker->conn, pair[0], true,
			  &(struct hello_fields){.kind = kind, .id = id});
}

/* Checks that these bytes are refused with `err` and leave no descriptor open; a thread closes some. */
static void refused(const void *bytes, size_t len, unsigned int fds, int err)
{
	unsigned int before = count_fds();
	struct wire_hello hello;
	int in[WIRE_FDS];

	say(bytes, len, fds);
	ck_assert_int_eq(hello_recv(pair[1], true, &hello, in), err);
	while (count_fds() != before)
		usleep(1000);
}

static void setup(void)
{
	fake_open();
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	sent = memfd_create("ring", MFD_CLOEXEC);
	ck_assert_int_ge(sent, 0);
}

static void teardown(void)
{
	close(pair[0]);
	close(pair[1]);
	close(sent);
	fake_shut();
}

START_TEST(ours_arrives)
{
	const struct addr *mine = worker_name(fake.worker);
	struct wire_hello hello;
	struct addr name;
	int fds[WIRE_FDS];

	ck_assert_int_eq(hello_recv(pair[1], true, &hello, fds), 0);
	ck_assert_int_eq(send_ours(HELLO_CONNECT, 4711), 0);
	ck_assert_int_eq(hello_recv(pair[1], true, &hello, fds), 1);
	ck_assert_uint_eq(hello.kind, HELLO_CONNECT);
	ck_assert_uint_eq(hello.your_id, 4711);
	ck_assert_uint_eq(hello.incarnation, fake.worker->conn.incarnation);
	ck_assert_ptr_eq((void *)(uintptr_t)hello.cma_addr, &fake.worker->conn.cma_word);
	ck_assert_uint_eq(hello.cma_value, fake.worker->conn.cma_word);
	ck_assert_int_ge(fds[0], 0);
	ck_assert_int_eq(fcntl(fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_gt(fcntl(fds[0], F_GET_SEALS), 0); /* a ring that cannot shrink */
	hello_close_fds(fds);
	ck_assert_int_eq(hello_name(&hello, &name), 0);
	ck_assert(addr_equal(&name, mine));
	addr_free(&name);
	ck_assert_int_eq(hello_recv(pair[1], true, &hello, fds), 0);
}
END_TEST

START_TEST(crossed_brings_no_ring)
{
	struct wire_hello hello = good(HELLO_CROSSED);
	int fds[WIRE_FDS] = {99, 99};

	ck_assert_int_eq(send_ours(HELLO_CROSSED, 0), 0);
	ck_assert_int_eq(hello_recv(pair[1], true, &hello, fds), 1);
	ck_assert_uint_eq(hello.kind, HELLO_CROSSED);
	ck_assert_int_eq(fds[0], -1);
	ck_assert_int_eq(fds[1], -1);
	hello = good(HELLO_CROSSED);
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
}
END_TEST

/* A hello with descriptors that are no memory files counts as none, even if its kind brings none. */
START_TEST(other_files)
{
	struct wire_hello hello = good(_i);

	ck_assert_int_eq(dup2(STDERR_FILENO, sent), sent);
	for (unsigned int fds = 1; fds <= 8; fds++)
		refused(&hello, sizeof(hello), fds, -FI_EPROTO);
}
END_TEST

START_TEST(good_ones)
{
	for (enum hello_kind kind = HELLO_CONNECT; kind <= HELLO_ACCEPT; kind++) {
		struct wire_hello hello = good(kind), in;
		int fds[WIRE_FDS];

		say(&hello, sizeof(hello), 1);
		ck_assert_int_eq(hello_recv(pair[1], true, &in, fds), 1);
		ck_assert_mem_eq(&in, &hello, sizeof(in));
		ck_assert_int_ge(fds[0], 0);
		ck_assert_int_eq(fds[1], -1);
		close(fds[0]);
		say(&hello, sizeof(hello), 2);
		ck_assert_int_eq(hello_recv(pair[1], true, &in, fds), 1);
		ck_assert_int_ge(fds[0], 0);
		ck_assert_int_ge(fds[1], 0);
		hello_close_fds(fds);
		refused(&hello, sizeof(hello), 0, -FI_EPROTO); /* without a ring */
		refused(&hello, sizeof(hello), WIRE_FDS + 1, -FI_EPROTO);
		refused(&hello, sizeof(hello), 8, -FI_EPROTO);
	}
}
END_TEST

START_TEST(the_end)
{
	struct wire_hello hello;
	int fds[WIRE_FDS];

	close(pair[0]);
	ck_assert_int_eq(hello_recv(pair[1], true, &hello, fds), -FI_ECONNRESET);
}
END_TEST

/* Receives a hello while this process may open only `count` descriptors more. */
static int recv_with_room(unsigned int count, struct wire_hello *hello, int in[WIRE_FDS])
{
	struct rlimit most, limit;
	int next = dup(sent), ret;

	close(next);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &most), 0);
	limit = most;
	limit.rlim_cur = (rlim_t)next + count;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ret = hello_recv(pair[1], true, hello, in);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &most), 0);
	return ret;
}

/* The hello is good without its descriptors, so that its sender can be told to come again; one that found room is closed. */
START_TEST(no_room_for_descriptors)
{
	struct wire_hello hello = good(HELLO_CONNECT);
	unsigned int before = count_fds();
	int in[WIRE_FDS];

	say(&hello, sizeof(hello), WIRE_FDS);
	ck_assert_int_eq(recv_with_room((unsigned int)_i, &hello, in), 1);
	for (unsigned int i = 0; i < WIRE_FDS; i++)
		ck_assert_int_eq(in[i], -1);
	while (count_fds() != before)
		usleep(1000);
}
END_TEST

START_TEST(other_lengths)
{
	char longer[sizeof(struct wire_hello) + 1] = {0};
	struct wire_hello hello = good(HELLO_CONNECT);

	for (size_t len = 1; len < sizeof(hello); len++)
		refused(&hello, len, 1, -FI_EPROTO);
	memcpy(longer, &hello, sizeof(hello));
	refused(longer, sizeof(longer), 1, -FI_EPROTO);
}
END_TEST

START_TEST(other_versions)
{
	struct wire_hello hello = good(HELLO_CONNECT);

	hello.magic++;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello.magic = __builtin_bswap32(WIRE_MAGIC); /* the other byte order */
	hello.version = __builtin_bswap16(WIRE_VERSION);
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello = good(HELLO_CONNECT);
	hello.version++;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello = good(HELLO_CONNECT);
	hello.size--;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
}
END_TEST

START_TEST(other_kinds)
{
	struct wire_hello hello = good(HELLO_CONNECT);

	hello.kind = 0;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello.kind = HELLO_KINDS;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello.kind = UINT16_MAX;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
}
END_TEST

START_TEST(data_too_long)
{
	struct wire_hello hello = good(HELLO_REQUEST);

	hello.data_len = sizeof(hello.data) + 1;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello.data_len = UINT32_MAX;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
}
END_TEST

START_TEST(words_of_the_application)
{
	struct hello_fields words = {
		.kind = HELLO_REJECT, .error = FI_EBUSY, .data = "no, thanks", .data_len = 10};
	struct wire_hello hello;
	int fds[WIRE_FDS];

	/* Also without a worker. */
	ck_assert_int_eq(hello_send(NULL, pair[0], true, &words), 0);
	ck_assert_int_eq(hello_recv(pair[1], true, &hello, fds), 1);
	ck_assert_uint_eq(hello.kind, HELLO_REJECT);
	ck_assert_uint_eq(hello.error, FI_EBUSY);
	ck_assert_uint_eq(hello.data_len, 10);
	ck_assert_mem_eq(hello.data, "no, thanks", 10);
	ck_assert_int_eq(fds[0], -1);
}
END_TEST

/* On a stream a hello is read once complete, and no byte after it. */
START_TEST(in_fragments)
{
	struct wire_hello hello = good(HELLO_CONNECT), in;
	int stream[2], fds[WIRE_FDS];
	char behind;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, stream), 0);
	for (size_t at = 0; at < sizeof(hello); at += 8) {
		ck_assert_int_eq(hello_recv(stream[1], false, &in, fds), 0);
		ck_assert_int_eq(write(stream[0], (char *)&hello + at, 8), 8);
	}
	ck_assert_int_eq(write(stream[0], "x", 1), 1);
	ck_assert_int_eq(hello_recv(stream[1], false, &in, fds), 1);
	ck_assert_mem_eq(&in, &hello, sizeof(in));
	ck_assert_int_eq(read(stream[1], &behind, 1), 1);
	ck_assert_int_eq(behind, 'x');
	ck_assert_int_eq(hello_recv(stream[1], false, &in, fds), 0);
	ck_assert_int_eq(write(stream[0], &hello, sizeof(hello) / 2), sizeof(hello) / 2);
	close(stream[0]);
	ck_assert_int_eq(hello_recv(stream[1], false, &in, fds), -FI_EPROTO);
	close(stream[1]);
}
END_TEST

START_TEST(names)
{
	struct wire_hello hello = good(HELLO_CONNECT);
	struct addr name = {0};

	hello.name_len = sizeof(hello.name) + 1;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello.name_len = UINT32_MAX;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	hello = good(HELLO_CONNECT);
	memset(hello.name, 'x', sizeof(hello.name)); /* without a terminating NUL */
	hello.name_len = sizeof(hello.name);
	ck_assert_int_eq(hello_name(&hello, &name), -FI_EPROTO);
	hello = good(HELLO_CONNECT);
	hello.name_format = UINT32_MAX;
	ck_assert_int_eq(hello_name(&hello, &name), -FI_EPROTO);
	hello.name_format = FI_SOCKADDR_IN;
	hello.name_len = 3;
	ck_assert_int_eq(hello_name(&hello, &name), -FI_EPROTO);
	hello = good(HELLO_CONNECT);
	hello.name_len = 0;
	refused(&hello, sizeof(hello), 1, -FI_EPROTO);
	ck_assert_uint_eq(name.kind, ADDR_NONE);
}
END_TEST

START_TEST(a_full_socket)
{
	int err;

	while ((err = send_ours(HELLO_CONNECT, 1)) == 0)
		;
	ck_assert_int_eq(err, -FI_EAGAIN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_hello");
	TCase *all = tcase_create("hello");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, ours_arrives);
	tcase_add_test(all, crossed_brings_no_ring);
	tcase_add_loop_test(all, no_room_for_descriptors, 0, WIRE_FDS);
	tcase_add_loop_test(all, other_files, HELLO_CONNECT, HELLO_KINDS);
	tcase_add_test(all, good_ones);
	tcase_add_test(all, the_end);
	tcase_add_test(all, other_lengths);
	tcase_add_test(all, other_versions);
	tcase_add_test(all, other_kinds);
	tcase_add_test(all, data_too_long);
	tcase_add_test(all, words_of_the_application);
	tcase_add_test(all, in_fragments);
	tcase_add_test(all, names);
	tcase_add_test(all, a_full_socket);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
