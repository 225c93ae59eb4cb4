/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a dead peer's messages are received before its death is reported. A message stands in
 * the ring behind an unfinished one of another process, and its sender is killed. The receive
 * directed to this sender gets the message once it can be read; the next receive fails only then.
 * The sender's earlier write and atomic to our memory are done too.
 * HW=shm
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_ATOMIC)
#include "node.h"

#define KEY     17
#define LEN     3000 /* bytes of the unfinished message; its sender cannot read the second half */
#define ROUNDS  10
#define QUIET   100 /* ms in which no completion may come */
#define WAIT_MS 5000

static struct name reader_name, sender_name;
static int to_victim[2], to_sender[2];

static void stuck(int signal, siginfo_t *info, void *context)
{
	char word = 's';

	(void)signal, (void)info, (void)context;
	if (send(to_victim[1], &word, 1, MSG_NOSIGNAL) == 1)
		pause();
	_exit(EXIT_FAILURE);
}

static void send_whole(struct node *n, fi_addr_t to, const void *buf, size_t len)
{
	struct event e;
	ssize_t ret;

	while ((ret = fi_send(n->ep, buf, len, NULL, to, NULL)) == -FI_EAGAIN)
		node_poll(n, &e);
	must(ret, "fi_send");
	e = node_wait(n, WAIT_MS, "a send");
	must(-e.err, "a send");
}

/* Writes `word` to the first uint64 of the region and adds 1 to the second. */
static void change(struct node *n, fi_addr_t to, uint64_t word)
{
	const uint64_t one = 1;
	struct event e;
	ssize_t ret;

	while ((ret = fi_inject_write(n->ep, &word, sizeof(word), to, 0, KEY)) == -FI_EAGAIN)
		node_poll(n, &e);
	must(ret, "fi_inject_write");
	while ((ret = fi_inject_atomic(n->ep, &one, 1, to, sizeof(word), KEY, FI_UINT64, FI_SUM)) ==
	       -FI_EAGAIN)
		node_poll(n, &e);
	must(ret, "fi_inject_atomic");
}

/* Stops in the middle of writing its second message, until killed. */
static void victim(void *arg)
{
	struct sigaction sa = {.sa_sigaction = stuck, .sa_flags = SA_SIGINFO};
	unsigned char *pages =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct node n;
	fi_addr_t to;

	(void)arg;
	if (pages == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	node_open(&n, NULL);
	to = node_insert(&n, &reader_name);
	send_whole(&n, to, pages, 1);
	mprotect(pages + 4096, 4096, PROT_NONE);
	sigaction(SIGSEGV, &sa, NULL);
	hear(to_victim[1], &(char){0}, 1);
	fi_send(n.ep, pages + 4096 - LEN / 2, LEN, NULL, to, NULL);
	fail("the message was sent");
}

static void sender(void *arg)
{
	struct node n;
	fi_addr_t to;

	(void)arg;
	node_open(&n, NULL);
	sender_name = node_name(&n);
	tell(to_sender[1], &sender_name, sizeof(sender_name));
	to = node_insert(&n, &reader_name);
	send_whole(&n, to, "first", 5);
	hear(to_sender[1], &(char){0}, 1);
	change(&n, to, (uint64_t)getpid());
	send_whole(&n, to, "last", 4);
	tell(to_sender[1], "", 1);
	pause();
}

static void expect(struct node *n, void *context, const char *text, int err)
{
	struct event e = node_wait(n, WAIT_MS, text);

	if (e.context != context || e.err != err || (!err && memcmp(context, text, e.len) != 0))
		fail("instead of \"%s\" (%s) %zu bytes came: %s", text, fi_strerror(err), e.len,
		     fi_strerror(e.err));
}

static void one_round(struct node *n, const volatile uint64_t *words)
{
	uint64_t sum = words[1];
	static char any[LEN], first[8], last[8], never[8];
	uint64_t end;
	pid_t pids[2];
	fi_addr_t from;
	struct event e;

	wire(to_victim);
	wire(to_sender);
	must(fi_recv(n->ep, any, sizeof(any), NULL, FI_ADDR_UNSPEC, any), "fi_recv");
	pids[0] = start("victim", victim, NULL);
	expect(n, any, "\0", 0);
	pids[1] = start("sender", sender, NULL);
	hear(to_sender[0], &sender_name, sizeof(sender_name));
	from = node_insert(n, &sender_name);
	must(fi_recv(n->ep, first, sizeof(first), NULL, from, first), "fi_recv");
	expect(n, first, "first", 0);
	must(fi_recv(n->ep, last, sizeof(last), NULL, from, last), "fi_recv");
	must(fi_recv(n->ep, never, sizeof(never), NULL, from, never), "fi_recv");
	tell(to_victim[0], "", 1);
	hear(to_victim[0], &(char){0}, 1); /* the victim has begun to write */
	tell(to_sender[0], "", 1);
	hear(to_sender[0], &(char){0}, 1);
	slay(pids[1]);
	for (end = now_ms() + QUIET; now_ms() < end;)
		if (node_poll(n, &e))
			fail("a receive ends before what was sent to it can be read: %s",
			     fi_strerror(e.err));
	slay(pids[0]);
	expect(n, last, "last", 0);
	if (words[0] != (uint64_t)pids[1] || words[1] != sum + 1)
		fail("written: %llu, not %d; added: %llu, not 1", (unsigned long long)words[0],
		     (int)pids[1], (unsigned long long)(words[1] - sum));
	expect(n, never, "", FI_ECONNRESET);
	for (int i = 0; i < 2; i++) {
		close(to_victim[i]);
		close(to_sender[i]);
	}
}

static void reader(void *arg)
{
	static uint64_t words[2];
	struct fid_mr *mr;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	must(fi_mr_reg(n.domain, words, sizeof(words), FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
	     "fi_mr_reg");
	reader_name = node_name(&n);
	for (int i = 0; i < ROUNDS; i++)
		one_round(&n, words);
	must(fi_close(&mr->fid), "fi_close");
	node_close(&n);
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	finish(start("reader", reader, NULL), "reader");
	return EXIT_SUCCESS;
}
