/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker knows of its peers, for applications and as text. */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_weft.h>
#include <stdio.h>
#include <unistd.h>

#include "core/av.h"
#include "conn/conn.h"
#include "xfer/worker.h"

static const char *const reasons[FI_WEFT_REASONS] = {
	[FI_WEFT_USED] = "used",
	[FI_WEFT_USABLE] = "nothing speaks against it; not connected yet",
	[FI_WEFT_NOT_NEEDED] = "a better one is used",
	[FI_WEFT_LEFT_OUT] = "left out by the provider, a hint, an option or a setting",
	[FI_WEFT_NO_DEVICE] = "the address of this endpoint has no RDMA device",
	[FI_WEFT_NOT_ENCRYPTING] = "FI_WEFT_AUTH=encrypt: RDMA devices do not encrypt",
	[FI_WEFT_OTHER_HOST] = "the address is none of this host",
	[FI_WEFT_NO_LISTENER] = "no process of this network namespace offers shared memory at the "
				"address",
	[FI_WEFT_OTHER_USER] = "the process is another user's",
	[FI_WEFT_FAILED] = "it was tried and failed: FI_LOG_LEVEL=warn tells why",
	[FI_WEFT_PEER_CHOSE] = "the peer has connected, in another way",
	[FI_WEFT_NO_COMMON_DEVICE] = "the peer has no RDMA device on our network, or leaves it out",
	[FI_WEFT_NO_ADDRESS] = "the peer's name is no address of the network",
	[FI_WEFT_DISABLED] = "FI_SHM_DISABLE_CMA is set",
	[FI_WEFT_NO_PTRACE] = "the kernel does not let us read the process: set "
			      "kernel.yama.ptrace_scope=0, or give CAP_SYS_PTRACE",
	[FI_WEFT_NO_PROCESS] = "the process cannot be seen from here: it is in another pid "
			       "namespace",
};

static const char *const names[FI_WEFT_TRANSPORTS] = {
	[FI_WEFT_SHM] = "shm", [FI_WEFT_VERBS] = "verbs", [FI_WEFT_TCP] = "tcp"};

const char *worker_reason(uint32_t reason)
{
	return reason < FI_WEFT_REASONS ? reasons[reason] : "unknown";
}

/* Sets *peer to the peer of `addr`, of whichever of its contexts. 0 or a negative error. */
static int worker_report_find(struct worker *worker, fi_addr_t addr, struct peer **peer)
{
	if (worker->dgram || worker->offload)
		return -FI_EOPNOTSUPP;
	if (worker->conn.av)
		addr &= UINT64_MAX >> worker->conn.av->rx_ctx_bits;
	if (!worker->conn.cm && (!worker->conn.av || !av_addr(worker->conn.av, addr)))
		return -FI_EINVAL;
	*peer = peer_get(worker, worker->conn.cm ? 0 : addr);
	return *peer ? 0 : -FI_ENOMEM;
}

int worker_peer_state(struct worker *worker, fi_addr_t addr, struct fi_weft_peer *state)
{
	struct peer *peer;
	int err = worker_report_find(worker, addr, &peer);

	if (!err)
		peer_describe(peer, state);
	return err;
}

int worker_connect(struct worker *worker, fi_addr_t addr)
{
	struct peer *peer;
	int err = worker_report_find(worker, addr, &peer);

	return err || peer->conn.state != PEER_IDLE ? err : conn_start(&peer->conn);
}

