/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a TCP link lingers after its endpoint is closed. The peer does not read, and more is
 * sent than the kernel's buffers take. The close does not wait, another endpoint of the domain goes
 * on, and all messages arrive when the peer reads at last, although the peer sends messages
 * meanwhile.
 */
#include "node.h"

#define LEN      4096
#define MOST     4000 /* messages; the buffers take fewer */
#define LAZY_MS  900  /* the peer makes no progress for this long */
#define CLOSE_MS 450  /* a close that waits for the peer takes longer */
#define WAIT_MS  8000

static int ends[2];
static struct name names[2];

/* Opens a second endpoint with a queue of its own in the domain of the first. */
static void open_second(struct node *second, const struct node *first)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};

	*second = *first;
	must(fi_cq_open(second->domain, &cq, &second->cq, NULL), "fi_cq_open");
	must(fi_endpoint(second->domain, second->info, &second->ep, NULL), "fi_endpoint");
	node_bind(second);
}

static void swap_names(struct node *n, unsigned int which)
{
	names[which] = node_name(n);
	tell(ends[which], &names[which], sizeof(names[which]));
	hear(ends[which], &names[!which], sizeof(names[0]));
}

static void lazy(void *arg)
{
	static char in[LEN];
	struct event e;
	struct node n;
	unsigned int sent, heard = 0;
	fi_addr_t to;

	(void)arg;
	node_open(&n, NULL);
	swap_names(&n, 1);
	to = node_insert(&n, &names[0]);
	must(fi_recv(n.ep, in, LEN, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	node_wait(&n, WAIT_MS, "the first message");
	tell(ends[1], "", 1);
	usleep(LAZY_MS * 1000);
	hear(ends[1], &sent, sizeof(sent));
	while (heard < sent) {
		must(fi_recv(n.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), "fi_recv");
		do
			e = node_wait(&n, WAIT_MS, "what was sent before the end");
		while (e.flags & FI_SEND);
		if (e.err || e.len != LEN || memcmp(in, &heard, sizeof(heard)) != 0)
			fail("message %u of %u: %s", heard, sent, fi_strerror(e.err));
		if (heard++ % 64 == 0)
			fi_send(n.ep, "?", 1, NULL, to, NULL); /* never received */
	}
	tell(ends[1], "", 1);
	_exit(EXIT_SUCCESS);
}

static unsigned int fill(struct node *n, fi_addr_t to)
{
	static char out[LEN];
	unsigned int sent = 0;
	ssize_t ret = 0;

	for (; sent < MOST && !ret; sent += !ret) {
		memcpy(out, &sent, sizeof(sent));
		ret = fi_inject(n->ep, out, LEN, to);
	}
	if (ret != -FI_EAGAIN)
		fail("%u messages find room: %s", sent, fi_strerror((int)-ret));
	return sent;
}

int main(void)
{
	struct node n, second;
	struct event e;
	unsigned int sent;
	uint64_t start_ms;
	fi_addr_t to;
	char byte;
	pid_t pid;

	alarm(LIMIT);
	need_provider();
	if (strcmp(provider(), "tcp")) {
		printf("%s needs no kernel to be read from\n", provider());
		return 77;
	}
	wire(ends);
	pid = start("lazy", lazy, NULL);
	node_open(&n, NULL);
	open_second(&second, &n);
	swap_names(&n, 0);
	to = node_insert(&n, &names[1]);
	MUST(n.cq, fi_send(n.ep, "hello", 5, NULL, to, NULL));
	node_wait(&n, WAIT_MS, "the first message");
	hear(ends[0], &byte, 1);
	sent = fill(&n, to);
	tell(ends[0], &sent, sizeof(sent));
	start_ms = now_ms();
	must(fi_close(&n.ep->fid), "fi_close");
	if (now_ms() - start_ms > CLOSE_MS)
		fail("the close took %llu ms", (unsigned long long)(now_ms() - start_ms));
	start_ms = now_ms();
	while (recv(ends[0], &byte, 1, MSG_DONTWAIT) != 1) {
		if (node_poll(&second, &e))
			fail("something came for the second endpoint");
		if (now_ms() - start_ms > WAIT_MS)
			fail("the peer does not receive all");
		usleep(1000);
	}
	finish(pid, "lazy");
	must(fi_close(&second.ep->fid), "fi_close");
	must(fi_close(&second.cq->fid), "fi_close");
	n.ep = NULL;
	must(fi_close(&n.cq->fid), "fi_close");
	must(fi_close(&n.av->fid), "fi_close");
	must(fi_close(&n.domain->fid), "fi_close");
	must(fi_close(&n.fabric->fid), "fi_close");
	fi_freeinfo(n.info);
	return EXIT_SUCCESS;
}
