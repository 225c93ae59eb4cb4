/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection, orderly or not: events on both sides, and the fate of pending
 * operations.
 */
#include <netinet/in.h>
#include <sys/wait.h>

#include "obj.h"
#include "lib/cm.h"

#define POSTED 4
#define LONG   (4u << 20) /* exceeds all buffers on the path */

static uint64_t words[2][POSTED];

static void post_all(struct cm_end *e, uint64_t *into)
{
	for (int i = 0; i < POSTED; i++)
		OK(fi_recv(e->ep, &into[i], 8, NULL, FI_ADDR_UNSPEC, &into[i]));
}

static void check_receives(struct cm_end *e, const uint64_t *into, int from)
{
	for (int i = from; i < POSTED; i++) {
		struct fi_cq_err_entry err = obj_error(e->cq);

		CHECK_EQ(err.err, FI_ECANCELED);
		CHECK_EQ((intptr_t)err.op_context, (intptr_t)&into[i]);
		CHECK_EQ(err.flags, FI_MSG | FI_RECV);
	}
}

static void check_cancelled(struct cm_end *e, const uint64_t *into)
{
	check_receives(e, into, 0);
}

/*
 * Checks that the receives and one send ended; a device reports them in any order. Returns the
 * error of the send.
 */
static int check_lost(struct cm_end *e, const uint64_t *into, const void *sent)
{
	struct fi_cq_err_entry err = obj_error(e->cq);
	int before = 0;

	for (; cm_bare() && before < POSTED && err.op_context != sent; before++) {
		CHECK_EQ((intptr_t)err.op_context, (intptr_t)&into[before]);
		err = obj_error(e->cq);
	}
	CHECK_EQ((intptr_t)err.op_context, (intptr_t)sent);
	CHECK_EQ(err.flags, FI_MSG | FI_SEND);
	check_receives(e, into, before);
	return err.err;
}

/* Checks that no second event comes, and that calls on the ended connection fail. */
static void check_over(struct cm *c, struct cm_end *e)
{
	size_t len = sizeof(struct sockaddr_in6);
	struct obj_name name = obj_name(&e->ep->fid);
	uint64_t word = 1;

	CHECK_EQ(fi_send(e->ep, &word, 8, NULL, 0, &word), -FI_ENOTCONN);
	if (!cm_bare()) { /* bare queue pairs have no tags, and flush receives posted later */
		CHECK_EQ(fi_tinject(e->ep, &word, 8, 0, 5), -FI_ENOTCONN);
		CHECK_EQ(fi_recv(e->ep, &word, 8, NULL, 0, &word), -FI_ENOTCONN);
		CHECK_EQ(fi_trecv(e->ep, &word, 8, NULL, 0, 5, 0, &word), -FI_ENOTCONN);
	}
	CHECK_EQ(fi_getpeer(e->ep, name.bytes, &len), -FI_ENOTCONN);
	CHECK_EQ(fi_connect(e->ep, name.bytes, NULL, 0), -FI_EINVAL);
	OK(fi_shutdown(e->ep, 0));
	SILENCE(c, e->eq);
	obj_quiet(e->cq, 5);
}

/*
 * fi_shutdown gives the caller an event too, and cancels its pending operations at once; a device
 * flushes them later.
 */
static void end_by_shutdown(struct api *a)
{
	struct fi_cq_tagged_entry unused;
	struct cm_end active, passive;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	for (int round = 0; round < 2; round++) {
		struct cm_end *one = round ? &active : &passive,
			      *other = round ? &passive : &active;

		cm_both(&c, &active, &passive);
		cm_talk(one, other);
		post_all(one, words[0]);
		post_all(other, words[1]);
		OK(fi_shutdown(one->ep, 0));
		if (!cm_bare())
			CHECK_EQ(fi_cq_read(one->cq, &unused, 1), -FI_EAVAIL);
		check_cancelled(one, words[0]);
		EVENT(&c, one->eq, FI_SHUTDOWN, &one->ep->fid);
		EVENT(&c, other->eq, FI_SHUTDOWN, &other->ep->fid);
		check_cancelled(other, words[1]);
		check_over(&c, one);
		check_over(&c, other);
		cm_close_end(&c, one);
		SILENCE(&c, other->eq);
		cm_close_end(&c, other);
	}
	cm_close(&c);
}

