/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that messages outlive their sender. The sender closes and exits as soon as its 1000 sends
 * have completed; the receiver is slow. Every message arrives whole and in order, also if the
 * receiver itself sends messages that the sender never reads.
 */
#include "node.h"

#define MESSAGES 1000
#define LONG     300001
#define WAIT_MS  8000
#define LAZY_MS  400 /* the receiver makes no progress for this long */

static struct node n;
static unsigned char out[LONG + 256], in[LONG];

/* Description of a round. */
static const struct haste {
	const char *name;
	size_t longest;
	unsigned int lazy_ms; /* before the receiver begins */
	unsigned int nap_us;  /* between two messages */
	bool talks_back;      /* the receiver sends too; the sender posts no receive */
} hastes[] = {
	{"at once", 9000, 0, 0, false},
	{"slowly", 4000, 0, 300, false},
	{"late", 2000, LAZY_MS, 0, false},
	{"long ones", LONG, 0, 0, false},
	{"talking back", 9000, LAZY_MS, 100, true},
};

static size_t length_of(const struct haste *h, uint64_t number)
{
	return number % 10 ? number * 7919 % 500 : number * 7919 % (h->longest + 1);
}

static const unsigned char *payload_of(uint64_t number)
{
	return out + number % 256;
}

static uint64_t reap(void)
{
	uint64_t done = 0;
	struct event e;

	while (node_poll(&n, &e)) {
		if (e.err)
			fail("a send ended with %s", fi_strerror(e.err));
		done++;
	}
	return done;
}

static void sender(const struct haste *h, int end)
{
	uint64_t done = 0, stop = now_ms() + WAIT_MS;
	struct name name;
	fi_addr_t to;

	node_open(&n, NULL);
	name = node_name(&n);
	tell(end, &name, sizeof(name));
	hear(end, &name, sizeof(name));
	to = node_insert(&n, &name);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		ssize_t ret;

		while ((ret = fi_senddata(n.ep, payload_of(i), length_of(h, i), NULL, i, to,
					  NULL)) == -FI_EAGAIN &&
		       now_ms() < stop)
			done += reap();
		must(ret, "fi_senddata");
	}
	while (done < MESSAGES && now_ms() < stop)
		done += reap();
	if (done < MESSAGES)
		fail("%s: only %llu sends have ended", h->name, (unsigned long long)done);
	node_close(&n);
}

static void receiver(const struct haste *h, int end)
{
	struct name name;
	fi_addr_t from;

	node_open(&n, NULL);
	name = node_name(&n);
	hear(end, &name, sizeof(name));
	from = node_insert(&n, &name);
	name = node_name(&n);
	tell(end, &name, sizeof(name));
	usleep(h->lazy_ms * 1000);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct event e;

		must(fi_recv(n.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), "fi_recv");
		do
			e = node_wait(&n, WAIT_MS, h->name);
		while (e.context != in);
		if (e.err || e.data != i || e.len != length_of(h, i))
			fail("%s: message %llu of %zu bytes is %llu of %zu: %s", h->name,
			     (unsigned long long)i, length_of(h, i), (unsigned long long)e.data,
			     e.len, fi_strerror(e.err));
		if (memcmp(in, payload_of(i), e.len))
			fail("%s: message %llu differs", h->name, (unsigned long long)i);
		/* Fails once the sender is gone. */
		if (h->talks_back && i % 10 == 0)
			fi_send(n.ep, out, 3000, NULL, from, NULL);
		usleep(h->nap_us);
	}
	node_close(&n);
}

struct life {
	const struct haste *haste;
	int end;
};

static void live_sender(void *arg)
{
	const struct life *life = arg;

	sender(life->haste, life->end);
}

static void live_receiver(void *arg)
{
	const struct life *life = arg;

	receiver(life->haste, life->end);
}

int main(void)
{
	alarm(LIMIT);
	need_provider();
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(i * 13 + i / 255);
	for (size_t i = 0; i < sizeof(hastes) / sizeof(hastes[0]); i++) {
		struct life lives[2] = {{.haste = &hastes[i]}, {.haste = &hastes[i]}};
		int ends[2];
		pid_t pids[2];

		wire(ends);
		lives[0].end = ends[0];
		lives[1].end = ends[1];
		pids[0] = start("sender", live_sender, &lives[0]);
		pids[1] = start("receiver", live_receiver, &lives[1]);
		close(ends[0]);
		close(ends[1]);
		finish(pids[0], "sender");
		finish(pids[1], "receiver");
	}
	return EXIT_SUCCESS;
}
