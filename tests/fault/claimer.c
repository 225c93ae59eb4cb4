/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a sender that dies in the middle of fi_send does not stall others. Victims stop while
 * their message is copied to the ring: its buffer ends in an unreadable page. They die in any
 * order; one that goes on delivers its message whole, and so does a live sender.
 */
#include <sys/mman.h>

#include "node.h"

#define ROUNDS  60
#define VICTIMS 3
#define BATCH   20                  /* messages of the live sender after each victim's */
#define LEN     3000                /* bytes of a victim's message; the second half is unreadable */
#define VICTIM  (UINT64_C(1) << 32) /* in CQ data: from a victim */

static struct name reader_name;
static int to_reader[2], to_live[2], to_victim[VICTIMS][2];

/* ---- Victims ---- */

static unsigned char *pages;
static int my_end;

/* SIGSEGV in the middle of the copy: waits until told to go on, or killed. */
static void stuck(int signal, siginfo_t *info, void *context)
{
	char word = 's';

	(void)signal, (void)info, (void)context;
	if (send(my_end, &word, 1, MSG_NOSIGNAL) != 1 || recv(my_end, &word, 1, 0) != 1)
		_exit(EXIT_FAILURE);
	mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE);
}

static void send_data(struct node *n, fi_addr_t to, const void *buf, size_t len, uint64_t data)
{
	struct event e;
	ssize_t ret;

	while ((ret = fi_senddata(n->ep, buf, len, NULL, data, to, NULL)) == -FI_EAGAIN)
		node_poll(n, &e);
	must(ret, "fi_senddata");
}

static void await_send(struct node *n)
{
	struct event e = node_wait(n, 5000, "a send");

	if (e.err)
		fail("a send ended with %s", fi_strerror(e.err));
}

static void victim(void *arg)
{
	struct sigaction sa = {.sa_sigaction = stuck, .sa_flags = SA_SIGINFO};
	uint64_t which = *(int *)arg;
	unsigned char *buf;
	fi_addr_t to;
	struct node n;

	my_end = to_victim[which][1];
	pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	memset(pages, (int)which + 1, 8192);
	buf = pages + 4096 - LEN / 2;
	node_open(&n, NULL);
	to = node_insert(&n, &reader_name);
	/* The first message connects. */
	send_data(&n, to, buf, LEN, VICTIM | which);
	await_send(&n);
	mprotect(pages + 4096, 4096, PROT_NONE);
	sigaction(SIGSEGV, &sa, NULL);
	tell(my_end, "", 1);
	hear(my_end, &(char){0}, 1);
	send_data(&n, to, buf, LEN, VICTIM | which);
	await_send(&n);
	node_close(&n);
}

/* ---- The live sender sends a batch whenever told ---- */

static void live(void *arg)
{
	uint64_t number = 0;
	fi_addr_t to;
	struct node n;
	char word;

	(void)arg;
	close(to_live[0]);
	close(to_reader[0]);
	node_open(&n, NULL);
	to = node_insert(&n, &reader_name);
	while (recv(to_live[1], &word, 1, 0) == 1) {
		for (int i = 0; i < BATCH; i++) {
			send_data(&n, to, &number, sizeof(number), number);
			await_send(&n);
			number++;
		}
		tell(to_live[1], &word, 1);
	}
	node_close(&n);
}

/* ---- The reader counts messages ---- */

struct count {
	uint64_t live, victims;
};

static void take(struct node *n, const struct event *e, struct count *c)
{
	const unsigned char *buf = e->context;

	if (e->err)
		fail("a receive ended with %s", fi_strerror(e->err));
	if (e->data & VICTIM) {
		for (size_t i = 0; i < LEN; i++)
			if (e->len != LEN || buf[i] != (e->data & 0xff) + 1)
				fail("message of a victim: byte %zu of %zu differs", i, e->len);
		c->victims++;
	} else {
		if (e->data != c->live || e->len != 8 || memcmp(buf, &e->data, 8))
			fail("message %llu of the live one instead of %llu",
			     (unsigned long long)e->data, (unsigned long long)c->live);
		c->live++;
	}
	must(fi_recv(n->ep, e->context, LEN, NULL, FI_ADDR_UNSPEC, e->context), "fi_recv");
}

