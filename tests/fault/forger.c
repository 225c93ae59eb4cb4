/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A raw client cannot make events that nobody caused: packets that claim an access without a key
 * that grants it leave no remote CQ data and no count.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA | FI_RMA_EVENT)
#include <rdma/fi_ext_weft.h>

#include "raw_rma.h"

#define REGION    4096u
#define KEY       77u
#define ASK_MS    2000
#define WINDOW_MS 1000 /* of wrong keys */

/* The endpoint: whatever event it has is one too many, but for the honest one that ends the test. */
static void server(void *arg)
{
	static unsigned char region[REGION];
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_weft_ops_stats *ops;
	struct fi_weft_stats stats;
	uint64_t honest = 0, begin = now_ms(), end = begin + 4 * ASK_MS;
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct event e;
	struct node n;

	(void)arg;
	node_create(&n, NULL);
	must(fi_cntr_open(n.domain, &attr, &cntr, NULL), "fi_cntr_open");
	must(fi_ep_bind(n.ep, &cntr->fid, FI_REMOTE_WRITE | FI_REMOTE_READ), "fi_ep_bind");
	node_bind(&n);
	must(fi_mr_reg(n.domain, region, REGION, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
	     "fi_mr_reg");
	raw_rma_ready(&n);
	while (!honest) {
		if (now_ms() > end)
			fail("the honest write did not arrive");
		if (!node_poll(&n, &e))
			continue;
		if (!(e.flags & FI_REMOTE_CQ_DATA) || e.data != KEY)
			fail("an event was forged: flags %#llx, data %llu",
			     (unsigned long long)e.flags, (unsigned long long)e.data);
		honest++;
	}
	if (fi_cntr_read(cntr) != honest)
		fail("%llu accesses are counted, one took place",
		     (unsigned long long)fi_cntr_read(cntr));
	must(fi_open_ops(&n.ep->fid, FI_WEFT_STATS, 0, (void **)&ops, NULL), "fi_open_ops");
	must(ops->read(&n.ep->fid, &stats, sizeof(stats)), "reading the statistics");
	/* The same one, again and again: it counts once in a window. */
	if (!stats.wrong_keys || stats.wrong_keys > (now_ms() - begin) / WINDOW_MS + 1)
		fail("%llu wrong keys are counted", (unsigned long long)stats.wrong_keys);
}

/*
 * Reads the answers. If nobody did, they would fill the socket, whose kernel then drops whole segments, with what they
 * acknowledge, and both kernels would repeat theirs after ever longer pauses.
 */
static void reader(void *arg)
{
	char bytes[4096];

	while (recv(*(int *)arg, bytes, sizeof(bytes), 0) > 0)
		;
}

static void say(int sock, unsigned int op, unsigned int flags, uint64_t data, const void *payload,
		uint32_t len)
{
	struct frame frame = {.head = HEAD(op, flags, 1), .data = data, .len = len};

	if (send(sock, &frame, sizeof(frame), MSG_NOSIGNAL) != sizeof(frame) ||
	    (len && send(sock, payload, len, MSG_NOSIGNAL) != (ssize_t)len))
		fail("send: %s", strerror(errno));
}

int main(void)
{
	/* address, length, key */
	static const uint64_t wrong_key[] = {0, 8, KEY + 1}, beyond[] = {0, REGION + 1, KEY},
			      good[] = {0, 8, KEY};
	static const uint64_t no_ranges[] = {0, 0, 666}; /* offset, count; CQ data */
	pid_t pid = raw_rma_begin(server);
	int sock = raw_rma_join(1, 1);
	pid_t reads;

	if (sock < 0)
		fail("a good hello is not accepted");
	reads = start("reader", reader, &sock);
	for (int i = 0; i < 1000; i++) {
		say(sock, NOTIFY, DATA, 666, wrong_key, sizeof(wrong_key));
		say(sock, NOTIFY, DATA, 666, beyond, sizeof(beyond));
		say(sock, NOTIFY, DATA | LONG, 666, good, sizeof(good)); /* a read */
		say(sock, NOTIFY, DATA, 666, good, 8);
		say(sock, NOTIFY, DATA, 666, NULL, 0);
		say(sock, NOTIFY, 0, 0, wrong_key, sizeof(wrong_key));
		say(sock, PUT, LONG | CQ, 0, no_ranges, sizeof(no_ranges));
	}
	say(sock, NOTIFY, DATA, KEY, good, sizeof(good));
	finish(pid, "server");
	finish(reads, "reader");
	return EXIT_SUCCESS;
}
