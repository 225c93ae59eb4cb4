/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint tells of its peers: which way, why, and what went over it. fi_weft(7). */
#include <rdma/fi_ext_weft.h>
#include <rdma/fi_rma.h>
#include <errno.h>
#include <stddef.h>

#include "api.h"
#include "lib/side.h"

#define LONG (1u << 20)

static unsigned char bytes[LONG];

static struct fi_weft_ops_peers *ops_of(struct side *s)
{
	struct fi_weft_ops_peers *ops = NULL;
	int ret = fi_open_ops(&s->ep->fid, FI_WEFT_PEERS, 0, (void **)&ops, NULL);

	if (ret && api_other())
		api_skip("an extension of another library");
	OK(ret);
	CHECK(ops->size >= sizeof(*ops));
	return ops;
}

static struct fi_weft_peer peer_of(struct side *s, int rank)
{
	struct fi_weft_peer peer = {0};

	OK(ops_of(s)->read(&s->ep->fid, s->addr[rank], &peer, sizeof(peer)));
	CHECK_EQ(peer.size, sizeof(peer));
	return peer;
}

static void await_connection(struct side *s, int rank)
{
	while (peer_of(s, rank).connection != FI_WEFT_CONNECTED)
		side_progress(s);
}

static uint32_t expected(void)
{
	return api_networked() ? FI_WEFT_TCP : FI_WEFT_SHM;
}

/* ---- Without a message ----------------------------------------------------------------------- */

static void refusals(struct api *a)
{
	struct fi_weft_ops_peers *ops;
	struct fi_weft_peer peer = {.connection = 77};
	struct side s;
	void *none = NULL;

	side_open(&s, a, &(struct side_opts){.not_enabled = true});
	ops = ops_of(&s);
	CHECK_EQ(ops->read(&s.ep->fid, 0, &peer, sizeof(peer)), -FI_EOPBADSTATE);
	CHECK_EQ(ops->connect(&s.ep->fid, 0), -FI_EOPBADSTATE);
	OK(fi_enable(s.ep));
	CHECK_EQ(ops->read(&s.ep->fid, 5, &peer, sizeof(peer)), -FI_EINVAL);
	CHECK_EQ(ops->connect(&s.ep->fid, 5), -FI_EINVAL);
	CHECK_EQ(ops->read(&s.ep->fid, 0, NULL, sizeof(peer)), -FI_EINVAL);
	CHECK_EQ(ops->read(&s.ep->fid, 0, &peer, sizeof(peer.size) - 1), -FI_EINVAL);
	CHECK_EQ(ops->write(&s.ep->fid, -1), -EBADF);
	CHECK_EQ(peer.connection, 77);
	CHECK_EQ(fi_open_ops(&s.ep->fid, FI_WEFT_PEERS, 1, &none, NULL), -FI_EINVAL);
	CHECK_EQ(fi_open_ops(&s.ep->fid, "weft_nothing", 0, &none, NULL), -FI_ENOSYS);
	for (uint32_t i = 0; i < FI_WEFT_REASONS; i++)
		CHECK(ops->reason(i) && *ops->reason(i) && strcmp(ops->reason(i), "unknown") != 0);
	CHECK(!strcmp(ops->reason(FI_WEFT_REASONS), "unknown"));
	side_close_alone(&s);
}

/* A program that was compiled with an older header gets the members that it knows. */
static void part(struct api *a)
{
	struct {
		struct fi_weft_peer peer;
	} got;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	memset(&got, 0x55, sizeof(got));
	OK(ops_of(&s)->read(&s.ep->fid, s.addr[0], &got.peer,
			    offsetof(struct fi_weft_peer, reasons)));
	CHECK_EQ(got.peer.size, offsetof(struct fi_weft_peer, reasons));
	CHECK_EQ(got.peer.connection, FI_WEFT_UNCONNECTED);
	CHECK_EQ(got.peer.reasons[0], 0x55555555);
	side_close_alone(&s);
}

