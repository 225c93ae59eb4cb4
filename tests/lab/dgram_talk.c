/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes with an FI_EP_DGRAM endpoint of the provider "verbs" each, at two addresses:
 * dgram_talk 10.77.0.1 10.77.1.1. Each checks what the other sends. A case prints a line. The
 * processes synchronize, and exchange names, over a socket.
 */
#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S 60 /* limit in seconds */
#define NAME   32 /* bytes of FI_ADDR_IB_UD */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fail(__LINE__, #cond);                                                     \
	} while (0)
#define OK(call) check_ok((call), #call, __LINE__)

static const char *now = "start";
static bool sender;
static int line; /* socket to the other process */
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static unsigned char own[NAME], theirs[NAME];
static fi_addr_t peer = FI_ADDR_NOTAVAIL;
static size_t most;
static char out[8192], in[8192];

static void fail(int at, const char *what)
{
	fprintf(stderr, "%s, %s, line %d: not so: %s\n", sender ? "sender" : "receiver", now, at,
		what);
	exit(EXIT_FAILURE);
}

static void check_ok(ssize_t ret, const char *call, int at)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", call, fi_strerror((int)-ret));
	if (ret)
		fail(at, text);
}

static void meet(void)
{
	char byte = 1;

	CHECK(write(line, &byte, 1) == 1 && read(line, &byte, 1) == 1);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void look_up(const char *address)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_DGRAM;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->caps = FI_MSG | FI_SOURCE | FI_SOURCE_ERR;
	OK(fi_getinfo(FI_VERSION(1, 17), address, NULL, FI_SOURCE, hints, &info));
	CHECK(info->ep_attr->protocol == FI_PROTO_IB_UD && info->addr_format == FI_ADDR_IB_UD);
	CHECK(info->src_addrlen == NAME);
	most = info->ep_attr->max_msg_size;
	CHECK(most >= 256 && most <= 4096);
	/* An entry as hints finds itself, and no entry with more capabilities. */
	hints->addr_format = FI_ADDR_IB_UD;
	hints->src_addr = malloc(NAME);
	memcpy(hints->src_addr, info->src_addr, NAME);
	hints->src_addrlen = NAME;
	fi_freeinfo(info);
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	CHECK(!memcmp(info->src_addr, hints->src_addr, NAME) && !info->next);
	hints->ep_attr->max_msg_size = most + 1;
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &hints->next) == -FI_ENODATA);
	fi_freeinfo(hints);
}