/* Answers every byte on its control socket with its counts. */
static void reader(void *arg)
{
	static unsigned char bufs[32][LEN];
	struct count c = {0, 0};
	struct node n;
	ssize_t got;
	char word;

	(void)arg;
	close(to_reader[0]);
	node_open(&n, NULL);
	reader_name = node_name(&n);
	tell(to_reader[1], &reader_name, sizeof(reader_name));
	for (int i = 0; i < 32; i++)
		must(fi_recv(n.ep, bufs[i], LEN, NULL, FI_ADDR_UNSPEC, bufs[i]), "fi_recv");
	while ((got = recv(to_reader[1], &word, 1, MSG_DONTWAIT)) != 0) {
		struct event e;

		if (got > 0)
			tell(to_reader[1], &c, sizeof(c));
		if (node_poll(&n, &e))
			take(&n, &e, &c);
		else
			usleep(50);
	}
	node_close(&n);
}

/* ---- Rounds ---- */

static struct count has(void)
{
	struct count c;

	tell(to_reader[0], "", 1);
	hear(to_reader[0], &c, sizeof(c));
	return c;
}

static void wait_for(struct count want, const char *when)
{
	uint64_t end = now_ms() + DEAD_MS;
	struct count c;

	do
		c = has();
	while ((c.live < want.live || c.victims < want.victims) && now_ms() < end);
	if (c.live != want.live || c.victims != want.victims)
		fail("%s: %llu messages of the live one and %llu of victims, not %llu and %llu",
		     when, (unsigned long long)c.live, (unsigned long long)c.victims,
		     (unsigned long long)want.live, (unsigned long long)want.victims);
}

static void batch(struct count *want)
{
	tell(to_live[0], "", 1);
	hear(to_live[0], &(char){0}, 1);
	want->live += BATCH;
}

/*
 * Victims stop in the middle of a send one after the other; then each dies, or goes on, in another
 * order.
 */
static void one_round(unsigned int round, struct count *want)
{
	static const int orders[6][VICTIMS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					       {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	int numbers[VICTIMS], goes_on = round % 4 == 3 ? (int)round / 4 % VICTIMS : -1;
	pid_t pids[VICTIMS];

	for (int i = 0; i < VICTIMS; i++) {
		wire(to_victim[i]);
		numbers[i] = i;
		pids[i] = start("victim", victim, &numbers[i]);
		close(to_victim[i][1]);
		hear(to_victim[i][0], &(char){0}, 1);
		want->victims++;
	}
	wait_for(*want, "before");
	for (int i = 0; i < VICTIMS; i++) {
		tell(to_victim[i][0], "", 1);
		hear(to_victim[i][0], &(char){0}, 1);
		batch(want);
	}
	for (int i = 0; i < VICTIMS; i++) {
		int which = orders[round % 6][i];

		if (which == goes_on) {
			tell(to_victim[which][0], "", 1);
			want->victims++;
			finish(pids[which], "a victim that goes on");
		} else {
			slay(pids[which]);
		}
		close(to_victim[which][0]);
		if (round % 5 == 0)
			usleep(3000);
	}
	wait_for(*want, "when all were dead");
	batch(want);
	wait_for(*want, "afterwards");
}

int main(void)
{
	struct count want = {0, 0};
	pid_t pids[2];

	alarm(LIMIT);
	need_provider();
	wire(to_reader);
	pids[0] = start("reader", reader, NULL);
	close(to_reader[1]);
	hear(to_reader[0], &reader_name, sizeof(reader_name));
	wire(to_live);
	pids[1] = start("live one", live, NULL);
	close(to_live[1]);
	batch(&want);
	for (unsigned int i = 0; i < ROUNDS; i++)
		one_round(i, &want);
	close(to_live[0]);
	finish(pids[1], "live one");
	close(to_reader[0]);
	finish(pids[0], "reader");
	return EXIT_SUCCESS;
}