/* What would be used is known before; connecting sends no message and completes nothing. */
static void connecting(struct api *a)
{
	struct fi_weft_peer peer;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (a->rank) {
		peer = peer_of(&s, 0);
		CHECK_EQ(peer.connection, FI_WEFT_UNCONNECTED);
		CHECK_EQ(peer.transport, expected());
		CHECK_EQ(peer.reasons[expected()], FI_WEFT_USABLE);
		CHECK_EQ(peer.connections, 0);
		OK(ops_of(&s)->connect(&s.ep->fid, s.addr[0]));
		await_connection(&s, 0);
		OK(ops_of(&s)->connect(&s.ep->fid, s.addr[0]));
	} else {
		await_connection(&s, 1);
	}
	peer = peer_of(&s, !a->rank);
	CHECK_EQ(peer.transport, expected());
	CHECK_EQ(peer.reasons[expected()], FI_WEFT_USED);
	CHECK_EQ(peer.connections, 1);
	CHECK_EQ(peer.last_error, 0);
	if (api_networked())
		CHECK_EQ(peer.reasons[FI_WEFT_SHM], FI_WEFT_LEFT_OUT);
	else
		CHECK(peer.credits > 0);
	QUIET(&s, s.tx, 5);
	QUIET(&s, s.rx, 5);
	side_close(&s);
}

/* Nobody is at the address: the error stays readable. */
static void refused(struct api *a)
{
	struct fi_weft_peer peer;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (!a->rank) {
		side_close_alone(&s);
		api_meet(a);
		return;
	}
	api_meet(a);
	/* With shared memory alone the call itself finds out. */
	CHECK(ops_of(&s)->connect(&s.ep->fid, s.addr[0]) <= 0);
	while (!(peer = peer_of(&s, 0)).last_error)
		side_progress(&s);
	CHECK_EQ(peer.last_error, FI_ECONNREFUSED);
	CHECK_EQ(peer.connection, FI_WEFT_UNCONNECTED);
	if (!api_networked())
		CHECK_EQ(peer.reasons[FI_WEFT_SHM], FI_WEFT_NO_LISTENER);
	side_close_alone(&s);
}

/* A failed send to the peer, which is there no more, has a text of the library's own. */
static void send_to_nobody(struct side *s)
{
	char text[128], cut[8];
	struct fi_cq_err_entry e;

	/* With shared memory alone the call itself finds out. */
	if (fi_send(s->ep, bytes, 8, NULL, s->addr[0], bytes))
		return;
	e = TAKE_ERR(s, s->tx, FI_ECONNREFUSED);
	CHECK(strstr(fi_cq_strerror(s->tx, e.prov_errno, NULL, NULL, 0), "no endpoint is"));
	CHECK(fi_cq_strerror(s->tx, e.prov_errno, NULL, text, sizeof(text)) == text);
	CHECK(strstr(text, "no endpoint is at the address"));
	fi_cq_strerror(s->tx, e.prov_errno, NULL, cut, sizeof(cut));
	CHECK(!strncmp(cut, text, sizeof(cut) - 1) && !cut[sizeof(cut) - 1]);
}

static void reasons(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (!a->rank) {
		side_close_alone(&s);
		api_meet(a);
		return;
	}
	if (api_other())
		api_skip("texts of another library");
	api_meet(a);
	send_to_nobody(&s);
	side_close_alone(&s);
}

/* That the peer said goodbye once is no reason of later attempts. */
static void reasons_later(struct api *a)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	if (api_other())
		api_skip("texts of another library");
	if (a->rank)
		OK(ops_of(&s)->connect(&s.ep->fid, s.addr[0]));
	await_connection(&s, !a->rank);
	if (!a->rank) {
		side_close_alone(&s);
		api_meet(a);
		return;
	}
	api_meet(a);
	while (peer_of(&s, 0).connection == FI_WEFT_CONNECTED)
		side_progress(&s);
	CHECK_EQ(peer_of(&s, 0).last_error, FI_ESHUTDOWN);
	send_to_nobody(&s);
	side_close_alone(&s);
}