static void open_all(const char *address)
{
	struct fi_av_attr av_attr = {.type = FI_AV_MAP};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	size_t len = NAME;

	look_up(address);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &av_attr, &av, NULL));
	OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	OK(fi_endpoint(domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	OK(fi_getname(&ep->fid, own, &len));
	CHECK(len == NAME);
	CHECK(write(line, own, NAME) == NAME && read(line, theirs, NAME) == NAME);
}

static void close_all(void)
{
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static struct fi_cq_msg_entry done(uint64_t flags, void *context, fi_addr_t *from)
{
	struct fi_cq_msg_entry entry;
	ssize_t n = fi_cq_sreadfrom(cq, &entry, 1, from, NULL, WAIT_S * 1000);

	CHECK(n == 1 && entry.flags == flags && entry.op_context == context);
	return entry;
}

static size_t got(void *context)
{
	fi_addr_t from = FI_ADDR_NOTAVAIL;
	size_t len = done(FI_MSG | FI_RECV, context, &from).len;

	CHECK(from == peer);
	return len;
}

static void send_one(const void *buf, size_t len)
{
	OK(fi_send(ep, buf, len, NULL, peer, out));
	done(FI_MSG | FI_SEND, out, NULL);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

/* A datagram of an unknown sender comes with the sender's name. */
static void unknown_sender(void)
{
	unsigned char from[NAME];
	struct fi_cq_err_entry err = {.err_data = from, .err_data_size = sizeof(from)};
	struct fi_cq_msg_entry entry;
	ssize_t n;

	if (sender) {
		OK(fi_av_insert(av, theirs, 1, &peer, 0, NULL) != 1);
		meet();
		send_one("who", 4);
		return;
	}
	OK(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	meet();
	while ((n = fi_cq_sread(cq, &entry, 1, NULL, WAIT_S * 1000)) == -FI_EAGAIN)
		;
	CHECK(n == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1);
	CHECK(err.err == FI_EADDRNOTAVAIL && err.op_context == in && !strcmp(in, "who"));
	CHECK(err.err_data_size == NAME && !memcmp(from, theirs, NAME));
	OK(fi_av_insert(av, from, 1, &peer, 0, NULL) != 1);
}

static void names(void)
{
	char text[128], again[NAME];
	size_t len = sizeof(text);
	char gid[INET6_ADDRSTRLEN];
	uint32_t qp;

	fi_av_straddr(av, theirs, text, &len);
	memcpy(&qp, theirs + 16, 4);
	inet_ntop(AF_INET6, theirs, gid, sizeof(gid));
	snprintf(in, sizeof(in), "fi_addr_ib_ud://%s:%x/", gid, qp);
	CHECK(qp && !strncmp(text, in, strlen(in)));
	CHECK(fi_av_insertsvc(av, "127.0.0.1", "1", &(fi_addr_t){0}, 0, NULL) < 1);
	len = sizeof(again);
	OK(fi_av_lookup(av, peer, again, &len));
	CHECK(len == NAME && !memcmp(again, theirs, NAME));
	CHECK(fi_av_insert(av, "0123456789abcdef\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 1,
			   &(fi_addr_t){0}, 0, NULL) == 0);
}

static void sizes(void)
{
	const size_t lens[] = {0, 1, 64, most / 2 + 1, most};
	struct iovec iov[2];

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i];

		memset(out, 'a' + (int)i, sizeof(out));
		memset(in, 0, sizeof(in));
		iov[0] = (struct iovec){sender ? out : in, len / 3};
		iov[1] = (struct iovec){(sender ? out : in) + len / 3, len - len / 3};
		if (!sender) {
			OK(fi_recvv(ep, iov, NULL, 2, FI_ADDR_UNSPEC, iov));
			OK(fi_recv(ep, in + 4096, 4096, NULL, FI_ADDR_UNSPEC, in));
		}
		meet();
		if (sender) {
			OK(fi_inject(ep, out, len, peer));
			OK(fi_sendv(ep, iov, NULL, 2, peer, out));
			done(FI_MSG | FI_SEND, out, NULL);
		} else {
			CHECK(got(iov) == len && got(in) == len);
			CHECK(!memcmp(in, out, len) && !memcmp(in + 4096, out, len));
			CHECK(!in[len] && !in[4096 + len]);
		}
	}
	CHECK(fi_send(ep, out, most + 1, NULL, peer, out) == -FI_EMSGSIZE);
}

static void truncated(void)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_msg_entry entry;

	if (!sender)
		OK(fi_recv(ep, in, 10, NULL, FI_ADDR_UNSPEC, in));
	meet();
	if (sender) {
		send_one(out, 100);
		return;
	}
	CHECK(fi_cq_sread(cq, &entry, 1, NULL, WAIT_S * 1000) == -FI_EAVAIL);
	CHECK(fi_cq_readerr(cq, &err, 0) == 1 && err.err == FI_ETRUNC && err.olen == 90);
}

/* A multi-receive buffer, and sends with FI_MORE. */
static void several(void)
{
	struct fi_msg msg = {.msg_iov = &(struct iovec){sender ? out : in, sender ? 100 : 1000},
			     .iov_count = 1,
			     .addr = peer,
			     .context = out};

	size_t least = 100; /* the buffer is released when fewer bytes are left */

	if (!sender) {
		OK(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
			     sizeof(least)));
		OK(fi_recvmsg(ep, &msg, FI_MULTI_RECV));
	}
	meet();
	for (int i = 0; sender && i < 5; i++)
		OK(fi_sendmsg(ep, &msg, i < 4 ? FI_MORE : 0));
	for (int i = 0; i < 5; i++) {
		struct fi_cq_msg_entry entry =
			done(FI_MSG | (sender ? FI_SEND : FI_RECV), out, NULL);

		CHECK(sender || entry.len == 100);
	}
	meet();
	if (!sender) {
		OK(fi_cancel(&ep->fid, out));
		CHECK(fi_cq_sread(cq, &(struct fi_cq_msg_entry){0}, 1, NULL, WAIT_S * 1000) ==
		      -FI_EAVAIL);
		CHECK(fi_cq_readerr(cq, &(struct fi_cq_err_entry){0}, 0) == 1);
	}
}

