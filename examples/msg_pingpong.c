/* SPDX-License-Identifier: BSD-2-Clause */
/* Ping-pong over connected endpoints: listen, connect, accept or reject, exchange user data,
 * send and receive, shut down. The client's request says how long its messages will be; a server
 * whose buffer is too short says so in its refusal.
 *
 *     msg_pingpong -p tcp 127.0.0.1        the server for one client (the node is its own address)
 *     msg_pingpong -p tcp -c 127.0.0.1     the client; -s BYTES: longer or shorter messages
 *
 * The client prints bytes, one-way microseconds, megabytes per second. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define MAX_SIZE (1u << 20)
#define TIMES    1000
#define WORDS    256 /* bytes of user data on connecting */

/* A connection event, with the user data of the other side. */
union event {
	struct fi_eq_cm_entry entry; /* the user data is its `data` */
	char room[sizeof(struct fi_eq_cm_entry) + WORDS];
};

static struct fi_info *hints, *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *pep;
static struct fid_ep *ep;
static char *tx_buf, *rx_buf;

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "msg_pingpong: %s: %s\n", call, fi_strerror((int)-ret));
	exit(EXIT_FAILURE);
}

/* Requests the API version that this program was written for, not the library's. */
static void open_fabric(const char *node, const char *port, bool client)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	must(fi_getinfo(FI_VERSION(1, 17), node, port, client ? 0 : FI_SOURCE, hints, &info),
	     "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
}

/* A connected endpoint has one peer: it needs no address vector and ignores addresses. */
static void open_endpoint(struct fi_info *for_whom)
{
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_NONE, .format = FI_CQ_FORMAT_MSG};

	must(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, for_whom, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
}

/* Reports a refusal, which is an error event; prints the reason that the other side sent. */
static void refused(void)
{
	char words[WORDS] = "";
	struct fi_eq_err_entry error = {.err_data = words, .err_data_size = sizeof words - 1};

	must(fi_eq_readerr(eq, &error, 0), "fi_eq_readerr");
	fprintf(stderr, "msg_pingpong: %s%s%s\n", fi_strerror(error.err), words[0] ? ": " : "",
		words);
	exit(EXIT_FAILURE);
}

/* Waits for the next event, which must be `expected`. */
static union event wait_for(uint32_t expected)
{
	union event event = {.room = {0}};
	uint32_t kind;
	ssize_t ret;

	do
		ret = fi_eq_sread(eq, &kind, &event, sizeof event, -1, 0);
	while (ret == -FI_EAGAIN || ret == -FI_EINTR);
	if (ret == -FI_EAVAIL)
		refused();
	must(ret, "fi_eq_sread");
	if (kind != expected) {
		fprintf(stderr, "msg_pingpong: unexpected event %u\n", kind);
		exit(EXIT_FAILURE);
	}
	return event;
}

/* Receives may be posted before the connection exists, so that the first message finds one. */
static void post_receive(void)
{
	must(fi_recv(ep, rx_buf, MAX_SIZE, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
}

/* Accepts a client and returns the length of its messages. Rejects requests for too long
 * messages, and waits for the next. */
static size_t serve(void)
{
	const char *reason = "messages of more than a megabyte are too long";
	union event event;
	uint64_t size;

	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	for (;;) {
		event = wait_for(FI_CONNREQ);
		memcpy(&size, event.entry.data, sizeof size);
		if (size <= MAX_SIZE)
			break;
		must(fi_reject(pep, event.entry.info->handle, reason, strlen(reason)), "fi_reject");
		fi_freeinfo(event.entry.info);
	}
	open_endpoint(event.entry.info); /* the handle of this info names the request */
	fi_freeinfo(event.entry.info);
	post_receive();
	must(fi_accept(ep, "welcome", 8), "fi_accept");
	wait_for(FI_CONNECTED);
	return (size_t)size;
}

static void connect_to_server(size_t size)
{
	union event event;
	uint64_t request = size;

	open_endpoint(info);
	post_receive();
	must(fi_connect(ep, info->dest_addr, &request, sizeof request), "fi_connect");
	event = wait_for(FI_CONNECTED);
	printf("# the server says: %s\n", (const char *)event.entry.data);
}

/* Waits for the next completion of a receive (FI_RECV) or a send (FI_SEND). */
static void complete(uint64_t kind)
{
	static uint64_t ahead; /* kinds that completed before we waited for them */
	struct fi_cq_msg_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t ret;

	while (!(ahead & kind)) {
		while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
			;
		if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
			ret = -error.err;
		must(ret, "completion");
		ahead |= entry.flags & (FI_SEND | FI_RECV);
	}
	ahead &= ~kind;
}

static void send_message(size_t size)
{
	ssize_t ret;

	while ((ret = fi_send(ep, tx_buf, size, NULL, FI_ADDR_UNSPEC, NULL)) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0);
	must(ret, "fi_send");
	complete(FI_SEND);
}

static void exchange(size_t size, bool client)
{
	for (int i = 0; i < TIMES; i++) {
		if (client)
			send_message(size);
		complete(FI_RECV);
		if (i + 1 < TIMES)
			post_receive();
		if (!client)
			send_message(size);
	}
}

static double microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Closes objects in the reverse order of opening: an object must not be closed while another
 * uses it. */
static void close_all(void)
{
	struct fid *fids[] = {&ep->fid,     &cq->fid, pep ? &pep->fid : NULL,
			      &domain->fid, &eq->fid, &fabric->fid};

	for (size_t i = 0; i < sizeof fids / sizeof fids[0]; i++)
		if (fids[i])
			must(fi_close(fids[i]), "fi_close");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

int main(int argc, char **argv)
{
	const char *port = "7472";
	size_t size = 1024;
	bool client = false;
	double start, each;
	int opt;

	hints = fi_allocinfo();
	tx_buf = calloc(2, MAX_SIZE);
	if (!hints || !tx_buf)
		return EXIT_FAILURE;
	rx_buf = tx_buf + MAX_SIZE;
	while ((opt = getopt(argc, argv, "cp:P:s:")) != -1) {
		if (opt == 'c')
			client = true;
		else if (opt == 'p')
			hints->fabric_attr->prov_name = strdup(optarg);
		else if (opt == 'P')
			port = optarg;
		else if (opt == 's')
			size = strtoul(optarg, NULL, 0);
	}
	if (optind + 1 != argc) {
		fputs("Usage: msg_pingpong [-c] [-p PROVIDER] [-P PORT] [-s BYTES] SERVER\n",
		      stderr);
		return EXIT_FAILURE;
	}
	open_fabric(argv[optind], port, client);
	if (client)
		connect_to_server(size);
	else
		size = serve();
	start = microseconds();
	exchange(size, client);
	each = (microseconds() - start) / TIMES / 2;
	if (client) {
		printf("%zu %.2f %.1f\n", size, each, (double)size / each);
		must(fi_shutdown(ep, 0), "fi_shutdown");
	}
	wait_for(FI_SHUTDOWN); /* the caller of fi_shutdown gets the event, too */
	close_all();
	free(tx_buf);
	return EXIT_SUCCESS;
}