/* ---- With messages --------------------------------------------------------------------------- */

static void send_long(struct side *s)
{
	if (s->a->rank) {
		memset(bytes, 7, LONG);
		POST(s, fi_send(s->ep, bytes, LONG, NULL, s->addr[0], bytes));
		SENT(s, bytes, FI_MSG);
	} else {
		POST(s, fi_recv(s->ep, bytes, LONG, NULL, FI_ADDR_UNSPEC, bytes));
		GOT(s, bytes, FI_MSG, LONG);
		CHECK(bytes[0] == 7 && bytes[LONG - 1] == 7);
	}
}

/* Each long message is counted once at each end, and in one way. */
static void long_messages(struct api *a)
{
	struct fi_weft_peer p;
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	for (int i = 0; i < 10; i++) {
		send_long(&s);
		api_meet(a);
	}
	p = peer_of(&s, !a->rank);
	CHECK_EQ(p.sent_rdma + p.sent_bounce + p.sent_pipe + p.sent_speculative + p.sent_rts,
		 a->rank ? 10 : 0);
	CHECK_EQ(p.received_read + p.received_joint + p.received_rdma + p.received_speculative +
			 p.received_streamed,
		 a->rank ? 0 : 10);
	if (api_networked())
		CHECK_EQ(a->rank ? p.sent_streamed : p.received_streamed, 10);
	CHECK_EQ(p.queued, 0);
	CHECK_EQ(p.unanswered, 0);
	side_close(&s);
}

/* Where the peer's memory cannot be read, the reason is told, and no message is counted as read. */
static void no_cma(struct api *a)
{
	struct fi_weft_peer p;
	struct side s;

	if (api_networked())
		api_skip("about shared memory");
	side_open(&s, a, &(struct side_opts){0});
	send_long(&s);
	p = peer_of(&s, !a->rank);
	CHECK_EQ(p.direct_read, FI_WEFT_DISABLED);
	CHECK_EQ(p.received_read + p.received_joint, 0);
	CHECK_EQ(p.received_streamed + p.received_speculative, a->rank ? 0 : 1);
	side_close(&s);
}

#define PIECE  4096
#define PIECES 256

/* Sends up to PIECES pieces until rank 0 sends an XOFF. Returns how many are left. */
static int send_until_paused(struct side *s)
{
	int left = PIECES;

	while (!peer_of(s, 0).xoff_received) {
		ssize_t ret = left ? fi_inject(s->ep, bytes, PIECE, s->addr[0]) : 0;

		CHECK(ret == 0 || ret == -FI_EAGAIN);
		left -= left && !ret;
		side_progress(s);
	}
	return left;
}

/* The receiver takes nothing for a while: both sides count its XOFF, and the sender the time. */
static void pauses(struct api *a)
{
	struct fi_weft_peer p;
	struct side s;
	int left;

	side_open(&s, a, &(struct side_opts){0});
	if (a->rank) {
		left = send_until_paused(&s);
		for (double end = api_seconds() + 0.1; api_seconds() < end;)
			side_progress(&s);
		CHECK(peer_of(&s, 0).paused_ms >= 50);
		api_meet(a);
		for (; left; left--)
			POST(&s, fi_inject(s.ep, bytes, PIECE, s.addr[0]));
	} else {
		api_meet(a);
		p = peer_of(&s, 1);
		CHECK_EQ(p.xoff_sent, 1);
		CHECK(p.unexpected_bytes > 65536);
		for (int i = 0; i < PIECES; i++) {
			POST(&s, fi_recv(s.ep, bytes, PIECE, NULL, FI_ADDR_UNSPEC, bytes));
			GOT(&s, bytes, FI_MSG, PIECE);
		}
		CHECK_EQ(peer_of(&s, 1).unexpected_bytes, 0);
	}
	side_close(&s);
}

