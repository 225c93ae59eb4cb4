/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint; clients that connect to its listeners or accept its connects, over Unix sockets and
 * TCP; and what must hold when all of them have gone: no connection, descriptor or handshake is
 * left, and every send has ended.
 */
#ifndef FUZZ_CLIENTS_H
#define FUZZ_CLIENTS_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"
#include "core/ep.h"
#include "hw/shm/shm_ring.h"
#include "hw/tcp/tcp.h"
#include "conn/conn.h"
#include "conn/connect.h"
#include "conn/stall.h"
#include "xfer/worker.h"

#define PATIENCE   20000 /* naps of 100 us */
#define CALM       3     /* progress calls that find nothing left */
#define SLOTS      4
#define FDS_MAX    4
#define RING_LEN   (4096 + 1024 * (8 + 64))
#define RING_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Ways to connect, and names for the endpoint to connect to: Unix socket, TCP. */
enum { INSIDE, NETWORK, WAYS };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep;
static struct worker *worker;
static struct addr names[WAYS];
static int listeners[WAYS];
static unsigned int entries;  /* of the address vector */
static uint64_t posted, done; /* sends */

/* Connections of clients, of either origin. */
static struct {
	int sock; /* -1: none */
	int way;
} slots[SLOTS];

/*
 * The fuzzer's: an operation has ended, with `err` (positive) or 0; `src`: of a receive. Counts
 * sends in `done`.
 */
static void completed(const struct fi_cq_msg_entry *e, int err, fi_addr_t src);
/* The fuzzer's: calls make_progress, and what else makes progress. */
static void progress(void);

/* ---- The endpoint ---- */

/*
 * What fi_getinfo finds for endpoints of this type. Their key has `len` bytes; 0: there is none;
 * FI_AV_AUTH_KEY: keys are in the address vector.
 */
static struct fi_info *find_info(enum fi_ep_type type, uint64_t caps, const uint8_t *key,
				 size_t len)
{
	struct fi_info *hints = fi_allocinfo(), *found;

	hints->fabric_attr->prov_name = strdup("weft");
	hints->ep_attr->type = type;
	hints->caps = caps;
	if (len == FI_AV_AUTH_KEY) {
		hints->domain_attr->auth_key_size = len;
	} else if (len) {
		hints->ep_attr->auth_key = malloc(len);
		hints->ep_attr->auth_key_size = len;
		memcpy(hints->ep_attr->auth_key, key, len);
	}
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	MUST(!fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &found));
	fi_freeinfo(hints);
	return found;
}

/* `key_len`: 0 or FI_AV_AUTH_KEY. */
static void endpoint_open(uint64_t caps, size_t key_len)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	log_redirect(&log_sink);
	info = find_info(FI_EP_RDM, caps, NULL, key_len);
	MUST(!fi_fabric(info->fabric_attr, &fabric, NULL));
	MUST(!fi_domain(fabric, info, &domain, NULL));
	MUST(!fi_cq_open(domain, &cq_attr, &cq, NULL));
	MUST(!fi_av_open(domain, &av_attr, &av, NULL));
	MUST(!fi_endpoint(domain, info, &ep, NULL));
	MUST(!fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(!fi_ep_bind(ep, &av->fid, 0));
}

/* All but the names that clients listen at. */
static void endpoint_close(void)
{
	CLOSE(ep);
	CLOSE(av);
	CLOSE(cq);
	CLOSE(domain);
	CLOSE(fabric);
	fi_freeinfo(info);
	info = NULL;
	worker = NULL;
	entries = 0;
}

/* After the vector has got its keys, if any. */
static void endpoint_enable(void)
{
	MUST(!fi_enable(ep));
	worker = ep_of(ep)->worker;
}

/* Makes an address of a name that clients listen at. `key`: of fi_av_insert_auth_key, or NULL. */
static fi_addr_t entry(int way, const fi_addr_t *key)
{
	fi_addr_t addr = key ? *key : 0;
	struct sockaddr_in in;
	size_t len = sizeof(in);

	MUST(!addr_to_user(&names[way], &in, &len));
	MUST(fi_av_insert(av, &in, 1, &addr, key ? FI_AUTH_KEY : 0, NULL) == 1);
	entries++;
	return addr;
}

static void peers_listen(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	socklen_t len = sizeof(in);
	struct sockaddr_un un;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listeners[NETWORK] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	MUST(!bind(listeners[NETWORK], (struct sockaddr *)&in, len));
	MUST(!getsockname(listeners[NETWORK], (struct sockaddr *)&in, &len));
	MUST(!addr_from_user(&names[NETWORK], FI_SOCKADDR_IN, &in, len));
	/* Another loopback address with the same port. */
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	MUST(!addr_from_user(&names[INSIDE], FI_SOCKADDR_IN, &in, len));
	listeners[INSIDE] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	len = connect_unix_name(&un, &names[INSIDE]);
	MUST(!bind(listeners[INSIDE], (struct sockaddr *)&un, len));
	for (int i = 0; i < WAYS; i++)
		MUST(!listen(listeners[i], 64));
	for (unsigned int i = 0; i < SLOTS; i++)
		slots[i].sock = -1;
}