/* More datagrams than receives: some are lost, the others are complete, and later ones arrive. */
static void flood(void)
{
	unsigned int came = 0;
	time_t end = time(NULL) + WAIT_S;
	bool last = false;

	for (int i = 0; sender && i < 1000; i++) {
		ssize_t ret;

		memset(out, i & 127, 200);
		while ((ret = fi_inject(ep, out, 200, peer)) == -FI_EAGAIN)
			CHECK(time(NULL) < end);
		OK(ret);
	}
	meet();
	while (!sender && !last) {
		struct fi_cq_msg_entry entry;
		ssize_t n;

		OK(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
		while ((n = fi_cq_sread(cq, &entry, 1, NULL, 500)) == -FI_EAGAIN && !last) {
			last = true; /* no more; the receive gets "last" */
			meet();
		}
		CHECK(n == 1);
		if (!last)
			CHECK(++came <= 1000 && entry.len == 200);
		for (size_t i = 1; i < entry.len; i++)
			CHECK(in[i] == in[0]);
	}
	if (sender) {
		meet();
		memset(out, 'z', 200);
		send_one(out, 200);
	} else {
		printf("flood: %u came\n", came);
		CHECK(came >= 100 && in[0] == 'z');
	}
}

/* The kernel's command that changes the state of a queue pair. */
struct change {
	uint32_t command; /* 26 */
	uint16_t in_words, out_words;
	unsigned char paths[64];
	uint32_t pair, mask, keys[5];
	uint16_t pkeys[2];
	unsigned char state, rest[15];
};

/* Moves all queue pairs of this process to the error state. */
static void break_pairs(void)
{
	struct change c = {
		.command = 26, .in_words = sizeof(c) / 4, .mask = 1 /* the state */, .state = 6};
	unsigned int broken = 0;

	for (int fd = 3; fd < 64; fd++) {
		char name[32], to[64] = "";

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		if (readlink(name, to, sizeof(to) - 1) < 0 || !strstr(to, "/uverbs"))
			continue;
		for (c.pair = 0; c.pair < 64; c.pair++)
			broken += write(fd, &c, sizeof(c)) == sizeof(c);
	}
	CHECK(broken == 1);
}

/* Reads the queue until no completion has come for a while. */
static void rest(void)
{
	CHECK(fi_cq_sread(cq, &(struct fi_cq_msg_entry){0}, 1, NULL, 300) == -FI_EAGAIN);
}

/* The device breaks one side's queue pair, while it waits to receive and while it sends. */
static void mended(void)
{
	if (!sender)
		OK(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	meet();
	if (!sender) {
		break_pairs();
		rest();
	}
	meet();
	if (sender)
		send_one("again", 6);
	else
		CHECK(got(in) == 6 && !strcmp(in, "again"));
	/* Sends posted before the endpoint notices are lost. */
	if (!sender)
		OK(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	meet();
	if (sender) {
		break_pairs();
		for (char n = 1; n <= 40; n++)
			send_one(&n, 1);
	} else {
		CHECK(got(in) == 1 && in[0] > 1);
	}
	meet();
	if (sender)
		OK(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	meet();
	if (sender)
		CHECK(got(in) == 5 && !strcmp(in, "back"));
	else
		send_one("back", 5);
}

/* Datagrams sent before the endpoint was closed arrive. */
static void parting(void)
{
	int came = 0;

	for (int i = 0; sender && i < 50; i++)
		OK(fi_inject(ep, "parting", 8, peer));
	if (sender)
		close_all();
	while (!sender && came < 50) {
		OK(fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
		if (got(in) == 8 && !strcmp(in, "parting"))
			came++;
	}
	if (!sender)
		close_all();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"unknown_sender", unknown_sender},
	{"names", names},
	{"sizes", sizes},
	{"truncated", truncated},
	{"several", several},
	{"flood", flood},
	{"mended", mended},
	{"parting", parting},
};

int main(int argc, char **argv)
{
	int pair[2], status = 1;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 2;
	pid = fork();
	sender = pid == 0;
	line = pair[sender];
	close(pair[!sender]);
	open_all(argv[sender ? 2 : 1]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		now = cases[i].name;
		meet();
		cases[i].run();
		meet();
		if (!sender)
			printf("%s: done\n", now);
	}
	if (sender)
		return 0;
	waitpid(pid, &status, 0);
	return status != 0;
}