static void end_by_close(struct api *a)
{
	struct cm_end active, passive;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	for (int round = 0; round < 2; round++) {
		struct cm_end *one = round ? &active : &passive,
			      *other = round ? &passive : &active;

		cm_both(&c, &active, &passive);
		post_all(other, words[1]);
		cm_close_end(&c, one);
		EVENT(&c, other->eq, FI_SHUTDOWN, &other->ep->fid);
		check_cancelled(other, words[1]);
		check_over(&c, other);
		cm_close_end(&c, other);
	}
	cm_close(&c);
}

/* fi_shutdown during the connection attempt. */
static void end_of_attempt(struct api *a)
{
	struct cm_end active, passive;
	struct fi_info *request;
	struct obj_name to;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	to = obj_name(&c.pep->fid);
	cm_connect(&c, &active, &to);
	post_all(&active, words[0]);
	request = cm_request(&c);
	OK(fi_shutdown(active.ep, 0));
	check_cancelled(&active, words[0]);
	FAILURE(&c, &active, FI_ECANCELED);
	check_over(&c, &active);
	cm_end(&c, &passive, request);
	OK(fi_accept(passive.ep, NULL, 0));
	FAILURE(&c, &passive, FI_ECONNABORTED);
	fi_freeinfo(request);
	cm_close_both(&c, &active, &passive);
}

#define MESSAGES 200

static size_t length(int i)
{
	return 8 + (size_t)i * 37 % 400;
}

/*
 * All messages sent before the end are received, although the receiver reads nothing until the
 * connection has ended. Posted receives complete first; unexpected messages can still be received.
 */
static void last_words(struct api *a)
{
	static unsigned char in[MESSAGES][512], out[512];
	struct cm_end active, passive;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	for (int round = 0; round < 4; round++) {
		int posted = round < 2 ? MESSAGES : MESSAGES / 2;

		cm_both(&c, &active, &passive);
		for (int i = 0; i < posted; i++)
			OK(fi_recv(passive.ep, in[i], sizeof(in[i]), NULL, 0, in[i]));
		for (int i = 0; i < MESSAGES; i++) {
			memset(out, i, length(i));
			POST(active.cq, fi_inject(active.ep, out, length(i), 0));
		}
		if (round & 1)
			OK(fi_shutdown(active.ep, 0));
		cm_close_end(&c, &active);
		EVENT(&c, passive.eq, FI_SHUTDOWN, &passive.ep->fid);
		for (int i = 0; i < MESSAGES; i++) {
			if (i >= posted)
				OK(fi_recv(passive.ep, in[i], sizeof(in[i]), NULL, 0, in[i]));
			CHECK_EQ(obj_done(passive.cq, in[i]).len, length(i));
			memset(out, i, length(i));
			CHECK(!memcmp(in[i], out, length(i)));
		}
		check_over(&c, &passive);
		cm_close_end(&c, &passive);
	}
	cm_close(&c);
}

/* The same with a multi-receive buffer, which is released at the end. */
static void last_words_multi(struct api *a)
{
	static unsigned char in[1 << 16];
	struct fi_cq_tagged_entry e;
	struct cm_end active, passive;
	struct iovec iov = {in, sizeof(in)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = in};
	struct fi_cq_err_entry err;
	struct cm c;

	(void)a;
	cm_domain(&c, FI_MSG | FI_MULTI_RECV, NULL);
	cm_both(&c, &active, &passive);
	for (uint64_t i = 0; i < 10; i++)
		POST(active.cq, fi_inject(active.ep, &i, sizeof(i), 0));
	cm_close_end(&c, &active);
	EVENT(&c, passive.eq, FI_SHUTDOWN, &passive.ep->fid);
	OK(fi_recvmsg(passive.ep, &msg, FI_MULTI_RECV));
	for (uint64_t i = 0; i < 10; i++) {
		e = obj_next(passive.cq, NULL);
		CHECK_EQ(e.len, 8);
		CHECK_EQ(*(uint64_t *)e.buf, i);
	}
	err = obj_error(passive.cq);
	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK_EQ((intptr_t)err.op_context, (intptr_t)in);
	CHECK(err.flags & FI_MULTI_RECV);
	CHECK_EQ(fi_recvmsg(passive.ep, &msg, FI_MULTI_RECV), -FI_ENOTCONN);
	cm_close_end(&c, &passive);
	cm_close(&c);
}

/* Closing an endpoint discards its unread events. */
static void unread(struct api *a)
{
	struct cm_end active, passive;
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	cm_both(&c, &active, &passive);
	OK(fi_shutdown(active.ep, 0));
	CLOSE(active.ep);
	active.ep = NULL;
	SILENCE(&c, active.eq);
	OBJ_UNTIL(fi_send(passive.ep, NULL, 0, NULL, 0, NULL) == -FI_ENOTCONN, cm_progress(&c));
	CLOSE(passive.ep);
	passive.ep = NULL;
	SILENCE(&c, passive.eq);
	cm_close_both(&c, &active, &passive);
}

