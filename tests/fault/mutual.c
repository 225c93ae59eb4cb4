/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that flow control never deadlocks. Two endpoints send to each other without reading
 * completions: no call blocks, both get -FI_EAGAIN in the end, and all messages arrive in order
 * once they read. An endpoint without progress blocks sends to itself, but not its peers' other
 * traffic.
 */
#include "node.h"

#define KEEP     "500000" /* bytes of unexpected messages */
#define STALL_MS 500      /* nothing but -FI_EAGAIN for this long: no credits left */
#define CALL_MS  1000     /* every call is shorter */
#define WAIT_MS  10000    /* longer waits count as a deadlock */
#define LONG     300001
#define MANY     20000      /* messages after which send_all stops */
#define MUCH     (64 << 20) /* bytes after which send_all stops */
#define PINGS    300        /* pings while another peer makes no progress */

static struct node n;
static unsigned char out[LONG + 256], in[LONG];

static const unsigned char *payload_of(uint64_t number)
{
	return out + number % 256;
}

static void fill_pattern(void)
{
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(i * 13 + i / 255);
}

/* Posts one send. Returns false for -FI_EAGAIN. Fails if the call takes longer than CALL_MS. */
static bool try_send(fi_addr_t to, size_t len, uint64_t number)
{
	uint64_t begun = now_ms();
	ssize_t ret = fi_senddata(n.ep, payload_of(number), len, NULL, number, to, NULL);

	if (now_ms() - begun > CALL_MS)
		fail("fi_senddata took %llu ms", (unsigned long long)(now_ms() - begun));
	if (ret != -FI_EAGAIN)
		must(ret, "fi_senddata");
	return ret == 0;
}

/* ---- Two endpoints that only send ---- */

/* Sends until credits run out, or up to MANY messages or MUCH bytes. Returns the number sent. */
static uint64_t send_all(fi_addr_t to, size_t len)
{
	uint64_t sent = 0, moved = now_ms();

	while (now_ms() - moved < STALL_MS && sent < MANY && sent * len < MUCH)
		if (try_send(to, len, sent)) {
			sent++;
			moved = now_ms();
		}
	return sent;
}

struct counts {
	uint64_t sent, received;
};

static void receive_next(void)
{
	must(fi_recv(n.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), "fi_recv");
}

static void check_next(const struct event *e, uint64_t number, size_t len)
{
	if (e->data != number || e->len != len)
		fail("message %llu of %zu bytes instead of %llu of %zu",
		     (unsigned long long)e->data, e->len, (unsigned long long)number, len);
	if (memcmp(in, payload_of(number), len))
		fail("message %llu of %zu bytes differs", (unsigned long long)number, len);
}

/* Reads completions: all sends complete without an error, and `want.received` messages arrive. */
static void look(struct counts want, size_t len)
{
	struct counts is = {0};

	receive_next();
	while (is.sent < want.sent || is.received < want.received) {
		struct event e = node_wait(&n, WAIT_MS, "what was sent while nobody looked");

		if (e.err)
			fail("a %s ended with %s", e.context ? "receive" : "send",
			     fi_strerror(e.err));
		if (!e.context) {
			is.sent++;
			continue;
		}
		check_next(&e, is.received++, len);
		if (is.received < want.received)
			receive_next();
	}
	if (!want.received)
		must(fi_cancel(&n.ep->fid, in), "fi_cancel");
}

/* Makes progress until the other process sends a byte. */
static void serve(int end)
{
	char word;

	while (recv(end, &word, 1, MSG_DONTWAIT) != 1)
		fi_cq_read(n.cq, NULL, 0);
}

static void meet(int end)
{
	tell(end, "", 1);
	serve(end);
}

static void one_of_two(void *arg)
{
	static const size_t lengths[] = {0, 500, 9000, 100000, LONG};
	int end = *(int *)arg;
	fi_addr_t to;

	node_open(&n, NULL);
	to = node_meet(&n, end);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct counts c;

		meet(end);
		c.sent = send_all(to, lengths[i]);
		if (!c.sent)
			fail("not one message of %zu bytes could be sent", lengths[i]);
		tell(end, &c.sent, sizeof(c.sent));
		while (recv(end, &c.received, sizeof(c.received), MSG_DONTWAIT) !=
		       sizeof(c.received))
			fi_cq_read(n.cq, NULL, 0);
		look(c, lengths[i]);
		meet(end);
	}
	node_close(&n);
}

