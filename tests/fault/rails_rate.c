/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=120
 * What two wires carry together, each limited to a rate: nearly the sum, if they are alike and if one has four times the
 * rate of the other; and so if all is encrypted. Arguments: the rate in Mbit/s, and the MiB to send.
 */
#define LIMIT     110
#define NODE_WAIT FI_WAIT_UNSPEC

#include <sys/mman.h>

#include "hello.h"
#include "key_file.h"
#include "two_wires.h"

#define AWAIT_MS 20000
#define DEPTH    8
#define TRIES    3
#define LEN      (1u << 20) /* bytes of a message */

static struct lab lab;
static bool encrypted;

static struct wires {
	const char *rails; /* FI_WEFT_RAILS */
	unsigned int mbit[2];
	unsigned int count; /* messages */
	double *rate;       /* Mbit/s that the messages came at; shared */
} wires;

static unsigned char bytes[DEPTH][LEN];

/* Queues of network devices are about as long. */
static void limit_rates(void)
{
	for (unsigned int i = 0; i < 2; i++)
		if (run("tc qdisc add dev eth%u root tbf rate %umbit burst 64kb limit 512kb", i,
			wires.mbit[i]))
			fail("no limit for eth%u", i);
}

static void await(struct node *n)
{
	struct fi_cq_tagged_entry entry;

	must(fi_cq_sread(n->cq, &entry, 1, NULL, AWAIT_MS), "a message");
}

static void send_all(struct node *n, fi_addr_t peer, unsigned int count)
{
	unsigned int done = 0;

	for (unsigned int i = 0; i < count; i++) {
		ssize_t ret;

		for (; i - done >= DEPTH; done++)
			await(n);
		while ((ret = fi_send(n->ep, bytes[i % DEPTH], LEN, NULL, peer, NULL)) ==
		       -FI_EAGAIN)
			sched_yield();
		must(ret, "fi_send");
	}
	for (; done < count; done++)
		await(n);
}

/* The first tenth is not counted: connections begin slowly. Returns Mbit/s. */
static double receive_all(struct node *n, unsigned int count)
{
	unsigned int warm = count / 10, posted = 0;
	uint64_t began = 0;

	for (; posted < DEPTH; posted++)
		must(fi_recv(n->ep, bytes[posted], LEN, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (unsigned int i = 0; i < count; i++) {
		if (i == warm)
			began = now_ms();
		await(n);
		if (posted++ < count)
			must(fi_recv(n->ep, bytes[posted % DEPTH], LEN, NULL, FI_ADDR_UNSPEC, NULL),
			     "fi_recv");
	}
	return (double)(count - warm) * LEN * 8 / 1e3 / (double)(now_ms() - began);
}

static void live(void *arg)
{
	struct node n;
	fi_addr_t peer;

	lab = *(struct lab *)arg;
	lab_enter(&lab);
	second_wire(&lab);
	limit_rates();
	setenv("FI_WEFT_RAILS", wires.rails, 1);
	if (encrypted)
		use_key("encrypt", "a key of a good length", 22);
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which) {
		double rate = receive_all(&n, wires.count);

		tell(lab.end, &rate, sizeof(rate));
	} else {
		send_all(&n, peer, wires.count);
		hear(lab.end, wires.rate, sizeof(*wires.rate));
	}
	node_close(&n);
}

static double rate_of(const char *rails, unsigned int first, unsigned int second,
		      unsigned int count)
{
	double *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double rate;

	wires = (struct wires){rails, {first, second}, count, shared};
	two_hosts(live);
	rate = *shared;
	munmap(shared, sizeof(*shared));
	printf("%u and %u Mbit/s, FI_WEFT_RAILS=%s%s: %.1f Mbit/s\n", first, second, rails,
	       encrypted ? ", encrypted" : "", rate);
	return rate;
}

/* The best of some tries: other processes may slow one down. Returns the rate, of which `enough` is. */
static double best_of(const char *rails, unsigned int first, unsigned int second,
		      unsigned int count, double enough)
{
	double best = 0, rate;

	for (int i = 0; i < TRIES && best < enough; i++) {
		rate = rate_of(rails, first, second, count);
		best = rate > best ? rate : best;
	}
	if (best < enough)
		fail("%.1f Mbit/s are too little: %.1f are expected", best, enough);
	return best;
}

int main(int argc, char **argv)
{
	unsigned int fast = argc > 1 ? (unsigned int)atoi(argv[1]) : 200;
	unsigned int count = argc > 2 ? (unsigned int)atoi(argv[2]) : 100;
	double one, two;

	alarm(LIMIT);
	need_lab();
	need_network();
	one = best_of("1", fast, fast, count / 2, fast * 0.8);
	two = best_of("auto", fast, fast, count, 1.8 * one);
	printf("two wires: %.2f times what one carries\n", two / one);
	two = best_of("eth0,eth1", fast, fast / 4, count, 0.9 * 1.25 * one);
	printf("a wire and one of a quarter: %.2f of the sum\n", two / one / 1.25);
	encrypted = has_library("encrypt");
	if (!encrypted)
		return EXIT_SUCCESS;
	one = best_of("1", fast, fast, count / 2, fast * 0.8);
	two = best_of("auto", fast, fast, count, 1.8 * one);
	printf("two wires, encrypted: %.2f times what one carries\n", two / one);
	return EXIT_SUCCESS;
}
