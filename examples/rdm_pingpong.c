/* SPDX-License-Identifier: BSD-2-Clause */
/* Ping-pong over reliable unconnected endpoints, the smallest whole program: open an endpoint, give
 * it queues and an address vector, meet, then send and receive. Only the library is used, also for
 * meeting: the client knows the server's node and port, and its first message is its own address.
 *
 *     rdm_pingpong -p shm 127.0.0.1             the server (the node is its own address)
 *     rdm_pingpong -p shm -c 127.0.0.1          the client
 *
 * The client prints a line for each size: bytes, one-way microseconds, megabytes per second. */
#include <stdbool.h>
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

#define MAX_SIZE  (1u << 20)
#define NAME_ROOM 256 /* bytes of an address, the payload of the first message */

static struct fi_info *hints, *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *tx_cq, *rx_cq;
static struct fid_av *av;
static struct fid_ep *ep;
static fi_addr_t peer;
static char *tx_buf, *rx_buf;

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "rdm_pingpong: %s: %s\n", call, fi_strerror((int)-ret));
	exit(EXIT_FAILURE);
}

/* Requests the API version that this program was written for, not the library's. */
static void find_fabric(const char *node, const char *port, bool client)
{
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	must(fi_getinfo(FI_VERSION(1, 17), node, port, client ? 0 : FI_SOURCE, hints, &info),
	     "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
}

/* The program polls for completions and needs only their contexts. */
static void open_queues(void)
{
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_NONE, .format = FI_CQ_FORMAT_CONTEXT};

	attr.size = info->tx_attr->size;
	must(fi_cq_open(domain, &attr, &tx_cq, NULL), "fi_cq_open");
	attr.size = info->rx_attr->size;
	must(fi_cq_open(domain, &attr, &rx_cq, NULL), "fi_cq_open");
}

static void open_endpoint(void)
{
	struct fi_av_attr attr = {.type = info->domain_attr->av_type, .count = 1};

	must(fi_av_open(domain, &attr, &av, NULL), "fi_av_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &tx_cq->fid, FI_TRANSMIT), "fi_ep_bind");
	must(fi_ep_bind(ep, &rx_cq->fid, FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
}

static void complete(struct fid_cq *cq)
{
	struct fi_cq_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		ret = -error.err;
	must(ret, "completion");
}

/* The buffer can hold the largest message, so any message fits. */
static void post_receive(void)
{
	must(fi_recv(ep, rx_buf, MAX_SIZE, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
}

/* -FI_EAGAIN means that there is no space now; reading the queue makes progress, which frees
 * some. */
static void send_message(size_t size)
{
	ssize_t ret;

	while ((ret = fi_send(ep, tx_buf, size, NULL, peer, NULL)) == -FI_EAGAIN)
		fi_cq_read(tx_cq, NULL, 0);
	must(ret, "fi_send");
	complete(tx_cq);
}

static void receive_message(void)
{
	complete(rx_cq);
	post_receive();
}

static void insert_peer(const void *address)
{
	must(fi_av_insert(av, address, 1, &peer, 0, NULL) == 1 ? 0 : -FI_EADDRNOTAVAIL,
	     "fi_av_insert");
}

static void meet(bool client)
{
	size_t len = NAME_ROOM;

	post_receive();
	if (client) {
		insert_peer(info->dest_addr);
		must(fi_getname(&ep->fid, tx_buf, &len), "fi_getname");
		send_message(len);
		receive_message();
	} else {
		complete(rx_cq);
		insert_peer(rx_buf);
		post_receive();
		send_message(1);
	}
}

static void exchange(size_t size, int times, bool client)
{
	for (int i = 0; i < times; i++) {
		if (client)
			send_message(size);
		receive_message();
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

/* Both sides derive the same message counts from the size; the first tenth is warm-up and not
 * timed. */
static void measure(size_t size, bool client)
{
	int times = size < 65536 ? 5000 : 500;
	double start, each;

	exchange(size, times / 10, client);
	start = microseconds();
	exchange(size, times, client);
	each = (microseconds() - start) / times / 2;
	if (client)
		printf("%zu %.2f %.1f\n", size, each, (double)size / each);
}

/* Closes objects in the reverse order of opening: an object must not be closed while another
 * uses it. */
static void close_all(void)
{
	struct fid *fids[] = {&ep->fid,    &av->fid,     &tx_cq->fid,
			      &rx_cq->fid, &domain->fid, &fabric->fid};

	for (size_t i = 0; i < sizeof fids / sizeof fids[0]; i++)
		must(fi_close(fids[i]), "fi_close");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

int main(int argc, char **argv)
{
	const char *port = "7471";
	bool client = false;
	int opt;

	hints = fi_allocinfo();
	tx_buf = calloc(2, MAX_SIZE);
	if (!hints || !tx_buf)
		return EXIT_FAILURE;
	rx_buf = tx_buf + MAX_SIZE;
	while ((opt = getopt(argc, argv, "cp:P:")) != -1) {
		if (opt == 'c')
			client = true;
		else if (opt == 'p')
			hints->fabric_attr->prov_name = strdup(optarg);
		else if (opt == 'P')
			port = optarg;
	}
	if (optind + 1 != argc) {
		fputs("Usage: rdm_pingpong [-c] [-p PROVIDER] [-P PORT] SERVER\n", stderr);
		return EXIT_FAILURE;
	}
	find_fabric(argv[optind], port, client);
	open_queues();
	open_endpoint();
	meet(client);
	for (size_t size = 8; size <= MAX_SIZE; size *= size == 8 ? 8 : 4)
		measure(size, client);
	close_all();
	free(tx_buf);
	return EXIT_SUCCESS;
}