/* A pause ends with its connection, and its time stays counted. */
static void pause_cut(struct api *a)
{
	struct side s;
	uint64_t ms;

	side_open(&s, a, &(struct side_opts){0});
	if (!a->rank) {
		while (!peer_of(&s, 1).xoff_sent)
			side_progress(&s);
		api_meet(a);
		side_close_alone(&s);
		api_meet(a);
		return;
	}
	send_until_paused(&s);
	for (double end = api_seconds() + 0.1; api_seconds() < end;)
		side_progress(&s);
	api_meet(a);
	api_meet(a);
	while (peer_of(&s, 0).connection == FI_WEFT_CONNECTED)
		side_progress(&s);
	ms = peer_of(&s, 0).paused_ms;
	CHECK(ms >= 50);
	for (double end = api_seconds() + 0.1; api_seconds() < end;)
		side_progress(&s);
	CHECK_EQ(peer_of(&s, 0).paused_ms, ms);
	side_close_alone(&s);
}

/* Short writes go in packets, and are counted at both ends. */
static void one_sided(struct api *a)
{
	struct {
		uint64_t base, key;
	} mine, of[API_RANKS];
	struct fid_mr *mr;
	struct fi_weft_peer p;
	struct side s;
	bool virtual;

	side_open(&s, a, &(struct side_opts){.caps = FI_MSG | FI_RMA});
	OK(fi_mr_reg(s.domain, bytes, LONG, FI_REMOTE_WRITE, 0, 4711, 0, &mr, NULL));
	virtual = s.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	mine.base = virtual ? (uintptr_t)bytes : 0;
	mine.key = fi_mr_key(mr);
	api_swap(a, &mine, of, sizeof(mine));
	for (int i = 0; a->rank && i < 3; i++) {
		POST(&s, fi_write(s.ep, bytes, 8, NULL, s.addr[0], of[0].base, of[0].key, bytes));
		TAKE(&s, s.tx);
	}
	api_meet(a);
	p = peer_of(&s, !a->rank);
	CHECK_EQ(p.sent_requests, a->rank ? 3 : 0);
	CHECK_EQ(p.received_requests, a->rank ? 0 : 3);
	OK(fi_close(&mr->fid));
	side_close(&s);
}

/* ---- As text --------------------------------------------------------------------------------- */

static void text(struct api *a)
{
	char got[4096] = {0};
	char way[32];
	struct side s;
	int fd = memfd_create("report", MFD_CLOEXEC);

	side_open(&s, a, &(struct side_opts){0});
	send_long(&s);
	OK(ops_of(&s)->write(&s.ep->fid, fd));
	CHECK(pread(fd, got, sizeof(got) - 1, 0) > 0);
	CHECK(!strncmp(got, "endpoint ", 9));
	CHECK(strstr(got, "\n  peer "));
	CHECK(strstr(got, ": connected\n"));
	snprintf(way, sizeof(way), "\n    %s: used\n", api_networked() ? "tcp" : "shm");
	CHECK(strstr(got, way));
	close(fd);
	side_close(&s);
}

static const struct api_case cases[] = {
	{"refusals", refusals, 1, {NULL}},
	{"part", part, 1, {NULL}},
	{"connecting", connecting, 2, {NULL}},
	{"refused", refused, 2, {NULL}},
	{"reasons", reasons, 2, {NULL}},
	{"reasons_later", reasons_later, 2, {NULL}},
	{"long_messages", long_messages, 2, {NULL}},
	{"no_cma", no_cma, 2, {"FI_SHM_DISABLE_CMA=1"}},
	{"pauses", pauses, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
	{"pause_cut", pause_cut, 2, {"FI_WEFT_UNEXPECTED_MAX=65536"}},
	{"one_sided",
	 one_sided,
	 2,
	 {"FI_SHM_DISABLE_CMA=1"}}, /* else not to a target that looks seldom */
	{"text", text, 2, {NULL}},
};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