static void make_progress(void)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_msg_entry e;
	fi_addr_t src;
	ssize_t ret;

	/* This progress call polls the sockets, too. */
	worker->conn.opener.armed = true;
	((struct tcp *)worker->conn.via[LINK_SOCKET].state)->idle = 0;
	worker_progress(worker);
	while ((ret = fi_cq_readfrom(cq, &e, 1, &src)) != -FI_EAGAIN) {
		MUST(ret == 1 || ret == -FI_EAVAIL);
		if (ret < 0) {
			MUST(fi_cq_readerr(cq, &error, 0) == 1);
			MUST(error.err > 0);
			e = (struct fi_cq_msg_entry){.op_context = error.op_context,
						     .flags = error.flags,
						     .len = error.len};
			src = error.src_addr;
		}
		completed(&e, ret < 0 ? error.err : 0, src);
	}
}
/* ---- The clients ---- */

static void slot_close(unsigned int i, bool hard)
{
	struct linger now = {1, 0};

	if (slots[i].sock < 0)
		return;
	if (hard)
		setsockopt(slots[i].sock, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(slots[i].sock);
	slots[i].sock = -1;
}

/* The slot's new socket; -1: none. What is said arrives at once. */
static void slot_take(unsigned int i, int way, int sock)
{
	if (way == NETWORK && sock >= 0)
		connect_set(sock, IPPROTO_TCP, TCP_NODELAY, 1);
	slots[i].sock = sock;
	slots[i].way = way;
}

/*
 * Connects to the listener of this name, each time from another address, so that ports do not run
 * out.
 */
static void come(unsigned int i, int way, const struct addr *name)
{
	static uint32_t count;
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(name->port)};
	struct sockaddr_in from = {.sin_family = AF_INET};
	struct sockaddr_un un;
	socklen_t len = connect_unix_name(&un, name);
	int sock = socket(
		way == INSIDE ? AF_UNIX : AF_INET,
		(way == INSIDE ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	slot_close(i, true);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	from.sin_addr.s_addr = htonl(0x7f010000 + count++ % 60000);
	if (way == NETWORK)
		MUST(!bind(sock, (struct sockaddr *)&from, sizeof(from)));
	if (way == INSIDE
		    ? connect(sock, (struct sockaddr *)&un, len)
		    : connect(sock, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) {
		close(sock);
		return;
	}
	slot_take(i, way, sock);
}

/* Accepts a connect of the endpoint. */
static void answer(unsigned int i, int way)
{
	slot_close(i, true);
	slot_take(i, way, accept4(listeners[way], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

static void call(fi_addr_t to, void *context)
{
	posted += fi_send(ep, "x", 1, NULL, to, context) == 0;
}

/* Returns a file like a ring or table of regions, whose first bytes are these. */
static int file_fd(const void *bytes, size_t len, int seals)
{
	struct ring_page page = {.magic = RING_MAGIC, .slots = 1024, .secret = 1};
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	page.head = page.hint = 1024;
	MUST(fd >= 0 && !ftruncate(fd, RING_LEN));
	MUST(pwrite(fd, &page, sizeof(page), 0) == (ssize_t)sizeof(page));
	MUST(pwrite(fd, bytes, len, 0) == (ssize_t)len);
	MUST(!fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* Rings that are made here are as the transport wants them. */
static void ring_check(void)
{
	int fd = file_fd("", 0, RING_SEALS);
	struct ring ring;

	MUST(!shm_ring_attach(&ring, fd));
	shm_ring_unmap(&ring);
	close(fd);
}

/*
 * Sends `bytes`, and descriptors, which it closes, if the client came inside the host. True: they
 * are under way.
 */
static bool say(unsigned int i, const void *bytes, size_t len, int fds[FDS_MAX], size_t count)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf};
	struct cmsghdr *c = &control.align;
	ssize_t sent;

	m.msg_controllen = count ? CMSG_SPACE(count * sizeof(int)) : 0;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	if (count)
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	sent = sendmsg(slots[i].sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	MUST(sent >= 0 || (errno != EINVAL && errno != EBADF));
	while (count)
		close(fds[--count]);
	return sent == (ssize_t)len;
}

/* ---- Afterwards ---- */

/* Refuses connects of the endpoint that no client accepted. */
static void refuse_all(void)
{
	int sock;

	for (int way = 0; way < WAYS; way++)
		while ((sock = accept4(listeners[way], NULL, NULL, SOCK_NONBLOCK)) >= 0)
			close(sock);
}

static bool quiet(void)
{
	unsigned int peers = 0;

	LIST_EACH (node, &worker->conn.peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, conn.in_station);

		peers++;
		/* The peer waits for the other side's connect, which never comes. */
		if (peer->conn.state == PEER_CROSSED)
			contact_failed(&peer->conn, FI_ETIMEDOUT);
		if (peer->conn.state != PEER_IDLE)
			return false;
	}
	MUST(peers <= entries);
	return worker->conn.acceptor.count == 0;
}

/*
 * Closes all connections and waits until the endpoint noticed: TCP takes time, and connections may
 * wait in a listener's backlog. Checks for leaks: the lowest free descriptor is no higher than `fds`, where it was. It may be
 * lower: descriptors of an endpoint that ended before are closed by a thread, maybe only now.
 */
static void quiesce(unsigned int fds)
{
	int calm = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		slot_close(i, true);
	for (int n = 0; n < PATIENCE && calm < CALM; n++) {
		refuse_all();
		progress();
		if (quiet())
			stall_close(&worker->conn); /* its timer would end a second later */
		calm = quiet() && lowest_fd() <= fds ? calm + 1 : 0;
		if (n > 20)
			usleep(100);
	}
	MUST(quiet());
	MUST(lowest_fd() <= fds);
	MUST(worker->conn.handshakes == 0);
	MUST(posted == done);
}

#endif
