/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that no peer keeps an endpoint from closing a region or itself. A raw peer in shared memory
 * takes every access guard of the endpoint, under its own number or that of nobody, and lives on: it
 * sleeps, runs, writes the guards again and again, or is stopped. Only of the stopped one the
 * endpoint cannot know that it makes no access: the close fails until the peer is dead.
 */
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#include <rdma/fi_rma.h>

#include "raw_peer.h"

#define CLOSE_MS 8000 /* longer than a proof takes, shorter than FI_WEFT_ACCESS_TIMEOUT */

enum way { WAY_NOBODY, WAY_SLEEPS, WAY_RUNS, WAY_WRITES, WAY_STOPPED, WAYS };

static const char *const names[WAYS] = {"guards of nobody", "a peer that sleeps",
					"a peer that runs", "a peer that writes its guards again",
					"a stopped peer"};

static int orders[2];

/* ---- The endpoint closes its region and itself when ordered. ---- */

static int close_in_time(struct fid *fid)
{
	uint64_t begin = now_ms();
	int ret = fi_close(fid);

	if (now_ms() - begin > CLOSE_MS)
		fail("a close took %d ms", (int)(now_ms() - begin));
	return ret;
}

static void server(void *arg)
{
	static unsigned char region[4096];
	struct fid *closes[2];
	struct fid_mr *mr;
	struct event e;
	struct node n;
	char word;

	(void)arg;
	node_open(&n, NULL);
	must(fi_mr_reg(n.domain, region, sizeof(region), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
		       &mr, NULL),
	     "fi_mr_reg");
	server_name = node_name(&n);
	tell(ends[1], &server_name, sizeof(server_name));
	closes[0] = &mr->fid;
	closes[1] = &n.ep->fid;
	for (int i = 0; i < 2;) {
		int ret = 0;

		if (recv(orders[1], &word, 1, MSG_DONTWAIT) != 1) {
			node_poll(&n, &e);
			continue;
		}
		ret = close_in_time(closes[i]);
		i += !ret;
		tell(orders[1], &ret, sizeof(ret));
	}
}

static int order(void)
{
	int ret;

	tell(orders[0], "", 1);
	hear(orders[0], &ret, sizeof(ret));
	return ret;
}

/* ---- The raw peer ---- */

static void take_all(const struct raw_link *l, uint32_t id)
{
	for (unsigned int i = 0; i < RING_GUARDS; i++)
		__atomic_store_n(&l->ring.page->guards[i].word, UINT64_C(5) << 32 | id,
				 __ATOMIC_RELEASE);
}

static void raw(void *arg)
{
	enum way way = *(const enum way *)arg;
	struct raw_link l;
	uint32_t id;

	raw_link_enter(&l, &server_name, 9);
	id = way == WAY_NOBODY ? 0x300005 : l.id;
	take_all(&l, id);
	tell(ends[1], "", 1);
	for (;;) {
		if (way == WAY_WRITES)
			take_all(&l, id);
		else if (way != WAY_RUNS)
			pause();
	}
}

static void one(enum way way)
{
	pid_t pid, peer;
	int ret;

	wire(ends);
	wire(orders);
	setenv("FI_WEFT_ACCESS_TIMEOUT", way == WAY_STOPPED ? "1500" : "10000", 1);
	pid = start("endpoint", server, NULL);
	hear(ends[0], &server_name, sizeof(server_name));
	peer = start("raw peer", raw, &way);
	hear(ends[0], &(char){0}, 1);
	if (way == WAY_STOPPED) {
		stop(peer);
		ret = order();
		if (ret != -FI_EBUSY)
			fail("%s: the close of the region returned %d", names[way], ret);
		slay(peer);
	}
	if ((ret = order()))
		fail("%s: the close of the region returned %d", names[way], ret);
	if ((ret = order()))
		fail("%s: the close of the endpoint returned %d", names[way], ret);
	finish(pid, "endpoint");
	if (way != WAY_STOPPED)
		slay(peer);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(orders[i]);
	}
}

int main(void)
{
	alarm(LIMIT);
	need_memory();
	for (enum way way = 0; way < WAYS; way++)
		one(way);
	return EXIT_SUCCESS;
}