/* A long message that was not received completely: its send ends with an error. */
static void under_way(struct api *a)
{
	static unsigned char out[LONG];
	struct cm_end active, passive;
	struct cm c;
	int err;

	(void)a;
	cm_domain(&c, 0, NULL);
	for (int round = 0; round < 2; round++) {
		cm_both(&c, &active, &passive);
		POST(active.cq, fi_send(active.ep, out, LONG, NULL, 0, out));
		post_all(&active, words[0]);
		obj_quiet(active.cq, 20);
		if (round)
			OK(fi_shutdown(passive.ep, 0));
		cm_close_end(&c, &passive);
		EVENT(&c, active.eq, FI_SHUTDOWN, &active.ep->fid);
		err = check_lost(&active, words[0], out);
		CHECK(err == FI_ESHUTDOWN || err == FI_ECONNRESET ||
		      (cm_bare() && err == FI_ECANCELED));
		check_over(&c, &active);
		cm_close_end(&c, &active);
	}
	cm_close(&c);
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

/* A process that connects to the passive endpoint `to` and waits to be killed. */
static __attribute__((noreturn)) void victim(const struct obj_name *to)
{
	static uint64_t word = 42;
	struct cm_end e;
	struct cm c;

	cm_domain(&c, 0, NULL);
	cm_connect(&c, &e, to);
	EVENT(&c, e.eq, FI_CONNECTED, &e.ep->fid);
	POST(e.cq, fi_inject(e.ep, &word, sizeof(word), 0));
	for (;;)
		fi_cq_read(e.cq, NULL, 0);
}

/* Forks the victim before the library is used here. Its address is sent to it later. */
static pid_t start_victim(int *tell)
{
	struct obj_name to;
	int ends[2];
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		CHECK(read(ends[0], &to, sizeof(to)) == sizeof(to));
		victim(&to);
	}
	close(ends[0]);
	*tell = ends[1];
	return pid;
}

static void kill_victim(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* The peer dies while idle, and with a long message to it in flight. */
static void killed(struct api *a)
{
	static unsigned char out[LONG];
	uint64_t heard = 0;
	struct obj_name name;
	struct cm_end e;
	struct cm c;
	pid_t pid;
	int tell;

	(void)a;
	pid = start_victim(&tell);
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	CHECK(write(tell, &name, sizeof(name)) == sizeof(name));
	cm_accept(&c, &e, cm_request(&c));
	OK(fi_recv(e.ep, &heard, 8, NULL, 0, &heard));
	obj_done(e.cq, &heard);
	CHECK_EQ(heard, 42);
	post_all(&e, words[0]);
	OK(fi_send(e.ep, out, LONG, NULL, 0, out));
	kill_victim(pid);
	EVENT(&c, e.eq, FI_SHUTDOWN, &e.ep->fid);
	check_lost(&e, words[0], out);
	check_over(&c, &e);
	cm_close_end(&c, &e);
	cm_close(&c);
	close(tell);
}

/* The peer dies while its request waits for an answer. */
static void killed_early(struct api *a)
{
	struct fi_info *request;
	struct obj_name name;
	struct cm_end e;
	struct cm c;
	pid_t pid;
	int tell;

	(void)a;
	pid = start_victim(&tell);
	cm_domain(&c, 0, NULL);
	cm_listen(&c);
	name = obj_name(&c.pep->fid);
	CHECK(write(tell, &name, sizeof(name)) == sizeof(name));
	request = cm_request(&c);
	kill_victim(pid);
	cm_end(&c, &e, request);
	OK(fi_accept(e.ep, NULL, 0));
	FAILURE(&c, &e, FI_ECONNABORTED);
	fi_freeinfo(request);
	cm_close_end(&c, &e);
	cm_close(&c);
	close(tell);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"shutdown", end_by_shutdown, 1, {0}},
		{"close", end_by_close, 1, {0}},
		{"attempt", end_of_attempt, 1, {0}},
		{"last-words", last_words, 1, {0}},
		{"last-words-multi", last_words_multi, 1, {0}},
		{"unread", unread, 1, {0}},
		{"under-way", under_way, 1, {0}},
		{"killed", killed, 1, {0}},
		{"killed-early", killed_early, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
