/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application of an external provider: client API PROVIDER prints what it is offered, and lets two
 * processes play ping-pong. What it prints is the same over every libfabric.so.1.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define ROUNDS  1000
#define BYTES   256
#define SECONDS 20 /* limit of the wait for one completion */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t peer;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "client: %s\n", what);
	exit(1);
}

static void show_entries(uint32_t api, const char *name)
{
	struct fi_info *hints = fi_allocinfo(), *copy;
	int ret;

	must(hints != NULL, "fi_allocinfo");
	hints->mode = ~0ULL;
	hints->domain_attr->mr_mode = ~3;
	hints->fabric_attr->prov_name = strdup(name);
	ret = fi_getinfo(api, NULL, NULL, 0, hints, &info);
	printf("fi_getinfo: %s\n", fi_strerror(-ret));
	fi_freeinfo(hints);
	must(!ret, "no entry");
	copy = fi_dupinfo(info);
	fi_freeinfo(info);
	info = copy;
	must(info && !info->next, "fi_dupinfo");
	printf("%s, fabric %s, domain %s, version %u.%u, api %u.%u\n", info->fabric_attr->prov_name,
	       info->fabric_attr->name, info->domain_attr->name,
	       FI_MAJOR(info->fabric_attr->prov_version), FI_MINOR(info->fabric_attr->prov_version),
	       FI_MAJOR(info->fabric_attr->api_version), FI_MINOR(info->fabric_attr->api_version));
	printf("caps %s\n", fi_tostr(&info->caps, FI_TYPE_CAPS));
	must(strstr(fi_tostr(info, FI_TYPE_INFO), info->fabric_attr->prov_name) != NULL,
	     "fi_tostr");
}

static void open_all(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	must(!fi_fabric(info->fabric_attr, &fabric, &info), "fi_fabric");
	must(fabric->fid.context == &info, "context of the fabric");
	must(!fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(!fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(!fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(!fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_enable(ep) == -FI_EOPBADSTATE, "fi_enable of an endpoint without queue");
	must(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(!fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(!fi_enable(ep), "fi_enable");
	printf("error %s\n", fi_cq_strerror(cq, 1, NULL, NULL, 0));
}

static void close_all(void)
{
	must(!fi_close(&ep->fid), "fi_close");
	must(!fi_close(&av->fid), "fi_close");
	must(!fi_close(&cq->fid), "fi_close");
	must(!fi_close(&domain->fid), "fi_close");
	must(!fi_close(&fabric->fid), "fi_close");
	fi_freeinfo(info);
}

/* Gives the own address to the process at the other end of `pair`, and gets its address. */
static void exchange(int pair)
{
	char own[64], theirs[64], text[64];
	size_t len = sizeof(own), text_len = sizeof(text);

	must(!fi_getname(&ep->fid, own, &len), "fi_getname");
	must(write(pair, own, len) == (ssize_t)len, "write");
	must(recv(pair, theirs, len, MSG_WAITALL) == (ssize_t)len, "recv");
	must(fi_av_insert(av, theirs, 1, &peer, 0, NULL) == 1, "fi_av_insert");
	must(!strncmp(fi_av_straddr(av, theirs, text, &text_len), "loop://", 7), "fi_av_straddr");
}

/* Waits for one completion of `flag`; ignores those of `other`. */
static void wait_for(uint64_t flag, uint64_t other)
{
	time_t end = time(NULL) + SECONDS;
	struct fi_cq_msg_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_read(cq, &entry, 1);
		must(ret == 1 || ret == -FI_EAGAIN, "fi_cq_read");
		must(time(NULL) < end, "no completion comes");
		must(ret != 1 || entry.flags & (flag | other), "a completion of something else");
	} while (ret != 1 || !(entry.flags & flag));
	must(flag != FI_RECV || entry.len == BYTES, "the length of a message");
}

static void send_round(unsigned char *buf, int round)
{
	memset(buf, round & 0xff, BYTES);
	if (round % 2)
		must(!fi_inject(ep, buf, BYTES, peer), "fi_inject");
	else
		must(!fi_send(ep, buf, BYTES, NULL, peer, buf), "fi_send");
}

static void receive_round(unsigned char *buf, int round)
{
	memset(buf, ~round & 0xff, BYTES);
	must(!fi_recv(ep, buf, BYTES, NULL, FI_ADDR_UNSPEC, buf), "fi_recv");
	wait_for(FI_RECV, FI_SEND);
	for (int i = 0; i < BYTES; i++)
		must(buf[i] == (round & 0xff), "the bytes of a message");
}

static void play(int pair, int serves)
{
	unsigned char buf[BYTES];

	exchange(pair);
	for (int round = 0; round < 2 * ROUNDS; round++) {
		if (round % 2 == serves)
			send_round(buf, round / 2);
		else
			receive_round(buf, round / 2);
	}
}

int main(int argc, char **argv)
{
	unsigned int major, minor;
	int pair[2], status;
	pid_t child;

	must(argc == 3 && sscanf(argv[1], "%u.%u", &major, &minor) == 2,
	     "usage: client API PROVIDER");
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	show_entries(FI_VERSION(major, minor), argv[2]);
	fflush(stdout);
	child = fork();
	open_all();
	play(pair[child == 0], child == 0);
	close_all();
	if (!child)
		_exit(0);
	must(waitpid(child, &status, 0) == child && status == 0, "the other process");
	printf("%d rounds\n", ROUNDS);
	return 0;
}