/* Figures of a peer: each a uint64_t of struct fi_weft_peer. Those with a title begin a line. */
static const struct figure {
	const char *title, *name;
	size_t offset;
} figures[] = {
#define FIGURE(title, name, member)                                                                \
	{                                                                                          \
		title, name, offsetof(struct fi_weft_peer, member)                                 \
	}
	FIGURE("link", "credits", credits),
	FIGURE(NULL, "unsent bytes", unsent_bytes),
	FIGURE(NULL, "retransmissions", retransmissions),
	FIGURE(NULL, "connections", connections),
	FIGURE("long messages sent", "zero-copy", sent_zcopy),
	FIGURE(NULL, "for RDMA", sent_rdma),
	FIGURE(NULL, "RTS", sent_rts),
	FIGURE(NULL, "of these streamed", sent_streamed),
	FIGURE("long messages received", "read", received_read),
	FIGURE(NULL, "joint copy", received_joint),
	FIGURE(NULL, "RDMA", received_rdma),
	FIGURE(NULL, "streamed", received_streamed),
	FIGURE("one-sided requests in packets", "sent", sent_requests),
	FIGURE(NULL, "received", received_requests),
	FIGURE("flow control", "XOFF sent", xoff_sent),
	FIGURE(NULL, "XOFF received", xoff_received),
	FIGURE(NULL, "paused ms", paused_ms),
	FIGURE("queues", "not sent", queued),
	FIGURE(NULL, "not answered", unanswered),
	FIGURE(NULL, "bytes of answers", answers_bytes),
	FIGURE(NULL, "bytes unexpected", unexpected_bytes),
};

static void print_figures(const struct fi_weft_peer *state, FILE *out)
{
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		const struct figure *f = &figures[i];

		if (f->title)
			fprintf(out, "%s    %s:", i ? "\n" : "", f->title);
		fprintf(out, "%s %s %" PRIu64, f->title ? "" : ",", f->name,
			*(const uint64_t *)((const char *)state + f->offset));
	}
	putc('\n', out);
}

static void print_ways(const struct fi_weft_peer *state, FILE *out)
{
	for (unsigned int i = 0; i < FI_WEFT_TRANSPORTS; i++)
		fprintf(out, "    %s: %s\n", names[i], reasons[state->reasons[i]]);
	if (state->transport == FI_WEFT_SHM)
		fprintf(out, "    direct reads of its memory: %s\n", reasons[state->direct_read]);
}

static void print_peer(const struct peer *peer, FILE *out)
{
	static const char *const connections[] = {[FI_WEFT_UNCONNECTED] = "not connected",
						  [FI_WEFT_CONNECTING] = "connecting",
						  [FI_WEFT_CONNECTED] = "connected"};
	struct fi_weft_peer state = {.size = sizeof(state)};
	char name[ADDR_STR_MAX + 32];

	peer_describe(peer, &state);
	addr_print(&peer->conn.name, name, sizeof(name));
	fprintf(out, "  peer %s: %s\n", name, connections[state.connection]);
	if (state.last_error)
		fprintf(out, "    last error: %s\n", fi_strerror((int)state.last_error));
	print_ways(&state, out);
	print_figures(&state, out);
}

void worker_stats(const struct worker *worker, struct fi_weft_stats *stats)
{
	budget_stats(&worker->budget, stats);
	answers_stats(&worker->answers, stats);
	stats->pending_count = worker->conn.acceptor.count;
	stats->pending_dropped = worker->conn.acceptor.dropped;
	stats->joins_refused = worker->joins_refused;
	stats->nonmember_refused = worker->nonmember_refused;
	stats->wrong_keys = worker->conn.sources.wrong_keys;
	stats->unauthorized_refused = worker->conn.auth.refused;
	stats->unknown_refused = worker->conn.unknown.refused;
}

void worker_report_head(struct worker *worker, FILE *out)
{
	struct fi_weft_stats stats = {.size = sizeof(stats)};
	char name[ADDR_STR_MAX + 32];

	worker_stats(worker, &stats);
	addr_print(&worker->conn.name, name, sizeof(name));
	fprintf(out, "endpoint %s of process %d\n", name, (int)getpid());
	fprintf(out,
		"  unexpected messages %" PRIu64 ", bytes %" PRIu64 "; dropped %" PRIu64
		"; connections refused %" PRIu64 ", pending %" PRIu64 "\n",
		stats.unexpected_count, stats.unexpected_bytes, stats.unexpected_dropped,
		stats.unauthorized_refused + stats.unknown_refused, stats.pending_count);
}

void worker_report(struct worker *worker, FILE *out)
{
	worker_report_head(worker, out);
	LIST_EACH (node, &worker->conn.peers_list)
		print_peer(LIST_ENTRY(node, struct peer, conn.in_station), out);
}
