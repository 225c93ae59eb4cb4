/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of a connection between two hosts. Prints each step as words that its caller reads:
 *
 *     hosts_cm [-p PROVIDER] [-a] [-d] [-l] listen PORT            on all addresses, one connection
 *     hosts_cm [-p PROVIDER] [-a] [-d] [-l] connect ADDRESS PORT
 *
 *     listening | connecting | connected ADDRESS (of the peer) | heard WORD | shutdown MS |
 *     failed ERROR MS
 *     receive ERROR | send ERROR       of operations pending at the end
 *
 * The program sleeps in fi_eq_sread. With -a, or with pending operations, it polls its completion
 * queue between events. -l: a long message is pending. The connecting end sends a word, with -d a
 * second later. MS: milliseconds since the previous step. */
#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LONG (64u << 20)

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	bool polls, has_long, delays;
	uint64_t word, last;
	double step;
} node;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the milliseconds since the last step. */
static int step(void)
{
	double now = seconds(), before = node.step;

	node.step = now;
	return (int)((now - before) * 1000);
}

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	printf("broken %s: %s\n", call, fi_strerror((int)-ret));
	exit(1);
}

static void print_name(const char *what, const void *addr)
{
	const struct sockaddr *sa = addr;
	char text[INET6_ADDRSTRLEN] = "?";

	if (sa->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)addr)->sin_addr, text,
			  sizeof(text));
	else if (sa->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)addr)->sin6_addr, text,
			  sizeof(text));
	printf("%s %s\n", what, text);
}

/* Takes one completion. Returns false if there is none. */
static bool reap(void)
{
	struct fi_cq_msg_entry entry;
	struct fi_cq_err_entry err = {0};
	ssize_t ret = fi_cq_read(node.cq, &entry, 1);

	if (ret == -FI_EAVAIL && fi_cq_readerr(node.cq, &err, 0) == 1) {
		printf("%s %s\n", err.flags & FI_SEND ? "send" : "receive", fi_strerror(err.err));
		return true;
	}
	if (ret == 1 && entry.op_context == &node.word)
		printf("heard %d\n", (int)node.word);
	return ret == 1;
}

/* Returns the kind of the next event; prints a failure and returns 0 for it. */
static uint32_t next_event(struct fi_info **info)
{
	struct fi_eq_cm_entry entry = {0};
	struct fi_eq_err_entry err = {0};
	bool polls = node.cq && (node.polls || node.has_long);
	uint32_t kind;
	ssize_t ret;

	do {
		ret = fi_eq_sread(node.eq, &kind, &entry, sizeof(entry), polls ? 1 : -1, 0);
		while (polls && reap())
			;
	} while (ret == -FI_EAGAIN || ret == -FI_EINTR);
	if (ret == -FI_EAVAIL) {
		must(fi_eq_readerr(node.eq, &err, 0), "fi_eq_readerr");
		printf("failed %s after %d\n", fi_strerror(err.err), step());
		return 0;
	}
	must(ret, "fi_eq_sread");
	if (info)
		*info = entry.info;
	return kind;
}

static void open_endpoint(struct fi_info *info)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG};

	must(fi_cq_open(node.domain, &attr, &node.cq, NULL), "fi_cq_open");
	must(fi_endpoint(node.domain, info, &node.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(node.ep, &node.eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(node.ep, &node.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(node.ep), "fi_enable");
	must(fi_recv(node.ep, &node.word, sizeof(node.word), NULL, 0, &node.word), "fi_recv");
	must(fi_recv(node.ep, &node.last, sizeof(node.last), NULL, 0, &node.last), "fi_recv");
}

static void listen_for_one(void)
{
	struct fi_info *info = NULL;
	struct fid_pep *pep;

	must(fi_passive_ep(node.fabric, node.info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &node.eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	puts("listening");
	step();
	if (next_event(&info) != FI_CONNREQ)
		exit(1);
	open_endpoint(info);
	must(fi_accept(node.ep, NULL, 0), "fi_accept");
	print_name("asked by", info->dest_addr);
}

static void connect_to(const void *addr)
{
	open_endpoint(node.info);
	puts("connecting");
	step();
	must(fi_connect(node.ep, addr, NULL, 0), "fi_connect");
}

static void talk(bool speaks)
{
	char name[128], *longer = node.has_long ? calloc(1, LONG) : NULL;
	size_t len = sizeof(name);
	uint64_t word = 42;

	must(fi_getpeer(node.ep, name, &len), "fi_getpeer");
	print_name("connected", name);
	step();
	if (node.delays)
		sleep(1);
	if (speaks)
		must(fi_inject(node.ep, &word, sizeof(word), 0), "fi_inject");
	if (longer)
		must(fi_send(node.ep, longer, LONG, NULL, 0, NULL), "fi_send");
	if (next_event(NULL) == FI_SHUTDOWN)
		printf("shutdown after %d\n", step());
	free(longer);
}

/* Runs from here to the end of the connection, or of the attempt. */
static void live(bool speaks)
{
	if (next_event(NULL) == FI_CONNECTED)
		talk(speaks);
	while (reap())
		;
}

int main(int argc, char **argv)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	bool listens;
	int opt;

	setvbuf(stdout, NULL, _IOLBF, 0);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	while ((opt = getopt(argc, argv, "p:adl")) != -1) {
		if (opt == 'p')
			hints->fabric_attr->prov_name = strdup(optarg);
		node.polls |= opt == 'a';
		node.delays |= opt == 'd';
		node.has_long |= opt == 'l';
	}
	listens = argc - optind == 2 && !strcmp(argv[optind], "listen");
	if (!listens && (argc - optind != 3 || strcmp(argv[optind], "connect") != 0))
		return 2;
	must(fi_getinfo(FI_VERSION(1, 17), listens ? NULL : argv[optind + 1], argv[argc - 1],
			listens ? FI_SOURCE : 0, hints, &node.info),
	     "fi_getinfo");
	must(fi_fabric(node.info->fabric_attr, &node.fabric, NULL), "fi_fabric");
	must(fi_domain(node.fabric, node.info, &node.domain, NULL), "fi_domain");
	must(fi_eq_open(node.fabric, &attr, &node.eq, NULL), "fi_eq_open");
	if (listens)
		listen_for_one();
	else
		connect_to(node.info->dest_addr);
	live(!listens);
	return 0;
}