static void two(void)
{
	int ends[2];
	pid_t pids[2];

	wire(ends);
	for (int i = 0; i < 2; i++)
		pids[i] = start(i ? "second" : "first", one_of_two, &ends[i]);
	for (int i = 0; i < 2; i++)
		finish(pids[i], i ? "second" : "first");
	close(ends[0]);
	close(ends[1]);
}

/* ---- A receiver without progress, an echo server, and a sender to both ---- */

/* Makes no progress until told a count; then receives that many messages in order. */
static void still(void *arg)
{
	int end = *(int *)arg;
	uint64_t count = 0;
	struct name name;

	node_open(&n, NULL);
	name = node_name(&n);
	tell(end, &name, sizeof(name));
	while (count != UINT64_MAX) {
		hear(end, &count, sizeof(count));
		for (uint64_t i = 0; count != UINT64_MAX && i < count; i++) {
			struct event e;

			receive_next();
			e = node_wait(&n, WAIT_MS, "what was sent to one that stood still");
			check_next(&e, i, 9000);
		}
		tell(end, "", 1);
	}
	node_close(&n);
}

static void echo(void *arg)
{
	static uint64_t word;
	int end = *(int *)arg;
	fi_addr_t to;

	node_open(&n, NULL);
	to = node_meet(&n, end);
	do {
		must(fi_recv(n.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		while (!(node_wait(&n, WAIT_MS, "a ping").flags & FI_RECV))
			;
		while (fi_send(n.ep, &word, sizeof(word), NULL, to, NULL) == -FI_EAGAIN)
			fi_cq_read(n.cq, NULL, 0);
	} while (word != UINT64_MAX);
	while (!(node_wait(&n, WAIT_MS, "the last send").flags & FI_SEND))
		;
	node_close(&n);
}

static uint64_t stalled_done; /* completed sends to the receiver without progress */

static void ping(fi_addr_t to, uint64_t number)
{
	static uint64_t word, answer;
	uint64_t end = now_ms() + WAIT_MS;
	int left = 2;
	struct event e;

	word = number;
	must(fi_recv(n.ep, &answer, sizeof(answer), NULL, to, &answer), "fi_recv");
	while (fi_send(n.ep, &word, sizeof(word), NULL, to, &word) == -FI_EAGAIN)
		if (now_ms() > end)
			fail("no room for a ping to one that answers");
	while (left) {
		if (now_ms() > end)
			fail("no answer to ping %llu", (unsigned long long)number);
		if (!node_poll(&n, &e))
			continue;
		if (e.err)
			fail("an operation ended with %s", fi_strerror(e.err));
		if (e.context)
			left--;
		else
			stalled_done++;
	}
	if (answer != number)
		fail("ping %llu was answered by %llu", (unsigned long long)number,
		     (unsigned long long)answer);
}

static void await_done(uint64_t sent)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct event e;

	while (stalled_done < sent) {
		if (node_poll(&n, &e))
			stalled_done++;
		else if (now_ms() > end)
			fail("%llu sends have not ended",
			     (unsigned long long)(sent - stalled_done));
	}
}

/* The sender, in the first process. */
static void one_stands_still(int to_still, int to_echo)
{
	struct name name;
	fi_addr_t slow, quick;
	uint64_t over = UINT64_MAX;

	node_open(&n, NULL);
	quick = node_meet(&n, to_echo);
	hear(to_still, &name, sizeof(name));
	slow = node_insert(&n, &name);
	for (int round = 0; round < 2; round++) {
		uint64_t sent = 0, tried = 0;

		stalled_done = 0;
		for (uint64_t i = 1; i <= PINGS; i++) {
			/*
			 * Sends to the still receiver until its credits run out, and goes on
			 * trying.
			 */
			for (tried = 0; tried < 50 && try_send(slow, 9000, sent); tried++)
				sent++;
			ping(quick, i);
		}
		if (tried == 50)
			fail("after %llu messages nothing holds us up", (unsigned long long)sent);
		tell(to_still, &sent, sizeof(sent));
		await_done(sent);
		serve(to_still);
	}
	ping(quick, UINT64_MAX);
	tell(to_still, &over, sizeof(over));
	hear(to_still, &(char){0}, 1);
	node_close(&n);
}

static void three(void)
{
	int to_still[2], to_echo[2];
	pid_t pids[2];

	wire(to_still);
	wire(to_echo);
	pids[0] = start("still", still, &to_still[1]);
	pids[1] = start("echo", echo, &to_echo[1]);
	one_stands_still(to_still[0], to_echo[0]);
	finish(pids[0], "still");
	finish(pids[1], "echo");
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	setenv("FI_WEFT_UNEXPECTED_MAX", KEEP, 1);
	fill_pattern();
	two();
	three();
	return EXIT_SUCCESS;
}
